//! [`Aimd`]: additive increase, multiplicative decrease.

use super::error::AdaptiveError;
use super::level::ONE;
use crate::time::nanos;
use std::time::Duration;

/// Additive increase, multiplicative decrease: what TCP does with its window.
///
/// * The limit grows by one for as many successes as it allows at a time, while at least half of it is
///   in use.
/// * It falls to a part of itself, 75 % unless set, when a call failed or took longer than it may. Only
///   calls that began after the last decrease count, so a queue that is there already is paid for
///   once.
///
/// # When to choose it
///
/// Where you know how long a call may take, or where the service fails when it is asked too much. It
/// settles where the latency is at the bound. For a service whose latency nobody knows, take
/// [`Gradient`](super::Gradient).
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Aimd {
    latency: Option<Duration>,
    percent: u32,
}

impl Aimd {
    /// Failures decrease to 75 %, and no latency is too long.
    pub fn new() -> Self {
        Self { latency: None, percent: 75 }
    }

    /// A call that takes longer than `latency` counts as failed.
    pub fn latency(self, latency: Duration) -> Self {
        Self { latency: Some(latency), ..self }
    }

    /// How much is left after a decrease, in per cent: 1 to 99. Less reacts faster and swings wider.
    pub fn decrease_to(self, percent: u32) -> Self {
        Self { percent, ..self }
    }

    pub(crate) fn checked(self) -> Result<Self, AdaptiveError> {
        if !(1..100).contains(&self.percent) {
            return Err(AdaptiveError::DecreaseOutOfRange { percent: self.percent });
        }
        match self.latency {
            Some(latency) if !(1..u64::MAX).contains(&nanos(latency)) => {
                Err(AdaptiveError::LatencyOutOfRange { latency })
            }
            _ => Ok(self),
        }
    }

    pub(crate) fn is_too_long(&self, latency: u64) -> bool {
        self.latency.is_some_and(|bound| latency > nanos(bound))
    }

    /// What a success makes of a limit: one more for each limit's worth of them.
    pub(crate) fn grown(limit: u64) -> u64 {
        limit + ONE * ONE / limit
    }

    pub(crate) fn cut(&self, limit: u64) -> u64 {
        limit * u64::from(self.percent) / 100
    }
}

impl Default for Aimd {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(paceline_loom)))]
mod tests {
    use super::*;
    use crate::adaptive::level::MOST;

    #[test]
    fn a_limits_worth_of_successes_is_one_more() {
        let grown = (0..10).fold(10 * ONE, |limit, _| Aimd::grown(limit));
        assert!((10 * ONE + ONE * 9 / 10..11 * ONE).contains(&grown), "{grown}");
        let most = u64::from(MOST) * ONE;
        assert!(Aimd::grown(most) > most, "the largest grows too");
    }
}
