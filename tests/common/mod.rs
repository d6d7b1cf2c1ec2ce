//! What the tests with explicit times share.

use std::time::Duration;
use tokio::time::Instant;

pub(crate) const SECOND: u64 = 1_000_000_000;

/// Runs a test while time stands still at the instant it is given, so that all limiters it makes
/// begin at that very nanosecond.
pub(crate) fn frozen<T>(test: impl FnOnce(Instant) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime with nothing but a timer");
    let _entered = runtime.enter();
    test(Instant::now())
}

/// The instant so many nanoseconds after `base`.
pub(crate) fn at(base: Instant, nanos: u64) -> Instant {
    base + Duration::from_nanos(nanos)
}
