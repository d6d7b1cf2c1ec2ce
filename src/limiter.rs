//! [`Limiter`]: the face of the token line.

use crate::acquire::Acquire;
use crate::builder::Builder;
use crate::error::{Limited, RangeError, ReserveError, TryAcquireError};
use crate::line::{Booking, Bounds, Line, Patience, Refusal, Verdict};
use crate::rate::Rate;
use crate::reservation::Reservation;
use crate::time::Timeline;
use std::fmt;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::time::Instant;

/// A rate limiter: permits are minted at a [`Rate`], and up to `burst` of them are kept for when
/// they are wanted.
///
/// It is a token bucket, as Go's `time/rate`, and starts full. It is shared by reference or in an
/// [`Arc`]; there is nothing to run in the background.
pub struct Limiter {
    line: Line,
    time: Timeline,
    changed: Arc<Notify>,
}

impl Limiter {
    /// A limiter of `rate` that keeps up to `burst` permits, and starts with all of them.
    #[must_use]
    pub fn new(rate: Rate, burst: u32) -> Self {
        Self::build(rate, burst, burst, Bounds::usual(rate, burst))
    }

    /// A limiter of which more is said than its rate and burst.
    pub fn builder(rate: Rate) -> Builder {
        Builder::new(rate)
    }

    pub(crate) fn build(rate: Rate, burst: u32, initial: u32, bounds: Bounds) -> Self {
        Self {
            line: Line::new(rate, burst, initial, bounds),
            time: Timeline::new(),
            changed: Arc::new(Notify::new()),
        }
    }

    /// Takes a permit if there is one.
    pub fn try_acquire(&self) -> Result<(), TryAcquireError> {
        self.try_acquire_many(1)
    }

    /// Takes `n` permits if there are so many.
    pub fn try_acquire_many(&self, n: u32) -> Result<(), TryAcquireError> {
        self.try_at(n, self.now())
    }

    /// As [`try_acquire_many`](Self::try_acquire_many), at the time `now`.
    pub fn try_acquire_many_at(&self, n: u32, now: Instant) -> Result<(), TryAcquireError> {
        self.try_at(n, self.time.nanos(now))
    }

    #[inline]
    fn try_at(&self, n: u32, now: u64) -> Result<(), TryAcquireError> {
        match self.line.take_plain(now, n) {
            Verdict::Take(_) => Ok(()),
            Verdict::Wait(turn) => Err(TryAcquireError::Limited(Limited::new(n, turn))),
            Verdict::Unclear => self.try_any(n, now),
        }
    }

    #[cold]
    fn try_any(&self, n: u32, now: u64) -> Result<(), TryAcquireError> {
        match self.line.book(now, n, Patience::Until(now)) {
            Ok(_) => Ok(()),
            Err(Refusal::Late(turn)) => Err(TryAcquireError::Limited(Limited::new(n, turn))),
            Err(Refusal::ExceedsBurst { burst }) => Err(TryAcquireError::ExceedsBurst {
                requested: n,
                burst: self.line.tokens_of(burst),
            }),
            Err(Refusal::Closed) => Err(TryAcquireError::Closed),
            Err(Refusal::NoRoom) => unreachable!("what can be had now has room"),
        }
    }

