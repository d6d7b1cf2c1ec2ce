//! [`FixedWindow`]: so many permits in each window, on the token line.

use crate::builder::Builder;
use crate::error::{BuildError, RangeError};
use crate::limiter::Limiter;
use crate::rate::Rate;
use crate::refill::Periods;
use crate::time::{Clock, nanos};
use crate::turns::Turns;
use crate::verbs::{turns_of_its_limiter, verbs};
use std::fmt;
use std::time::Duration;
use tokio::time::Instant;

/// At most `limit` permits in each window of time, one window after the other.
///
/// On the [token line](crate#the-token-line) it is a limiter that mints `limit` tokens at each
/// boundary and holds as many: what was not used of a window has overflowed when the next
/// one begins. Those who wait have their places in the windows to come, in their order, and each is
/// served out of a single window: what it leaves of the one before is for others.
///
/// # When to choose it
///
/// To do as an upstream does that counts per minute or per hour, or for a quota that people can
/// reckon with. It is not a limit on any window: **across a boundary up to `2 * limit` permits can be
/// used at once**, half of them just before it and half at it. A [`Limiter`] or
/// [`SlidingWindow`](crate::window::SlidingWindow) has no such burst.
///
/// A refusal says when the window ends, as far as that is when the permits are there.
///
/// For `acquire`, the [slack](Builder::slack) is forgiven: who waits for a window and wakes late uses its
/// permits up to 5 ms into the next one.
///
/// # Examples
///
/// ```
/// use paceline::window::FixedWindow;
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let limiter = FixedWindow::new(100, Duration::from_secs(60));
/// tokio::time::advance(Duration::from_secs(50)).await;
/// assert!(limiter.try_acquire_many(100).is_ok());
/// let refused = limiter.try_acquire().unwrap_err();
/// assert_eq!(refused.retry_after(), Some(Duration::from_secs(10)));
/// # }
/// ```
pub struct FixedWindow {
    limiter: Limiter,
    /// In nanoseconds.
    window: u64,
}

/// When the windows of a [`FixedWindow`] begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Align {
    /// When it is made.
    #[default]
    Construction,
    /// With the first request that is granted.
    FirstUse,
    /// At whole windows since the Unix epoch by the machine's clock: each full minute, hour or day of
    /// UTC for windows of these lengths. The clock is read when the limiter is made; that it is set
    /// later changes nothing.
    WallClock,
    /// At this instant, and at whole windows before and after it.
    At(Instant),
}

/// Builds a [`FixedWindow`]: what [`FixedWindow::builder`] returns.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct FixedWindowBuilder {
    limit: u32,
    window: Duration,
    max_limit: Option<u32>,
    builder: Builder,
}

impl FixedWindow {
    /// At most `limit` permits in each `window`, the first of which begins now.
    ///
    /// # Panics
    ///
    /// If the window is zero, or longer than 584 years, or the limit is more than 1000 per nanosecond.
    /// [`FixedWindowBuilder::build`] has an error for that.
    #[must_use]
    pub fn new(limit: u32, window: Duration) -> Self {
        Self::builder(limit, window).build().unwrap_or_else(|error| panic!("{error}"))
    }

    /// A limiter of which more is said than its limit and window.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::BuildError;
    /// use paceline::window::{Align, FixedWindow};
    /// use std::time::Duration;
    ///
    /// let hourly = FixedWindow::builder(1000, Duration::from_secs(3600))
    ///     .align(Align::WallClock)
    ///     .build()?;
    /// # Ok::<(), BuildError>(())
    /// ```
    pub fn builder(limit: u32, window: Duration) -> FixedWindowBuilder {
        let builder = Limiter::builder(rate(limit, nanos(window))).burst(limit);
        let builder = builder.periods(Periods::WhenMade).windows();
        FixedWindowBuilder { limit, window, max_limit: None, builder }
    }

    /// Lets `limit` permits pass in each window, this one included: what was used of it counts. One who
    /// waits for permits that would lie in two of the new windows is given others, behind those who
    /// wait.
    ///
    /// # Errors
    ///
    /// [`RangeError::BurstExceedsMax`], and nothing changes, beyond what it was built for:
    /// [`FixedWindowBuilder::max_limit`].
    pub fn set_limit(&self, limit: u32) -> Result<(), RangeError> {
        self.limiter.set_limit(limit, rate(limit, self.window), self.limiter.now())
    }

