//! Where "now" comes from: a limiter's clock, as nanoseconds since the limiter was made.

use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// The clock that a limiter goes by: [`Builder::clock`](crate::Builder::clock).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Clock {
    /// Tokio's, [`tokio::time::Instant::now`], which follows `tokio::time::pause` and `advance`.
    #[default]
    Tokio,
    /// One of [`quanta`]'s, which reads the processor's time stamp counter where that is reliable,
    /// in less than half the time. `quanta::Clock::new()` is the usual one; the first of a process
    /// is calibrated for up to 200 ms.
    ///
    /// * It may differ from the machine's clock by some 80 us per second, and so do all rates.
    /// * It may step back, by a little, from one processor to another. No step mints a token twice
    ///   or forgets one: it is as if the caller had come a little earlier.
    /// * Who waits sleeps by Tokio's timer for as long as the turn is off by this clock, and looks
    ///   again when it wakes. An [`Instant`] that is given or asked for is
    ///   as far from now by this clock as it is by Tokio's. (So each of these reads both clocks, and
    ///   replays are not exact to the nanosecond: those are for Tokio's clock.)
    /// * `tokio::time::pause` and `advance` do not move it. In a test with paused time, timers end
    ///   at once and the turn has not come, so who waits is busy until it has come in real
    ///   time. Take [`Clock::Tokio`] in such tests, or the clock of `quanta::Clock::mock()`, which moves
    ///   when it is told to.
    #[cfg(feature = "quanta")]
    Quanta(quanta::Clock),
}

#[cfg(feature = "quanta")]
impl From<quanta::Clock> for Clock {
    fn from(clock: quanta::Clock) -> Self {
        Self::Quanta(clock)
    }
}

/// A clock and the beginning of a limiter's time.
#[derive(Clone, Debug)]
pub(crate) enum Timeline {
    Tokio(Instant),
    #[cfg(feature = "quanta")]
    Quanta {
        clock: quanta::Clock,
        /// When it was made, as the clock counts, and the limiter's time of then in nanoseconds.
        made: u64,
        lead: u64,
    },
}

impl Default for Timeline {
    fn default() -> Self {
        Self::new(&Clock::Tokio, Duration::ZERO)
    }
}

impl Timeline {
    /// One that began `lead` ago; or begins now, where the platform can't tell when that was.
    pub(crate) fn new(clock: &Clock, lead: Duration) -> Self {
        match clock {
            Clock::Tokio => {
                let now = Instant::now();
                Self::Tokio(now.checked_sub(lead).unwrap_or(now))
            }
            #[cfg(feature = "quanta")]
            Clock::Quanta(clock) => {
                Self::Quanta { made: clock.raw(), lead: nanos(lead), clock: clock.clone() }
            }
        }
    }

    #[inline]
    pub(crate) fn now(&self) -> u64 {
        match self {
            Self::Tokio(_) => self.nanos(Instant::now()),
            // What lies before it was made, after a step back, counts as then.
            #[cfg(feature = "quanta")]
            Self::Quanta { clock, made, lead } => {
                lead.saturating_add(clock.delta_as_nanos(*made, clock.raw()))
            }
        }
    }

    /// Whether it does not move from `now` on, as Tokio's does in a test that pauses it.
    ///
    /// A clock that runs moves within a few readings, also where its steps are 100 ns or more.
    pub(crate) fn stands_still_at(&self, now: u64) -> bool {
        (0..100).all(|_| self.now() == now)
    }

    /// Nanoseconds to `instant`. What lies before the beginning counts as the beginning, what
    /// lies beyond 584 years as that.
    #[inline]
    pub(crate) fn nanos(&self, instant: Instant) -> u64 {
        match self {
            Self::Tokio(beginning) => nanos(instant.saturating_duration_since(*beginning)),
            #[cfg(feature = "quanta")]
            Self::Quanta { .. } => self.nanos_by_distance(instant),
        }
    }

    /// As far from now by this clock as `instant` is by Tokio's.
    #[cfg(feature = "quanta")]
    #[cold]
    fn nanos_by_distance(&self, instant: Instant) -> u64 {
        let (now, present) = (self.now(), Instant::now());
        let ahead = nanos(instant.saturating_duration_since(present));
        let behind = nanos(present.saturating_duration_since(instant));
        now.saturating_add(ahead).saturating_sub(behind)
    }

    /// The instant `nanos` after the beginning, if the platform can tell it.
    pub(crate) fn instant(&self, nanos: u64) -> Option<Instant> {
        match self {
            Self::Tokio(beginning) => beginning.checked_add(Duration::from_nanos(nanos)),
            #[cfg(feature = "quanta")]
            Self::Quanta { .. } => {
                let now = self.now();
                let ahead = Duration::from_nanos(nanos.saturating_sub(now));
                let behind = Duration::from_nanos(now.saturating_sub(nanos));
                Instant::now().checked_add(ahead)?.checked_sub(behind)
            }
        }
    }
}

/// The time of day and date of the machine's clock, as the time since the Unix epoch; zero if it is
/// set to a time before that. Read only when a limiter is made that asks for it, and for a
/// `Retry-After` that is a date.
pub(crate) fn since_epoch() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// Whole nanoseconds, at most `u64::MAX`. Cheaper than by way of the 128 bits of `as_nanos`.
#[inline]
pub(crate) fn nanos(duration: Duration) -> u64 {
    let seconds = duration.as_secs().checked_mul(1_000_000_000);
    seconds.and_then(|s| s.checked_add(u64::from(duration.subsec_nanos()))).unwrap_or(u64::MAX)
}
