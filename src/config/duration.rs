//! Lengths of time in configuration files: `250ms`.

use super::error::ConfigError;
use super::text;
use crate::rate::text::{Period, Unread, read_period};
use crate::time::nanos;
use serde::{Deserialize, Deserializer};
use std::time::Duration;

/// A count and a unit, as in the period of a rate.
pub(super) fn read(given: &str) -> Result<Duration, ConfigError> {
    let bad = |why: String| ConfigError::BadDuration { given: given.to_owned(), why };
    let text = given.trim();
    if text.starts_with(char::is_alphabetic) {
        return Err(bad("a number is missing, expected one as in \"250ms\"".to_owned()));
    }
    let (count, unit) = read_period(text).map_err(|unread| {
        bad(match unread {
            Unread::Count(count) => {
                format!("{count:?} is not a whole number, expected one as in \"250ms\"")
            }
            Unread::Unit(unit) => {
                format!("unknown unit {unit:?}, expected one of day, h, min, s, ms, us and ns")
            }
            Unread::AmbiguousUnit(unit) => format!(
                "the unit {unit:?} is ambiguous, expected \"min\" for minutes or \"ms\" for milliseconds"
            ),
            Unread::TooManyDigits => too_long(),
        })
    })?;
    let nanos = count.checked_mul(unit.into()).and_then(|nanos| u64::try_from(nanos).ok());
    nanos.map(Duration::from_nanos).ok_or_else(|| bad(too_long()))
}

fn too_long() -> String {
    "too long, expected at most 2^64 - 1 ns (about 584 years)".to_owned()
}

/// As it is read. What is longer than 584 years is those.
pub(super) fn print(duration: Duration) -> Period {
    Period(nanos(duration))
}

/// For a field that may be missing.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    Option::<Text>::deserialize(deserializer).map(|text| text.map(|Text(duration)| duration))
}

struct Text(Duration);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text::read(deserializer, "a duration such as \"250ms\"", |given| read(given).map(Self))
    }
}
