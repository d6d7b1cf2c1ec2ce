//! Why a request was not let through.

use crate::error::{AcquireError, TryAcquireError};
use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::time::Duration;

/// Why a request was not let through to the service.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Refused {
    /// There was no permit, and it was not to wait for one.
    Try(TryAcquireError),
    /// It was to wait for a permit, and does not get it.
    Acquire(AcquireError),
    /// It has no key, and so nobody knows which limit is its own.
    NoKey,
}

impl Refused {
    /// How long to wait before the same request is let through or may wait for its turn, if nobody
    /// else takes anything meanwhile. `None` if it never is, or if nobody can tell.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Try(refusal) => refusal.retry_after(),
            Self::Acquire(AcquireError::WouldExceedDeadline {
                wait: Some(wait), limit, ..
            }) => Some(wait.saturating_sub(*limit)),
            Self::Acquire(_) | Self::NoKey => None,
        }
    }

    /// Whether the limiter is closed: no request is let through any more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Try(TryAcquireError::Closed) | Self::Acquire(AcquireError::Closed))
    }
}

impl From<TryAcquireError> for Refused {
    fn from(refusal: TryAcquireError) -> Self {
        Self::Try(refusal)
    }
}

impl From<AcquireError> for Refused {
    fn from(refusal: AcquireError) -> Self {
        Self::Acquire(refusal)
    }
}

impl Display for Refused {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Try(refusal) => refusal.fmt(f),
            Self::Acquire(refusal) => refusal.fmt(f),
            Self::NoKey => f.write_str("the request has no key to be limited by"),
        }
    }
}

impl Error for Refused {}
