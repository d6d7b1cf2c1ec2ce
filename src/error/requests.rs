//! Why a request for permits was turned away.

use crate::line::{Refusal, Turn};
use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::time::Duration;

/// Why `try_acquire` took nothing.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TryAcquireError {
    /// The permits are not there yet. [`Limited::retry_after`] says when they will be.
    Limited(Limited),
    /// More permits were asked for than the limiter ever holds.
    ExceedsBurst {
        /// How many permits were asked for.
        requested: u32,
        /// How many the limiter holds at most.
        burst: u32,
    },
    /// As many are at work as may be at a time.
    AtCapacity {
        /// How many more were to be let in.
        requested: u32,
        /// How many may be at work at a time: see [`Concurrency`](crate::Concurrency).
        limit: u32,
    },
    /// The limiter is closed.
    Closed,
}

impl TryAcquireError {
    /// Why a try for so many got nothing.
    #[cold]
    pub(crate) fn of(requested: u32, why: Refusal) -> Self {
        match why {
            Refusal::Late(turn) => Self::Limited(Limited::new(requested, turn)),
            Refusal::ExceedsBurst { burst } => Self::ExceedsBurst { requested, burst },
            Refusal::Closed => Self::Closed,
            Refusal::NoRoom | Refusal::QueueFull { .. } => {
                unreachable!("what can be had now has room")
            }
        }
    }

    #[cfg(feature = "keyed")]
    pub(crate) fn late(requested: u32, turn: crate::line::Turn) -> Self {
        Self::Limited(Limited::new(requested, turn))
    }

    /// How long to wait before the same request succeeds, if nobody else takes anything
    /// meanwhile: right to the nanosecond. `None` if it never will, or if nobody can tell, since it
    /// takes somebody who finishes.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Limited(limited) => limited.retry_after(),
            Self::ExceedsBurst { .. } | Self::AtCapacity { .. } | Self::Closed => None,
        }
    }
}

/// A request that came too early.
///
/// It keeps what it needs to say when the permits will be there and does the division only if
/// asked: most who are refused never ask.
#[derive(Clone, Debug, PartialEq)]
pub struct Limited {
    requested: u32,
    turn: Turn,
}

impl Limited {
    pub(crate) fn new(requested: u32, turn: Turn) -> Self {
        Self { requested, turn }
    }

    /// How many permits were asked for.
    #[must_use]
    pub fn requested(&self) -> u32 {
        self.requested
    }

    /// How long to wait before the same request succeeds, if nobody else takes anything
    /// meanwhile: right to the nanosecond. `None` if it never will.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.turn.wait().map(Duration::from_nanos)
    }
}

/// Why `acquire` got no permit. It holds nothing then.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AcquireError {
    /// Its turn comes later than it may wait.
    WouldExceedDeadline {
        /// How many permits were asked for.
        requested: u32,
        /// How long it would have to wait; `None` if its turn never comes.
        wait: Option<Duration>,
        /// How long it may wait. Zero if its deadline has passed.
        limit: Duration,
    },
    /// As many wait already as may.
    QueueFull {
        /// How many that is: see [`Builder::max_waiters`](crate::Builder::max_waiters).
        max_waiters: u32,
    },
    /// More permits were asked for than the limiter ever holds.
    ExceedsBurst {
        /// How many permits were asked for.
        requested: u32,
        /// How many the limiter holds at most.
        burst: u32,
    },
    /// So much is booked already that the line has no room for more.
    DebtTooLarge {
        /// How many permits were asked for.
        requested: u32,
    },
    /// The limiter is closed.
    Closed,
}

/// Why `reserve` booked nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReserveError {
    /// More permits were asked for than the limiter ever holds.
    ExceedsBurst {
        /// How many permits were asked for.
        requested: u32,
        /// How many the limiter holds at most.
        burst: u32,
    },
    /// So much is booked already that the line has no room for more.
    DebtTooLarge {
        /// How many permits were asked for.
        requested: u32,
    },
    /// More would be booked ahead than may wait: of a [`LeakyBucket`](crate::LeakyBucket) for each key.
    QueueFull {
        /// How many may wait.
        max_waiters: u32,
    },
    /// The limiter is closed.
    Closed,
}

impl Error for TryAcquireError {}
impl Error for AcquireError {}
impl Error for ReserveError {}

impl Display for TryAcquireError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limited(limited) => limited.fmt(f),
            Self::ExceedsBurst { requested, burst } => exceeds_burst(f, *requested, *burst),
            Self::AtCapacity { requested, limit } => {
                write!(f, "no room for {requested} more, of {limit} at a time")
            }
            Self::Closed => closed(f),
        }
    }
}

impl Display for Limited {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} permits are not there yet: ", self.requested)?;
        match self.retry_after() {
            Some(wait) => write!(f, "retry after {wait:?}"),
            None => f.write_str("none are being minted"),
        }
    }
}

impl Display for AcquireError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::WouldExceedDeadline { requested, wait: Some(wait), limit } => write!(
                f,
                "the turn of {requested} permits comes in {wait:?}, beyond the wait of {limit:?} that is allowed"
            ),
            Self::WouldExceedDeadline { requested, wait: None, limit } => write!(
                f,
                "the turn of {requested} permits never comes, beyond the wait of {limit:?} that is allowed"
            ),
            Self::QueueFull { max_waiters } => queue_full(f, *max_waiters),
            Self::ExceedsBurst { requested, burst } => exceeds_burst(f, *requested, *burst),
            Self::DebtTooLarge { requested } => debt_too_large(f, *requested),
            Self::Closed => closed(f),
        }
    }
}

impl Display for ReserveError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::ExceedsBurst { requested, burst } => exceeds_burst(f, *requested, *burst),
            Self::DebtTooLarge { requested } => debt_too_large(f, *requested),
            Self::QueueFull { max_waiters } => queue_full(f, *max_waiters),
            Self::Closed => closed(f),
        }
    }
}

fn queue_full(f: &mut Formatter<'_>, max_waiters: u32) -> fmt::Result {
    write!(f, "{max_waiters} wait already, and no more may")
}

fn exceeds_burst(f: &mut Formatter<'_>, requested: u32, burst: u32) -> fmt::Result {
    write!(f, "{requested} permits exceed the burst of {burst}")
}

fn debt_too_large(f: &mut Formatter<'_>, requested: u32) -> fmt::Result {
    write!(f, "{requested} permits more than are booked already do not fit on the line")
}

fn closed(f: &mut Formatter<'_>) -> fmt::Result {
    f.write_str("the limiter is closed")
}
