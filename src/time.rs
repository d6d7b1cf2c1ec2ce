//! Where "now" comes from: Tokio's clock, as nanoseconds since the limiter was made.

use std::time::Duration;
use tokio::time::Instant;

/// The beginning of a limiter's time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeline(Instant);

impl Timeline {
    pub(crate) fn new() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn now(self) -> u64 {
        self.nanos(Instant::now())
    }

    pub(crate) fn beginning(self) -> Instant {
        self.0
    }

    /// Nanoseconds to `instant`. What lies before the beginning counts as the beginning, what
    /// lies beyond 584 years as that.
    #[inline]
    pub(crate) fn nanos(self, instant: Instant) -> u64 {
        nanos(instant.saturating_duration_since(self.0))
    }

    /// The instant `nanos` after the beginning, if the platform can tell it.
    pub(crate) fn instant(self, nanos: u64) -> Option<Instant> {
        self.0.checked_add(Duration::from_nanos(nanos))
    }
}

/// Whole nanoseconds, at most `u64::MAX`. Cheaper than by way of the 128 bits of `as_nanos`.
#[inline]
pub(crate) fn nanos(duration: Duration) -> u64 {
    let seconds = duration.as_secs().checked_mul(1_000_000_000);
    seconds.and_then(|s| s.checked_add(u64::from(duration.subsec_nanos()))).unwrap_or(u64::MAX)
}
