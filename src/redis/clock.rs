//! Where "now" comes from, for the script.

use crate::time::since_epoch;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Whose clock tells the time of a limit: all who share one must say the same.
#[derive(Clone, Default)]
pub struct TimeSource(Source);

#[derive(Clone, Default)]
enum Source {
    #[default]
    Server,
    Client,
    By(Arc<dyn Fn() -> Duration + Send + Sync>),
}

/// How long a key is kept, in milliseconds, by whose time of its own nobody can tell when it is full.
const KEPT: u64 = 86_400_000;

impl TimeSource {
    /// The server's: the default. The clocks of the processes do not matter.
    #[must_use]
    pub fn server() -> Self {
        Self(Source::Server)
    }

    /// That of the process that calls, for servers whose scripts may not ask for the time.
    ///
    /// A process whose clock is ahead takes the permits of that time before the others, who
    /// then wait for as long; one whose clock is behind sees what was minted as of then. Nothing is
    /// minted twice.
    #[must_use]
    pub fn client() -> Self {
        Self(Source::Client)
    }

    /// What `now` says, as the time since the Unix epoch: for replays and simulations.
    ///
    /// A limit is kept on the server for a day then, since its time is none of the server's.
    #[must_use]
    pub fn from_fn(now: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self(Source::By(Arc::new(now)))
    }

    pub(super) fn is_server(&self) -> bool {
        matches!(self.0, Source::Server)
    }

    /// Microseconds since the epoch; zero for the server's.
    pub(super) fn micros(&self) -> u64 {
        let now = match &self.0 {
            Source::Server => return 0,
            Source::Client => since_epoch(),
            Source::By(now) => now(),
        };
        u64::try_from(now.as_micros()).unwrap_or(u64::MAX).max(1)
    }

    /// How long to keep a key at least, in milliseconds.
    pub(super) fn keeps(&self) -> u64 {
        match self.0 {
            Source::By(_) => KEPT,
            _ => 0,
        }
    }
}

impl fmt::Debug for TimeSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Source::Server => "TimeSource::server()",
            Source::Client => "TimeSource::client()",
            Source::By(_) => "TimeSource::from_fn(..)",
        })
    }
}
