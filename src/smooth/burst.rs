//! The rule of Guava's `SmoothBursty`: pure.
//!
//! Guava keeps the permits that are stored and the time at which the debt is paid. There is never
//! both a debt and something stored, and a permit that is stored is a time of idleness; so both are
//! one time, `z`: the end of what was booked, or the beginning of the idle time that still counts.
//!
//! | | Guava | here |
//! |---|---|---|
//! | the debt is paid | `nextFree <= now` | `z <= now` |
//! | a request waits | `nextFree - now` | `z - now` |
//! | what is stored, at most | `maxBurst * rate` permits | what of `now - z` lies within `maxBurst` |
//! | a request of `n` | takes what is stored, the rest adds to `nextFree` | `z += n / rate` |
//! | a change of the rate | scales what is stored | nothing: it was a time already |

use super::rule::{Mark, Rule};
use super::span::{Moment, Span};

/// Idle time counts for so long.
///
/// A mark is `z` and that, so that it is never negative: the time at which an idle schedule would be
/// full.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Burst {
    nanos: u64,
}

/// What 2^32 requests in a row are late by. Of rates of up to 2^32 permits in a period that is
/// a whole number of nanoseconds, no turn has a fraction so small.
const ROUNDING: Span = Span::of_fraction(32);

impl Burst {
    pub(crate) fn new(nanos: u64) -> Self {
        Self { nanos: nanos.min(Span::MOST_NANOS) }
    }
}

impl Rule for Burst {
    fn first(&self) -> Mark {
        Mark(Moment::of_nanos(self.nanos).0)
    }

    #[inline]
    fn present(&self, mark: Mark, now: u64) -> Mark {
        if Moment(mark.0).nanos(ROUNDING) < now { Mark(Moment::of_nanos(now).0) } else { mark }
    }

    #[inline]
    fn charged(&self, mark: Mark, time: Span) -> Mark {
        Mark(Moment(mark.0).after(time).0)
    }

    #[inline]
    fn turn(&self, mark: Mark) -> Option<u64> {
        let full = Moment(mark.0);
        (full < Moment::NEVER).then(|| full.nanos(ROUNDING).saturating_sub(self.nanos))
    }

    /// Full, as in Guava; but a debt stays a debt.
    fn refreshed(&self, mark: Mark, now: u64) -> Mark {
        match self.turn(mark) {
            Some(turn) if turn <= now => Mark(Moment::of_nanos(now).0),
            _ => mark,
        }
    }

    fn stored(&self, mark: Mark, now: u64) -> Span {
        let empty = Moment::of_nanos(now).after(Span::of_nanos(self.nanos));
        empty - Moment(self.present(mark, now).0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// What many requests take is what one takes for all.
        #[test]
        fn a_cost_is_the_sum_of_its_parts(
            burst in 0..1_u64 << 40,
            times in prop::collection::vec(0..1_u128 << 100, 1..20),
        ) {
            let rule = Burst::new(burst);
            let apart = times.iter().fold(rule.first(), |mark, time| rule.charged(mark, Span(*time)));
            let together = rule.charged(rule.first(), Span(times.iter().sum()));
            prop_assert_eq!(apart, together);
        }

        #[test]
        fn what_is_stored_and_owed_is_never_both(burst in 0..1_u64 << 40, mark in 0..1_u128 << 110, now in 0..1_u64 << 46) {
            let rule = Burst::new(burst);
            let mark = rule.present(Mark(mark), now);
            let stored = rule.stored(mark, now);
            prop_assert!(stored <= Span::of_nanos(burst));
            let turn = rule.turn(mark).expect("it comes");
            prop_assert!(turn <= now || stored == Span(0));
            // It is all that can be had before somebody has to wait.
            let emptied = rule.charged(mark, stored);
            prop_assert!(rule.turn(emptied).expect("it comes") == turn.max(now));
        }

        #[test]
        fn who_comes_again_at_its_turn_finds_the_same_mark(burst in 0..1_u64 << 40, mark in 0..1_u128 << 110) {
            let rule = Burst::new(burst);
            let mark = rule.present(Mark(mark), 0);
            let turn = rule.turn(mark).expect("it comes");
            prop_assert_eq!(rule.present(mark, turn), mark);
        }
    }
}
