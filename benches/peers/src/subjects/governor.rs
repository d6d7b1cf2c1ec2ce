//! `governor`: GCRA on one word. It has two clocks: quanta's, the default, and `Instant`.

use super::{DAY, FLOOD, FLOOD_BURST, RATE, STOCK, on_its_own_line};
use crate::measure::{Kind, Subject};
use governor::{
    Quota, RateLimiter,
    clock::{MonotonicClock, QuantaClock, ReasonablyRealtime},
    middleware::NoOpMiddleware,
    state::{InMemoryState, NotKeyed},
};
use std::num::NonZeroU32;

/// governor as it comes, which the table compares with.
pub const CHECK: &str = "governor check";
/// governor as it comes, on a full bucket.
pub const CHECK_FULL: &str = "governor check, full bucket";
/// governor as it comes, awaited.
pub const UNTIL_READY: &str = "governor until_ready().await";

type Direct<C> =
    RateLimiter<NotKeyed, InMemoryState, C, NoOpMiddleware<<C as governor::clock::Clock>::Instant>>;

/// With its default clock, and with `Instant`.
#[must_use]
pub fn subjects() -> Vec<Subject> {
    let mut subjects = with_clock(&QuantaClock::default(), [CHECK, CHECK_FULL, UNTIL_READY]);
    subjects.extend(with_clock(
        &MonotonicClock,
        [
            "governor check, MonotonicClock",
            "governor check, MonotonicClock, full bucket",
            "governor until_ready().await, MonotonicClock",
        ],
    ));
    subjects
}

fn with_clock<C>(clock: &C, [check, check_full, until_ready]: [&'static str; 3]) -> Vec<Subject>
where
    C: ReasonablyRealtime + Clone + Send + Sync + 'static,
{
    let limiter = |quota| on_its_own_line(Direct::<C>::direct_with_clock(quota, clock.clone()));
    let stocked = || limiter(Quota::per_second(count(RATE)).allow_burst(count(STOCK)));
    let full = limiter(Quota::per_second(count(FLOOD)).allow_burst(count(FLOOD_BURST)));
    let granted = stocked();
    let ready = stocked();
    let denied = limiter(Quota::with_period(DAY).expect("a day is not zero"));
    assert!(denied.check().is_ok(), "a new limiter is full");
    vec![
        Subject::sync(Kind::Granted, check, || granted.check(), Result::is_ok),
        Subject::sync(Kind::Granted, check_full, || full.check(), Result::is_ok),
        Subject::sync(Kind::Denied, check, || denied.check(), Result::is_err),
        // It resolves only once granted, so that it resolves is the check.
        Subject::future(Kind::Ready, until_ready, || ready.until_ready(), |()| true),
    ]
}

fn count(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).expect("no condition asks for zero")
}
