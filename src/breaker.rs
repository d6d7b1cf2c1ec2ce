//! [`CircuitBreaker`]: fails fast while what is behind it is broken.

mod word;

use crate::observe;
use crate::sync::{AtomicU64, Ordering};
use crate::time::{Timeline, nanos};
use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::time::Duration;
use word::{Entry, Rule, State, Word};

/// A circuit breaker: while what is behind it is broken, calls are refused at once instead of being
/// made; a few probes find out when it works again.
///
/// | state | calls | leaves it when |
/// |---|---|---|
/// | closed | are made | of the last `calls` that ended, `failures` failed: then it opens |
/// | open | are refused | its time is over: then the next call is a probe, and it is half open |
/// | half open | up to `probes` are made | as many probes succeeded: then it closes; or one failed: then it opens again |
///
/// Enter before each call, and say what became of it. A call that is dropped without a word, because
/// its future was, is neither a success nor a failure; a probe so dropped makes room for another.
/// What a call says that began before the state changed is not counted.
///
/// It stands beside any limiter: enter first, so that a refused call takes no permit. A limiter that
/// refuses then is no failure of what is behind; drop the call.
///
/// The pattern is Michael Nygard's (*Release It!*); the count of the last calls is resilience4j's.
///
/// # Memory ordering
///
/// All of it is one word, advanced by compare-and-swap: lock-free, and while it is closed and nothing
/// fails, calls only read it. It orders nothing between callers.
///
/// # Examples
///
/// ```
/// use paceline::{CircuitBreaker, Limiter, Rate};
/// use std::time::Duration;
///
/// # async fn request() -> Result<(), std::io::Error> { Ok(()) }
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Opens for 5 s when 10 of the last 20 calls failed.
/// let breaker = CircuitBreaker::new(10, 20, Duration::from_secs(5))?;
/// let limiter = Limiter::new(Rate::per_second(100), 10);
///
/// let call = breaker.enter()?;
/// limiter.acquire().await?;
/// match request().await {
///     Ok(()) => call.succeeded(),
///     Err(_) => call.failed(),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct CircuitBreaker {
    word: AtomicU64,
    rule: Rule,
    time: Timeline,
}

/// A call that was let through. Dropped, it says nothing of how it ended.
#[derive(Debug)]
#[must_use = "dropped, it says nothing of how the call ended"]
pub struct Call<'a> {
    breaker: &'a CircuitBreaker,
    entry: Option<Entry>,
}

/// What a [`CircuitBreaker`] does with calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BreakerState {
    /// Calls are made.
    Closed,
    /// Calls are refused for so long.
    Open {
        /// Until a probe is made.
        remaining: Duration,
    },
    /// A few calls are made as probes.
    HalfOpen,
}

/// Why a [`CircuitBreaker`] refused a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerOpen {
    retry_after: Option<Duration>,
}

/// Why a [`CircuitBreaker`] was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BreakerError {
    /// It counts up to 32 calls.
    CallsOutOfRange {
        /// Of how many calls.
        calls: u32,
    },
    /// It opens after one failure at least, and as many as the calls that it counts at most.
    FailuresOutOfRange {
        /// After how many failures.
        failures: u32,
        /// Of how many calls.
        calls: u32,
    },
    /// It makes one probe at least, and 65535 at most.
    ProbesOutOfRange {
        /// How many probes.
        probes: u32,
    },
}

impl CircuitBreaker {
    /// One that opens, for `open_for`, when `failures` of the last `calls` failed; with one probe.
    ///
    /// `failures` in a row is `new(failures, failures, …)`. Times are in whole microseconds, rounded
    /// up.
    ///
    /// # Errors
    ///
    /// [`BreakerError`] unless `1 <= failures <= calls <= 32`.
    pub fn new(failures: u32, calls: u32, open_for: Duration) -> Result<Self, BreakerError> {
        if !(1..=word::MOST_CALLS).contains(&calls) {
            return Err(BreakerError::CallsOutOfRange { calls });
        }
        if !(1..=calls).contains(&failures) {
            return Err(BreakerError::FailuresOutOfRange { failures, calls });
        }
        let open_for = nanos(open_for).div_ceil(1_000);
        let rule = Rule { failures, calls, open_for, probes: 1 };
        Ok(Self { word: AtomicU64::new(Word::CLOSED.to_word()), rule, time: Timeline::default() })
    }

    /// With so many probes, which must all succeed.
    ///
    /// # Errors
    ///
    /// [`BreakerError::ProbesOutOfRange`] unless there are 1 to 65535.
    pub fn probes(mut self, probes: u32) -> Result<Self, BreakerError> {
        if !(1..=word::MOST_PROBES).contains(&probes) {
            return Err(BreakerError::ProbesOutOfRange { probes });
        }
        self.rule.probes = probes;
        Ok(self)
    }

