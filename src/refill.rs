//! [`Refill`]: how permits come in, and the periods in which they do.

use crate::line::Minting;
use crate::rate::Rate;
use crate::time::{Timeline, nanos, since_epoch};
use std::time::Duration;
use tokio::time::Instant;

/// How the permits of a [`Limiter`](crate::Limiter) come in:
/// [`Builder::refill`](crate::Builder::refill).
///
/// In steps, all permits of a period come at its end, as a thread would bring them that sleeps for
/// a period and then refills; there is no such thread. The period is that of the rate as it was
/// written: `60/min` is 60 permits each minute, and `1/s` one each second. (bucket4j calls this
/// `refillIntervally`, and an even refill greedy.)
///
/// # When to choose steps
///
/// To do as an upstream does that counts in periods, or because a batch at a time is wanted. An even
/// refill is smoother for all else: with steps, all who wait for a step go at once.
///
/// # Examples
///
/// ```
/// # use paceline::{BuildError, Limiter, Rate, Refill};
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter =
///     Limiter::builder(Rate::per_minute(60)).burst(60).refill(Refill::Interval).build()?;
/// limiter.acquire_many(60).await?;
/// assert_eq!(limiter.acquire().await?, Duration::from_secs(60));
/// assert!(limiter.try_acquire_many(59).is_ok(), "all of them came at once");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refill {
    /// One after the other, evenly.
    #[default]
    Even,
    /// All of a period at its end. Periods begin when the limiter is made, and again when its rate is
    /// set and when a pause ends.
    Interval,
    /// All of a period at its end, where one of the periods begins at this instant and they go on
    /// from there, whatever the rate: so the others begin at whole periods before and after it.
    ///
    /// Where the platform can't tell the instant at which the period began in which the limiter is
    /// made (before the machine was started, on some), periods begin when the limiter is made.
    IntervalAligned(Instant),
}

/// When the periods begin in which permits come.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Periods {
    /// There are none: permits come evenly.
    None,
    WhenMade,
    AlignedTo(Instant),
    /// One begins with the Unix epoch, by the machine's clock when the limiter is made.
    WallClock,
    WithUse,
}

impl From<Refill> for Periods {
    fn from(refill: Refill) -> Self {
        match refill {
            Refill::Even => Self::None,
            Refill::Interval => Self::WhenMade,
            Refill::IntervalAligned(begin) => Self::AlignedTo(begin),
        }
    }
}

/// Longer than any that is likely to be set.
const LONGEST_PERIOD: Duration = Duration::from_secs(366 * 86_400);

impl Periods {
    /// How far the limiter's time must reach back so that it knows when the present period began.
    pub(crate) fn lead(self, rate: Rate) -> Duration {
        let since = match self {
            Self::None | Self::WhenMade | Self::WithUse => return Duration::ZERO,
            Self::WallClock => nanos(since_epoch()),
            Self::AlignedTo(begin) => {
                let now = Instant::now();
                if begin <= now {
                    return now - begin;
                }
                // Before it comes the rate may be set to one of a longer period.
                if now.checked_sub(LONGEST_PERIOD).is_some() {
                    return LONGEST_PERIOD.max(Duration::from_nanos(rate.period));
                }
                let ahead = nanos(begin - now);
                (rate.period - ahead.checked_rem(rate.period).unwrap_or(0)) % rate.period.max(1)
            }
        };
        Duration::from_nanos(since.checked_rem(rate.period).unwrap_or(0))
    }

    pub(crate) fn minting(self, time: &Timeline) -> Minting {
        match self {
            Self::None => Minting::Even,
            Self::WhenMade => Minting::InSteps,
            Self::AlignedTo(begin) => Minting::InStepsFrom(time.nanos(begin)),
            Self::WallClock => Minting::InStepsFrom(0),
            Self::WithUse => Minting::InStepsFromUse,
        }
    }
}
