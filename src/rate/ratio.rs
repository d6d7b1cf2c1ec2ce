//! Ratios of whole numbers.

use std::ops::{Div, Rem};

/// The ratio in lowest terms; one of the two must not be zero.
pub(crate) fn reduced<T>(numerator: T, denominator: T) -> (T, T)
where
    T: Copy + Default + PartialEq + Rem<Output = T> + Div<Output = T>,
{
    // Euclid.
    let (mut divisor, mut rest) = (numerator, denominator);
    while rest != T::default() {
        (divisor, rest) = (rest, divisor % rest);
    }
    (numerator / divisor, denominator / divisor)
}

/// All numbers from `low` to `high`, which share a denominator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    pub(super) low: u128,
    pub(super) high: u128,
    pub(super) denominator: u128,
    /// Whether the ends belong to it.
    pub(super) closed: bool,
}

impl Interval {
    /// The ratio in the interval with the smallest denominator, and with the smallest numerator
    /// among those. The interval must be above zero and hold more than one number.
    ///
    /// The two ends share the first terms of their continued fractions, and so does everything
    /// between. Where a whole number comes between them, the smallest such is the simplest
    /// choice; until then, their common whole part is a term, and the rest is turned upside down,
    /// which swaps the ends.
    pub(super) fn simplest(self) -> (u128, u128) {
        let (mut low, mut high) = ((self.low, self.denominator), (self.high, self.denominator));
        // The last two convergents of the common terms. None outgrows the answer, and the answer
        // is no larger than the midpoint of the interval written out.
        let (mut before, mut last) = ((0, 1), (1, 0));
        loop {
            let whole = low.0 / low.1;
            let next = if self.closed && low.0 % low.1 == 0 { whole } else { whole + 1 };
            if self.starts_before_end(next, high) {
                return extend(before, last, next);
            }
            (before, last) = (last, extend(before, last, whole));
            (low, high) = ((high.1, high.0 - whole * high.1), (low.1, low.0 - whole * low.1));
        }
    }

    /// Whether the whole number comes before the high end, or on it where that belongs to us.
    /// Divided, because a product might overflow. An end of x/0 is infinity: the low end was a
    /// whole number, did not belong to us, and was turned upside down.
    fn starts_before_end(self, number: u128, (numerator, denominator): (u128, u128)) -> bool {
        let Some(whole) = numerator.checked_div(denominator) else {
            return true;
        };
        number < whole || (number == whole && (self.closed || numerator % denominator != 0))
    }
}

/// The convergent that follows two others by one more term.
fn extend(before: (u128, u128), last: (u128, u128), term: u128) -> (u128, u128) {
    (term * last.0 + before.0, term * last.1 + before.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By trying every denominator in turn.
    fn simplest_by_search(interval: Interval) -> (u128, u128) {
        let Interval { low, high, denominator, closed } = interval;
        for d in 1.. {
            for n in low * d / denominator..=high * d / denominator {
                let (l, n_, h) = (low * d, n * denominator, high * d);
                if (l < n_ && n_ < h) || (closed && l <= n_ && n_ <= h) {
                    return (n, d);
                }
            }
        }
        unreachable!()
    }

    #[test]
    fn the_simplest_ratio_is_the_first_that_a_search_finds() {
        for denominator in 1..=24 {
            for low in 1..=3 * denominator {
                for high in low + 1..=low + denominator + 1 {
                    for closed in [false, true] {
                        let interval = Interval { low, high, denominator, closed };
                        assert_eq!(
                            interval.simplest(),
                            simplest_by_search(interval),
                            "{interval:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn an_interval_near_the_end_of_128_bits_does_not_overflow() {
        let denominator = (1 << 89) * 1_000_000_000;
        let low = 1 << 54;
        let interval = Interval { low, high: low + 4, denominator, closed: true };
        let (numerator, seconds) = interval.simplest();
        assert_eq!(numerator, 1);
        assert_eq!(seconds, denominator.div_ceil(low + 4));
    }

    #[test]
    fn lowest_terms_of_nothing_and_of_infinity() {
        assert_eq!(reduced(0_u64, 7), (0, 1));
        assert_eq!(reduced(7_u64, 0), (1, 0));
        assert_eq!(reduced(u64::MAX, u64::MAX), (1, 1));
    }
}
