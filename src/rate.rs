//! [`Rate`]: validated, and exact to the last token.

mod float;
pub(crate) mod ratio;
#[cfg(feature = "serde")]
mod serialize;
pub(crate) mod text;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::time::Duration;

use crate::error::RateError;

const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// The fastest rate that is not unlimited, in tokens per nanosecond: 10^12 per second.
const MAX_PER_NANOSECOND: u64 = 1_000;

/// How fast tokens are minted: so many tokens per period, kept as an exact ratio.
///
/// A rate lies between [`Rate::ZERO`] (nothing is ever minted) and [`Rate::UNLIMITED`] (nothing is
/// ever refused). In between, it is at most 10<sup>12</sup> tokens per second, and its period in
/// lowest terms fits `u64` nanoseconds, which is about 584 years.
///
/// A rate prints as it was written: 60 per minute is `60/min`, not `1/s`. Equality and hashing
/// go by the value alone, so the two are equal.
///
/// # Text
///
/// [`Display`](fmt::Display) and [`FromStr`](std::str::FromStr) agree: every rate is read back
/// equal from what it prints, and then prints the same. A rate is written
///
/// * `unlimited`, or `tokens/period`, with whitespace where one likes;
/// * tokens are a whole number or an exact decimal: `0.5/s` is exactly `1/2s`;
/// * the period is a unit, or a whole number of them: `3/day`, `1/250ms`;
/// * units are `s` `sec` `second` `seconds`, `min` `minute` `minutes`, `h` `hr` `hour` `hours`,
///   `d` `day` `days`, `ms`, `us` `µs` and `ns`. There is no `m`, which may mean three things.
///
/// With the feature `serde`, a rate is serialised as this text.
///
/// # Examples
///
/// ```
/// use paceline::Rate;
/// use std::time::Duration;
///
/// # fn main() -> Result<(), paceline::RateError> {
/// let rate: Rate = "60/min".parse()?;
/// assert_eq!(rate, Rate::per_second(1));
/// assert_eq!(rate.to_string(), "60/min");
/// assert_eq!(Rate::new(10, Duration::from_secs(13))?.to_string(), "10/13s");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct Rate {
    pub(crate) tokens: u64,
    /// Nanoseconds; 0 only in `UNLIMITED`, whose tokens are 1. Cross products then order it above
    /// every other rate with no case of its own.
    pub(crate) period: u64,
}

impl Rate {
    /// No limit at all: every request passes at once.
    ///
    /// # Examples
    ///
    /// ```
    /// # use paceline::Rate;
    /// assert!(Rate::UNLIMITED.is_unlimited());
    /// assert_eq!(Rate::UNLIMITED.to_string(), "unlimited");
    /// ```
    pub const UNLIMITED: Rate = Rate { tokens: 1, period: 0 };

    /// The fastest rate that is not unlimited.
    pub(crate) const MAX: Rate = Rate { tokens: MAX_PER_NANOSECOND, period: 1 };

    /// Nothing is ever minted: the burst passes once, and then nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// # use paceline::Rate;
    /// assert!(Rate::ZERO.is_zero());
    /// assert_eq!(Rate::ZERO, Rate::per_minute(0));
    /// ```
    pub const ZERO: Rate = Rate { tokens: 0, period: SECOND };

    /// So many tokens per second; 0 is never.
    ///
    /// # Panics
    ///
    /// Beyond 10<sup>12</sup> tokens. In a constant, this is an error at compile time.
    ///
    /// # Examples
    ///
    /// ```
    /// # use paceline::Rate;
    /// const RATE: Rate = Rate::per_second(100);
    /// assert_eq!(RATE.to_string(), "100/s");
    /// ```
    #[must_use]
    #[track_caller]
    pub const fn per_second(tokens: u64) -> Rate {
        Rate::per(tokens, SECOND)
    }

    /// So many tokens per minute; 0 is never.
    ///
    /// # Panics
    ///
    /// Beyond 10<sup>12</sup> tokens per second, which is 6 · 10<sup>13</sup> tokens.
    ///
    /// # Examples
    ///
    /// ```
    /// # use paceline::Rate;
    /// assert_eq!(Rate::per_minute(5).to_string(), "5/min");
    /// assert_eq!(Rate::per_minute(60), Rate::per_second(1));
    /// ```
    #[must_use]
    #[track_caller]
    pub const fn per_minute(tokens: u64) -> Rate {
        Rate::per(tokens, MINUTE)
    }

    /// So many tokens per hour; 0 is never.
    ///
    /// # Panics
    ///
    /// Beyond 10<sup>12</sup> tokens per second, which is 3.6 · 10<sup>15</sup> tokens.
    ///
    /// # Examples
    ///
    /// ```
    /// # use paceline::Rate;
    /// assert_eq!(Rate::per_hour(1000).to_string(), "1000/h");
    /// ```
    #[must_use]
    #[track_caller]
    pub const fn per_hour(tokens: u64) -> Rate {
        Rate::per(tokens, HOUR)
    }

