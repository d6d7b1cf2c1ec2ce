//! The future that awaits permits: it books, sleeps, and gives back when dropped.

use crate::error::AcquireError;
use crate::limiter::Limiter;
use crate::line::{Booking, Patience, Refusal};
use crate::sleep::{Closed, Sleeper};
use crate::time::nanos;
use pin_project_lite::pin_project;
use std::ops::Deref;
use std::pin::Pin;
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
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct Acquire<'a> {
        limiter: Handle<'a>,
        permits: u32,
        // The longest wait, and the latest turn, in nanoseconds.
        within: u64,
        before: u64,
        began: u64,
        // What it will give back when dropped.
        booking: Option<Booking>,
        finished: bool,
        #[pin]
        sleeper: Option<Sleeper>,
    }

    impl PinnedDrop for Acquire<'_> {
        fn drop(this: Pin<&mut Self>) {
            this.give_back();
        }
    }
}

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
    pub(crate) fn borrowed(limiter: &'a Limiter, permits: u32) -> Self {
        Self::new(Handle::Borrowed(limiter), permits)
    }

    fn new(limiter: Handle<'a>, permits: u32) -> Self {
        Self {
            limiter,
            permits,
            within: UNBOUNDED,
            before: UNBOUNDED,
            began: 0,
            booking: None,
            finished: false,
            sleeper: None,
        }
    }

    /// Waits for at most `wait`, counted from the first poll. If its turn comes later, it is
    /// refused at once with [`AcquireError::WouldExceedDeadline`] and takes nothing.
    ///
    /// Of several bounds the tightest holds.
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub fn within(mut self, wait: Duration) -> Self {
        self.within = self.within.min(nanos(wait));
        self
    }

    /// Waits until `deadline` at the latest. If its turn comes later, or the deadline has passed,
    /// it is refused at once with [`AcquireError::WouldExceedDeadline`] and takes nothing.
    ///
    /// Of several bounds the tightest holds.
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub fn before(mut self, deadline: Instant) -> Self {
        // What lies before the limiter's beginning has passed at its beginning too.
        self.before = self.before.min(self.limiter.time().nanos(deadline));
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

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        assert!(!self.finished, "`Acquire` polled after completion");
        // A task that acquires in a loop and never has to wait lets others run all the same.
        let progress = ready!(coop::poll_proceed(cx));
        let outcome = match self.booking {
            None => self.as_mut().poll_first(cx),
            Some(_) => self.as_mut().poll_sleeping(cx),
        };
        if outcome.is_ready() {
            *self.project().finished = true;
            progress.made_progress();
        }
        outcome
    }
}

impl Acquire<'_> {
    fn poll_first(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Duration, AcquireError>> {
        let this = self.as_mut().project();
        let limiter: &Limiter = this.limiter;
        let now = limiter.now();
        let until = now.saturating_add(*this.within).min(*this.before);
        let patience = if until == UNBOUNDED { Patience::Forever } else { Patience::Until(until) };
        match limiter.line().book(now, *this.permits, patience) {
            Ok(booking) if booking.immediate => Poll::Ready(Ok(Duration::ZERO)),
            Ok(booking) => {
                *this.began = now;
                // Kept before the timer is made, which panics outside of a runtime.
                let booking = this.booking.insert(booking);
                let mut sleeper = this.sleeper;
                sleeper.set(Some(Sleeper::new(limiter, booking)));
                self.poll_sleeping(cx)
            }
            Err(refusal) => Poll::Ready(Err(refused(limiter, *this.permits, refusal, now, until))),
        }
    }

    fn poll_sleeping(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Duration, AcquireError>> {
        let this = self.project();
        let (Some(booking), Some(sleeper)) = (&*this.booking, this.sleeper.as_pin_mut()) else {
            unreachable!("a booking sleeps")
        };
        match ready!(sleeper.poll_turn(cx, this.limiter, booking)) {
            Ok(()) => {
                *this.booking = None;
                let waited = this.limiter.now().saturating_sub(*this.began);
                Poll::Ready(Ok(Duration::from_nanos(waited)))
            }
            Err(Closed) => Poll::Ready(Err(AcquireError::Closed)),
        }
    }

    fn give_back(self: Pin<&mut Self>) {
        let this = self.project();
        if let Some(booking) = this.booking.take() {
            this.limiter.line().give_back(this.limiter.now(), &booking);
        }
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
