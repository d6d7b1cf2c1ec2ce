//! Why text in a configuration was refused.

use super::route::PathPattern;
use crate::error::{BuildError, RateError};
use std::error::Error;
use std::fmt::{self, Display, Formatter};

/// Why text in a configuration was refused. What was given is quoted.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ConfigError {
    /// The rate that a limiter begins with.
    Rate(RateError),
    /// A setting of a limiter that there is not.
    UnknownSetting {
        /// The setting, as `name=value`.
        given: String,
    },
    /// A setting of a limiter that is said twice.
    RepeatedSetting {
        /// The name of the setting.
        name: String,
    },
    /// A number that is none, or does not fit.
    BadNumber {
        /// The number.
        given: String,
    },
    /// A length of time.
    BadDuration {
        /// The length of time.
        given: String,
        /// What is wrong with it.
        why: String,
    },
    /// A limiter whose settings do not fit together.
    Build(BuildError),
    /// The name of a method.
    BadMethod {
        /// The name.
        given: String,
    },
    /// A pattern for paths.
    BadPath {
        /// The pattern.
        given: String,
        /// What is wrong with it.
        why: String,
    },
    /// Where the key of a request comes from.
    BadKey {
        /// The key.
        given: String,
    },
    /// A key by a parameter that the path has not.
    NoSuchParam {
        /// The name of the parameter.
        param: String,
        /// The path.
        path: Option<PathPattern>,
    },
}

impl From<RateError> for ConfigError {
    fn from(error: RateError) -> Self {
        Self::Rate(error)
    }
}

impl From<BuildError> for ConfigError {
    fn from(error: BuildError) -> Self {
        Self::Build(error)
    }
}

impl Display for ConfigError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate(error) => error.fmt(f),
            Self::UnknownSetting { given } => write!(
                f,
                "unknown setting {given:?}, expected a rate followed by settings as in \
                 \"100/s burst=20 max_wait=250ms\"; there are burst, initial, max_burst, max_rate, \
                 max_wait, max_waiters, precise and slack"
            ),
            Self::RepeatedSetting { name } => write!(f, "the setting {name} is given twice"),
            Self::BadNumber { given } => {
                write!(f, "invalid number {given:?}, expected a whole number up to 4294967295")
            }
            Self::BadDuration { given, why } => write!(f, "invalid duration {given:?}: {why}"),
            Self::Build(error) => error.fmt(f),
            Self::BadMethod { given } => {
                write!(f, "invalid method {given:?}, expected a name such as \"GET\"")
            }
            Self::BadPath { given, why } => write!(f, "invalid path {given:?}: {why}"),
            Self::BadKey { given } => write!(
                f,
                "invalid key {given:?}, expected \"all\", \"client\", \"path\", \
                 \"header:NAME\" or \"param:NAME\""
            ),
            Self::NoSuchParam { param, path: Some(path) } => {
                write!(f, "the key is the parameter {param:?}, which the path {path} has not")
            }
            Self::NoSuchParam { param, path: None } => {
                write!(f, "the key is the parameter {param:?}, but there is no path")
            }
        }
    }
}

impl Error for ConfigError {}
