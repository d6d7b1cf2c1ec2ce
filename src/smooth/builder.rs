//! [`Builder`]: what more can be said of a smooth limiter than its rate.

use super::burst::Burst;
use super::bursty::SmoothBursty;
use super::warming_up::SmoothWarmingUp;
use super::warmup::Warmup;
use crate::queue::Queue;
use crate::rate::Rate;
use crate::time::{Clock, Timeline, nanos};
use crate::turns::Waiters;
use std::time::Duration;

/// Builds a [`SmoothBursty`] or a [`SmoothWarmingUp`].
///
/// # Examples
///
/// ```
/// use paceline::{Rate, smooth};
/// use std::time::Duration;
///
/// let limiter = smooth::Builder::new(Rate::per_second(5))
///     .max_wait(Duration::from_secs(1))
///     .max_waiters(100)
///     .build_bursty();
/// assert!(limiter.try_acquire().is_ok());
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build_bursty` or `build_warming_up`"]
pub struct Builder {
    rate: Rate,
    max_burst: Duration,
    cold_factor: f64,
    max_wait: Option<Duration>,
    max_waiters: Option<u32>,
    clock: Clock,
    precise: Option<Duration>,
}

impl Builder {
    /// For limiters of `rate`.
    pub fn new(rate: Rate) -> Self {
        Self {
            rate,
            max_burst: Duration::from_secs(1),
            cold_factor: 3.0,
            max_wait: None,
            max_waiters: None,
            clock: Clock::Tokio,
            precise: None,
        }
    }

    /// For how long a [`SmoothBursty`] stores what is minted; a second unless set. What is longer than
    /// 146 years counts as that.
    pub fn max_burst(self, max_burst: Duration) -> Self {
        Self { max_burst, ..self }
    }

    /// How much longer a permit of a [`SmoothWarmingUp`] takes when it is cold; 3 times as long unless
    /// set.
    ///
    /// # Panics
    ///
    /// Unless it is a number from 1 to 1000.
    #[track_caller]
    pub fn cold_factor(self, cold_factor: f64) -> Self {
        assert!(
            Warmup::FACTORS.contains(&cold_factor),
            "the cold factor {cold_factor} is not a number from 1 to 1000"
        );
        Self { cold_factor, ..self }
    }

    /// The longest that an `acquire` may wait. See
    /// [`Builder::max_wait`](crate::Builder::max_wait).
    pub fn max_wait(self, max_wait: Duration) -> Self {
        Self { max_wait: Some(max_wait), ..self }
    }

    /// How many may wait in `acquire` at once. See
    /// [`Builder::max_waiters`](crate::Builder::max_waiters).
    pub fn max_waiters(self, max_waiters: u32) -> Self {
        Self { max_waiters: Some(max_waiters), ..self }
    }

    /// The clock that it goes by; Tokio's unless set. See [`Clock`].
    pub fn clock(self, clock: impl Into<Clock>) -> Self {
        Self { clock: clock.into(), ..self }
    }

    /// Lets those who wait come to their turns as exactly as the runtime can. See
    /// [`Builder::precise`](crate::Builder::precise).
    pub fn precise(self, margin: Duration) -> Self {
        Self { precise: Some(margin), ..self }
    }

    /// Builds a [`SmoothBursty`].
    #[must_use]
    pub fn build_bursty(self) -> SmoothBursty {
        SmoothBursty::build(self.rate, Burst::new(nanos(self.max_burst)), self.waiters())
    }

    /// Builds a [`SmoothWarmingUp`] that warms up in `warmup`. What is longer than 146 years counts as
    /// that.
    #[must_use]
    pub fn build_warming_up(self, warmup: Duration) -> SmoothWarmingUp {
        let warmup = Warmup::new(nanos(warmup), self.cold_factor);
        SmoothWarmingUp::build(self.rate, warmup, self.waiters())
    }

    fn waiters(self) -> Waiters {
        let queue = Queue::new(self.max_waiters.unwrap_or(Queue::UNBOUNDED));
        let max_wait = self.max_wait.map_or(u64::MAX, nanos);
        let time = Timeline::new(&self.clock, Duration::ZERO);
        Waiters::new(time, max_wait, queue, self.precise.map(nanos))
    }
}
