//! The future that awaits permits: it books, sleeps, and gives back when dropped.

use crate::error::AcquireError;
use crate::handle::Handle;
use crate::limiter::Limiter;
use crate::line::{Outlook, Patience, Refusal};
use crate::observe;
use crate::sleep::{Look, Sleeper};
use crate::threads;
use crate::time::nanos;
use crate::turns::{Turns, Waiters};
use pin_project_lite::pin_project;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::task::coop;
use tokio::time::Instant;

/// No bound on the wait, or on its end.
pub(crate) const UNBOUNDED: u64 = u64::MAX;

pin_project! {
    /// Awaits permits: what [`Limiter::acquire`] and its kin return.
    ///
    /// It resolves to how long it waited. Polled for the first time it books a turn; until then
    /// it takes nothing. From then on it keeps its place: turns come in the order of the line.
    ///
    /// # Errors
    ///
    /// [`AcquireError`] says why it got nothing, as a rule at once. One who waits already is
    /// refused if the settings change such that its turn comes too late or never fits, or if the
    /// limiter is closed.
    ///
    /// # Panics
    ///
    /// If it must wait and is polled outside of a Tokio runtime with its timer enabled, with
    /// Tokio's own message; or if it is polled again after it has completed.
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time, for example by [`tokio::time::timeout`]. Dropped before it
    /// completed, it gives its permits back, and others use them; completed, it holds nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// # use paceline::{Limiter, Rate};
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Limiter::new(Rate::per_second(10), 1);
    /// assert_eq!(limiter.acquire().await?, Duration::ZERO);
    /// assert_eq!(limiter.acquire().await?, Duration::from_millis(100));
    /// # Ok(())
    /// # }
    /// ```
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct Acquire<'a, L: Turns = Limiter> {
        #[pin]
        stage: Stage<'a, L>,
    }
}

pin_project! {
    #[project = StageProjection]
    #[project_replace = StageReplaced]
    #[derive(Debug)]
    enum Stage<'a, L: Turns> {
        Fresh { request: Request<'a, L> },
        Waiting { #[pin] waiting: Waiting<'a, L> },
        Finished,
    }
}

/// What was asked for.
#[derive(Debug)]
struct Request<'a, L> {
    limiter: Handle<'a, L>,
    permits: u32,
    /// The longest wait, and the latest turn, in nanoseconds.
    within: u64,
    before: u64,
    /// Whether it was served at once. A flag is all that is written then: to replace the stage
    /// costs a tenth of a ready acquire.
    served: bool,
}

pin_project! {
    /// Holds a turn and a place among those who wait, and gives both back when dropped.
    #[derive(Debug)]
    struct Waiting<'a, L: Turns> {
        limiter: Handle<'a, L>,
        terms: Terms,
        // None once it was used.
        booking: Option<L::Booking>,
        // None until it is polled.
        #[pin]
        sleeper: Option<Sleeper>,
    }

    impl<L: Turns> PinnedDrop for Waiting<'_, L> {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            if let Some(booking) = this.booking.take() {
                let limiter: &L = this.limiter;
                limiter.give_back(limiter.waiters().time.now(), &booking);
                observe::wait_cancelled(|| limiter.permits_of(&booking));
                limiter.cancelled();
            }
            this.limiter.waiters().queue.leave();
        }
    }
}

#[expect(private_bounds, reason = "only this crate's limiters can be awaited by it")]
impl<'a, L: Turns> Acquire<'a, L> {
    #[inline]
    pub(crate) fn borrowed(limiter: &'a L, permits: u32) -> Self {
        Self::new(limiter.into(), permits)
    }

    #[inline]
    pub(crate) fn new(limiter: Handle<'a, L>, permits: u32) -> Self {
        let (within, before) = (UNBOUNDED, UNBOUNDED);
        let request = Request { limiter, permits, within, before, served: false };
        Self { stage: Stage::Fresh { request } }
    }

    /// Waits for at most `wait`, counted from the first poll. If its turn comes later, it is
    /// refused at once with [`AcquireError::WouldExceedDeadline`] and takes nothing.
    ///
    /// Of several bounds the tightest holds.
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub fn within(mut self, wait: Duration) -> Self {
        if let Stage::Fresh { request } = &mut self.stage {
            request.within = request.within.min(nanos(wait));
        }
        self
    }

