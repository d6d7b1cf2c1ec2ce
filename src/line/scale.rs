//! How many grains a token has: chosen once, when a limiter is built.

use super::position::Grains;
use crate::rate::Rate;
use crate::rate::ratio::reduced;

/// The fastest and the largest that a limiter may be set to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) rate: Rate,
    pub(crate) burst: u32,
}

impl Bounds {
    /// What a limiter that starts at `rate` and `burst` can be set to when nothing else is said.
    ///
    /// One slower than once a minute keeps finer grains, so that it is on time to the nanosecond,
    /// and has less room above.
    pub(crate) fn usual(rate: Rate, burst: u32) -> Self {
        let slow = Rate::per_minute(1).exceeds(rate) && !rate.is_zero();
        let (per_second, tokens) = if slow { (50_000, 10_000) } else { (10_000_000, 10_000_000) };
        Self { rate: Rate::per_second(per_second), burst: tokens }.at_least(rate, burst)
    }

    /// These bounds, wide enough for a limiter that starts at `rate` and `burst`.
    ///
    /// An unlimited rate mints no grains, so it asks for no room.
    pub(crate) fn at_least(self, rate: Rate, burst: u32) -> Self {
        let faster = rate.exceeds(self.rate) && !rate.is_unlimited();
        Self { rate: if faster { rate } else { self.rate }, burst: self.burst.max(burst) }
    }
}

/// How time and the line are divided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    /// How many ticks of the clock a second has.
    pub(crate) ticks: u64,
    /// How many grains ahead the line can be booked. A bucket holds a quarter of them at most.
    pub(crate) room: u64,
}

impl Grid {
    /// Nanoseconds and 64 bits.
    pub(crate) const NANOS: Self = Self { ticks: 1_000_000_000, room: Grains::ROOM.0 };
    /// Microseconds and the 53 bits of a double.
    #[cfg(feature = "redis")]
    pub(crate) const MICROS: Self = Self { ticks: 1_000_000, room: 1 << 52 };

    /// The tokens and ticks of a rate in lowest terms: (1, 0) when unlimited, (0, 1) when zero.
    pub(crate) fn reduced(self, rate: Rate) -> (u128, u128) {
        let (tokens, nanos) = rate.reduced();
        let nanos_of_tick = u128::from(Self::NANOS.ticks / self.ticks);
        reduced(u128::from(tokens) * nanos_of_tick, u128::from(nanos))
    }
}

/// The length of a token for a limiter that starts at `rate` and stays within `bounds`: as fine
/// as the line has room for, and if possible such that `rate` mints whole grains each tick.
pub(crate) fn fit(rate: Rate, bounds: Bounds, grid: Grid) -> Grains {
    // The period of an unlimited rate is zero; any token suits it.
    let period = u64::try_from(grid.reduced(rate).1).expect("no more than in nanoseconds").max(1);
    let limit = |years| limit(rate, bounds, years, grid);
    let (finest, finer) = (limit(30), limit(1));
    let usual = |limit, period| largest_usual(limit, period, grid);
    let whole = |limit| usual(limit, period).or_else(|| largest_multiple(limit, period));
    let token = whole(finest).or_else(|| whole(finer)).or_else(|| usual(finest, 1));
    Grains(token.unwrap_or(1))
}

/// The longest token that leaves room for all of `bounds`, and for the debt of so many years or
/// of 2^26 tokens, whichever is less.
fn limit(rate: Rate, bounds: Bounds, years: u64, grid: Grid) -> u64 {
    let room = grid.room;
    let for_burst = room / 4 / u64::from(bounds.burst.max(1));
    let debt = tokens_in(rate, years * 365 * 86_400).clamp(1, 1 << 26);
    let for_a_lap_of_a_second = room / tokens_in(bounds.rate, 1).max(1);
    for_burst.min(room / debt).min(for_a_lap_of_a_second)
}

/// How many tokens `rate` mints in so many seconds, rounded up; all there are if it mints none or
/// everything, since such a limiter may be set to anything.
fn tokens_in(rate: Rate, seconds: u64) -> u64 {
    if rate.is_zero() || rate.is_unlimited() {
        return u64::MAX;
    }
    let (tokens, period) = rate.reduced();
    let nanos = u128::from(seconds) * 1_000_000_000;
    let minted = (u128::from(tokens) * nanos).div_ceil(u128::from(period));
    u64::try_from(minted).unwrap_or(u64::MAX)
}

/// Days, hours, minutes and seconds in ticks, and 5, 2 and 1 of each smaller power of ten:
/// lengths at which the rates that people set later round nothing either.
fn largest_usual(limit: u64, period: u64, grid: Grid) -> Option<u64> {
    let days_to_minutes = [86_400, 3_600, 60].map(|seconds| seconds * grid.ticks);
    let powers = (0..=9).rev().map(|exponent| 10_u64.pow(exponent));
    let decimals = powers.flat_map(|power| [5 * power, 2 * power, power]);
    days_to_minutes.into_iter().chain(decimals).find(|token| *token <= limit && token % period == 0)
}

fn largest_multiple(limit: u64, period: u64) -> Option<u64> {
    Some(limit / period * period).filter(|token| *token > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn token(rate: Rate, burst: u32) -> u64 {
        fit(rate, Bounds::usual(rate, burst), Grid::NANOS).0
    }

    #[test]
    fn usual_limiters_have_minutes_and_slow_ones_days() {
        assert_eq!(token(Rate::per_second(100), 10), 60_000_000_000);
        assert_eq!(token(Rate::per_minute(1), 1), 60_000_000_000);
        assert_eq!(token(Rate::per_hour(7), 1), 3_600_000_000_000);
        assert_eq!(token(Rate::per_day(1), 10_000), 86_400_000_000_000);
        assert_eq!(token(Rate::ZERO, 1), 60_000_000_000);
        assert_eq!(token(Rate::UNLIMITED, 1), 60_000_000_000);
    }

    #[test]
    fn large_bursts_and_rates_have_what_is_left() {
        assert_eq!(token(Rate::per_second(100), u32::MAX), 200_000_000);
        assert_eq!(token(Rate::per_second(10_000_000_000), 1), 200_000_000);
        assert_eq!(token(Rate::per_second(1_000_000_000_000), 1), 2_000_000);
    }

    #[test]
    fn an_odd_period_is_rounded_nowhere() {
        for millis in [7, 13, 997] {
            let rate = Rate::every(Duration::from_millis(millis));
            assert_eq!(token(rate, 10) % (millis * 1_000_000), 0);
        }
    }

    #[test]
    fn all_that_a_limiter_may_be_set_to_has_room() {
        let rates = [Rate::per_day(1), Rate::per_hour(7), Rate::per_second(3), Rate::ZERO];
        for rate in rates {
            for burst in [1, 10_000, 10_000_000, u32::MAX] {
                let bounds = Bounds::usual(rate, burst);
                let token = u128::from(fit(rate, bounds, Grid::NANOS).0);
                let room = u128::from(Grains::ROOM.0);
                assert!(4 * u128::from(bounds.burst) * token <= room);
                assert!(u128::from(tokens_in(bounds.rate, 1)) * token <= room);
            }
        }
    }
}
