//! [`SmoothWarmingUp`]: the face of the schedule that warms up.

use super::builder::Builder;
use super::face::face;
use super::schedule::Schedule;
use super::warmup::Warmup;
use crate::rate::Rate;
use crate::turns::Waiters;
use std::time::Duration;

/// Guava's `RateLimiter.create(rate, warmup)`: slow at first and after idle times, and at its full rate
/// once it has been in use for a while.
///
/// # When to choose it
///
/// When what is called is slow when cold: caches, pools of connections, code that is compiled as it
/// runs. There it spares a peer that was idle the whole rate at once.
///
/// When not: if idle time should earn a burst ([`Limiter`](crate::Limiter),
/// [`SmoothBursty`](super::SmoothBursty)), or if callers poll. The time between that at which a permit
/// could have been had and the next poll is idle, and cools it, so one who polls now and then may
/// never see it warm (in Guava this is issue 3552). Await instead. For the same reason, above
/// some hundred per second a single task that acquires in a loop loses what Tokio's timer is late by,
/// and cools it a little each time; see [`Builder::precise`].
///
/// # The rule
///
/// It is that of `SmoothWarmingUp` in Guava's `SmoothRateLimiter` (31.1), in exact arithmetic. Idle
/// time stores permits, as a measure of how cold it has become, up to a most that a time of `warmup`
/// brings about. A permit that was not stored takes `1 / rate`. One that was takes the same as long as
/// less than `threshold = warmup * rate / 2` are stored, and from there on linearly more, up to
/// `cold_factor / rate` when all `threshold + 2 * warmup * rate / (1 + cold_factor)` are. So asked for
/// all that it gives, it takes `warmup` to come from cold to the threshold, and half of that from there
/// to nothing stored.
///
/// As with [`SmoothBursty`](super::SmoothBursty), a request pays for the one before it: any `n` passes
/// when the debt is paid; and a new rate leaves the debt as it is, and keeps how cold it is in
/// proportion. It starts cold.
///
/// What differs from Guava: fractions of a microsecond are not dropped. A warm-up of zero stores
/// nothing, which makes an even pace (as `SmoothBursty` with a burst of zero); in Guava it lets
/// everything pass. While the rate is unlimited a debt is not waited for. And giving up loses nothing.
///
/// # Precision
///
/// Times are exact to a thousandth of a nanosecond while it is warm. How cold it is, is kept to one
/// part in 10<sup>12</sup> or so, and rounded to the colder side at each request; so where it
/// stores 10<sup>9</sup> permits, warming up can take a thousandth longer, and where it would
/// store more than 10<sup>11</sup>, it does not warm up by single permits.
///
/// # Ends of the scale
///
/// At [`Rate::ZERO`] every request for a permit is refused at once, and nothing is booked; at
/// [`Rate::UNLIMITED`] every one passes, and when that ends, it is warm. A debt beyond the end of time
/// (584 years) counts as one that is never paid: then a try says that there is no time to come back,
/// and an acquire is refused with [`DebtTooLarge`](crate::AcquireError::DebtTooLarge), or
/// [`WouldExceedDeadline`](crate::AcquireError::WouldExceedDeadline) if its wait was bounded.
/// `ExceedsBurst` does not occur. A cold factor out of range panics, where it is given.
///
/// # Cancel safety
///
/// An [`Acquire`](crate::Acquire) that is dropped before it completed gives its stretch of the
/// schedule back, and how cold it was at the beginning of it. If nobody is booked behind it, it is as
/// if it had never come; else the next who would have to wait and fits into it takes it. What of it
/// passes before is lost, since idle time earns no burst here.
///
/// # Memory ordering
///
/// As for [`SmoothBursty`](super::SmoothBursty).
///
/// # Examples
///
/// ```
/// use paceline::{Rate, smooth::SmoothWarmingUp};
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = SmoothWarmingUp::new(Rate::per_second(2), Duration::from_secs(4));
/// let mut waited = Vec::new();
/// for _ in 0..6 {
///     waited.push(limiter.acquire().await?.as_millis());
/// }
/// assert_eq!(waited, [0, 1375, 1125, 875, 625, 500]);
/// # Ok(())
/// # }
/// ```
pub struct SmoothWarmingUp {
    schedule: Schedule<Warmup>,
    waiters: Waiters,
}

impl SmoothWarmingUp {
    /// A limiter of `rate` that warms up in `warmup`, from a third of it. What is longer than 146
    /// years counts as that.
    #[must_use]
    pub fn new(rate: Rate, warmup: Duration) -> Self {
        Builder::new(rate).build_warming_up(warmup)
    }

    /// A limiter of `rate` that warms up in `warmup`: from `rate / cold_factor`, so 1 does not slow it
    /// down.
    ///
    /// # Panics
    ///
    /// Unless the cold factor is a number from 1 to 1000.
    ///
    /// # Examples
    ///
    /// ```
    /// # use paceline::{Rate, smooth::SmoothWarmingUp};
    /// # use std::time::Duration;
    /// let warmup = Duration::from_secs(4);
    /// let limiter = SmoothWarmingUp::with_cold_factor(Rate::per_second(5), warmup, 10.0);
    /// assert_eq!(limiter.reserve_many(1), Ok(Duration::ZERO));
    /// ```
    #[must_use]
    #[track_caller]
    pub fn with_cold_factor(rate: Rate, warmup: Duration, cold_factor: f64) -> Self {
        Builder::new(rate).cold_factor(cold_factor).build_warming_up(warmup)
    }

    pub(super) fn build(rate: Rate, warmup: Warmup, waiters: Waiters) -> Self {
        Self { schedule: Schedule::new(warmup, rate), waiters }
    }
}

face!(SmoothWarmingUp);