    /// Waits until `deadline` at the latest. If its turn comes later, or the deadline has passed,
    /// it is refused at once with [`AcquireError::WouldExceedDeadline`] and takes nothing.
    ///
    /// Of several bounds the tightest holds.
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub fn before(mut self, deadline: Instant) -> Self {
        if let Stage::Fresh { request } = &mut self.stage {
            request.before = request.before.min(request.limiter.waiters().time.nanos(deadline));
        }
        self
    }

    /// Waits by blocking this thread, which needs no runtime: for threads of their own and for
    /// [`spawn_blocking`](tokio::task::spawn_blocking). The turns of threads and of tasks are on the
    /// same line, in the order in which they were booked.
    ///
    /// It parks the thread until its turn comes or the settings change. `tokio::time::advance`
    /// wakes no thread: with a paused clock it looks again after as much real time as it was to wait.
    ///
    /// # Errors
    ///
    /// As if it was awaited.
    ///
    /// # Panics
    ///
    /// If it is called where asynchronous tasks run, as Tokio's own blocking functions do: in a task, or
    /// within `block_on`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use paceline::{AcquireError, Limiter, Rate};
    /// # use std::time::Duration;
    /// let limiter = Limiter::new(Rate::per_second(1000), 1);
    /// limiter.blocking_acquire()?;
    /// let waited = limiter.acquire().within(Duration::from_secs(1)).blocking()?;
    /// assert!(waited <= Duration::from_secs(1));
    /// # Ok::<(), AcquireError>(())
    /// ```
    #[track_caller]
    pub fn blocking(self) -> Result<Duration, AcquireError> {
        threads::assert_may_block();
        let mut stage = pin!(self.stage);
        let StageProjection::Fresh { request } = stage.as_mut().project() else {
            unreachable!("one that was polled is pinned, and can't be moved here")
        };
        let outcome = match request.limiter.take_at_once(request.permits, request.before) {
            Ok(()) => return Ok(Duration::ZERO),
            Err(now) => stage.as_mut().book(now),
        };
        outcome.unwrap_or_else(|| stage.block()).map(Granted::waited)
    }
}

#[expect(private_bounds, reason = "only this crate's limiters can be awaited by it")]
impl<L: Turns> Acquire<'static, L> {
    pub(crate) fn owned(limiter: Arc<L>, permits: u32) -> Self {
        Self::new(limiter.into(), permits)
    }
}

impl<L: Turns> Future for Acquire<'_, L> {
    type Output = Result<Duration, AcquireError>;

    // Without it a program that awaits in two places calls it, and a ready acquire costs a tenth
    // more.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "measured: see benches/README.md")]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut stage = self.project().stage;
        if let StageProjection::Fresh { request: request @ Request { served: false, .. } } =
            stage.as_mut().project()
        {
            if !coop::has_budget_remaining() {
                return yields(cx);
            }
            let now = match request.limiter.take_at_once(request.permits, request.before) {
                Ok(()) => {
                    request.served = true;
                    let _ = spend_budget(cx);
                    return Poll::Ready(Ok(Duration::ZERO));
                }
                Err(now) => now,
            };
            if let Some(outcome) = stage.as_mut().book(now) {
                let _ = spend_budget(cx);
                return Poll::Ready(outcome.map(Granted::waited));
            }
        }
        let outcome = ready!(stage.as_mut().poll_waiting(cx));
        stage.set(Stage::Finished);
        Poll::Ready(outcome.map(Granted::waited))
    }
}

type Outcome<L> = Result<Granted<<L as Turns>::Booking>, AcquireError>;

/// What was waited for: how long that took, and the turn, which has come.
struct Granted<B> {
    waited: Duration,
    #[cfg_attr(not(feature = "io"), expect(dead_code, reason = "used for good"))]
    booking: B,
}

impl<B> Granted<B> {
    fn waited(self) -> Duration {
        self.waited
    }
}

#[cfg(feature = "io")]
#[expect(private_bounds, reason = "only this crate's limiters can be awaited by it")]
impl<L: Turns> Acquire<'_, L> {
    /// As the future, with what was booked: for who may not use all of it, and gives the rest back.
    pub(crate) fn poll_booking(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<L::Booking, AcquireError>> {
        let mut stage = self.project().stage;
        if let StageProjection::Fresh { request } = stage.as_mut().project() {
            let now = request.limiter.waiters().time.now();
            if let Some(outcome) = stage.as_mut().book(now) {
                return Poll::Ready(outcome.map(|granted| granted.booking));
            }
        }
        let outcome = ready!(stage.as_mut().poll_waiting(cx));
        stage.set(Stage::Finished);
        Poll::Ready(outcome.map(|granted| granted.booking))
    }
}

