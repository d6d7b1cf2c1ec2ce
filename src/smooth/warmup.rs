//! The rule of Guava's `SmoothWarmingUp`: pure.
//!
//! Guava counts what is stored in permits `s`, up to `m`. A permit costs `interval` while less than
//! a threshold is stored, and from there on more and more, up to the cold factor `c` times as much:
//!
//! ```text
//!          price of a permit
//!   c * interval ┤                       ╱
//!                │                     ╱ │
//!                │                   ╱   │
//!       interval ┼──────────────────╱    │
//!                └──────────────────┴────┴──▶ s
//!                0           threshold   m
//! ```
//!
//! Here it is counted as the time `u` in which those permits would be minted, `s * interval`. In
//! that unit nothing depends on the rate, so a change of the rate changes nothing: with a warm-up
//! of `W`, the threshold is `W / 2`, at most `H = W/2 + 2W/(1 + c)` is stored, idleness stores
//! `H / W` of its own length, and a request whose permits take `t` costs
//!
//! ```text
//! t + Q(u) - Q(u - t)   where   Q(u) = (c^2 - 1) / 4W * max(0, u - W/2)^2
//! ```
//!
//! So what is charged above the stable price is just what `Q` has lost, whoever takes how many.
//! `Q` is computed for whole units and subtracted, so no rounding builds up in it.

use super::rule::{Mark, Rule};
use super::span::{Moment, Span};

/// How a mark is written. If nothing is stored, nearly all of the word is left for the time, so a
/// schedule that is warm is exact; one that is not comes to be after so many permits as it stores.
///
/// ```text
///   127            64 63          41  40  39                     0
///  ┌─────────────────┬──────────────┬────┬────────────────────────┐
///  │ nanoseconds     │ fraction     │ 1  │ what is stored, less 1 │
///  ├─────────────────┼──────────────┼────┼────────────────────────┤
///  │ nanoseconds     │ fraction     │ 0  │ more of the fraction   │  nothing is stored
///  └─────────────────┴──────────────┴────┴────────────────────────┘
/// ```
///
/// The time is when the debt is paid. Marks are ordered by it, since a permit takes a thousandth of a
/// nanosecond at least, and the upper fraction tells 2^-23 ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    paid: Moment,
    /// In units of the rule.
    stored: u64,
}

const STORED_BITS: u32 = 40;
const STORED: u128 = (1 << STORED_BITS) - 1;
const IS_STORED: u128 = 1 << STORED_BITS;
const TIME_SHIFT: u32 = STORED_BITS + 1;

impl State {
    /// The time is rounded up to what the word can tell.
    #[inline]
    fn to_mark(self) -> Mark {
        if self.stored == 0 {
            let paid = round_up(self.paid, 1).0;
            return Mark((paid >> TIME_SHIFT << TIME_SHIFT) | ((paid >> 1) & STORED));
        }
        let paid = round_up(self.paid, TIME_SHIFT).0;
        Mark(paid | IS_STORED | u128::from(self.stored - 1))
    }

    #[inline]
    fn from_mark(Mark(word): Mark) -> Self {
        let (paid, low) = (word >> TIME_SHIFT << TIME_SHIFT, word & STORED);
        if word & IS_STORED == 0 {
            return Self { paid: Moment(paid | (low << 1)), stored: 0 };
        }
        #[expect(clippy::cast_possible_truncation, reason = "40 bits")]
        let stored = low as u64 + 1;
        Self { paid: Moment(paid), stored }
    }
}

#[inline]
fn round_up(moment: Moment, bits: u32) -> Moment {
    // The end of time is a whole nanosecond, so this never goes beyond.
    Moment((moment.0 + (1 << bits) - 1) >> bits << bits)
}

/// The shape of the curve above, in units of which up to 2^40 are stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Warmup {
    nanos: u64,
    /// A unit is so many bits of a [`Span`].
    unit: u32,
    /// In units: what is stored at most, and the threshold.
    full: u64,
    threshold: u64,
    /// What is stored in a unit of idleness, in 2^-40.
    cooling: u64,
    /// `Q` is the square of what is above the threshold, times this, shifted right.
    steepness: u128,
    steepness_shift: u32,
}

/// A thousandth of a nanosecond: what as many requests as are ever stored in practice are late by, each
/// by the last bit of the time; see [`State`].
const ROUNDING: Span = Span::of_fraction(10);

/// Of the cold factor and what is made of it.
const FACTOR_BITS: u32 = 32;
const COOLING_BITS: u32 = 40;

impl Warmup {
    /// What the cold factor may be.
    pub(crate) const FACTORS: std::ops::RangeInclusive<f64> = 1.0..=1000.0;

