//! The settings of a limiter.

use super::duration;
use super::error::ConfigError;
use crate::builder::Builder;
use crate::error::BuildError;
use crate::limiter::Limiter;
use crate::rate::Rate;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The settings of a [`Limiter`], as a [`Builder`] has them.
///
/// In a configuration it is text, the rate and what else is set, or a table of the same names. It prints
/// as the text, and reads back equal:
///
/// ```text
/// 100/s
/// 20/min burst=5 initial=0 max_wait=250ms max_waiters=100
/// 1000/s burst=50 slack=0s precise=2ms max_rate=5000/s max_burst=500
/// ```
///
/// Durations are a whole number and a unit, as the period of a [rate](Rate#text).
///
/// # Examples
///
/// ```
/// use paceline::config::{ConfigError, LimiterConfig};
///
/// let config: LimiterConfig = "20/min burst=5 max_wait=250ms".parse()?;
/// assert_eq!(config.build()?.burst(), 5);
/// assert_eq!(config.to_string(), "20/min burst=5 max_wait=250ms");
/// let error = "20/min burst=-5".parse::<LimiterConfig>().unwrap_err();
/// assert_eq!(error.to_string(), "invalid number \"-5\", expected a whole number up to 4294967295");
/// # Ok::<(), ConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Deserialize)]
// The table; what reads either form is below.
#[serde(remote = "Self", deny_unknown_fields)]
#[non_exhaustive]
pub struct LimiterConfig {
    /// How fast permits are minted.
    pub rate: Rate,
    /// [`Builder::burst`]; 1 unless set.
    #[serde(default = "one")]
    pub burst: u32,
    /// [`Builder::initial`].
    #[serde(default)]
    pub initial: Option<u32>,
    /// [`Builder::max_wait`].
    #[serde(default, deserialize_with = "duration::deserialize")]
    pub max_wait: Option<Duration>,
    /// [`Builder::max_waiters`].
    #[serde(default)]
    pub max_waiters: Option<u32>,
    /// [`Builder::slack`].
    #[serde(default, deserialize_with = "duration::deserialize")]
    pub slack: Option<Duration>,
    /// [`Builder::precise`].
    #[serde(default, deserialize_with = "duration::deserialize")]
    pub precise: Option<Duration>,
    /// [`Builder::max_rate`].
    #[serde(default)]
    pub max_rate: Option<Rate>,
    /// [`Builder::max_burst`].
    #[serde(default)]
    pub max_burst: Option<u32>,
}

fn one() -> u32 {
    1
}

impl LimiterConfig {
    /// A limiter of `rate` of which nothing else is said.
    #[must_use]
    pub fn new(rate: Rate) -> Self {
        Self {
            rate,
            burst: one(),
            initial: None,
            max_wait: None,
            max_waiters: None,
            slack: None,
            precise: None,
            max_rate: None,
            max_burst: None,
        }
    }

    /// A builder with these settings, of which more can be said.
    pub fn builder(&self) -> Builder {
        let mut builder = Limiter::builder(self.rate).burst(self.burst);
        macro_rules! set {
            ($($setting:ident)*) => {
                $(if let Some(value) = self.$setting {
                    builder = builder.$setting(value);
                })*
            };
        }
        set!(initial max_wait max_waiters slack precise max_rate max_burst);
        builder
    }

    /// Builds a limiter.
    ///
    /// # Errors
    ///
    /// As for [`Builder::build`]. One that was read from a configuration has been built before, and
    /// builds.
    pub fn build(&self) -> Result<Limiter, BuildError> {
        self.builder().build()
    }

    fn checked(self) -> Result<Self, BuildError> {
        self.build().map(|_| self)
    }

    fn set(&mut self, given: &str) -> Result<(), ConfigError> {
        let unknown = || ConfigError::UnknownSetting { given: given.to_owned() };
        let (name, value) = given.split_once('=').ok_or_else(unknown)?;
        match name {
            "burst" => self.burst = number(value)?,
            "initial" => self.initial = Some(number(value)?),
            "max_wait" => self.max_wait = Some(duration::read(value)?),
            "max_waiters" => self.max_waiters = Some(number(value)?),
            "slack" => self.slack = Some(duration::read(value)?),
            "precise" => self.precise = Some(duration::read(value)?),
            "max_rate" => self.max_rate = Some(value.parse()?),
            "max_burst" => self.max_burst = Some(number(value)?),
            _ => return Err(unknown()),
        }
        Ok(())
    }
}

fn number(given: &str) -> Result<u32, ConfigError> {
    given.parse().map_err(|_| ConfigError::BadNumber { given: given.to_owned() })
}

impl From<&LimiterConfig> for Builder {
    fn from(config: &LimiterConfig) -> Self {
        config.builder()
    }
}

/// Reads the rate, and what else is set, in any order.
///
/// # Errors
///
/// A [`ConfigError`] that quotes what is wrong.
impl FromStr for LimiterConfig {
    type Err = ConfigError;

    fn from_str(given: &str) -> Result<Self, ConfigError> {
        // A rate may have whitespace in it, a setting has none.
        let settings_at = given.find('=').map_or(given.len(), |equals| {
            given[..equals].trim_end().rfind(char::is_whitespace).unwrap_or(0)
        });
        let (rate, settings) = given.split_at(settings_at);
        let mut config = Self::new(rate.parse()?);
        let mut seen = Vec::new();
        for setting in settings.split_whitespace() {
            config.set(setting)?;
            let name = setting.split_once('=').map_or(setting, |(name, _)| name);
            if seen.contains(&name) {
                return Err(ConfigError::RepeatedSetting { name: name.to_owned() });
            }
            seen.push(name);
        }
        Ok(config.checked()?)
    }
}

impl fmt::Display for LimiterConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rate, burst, initial, max_waiters, max_rate, max_burst, .. } = self;
        let duration = |duration: Option<Duration>| duration.map(duration::print);
        write!(f, "{rate}")?;
        if *burst != one() {
            write!(f, " burst={burst}")?;
        }
        setting(f, "initial", initial.as_ref())?;
        setting(f, "max_wait", duration(self.max_wait))?;
        setting(f, "max_waiters", max_waiters.as_ref())?;
        setting(f, "slack", duration(self.slack))?;
        setting(f, "precise", duration(self.precise))?;
        setting(f, "max_rate", max_rate.as_ref())?;
        setting(f, "max_burst", max_burst.as_ref())
    }
}

fn setting(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    value: Option<impl fmt::Display>,
) -> fmt::Result {
    value.map_or(Ok(()), |value| write!(f, " {name}={value}"))
}

impl Serialize for LimiterConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for LimiterConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            deserializer.deserialize_any(EitherForm)
        } else {
            deserializer.deserialize_str(EitherForm)
        }
    }
}

/// Reads the text or the table.
struct EitherForm;

impl<'de> Visitor<'de> for EitherForm {
    type Value = LimiterConfig;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a limit such as \"20/min burst=5\", or a table with a rate")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<LimiterConfig, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<LimiterConfig, A::Error> {
        let config = LimiterConfig::deserialize(MapAccessDeserializer::new(table))?;
        config.checked().map_err(de::Error::custom)
    }
}