    /// So many tokens per day of 24 hours; 0 is never.
    ///
    /// # Panics
    ///
    /// Beyond 10<sup>12</sup> tokens per second, which is 8.64 · 10<sup>16</sup> tokens.
    ///
    /// # Examples
    ///
    /// ```
    /// # use paceline::Rate;
    /// assert_eq!(Rate::per_day(3).to_string(), "3/day");
    /// ```
    #[must_use]
    #[track_caller]
    pub const fn per_day(tokens: u64) -> Rate {
        Rate::per(tokens, DAY)
    }

    #[track_caller]
    const fn per(tokens: u64, period: u64) -> Rate {
        // The product is at most 8.64e16, for a day.
        assert!(
            tokens <= MAX_PER_NANOSECOND * period,
            "a rate must not exceed 10^12 tokens per second"
        );
        Rate { tokens, period }
    }

    /// Exactly so many tokens per period; 0 tokens are never.
    ///
    /// # Errors
    ///
    /// * [`RateError::ZeroPeriod`] for a period of zero, whatever the tokens.
    /// * [`RateError::TooFast`] beyond 10<sup>12</sup> tokens per second.
    /// * [`RateError::PeriodTooLong`] when the period, in lowest terms, is beyond `u64`
    ///   nanoseconds.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::{Rate, RateError};
    /// use std::time::Duration;
    ///
    /// # fn main() -> Result<(), RateError> {
    /// let rate = Rate::new(10, Duration::from_secs(13))?;
    /// assert_eq!(rate.to_string(), "10/13s");
    /// assert!(matches!(Rate::new(10, Duration::ZERO), Err(RateError::ZeroPeriod { .. })));
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(tokens: u64, period: Duration) -> Result<Rate, RateError> {
        Rate::exact(u128::from(tokens), period.as_nanos(), || format!("{tokens} per {period:?}"))
    }

    /// One token per interval.
    ///
    /// An interval of zero is [`Rate::UNLIMITED`]. An interval beyond `u64` nanoseconds, about 584
    /// years, is the slowest rate there is: one token per `u64::MAX` nanoseconds.
    ///
    /// # Examples
    ///
    /// ```
    /// # use paceline::Rate;
    /// # use std::time::Duration;
    /// assert_eq!(Rate::every(Duration::from_millis(250)).to_string(), "1/250ms");
    /// assert_eq!(Rate::every(Duration::ZERO), Rate::UNLIMITED);
    /// assert_eq!(Rate::every(Duration::MAX).period(), Duration::from_nanos(u64::MAX));
    /// ```
    #[must_use]
    pub const fn every(interval: Duration) -> Rate {
        // `u64::try_from` is not const, and a cast from `as_nanos` would wrap.
        let period = match interval.as_secs().checked_mul(SECOND) {
            Some(seconds) => seconds.saturating_add(interval.subsec_nanos() as u64),
            None => u64::MAX,
        };
        Rate { tokens: 1, period }
    }

    /// The simplest rate that reads back as this number of tokens per second.
    ///
    /// Infinity is [`Rate::UNLIMITED`], and zero of either sign is [`Rate::ZERO`]. Any other rate
    /// is the ratio of whole tokens to whole seconds, with the fewest seconds, whose nearest `f64`
    /// is exactly this one: 0.1 is 1 per 10 s, and 0.7692307692307693 is 10 per 13 s. A number for
    /// which those seconds are beyond `u64` nanoseconds (such as 1.0000000000000002) is the ratio
    /// of whole tokens to whole nanoseconds, with the fewest nanoseconds, that reads back.
    ///
    /// # Errors
    ///
    /// * [`RateError::NotANumber`] and [`RateError::Negative`], the latter for negative infinity
    ///   too.
    /// * [`RateError::TooFast`] beyond 10<sup>12</sup> tokens per second.
    /// * [`RateError::PeriodTooLong`] below one token in `u64::MAX` nanoseconds, about
    ///   5.42 · 10<sup>-11</sup> per second.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::{Rate, RateError};
    ///
    /// # fn main() -> Result<(), RateError> {
    /// assert_eq!(Rate::from_per_second(10.0 / 13.0)?.to_string(), "10/13s");
    /// assert_eq!(Rate::from_per_second(f64::INFINITY)?, Rate::UNLIMITED);
    /// assert_eq!(Rate::from_per_second(f64::NAN), Err(RateError::NotANumber));
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_per_second(per_second: f64) -> Result<Rate, RateError> {
        float::rate_from(per_second)
    }

    /// The one way from a ratio to a rate: as written where it fits, in lowest terms otherwise.
    fn exact(
        tokens: u128,
        period: u128,
        given: impl FnOnce() -> String,
    ) -> Result<Rate, RateError> {
        if period == 0 {
            return Err(RateError::ZeroPeriod { given: given() });
        }
        // Divided rather than multiplied, because a period read from text may take all 128 bits.
        if tokens.div_ceil(u128::from(MAX_PER_NANOSECOND)) > period {
            return Err(RateError::TooFast { given: given() });
        }
        if let (Ok(tokens), Ok(period)) = (u64::try_from(tokens), u64::try_from(period)) {
            return Ok(Rate { tokens, period });
        }
        if tokens == 0 {
            // Lowest terms would be "0/1ns", which nobody wrote.
            return Ok(Rate::ZERO);
        }
        let (tokens, period) = ratio::reduced(tokens, period);
        match (u64::try_from(tokens), u64::try_from(period)) {
            (Ok(tokens), Ok(period)) => Ok(Rate { tokens, period }),
            (_, Err(_)) => Err(RateError::PeriodTooLong { given: given() }),
            (Err(_), Ok(_)) => Err(RateError::TooManyDigits { given: given() }),
        }
    }

