//! [`Builder`]: what more can be said of a limiter than its rate and burst.

use crate::error::BuildError;
use crate::limiter::Limiter;
use crate::line::{Bounds, Line, Settings};
use crate::queue::Queue;
use crate::rate::Rate;
use crate::refill::{Periods, Refill};
use crate::striped::{Pool, Striped};
use crate::time::{Clock, Timeline, nanos};
use crate::turns::Waiters;
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
#[derive(Clone, Debug)]
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
    clock: Clock,
    precise: Option<Duration>,
    periods: Periods,
    has_windows: bool,
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
            clock: Clock::Tokio,
            precise: None,
            periods: Periods::None,
            has_windows: false,
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

    /// The clock that it goes by; Tokio's unless set. See [`Clock`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use paceline::{BuildError, Clock, Limiter, Rate};
    /// let limiter = Limiter::builder(Rate::per_second(100)).clock(Clock::Tokio).build()?;
    /// # Ok::<(), BuildError>(())
    /// ```
    pub fn clock(self, clock: impl Into<Clock>) -> Self {
        Self { clock: clock.into(), ..self }
    }

    /// How permits come in; evenly unless set. See [`Refill`].
    pub fn refill(self, refill: Refill) -> Self {
        self.periods(refill.into())
    }

    /// Keeps the permits of each period apart from those of the next: see [`FixedWindow`].
    ///
    /// [`FixedWindow`]: crate::window::FixedWindow
    pub(crate) fn windows(self) -> Self {
        Self { has_windows: true, ..self }
    }

    pub(crate) fn periods(self, periods: Periods) -> Self {
        Self { periods, ..self }
    }

    /// Lets those who wait come to their turns as exactly as the runtime can: the timer wakes them
    /// `margin` before, and from then on they yield to other tasks and look again each time
    /// they are polled. For who paces packets or frames.
    ///
    /// Tokio's timer wakes a task up to two milliseconds late, now and then more, so a margin of 2 ms
    /// spares nearly all of that. It costs a processor core, of which other tasks of the runtime may
    /// have all they want, for as long as anybody waits within the margin: at 100/s and 2 ms that was
    /// a tenth of a core (the timer takes part of the margin), and at 1000/s a whole one. A
    /// task that keeps its thread busy makes those late who wait on the same thread.
    ///
    /// In tests with paused time it makes no difference. Not set, the timer does all of it.
    pub fn precise(self, margin: Duration) -> Self {
        Self { precise: Some(margin), ..self }
    }

    /// Builds it.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if it would start with more permits than it keeps, or beyond its own
    /// `max_rate` or `max_burst`.
    pub fn build(self) -> Result<Limiter, BuildError> {
        let initial = self.checked_initial()?;
        let usual = Bounds::usual(self.rate, self.burst);
        let bounds = Bounds {
            rate: self
                .max_rate
                .map_or(usual.rate, |max| if max.is_unlimited() { Rate::MAX } else { max }),
            burst: self.max_burst.unwrap_or(usual.burst),
        };
        let waiters = self.waiters();
        let line = Line::new(Settings {
            rate: self.rate,
            minting: self.periods.minting(&waiters.time),
            has_windows: self.has_windows,
            burst: self.burst,
            initial,
            bounds,
            slack: nanos(self.slack),
            now: waiters.time.now(),
        });
        Ok(Limiter::build(line, waiters))
    }

    /// Builds a [`Striped`] limiter of so many stripes (or the next power of two) that hold up to
    /// `batch` permits each. Of the permits to start with, the line has its part first.
    ///
    /// With a batch of 128 a grant costs little more than a compare-and-swap: see the bench tables.
    ///
    /// # Errors
    ///
    /// [`BuildError::StripesOutOfRange`] unless there are 1 to 1024 stripes of 1 to 4095;
    /// [`BuildError::BurstTooSmall`] if the burst leaves less than a batch beside the stripes; and as
    /// for [`build`](Self::build).
    ///
    /// # Examples
    ///
    /// ```
    /// # use paceline::{BuildError, Limiter, Rate};
    /// let limiter = Limiter::builder(Rate::per_second(1_000_000)).burst(1_000).build_striped(8, 32)?;
    /// assert_eq!(limiter.largest_request(), 1_000 - 8 * 32);
    /// # Ok::<(), BuildError>(())
    /// ```
    pub fn build_striped(self, stripes: u32, batch: u32) -> Result<Striped, BuildError> {
        let initial = self.checked_initial()?;
        let pool =
            Pool::empty(stripes, batch).ok_or(BuildError::StripesOutOfRange { stripes, batch })?;
        let (held, least) = (pool.capacity(), pool.least_burst());
        if self.burst < least {
            return Err(BuildError::BurstTooSmall { burst: self.burst, least });
        }
        let burst = self.burst - held;
        let max_burst = self.max_burst.map(|max| max - held);
        let line = Self { burst, max_burst, initial: Some(initial.min(burst)), ..self }.build()?;
        Ok(Striped::build(line, pool, initial.saturating_sub(burst)))
    }

    /// How many permits to start with, if all that is said holds together.
    fn checked_initial(&self) -> Result<u32, BuildError> {
        let Self { rate, burst, initial, max_rate, max_burst, .. } = *self;
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
        Ok(initial)
    }

    fn waiters(&self) -> Waiters {
        let queue = Queue::new(self.max_waiters.unwrap_or(Queue::UNBOUNDED));
        let max_wait = self.max_wait.map_or(u64::MAX, nanos);
        let time = Timeline::new(&self.clock, self.periods.lead(self.rate));
        Waiters::new(time, max_wait, queue, self.precise.map(nanos))
    }
}
