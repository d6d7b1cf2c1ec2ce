//! `leaky-bucket`: a bucket behind a mutex, which one waiter refills for all. Built `fair(false)`
//! it takes permits with one compare-and-swap and reads no clock, while there are any.
//!
//! That unfair one is measured on one thread only. On two, 1.1.2 soon refuses everything for ever
//! (and an awaited permit never comes): after 16 lost races a thread takes the lock and swaps the
//! state with zero for a moment, and one that reads that zero meanwhile writes it back when its
//! snapshot is dropped. The stock, and the flag that somebody may refill it, are gone.

use super::{DAY, RATE, STOCK, on_its_own_line};
use crate::measure::{Kind, Subject};
use leaky_bucket::RateLimiter;
use std::time::Duration;

/// Fair, as it comes, and unfair.
#[must_use]
pub fn subjects() -> Vec<Subject> {
    let mut subjects =
        built(true, ["leaky-bucket try_acquire", "leaky-bucket acquire_one().await"]);
    let unfair = built(
        false,
        ["leaky-bucket try_acquire, unfair", "leaky-bucket acquire_one().await, unfair"],
    );
    subjects.extend(unfair.into_iter().map(Subject::on_one_thread_only));
    subjects
}

fn built(fair: bool, [try_acquire, acquire]: [&'static str; 2]) -> Vec<Subject> {
    let stocked = || {
        on_its_own_line(
            RateLimiter::builder()
                .fair(fair)
                .interval(Duration::from_secs(1))
                .refill(size(RATE))
                .max(size(STOCK))
                .initial(size(STOCK))
                .build(),
        )
    };
    let granted = stocked();
    let ready = stocked();
    let denied = on_its_own_line(
        RateLimiter::builder().fair(fair).interval(DAY).refill(1).max(1).initial(0).build(),
    );
    vec![
        Subject::sync(Kind::Granted, try_acquire, || granted.try_acquire(1), |&ok| ok),
        Subject::sync(Kind::Denied, try_acquire, || denied.try_acquire(1), |&ok| !ok),
        // It resolves only once granted, so that it resolves is the check.
        Subject::future(Kind::Ready, acquire, || ready.acquire_one(), |()| true),
    ]
}

fn size(count: u32) -> usize {
    usize::try_from(count).expect("usize holds a u32 wherever tokio runs")
}
