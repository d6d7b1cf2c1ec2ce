//! What a limit is set to, as the server keeps it.

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

    pub(super) fn with_rate(self, rate: Rate) -> Self {
        let (tokens, micros) = Grid::MICROS.reduced(rate);
        if micros == 0 {
            return Self { grains: 1, over: 0, ..self };
        }
        let (grains, over) = exact_or_slower(tokens * u128::from(self.token), micros);
        Self { grains, over, ..self }
    }

    pub(super) fn with_burst(self, burst: u32) -> Self {
        Self { capacity: self.token * u64::from(burst), ..self }
    }

    pub(super) fn rate(&self) -> Rate {
        if self.over == 0 {
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
