//! [`AdaptiveRate`]: as often as the service lets it.

use super::call::Call;
use super::error::AdaptiveError;
use super::pace::{FASTEST, Milli, Pace, Terms, milli, rate};
use crate::error::{AcquireError, TryAcquireError};
use crate::limiter::Limiter;
use crate::rate::Rate;
use crate::time::nanos;
use crate::turns::Turns;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A [`Limiter`] whose rate follows what callers report: it grows while nobody is refused, and falls
/// when somebody is.
///
/// * In each *round*, 250 ms unless set, in which nobody was refused, the first success makes it grow:
///   by 1, 4, 9, 16, … times the [increase](AdaptiveRateBuilder::increase). After a refusal it begins
///   the other way round, so that it is soon near where it was refused, goes slowly past it, and is soon
///   far beyond if that is not the end any more: the curve of TCP CUBIC. It does not grow while at
///   least half of the burst is there to be had: then callers do not use what they may.
/// * A refusal takes off what the last round had added, and a tenth. While rounds go on being
///   troubled, with no growth between them, the second takes off a tenth, the third a fifth, the fourth two fifths, and each from then on half.
///   That happens at most once a round, and only calls that began after the last decrease count.
/// * A refusal that says when to come back pauses the limiter until then, for everybody.
///
/// Rates are kept in permits per 1000 seconds: one to 10<sup>12</sup> of them.
///
/// Clones share the rate. The decision about a report is lock-free; where it changes the rate, which is
/// once or twice a round, the limiter's setters exclude each other and all who wait are woken.
///
/// # When to choose it
///
/// For a service that refuses what is too much and does not say how much that is, or changes it. If it
/// gets slower instead, take [`AdaptiveConcurrency`](super::AdaptiveConcurrency).
///
/// To find out what is allowed it must now and then be refused: a few in a thousand calls. Set
/// [`max`](AdaptiveRateBuilder::max) to what was promised, if anything was. Where the service says when to
/// come back in whole seconds, each time costs such a pause.
///
/// # With other limits
///
/// [`limiter`](Self::limiter) takes part in [`All`](crate::All), and has the verbs that are not here;
/// [`call`](Self::call) begins the call once it is let through.
///
/// # Examples
///
/// ```
/// use paceline::Rate;
/// use paceline::adaptive::AdaptiveRate;
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let rate = AdaptiveRate::builder(Rate::per_second(100)).max(Rate::per_second(1000)).build()?;
///
/// rate.acquire().await?.succeeded();
///
/// // HTTP's 429 with `Retry-After: 2`.
/// rate.acquire().await?.overloaded(Some(Duration::from_secs(2)));
/// assert_eq!(rate.rate(), Rate::per_second(90));
/// assert!(rate.limiter().acquire().await? >= Duration::from_secs(2));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct AdaptiveRate {
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    pace: Pace,
    limiter: Limiter,
    max_pause: Duration,
}

impl AdaptiveRate {
    /// A rate that starts at `initial`.
    pub fn builder(initial: Rate) -> AdaptiveRateBuilder {
        AdaptiveRateBuilder {
            initial,
            min: None,
            max: None,
            increase: None,
            burst: 1,
            round: Duration::from_millis(250),
            max_pause: Duration::from_secs(600),
        }
    }

    /// Waits for a permit, and begins a call.
    ///
    /// # Errors
    ///
    /// [`AcquireError::Closed`].
    ///
    /// # Panics
    ///
    /// If it must wait outside of a Tokio runtime with its timer enabled, with Tokio's own message.
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time: its turn goes back, and nothing is reported.
    pub async fn acquire(&self) -> Result<Call, AcquireError> {
        self.shared.limiter.acquire().await?;
        Ok(self.call())
    }

    /// Takes a permit if there is one now, and begins a call.
    ///
    /// # Errors
    ///
    /// [`TryAcquireError::Limited`], which says when there will be one, or
    /// [`Closed`](TryAcquireError::Closed).
    pub fn try_acquire(&self) -> Result<Call, TryAcquireError> {
        self.shared.limiter.try_acquire()?;
        Ok(self.call())
    }

    /// Begins a call that has its permit already, from [`All`](crate::All) or of
    /// [`limiter`](Self::limiter).
    pub fn call(&self) -> Call {
        Call::new(Arc::clone(&self.shared))
    }

    /// The limiter itself, to take part in [`All`](crate::All), for its other verbs, to be asked, or to
    /// be closed. A rate that is set there holds until the next report that changes it.
    #[must_use]
    pub fn limiter(&self) -> &Limiter {
        &self.shared.limiter
    }

    /// The rate now.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.shared.limiter.rate()
    }
}

impl Shared {
    pub(super) fn now(&self) -> u64 {
        self.limiter.now()
    }