    /// As [`set_limit`](Self::set_limit), at the time `now`.
    ///
    /// # Errors
    ///
    /// As for [`set_limit`](Self::set_limit).
    pub fn set_limit_at(&self, limit: u32, now: Instant) -> Result<(), RangeError> {
        let now = self.waiters().time.nanos(now);
        self.limiter.set_limit(limit, rate(limit, self.window), now)
    }

    #[cfg(feature = "keyed")]
    pub(crate) fn into_limiter(self) -> Limiter {
        self.limiter
    }

    /// How many permits pass in a window.
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.limiter.burst()
    }

    /// How long a window is.
    #[must_use]
    pub fn window(&self) -> Duration {
        Duration::from_nanos(self.window)
    }

    /// How many permits can be had now.
    #[must_use]
    pub fn available(&self) -> u32 {
        whole(self.limiter.tokens())
    }

    /// As [`available`](Self::available), at the time `now`.
    #[must_use]
    pub fn available_at(&self, now: Instant) -> u32 {
        whole(self.limiter.tokens_at(now))
    }
}

#[cfg(feature = "io")]
impl FixedWindow {
    pub(crate) fn limiter(&self) -> &Limiter {
        &self.limiter
    }
}

verbs!(FixedWindow);
turns_of_its_limiter!(FixedWindow);

impl FixedWindowBuilder {
    /// When windows begin; when the limiter is made unless set.
    pub fn align(self, align: Align) -> Self {
        let periods = match align {
            Align::Construction => Periods::WhenMade,
            Align::FirstUse => Periods::WithUse,
            Align::WallClock => Periods::WallClock,
            Align::At(begin) => Periods::AlignedTo(begin),
        };
        Self { builder: self.builder.periods(periods), ..self }
    }

    /// The largest limit that it can be set to later; 10<sup>7</sup> unless set, 10 000 if it starts
    /// with less than one permit a minute, or the limit to start with if that is larger.
    pub fn max_limit(self, max_limit: u32) -> Self {
        Self { max_limit: Some(max_limit), ..self }
    }

    /// The longest that an `acquire` may wait. See [`Builder::max_wait`].
    pub fn max_wait(self, max_wait: Duration) -> Self {
        Self { builder: self.builder.max_wait(max_wait), ..self }
    }

    /// How many may wait at once. See [`Builder::max_waiters`].
    pub fn max_waiters(self, max_waiters: u32) -> Self {
        Self { builder: self.builder.max_waiters(max_waiters), ..self }
    }

    /// How much lateness of those who wait is forgiven. See [`Builder::slack`].
    pub fn slack(self, slack: Duration) -> Self {
        Self { builder: self.builder.slack(slack), ..self }
    }

    /// The clock that it goes by. See [`Clock`].
    pub fn clock(self, clock: impl Into<Clock>) -> Self {
        Self { builder: self.builder.clock(clock), ..self }
    }

    /// Builds it.
    ///
    /// # Errors
    ///
    /// [`BuildError::WindowOutOfRange`] if the window is zero or longer than 584 years, or the limit
    /// more than 1000 per nanosecond; [`BuildError::BurstExceedsMax`] if the limit is above
    /// `max_limit`.
    pub fn build(self) -> Result<FixedWindow, BuildError> {
        let Self { limit, window, max_limit, builder } = self;
        let most = window.as_nanos().saturating_mul(1_000);
        let length = u64::try_from(window.as_nanos()).ok().filter(|_| u128::from(limit) <= most);
        let Some(length) = length.filter(|length| *length > 0) else {
            return Err(BuildError::WindowOutOfRange { limit, window });
        };
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        // What a limiter of that rate can be set to, unless something else is said.
        let usual = Limiter::usual_max_burst(rate(limit, length), limit);
        let max_limit = max_limit.unwrap_or(usual).min(most);
        if limit > max_limit {
            return Err(BuildError::BurstExceedsMax { burst: limit, max: max_limit });
        }
        let builder = builder.max_burst(max_limit).max_rate(rate(max_limit, length));
        Ok(FixedWindow { limiter: builder.build()?, window: length })
    }
}

fn rate(limit: u32, window: u64) -> Rate {
    Rate { tokens: limit.into(), period: window }
}

/// Nothing while there is debt.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates as is meant"
)]
fn whole(tokens: f64) -> u32 {
    tokens as u32
}

impl fmt::Debug for FixedWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FixedWindow")
            .field("limit", &self.limit())
            .field("window", &self.window())
            .field("available", &self.available())
            .field("closed", &self.is_closed())
            .finish()
    }
}
