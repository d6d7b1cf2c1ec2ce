//! Why a limiter was not built or not changed.

use crate::rate::Rate;
use std::error::Error;
use std::fmt::{self, Display, Formatter};

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
        }
    }
}

impl Display for RangeError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::RateExceedsMax { rate, max } => rate_exceeds_max(f, *rate, *max),
            Self::BurstExceedsMax { burst, max } => burst_exceeds_max(f, *burst, *max),
        }
    }
}

fn rate_exceeds_max(f: &mut Formatter<'_>, rate: Rate, max: Rate) -> fmt::Result {
    write!(f, "the rate {rate} exceeds the largest of {max} that the limiter is built for")
}

fn burst_exceeds_max(f: &mut Formatter<'_>, burst: u32, max: u32) -> fmt::Result {
    write!(f, "the burst {burst} exceeds the largest of {max} that the limiter is built for")
}
