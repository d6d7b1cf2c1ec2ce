//! [`Sometimes`]: does something on some of the calls, as Go's third type does.

use crate::sync::{AtomicU64, Ordering};
use crate::time::{Timeline, nanos};
use std::time::Duration;
use tokio::time::Instant;

/// Does something on some of many calls: the first few, every so many, or once in a while. For log
/// lines and the like.
///
/// It is Go's [`Sometimes`](https://pkg.go.dev/golang.org/x/time/rate#Sometimes): a call runs if any of
/// the rules that are set says so, and the first call always does. Calls are counted from 0.
///
/// | rule | runs |
/// |---|---|
/// | [`first`](Self::first) | the first `n` calls |
/// | [`every`](Self::every) | each `n`-th call, beginning with the first |
/// | [`interval`](Self::interval) | the first call that comes an interval or more after a call that ran |
///
/// Unlike Go's, which holds a lock meanwhile, it may be called by what it runs: that is a call like any
/// other. If what it runs panics, the call counts as one that ran.
///
/// It is lock-free. Several threads that call it at once get the calls in some order; of those that
/// come after an interval, one runs.
///
/// # Examples
///
/// ```
/// use paceline::Sometimes;
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let sometimes = Sometimes::new().first(2).interval(Duration::from_secs(10));
/// let mut lines = Vec::new();
/// for call in 0..5 {
///     sometimes.call(|| lines.push(call));
/// }
/// tokio::time::advance(Duration::from_secs(10)).await;
/// sometimes.call(|| lines.push(5));
/// assert_eq!(lines, [0, 1, 5]);
/// # }
/// ```
#[derive(Debug)]
pub struct Sometimes {
    first: u64,
    /// Zero if there is no such rule, as in Go.
    every: u64,
    interval: u64,
    time: Timeline,
    /// How many calls there were.
    calls: AtomicU64,
    /// One more than the time in nanoseconds at which one ran last; zero if none has. Used by the
    /// rule of the interval only.
    ran: AtomicU64,
}

impl Sometimes {
    /// Runs on the first call and on no other, unless a rule is added.
    #[must_use]
    pub fn new() -> Self {
        let (calls, ran) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { first: 0, every: 0, interval: 0, time: Timeline::default(), calls, ran }
    }

    /// Runs on the first `n` calls.
    #[must_use]
    pub fn first(self, n: u64) -> Self {
        Self { first: n, ..self }
    }

    /// Runs on each `n`-th call, beginning with the first. Zero is no rule.
    #[must_use]
    pub fn every(self, n: u64) -> Self {
        Self { every: n, ..self }
    }

    /// Runs on the first call that comes `interval` or more after the beginning of a call that ran.
    /// Zero is no rule.
    #[must_use]
    pub fn interval(self, interval: Duration) -> Self {
        Self { interval: nanos(interval), ..self }
    }

    /// Counts a call, and does `f` if it is one that runs.
    ///
    /// # Panics
    ///
    /// If `f` does.
    pub fn call<T>(&self, f: impl FnOnce() -> T) -> Option<T> {
        let now = if self.interval == 0 { 0 } else { self.time.now() };
        self.runs(now).then(f)
    }

    /// As [`call`](Self::call), at the time `now`.
    ///
    /// # Panics
    ///
    /// If `f` does.
    pub fn call_at<T>(&self, now: Instant, f: impl FnOnce() -> T) -> Option<T> {
        self.runs(self.time.nanos(now)).then(f)
    }

    /// Begins anew: the next call is the first. A call at the same time may count as before or after.
    pub fn reset(&self) {
        // Relaxed, both: nothing else is told by these words. A call in between counts from before,
        // and its interval never ends, since the first call of all is still to come.
        self.ran.store(0, Ordering::Relaxed);
        self.calls.store(0, Ordering::Relaxed);
    }

    pub(crate) fn runs(&self, now: u64) -> bool {
        // Relaxed: no call publishes anything to another. That each gets a number of its own is what
        // the read-modify-write is for.
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let by_number = call == 0 || call < self.first || call.checked_rem(self.every) == Some(0);
        if self.interval == 0 {
            return by_number;
        }
        let now = now.saturating_add(1);
        if by_number {
            // Relaxed: as above. The later one counts, whoever comes first.
            self.ran.fetch_max(now, Ordering::Relaxed);
            return true;
        }
        // Relaxed: as above. The exchange lets one of those run who find the same interval over. None
        // does before the first call has said when it ran.
        let ran = self.ran.load(Ordering::Relaxed);
        ran != 0
            && now.saturating_sub(ran) >= self.interval
            && self.ran.compare_exchange(ran, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

impl Default for Sometimes {
    fn default() -> Self {
        Self::new()
    }
}
