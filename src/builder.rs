//! [`Builder`]: what more can be said of a limiter than its rate and burst.

use crate::error::BuildError;
use crate::limiter::Limiter;
use crate::line::{Bounds, Line};
use crate::queue::Queue;
use crate::rate::Rate;
use crate::time::nanos;
use std::time::Duration;

/// Builds a [`Limiter`]: what [`Limiter::builder`] returns.
///
/// # Examples
///
/// ```
/// use paceline::{BuildError, Limiter, Rate};
///
/// let limiter = Limiter::builder(Rate::per_minute(30))
///     .burst(5)
///     .initial(0)
///     .max_rate(Rate::per_second(100))
///     .build()?;
/// assert_eq!(limiter.burst(), 5);
/// # Ok::<(), BuildError>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder {
    rate: Rate,
    burst: u32,
    initial: Option<u32>,
    max_rate: Option<Rate>,
    max_burst: Option<u32>,
    max_wait: Option<Duration>,
    max_waiters: Option<u32>,
    slack: Duration,
}

/// How much lateness is forgiven unless something else is said: several times what Tokio's timer
/// is late by as a rule.
pub(crate) const USUAL_SLACK: Duration = Duration::from_millis(5);

impl Builder {
    pub(crate) fn new(rate: Rate) -> Self {
        Self {
            rate,
            burst: 1,
            initial: None,
            max_rate: None,
            max_burst: None,
            max_wait: None,
            max_waiters: None,
            slack: USUAL_SLACK,
        }
    }

    /// How many permits are kept at most; 1 unless set.
    pub fn burst(self, burst: u32) -> Self {
        Self { burst, ..self }
    }

    /// How many permits there are to start with; as many as the burst unless set.
    pub fn initial(self, initial: u32) -> Self {
        Self { initial: Some(initial), ..self }
    }

    /// The fastest rate that the limiter can be set to later. [`Rate::UNLIMITED`] stands for the
    /// fastest that there is, 10<sup>12</sup> per second.
    ///
    /// Unless set, it is 10<sup>7</sup> per second; 50 000 per second for a limiter that starts
    /// slower than once a minute; or the rate to start with, if that is faster. The larger it is,
    /// the coarser are the grains in which tokens are counted, and the less can be booked ahead.
    pub fn max_rate(self, max_rate: Rate) -> Self {
        Self { max_rate: Some(max_rate), ..self }
    }

    /// The largest burst that the limiter can be set to later.
    ///
    /// Unless set, it is 10<sup>7</sup>; 10 000 for a limiter that starts slower than once a
    /// minute; or the burst to start with, if that is larger. As for
    /// [`max_rate`](Self::max_rate), larger is coarser.
    pub fn max_burst(self, max_burst: u32) -> Self {
        Self { max_burst: Some(max_burst), ..self }
    }

    /// The longest that an `acquire` may wait. One whose turn comes later is refused at once with
    /// [`AcquireError::WouldExceedDeadline`](crate::AcquireError::WouldExceedDeadline), and so is
    /// one who waits already and whose turn is moved beyond it. No limit unless set.
    pub fn max_wait(self, max_wait: Duration) -> Self {
        Self { max_wait: Some(max_wait), ..self }
    }

    /// How many may wait in `acquire` at once. One more is refused at once with
    /// [`AcquireError::QueueFull`](crate::AcquireError::QueueFull), unless it need not wait. Who
    /// gives up frees its place at once. No limit unless set; zero lets nobody wait.
    pub fn max_waiters(self, max_waiters: u32) -> Self {
        Self { max_waiters: Some(max_waiters), ..self }
    }

    /// How much lateness of those who wait in `acquire` is forgiven; 5 ms unless set, and zero is
    /// strict.
    ///
    /// Tokio's timer works in whole milliseconds, and wakes a task a millisecond or more after its
    /// turn. Without slack, what is minted meanwhile beyond the burst is lost: a task that loops
    /// with a burst of 1 then reaches 0.89 of 100/s, 0.47 of 1000/s and 0.08 of 10 000/s. With it,
    /// what was minted while somebody overslept is used by those who acquire next.
    ///
    /// With slack, those who `acquire` use at most `burst + rate * (w + slack)` permits in a
    /// window of length `w`, instead of `burst + rate * w`. Lateness alone is forgiven: a limiter
    /// that is idle gathers nothing beyond its burst. Those who try or reserve are always judged
    /// strictly.
    pub fn slack(self, slack: Duration) -> Self {
        Self { slack, ..self }
    }

    /// Builds it.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if it would start with more permits than it keeps, or beyond its own
    /// `max_rate` or `max_burst`.
    pub fn build(self) -> Result<Limiter, BuildError> {
        let Self { rate, burst, initial, max_rate, max_burst, max_wait, max_waiters, slack } = self;
        let initial = initial.unwrap_or(burst);
        if initial > burst {
            return Err(BuildError::InitialExceedsBurst { initial, burst });
        }
        if let Some(max) = max_rate.filter(|max| rate.exceeds(*max) && !rate.is_unlimited()) {
            return Err(BuildError::RateExceedsMax { rate, max });
        }
        if let Some(max) = max_burst.filter(|max| burst > *max) {
            return Err(BuildError::BurstExceedsMax { burst, max });
        }
        let usual = Bounds::usual(rate, burst);
        let bounds = Bounds {
            rate: max_rate
                .map_or(usual.rate, |max| if max.is_unlimited() { Rate::MAX } else { max }),
            burst: max_burst.unwrap_or(usual.burst),
        };
        let line = Line::new(rate, burst, initial, bounds, nanos(slack));
        let max_wait = max_wait.map_or(u64::MAX, nanos);
        let queue = Queue::new(max_waiters.unwrap_or(Queue::UNBOUNDED));
        Ok(Limiter::build(line, max_wait, queue))
    }
}
