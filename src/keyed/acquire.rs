//! The future that awaits permits of a key.

use super::Keyed;
use super::hold::Hold;
use super::table::{Table, When};
use crate::acquire::{Acquire, Terms, UNBOUNDED, spend_budget, yields};
use crate::error::AcquireError;
use crate::limiter::Limiter;
use crate::line::{Ask, Position};
use crate::threads;
use crate::time::nanos;
use crate::turns::Turns;
use pin_project_lite::pin_project;
use std::borrow::{Borrow, Cow};
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::task::coop;
use tokio::time::Instant;

pin_project! {
    /// Awaits permits of a key: what [`Keyed::acquire`] and its kin return.
    ///
    /// It is an [`Acquire`](crate::Acquire) of the key's limiter: it resolves to how long it waited,
    /// takes nothing until it is polled, and then keeps its place among those who wait for that key.
    /// While it waits, the key is not forgotten, whatever the cap on keys.
    ///
    /// # Errors
    ///
    /// As for [`Acquire`](crate::Acquire).
    ///
    /// # Panics
    ///
    /// As for [`Acquire`](crate::Acquire).
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time; nothing is lost and nothing is given twice.
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct KeyedAcquire<'a, Q, S>
    where
        Q: ToOwned,
        Q: ?Sized,
        Q::Owned: Clone,
        Q::Owned: Eq,
        Q::Owned: Hash,
        S: BuildHasher,
    {
        request: Option<Request<'a, Q, S>>,
        // Before the hold, so that it gives back before the limiter may be let go.
        #[pin]
        acquire: Option<Acquire<'static>>,
        hold: Option<Hold<Q::Owned, S>>,
    }
}

struct Request<'a, Q, S>
where
    Q: ToOwned + ?Sized,
{
    table: Handle<'a, Q::Owned, S>,
    key: Cow<'a, Q>,
    permits: u32,
    within: Option<Duration>,
    before: Option<Instant>,
}

enum Handle<'a, K, S> {
    Borrowed(&'a Arc<Table<K, S>>),
    Owned(Arc<Table<K, S>>),
}

impl<K, S> Deref for Handle<'_, K, S> {
    type Target = Arc<Table<K, S>>;

    fn deref(&self) -> &Arc<Table<K, S>> {
        match self {
            Self::Borrowed(table) => table,
            Self::Owned(table) => table,
        }
    }
}

impl<'a, Q, S> KeyedAcquire<'a, Q, S>
where
    Q: ToOwned + ?Sized,
    Q::Owned: Clone + Eq + Hash,
    S: BuildHasher,
{
    pub(super) fn borrowed(keyed: &'a Keyed<Q::Owned, S>, key: &'a Q, permits: u32) -> Self {
        Self::new(Handle::Borrowed(&keyed.table), Cow::Borrowed(key), permits)
    }

    fn new(table: Handle<'a, Q::Owned, S>, key: Cow<'a, Q>, permits: u32) -> Self {
        let request = Request { table, key, permits, within: None, before: None };
        Self { request: Some(request), acquire: None, hold: None }
    }

    /// Waits for at most `wait`, counted from the first poll: see
    /// [`Acquire::within`](crate::Acquire::within). Of several bounds the tightest holds.
    pub fn within(mut self, wait: Duration) -> Self {
        if let Some(request) = &mut self.request {
            request.within = Some(request.within.map_or(wait, |bound| bound.min(wait)));
        }
        self
    }

    /// Waits until `deadline` at the latest: see [`Acquire::before`](crate::Acquire::before). Of
    /// several bounds the tightest holds.
    pub fn before(mut self, deadline: Instant) -> Self {
        if let Some(request) = &mut self.request {
            request.before = Some(request.before.map_or(deadline, |bound| bound.min(deadline)));
        }
        self
    }
}

impl<K, S> KeyedAcquire<'static, K, S>
where
    K: Clone + Eq + Hash,
    S: BuildHasher,
{
    pub(super) fn owned(table: Arc<Table<K, S>>, key: K, permits: u32) -> Self {
        Self::new(Handle::Owned(table), Cow::Owned(key), permits)
    }
}