/// A task that acquires in a loop and never has to wait lets others run all the same.
pub(crate) fn yields<T>(cx: &mut Context<'_>) -> Poll<T> {
    spend_budget(cx).map(|()| unreachable!("there was none"))
}

/// Not by `coop::poll_proceed`, whose guard costs a tenth of a ready acquire more.
#[inline(always)]
#[expect(clippy::inline_always, reason = "measured: a call costs a tenth of a ready acquire")]
pub(crate) fn spend_budget(cx: &mut Context<'_>) -> Poll<()> {
    pin!(coop::consume_budget()).poll(cx)
}

impl<L: Turns> Stage<'_, L> {
    /// From fresh to waiting; or to finished, and then with this outcome.
    #[cold]
    fn book(mut self: Pin<&mut Self>, now: u64) -> Option<Outcome<L>> {
        let StageReplaced::Fresh { request } = self.as_mut().project_replace(Stage::Finished)
        else {
            unreachable!("books once")
        };
        let Request { limiter, permits, within, before, served: _ } = request;
        let waiters = limiter.waiters();
        let terms = Terms::new(waiters, now, within, before);
        // A place is taken before the turn: nobody books who may not wait. Who has none may still
        // be served at once.
        let may_wait = waiters.queue.enter();
        let outcome = match limiter.book(now, permits, terms.patience(may_wait)) {
            // Without a limit nothing is booked, and so nobody has looked at the deadline.
            Ok(booking) if limiter.is_immediate(&booking) && terms.are_over() && permits > 0 => {
                Err(terms.too_late(permits, Some(now)))
            }
            Ok(booking) if limiter.is_immediate(&booking) => {
                Ok(Granted { waited: Duration::ZERO, booking })
            }
            Ok(booking) => {
                waiters.queue.stay();
                observe::wait_began(permits);
                let booking = Some(booking);
                self.set(Stage::Waiting {
                    waiting: Waiting { limiter, terms, booking, sleeper: None },
                });
                return None;
            }
            Err(refusal) => Err(terms.refused_at_first(permits, refusal, may_wait, waiters)),
        };
        if may_wait {
            waiters.queue.pass();
        }
        match &outcome {
            Ok(Granted { waited, .. }) => limiter.served(*waited),
            Err(error) => limiter.refused(error),
        }
        Some(outcome)
    }

    /// # Panics
    ///
    /// If it is finished.
    fn poll_waiting(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome<L>> {
        match self.project() {
            StageProjection::Waiting { waiting } => waiting.poll(cx),
            _ => panic!("`Acquire` polled after completion"),
        }
    }

    fn block(self: Pin<&mut Self>) -> Outcome<L> {
        match self.project() {
            StageProjection::Waiting { waiting } => waiting.block(),
            _ => unreachable!("it has booked"),
        }
    }
}

impl<L: Turns> Future for Waiting<'_, L> {
    type Output = Outcome<L>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let limiter: &L = this.limiter;
        if this.sleeper.is_none() {
            // Made when the turn is held already, since it panics outside of a runtime.
            this.sleeper.set(Some(Sleeper::new(limiter.waiters())));
        }
        let Some(sleeper) = this.sleeper.as_pin_mut() else { unreachable!("made above") };
        let (terms, held) = (*this.terms, this.booking);
        let look = |now| look(limiter, terms, held, now);
        let outcome = ready!(sleeper.poll(cx, limiter.waiters(), look));
        Poll::Ready(ended(limiter, held, outcome))
    }
}

impl<L: Turns> Waiting<'_, L> {
    /// As the future, on this thread.
    fn block(self: Pin<&mut Self>) -> Outcome<L> {
        let this = self.project();
        let limiter: &L = this.limiter;
        let (terms, held) = (*this.terms, this.booking);
        let outcome = threads::park(limiter.waiters(), |now| look(limiter, terms, held, now));
        ended(limiter, held, outcome)
    }
}

/// What is held still when the wait has ended goes back.
fn ended<L: Turns>(limiter: &L, held: &mut Option<L::Booking>, outcome: Outcome<L>) -> Outcome<L> {
    if let Err(error) = &outcome {
        observe::wait_refused(error);
        limiter.refused(error);
        if let Some(booking) = held.take() {
            limiter.give_back(limiter.waiters().time.now(), &booking);
        }
    }
    outcome
}

