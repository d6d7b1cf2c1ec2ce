//! Why a limiter on a server served nobody.

use crate::breaker::BreakerOpen;
use crate::error::{BuildError, RangeError, TryAcquireError};
use std::fmt::{self, Display, Formatter};
use std::time::Duration;

/// Why a call got nothing: the limit refused it, or nobody knows because the call failed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error<R> {
    /// The limit was asked, and refused.
    Refused(R),
    /// The limit could not be asked, or its answer was lost.
    Failed(Failure),
}

/// Why a limit could not be asked.
///
/// What a call that failed had booked, if its answer comes later, is given back. If the answer is
/// lost, so are the permits: they stay spent, and nothing is used twice.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// There was no answer in time.
    Timeout {
        /// How long it was waited for: see [`Builder::timeout`](super::Builder::timeout).
        limit: Duration,
    },
    /// The server could not be reached, or the connection broke.
    Unreachable {
        /// What the client says.
        reason: String,
    },
    /// The server refused to run the script: it has no memory, say, or is a replica.
    Server {
        /// The code of the error, such as `OOM`.
        code: String,
        /// What the server says.
        reason: String,
    },
    /// The server has failed before, and is not asked for a while:
    /// see [`Builder::breaker`](super::Builder::breaker).
    Open(BreakerOpen),
    /// The answer is none that the script gives: something else is stored under the name.
    Answer,
}

impl<R> Error<R> {
    /// The refusal, if it was one.
    pub fn refusal(&self) -> Option<&R> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::Failed(_) => None,
        }
    }
}

impl Error<TryAcquireError> {
    /// How long to wait before the same request succeeds, if nobody else takes anything
    /// meanwhile, from when the server answered: right to the microsecond. `None` if it never
    /// will, or if nobody knows.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.refusal()?.retry_after()
    }
}

impl<R> From<Failure> for Error<R> {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<BuildError> for Error<BuildError> {
    fn from(error: BuildError) -> Self {
        Self::Refused(error)
    }
}

impl From<RangeError> for Error<RangeError> {
    fn from(error: RangeError) -> Self {
        Self::Refused(error)
    }
}

impl From<::redis::RedisError> for Failure {
    fn from(error: ::redis::RedisError) -> Self {
        match error.code() {
            Some(code) => {
                let reason = error.detail().unwrap_or_default().to_owned();
                Self::Server { code: code.to_owned(), reason }
            }
            None => Self::Unreachable { reason: error.to_string() },
        }
    }
}

impl<R: Display> Display for Error<R> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Failed(failure) => failure.fmt(f),
        }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout { limit } => write!(f, "the server did not answer within {limit:?}"),
            Self::Unreachable { reason } => write!(f, "the server is out of reach: {reason}"),
            Self::Server { code, reason } => write!(f, "the server refused: {code} {reason}"),
            Self::Open(open) => write!(f, "the server is not asked: {open}"),
            Self::Answer => f.write_str("the server's answer is none of a limiter's"),
        }
    }
}

impl<R: std::error::Error> std::error::Error for Error<R> {}
impl std::error::Error for Failure {}
