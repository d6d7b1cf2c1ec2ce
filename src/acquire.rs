//! The future that awaits permits: it books, sleeps, and gives back when dropped.

use crate::error::AcquireError;
use crate::limiter::Limiter;
use crate::line::{Booking, Patience, Refusal, Verdict};
use crate::sleep::{Closed, Sleeper};
use crate::time::nanos;
use pin_project_lite::pin_project;
use std::ops::Deref;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::task::coop;
use tokio::time::Instant;

/// No bound on the wait, or on its end.
const UNBOUNDED: u64 = u64::MAX;

pin_project! {
    /// Awaits permits: what [`Limiter::acquire`] and its kin return.
    ///
    /// It resolves to how long it waited. Polled for the first time it books a turn; until then
    /// it takes nothing. From then on it keeps its place: turns come in the order of the line.
    ///
    /// # Errors
    ///
    /// [`AcquireError`] says why it got nothing, at once for all but `Closed`: a limiter that is
    /// closed lets go all who wait.
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
    pub struct Acquire<'a> {
        #[pin]
        stage: Stage<'a>,
    }
}

pin_project! {
    #[project = StageProjection]
    #[project_replace = StageReplaced]
    #[derive(Debug)]
    enum Stage<'a> {
        Fresh { request: Request<'a> },
        Waiting { #[pin] waiting: Waiting<'a> },
        Finished,
    }
}

/// What was asked for.
#[derive(Debug)]
struct Request<'a> {
    limiter: Handle<'a>,
    permits: u32,
    /// The longest wait, and the latest turn, in nanoseconds.
    within: u64,
    before: u64,
}

pin_project! {
    /// Holds a place in the line, and gives it back when dropped.
    #[derive(Debug)]
    struct Waiting<'a> {
        limiter: Handle<'a>,
        began: u64,
        // None once it was used.
        booking: Option<Booking>,
        // None until it is polled.
        #[pin]
        sleeper: Option<Sleeper>,
    }

    impl PinnedDrop for Waiting<'_> {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            if let Some(booking) = this.booking.take() {
                this.limiter.line().give_back(this.limiter.now(), &booking);
            }
        }
    }
}

#[derive(Debug)]
enum Handle<'a> {
    Borrowed(&'a Limiter),
    Owned(Arc<Limiter>),
}

impl Deref for Handle<'_> {
    type Target = Limiter;

    #[inline]
    fn deref(&self) -> &Limiter {
        match self {
            Self::Borrowed(limiter) => limiter,
            Self::Owned(limiter) => limiter,
        }
    }
}

impl<'a> Acquire<'a> {
    #[inline]
    pub(crate) fn borrowed(limiter: &'a Limiter, permits: u32) -> Self {
        Self::new(Handle::Borrowed(limiter), permits)
    }

    #[inline]
    fn new(limiter: Handle<'a>, permits: u32) -> Self {
        let request = Request { limiter, permits, within: UNBOUNDED, before: UNBOUNDED };
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
            request.before = request.before.min(request.limiter.time().nanos(deadline));
        }
        self
    }
}

impl Acquire<'static> {
    pub(crate) fn owned(limiter: Arc<Limiter>, permits: u32) -> Self {
        Self::new(Handle::Owned(limiter), permits)
    }
}

impl Future for Acquire<'_> {
    type Output = Result<Duration, AcquireError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut stage = self.project().stage;
        if let StageProjection::Fresh { request } = stage.as_mut().project() {
            // A task that acquires in a loop and never has to wait lets others run all the same.
            if !coop::has_budget_remaining() {
                return spend_budget(cx).map(|()| unreachable!("there was none"));
            }
            let now = request.limiter.now();
            if request.take_at_once(now) {
                stage.set(Stage::Finished);
                let _ = spend_budget(cx);
                return Poll::Ready(Ok(Duration::ZERO));
            }
            if let Some(outcome) = stage.as_mut().book(now) {
                let _ = spend_budget(cx);
                return Poll::Ready(outcome);
            }
        }
        let outcome = ready!(stage.as_mut().poll_waiting(cx));
        stage.set(Stage::Finished);
        Poll::Ready(outcome)
    }
}

/// Not by `coop::poll_proceed`, whose guard costs a tenth of a ready acquire more.
#[inline(always)]
#[expect(clippy::inline_always, reason = "measured: a call costs a tenth of a ready acquire")]
fn spend_budget(cx: &mut Context<'_>) -> Poll<()> {
    pin!(coop::consume_budget()).poll(cx)
}

impl Request<'_> {
    /// Takes what it asks for if it can have it now, which is the fast path.
    #[inline]
    fn take_at_once(&self, now: u64) -> bool {
        self.before >= now
            && matches!(self.limiter.line().take_plain(now, self.permits), Verdict::Take(_))
    }
}

impl Stage<'_> {
    /// From fresh to waiting; or to finished, and then with this outcome.
    #[cold]
    fn book(mut self: Pin<&mut Self>, now: u64) -> Option<Result<Duration, AcquireError>> {
        let StageReplaced::Fresh { request } = self.as_mut().project_replace(Stage::Finished)
        else {
            unreachable!("books once")
        };
        let Request { limiter, permits, within, before } = request;
        let until = now.saturating_add(within).min(before);
        let patience = if until == UNBOUNDED { Patience::Forever } else { Patience::Until(until) };
        match limiter.line().book(now, permits, patience) {
            Ok(booking) if booking.immediate => Some(Ok(Duration::ZERO)),
            Ok(booking) => {
                let booking = Some(booking);
                let waiting = Waiting { limiter, began: now, booking, sleeper: None };
                self.set(Stage::Waiting { waiting });
                None
            }
            Err(refusal) => Some(Err(refused(&limiter, permits, refusal, now, until))),
        }
    }

    /// # Panics
    ///
    /// If it is finished.
    fn poll_waiting(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Duration, AcquireError>> {
        match self.project() {
            StageProjection::Waiting { waiting } => waiting.poll(cx),
            _ => panic!("`Acquire` polled after completion"),
        }
    }
}

impl Future for Waiting<'_> {
    type Output = Result<Duration, AcquireError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let limiter: &Limiter = this.limiter;
        let Some(booking) = this.booking else { unreachable!("it waits for something") };
        if this.sleeper.is_none() {
            // Made when the place is held already, since it panics outside of a runtime.
            this.sleeper.set(Some(Sleeper::new(limiter, booking)));
        }
        let Some(sleeper) = this.sleeper.as_pin_mut() else { unreachable!("made above") };
        let outcome = ready!(sleeper.poll_turn(cx, limiter, booking));
        Poll::Ready(match outcome {
            Ok(()) => {
                *this.booking = None;
                Ok(Duration::from_nanos(limiter.now().saturating_sub(*this.began)))
            }
            Err(Closed) => Err(AcquireError::Closed),
        })
    }
}

#[cold]
fn refused(
    limiter: &Limiter,
    requested: u32,
    refusal: Refusal,
    now: u64,
    until: u64,
) -> AcquireError {
    match refusal {
        Refusal::Closed => AcquireError::Closed,
        Refusal::ExceedsBurst { burst } => {
            AcquireError::ExceedsBurst { requested, burst: limiter.line().tokens_of(burst) }
        }
        Refusal::Late(turn) => AcquireError::WouldExceedDeadline {
            requested,
            wait: turn.wait().map(Duration::from_nanos),
            limit: Duration::from_nanos(until.saturating_sub(now)),
        },
        Refusal::NoRoom => AcquireError::DebtTooLarge { requested },
    }
}
