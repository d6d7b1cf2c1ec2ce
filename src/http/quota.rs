//! What a client is told of a limit, in whole permits and seconds.

use crate::rate::Rate;
use std::time::Duration;

/// The largest whole number of a structured field (RFC 9651).
const LARGEST: u64 = 999_999_999_999_999;

/// In how many seconds `burst` permits are minted, rounded up: at least 1. `None` if they never are, or
/// if there is no limit.
pub(super) fn window(rate: Rate, burst: u32) -> Option<u64> {
    if rate.is_zero() || rate.is_unlimited() {
        return None;
    }
    let nanos = rate.period().as_nanos() * u128::from(burst);
    let seconds = nanos.div_ceil(u128::from(rate.tokens()) * 1_000_000_000);
    Some(u64::try_from(seconds).map_or(LARGEST, |seconds| seconds.clamp(1, LARGEST)))
}

/// In how many seconds there is a permit more than the whole ones in `tokens`, rounded up: at least 1.
/// `None` if there never is.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
pub(super) fn next(rate: Rate, burst: u32, tokens: f64) -> Option<u64> {
    if rate.is_zero() || tokens >= f64::from(burst) {
        return None;
    }
    let missing = tokens.max(0.0).floor() + 1.0 - tokens;
    let seconds = (missing / rate.as_per_second()).ceil() as u64;
    Some(seconds.clamp(1, LARGEST))
}

/// Whole permits; none while there is debt.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
pub(super) fn remaining(tokens: f64) -> u32 {
    tokens as u32
}

/// Whole seconds, rounded up: at least 1.
pub(super) fn seconds(wait: Duration) -> u64 {
    let begun = u64::from(wait.subsec_nanos() > 0);
    wait.as_secs().saturating_add(begun).max(1)
}

#[cfg(all(test, not(paceline_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_as_long_as_it_takes_to_mint_a_burst() {
        assert_eq!(window(Rate::per_second(5), 10), Some(2));
        assert_eq!(window(Rate::per_second(3), 10), Some(4));
        assert_eq!(window(Rate::per_second(100), 10), Some(1));
        assert_eq!(window(Rate::per_minute(3), 2), Some(40));
        assert_eq!(window(Rate::per_day(1000), 1000), Some(86_400));
        assert_eq!(window(Rate::every(Duration::MAX), u32::MAX), Some(LARGEST));
        assert_eq!(window(Rate::ZERO, 10), None);
        assert_eq!(window(Rate::UNLIMITED, 10), None);
    }

    #[test]
    fn the_next_permit_comes_when_the_fraction_is_whole() {
        assert_eq!(next(Rate::per_minute(1), 10, 2.5), Some(30));
        assert_eq!(next(Rate::per_minute(1), 10, 2.0), Some(60));
        assert_eq!(next(Rate::per_minute(1), 10, -1.0), Some(120));
        assert_eq!(next(Rate::per_second(1000), 10, 2.5), Some(1));
        assert_eq!(next(Rate::per_minute(1), 10, 10.0), None);
        assert_eq!(next(Rate::ZERO, 10, 2.0), None);
    }

    #[test]
    fn seconds_are_rounded_up_and_never_zero() {
        let waits = [0, 1, 999_999_999, 1_000_000_000, 1_000_000_001];
        let told = waits.map(|nanos| seconds(Duration::from_nanos(nanos)));
        assert_eq!(told, [1, 1, 1, 1, 2]);
        assert_eq!(seconds(Duration::MAX), u64::MAX);
    }

    #[test]
    fn a_debt_leaves_nothing() {
        assert_eq!([-3.5, 0.9, 1.0, 7.999].map(remaining), [0, 0, 1, 7]);
    }
}
