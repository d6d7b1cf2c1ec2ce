//! The header fields that tell of limits.

use super::Policy;
use super::policies::{Ask, Asks};
use crate::keyed::Standing;
use crate::rate::Rate;
use http::header::{Entry, HeaderName};
use http::{HeaderMap, HeaderValue};
use std::fmt::Write;
use std::time::Duration;

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const X_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const X_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const X_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// The largest whole number of a structured field (RFC 9651).
const LARGEST: u64 = 999_999_999_999_999;

/// Adds `RateLimit-Policy`. An answer that has it from another layer has both.
pub(super) fn add_policies(headers: &mut HeaderMap, asks: &Asks) {
    let items = limited(asks).map(|(ask, Standing { rate, burst, .. })| {
        (ask.policy, [("q", Some(burst.into())), ("w", window(rate, burst))])
    });
    append(headers, RATE_LIMIT_POLICY, items);
}

/// Adds `RateLimit`. An answer that has it from another layer has both.
pub(super) fn add_limits(headers: &mut HeaderMap, asks: &Asks) {
    let items = limited(asks).map(|(ask, standing)| {
        let remaining = remaining(standing);
        (ask.policy, [("r", Some(remaining.into())), ("t", next(ask, remaining))])
    });
    append(headers, RATE_LIMIT, items);
}

/// Sets the `X-RateLimit-*` fields by the policy of which the least is left, where another layer has not
/// done so.
pub(super) fn add_x(headers: &mut HeaderMap, asks: &Asks) {
    let tightest = limited(asks).min_by_key(|(_, standing)| remaining(*standing));
    let Some((ask, standing)) = tightest else { return };
    let mut set = |name, value: u64| {
        if let Entry::Vacant(field) = headers.entry(name) {
            field.insert(value.into());
        }
    };
    let remaining = remaining(standing);
    set(X_LIMIT, standing.burst.into());
    set(X_REMAINING, remaining.into());
    set(X_RESET, next(ask, remaining).unwrap_or(0));
}

/// Without those that have no limit.
fn limited(asks: &Asks) -> impl Iterator<Item = (Ask<'_>, Standing)> {
    let all = asks.iter().map(|ask| (ask, ask.policy.limiter().standing(ask.key)));
    all.filter(|(_, standing)| !standing.rate.is_unlimited())
}

/// Whole permits; none while there is debt.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn remaining(standing: Standing) -> u32 {
    standing.tokens as u32
}

/// In how many seconds there is one permit more than so many. `None` if there never is.
fn next(ask: Ask<'_>, remaining: u32) -> Option<u64> {
    let more = remaining.saturating_add(1);
    let wait = ask.policy.limiter().peek_many(ask.key, more).err()?.retry_after()?;
    Some(seconds(wait))
}

/// In how many seconds `burst` permits are minted. `None` if they never are.
fn window(rate: Rate, burst: u32) -> Option<u64> {
    if rate.is_zero() || rate.is_unlimited() {
        return None;
    }
    let nanos = rate.period().as_nanos() * u128::from(burst);
    let seconds = nanos.div_ceil(u128::from(rate.tokens()) * 1_000_000_000);
    Some(u64::try_from(seconds).map_or(LARGEST, |seconds| seconds.clamp(1, LARGEST)))
}

/// Whole seconds, rounded up: at least 1.
pub(super) fn seconds(wait: Duration) -> u64 {
    let begun = u64::from(wait.subsec_nanos() > 0);
    wait.as_secs().saturating_add(begun).clamp(1, LARGEST)
}

/// Appends a list of names with parameters, if there is anything in it.
fn append<'a>(
    headers: &mut HeaderMap,
    field: HeaderName,
    items: impl Iterator<Item = (&'a Policy, [(&'static str, Option<u64>); 2])>,
) {
    let mut list = String::with_capacity(64);
    for (policy, parameters) in items {
        if !list.is_empty() {
            list.push_str(", ");
        }
        list.push_str(policy.quoted_name());
        for (name, value) in parameters {
            if let Some(value) = value {
                let _ = write!(list, ";{name}={value}");
            }
        }
    }
    match HeaderValue::try_from(list) {
        Ok(value) if !value.is_empty() => drop(headers.append(field, value)),
        _ => {}
    }
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
    fn seconds_are_rounded_up_and_never_zero() {
        let waits = [0, 1, 999_999_999, 1_000_000_000, 1_000_000_001];
        let told = waits.map(|nanos| seconds(Duration::from_nanos(nanos)));
        assert_eq!(told, [1, 1, 1, 1, 2]);
        assert_eq!(seconds(Duration::MAX), LARGEST);
    }
}
