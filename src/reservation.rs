//! [`Reservation`]: a turn that is booked.

use crate::error::AcquireError;
use crate::limiter::Limiter;
use crate::line::Booking;
use crate::sleep::{Look, Sleeper};
use crate::threads;
use crate::turns::Turns;
use std::fmt;
use std::future::poll_fn;
use std::ops::Deref;
use std::pin::pin;
use std::time::Duration;
use tokio::time::Instant;

/// A turn that is booked: what [`Limiter::reserve`] returns.
///
/// The permits are spent from the start, and may be used when the turn has come: at
/// [`ready_at`](Self::ready_at), after [`delay`](Self::delay), or when [`ready`](Self::ready)
/// resolves. A turn that will not be used is given back by [`cancel`](Self::cancel).
///
/// As in Go, dropping a reservation keeps its permits spent. (Dropping an unfinished
/// [`Acquire`](crate::Acquire) gives them back.)
///
/// # Examples
///
/// A call that is not worth the wait:
///
/// ```
/// # use paceline::{Limiter, Rate};
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = Limiter::new(Rate::per_second(1), 1);
/// limiter.acquire().await?;
/// let turn = limiter.reserve()?;
/// if turn.delay() > Duration::from_millis(100) {
///     turn.cancel();
/// } else {
///     turn.ready().await?;
/// }
/// assert_eq!(limiter.tokens(), 0.0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a reservation that is dropped keeps its permits spent; `cancel` gives them back"]
pub struct Reservation<'a> {
    limiter: Lent<'a>,
    booking: Booking,
    permits: u32,
    booked_at: u64,
}

/// The limiter that a turn is of.
enum Lent<'a> {
    Borrowed(&'a Limiter),
    /// That of a key, which it has for as long as this lasts.
    #[cfg(feature = "keyed")]
    Held(Box<dyn Deref<Target = Limiter> + Send + Sync + 'a>),
}

impl Deref for Lent<'_> {
    type Target = Limiter;

    fn deref(&self) -> &Limiter {
        match self {
            Self::Borrowed(limiter) => limiter,
            #[cfg(feature = "keyed")]
            Self::Held(limiter) => limiter,
        }
    }
}

impl fmt::Debug for Lent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<'a> Reservation<'a> {
    /// Of a limiter that is held for as long as the reservation lasts.
    #[cfg(feature = "keyed")]
    pub(crate) fn held(
        limiter: impl Deref<Target = Limiter> + Send + Sync + 'a,
        booking: Booking,
        permits: u32,
        booked_at: u64,
    ) -> Self {
        Self { limiter: Lent::Held(Box::new(limiter)), booking, permits, booked_at }
    }

    pub(crate) fn new(
        limiter: &'a Limiter,
        booking: Booking,
        permits: u32,
        booked_at: u64,
    ) -> Self {
        Self { limiter: Lent::Borrowed(limiter), booking, permits, booked_at }
    }

    /// When its turn comes; `None` if never.
    fn turn(&self) -> Option<u64> {
        Some(self.limiter.due(&self.booking)?.max(self.booked_at))
    }

    /// How long from now until its turn by the present rate: zero when it has come,
    /// [`Duration::MAX`] when it never comes.
    #[must_use]
    pub fn delay(&self) -> Duration {
        self.delay_at(self.limiter.now())
    }

    /// As [`delay`](Self::delay), from the time `now`.
    #[must_use]
    pub fn delay_from(&self, now: Instant) -> Duration {
        self.delay_at(self.limiter.waiters().time.nanos(now))
    }

    fn delay_at(&self, now: u64) -> Duration {
        self.turn().map_or(Duration::MAX, |turn| Duration::from_nanos(turn.saturating_sub(now)))
    }

    /// When its turn comes by the present rate. `None` if never, or beyond what the platform's
    /// clock can tell.
    #[must_use]
    pub fn ready_at(&self) -> Option<Instant> {
        self.limiter.waiters().time.instant(self.turn()?)
    }

    /// How many permits it holds.
    #[must_use]
    pub fn permits(&self) -> u32 {
        self.permits
    }

    /// Gives the permits back, to be used by others.
    ///
    /// After the turn has come it gives nothing back, as in Go, where people call it without
    /// looking. At the very instant of the turn it still does.
    pub fn cancel(self) {
        let now = self.limiter.now();
        self.cancel_from(now);
    }

    /// As [`cancel`](Self::cancel), at the time `now`.
    pub fn cancel_at(self, now: Instant) {
        let now = self.limiter.waiters().time.nanos(now);
        self.cancel_from(now);
    }

    fn cancel_from(self, now: u64) {
        if self.turn().is_none_or(|turn| turn >= now) {
            self.limiter.line().give_back(now, &self.booking);
        }
    }

    /// Gives back the permits of a turn that has come and was not used after all: they are free
    /// again as far as they have not overflowed. Before the turn it does what
    /// [`cancel`](Self::cancel) does.
    ///
    /// It is for who knows that the permits were not used: what was used and is refunded is used
    /// twice.
    ///
    /// # Examples
    ///
    /// ```
    /// # use paceline::{Limiter, Rate};
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Limiter::new(Rate::per_second(1), 2);
    /// let turn = limiter.reserve()?;
    /// tokio::time::advance(Duration::from_millis(100)).await;
    /// turn.refund();
    /// assert!(limiter.try_acquire_many(2).is_ok());
    /// # Ok(())
    /// # }
    /// ```
    pub fn refund(self) {
        let now = self.limiter.now();
        self.limiter.line().give_back(now, &self.booking);
    }

    /// As [`refund`](Self::refund), at the time `now`.
    pub fn refund_at(self, now: Instant) {
        let now = self.limiter.waiters().time.nanos(now);
        self.limiter.line().give_back(now, &self.booking);
    }

    /// Waits for the turn.
    ///
    /// # Errors
    ///
    /// [`AcquireError::Closed`] when the limiter is closed, before or while it waits.
    ///
    /// # Panics
    ///
    /// If it must wait outside of a Tokio runtime with its timer enabled, with Tokio's own message.
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped at any time: the reservation stays as it is, and can be waited
    /// for again.
    pub async fn ready(&self) -> Result<(), AcquireError> {
        // One whose turn has come needs no timer, nor a runtime.
        if let Look::Done(outcome) = self.look(self.limiter.now()) {
            return outcome;
        }
        let mut sleeper = pin!(Sleeper::new(self.limiter.waiters()));
        poll_fn(|cx| sleeper.as_mut().poll(cx, self.limiter.waiters(), |now| self.look(now))).await
    }

    /// Waits for the turn by blocking this thread, without a runtime.
    ///
    /// # Errors
    ///
    /// As for [`ready`](Self::ready).
    ///
    /// # Panics
    ///
    /// If it is called where asynchronous tasks run, as Tokio's own blocking functions do.
    #[track_caller]
    pub fn blocking_ready(&self) -> Result<(), AcquireError> {
        threads::assert_may_block();
        threads::park(self.limiter.waiters(), |now| self.look(now))
    }

    fn look(&self, now: u64) -> Look<Result<(), AcquireError>> {
        if self.limiter.is_closed() {
            return Look::Done(Err(AcquireError::Closed));
        }
        match self.turn() {
            Some(turn) if turn <= now => Look::Done(Ok(())),
            turn => Look::Wait(turn),
        }
    }
}
