//! Why a limiter was not built or not changed.

use crate::rate::Rate;
use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::time::Duration;

/// Why a limiter was not built.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// More permits to start with than the limiter holds.
    InitialExceedsBurst {
        /// How many to start with.
        initial: u32,
        /// How many it holds at most.
        burst: u32,
    },
    /// The rate to start with is above the largest that was asked for.
    RateExceedsMax {
        /// The rate to start with.
        rate: Rate,
        /// The largest that was asked for.
        max: Rate,
    },
    /// The burst to start with is above the largest that was asked for.
    BurstExceedsMax {
        /// The burst to start with.
        burst: u32,
        /// The largest that was asked for.
        max: u32,
    },
    /// The burst is too small to stripe.
    BurstTooSmall {
        /// The burst to start with.
        burst: u32,
        /// The smallest that leaves the line a batch beside what the stripes hold.
        least: u32,
    },
    /// There can't be so many permits in such a window.
    WindowOutOfRange {
        /// How many permits: up to 1000 per nanosecond.
        limit: u32,
        /// How long the window is: up to 584 years, and not zero.
        window: Duration,
    },
    /// More are to be let through without delay than there is room for.
    DelayExceedsCapacity {
        /// How many are to be let through without delay.
        delay: u32,
        /// How many there is room for.
        capacity: u32,
    },
    /// More quotas than there can be for the keys of a `Keyed`.
    TooManyQuotas {
        /// How many there would be: up to 65 536.
        quotas: usize,
    },
    /// Permits of a limit on a server can be leased by the server's time only.
    LeaseNeedsServerTime,
    /// There can't be so many stripes, or of so many permits.
    StripesOutOfRange {
        /// How many stripes: 1 to 1024.
        stripes: u32,
        /// How many permits each of them holds: 1 to 4095.
        batch: u32,
    },
}

/// Why a limiter was not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RangeError {
    /// The rate is above what the limiter was built for.
    RateExceedsMax {
        /// The rate that was asked for.
        rate: Rate,
        /// What the limiter was built for: see [`Builder::max_rate`](crate::Builder::max_rate).
        max: Rate,
    },
    /// The burst is above what the limiter was built for.
    BurstExceedsMax {
        /// The burst that was asked for.
        burst: u32,
        /// What the limiter was built for: see [`Builder::max_burst`](crate::Builder::max_burst).
        max: u32,
    },
    /// The burst is too small for the stripes of a [`Striped`](crate::Striped) limiter.
    BurstTooSmall {
        /// The burst that was asked for.
        burst: u32,
        /// The smallest that leaves the line a batch beside what the stripes hold.
        least: u32,
    },
}

impl Error for BuildError {}
impl Error for RangeError {}

impl Display for BuildError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::InitialExceedsBurst { initial, burst } => {
                write!(f, "{initial} initial permits exceed the burst of {burst}")
            }
            Self::RateExceedsMax { rate, max } => rate_exceeds_max(f, *rate, *max),
            Self::BurstExceedsMax { burst, max } => burst_exceeds_max(f, *burst, *max),
            Self::BurstTooSmall { burst, least } => burst_too_small(f, *burst, *least),
            Self::WindowOutOfRange { limit, window } => write!(
                f,
                "{limit} permits in {window:?} are not up to 1000 per nanosecond in 1 ns to 584 years"
            ),
            Self::DelayExceedsCapacity { delay, capacity } => {
                write!(f, "a delay after {delay} exceeds the capacity of {capacity}")
            }
            Self::TooManyQuotas { quotas } => {
                write!(f, "{quotas} quotas are more than the 65536 that there can be")
            }
            Self::LeaseNeedsServerTime => {
                f.write_str("permits are leased by the server's time, and another was asked for")
            }
            Self::StripesOutOfRange { stripes, batch } => write!(
                f,
                "{stripes} stripes of {batch} permits are not 1 to 1024 stripes of 1 to 4095"
            ),
        }
    }
}

impl Display for RangeError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::RateExceedsMax { rate, max } => rate_exceeds_max(f, *rate, *max),
            Self::BurstExceedsMax { burst, max } => burst_exceeds_max(f, *burst, *max),
            Self::BurstTooSmall { burst, least } => burst_too_small(f, *burst, *least),
        }
    }
}

fn rate_exceeds_max(f: &mut Formatter<'_>, rate: Rate, max: Rate) -> fmt::Result {
    write!(f, "the rate {rate} exceeds the largest of {max} that the limiter is built for")
}

fn burst_exceeds_max(f: &mut Formatter<'_>, burst: u32, max: u32) -> fmt::Result {
    write!(f, "the burst {burst} exceeds the largest of {max} that the limiter is built for")
}

fn burst_too_small(f: &mut Formatter<'_>, burst: u32, least: u32) -> fmt::Result {
    write!(f, "the burst {burst} is less than the {least} that the stripes need")
}
