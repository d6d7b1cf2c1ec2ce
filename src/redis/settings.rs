//! What a limit is set to, as the server keeps it.
//!
//! A script reckons in doubles, so all numbers and the products of two stay below 2^53:
//!
//! * a bucket holds up to 2^50 grains, and up to 2^52 are booked ahead of what has overflowed;
//! * what is minted is at most 2^51 when it is written: then all positions are put back by a lap of 2^50.
//!   It can grow, until it is read again, to that and the 2^52 ahead; once all of these are minted, the bucket
//!   is full and the line starts anew, at zero;
//! * what is minted in a time is `time / over * grains`, with the time split into whole multiples of
//!   `over` and a rest below it: the product of rest and grains is below `over * grains`.

use crate::line::{Bounds, Grid, fit};
use crate::rate::Rate;
use crate::rate::ratio::reduced;
use std::time::Duration;

/// All that follows from rate and burst, in whole numbers that a double holds.
///
/// A token is `token` grains. In a microsecond `grains / over` of them are minted: `over` is 1 if the
/// rate mints whole grains. A rate of (1, 0) is unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    /// How often they were changed.
    pub(super) version: u64,
    pub(super) token: u64,
    pub(super) grains: u64,
    pub(super) over: u64,
    pub(super) capacity: u64,
}

/// What can be set.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    Rate(Rate),
    Burst(u32),
}

/// Stands for what is not changed.
const AS_IT_IS: f64 = -1.0;

/// The product of `grains` and `over` stays below this, so that the script rounds nowhere.
const EXACT: u128 = 1 << 52;

impl Settings {
    pub(super) const COUNT: usize = 5;

    pub(super) fn new(rate: Rate, burst: u32, bounds: Bounds) -> Self {
        let token = fit(rate, bounds, Grid::MICROS).0;
        Self { version: 0, token, grains: 0, over: 1, capacity: 0 }
            .with_rate(rate)
            .with_burst(burst)
    }

    /// Grains and time and capacity, as far as they are changed.
    pub(super) fn changed_by(self, change: Change) -> [f64; 3] {
        match change {
            Change::Rate(rate) => {
                let [.., grains, over, _] = self.with_rate(rate).to_numbers();
                [grains, over, AS_IT_IS]
            }
            Change::Burst(burst) => {
                let [.., capacity] = self.with_burst(burst).to_numbers();
                [AS_IT_IS, AS_IT_IS, capacity]
            }
        }
    }

    /// Whether these are older settings of the same limit.
    pub(super) fn is_before(self, other: Self) -> bool {
        self.token == other.token && self.version < other.version
    }

    fn with_rate(self, rate: Rate) -> Self {
        let (tokens, micros) = Grid::MICROS.reduced(rate);
        if micros == 0 {
            return Self { grains: 1, over: 0, ..self };
        }
        let (grains, over) = exact_or_slower(tokens * u128::from(self.token), micros);
        Self { grains, over, ..self }
    }

    fn with_burst(self, burst: u32) -> Self {
        // More than there is room for can only be asked of one that others built for less.
        let most = Grid::MICROS.room / 4 / self.token;
        Self { capacity: self.token * u64::from(burst).min(most), ..self }
    }

    pub(super) fn is_unlimited(&self) -> bool {
        self.over == 0
    }

    pub(super) fn rate(&self) -> Rate {
        if self.is_unlimited() {
            return Rate::UNLIMITED;
        }
        let token = u128::from(self.token);
        let (tokens, micros) = reduced(u128::from(self.grains), u128::from(self.over) * token);
        match (u64::try_from(tokens), u64::try_from(micros)) {
            (Ok(0), _) => Rate::ZERO,
            (Ok(tokens), Ok(micros)) => {
                Rate::new(tokens, Duration::from_micros(micros)).unwrap_or(Rate::ZERO)
            }
            _ => Rate::ZERO,
        }
    }

    pub(super) fn burst(&self) -> u32 {
        u32::try_from(self.capacity / self.token).unwrap_or(u32::MAX)
    }

