//! [`Builder`]: what more can be said of a limiter by window than its limit and its window.

use super::log::{Log, SlidingLog};
use super::sliding::{Line, SlidingWindow};
use crate::error::BuildError;
use crate::queue::Queue;
use crate::time::{Clock, Timeline, nanos};
use crate::turns::Waiters;
use std::marker::PhantomData;
use std::time::Duration;

/// Builds a limiter by window, `L`.
///
/// # Examples
///
/// ```
/// use paceline::{BuildError, window::SlidingLog};
/// use std::time::Duration;
///
/// let limiter = SlidingLog::builder(100, Duration::from_secs(1)).max_limit(1000).build()?;
/// assert!(limiter.set_limit(1000).is_ok());
/// # Ok::<(), BuildError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder<L> {
    limit: u32,
    max_limit: Option<u32>,
    window: Duration,
    segments: u32,
    max_wait: Option<Duration>,
    max_waiters: Option<u32>,
    clock: Clock,
    limiter: PhantomData<fn() -> L>,
}

impl<L> Builder<L> {
    pub(super) fn new(limit: u32, window: Duration, segments: u32) -> Self {
        Self {
            limit,
            max_limit: None,
            window,
            segments,
            max_wait: None,
            max_waiters: None,
            clock: Clock::Tokio,
            limiter: PhantomData,
        }
    }

    /// The largest limit that it can be set to later. Unless set, it is the one to start with for a
    /// [`SlidingLog`], whose memory goes by it, and `u32::MAX` for a [`SlidingWindow`].
    pub fn max_limit(self, max_limit: u32) -> Self {
        Self { max_limit: Some(max_limit), ..self }
    }

    /// The longest that an `acquire` may wait. One whose turn comes later is refused at once with
    /// [`AcquireError::WouldExceedDeadline`](crate::AcquireError::WouldExceedDeadline). No limit
    /// unless set.
    pub fn max_wait(self, max_wait: Duration) -> Self {
        Self { max_wait: Some(max_wait), ..self }
    }

    /// How many may wait in `acquire` at once. One more is refused at once with
    /// [`AcquireError::QueueFull`](crate::AcquireError::QueueFull), unless it need not wait. No
    /// limit unless set; zero lets nobody wait.
    pub fn max_waiters(self, max_waiters: u32) -> Self {
        Self { max_waiters: Some(max_waiters), ..self }
    }

    /// The clock that it goes by; Tokio's unless set. See [`Clock`].
    pub fn clock(self, clock: impl Into<Clock>) -> Self {
        Self { clock: clock.into(), ..self }
    }

    fn checked_max_limit(&self, usual: u32) -> Result<u32, BuildError> {
        let max = self.max_limit.unwrap_or(usual);
        if self.limit > max {
            return Err(BuildError::BurstExceedsMax { burst: self.limit, max });
        }
        Ok(max)
    }

    fn waiters(self) -> Waiters {
        let queue = Queue::new(self.max_waiters.unwrap_or(Queue::UNBOUNDED));
        let max_wait = self.max_wait.map_or(u64::MAX, nanos);
        Waiters::new(Timeline::new(&self.clock, Duration::ZERO), max_wait, queue, None)
    }
}

impl Builder<SlidingLog> {
    /// Builds it.
    ///
    /// # Errors
    ///
    /// [`BuildError::BurstExceedsMax`] if the limit is beyond its own `max_limit`.
    pub fn build(self) -> Result<SlidingLog, BuildError> {
        let log = Log::new(self.limit, self.checked_max_limit(self.limit)?, nanos(self.window));
        Ok(SlidingLog::build(log, self.waiters()))
    }
}

impl Builder<SlidingWindow> {
    /// Builds it.
    ///
    /// # Errors
    ///
    /// [`BuildError::BurstExceedsMax`] if the limit is beyond its own `max_limit`.
    pub fn build(self) -> Result<SlidingWindow, BuildError> {
        let max_limit = self.checked_max_limit(u32::MAX)?;
        let line = Line::new(self.limit, max_limit, nanos(self.window), self.segments);
        Ok(SlidingWindow::build(line, self.waiters()))
    }
}
