//! The limiters, each of which allows about ten per second.

use std::time::Duration;

use paceline::smooth::{SmoothBursty, SmoothWarmingUp};
use paceline::window::{FixedWindow, SlidingLog, SlidingWindow};
use paceline::{DynRateLimit, LeakyBucket, Limiter, Rate, Refill};

use crate::LIMIT;

const RATE: Rate = Rate::per_second(LIMIT as u64);
const SECOND: Duration = Duration::from_secs(1);

type Make = fn() -> Box<dyn DynRateLimit>;

/// The name of each, and how it is made.
pub(crate) const LIMITERS: &[(&str, Make)] = &[
    ("Limiter", || Box::new(Limiter::new(RATE, LIMIT))),
    ("Limiter, in steps", || Box::new(in_steps())),
    ("LeakyBucket", || Box::new(LeakyBucket::new(RATE, LIMIT))),
    ("FixedWindow", || Box::new(FixedWindow::new(LIMIT, SECOND))),
    ("SlidingWindow", || Box::new(SlidingWindow::new(LIMIT, SECOND, 10))),
    ("SlidingLog", || Box::new(SlidingLog::new(LIMIT, SECOND))),
    ("SmoothBursty", || Box::new(SmoothBursty::new(RATE))),
    ("SmoothWarmingUp", || Box::new(SmoothWarmingUp::new(RATE, SECOND * 2))),
];

/// Five each half a second.
fn in_steps() -> Limiter {
    let half = Rate::new(u64::from(LIMIT / 2), SECOND / 2).expect("not a period of zero");
    let builder = Limiter::builder(half).burst(LIMIT).refill(Refill::Interval);
    builder.build().expect("no bounds that it could exceed")
}
