//! What becomes of an item that is not let through.

use crate::error::AcquireError;
use std::error::Error;
use std::fmt::{self, Debug, Display, Formatter};

/// An item that the limiter refused, and why.
#[derive(Clone, PartialEq)]
pub struct Refused<T> {
    item: T,
    error: AcquireError,
}

impl<T> Refused<T> {
    pub(crate) fn new(item: T, error: AcquireError) -> Self {
        Self { item, error }
    }

    /// The item.
    pub fn into_item(self) -> T {
        self.item
    }

    /// The item.
    pub fn item(&self) -> &T {
        &self.item
    }

    /// Why it was refused.
    pub fn error(&self) -> &AcquireError {
        &self.error
    }
}

impl<T> Debug for Refused<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused").field("error", &self.error).finish_non_exhaustive()
    }
}

impl<T> Display for Refused<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("an item was refused by the rate limiter")
    }
}

impl<T> Error for Refused<T> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.error)
    }
}

/// Why a [`RateLimitedSink`](super::RateLimitedSink) did not pass an item on.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum SinkError<T, E> {
    /// The limiter refused it.
    Refused(Refused<T>),
    /// The sink behind it failed.
    Sink(E),
}

impl<T, E: Debug> Debug for SinkError<T, E> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refused) => f.debug_tuple("Refused").field(refused).finish(),
            Self::Sink(error) => f.debug_tuple("Sink").field(error).finish(),
        }
    }
}

impl<T, E: Display> Display for SinkError<T, E> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refused) => Display::fmt(refused, f),
            Self::Sink(error) => Display::fmt(error, f),
        }
    }
}

impl<T, E: Error + 'static> Error for SinkError<T, E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Refused(refused) => refused.source(),
            Self::Sink(error) => error.source(),
        }
    }
}
