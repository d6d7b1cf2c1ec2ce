//! The header fields that tell of limits.

use super::Policy;
use super::policies::Asks;
use super::quota;
use super::take::Ask;
use http::header::{Entry, HeaderName};
use http::{HeaderMap, HeaderValue};
use std::fmt::Write;

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const X_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const X_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const X_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// Adds `RateLimit-Policy`. An answer that has it from another layer has both.
pub(super) fn add_policies(headers: &mut HeaderMap, asks: &Asks) {
    let items = limited(asks).map(|(policy, _)| {
        let (rate, burst) = (policy.limiter().rate(), policy.limiter().burst());
        (policy, [("q", Some(burst.into())), ("w", quota::window(rate, burst))])
    });
    append(headers, RATE_LIMIT_POLICY, items);
}

/// Adds `RateLimit`. An answer that has it from another layer has both.
pub(super) fn add_limits(headers: &mut HeaderMap, asks: &Asks) {
    let items = limited(asks).map(|(policy, ask)| {
        let (remaining, next) = left(policy, ask);
        (policy, [("r", Some(remaining.into())), ("t", next)])
    });
    append(headers, RATE_LIMIT, items);
}

/// Sets the `X-RateLimit-*` fields by the policy of which the least is left, where another layer has not
/// done so.
pub(super) fn add_x(headers: &mut HeaderMap, asks: &Asks) {
    let all = limited(asks).map(|(policy, ask)| (policy.limiter().burst(), left(policy, ask)));
    let Some((limit, (remaining, next))) = all.min_by_key(|(_, (remaining, _))| *remaining) else {
        return;
    };
    let mut set = |name, value: u64| {
        if let Entry::Vacant(field) = headers.entry(name) {
            field.insert(value.into());
        }
    };
    set(X_LIMIT, limit.into());
    set(X_REMAINING, remaining.into());
    set(X_RESET, next.unwrap_or(0));
}

/// Without those that have no limit.
fn limited(asks: &Asks) -> impl Iterator<Item = (&Policy, &Ask)> {
    asks.iter().filter(|(policy, _)| !policy.limiter().rate().is_unlimited())
}

/// How many permits are left, and in how many seconds there is one more.
fn left(policy: &Policy, ask: &Ask) -> (u32, Option<u64>) {
    let limiter = policy.limiter();
    let tokens = limiter.tokens(&ask.key);
    (quota::remaining(tokens), quota::next(limiter.rate(), limiter.burst(), tokens))
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