    /// Waits for a permit.
    pub fn acquire(&self) -> Acquire<'_> {
        self.acquire_many(1)
    }

    /// Waits for `n` permits at once.
    pub fn acquire_many(&self, n: u32) -> Acquire<'_> {
        Acquire::borrowed(self, n)
    }

    /// As [`acquire`](Self::acquire), with a future that owns the limiter.
    pub fn acquire_owned(self: Arc<Self>) -> Acquire<'static> {
        self.acquire_many_owned(1)
    }

    /// As [`acquire_many`](Self::acquire_many), with a future that owns the limiter.
    pub fn acquire_many_owned(self: Arc<Self>, n: u32) -> Acquire<'static> {
        Acquire::owned(self, n)
    }

    /// Books a permit.
    pub fn reserve(&self) -> Result<Reservation<'_>, ReserveError> {
        self.reserve_many(1)
    }

    /// Books `n` permits.
    pub fn reserve_many(&self, n: u32) -> Result<Reservation<'_>, ReserveError> {
        self.reserve_at(n, self.now())
    }

    /// As [`reserve_many`](Self::reserve_many), at the time `now`.
    pub fn reserve_many_at(&self, n: u32, now: Instant) -> Result<Reservation<'_>, ReserveError> {
        self.reserve_at(n, self.time.nanos(now))
    }

    fn reserve_at(&self, n: u32, now: u64) -> Result<Reservation<'_>, ReserveError> {
        match self.line.book(now, n, Patience::Forever) {
            Ok(booking) => Ok(Reservation::new(self, booking, n, now)),
            Err(Refusal::ExceedsBurst { burst }) => {
                Err(ReserveError::ExceedsBurst { requested: n, burst: self.line.tokens_of(burst) })
            }
            Err(Refusal::NoRoom) => Err(ReserveError::DebtTooLarge { requested: n }),
            Err(Refusal::Closed) => Err(ReserveError::Closed),
            Err(Refusal::Late(_)) => unreachable!("it waits for ever"),
        }
    }

    /// Mints at `rate` from now on.
    pub fn set_rate(&self, rate: Rate) -> Result<(), RangeError> {
        self.set_rate_from(rate, self.now())
    }

    /// As [`set_rate`](Self::set_rate), at the time `now`.
    pub fn set_rate_at(&self, rate: Rate, now: Instant) -> Result<(), RangeError> {
        self.set_rate_from(rate, self.time.nanos(now))
    }

    fn set_rate_from(&self, rate: Rate, now: u64) -> Result<(), RangeError> {
        self.line
            .set_rate(now, rate)
            .map_err(|Bounds { rate: max, .. }| RangeError::RateExceedsMax { rate, max })?;
        self.changed.notify_waiters();
        Ok(())
    }

    /// Keeps up to `burst` permits from now on.
    pub fn set_burst(&self, burst: u32) -> Result<(), RangeError> {
        self.set_burst_from(burst, self.now())
    }

    /// As [`set_burst`](Self::set_burst), at the time `now`.
    pub fn set_burst_at(&self, burst: u32, now: Instant) -> Result<(), RangeError> {
        self.set_burst_from(burst, self.time.nanos(now))
    }

    fn set_burst_from(&self, burst: u32, now: u64) -> Result<(), RangeError> {
        self.line
            .set_burst(now, burst)
            .map_err(|Bounds { burst: max, .. }| RangeError::BurstExceedsMax { burst, max })?;
        self.changed.notify_waiters();
        Ok(())
    }

    /// Closes the limiter for good.
    pub fn close(&self) {
        self.line.close();
        self.changed.notify_waiters();
    }

    /// Whether the limiter is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.line.is_closed()
    }

    /// How fast permits are minted.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.line.rate()
    }

    /// How many permits are kept at most.
    #[must_use]
    pub fn burst(&self) -> u32 {
        self.line.burst()
    }

    /// The permits that are free now.
    #[must_use]
    pub fn tokens(&self) -> f64 {
        self.line.tokens(self.now())
    }

    /// As [`tokens`](Self::tokens), at the time `now`.
    #[must_use]
    pub fn tokens_at(&self, now: Instant) -> f64 {
        self.line.tokens(self.time.nanos(now))
    }

    pub(crate) fn line(&self) -> &Line {
        &self.line
    }

    pub(crate) fn time(&self) -> Timeline {
        self.time
    }

    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.time.now()
    }

    pub(crate) fn changed(&self) -> &Arc<Notify> {
        &self.changed
    }

    pub(crate) fn due(&self, booking: &Booking) -> Option<u64> {
        self.line.due(booking)
    }
}

impl fmt::Debug for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter")
            .field("rate", &self.rate())
            .field("burst", &self.burst())
            .field("tokens", &self.tokens())
            .field("closed", &self.is_closed())
            .finish()
    }
}
