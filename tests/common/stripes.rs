//! What the tests of the striped limiter share.

use paceline::{Acquire, AcquireError, Limiter, Rate, Striped};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

pub(crate) const HOUR: Duration = Duration::from_secs(3_600);

/// A token each microsecond.
pub(crate) const EACH_MICRO: Rate = Rate::per_second(1_000_000);

pub(crate) fn micros(micros: u32) -> Duration {
    Duration::from_micros(u64::from(micros))
}

pub(crate) fn striped(rate: Rate, burst: u32, stripes: u32, batch: u32) -> Striped {
    Limiter::builder(rate).burst(burst).build_striped(stripes, batch).unwrap()
}

/// Takes one at a time until it is refused. Says how many it got.
pub(crate) fn drain(limiter: &Striped) -> u32 {
    drain_by(limiter, 1)
}

/// Takes `n` at a time until it is refused. Says how many permits it got.
pub(crate) fn drain_by(limiter: &Striped, n: u32) -> u32 {
    let mut granted = 0;
    while limiter.try_acquire_many(n).is_ok() {
        granted += n;
        assert!(granted <= 100 * limiter.burst(), "it never ends");
    }
    granted
}

/// As many stripes as the next power of two, the batch, and a burst that has room for them.
pub(crate) const SHAPES: [(u32, u32, u32); 9] = [
    (1, 1, 2),
    (1, 8, 16),
    (2, 4, 12),
    (2, 4, 100),
    (4, 8, 40),
    (4, 8, 41),
    (4, 8, 64),
    (8, 3, 200),
    (16, 128, 5_000),
];

/// What an acquire says at once.
#[track_caller]
pub(crate) fn at_once(acquire: Acquire<'_, Striped>) -> Result<Duration, AcquireError> {
    match pin!(acquire).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => panic!("it waits"),
    }
}

/// A runtime whose time stands still unless it is told to advance.
pub(crate) fn paused() -> Runtime {
    let mut builder = Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().unwrap()
}