    /// `factor` must be one of [`Self::FACTORS`].
    pub(crate) fn new(nanos: u64, factor: f64) -> Self {
        let nanos = nanos.min(Span::MOST_NANOS);
        let one = 1_u128 << FACTOR_BITS;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 1000")]
        let factor = (factor * f64::from(FACTOR_BITS).exp2()).round() as u128;
        let warmup = u128::from(nanos);

        // W/2 + 2W/(1 + c), in parts of 2^-63 ns of which two make one of a `Span`: below 2^126.
        let above = (warmup << (1 + FACTOR_BITS)) / (one + factor);
        let above_rest = (warmup << (1 + FACTOR_BITS)) % (one + factor);
        let above = (above << 63) + ((above_rest << 63) / (one + factor));
        let full = (above + (warmup << 62)) << 1;
        let unit = (u128::BITS - full.leading_zeros()).saturating_sub(STORED_BITS);
        let threshold = (warmup << 63) >> unit;
        let full = full >> unit;

        // Q at its highest, W * (c - 1)/(c + 1): 60 bits for the ratio make 122 at most.
        let ratio = ((factor - one) << 60) / (factor + one);
        let most = (warmup * ratio) << 4;
        let (steepness, steepness_shift) = quotient(most, (full - threshold).pow(2));

        let cooling = ((full << COOLING_BITS) / (threshold << 1).max(1)).min(u128::from(u64::MAX));
        let fits = |n: u128| u64::try_from(n).expect("some forty bits");
        Self {
            nanos,
            unit,
            full: fits(full),
            threshold: fits(threshold),
            cooling: fits(cooling),
            steepness,
            steepness_shift,
        }
    }

    /// What `stored` costs above the stable price.
    #[inline]
    fn surcharge(&self, stored: u64) -> Span {
        let above = u128::from(stored.saturating_sub(self.threshold));
        // 80 bits and 47, and a carry.
        Span((above * above * self.steepness) >> self.steepness_shift)
    }

    #[inline]
    fn length(&self, stored: u64) -> Span {
        Span(u128::from(stored) << self.unit)
    }

    /// In units, rounded up; it must be at most some times the warm-up.
    #[inline]
    fn units(&self, span: Span) -> u64 {
        let rest = span.0 & ((1 << self.unit) - 1);
        #[expect(clippy::cast_possible_truncation, reason = "some forty bits")]
        let units = (span.0 >> self.unit) as u64 + u64::from(rest > 0);
        units
    }

    /// What is stored after `idle`, rounded up: rather too cold than too warm.
    #[inline]
    fn cooled(&self, stored: u64, idle: Span) -> u64 {
        if idle >= Span::of_nanos(self.nanos) {
            return self.full;
        }
        let gained = u128::from(self.units(idle)) * u128::from(self.cooling);
        #[expect(clippy::cast_possible_truncation, reason = "some forty bits")]
        let gained = gained.div_ceil(1 << COOLING_BITS) as u64;
        (stored + gained).min(self.full)
    }
}

/// The quotient, rounded up, as 47 bits at most and how far they are to be shifted right.
fn quotient(dividend: u128, divisor: u128) -> (u128, u32) {
    if dividend == 0 || divisor == 0 {
        return (0, 0);
    }
    let up = dividend.leading_zeros();
    let quotient = (dividend << up) / divisor;
    let excess = (u128::BITS - quotient.leading_zeros()).saturating_sub(47);
    ((quotient >> excess) + 1, up.saturating_sub(excess))
}

impl Rule for Warmup {
    /// Cold.
    fn first(&self) -> Mark {
        State { paid: Moment::of_nanos(0), stored: self.full }.to_mark()
    }

    #[inline]
    fn present(&self, mark: Mark, now: u64) -> Mark {
        let State { paid, stored } = State::from_mark(mark);
        if paid.nanos(ROUNDING) >= now {
            return mark;
        }
        let paid_now = Moment::of_nanos(now);
        State { paid: paid_now, stored: self.cooled(stored, paid_now - paid) }.to_mark()
    }

    #[inline]
    fn charged(&self, mark: Mark, time: Span) -> Mark {
        let State { paid, stored } = State::from_mark(mark);
        let left = match self.length(stored).0.checked_sub(time.0) {
            Some(left) => self.units(Span(left)),
            None => 0,
        };
        let surcharge = Span(self.surcharge(stored).0 - self.surcharge(left).0);
        State { paid: paid.after(time).after(surcharge), stored: left }.to_mark()
    }

    #[inline]
    fn turn(&self, mark: Mark) -> Option<u64> {
        let State { paid, .. } = State::from_mark(mark);
        (paid < Moment::NEVER).then(|| paid.nanos(ROUNDING))
    }

    /// Warm, as in Guava; and a debt stays a debt.
    fn refreshed(&self, mark: Mark, now: u64) -> Mark {
        let State { paid, .. } = State::from_mark(mark);
        State { paid: paid.max(Moment::of_nanos(now)), stored: 0 }.to_mark()
    }

