//! `async-rate-limiter`: a bucket behind a mutex, which reads the clock when it is empty.

use super::{FLOOD, STOCK, on_its_own_line};
use crate::measure::{Kind, Subject};
use async_rate_limiter::RateLimiter;

/// Granted, denied and ready.
#[must_use]
pub fn subjects() -> Vec<Subject> {
    // A new one holds a single permit, and a stock grows only with time. So it gets the highest
    // rate there is: each time it runs empty it finds a permit for every nanosecond since the
    // last time, and nearly all calls take from that.
    let stocked = || {
        let limiter = RateLimiter::new(size(FLOOD));
        limiter.burst(size(STOCK));
        on_its_own_line(limiter)
    };
    let granted = stocked();
    let ready = stocked();
    // One a second is the lowest rate there is.
    let denied = on_its_own_line({
        let limiter = RateLimiter::new(1);
        limiter.burst(1);
        limiter
    });
    // The permit it starts with.
    let _ = denied.try_acquire();
    vec![
        Subject::sync(
            Kind::Granted,
            "async-rate-limiter try_acquire",
            || granted.try_acquire(),
            Result::is_ok,
        )
        // In its first moment two threads may find it empty within one nanosecond.
        .allowing_strays(2),
        Subject::sync(
            Kind::Denied,
            "async-rate-limiter try_acquire",
            || denied.try_acquire(),
            Result::is_err,
        )
        // Once a second one is granted all the same.
        .allowing_strays(2),
        // It resolves only once granted, so that it resolves is the check.
        Subject::future(
            Kind::Ready,
            "async-rate-limiter acquire().await",
            || ready.acquire(),
            |()| true,
        ),
    ]
}

fn size(count: u32) -> usize {
    usize::try_from(count).expect("usize holds a u32 wherever tokio runs")
}