    /// The tokens of one [`period`](Rate::period), as written; 1 for [`Rate::UNLIMITED`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use paceline::Rate;
    /// assert_eq!(Rate::per_minute(60).tokens(), 60);
    /// ```
    #[must_use]
    pub const fn tokens(self) -> u64 {
        self.tokens
    }

    /// The period in which [`tokens`](Rate::tokens) are minted, as written; zero for
    /// [`Rate::UNLIMITED`], and for no other rate.
    ///
    /// # Examples
    ///
    /// ```
    /// # use paceline::Rate;
    /// # use std::time::Duration;
    /// assert_eq!(Rate::per_minute(60).period(), Duration::from_secs(60));
    /// ```
    #[must_use]
    pub const fn period(self) -> Duration {
        Duration::from_nanos(self.period)
    }

    /// Whether this is [`Rate::UNLIMITED`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use paceline::Rate;
    /// assert!(Rate::UNLIMITED.is_unlimited());
    /// assert!(!Rate::per_second(1).is_unlimited());
    /// ```
    #[must_use]
    pub const fn is_unlimited(self) -> bool {
        self.period == 0
    }

    /// Whether nothing is ever minted: 0 tokens, whatever the period.
    ///
    /// # Examples
    ///
    /// ```
    /// # use paceline::Rate;
    /// assert!(Rate::per_day(0).is_zero());
    /// assert!(!Rate::per_day(1).is_zero());
    /// ```
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.tokens == 0
    }

    /// Tokens per second, rounded to the nearest `f64`: to show, not to reckon with.
    ///
    /// Infinity for [`Rate::UNLIMITED`]. A rate made by
    /// [`from_per_second`](Rate::from_per_second) gives its number back to the bit.
    ///
    /// # Examples
    ///
    /// ```
    /// # use paceline::Rate;
    /// assert_eq!(Rate::per_minute(30).as_per_second(), 0.5);
    /// assert_eq!(Rate::UNLIMITED.as_per_second(), f64::INFINITY);
    /// ```
    #[must_use]
    pub fn as_per_second(self) -> f64 {
        if self.is_unlimited() {
            return f64::INFINITY;
        }
        let per_second = u128::from(self.tokens) * u128::from(SECOND);
        float::nearest(per_second, self.period)
    }

    /// Tokens and nanoseconds in lowest terms: (1, 0) when unlimited, (0, 1) when zero.
    pub(crate) fn reduced(self) -> (u64, u64) {
        ratio::reduced(self.tokens, self.period)
    }

    /// Whether this rate is faster than the other; unlimited is faster than any but itself.
    pub(crate) fn exceeds(self, other: Rate) -> bool {
        let (mine, theirs) = self.cross(other);
        mine > theirs
    }

    /// Both rates over the product of the periods, where they compare as whole numbers.
    fn cross(self, other: Rate) -> (u128, u128) {
        (
            u128::from(self.tokens) * u128::from(other.period),
            u128::from(other.tokens) * u128::from(self.period),
        )
    }
}

impl PartialEq for Rate {
    fn eq(&self, other: &Rate) -> bool {
        let (mine, theirs) = self.cross(*other);
        mine == theirs
    }
}

impl Eq for Rate {}

impl Hash for Rate {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.reduced().hash(state);
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rate({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowest_terms_are_the_same_however_a_rate_is_written() {
        assert_eq!(Rate::per_minute(60).reduced(), (1, SECOND));
        assert_eq!(Rate::per_hour(3600).reduced(), (1, SECOND));
        assert_eq!(Rate::UNLIMITED.reduced(), (1, 0));
        assert_eq!(Rate::ZERO.reduced(), (0, 1));
        assert_eq!(Rate::per_day(0).reduced(), (0, 1));
    }

    #[test]
    fn faster_is_told_exactly_and_unlimited_is_above_all() {
        let slowest = Rate { tokens: 1, period: u64::MAX };
        // One apart in a product that an f64, or 64 bits, would round away.
        let slow = Rate { tokens: u64::MAX - 1, period: u64::MAX };
        let fast = Rate { tokens: u64::MAX, period: u64::MAX };
        let ascending =
            [Rate::ZERO, slowest, slow, fast, Rate::per_second(1_000_000_000_000), Rate::UNLIMITED];
        for (i, a) in ascending.into_iter().enumerate() {
            for (j, b) in ascending.into_iter().enumerate() {
                assert_eq!(a.exceeds(b), i > j, "{a} against {b}");
            }
        }
        assert!(!Rate::per_minute(60).exceeds(Rate::per_second(1)));
    }
}