    pub(super) fn succeeded(&self, began: u64) {
        let now = self.now();
        let half = self.limiter.burst().div_ceil(2);
        let in_use = self.limiter.peek_at(half, now).is_err();
        if in_use && self.pace.succeeded(began, now) {
            self.govern();
        }
    }

    pub(super) fn overloaded(&self, began: u64, retry_after: Option<Duration>) {
        if let Some(pause) = retry_after {
            let now = Instant::now();
            self.limiter.pause_until_at(now + pause.min(self.max_pause), now);
        }
        if self.pace.refused(began, self.now()) {
            self.govern();
        }
    }

    fn govern(&self) {
        self.pace.govern(|rate| {
            // It is built for the largest.
            let _ = self.limiter.set_rate(rate);
        });
    }
}

impl fmt::Debug for AdaptiveRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.fmt(f)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdaptiveRate").field("limiter", &self.limiter).finish_non_exhaustive()
    }
}

/// Which every platform can add to an instant.
const TEN_YEARS: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// What more can be said of an [`AdaptiveRate`]: what [`AdaptiveRate::builder`] returns.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct AdaptiveRateBuilder {
    initial: Rate,
    min: Option<Rate>,
    max: Option<Rate>,
    increase: Option<Rate>,
    burst: u32,
    round: Duration,
    max_pause: Duration,
}

impl AdaptiveRateBuilder {
    /// The smallest rate: a hundredth of the first unless set. With less than one in a round, little is
    /// learned.
    pub fn min(self, min: Rate) -> Self {
        Self { min: Some(min), ..self }
    }

    /// The largest rate: a hundred times the first unless set.
    pub fn max(self, max: Rate) -> Self {
        Self { max: Some(max), ..self }
    }

    /// By how much it grows in the first calm round: 0.5 % of the first rate unless set. To grow by
    /// n increases takes some (3n)<sup>1/3</sup> rounds. Less is calmer and slower.
    pub fn increase(self, increase: Rate) -> Self {
        Self { increase: Some(increase), ..self }
    }

    /// How many permits are kept for when they are wanted: 1 unless set, and at least 1. More than the
    /// service's own lets a crowd through that is refused.
    pub fn burst(self, burst: u32) -> Self {
        Self { burst, ..self }
    }

    /// The time in which what a change does can be seen: 250 ms unless set. Several times what a
    /// call takes as a rule.
    pub fn round(self, round: Duration) -> Self {
        Self { round, ..self }
    }

    /// The longest pause that a service may ask for: 10 minutes unless set, and 10 years at most. If it
    /// asks for more, it gets this.
    pub fn max_pause(self, max_pause: Duration) -> Self {
        Self { max_pause: max_pause.min(TEN_YEARS), ..self }
    }

    /// Builds it.
    ///
    /// # Errors
    ///
    /// [`AdaptiveError`] for a value out of range, which it names.
    pub fn build(self) -> Result<AdaptiveRate, AdaptiveError> {
        let (terms, first) = self.terms()?;
        let limiter = Limiter::builder(rate(first)).burst(self.burst).max_rate(rate(terms.max));
        let Ok(limiter) = limiter.build() else { return Err(self.rates_out_of_range()) };
        let shared = Shared { pace: Pace::new(terms, first), limiter, max_pause: self.max_pause };
        Ok(AdaptiveRate { shared: Arc::new(shared) })
    }

    fn terms(&self) -> Result<(Terms, Milli), AdaptiveError> {
        let out_of_range = || self.rates_out_of_range();
        let first = milli(self.initial).ok_or_else(out_of_range)?;
        let given = |rate: Option<Rate>| rate.map(|rate| milli(rate).ok_or_else(out_of_range));
        let min = given(self.min).transpose()?.unwrap_or((first / 100).max(1));
        let max = given(self.max).transpose()?;
        let max = max.unwrap_or((first * 100).min(FASTEST));
        if !(min <= first && first <= max) {
            return Err(out_of_range());
        }
        let increase = match self.increase {
            Some(increase) => {
                milli(increase).ok_or(AdaptiveError::IncreaseOutOfRange { increase })?
            }
            None => (first / 200).max(1),
        };
        if self.burst == 0 {
            return Err(AdaptiveError::ZeroBurst);
        }
        let round = nanos(self.round);
        if !(1..u64::MAX).contains(&round) {
            return Err(AdaptiveError::RoundOutOfRange { round: self.round });
        }
        Ok((Terms { min, max, increase, round }, first))
    }

    fn rates_out_of_range(&self) -> AdaptiveError {
        let Self { initial, .. } = *self;
        let (min, max) = (self.min.unwrap_or(initial), self.max.unwrap_or(initial));
        AdaptiveError::RatesOutOfRange { min, initial, max }
    }
}
