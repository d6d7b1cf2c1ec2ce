//! Several tokens in one go, to be used later: what a striped limiter takes of its line.

use super::Line;
use super::booking::Booking;
use super::decide::{self, Demand, Tail};
use super::position::Interval;
use super::state::Step;

/// What was taken in one go.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) tokens: u32,
    /// None if all is minted, and so no interval was needed.
    interval: Option<Interval>,
    pub(crate) overflow: Overflow,
}

/// Tokens that have overflowed unused, which nobody else is told of.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Overflow {
    pub(crate) tokens: u64,
    /// How many have overflowed since the beginning of all, used or not, up to the last of these.
    pub(crate) end: u64,
}

impl Overflow {
    /// How many of these have overflowed since so many had; at most those that are left.
    pub(crate) fn since(self, overflowed: u64) -> u64 {
        self.end.saturating_sub(overflowed).min(self.tokens)
    }

    /// Without the last `tokens`.
    pub(crate) fn less(self, tokens: u64) -> Self {
        Self { tokens: self.tokens - tokens, end: self.end - tokens }
    }
}

impl Line {
    /// Takes as many tokens as there are at the end of the line, up to `most`; nothing if that is
    /// less than `least`, of which there is one or more. Overflow is judged as at `now`, or as
    /// lenient as [`Self::allowance`] says.
    pub(crate) fn take_batch(
        &self,
        now: u64,
        least: u32,
        most: u32,
        allowance: u64,
    ) -> Option<Batch> {
        self.state.update(|view| {
            match decide::admit(view.closed, &view.config, now, self.cost(least), self.token) {
                Err(_) => return Step::Stay(None),
                Ok(Demand::Nothing) => {
                    let batch =
                        Batch { tokens: most, interval: None, overflow: Overflow::default() };
                    return Step::Stay(Some(batch));
                }
                Ok(Demand::Interval) => {}
            }
            let tail = Tail::at(now, &view.config, view.spent, allowance);
            let tokens = self.whole_tokens_of(&tail).min(most);
            if tokens < least {
                return Step::Stay(None);
            }
            let interval = tail.interval(self.token.times(tokens));
            let overflow = if view.spent < tail.start {
                let tokens = tail.start.beyond(view.spent) / u128::from(self.token.0);
                Overflow {
                    tokens: u64::try_from(tokens).unwrap_or(u64::MAX),
                    end: tail.start.whole_tokens(self.token),
                }
            } else {
                Overflow::default()
            };
            let then = Some(Batch { tokens, interval: Some(interval), overflow });
            Step::Forward { start: interval.start, end: interval.end, then }
        })
    }

    /// Gives back the last `surplus` tokens of `batch`.
    pub(crate) fn give_back_surplus(&self, now: u64, batch: &Batch, surplus: u32) {
        if let Some(Interval { end, .. }) = batch.interval.filter(|_| surplus > 0) {
            let start = end - self.token.times(surplus);
            self.give_back(now, &Booking::of(Interval { start, end }, true));
        }
    }

    /// How many whole tokens are there at the end of the line.
    pub(crate) fn whole_tokens(&self, now: u64) -> u32 {
        let view = self.state.view();
        self.whole_tokens_of(&Tail::at(now, &view.config, view.spent, 0))
    }

    /// All of a u32 if all is minted.
    fn whole_tokens_of(&self, tail: &Tail) -> u32 {
        let free = u64::try_from(tail.reach.beyond(tail.start)).unwrap_or(u64::MAX);
        u32::try_from(free / self.token.0).unwrap_or(u32::MAX)
    }

    /// How many tokens have overflowed by `now`, used or not, since the beginning of all; rounded up.
    /// Where numbers end, no more overflow.
    pub(crate) fn overflowed_by(&self, now: u64) -> u64 {
        let config = self.state.view().config;
        // While all is minted at once, nothing overflows.
        let filled = if config.clock.is_unlimited_at(now) {
            config.clock.origin
        } else {
            config.clock.read(now).filled
        };
        config.horizon(filled).begun_tokens(self.token)
    }
}
