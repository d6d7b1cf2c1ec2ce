//! [`Gradient`]: by how much calls got slower than they were.

use super::error::AdaptiveError;
use super::level::{MOST, ONE};
use crate::sync::{AtomicU64, Ordering};

/// The ratio of what calls took before to what they take now: Gradient2 of Netflix's
/// [concurrency-limits](https://github.com/Netflix/concurrency-limits).
///
/// After as many calls as the limit allows at a time (10 at least, 255 at most):
///
/// ```text
/// gradient = tolerance * long / short      between 0.5 and 1
/// limit    = 0.8 * limit + 0.2 * (limit * gradient + queue)
/// ```
///
/// `short` is what they took on average, and `long` is the moving average of that over 600 such rounds.
/// Where `long` is more than twice `short`, it falls by 5 % a round besides: a service that has recovered
/// is believed soon. While less than half of the limit is in use, it stays. A failure counts as a
/// gradient of 0.5 with no queue, for calls that began after the last failure that counted.
///
/// # When to choose it
///
/// Where nobody knows how long a call should take. Two things to know: `long` follows what it
/// measures, which includes the queue that the limit itself allows. So where callers want more than there
/// is for hundreds of rounds, `long` creeps up and the limit with it, to the largest that is allowed:
/// set that ([`max`](super::AdaptiveConcurrencyBuilder::max)). And it never falls below twice the queue
/// by latency alone. Where you know a bound, [`Aimd`](super::Aimd) has neither.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Gradient {
    tolerance: u32,
    queue: u32,
}

/// The fixed point of a gradient.
const WHOLE: u64 = 1 << 16;
/// The fixed point of the long average, in parts of a nanosecond.
const PARTS: u64 = 1 << 8;
/// Weight of the latest: 2 / (600 + 1), nearly.
const MEMORY: u64 = 300;

impl Gradient {
    /// Half as slow again is tolerated, and a queue of 4.
    pub fn new() -> Self {
        Self { tolerance: 150, queue: 4 }
    }

    /// How much slower than the long average calls may be before the limit falls, in per cent of it: 100
    /// to 1000.
    pub fn tolerance(self, percent: u32) -> Self {
        Self { tolerance: percent, ..self }
    }

    /// How many more are allowed than the gradient asks for, so that it finds out whether there is
    /// room: 1 to 1 048 575.
    pub fn queue(self, queue: u32) -> Self {
        Self { queue, ..self }
    }

    pub(crate) fn checked(self) -> Result<Self, AdaptiveError> {
        if !(100..=1000).contains(&self.tolerance) {
            return Err(AdaptiveError::ToleranceOutOfRange { percent: self.tolerance });
        }
        if !(1..=MOST).contains(&self.queue) {
            return Err(AdaptiveError::QueueOutOfRange { queue: self.queue });
        }
        Ok(self)
    }

    /// The next limit, where calls take `short` and took `long`.
    pub(crate) fn next(&self, limit: u64, trend: Trend) -> u64 {
        let Trend { short, long } = trend;
        let ratio = u128::from(self.tolerance) * u128::from(long) * u128::from(WHOLE)
            / (100 * u128::from(short.max(1)));
        let gradient = u64::try_from(ratio).unwrap_or(u64::MAX).clamp(WHOLE / 2, WHOLE);
        smoothed(limit, limit * gradient / WHOLE + u64::from(self.queue) * ONE)
    }

    /// The next limit after a failure.
    pub(crate) fn cut(limit: u64) -> u64 {
        smoothed(limit, limit / 2)
    }
}

/// A fifth of the way from `limit` to `target`.
fn smoothed(limit: u64, target: u64) -> u64 {
    (4 * limit + target) / 5
}

impl Default for Gradient {
    fn default() -> Self {
        Self::new()
    }
}

/// What calls take now and what they took, in parts of a nanosecond.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trend {
    short: u64,
    long: u64,
}

/// The latencies that were reported.
#[derive(Debug)]
pub(crate) struct Latencies {
    /// Of the round that goes on. Bits 0 to 7: how many there are; bits 8 to 63: their sum in nanoseconds.
    round: AtomicU64,
    /// The long average in parts of a nanosecond; zero before the first round.
    long: AtomicU64,
}

const COUNT_BITS: u32 = 8;
const FEWEST: u64 = 10;
const MOST_IN_A_ROUND: u64 = (1 << COUNT_BITS) - 1;
/// Of which 255 fit the sum: 78 hours.
const LONGEST: u64 = (1 << 48) - 1;

impl Latencies {
    pub(crate) fn new() -> Self {
        Self { round: AtomicU64::new(0), long: AtomicU64::new(0) }
    }

    /// Adds one; the trend, if it is the last of a round of so many.
    pub(crate) fn add(&self, latency: u64, limit: u32) -> Option<Trend> {
        let size = u64::from(limit).clamp(FEWEST, MOST_IN_A_ROUND);
        let one = latency.min(LONGEST) << COUNT_BITS | 1;
        // The last one takes the round away, so each latency is in one round and each round is
        // judged once.
        let next = |round: u64| {
            let sum = round + one;
            if sum & MOST_IN_A_ROUND < size { sum } else { 0 }
        };
        // Relaxed, here and below: the words publish nothing, and an exchange loses no update.
        let mut before = self.round.load(Ordering::Relaxed);
        loop {
            let after = next(before);
            let exchanged = self.round.compare_exchange_weak(
                before,
                after,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            match exchanged {
                Ok(_) if after == 0 => break,
                Ok(_) => return None,
                Err(round) => before = round,
            }
        }
        let total = before + one;
        // 56 bits and 8 fit a word.
        let short = (total >> COUNT_BITS) * PARTS / (total & MOST_IN_A_ROUND);
        // Relaxed: the average is a number of its own; the exchange keeps each round in it.
        let remembered = |long| Some(remember(long, short));
        let long = self.long.fetch_update(Ordering::Relaxed, Ordering::Relaxed, remembered);
        Some(Trend { short, long: remember(long.unwrap_or(0), short) })
    }
}

/// The long average after a round that took `short` on average.
fn remember(long: u64, short: u64) -> u64 {
    if long == 0 {
        return short.max(1);
    }
    let long = long - long / MEMORY + short / MEMORY;
    if long / 2 > short { long - long / 20 } else { long.max(1) }
}