impl<Q, S> Request<'_, Q, S>
where
    Q: ToOwned + Hash + Eq + ?Sized,
    Q::Owned: Clone + Eq + Hash + Borrow<Q>,
    S: BuildHasher,
{
    /// What comes of it without a limiter of the key's own; or else that limiter.
    fn at_once(&self) -> Result<Result<Duration, AcquireError>, Hold<Q::Owned, S>> {
        let (table, key) = (&*self.table, &*self.key);
        if !self.has_passed() {
            let hash = table.hash(key);
            match table.take_unless_own(hash, key, self.permits, When::Now) {
                Ok(Ok(())) => return Ok(Ok(Duration::ZERO)),
                Ok(Err(_)) => {}
                Err(own) => return Err(Hold::entered(table, hash, own)),
            }
        }
        // Who would be refused anyway needs no limiter: a crowd that is not let wait makes none.
        let refusal = table.look(
            key,
            When::Now,
            |quota, spent| self.refusal(quota.limiter(), spent),
            |_, _| None,
        );
        refusal.map_or_else(|| Err(Hold::of(table, key, When::Now)), |error| Ok(Err(error)))
    }

    /// Whether the deadline of one who wants anything has passed.
    fn has_passed(&self) -> bool {
        let Some(deadline) = self.before.filter(|_| self.permits > 0) else { return false };
        let limiter = self.table.quota_for(&*self.key).limiter();
        limiter.waiters().time.nanos(deadline) < limiter.now()
    }

    /// Asks the limiter of the key's own.
    fn ask(self, hold: &Hold<Q::Owned, S>) -> Acquire<'static> {
        let mut acquire = Acquire::owned(Arc::clone(hold.own().limiter()), self.permits);
        if let Some(wait) = self.within {
            acquire = acquire.within(wait);
        }
        if let Some(deadline) = self.before {
            acquire = acquire.before(deadline);
        }
        acquire
    }

    /// Why a key that is spent up to `spent` would refuse it, if it would.
    fn refusal(&self, limiter: &Limiter, spent: Position) -> Option<AcquireError> {
        let (waiters, now) = (limiter.waiters(), limiter.now());
        let within = self.within.map_or(UNBOUNDED, nanos);
        let before = self.before.map_or(UNBOUNDED, |deadline| waiters.time.nanos(deadline));
        let terms = Terms::new(waiters, now, within, before);
        let has_place = waiters.queue.places() > 0;
        let ask = Ask::new(now, self.permits, terms.patience(has_place));
        match limiter.line().ask_beyond(ask, spent) {
            Err(refusal) => Some(terms.refused_at_first(self.permits, refusal, has_place, waiters)),
            // Without a limit nobody has looked at the deadline.
            Ok(()) if terms.are_over() => Some(terms.too_late(self.permits, Some(now))),
            Ok(()) => None,
        }
    }
}

impl<Q, S> KeyedAcquire<'_, Q, S>
where
    Q: ToOwned + Hash + Eq + ?Sized,
    Q::Owned: Clone + Eq + Hash + Borrow<Q>,
    S: BuildHasher,
{
    /// Waits by blocking this thread: see [`Acquire::blocking`](crate::Acquire::blocking).
    ///
    /// # Errors
    ///
    /// As if it was awaited.
    ///
    /// # Panics
    ///
    /// If it is called where asynchronous tasks run, as Tokio's own blocking functions do.
    #[track_caller]
    pub fn blocking(mut self) -> Result<Duration, AcquireError> {
        threads::assert_may_block();
        let Some(request) = self.request.take() else {
            unreachable!("one that was polled is pinned")
        };
        match request.at_once() {
            Ok(outcome) => outcome,
            Err(hold) => request.ask(&hold).blocking(),
        }
    }
}

impl<Q, S> Future for KeyedAcquire<'_, Q, S>
where
    Q: ToOwned + Hash + Eq + ?Sized,
    Q::Owned: Clone + Eq + Hash + Borrow<Q>,
    S: BuildHasher,
{
    type Output = Result<Duration, AcquireError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if this.request.is_some() && !coop::has_budget_remaining() {
            return yields(cx);
        }
        if let Some(request) = this.request.take() {
            let hold = match request.at_once() {
                Ok(outcome) => {
                    let _ = spend_budget(cx);
                    return Poll::Ready(outcome);
                }
                Err(hold) => this.hold.insert(hold),
            };
            let acquire = request.ask(hold);
            this.acquire.set(Some(acquire));
        }
        let Some(acquire) = this.acquire.as_mut().as_pin_mut() else {
            panic!("`KeyedAcquire` polled after completion");
        };
        let outcome = std::task::ready!(acquire.poll(cx));
        this.acquire.set(None);
        *this.hold = None;
        Poll::Ready(outcome)
    }
}

impl<Q, S> fmt::Debug for KeyedAcquire<'_, Q, S>
where
    Q: ToOwned + fmt::Debug + ?Sized,
    Q::Owned: Clone + Eq + Hash,
    S: BuildHasher,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedAcquire")
            .field("key", &self.request.as_ref().map(|request| &*request.key))
            .field("acquire", &self.acquire)
            .finish_non_exhaustive()
    }
}
