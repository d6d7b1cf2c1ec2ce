//! The future that awaits permits of a key.

use super::Keyed;
use super::hold::Hold;
use super::table::{Table, When};
use crate::acquire::Acquire;
use crate::error::{AcquireError, TryAcquireError};
use pin_project_lite::pin_project;
use std::borrow::{Borrow, Cow};
use std::hash::{BuildHasher, Hash};
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
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
    /// What comes of it without a limiter for the key; nothing if it takes one.
    fn at_once(&self) -> Option<Result<Duration, AcquireError>> {
        if self.before.is_some() {
            // Whether that has passed is for the limiter to say.
            return None;
        }
        match self.table.take(&*self.key, self.permits, When::Now) {
            Ok(()) => Some(Ok(Duration::ZERO)),
            // It would be refused anyway; so a crowd that is not let wait makes no limiters.
            Err(TryAcquireError::Limited(limited)) => {
                let (wait, limit) = (limited.retry_after(), self.within?);
                let late = wait.is_none_or(|wait| wait > limit);
                let requested = self.permits;
                let refused = AcquireError::WouldExceedDeadline { requested, wait, limit };
                late.then_some(Err(refused))
            }
            Err(TryAcquireError::ExceedsBurst { requested, burst }) => {
                Some(Err(AcquireError::ExceedsBurst { requested, burst }))
            }
            Err(_) => Some(Err(AcquireError::Closed)),
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
        if let Some(request) = this.request.take() {
            if let Some(outcome) = request.at_once() {
                return Poll::Ready(outcome);
            }
            let Request { table, key, permits, within, before } = request;
            let hold = this.hold.insert(Hold::of(&table, &*key, When::Now));
            let mut acquire = Acquire::owned(Arc::clone(hold.own().limiter()), permits);
            if let Some(wait) = within {
                acquire = acquire.within(wait);
            }
            if let Some(deadline) = before {
                acquire = acquire.before(deadline);
            }
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
