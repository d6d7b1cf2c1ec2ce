//! The header fields that tell of limits.

use super::policies::{Ask, Asks};
use crate::line::Standing;
use crate::rate::Rate;
use http::header::{Entry, HeaderName};
use http::{HeaderMap, HeaderValue};
use std::time::Duration;

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const X_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const X_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const X_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// The largest whole number of a structured field (RFC 9651).
const LARGEST: u64 = 999_999_999_999_999;

/// Which fields an answer has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    /// `RateLimit-Policy` and `RateLimit`.
    pub(super) draft: bool,
    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset`.
    pub(super) x: bool,
}

impl Fields {
    /// Tells of the policies that a request is under, and what is left of those that `told` names.
    pub(super) fn add<'a>(
        self,
        headers: &mut HeaderMap,
        asks: &'a Asks,
        told: impl Fn(Ask<'a>) -> bool,
    ) {
        if !self.draft && !self.x {
            return;
        }
        let (mut policies, mut limits) = (None, None);
        let mut tightest: Option<Standing> = None;
        for ask in asks.iter() {
            let standing = ask.policy.limiter().standing(ask.key);
            if standing.rate.is_unlimited() {
                continue;
            }
            policies =
                Some(joined(policies, ask.policy.description(standing.rate, standing.burst)));
            if told(ask) {
                limits = Some(joined(limits, limit(ask.policy.quoted_name(), standing)));
                tightest = tightest.filter(|other| other.left <= standing.left).or(Some(standing));
            }
        }
        if self.draft {
            // An answer that has them from another layer has both.
            for (field, value) in [(RATE_LIMIT_POLICY, policies), (RATE_LIMIT, limits)] {
                value.map(|value| headers.append(field, value));
            }
        }
        if let Some(tightest) = tightest.filter(|_| self.x) {
            add_x(headers, tightest);
        }
    }
}

/// Sets the `X-RateLimit-*` fields, where another layer has not done so.
fn add_x(headers: &mut HeaderMap, tightest: Standing) {
    let mut set = |name, value: u64| {
        if let Entry::Vacant(field) = headers.entry(name) {
            field.insert(value.into());
        }
    };
    set(X_LIMIT, tightest.burst.into());
    set(X_REMAINING, tightest.left.into());
    set(X_RESET, tightest.next.map_or(0, seconds));
}

/// A policy as `RateLimit-Policy` tells of it.
pub(super) fn policy(quoted_name: &str, rate: Rate, burst: u32) -> HeaderValue {
    item(quoted_name, [(b";q=", Some(burst.into())), (b";w=", window(rate, burst))])
}

/// What is left, as `RateLimit` tells of it.
fn limit(quoted_name: &str, Standing { left, next, .. }: Standing) -> HeaderValue {
    item(quoted_name, [(b";r=", Some(left.into())), (b";t=", next.map(seconds))])
}

/// A name with parameters (RFC 9651).
fn item(quoted_name: &str, parameters: [(&[u8], Option<u64>); 2]) -> HeaderValue {
    let mut item = Vec::with_capacity(64);
    item.extend(quoted_name.as_bytes());
    for (name, value) in parameters {
        if let Some(value) = value {
            item.extend(name);
            item.extend(itoa::Buffer::new().format(value).as_bytes());
        }
    }
    HeaderValue::try_from(item).expect("a policy has made sure of its name")
}

/// A list with one item more.
fn joined(list: Option<HeaderValue>, item: HeaderValue) -> HeaderValue {
    let Some(list) = list else { return item };
    let joined = [list.as_bytes(), b", ", item.as_bytes()].concat();
    HeaderValue::from_bytes(&joined).expect("both are values")
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
