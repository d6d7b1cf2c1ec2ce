//! Why there is no answer.

use crate::error::AcquireError;
use std::fmt::{self, Display, Formatter};

/// Why a [`PacedClient`](super::PacedClient) has no answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// It got no permit, and nothing was sent; or not again, after the server had asked to wait.
    Limited(AcquireError),
    /// It was not sent or not answered.
    Request(reqwest::Error),
}

impl From<AcquireError> for Error {
    fn from(error: AcquireError) -> Self {
        Self::Limited(error)
    }
}

impl From<reqwest::Error> for Error {
    fn from(error: reqwest::Error) -> Self {
        Self::Request(error)
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limited(error) => write!(f, "no permit for the host: {error}"),
            Self::Request(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Limited(error) => Some(error),
            Self::Request(error) => error.source(),
        }
    }
}
