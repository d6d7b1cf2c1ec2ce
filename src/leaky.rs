//! [`LeakyBucket`]: a queue of bounded length that drains evenly, on the token line.

use crate::builder::Builder;
use crate::error::{BuildError, RangeError};
use crate::limiter::Limiter;
use crate::rate::Rate;
use crate::verbs::{turns_of_its_limiter, verbs};
use std::fmt;
use std::time::Duration;
use tokio::time::Instant;

/// A leaky bucket as a queue: requests leave it one after the other, evenly at `rate`, and one that
/// finds `capacity` of them waiting is refused.
///
/// On the [token line](crate#the-token-line) it is a limiter that keeps a single token, so that nothing
/// is gathered for a burst, and on which no more than `capacity` tokens may be booked ahead.
///
/// # When to choose it
///
/// When what is behind it wants an even stream, and a caller rather hears no than waits long. A
/// [`Limiter`] lets through at once what it has gathered, and its queue is as long as callers are patient.
///
/// As a meter (a bucket that says no instead of queueing), a leaky bucket is a token bucket:
/// take [`Limiter`].
///
/// # nginx
///
/// It is the queue of [`limit_req`](https://nginx.org/en/docs/http/ngx_http_limit_req_module.html):
///
/// | nginx | here |
/// |---|---|
/// | `rate=10r/s`, no burst | `LeakyBucket::new(rate, 0)` |
/// | `burst=20` | `LeakyBucket::new(rate, 20)` |
/// | `burst=20 delay=8` | `LeakyBucket::builder(rate, 20).delay(8)` |
/// | `burst=20 nodelay` | `LeakyBucket::builder(rate, 20).delay(20)` |
///
/// # Refusals
///
/// `acquire` is refused with [`AcquireError::QueueFull`](crate::AcquireError::QueueFull) if it would be
/// one more than may wait. `try_acquire` does not queue: it takes what can leave at once. A request for
/// more than can leave at once (1, and `delay` more) is refused as `ExceedsBurst`.
///
/// # Examples
///
/// ```
/// use paceline::{AcquireError, LeakyBucket, Rate};
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let bucket = LeakyBucket::new(Rate::per_second(10), 2);
/// let waits = tokio::join!(bucket.acquire(), bucket.acquire(), bucket.acquire(), bucket.acquire());
/// assert_eq!(waits.0, Ok(Duration::ZERO));
/// assert_eq!(waits.1, Ok(Duration::from_millis(100)));
/// assert_eq!(waits.2, Ok(Duration::from_millis(200)));
/// assert_eq!(waits.3, Err(AcquireError::QueueFull { max_waiters: 2 }));
/// # }
/// ```
pub struct LeakyBucket {
    limiter: Limiter,
}

/// Builds a [`LeakyBucket`]: what [`LeakyBucket::builder`] returns.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct LeakyBucketBuilder {
    capacity: u32,
    delay: u32,
    builder: Builder,
}

impl LeakyBucket {
    /// A queue for up to `capacity` requests that drains at `rate`, and is empty at first.
    ///
    /// # Examples
    ///
    /// ```
    /// # use paceline::{LeakyBucket, Rate};
    /// let bucket = LeakyBucket::new(Rate::per_second(10), 20);
    /// assert_eq!(bucket.capacity(), 20);
    /// ```
    #[must_use]
    pub fn new(rate: Rate, capacity: u32) -> Self {
        Self { limiter: Limiter::new(rate, 1).with_places(capacity) }
    }

    /// A queue of which more is said than its rate and capacity.
    pub fn builder(rate: Rate, capacity: u32) -> LeakyBucketBuilder {
        LeakyBucketBuilder { capacity, delay: 0, builder: Limiter::builder(rate) }
    }

    /// Drains at `rate` from now on; those who wait leave by the new rate.
    ///
    /// # Errors
    ///
    /// As for [`Limiter::set_rate`].
    pub fn set_rate(&self, rate: Rate) -> Result<(), RangeError> {
        self.limiter.set_rate(rate)
    }

    /// As [`set_rate`](Self::set_rate), at the time `now`.
    ///
    /// # Errors
    ///
    /// As for [`Limiter::set_rate`].
    pub fn set_rate_at(&self, rate: Rate, now: Instant) -> Result<(), RangeError> {
        self.limiter.set_rate_at(rate, now)
    }

    #[cfg(feature = "keyed")]
    pub(crate) fn into_limiter(self) -> Limiter {
        self.limiter
    }

    /// How fast it drains.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.limiter.rate()
    }

    /// How many requests beyond the first fit into it: those that wait, and those that were let through
    /// without delay and have not drained.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.limiter.line().places() + (self.limiter.burst() - 1)
    }

    /// How full it is now, in requests: 0 to `capacity + 1`.
    #[must_use]
    pub fn level(&self) -> f64 {
        f64::from(self.limiter.burst()) - self.limiter.tokens()
    }

    /// As [`level`](Self::level), at the time `now`.
    #[must_use]
    pub fn level_at(&self, now: Instant) -> f64 {
        f64::from(self.limiter.burst()) - self.limiter.tokens_at(now)
    }
}

verbs!(LeakyBucket);
turns_of_its_limiter!(LeakyBucket);

impl LeakyBucketBuilder {
    /// How many requests beyond the first are let through at once while the bucket has room for them;
    /// 0 unless set, and the capacity lets nobody wait (nginx's `nodelay`).
    pub fn delay(self, delay: u32) -> Self {
        Self { delay, ..self }
    }

    /// The fastest rate that it can be set to later. See [`Builder::max_rate`].
    pub fn max_rate(self, max_rate: Rate) -> Self {
        Self { builder: self.builder.max_rate(max_rate), ..self }
    }

    /// The longest that an `acquire` may wait. See [`Builder::max_wait`].
    pub fn max_wait(self, max_wait: Duration) -> Self {
        Self { builder: self.builder.max_wait(max_wait), ..self }
    }

    /// How much lateness of those who wait is forgiven. See [`Builder::slack`].
    pub fn slack(self, slack: Duration) -> Self {
        Self { builder: self.builder.slack(slack), ..self }
    }

    /// The clock that it goes by. See [`Clock`](crate::Clock).
    pub fn clock(self, clock: impl Into<crate::Clock>) -> Self {
        Self { builder: self.builder.clock(clock), ..self }
    }

    /// Builds it.
    ///
    /// # Errors
    ///
    /// [`BuildError::DelayExceedsCapacity`], and as for [`Builder::build`].
    pub fn build(self) -> Result<LeakyBucket, BuildError> {
        let Self { capacity, delay, builder } = self;
        let Some(places) = capacity.checked_sub(delay) else {
            return Err(BuildError::DelayExceedsCapacity { delay, capacity });
        };
        let limiter = builder.burst(delay.saturating_add(1)).build()?;
        Ok(LeakyBucket { limiter: limiter.with_places(places) })
    }
}

impl fmt::Debug for LeakyBucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeakyBucket")
            .field("rate", &self.rate())
            .field("capacity", &self.capacity())
            .field("level", &self.level())
            .field("closed", &self.is_closed())
            .finish()
    }
}
