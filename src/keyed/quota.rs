//! What a key may use: the limiter that each key has one like.

use super::table::When;
use crate::error::RangeError;
use crate::leaky::LeakyBucket;
use crate::limiter::Limiter;
use crate::rate::Rate;
use crate::window::FixedWindow;

/// What each key may use: a limiter that each has one like. It comes [from](From) any of those on the
/// [token line](crate#the-token-line): a [`Limiter`], a [`LeakyBucket`] or a [`FixedWindow`]
/// (whose windows begin at the same time for all keys). All that was set when that was built holds
/// for each key, but for what it holds to start with: a key that was not seen before is full.
///
/// # Examples
///
/// ```
/// use paceline::keyed::Quota;
/// use paceline::window::FixedWindow;
/// use paceline::{Keyed, Rate};
/// use std::time::Duration;
///
/// let hourly = FixedWindow::new(1_000, Duration::from_secs(3_600));
/// let keyed: Keyed<u64> = Keyed::like(hourly);
/// let simple = Quota::new(Rate::per_second(10), 20);
/// let keyed: Keyed<u64> = Keyed::like(simple);
/// ```
#[derive(Debug)]
pub struct Quota {
    limiter: Limiter,
    /// Whether its permits lie in windows, so that it can't be set to another rate or burst.
    is_window: bool,
}

impl Quota {
    /// A token bucket of `rate` that keeps up to `burst` permits.
    #[must_use]
    pub fn new(rate: Rate, burst: u32) -> Self {
        Limiter::new(rate, burst).into()
    }

    pub(super) fn limiter(&self) -> &Limiter {
        &self.limiter
    }

    /// The time by its clock.
    #[inline]
    pub(super) fn at(&self, when: When) -> u64 {
        when.by(&self.limiter)
    }

    /// Whether a key that comes at `now` has all that it may; not if that is more of late.
    pub(super) fn begins_full(&self, now: u64) -> bool {
        let line = self.limiter.line();
        line.is_full(now, line.base(now).position())
    }

    /// Gives the limiter of a key, which has settings of its own, those of the quota.
    pub(super) fn settle(&self, limiter: &Limiter) {
        // Both are within the bounds, which it has from its quota.
        let _ = limiter.set_rate(self.limiter.rate());
        let _ = limiter.set_burst(self.limiter.burst());
    }

    pub(super) fn allows_rate(&self, rate: Rate) -> Result<(), RangeError> {
        let present = self.limiter.rate();
        if self.is_window && rate != present {
            Err(RangeError::RateExceedsMax { rate, max: present })
        } else {
            self.limiter.allows_rate(rate)
        }
    }

    pub(super) fn allows_burst(&self, burst: u32) -> Result<(), RangeError> {
        let present = self.limiter.burst();
        if self.is_window && burst != present {
            Err(RangeError::BurstExceedsMax { burst, max: present })
        } else {
            self.limiter.allows_burst(burst)
        }
    }
}

impl From<Limiter> for Quota {
    fn from(limiter: Limiter) -> Self {
        Self { limiter: limiter.for_keys(), is_window: false }
    }
}

impl From<LeakyBucket> for Quota {
    fn from(bucket: LeakyBucket) -> Self {
        bucket.into_limiter().into()
    }
}

impl From<FixedWindow> for Quota {
    fn from(window: FixedWindow) -> Self {
        Self { is_window: true, ..window.into_limiter().into() }
    }
}

/// The quotas that there are: one, unless the builder was given more.
pub(super) struct Quotas(Box<[Quota]>);

impl Quotas {
    pub(super) fn new(first: Quota, others: Vec<Quota>) -> Self {
        Self(std::iter::once(first).chain(others).collect())
    }

    #[inline]
    pub(super) fn get(&self, index: u16) -> &Quota {
        &self.0[usize::from(index)]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Quota> {
        self.0.iter()
    }
}
