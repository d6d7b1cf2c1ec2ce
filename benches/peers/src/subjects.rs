//! What is measured, a file for each crate.
//!
//! Everybody gets the same conditions:
//!
//! * **granted** and **ready**: [`RATE`] with [`STOCK`] permits stored, so that every call is
//!   granted and none finds the bucket full. Paceline and governor are measured on a full bucket
//!   too ([`FLOOD`]: more is minted than two threads can take), since that is another branch.
//! * **denied**: one permit a day, and the first is gone.

pub mod async_rate_limiter;
pub mod floors;
pub mod governor;
pub mod kinds;
pub mod leaky_bucket;
pub mod paceline;
pub mod ratelimit;
pub mod semaphore;
pub mod tower;

use crate::measure::Subject;
use std::time::Duration;

/// Permits a second where every call is to be granted from stock.
pub const RATE: u32 = 1_000_000;

/// The stock: more than a long run takes.
pub const STOCK: u32 = 1_000_000_000;

/// Permits a second that keep a bucket of [`FLOOD_BURST`] full whatever two threads take.
pub const FLOOD: u32 = 1_000_000_000;

/// A tenth of a second of [`FLOOD`]: a thread that is preempted between its reading of the clock
/// and its decision comes back with an old time, and is to be granted all the same.
pub const FLOOD_BURST: u32 = 100_000_000;

/// What a single permit takes to come back where every call is to be denied.
pub const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The packages measured beside ours.
pub const PEERS: [&str; 7] =
    ["governor", "quanta", "leaky-bucket", "ratelimit", "async-rate-limiter", "tokio", "tower"];

/// All subjects, ours first in each group.
#[must_use]
pub fn all() -> Vec<Subject> {
    [
        floors::subjects(),
        paceline::subjects(),
        kinds::subjects(),
        governor::subjects(),
        leaky_bucket::subjects(),
        ratelimit::subjects(),
        async_rate_limiter::subjects(),
        semaphore::subjects(),
        tower::subjects(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Something for the whole run, at the start of a cache line that it shares with no other subject.
///
/// What is inside stays as its crate laid it out: a limiter whose config and state share a line
/// pays for it here too.
pub fn on_its_own_line<T>(value: T) -> &'static T {
    // 128, since x86 fetches lines in pairs.
    #[repr(align(128))]
    struct Apart<T>(T);

    &Box::leak(Box::new(Apart(value))).0
}