/// What one who waits finds at `now`. If its turn has come, the permits are used.
fn look<L: Turns>(
    limiter: &L,
    terms: Terms,
    held: &mut Option<L::Booking>,
    now: u64,
) -> Look<Outcome<L>> {
    let Some(booking) = held else { unreachable!("it waits for something") };
    let permits = limiter.permits_of(booking);
    match limiter.look(now, booking) {
        Outlook::Wait(Some(turn)) if turn <= terms.until => Look::Wait(Some(turn)),
        Outlook::Wait(None) if terms.until == UNBOUNDED => Look::Wait(None),
        Outlook::Wait(turn) => Look::Done(Err(terms.too_late(permits, turn))),
        Outlook::ExceedsBurst { burst } => {
            Look::Done(Err(AcquireError::ExceedsBurst { requested: permits, burst }))
        }
        Outlook::Closed => Look::Done(Err(AcquireError::Closed)),
        Outlook::Turn { late, overflown } => {
            // It is not late by more than it has waited: a change can put a turn into the past.
            limiter.woke(now, late.min(now.saturating_sub(terms.began)));
            if overflown {
                limiter.give_back(now, booking);
                *held = None;
                match limiter.book(now, permits, patience(terms.until)) {
                    Ok(again) => *held = Some(again),
                    Err(refusal) => {
                        return Look::Done(Err(terms.refused(permits, now, refusal)));
                    }
                }
                if let Some(again) = held.as_ref().filter(|again| !limiter.is_immediate(again)) {
                    return Look::Wait(limiter.due(again));
                }
            }
            let waited = Duration::from_nanos(now.saturating_sub(terms.began));
            let Some(booking) = held.take() else { unreachable!("booked above") };
            observe::wait_ended(permits, waited);
            limiter.served(waited);
            Look::Done(Ok(Granted { waited, booking }))
        }
    }
}

/// Since when somebody waits, and until when at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) began: u64,
    pub(crate) until: u64,
}

impl Terms {
    /// Of one who comes at `now`, may wait for so long, and until then.
    pub(crate) fn new(waiters: &Waiters, now: u64, within: u64, before: u64) -> Self {
        let until = now.saturating_add(within.min(waiters.max_wait)).min(before);
        Self { began: now, until }
    }

    /// Whether the deadline had passed from the start.
    pub(crate) fn are_over(self) -> bool {
        self.until < self.began
    }

    /// How patient one is who has a place to wait, or none.
    pub(crate) fn patience(self, has_place: bool) -> Patience {
        patience(if has_place { self.until } else { self.until.min(self.began) })
    }

    /// Why one got nothing who has just come.
    #[cold]
    pub(crate) fn refused_at_first(
        self,
        requested: u32,
        refusal: Refusal,
        has_place: bool,
        waiters: &Waiters,
    ) -> AcquireError {
        match refusal {
            Refusal::Late(_) if !has_place && !self.are_over() => {
                AcquireError::QueueFull { max_waiters: waiters.queue.places() }
            }
            refusal => self.refused(requested, self.began, refusal),
        }
    }

    #[cold]
    pub(crate) fn refused(self, requested: u32, now: u64, refusal: Refusal) -> AcquireError {
        match refusal {
            Refusal::Closed => AcquireError::Closed,
            Refusal::ExceedsBurst { burst } => AcquireError::ExceedsBurst { requested, burst },
            Refusal::Late(turn) => {
                self.too_late(requested, turn.wait().map(|wait| now.saturating_add(wait)))
            }
            Refusal::QueueFull { places } => AcquireError::QueueFull { max_waiters: places },
            Refusal::NoRoom => AcquireError::DebtTooLarge { requested },
        }
    }

    pub(crate) fn too_late(self, requested: u32, turn: Option<u64>) -> AcquireError {
        let since_began = |time: u64| Duration::from_nanos(time.saturating_sub(self.began));
        AcquireError::WouldExceedDeadline {
            requested,
            wait: turn.map(since_began),
            limit: since_began(self.until),
        }
    }
}

/// How patient one is who waits until then.
pub(crate) fn patience(until: u64) -> Patience {
    if until == UNBOUNDED { Patience::Forever } else { Patience::Until(until) }
}
