//! `ratelimit`: a token bucket over several atomics. It has nothing to await.

use super::{DAY, RATE, STOCK, on_its_own_line};
use crate::measure::{Kind, Subject};
use ratelimit::Ratelimiter;

/// Granted and denied.
///
/// # Panics
///
/// When the crate no longer accepts the conditions.
#[must_use]
pub fn subjects() -> Vec<Subject> {
    let granted = on_its_own_line(
        Ratelimiter::builder(RATE.into())
            .max_tokens(STOCK.into())
            .initial_available(STOCK.into())
            .build()
            .expect("a stocked limiter"),
    );
    let denied = on_its_own_line(
        Ratelimiter::builder(1).period(DAY).max_tokens(1).build().expect("an empty limiter"),
    );
    vec![
        Subject::sync(Kind::Granted, "ratelimit try_wait", || granted.try_wait(), Result::is_ok),
        Subject::sync(Kind::Denied, "ratelimit try_wait", || denied.try_wait(), Result::is_err),
    ]
}
