//! A rate in configuration files: the text it prints.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

use super::Rate;

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Rate, D::Error> {
        deserializer.deserialize_str(RateVisitor)
    }
}

struct RateVisitor;

// Borrowed and owned strings come here too, by the defaults of the trait.
impl Visitor<'_> for RateVisitor {
    type Value = Rate;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a rate such as \"100/s\", or \"unlimited\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Rate, E> {
        text.parse().map_err(E::custom)
    }
}
