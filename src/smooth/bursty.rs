//! [`SmoothBursty`]: the face of the bursty schedule.

use super::builder::Builder;
use super::burst::Burst;
use super::face::face;
use super::schedule::Schedule;
use crate::rate::Rate;
use crate::turns::Waiters;
use std::time::Duration;

/// Guava's `RateLimiter.create(rate)`: permits at an even pace, and some seconds' worth of them stored
/// for when they are wanted.
///
/// # When to choose it
///
/// When code is ported that relies on Guava's rule: **a request pays for the one before it**. Any
/// number of permits passes as soon as the debt is paid, and then makes the next request wait. So no
/// request is ever too large, and a large one after a quiet time starts at once.
///
/// When not: if a bound on what passes in a window matters. Here it is
/// `stored + rate * window` and one request more, however large. [`Limiter`](crate::Limiter) has a
/// strict bound, starts full, and re-times those who wait when the rate changes.
///
/// # The rule
///
/// It is that of `SmoothBursty` in Guava's `SmoothRateLimiter` (31.1), in exact arithmetic: with
/// `stored` at most `max_burst * rate` permits, and `next_free` the time at which the debt is paid,
///
/// * idle time stores: if `now > next_free`, `stored += (now - next_free) * rate` and `next_free = now`;
/// * a request of `n` waits until `next_free` as it was before it; what is stored pays for as much of it
///   as it can, and the rest adds `rest / rate` to `next_free`;
/// * a try is granted if `next_free <= now`, for any `n`;
/// * a new rate leaves `next_free` as it is, and keeps `stored / max_stored`.
///
/// It starts with nothing stored. A request for no permits passes at once and takes nothing.
///
/// What differs: Guava drops the fraction of a microsecond at each grant, and so is too fast, by 67 %
/// at 600 000/s and without any limit above 10<sup>6</sup>/s; here times are exact to a thousandth of a
/// nanosecond at every rate. A clock that steps back a little delays nobody. While the rate is
/// unlimited, a debt is not waited for. And giving up loses nothing.
///
/// # Ends of the scale
///
/// At [`Rate::ZERO`] every request for a permit is refused at once, and nothing is booked; at
/// [`Rate::UNLIMITED`] every one passes, and when that ends, the store is full (if there is no debt). A
/// debt beyond the end of time (438 years and more) counts as one that is never paid: then a try says
/// that there is no time to come back, and an acquire is refused with
/// [`DebtTooLarge`](crate::AcquireError::DebtTooLarge), or
/// [`WouldExceedDeadline`](crate::AcquireError::WouldExceedDeadline) if its wait was bounded. Nothing
/// panics. `ExceedsBurst` does not occur.
///
/// # Cancel safety
///
/// An [`Acquire`](crate::Acquire) that is dropped before it completed gives its stretch of the
/// schedule back. If nobody is booked behind it, it is as if it had never come; else the next
/// who would have to wait and fits into it takes it.
///
/// # Memory ordering
///
/// A permit is no lock: it orders nothing between the caller and whoever took another. The state is
/// one word of 128 bits. On x86-64 with `cmpxchg16b` (nearly every processor since 2006; it is found
/// out at run time) and on aarch64 it is lock-free: an operation retries only when another has got
/// on. Elsewhere the crate `portable-atomic` may use a lock for it.
///
/// # Examples
///
/// ```
/// use paceline::{Rate, smooth::SmoothBursty};
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = SmoothBursty::new(Rate::per_second(5));
/// assert_eq!(limiter.acquire_many(4).await?, Duration::ZERO);
/// assert_eq!(limiter.acquire_many(10).await?, Duration::from_millis(800));
/// assert_eq!(limiter.acquire().await?, Duration::from_secs(2));
/// # Ok(())
/// # }
/// ```
pub struct SmoothBursty {
    schedule: Schedule<Burst>,
    waiters: Waiters,
}

impl SmoothBursty {
    /// A limiter of `rate` that stores up to a second's worth of permits, and starts with none.
    #[must_use]
    pub fn new(rate: Rate) -> Self {
        Builder::new(rate).build_bursty()
    }

    /// A limiter of `rate` that stores what is minted in `max_burst` at most, and starts with none.
    /// Zero stores nothing; what is longer than 146 years counts as that.
    ///
    /// # Examples
    ///
    /// ```
    /// # use paceline::{Rate, smooth::SmoothBursty};
    /// # use std::time::Duration;
    /// let limiter = SmoothBursty::with_max_burst(Rate::per_second(5), Duration::from_secs(10));
    /// assert_eq!(limiter.rate(), Rate::per_second(5));
    /// ```
    #[must_use]
    pub fn with_max_burst(rate: Rate, max_burst: Duration) -> Self {
        Builder::new(rate).max_burst(max_burst).build_bursty()
    }

    pub(super) fn build(rate: Rate, burst: Burst, waiters: Waiters) -> Self {
        Self { schedule: Schedule::new(burst, rate), waiters }
    }
}

face!(SmoothBursty);
