//! How a rate is printed, and read.

use std::fmt;
use std::str::FromStr;

use super::{DAY, HOUR, MINUTE, Rate, SECOND, ratio};
use crate::error::RateError;

const MILLISECOND: u64 = 1_000_000;
const MICROSECOND: u64 = 1_000;

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_unlimited() {
            return f.pad("unlimited");
        }
        let tokens = self.tokens;
        let text = match self.period {
            SECOND => format!("{tokens}/s"),
            MINUTE => format!("{tokens}/min"),
            HOUR => format!("{tokens}/h"),
            DAY => format!("{tokens}/day"),
            period => format!("{tokens}/{}", Period(period)),
        };
        f.pad(&text)
    }
}

/// A length of time in nanoseconds, in the largest unit of up to a second that divides it.
pub(crate) struct Period(pub(crate) u64);

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = [(SECOND, "s"), (MILLISECOND, "ms"), (MICROSECOND, "us")]
            .into_iter()
            .find(|(unit, _)| self.0 % unit == 0)
            .unwrap_or((1, "ns"));
        write!(f, "{}{name}", self.0 / unit)
    }
}

/// Reads what [`Display`](fmt::Display) prints and more: see [`Rate`](Rate#text).
///
/// # Errors
///
/// A [`RateError`] that quotes the text, and says what was expected.
///
/// # Examples
///
/// ```
/// # use paceline::Rate;
/// # fn main() -> Result<(), paceline::RateError> {
/// assert_eq!("0.5 / second".parse::<Rate>()?.to_string(), "1/2s");
/// assert!("10/fortnight".parse::<Rate>().is_err());
/// # Ok(())
/// # }
/// ```
impl FromStr for Rate {
    type Err = RateError;

    fn from_str(given: &str) -> Result<Rate, RateError> {
        let text = given.trim();
        if text == "unlimited" {
            return Ok(Rate::UNLIMITED);
        }
        let Some((tokens, period)) = text.split_once('/') else {
            return Err(RateError::NotARate { given: given.to_owned() });
        };
        let (tokens, parts) = read_tokens(tokens.trim_end(), given)?;
        let read = read_period(period.trim_start());
        let (count, unit) = read.map_err(|unread| RateError::of(given, unread))?;
        // A token in parts is a whole token in as many periods.
        let period = count
            .checked_mul(u128::from(unit))
            .and_then(|period| period.checked_mul(parts))
            .ok_or_else(|| too_many_digits(given))?;
        Rate::exact(tokens, period, || given.to_owned())
    }
}

/// A decimal, as a ratio in lowest terms: 0.5 is (1, 2).
fn read_tokens(tokens: &str, given: &str) -> Result<(u128, u128), RateError> {
    let (whole, fraction) = tokens.split_once('.').unwrap_or((tokens, "0"));
    if !(is_digits(whole) && is_digits(fraction)) {
        let given = given.to_owned();
        return Err(if tokens.starts_with('-') {
            RateError::Negative { given }
        } else {
            let tokens = tokens.to_owned();
            RateError::BadTokens { given, tokens }
        });
    }
    let fraction = fraction.trim_end_matches('0');
    let numerator = format!("{whole}{fraction}").parse().ok();
    let denominator =
        u32::try_from(fraction.len()).ok().and_then(|places| 10_u128.checked_pow(places));
    match (numerator, denominator) {
        (Some(numerator), Some(denominator)) => Ok(ratio::reduced(numerator, denominator)),
        _ => Err(too_many_digits(given)),
    }
}

/// Why a period can't be read.
#[derive(Clone, Copy)]
pub(crate) enum Unread<'a> {
    Count(&'a str),
    Unit(&'a str),
    AmbiguousUnit(&'a str),
    TooManyDigits,
}

impl RateError {
    fn of(given: &str, unread: Unread<'_>) -> Self {
        let given = given.to_owned();
        match unread {
            Unread::Count(count) => Self::BadCount { given, count: count.to_owned() },
            Unread::Unit(unit) => Self::UnknownUnit { given, unit: unit.to_owned() },
            Unread::AmbiguousUnit(unit) => Self::AmbiguousUnit { given, unit: unit.to_owned() },
            Unread::TooManyDigits => Self::TooManyDigits { given },
        }
    }
}

/// A count, 1 unless written, and its unit in nanoseconds.
pub(crate) fn read_period(period: &str) -> Result<(u128, u64), Unread<'_>> {
    let unit_at = period.find(char::is_alphabetic).unwrap_or(period.len());
    let (count, unit) = period.split_at(unit_at);
    let count = count.trim_end();
    if !(count.is_empty() || is_digits(count)) {
        return Err(Unread::Count(count));
    }
    let unit = read_unit(unit)?;
    if count.is_empty() {
        return Ok((1, unit));
    }
    let count = count.parse().map_err(|_| Unread::TooManyDigits)?;
    Ok((count, unit))
}

fn read_unit(unit: &str) -> Result<u64, Unread<'_>> {
    match unit {
        "s" | "sec" | "second" | "seconds" => Ok(SECOND),
        "min" | "minute" | "minutes" => Ok(MINUTE),
        "h" | "hr" | "hour" | "hours" => Ok(HOUR),
        "d" | "day" | "days" => Ok(DAY),
        "ms" => Ok(MILLISECOND),
        // Keyboards give the micro sign, U+00B5; Unicode prefers the Greek letter, U+03BC.
        "us" | "\u{b5}s" | "\u{3bc}s" => Ok(MICROSECOND),
        "ns" => Ok(1),
        "m" => Err(Unread::AmbiguousUnit(unit)),
        _ => Err(Unread::Unit(unit)),
    }
}

/// Stricter than `str::parse`, which takes a plus sign.
fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn too_many_digits(given: &str) -> RateError {
    RateError::TooManyDigits { given: given.to_owned() }
}