    fn stored(&self, mark: Mark, now: u64) -> Span {
        self.length(State::from_mark(self.present(mark, now)).stored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    const SECOND: u64 = 1_000_000_000;

    fn rule() -> impl Strategy<Value = Warmup> {
        let nanos = prop_oneof![0..10_u64, 0..1_u64 << 40, any::<u64>()];
        (nanos, Warmup::FACTORS).prop_map(|(nanos, factor)| Warmup::new(nanos, factor))
    }

    fn time() -> impl Strategy<Value = u128> {
        (0..116_u32, any::<u128>()).prop_map(|(bits, time)| time & ((1 << bits) - 1))
    }

    proptest! {
        #[test]
        fn a_mark_reads_as_the_state_that_it_was_written_for(paid in 0..Moment::NEVER.0, stored in 0..=1_u64 << 40) {
            let state = State { paid: Moment(paid), stored };
            let read = State::from_mark(state.to_mark());
            prop_assert_eq!(read.stored, stored);
            let late = read.paid.0 - paid;
            let last_bit = if stored == 0 { 2 } else { 1 << TIME_SHIFT };
            prop_assert!(late < last_bit);
        }

        #[test]
        fn no_warmup_overflows(rule in rule(), time in time(), now: u64) {
            prop_assert!(rule.full <= 1 << STORED_BITS && rule.threshold <= rule.full);
            let mark = rule.present(rule.first(), now);
            let after = rule.charged(mark, Span(time | (1 << 54)));
            prop_assert!(after > mark);
            let _ = rule.charged(rule.present(after, u64::MAX), Span(u128::MAX));
        }

        /// However a request is cut up, what is charged beyond the stable price is the same as long
        /// as the same is left in store.
        #[test]
        fn a_surcharge_is_the_sum_of_its_parts(rule in rule(), times in prop::collection::vec(time(), 1..20)) {
            let start = State::from_mark(rule.first());
            let mut mark = rule.first();
            let mut total = 0_u128;
            for time in &times {
                mark = rule.charged(mark, Span(*time));
                total += time;
            }
            let end = State::from_mark(mark);
            let surcharge = rule.surcharge(start.stored).0 - rule.surcharge(end.stored).0;
            let exact = start.paid.after(Span(total)).after(Span(surcharge));
            // Each mark is rounded up by less than the last bit of the time.
            prop_assert!(end.paid >= exact.min(Moment::NEVER));
            prop_assert!(end.paid.0 - exact.0 <= (times.len() as u128) << TIME_SHIFT);
            // And nothing is lost of what is stored, but by a unit for each.
            let stored = rule.length(start.stored).0.saturating_sub(total);
            prop_assert!(rule.length(end.stored).0 >= stored);
            prop_assert!(rule.length(end.stored).0 - stored <= (times.len() as u128) << rule.unit);
        }

        #[test]
        fn the_curve_is_guavas(seconds in 0.001..10_000.0_f64, factor in 1.0..100.0_f64, per_second in 0.01..1e6_f64, stored in 0.0..1.0_f64, taken in 0.0..1.2_f64) {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some seconds")]
            let nanos = (seconds * 1e9) as u64;
            let rule = Warmup::new(nanos, factor);
            // Of the same length: where all of the warm-up is short, a nanosecond of it tells.
            let seconds = Duration::from_nanos(nanos).as_secs_f64();
            // As in Guava's SmoothWarmingUp, in seconds.
            let interval = 1.0 / per_second;
            let threshold = 0.5 * seconds / interval;
            let most = threshold + 2.0 * seconds / (interval + factor * interval);
            let slope = (factor * interval - interval) / (most - threshold);
            let (stored, permits) = (stored * most, taken * most);
            let from_store = permits.min(stored);
            let above = (stored - threshold).max(0.0);
            let taken_above = above.min(from_store);
            let price = |above: f64| interval + above * slope;
            let wait = taken_above * (price(above) + price(above - taken_above)) / 2.0
                + (permits - taken_above) * interval;

            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in 2^-64 ns")]
            let span = |seconds: f64| Span((seconds * 1e9 * 64_f64.exp2()) as u128);
            let start = State { paid: Moment(0), stored: rule.units(span(stored * interval)).min(rule.full) };
            let end = State::from_mark(rule.charged(start.to_mark(), span(permits * interval)));
            let ours = (end.paid - start.paid).in_units_of(Span::of_nanos(SECOND));
            prop_assert!((ours - wait).abs() <= 1e-9 * (wait + seconds), "{ours} and {wait}");
        }

        #[test]
        fn who_comes_again_at_its_turn_finds_the_same_mark(rule in rule(), time in time()) {
            let mark = rule.charged(rule.first(), Span(time));
            if let Some(turn) = rule.turn(mark) {
                prop_assert_eq!(rule.present(mark, turn), mark);
            }
        }
    }

    #[test]
    fn a_warm_up_takes_its_time_down_to_the_threshold_and_half_of_it_from_there() {
        let rule = Warmup::new(4 * SECOND, 3.0);
        let mark = rule.charged(rule.first(), Span::of_nanos(2 * SECOND));
        assert_eq!(rule.turn(mark), Some(4 * SECOND));
        let mark = rule.charged(mark, Span::of_nanos(2 * SECOND));
        assert_eq!(rule.turn(mark), Some(6 * SECOND));
        assert_eq!(rule.stored(mark, 6 * SECOND), Span(0));
        assert_eq!(rule.stored(mark, 7 * SECOND), Span::of_nanos(SECOND));
        assert_eq!(rule.stored(mark, 99 * SECOND), Span::of_nanos(4 * SECOND));
    }
}