    /// How many tokens so many grains are.
    #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
    pub(super) fn in_tokens(&self, grains: f64) -> f64 {
        grains / self.token as f64
    }

    #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
    pub(super) fn to_numbers(self) -> [f64; Self::COUNT] {
        let Self { version, token, grains, over, capacity } = self;
        [version, token, grains, over, capacity].map(|number| number as f64)
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "made of u64")]
    pub(super) fn from_numbers(numbers: [f64; Self::COUNT]) -> Option<Self> {
        let [version, token, grains, over, capacity] = numbers.map(|number| number as u64);
        (token > 0).then_some(Self { version, token, grains, over, capacity })
    }
}

/// The ratio in lowest terms, or the next lower one that the script can reckon with: less by two
/// parts in a million at most.
fn exact_or_slower(grains: u128, micros: u128) -> (u64, u64) {
    let (mut grains, mut over) = reduced(grains, micros);
    if grains * over >= EXACT {
        let mut power = 1;
        while (grains * power * 2 / over) * (power * 2) < EXACT {
            power *= 2;
        }
        (grains, over) = reduced(grains * power / over, power);
    }
    let fits = |number| u64::try_from(number).expect("less than 2^52");
    (fits(grains), fits(over))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn settings(rate: Rate, burst: u32) -> Settings {
        Settings::new(rate, burst, Bounds::usual(rate, burst))
    }

    #[test]
    fn usual_rates_mint_whole_grains_of_a_minute() {
        for rate in [
            Rate::per_second(1),
            Rate::per_second(3),
            Rate::per_second(100),
            Rate::per_second(1_000_000),
            Rate::per_second(10_000_000),
            Rate::per_minute(7),
            Rate::every(Duration::from_millis(5)),
        ] {
            let Settings { token, over, .. } = settings(rate, 10);
            assert_eq!((token, over), (60_000_000, 1), "{rate}");
        }
        assert_eq!(settings(Rate::per_day(1), 1).token, 86_400_000_000);
    }

    #[test]
    fn the_rate_that_a_limiter_is_built_for_rounds_nowhere() {
        for micros in [7, 997, 1_500, 7_000, 999_983, 86_399_999_999] {
            let rate = Rate::every(Duration::from_micros(micros));
            let settings = settings(rate, 10);
            assert_eq!(settings.over, 1, "{rate}");
            assert_eq!(settings.rate(), rate);
        }
    }

    #[test]
    fn unlimited_and_never_are_what_they_are() {
        for rate in [Rate::UNLIMITED, Rate::ZERO] {
            assert_eq!(settings(rate, 3).rate(), rate);
        }
    }

    fn rate() -> impl Strategy<Value = Rate> {
        let ratio = (0_u32..45).prop_flat_map(|bits| (1_u64 << bits..2 << bits, 1..9_u64 << bits));
        ratio.prop_filter_map("no rate", |(period, tokens)| {
            Rate::new(tokens, Duration::from_nanos(period)).ok()
        })
    }

    proptest! {
        #[test]
        fn any_rate_is_kept_or_a_little_slower(first in rate(), second in rate(), burst in 1..99_u32) {
            let first = settings(first, burst);
            prop_assert_eq!(first.burst(), burst);
            for (settings, rate) in [(first, None), (first.with_rate(second), Some(second))] {
                prop_assert!(u128::from(settings.grains) * u128::from(settings.over) < EXACT);
                let Some(rate) = rate else { continue };
                prop_assert!(!settings.rate().exceeds(rate));
                let slower = settings.rate().as_per_second() / rate.as_per_second();
                prop_assert!(slower > 1.0 - 2e-6, "{}", slower);
            }
        }

        #[test]
        fn settings_are_read_as_they_were_written(rate in rate(), burst in any::<u32>()) {
            let settings = settings(rate, burst);
            prop_assert_eq!(Settings::from_numbers(settings.to_numbers()), Some(settings));
        }
    }
}
