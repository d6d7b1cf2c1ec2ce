//! Values that are written as text.

use serde::de::{self, Deserializer, Visitor};
use std::fmt::{self, Display};

/// Reads a value from text by `parse`. What is wrong is told with the position of the text.
pub(super) fn read<'de, T, E: Display, D: Deserializer<'de>>(
    deserializer: D,
    expected: &'static str,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, D::Error> {
    deserializer.deserialize_str(Text { expected, parse })
}

struct Text<P> {
    expected: &'static str,
    parse: P,
}

impl<T, E: Display, P: FnOnce(&str) -> Result<T, E>> Visitor<'_> for Text<P> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<X: de::Error>(self, text: &str) -> Result<T, X> {
        (self.parse)(text).map_err(X::custom)
    }
}

/// Gives a type that is `FromStr` and `Display` what serde asks for: the text.
macro_rules! as_text {
    ($type:ty, $expected:literal) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                crate::config::text::read(deserializer, $expected, str::parse)
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    };
}

pub(super) use as_text;
