//! Why a rate was refused.

/// Why a [`Rate`](crate::Rate) was refused.
///
/// `given` is the rate as it was given: the text itself, or the numbers put into words.
///
/// # Examples
///
/// ```
/// # use paceline::Rate;
/// let error = "10/fortnight".parse::<Rate>().unwrap_err();
/// assert!(error.to_string().contains("unknown unit \"fortnight\""));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RateError {
    /// The period is zero; [`Rate::UNLIMITED`](crate::Rate::UNLIMITED) goes by its name only.
    ZeroPeriod {
        /// The rate as it was given.
        given: String,
    },
    /// Faster than 10<sup>12</sup> tokens per second.
    TooFast {
        /// The rate as it was given.
        given: String,
    },
    /// In lowest terms, the period is beyond `u64` nanoseconds, which is about 584 years.
    PeriodTooLong {
        /// The rate as it was given.
        given: String,
    },
    /// The number of tokens per second is not a number.
    NotANumber,
    /// The number of tokens is negative.
    Negative {
        /// The rate as it was given.
        given: String,
    },
    /// The text is neither tokens per period, with a `/` between them, nor `unlimited`.
    NotARate {
        /// The text.
        given: String,
    },
    /// The tokens are not written as a whole number, nor as a decimal with digits on both sides.
    BadTokens {
        /// The text.
        given: String,
        /// What stands before the `/`.
        tokens: String,
    },
    /// The number of units in the period is not written as a whole number.
    BadCount {
        /// The text.
        given: String,
        /// What stands between the `/` and the unit.
        count: String,
    },
    /// The unit of the period is none that is known, or it is missing.
    UnknownUnit {
        /// The text.
        given: String,
        /// What stands for the unit.
        unit: String,
    },
    /// The unit of the period may be read in more than one way.
    AmbiguousUnit {
        /// The text.
        given: String,
        /// What stands for the unit.
        unit: String,
    },
    /// The rate in the text has more digits than can be kept exactly.
    TooManyDigits {
        /// The text.
        given: String,
    },
}

impl std::fmt::Display for RateError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ZeroPeriod { given } => {
                write!(f, "invalid rate {given:?}: its period is zero, expected at least 1 ns")
            }
            Self::TooFast { given } => write!(
                f,
                "invalid rate {given:?}: too fast, expected at most 10^12 tokens per second"
            ),
            Self::PeriodTooLong { given } => write!(
                f,
                "invalid rate {given:?}: its period is too long, \
                 expected at most 2^64 - 1 ns (about 584 years) in lowest terms"
            ),
            Self::NotANumber => {
                write!(f, "invalid rate NaN: not a number, expected zero or more tokens per second")
            }
            Self::Negative { given } => {
                write!(f, "invalid rate {given:?}: negative, expected zero or more tokens")
            }
            Self::NotARate { given } => write!(
                f,
                "invalid rate {given:?}: expected tokens per period, such as \
                 \"100/s\", \"5/min\" or \"1/250ms\", or \"unlimited\""
            ),
            Self::BadTokens { given, tokens } => write!(
                f,
                "invalid rate {given:?}: {tokens:?} is not a number of tokens, \
                 expected a whole number or a decimal, such as \"100\" or \"0.5\""
            ),
            Self::BadCount { given, count } => write!(
                f,
                "invalid rate {given:?}: {count:?} is not a number of units, \
                 expected a whole number, as in \"1/250ms\""
            ),
            Self::UnknownUnit { given, unit } => write!(
                f,
                "invalid rate {given:?}: unknown unit {unit:?}, \
                 expected one of day, h, min, s, ms, us and ns"
            ),
            Self::AmbiguousUnit { given, unit } => write!(
                f,
                "invalid rate {given:?}: the unit {unit:?} is ambiguous, \
                 expected \"min\" for minutes or \"ms\" for milliseconds"
            ),
            Self::TooManyDigits { given } => write!(
                f,
                "invalid rate {given:?}: too many digits, expected tokens and a period \
                 in nanoseconds that, in lowest terms, fit 64 bits each"
            ),
        }
    }
}

impl std::error::Error for RateError {}