    /// Lets a call through, or refuses it at once.
    ///
    /// # Errors
    ///
    /// [`BreakerOpen`], which says when to try again.
    #[inline]
    pub fn enter(&self) -> Result<Call<'_>, BreakerOpen> {
        // Relaxed: as in `update`.
        match Word::from_word(self.word.load(Ordering::Relaxed)).entry_if_closed() {
            Some(entry) => Ok(Call { breaker: self, entry: Some(entry) }),
            None => self.enter_at(self.now()),
        }
    }

    #[cold]
    pub(crate) fn enter_at(&self, now: u64) -> Result<Call<'_>, BreakerOpen> {
        let rule = &self.rule;
        match self.update(|word| word.enter(rule, now)) {
            Ok(entry) => Ok(Call { breaker: self, entry: Some(entry) }),
            Err(remaining) => {
                Err(BreakerOpen { retry_after: remaining.map(Duration::from_micros) })
            }
        }
    }

    /// Makes a call: enters, and takes `Ok` for a success and `Err` for a failure.
    ///
    /// # Errors
    ///
    /// [`CallError::Open`] if it is refused, and [`CallError::Failed`] with what the call failed with.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it is neither a success nor a failure.
    pub async fn call<T, E>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, CallError<E>> {
        let call = self.enter().map_err(CallError::Open)?;
        match work.await {
            Ok(value) => {
                call.succeeded();
                Ok(value)
            }
            Err(error) => {
                call.failed();
                Err(CallError::Failed(error))
            }
        }
    }

    /// What it does with calls now.
    #[must_use]
    pub fn state(&self) -> BreakerState {
        // Relaxed: as in `update`.
        match Word::from_word(self.word.load(Ordering::Relaxed)).state() {
            State::Closed => BreakerState::Closed,
            State::Open { until } => {
                let remaining = Duration::from_micros(until.saturating_sub(self.now()));
                BreakerState::Open { remaining }
            }
            State::HalfOpen => BreakerState::HalfOpen,
        }
    }

    /// Opens it now, for as long as after failures.
    pub fn open(&self) {
        self.open_at(self.now());
    }

    pub(crate) fn open_at(&self, now: u64) {
        self.update(|word| (word.opened(&self.rule, now), ()));
    }

    /// Closes it now, with nothing counted.
    pub fn close(&self) {
        self.update(|word| (word.closed(), ()));
    }

    /// In microseconds, rounded down.
    fn now(&self) -> u64 {
        self.time.now() / 1_000
    }

    /// Changes the word to what `change` makes of it. This is the one loop that does; of all who work
    /// here one always gets on.
    fn update<T>(&self, mut change: impl FnMut(Word) -> (Word, T)) -> T {
        // Relaxed, all of it: what it tells is in the word, and nothing else is published by it.
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let before = Word::from_word(word);
            let (after, outcome) = change(before);
            if after == before {
                return outcome;
            }
            let to = after.to_word();
            match self.word.compare_exchange(word, to, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    if after.state() != before.state() {
                        observe::breaker(self.state());
                    }
                    return outcome;
                }
                Err(present) => word = present,
            }
        }
    }
}

impl Call<'_> {
    /// The call succeeded.
    #[inline]
    pub fn succeeded(mut self) {
        if let Some(entry) = self.entry.take() {
            // While nothing fails, this changes nothing, and so it writes nothing.
            self.breaker.update(|word| (word.succeeded(&self.breaker.rule, entry), ()));
        }
    }

    /// The call failed.
    pub fn failed(self) {
        let now = self.breaker.now();
        self.failed_at(now);
    }

    pub(crate) fn failed_at(mut self, now: u64) {
        if let Some(entry) = self.entry.take() {
            self.breaker.update(|word| (word.failed(&self.breaker.rule, entry, now), ()));
        }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if let Some(entry) = self.entry {
            self.breaker.update(|word| (word.dropped(entry), ()));
        }
    }
}

impl BreakerOpen {
    /// How long to wait before a probe is made; `None` if as many as there may be are being made.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}

/// Why [`CircuitBreaker::call`] has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError<E> {
    /// The call was not made.
    Open(BreakerOpen),
    /// The call failed.
    Failed(E),
}

impl Error for BreakerOpen {}
impl Error for BreakerError {}

impl<E: Error + 'static> Error for CallError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Open(_) => None,
            Self::Failed(error) => Some(error),
        }
    }
}

impl Display for BreakerOpen {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.retry_after {
            Some(wait) => write!(f, "the circuit breaker is open: retry after {wait:?}"),
            None => f.write_str("the circuit breaker is half open, and its probes are being made"),
        }
    }
}

impl<E: Display> Display for CallError<E> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(open) => open.fmt(f),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

impl Display for BreakerError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::CallsOutOfRange { calls } => {
                write!(f, "a circuit breaker counts 1 to {} calls, not {calls}", word::MOST_CALLS)
            }
            Self::FailuresOutOfRange { failures, calls } => {
                write!(
                    f,
                    "a circuit breaker opens after 1 to {calls} failures of {calls} calls, not {failures}"
                )
            }
            Self::ProbesOutOfRange { probes } => {
                write!(f, "a circuit breaker makes 1 to {} probes, not {probes}", word::MOST_PROBES)
            }
        }
    }
}

impl Display for BreakerState {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "closed",
            Self::Open { .. } => "open",
            Self::HalfOpen => "half open",
        })
    }
}
