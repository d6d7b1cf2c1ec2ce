//! Why a limit that adapts was not built.

use crate::rate::Rate;
use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::time::Duration;

/// Why a limit that adapts was not built.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AdaptiveError {
    /// A concurrency limit must be 1 to 1 048 575, and the first lie between the smallest and largest.
    LimitsOutOfRange {
        /// The smallest limit.
        min: u32,
        /// The limit to start with.
        initial: u32,
        /// The largest limit.
        max: u32,
    },
    /// A rate must be one per 1000 s to 10<sup>9</sup> per second, and the first lie between the
    /// smallest and largest.
    RatesOutOfRange {
        /// The smallest rate.
        min: Rate,
        /// The rate to start with.
        initial: Rate,
        /// The largest rate.
        max: Rate,
    },
    /// An increase must be one per 1000 s to 10<sup>9</sup> per second.
    IncreaseOutOfRange {
        /// By how much the rate was to grow.
        increase: Rate,
    },
    /// There can't be a burst of none.
    ZeroBurst,
    /// A round must be 1 ns to 584 years.
    RoundOutOfRange {
        /// How long it was to be.
        round: Duration,
    },
    /// A decrease must leave 1 to 99 per cent.
    DecreaseOutOfRange {
        /// How much was to be left.
        percent: u32,
    },
    /// The bound of a latency must be 1 ns to 584 years.
    LatencyOutOfRange {
        /// The bound.
        latency: Duration,
    },
    /// A tolerance must be 100 to 1000 per cent.
    ToleranceOutOfRange {
        /// The tolerance.
        percent: u32,
    },
    /// A queue must be 1 to 1 048 575.
    QueueOutOfRange {
        /// How many are allowed to queue.
        queue: u32,
    },
}

impl Error for AdaptiveError {}

impl Display for AdaptiveError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::LimitsOutOfRange { min, initial, max } => write!(
                f,
                "the limits {min} (least), {initial} (first) and {max} (most) are not in this order \
                 from 1 to 1048575"
            ),
            Self::RatesOutOfRange { min, initial, max } => write!(
                f,
                "the rates {min} (least), {initial} (first) and {max} (most) are not in this order \
                 from 1/1000s to 1000000000/s"
            ),
            Self::IncreaseOutOfRange { increase } => {
                write!(f, "the increase of {increase} is not 1/1000s to 1000000000/s")
            }
            Self::ZeroBurst => write!(f, "the burst is 0, and nothing would ever pass"),
            Self::RoundOutOfRange { round } => {
                write!(f, "the round of {round:?} is not 1 ns to 584 years")
            }
            Self::DecreaseOutOfRange { percent } => {
                write!(f, "a decrease to {percent} % is not one to 1 to 99 %")
            }
            Self::LatencyOutOfRange { latency } => {
                write!(f, "the latency of {latency:?} is not 1 ns to 584 years")
            }
            Self::ToleranceOutOfRange { percent } => {
                write!(f, "the tolerance of {percent} % is not 100 to 1000 %")
            }
            Self::QueueOutOfRange { queue } => {
                write!(f, "the queue of {queue} is not 1 to 1048575")
            }
        }
    }
}
