//! Between `f64` and exact ratios. All decisions are made on whole numbers: a float is only taken
//! apart here, or put together.

use super::ratio::Interval;
use super::{Rate, SECOND};
use crate::error::RateError;

/// Bits below the leading one of an `f64`'s mantissa, which is not stored.
const MANTISSA_BITS: u32 = f64::MANTISSA_DIGITS - 1;
const LEADING_ONE: u64 = 1 << MANTISSA_BITS;
/// The biased exponent of an `f64` whose mantissa, read as a whole number, is its value.
const WHOLE: u32 = 1023 + MANTISSA_BITS;

/// 2^40 is beyond 10^12 tokens per second; such numbers are refused unseen.
const TOO_FAST: u64 = 1023 + 40;
/// 2^-35 tokens per second is less than one in `u64::MAX` ns by nearly half, which no rounding
/// makes good. Subnormal numbers are far below.
const TOO_SLOW: u64 = 1023 - 35;

pub(super) fn rate_from(per_second: f64) -> Result<Rate, RateError> {
    if per_second.is_nan() {
        return Err(RateError::NotANumber);
    }
    let given = || format!("{per_second:?} per second");
    let bits = per_second.to_bits();
    if bits << 1 == 0 {
        return Ok(Rate::ZERO);
    }
    if per_second.is_sign_negative() {
        return Err(RateError::Negative { given: given() });
    }
    if per_second.is_infinite() {
        return Ok(Rate::UNLIMITED);
    }
    match bits >> MANTISSA_BITS {
        TOO_FAST.. => return Err(RateError::TooFast { given: given() }),
        ..TOO_SLOW => return Err(RateError::PeriodTooLong { given: given() }),
        _ => {}
    }
    let seconds = reading_back(bits);
    let (tokens, period) = seconds.simplest();
    Rate::exact(tokens, period * u128::from(SECOND), given).or_else(|_| {
        // The same numbers, per nanosecond.
        let nanoseconds =
            Interval { denominator: seconds.denominator * u128::from(SECOND), ..seconds };
        let (tokens, period) = nanoseconds.simplest();
        Rate::exact(tokens, period, given)
    })
}

/// All numbers whose nearest `f64` is this one, in quarters of its last place.
///
/// For positive normal numbers from 2^-35 to below 2^40, where the denominator is at most 2^89.
fn reading_back(bits: u64) -> Interval {
    let fraction = bits & (LEADING_ONE - 1);
    let mantissa = u128::from(LEADING_ONE | fraction);
    let places = u64::from(WHOLE) - (bits >> MANTISSA_BITS);
    // Below a power of two, the numbers lie twice as close.
    let half_below = if fraction == 0 { 1 } else { 2 };
    Interval {
        low: 4 * mantissa - half_below,
        high: 4 * mantissa + 2,
        denominator: 1 << (places + 2),
        // Half-way between two numbers, the one with the even mantissa is taken.
        closed: fraction % 2 == 0,
    }
}

/// The `f64` nearest to the ratio, ties to even: for denominators above 0 and ratios that are zero
/// or not subnormal, nor beyond the largest.
pub(super) fn nearest(numerator: u128, denominator: u64) -> f64 {
    if numerator == 0 {
        return 0.0;
    }
    // As far up as it goes, so that the quotient has 64 bits at least: 53 to keep and some to
    // round by.
    let up = numerator.leading_zeros();
    let shifted = numerator << up;
    let denominator = u128::from(denominator);
    let (quotient, rest) = (shifted / denominator, shifted % denominator);

    let down = u128::BITS - quotient.leading_zeros() - f64::MANTISSA_DIGITS;
    let kept = quotient >> down;
    let dropped = quotient - (kept << down);
    let half = 1 << (down - 1);
    let round_up = dropped > half || (dropped == half && (rest != 0 || kept % 2 == 1));

    // The leading one is not stored: added, it raises the exponent by one. So does a mantissa that
    // rounding makes overflow, which is just what it should do.
    let exponent = u128::from(WHOLE + down - up - 1);
    let bits = (exponent << MANTISSA_BITS) + kept + u128::from(round_up);
    f64::from_bits(u64::try_from(bits).unwrap_or(f64::INFINITY.to_bits()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numerator over the interval's denominator, with one more bit to tell the ends apart.
    fn at(interval: Interval, twice: u128) -> f64 {
        let shift = interval.denominator.trailing_zeros() + 1;
        // Exact: the denominator is a power of two, so it comes off the exponent.
        nearest(twice, 1) * 0.5_f64.powi(i32::try_from(shift).unwrap())
    }

    #[test]
    fn a_hair_above_half_way_rounds_up() {
        // So near that the quotient does not show it, only what is left over.
        let (even, denominator) = (1_u128 << 53, 1_u64 << 63);
        let half_way = (even + 1) * u128::from(denominator);
        let float = |whole: u128| nearest(whole, 1).to_bits();
        assert_eq!(nearest(half_way - 1, denominator).to_bits(), float(even));
        assert_eq!(nearest(half_way, denominator).to_bits(), float(even));
        assert_eq!(nearest(half_way + 1, denominator).to_bits(), float(even + 2));
    }

    #[test]
    fn the_interval_ends_where_another_number_begins() {
        for number in [1.0, 1.5, 0.1, 0.25, 10.0 / 13.0, 1e12, 2_f64.powi(-35), 2_f64.powi(39)] {
            for bits in number.to_bits() - 2..=number.to_bits() + 2 {
                if bits >> MANTISSA_BITS < TOO_SLOW {
                    continue;
                }
                let number = f64::from_bits(bits);
                let interval = reading_back(bits);
                let (low, high) = (2 * interval.low, 2 * interval.high);
                for inside in [low + 1, high - 1] {
                    assert_eq!(at(interval, inside).to_bits(), bits, "{number:?}");
                }
                for end in [low, high] {
                    assert_eq!(at(interval, end).to_bits() == bits, interval.closed, "{number:?}");
                }
                for outside in [low - 1, high + 1] {
                    assert_ne!(at(interval, outside).to_bits(), bits, "{number:?}");
                }
            }
        }
    }
}
