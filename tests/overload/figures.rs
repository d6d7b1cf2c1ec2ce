//! What came of it: sums that need no limiter.

use crate::scene::{Limit, Use, billionths};
use std::time::Duration;

/// Tokens used in each second from the start, by the times at which callers went on.
pub(crate) fn per_second(uses: &[Use], seconds: u32) -> Vec<u32> {
    let mut sums = vec![0; usize::try_from(seconds).expect("a few")];
    for used in uses {
        let second = usize::try_from(used.went_on.as_secs()).expect("a few");
        if let Some(sum) = sums.get_mut(second) {
            *sum += used.tokens;
        }
    }
    sums
}

pub(crate) fn mean(sums: &[u32]) -> f64 {
    f64::from(sums.iter().sum::<u32>()) / f64::from(u32::try_from(sums.len()).expect("a few"))
}

/// How long those who were served have waited, on average.
pub(crate) fn mean_wait(uses: &[Use]) -> Duration {
    let sum: Duration = uses.iter().map(|used| used.went_on - used.booked).sum();
    sum / u32::try_from(uses.len().max(1)).expect("not so many")
}

/// Tokens, and the span in which they were used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent {
    pub(crate) tokens: u32,
    pub(crate) earliest: Duration,
    pub(crate) latest: Duration,
}

impl Spent {
    pub(crate) fn at(time: Duration, tokens: u32) -> Self {
        Self::between(time, time, tokens)
    }

    pub(crate) fn between(earliest: Duration, latest: Duration, tokens: u32) -> Self {
        Self { tokens, earliest, latest }
    }
}

/// The most that was used in any window `(t1, t2]` on the nanosecond grid beyond what is minted in
/// it, in billionths of a token. Where it is not known when in its span something was used, the
/// benefit of the doubt is given.
pub(crate) fn most_beyond_the_rate(limit: Limit, spent: &[Spent]) -> i128 {
    let mut begun: Vec<_> = spent.iter().map(|spent| (spent.earliest, spent.tokens)).collect();
    let mut ended: Vec<_> = spent.iter().map(|spent| (spent.latest, spent.tokens)).collect();
    begun.sort_unstable();
    ended.sort_unstable();
    let mut begun = begun.into_iter().peekable();

    // What is used less what is minted: until right before the window, where it was least, and
    // until the end of it.
    let (mut before, mut least_before) = (0, i128::MAX);
    let (mut until, mut most) = (0, 0);
    for (t2, tokens) in ended {
        while let Some((time, tokens)) = begun.next_if(|(time, _)| *time <= t2) {
            // The window begins a nanosecond earlier.
            let minted = limit.minted_in(time) - i128::from(limit.rate);
            least_before = least_before.min(before - minted);
            before += billionths(tokens);
        }
        until += billionths(tokens);
        most = most.max(until - limit.minted_in(t2) - least_before);
    }
    most
}
