//! The other kinds of limiter that we have, beside our own plain one: what each costs in comparison.

use super::{FLOOD, FLOOD_BURST, on_its_own_line};
use crate::measure::{Kind, Subject};
use paceline::{
    All, CircuitBreaker, LeakyBucket, Limiter, Rate,
    smooth::{SmoothBursty, SmoothWarmingUp},
    window::{FixedWindow, SlidingLog, SlidingWindow},
};
use std::time::Duration;

/// Two limiters that must both grant.
pub const BOTH: &str = "paceline All of two";
/// A limiter behind a circuit breaker that is closed.
pub const GUARDED: &str = "paceline CircuitBreaker + try_acquire";

/// Of each kind that is to cost no more than half as much again as the plain limiter.
pub const PACKED: [&str; 7] = [
    "paceline FixedWindow",
    "paceline SlidingWindow",
    "paceline SlidingLog",
    "paceline LeakyBucket",
    "paceline SmoothBursty",
    "paceline SmoothWarmingUp",
    "paceline Limiter, refill in steps",
];

/// More than two threads can take of a window, which is longer than a thread is ever preempted for.
const LIMIT: u32 = 100_000_000;
const WINDOW: Duration = Duration::from_millis(100);

/// The same for a log, which keeps the time of each; so its window is short.
const LOGGED: u32 = 1_000_000;
const LOG_WINDOW: Duration = Duration::from_millis(1);

/// Each so fast that every try is granted.
///
/// # Panics
///
/// If a limiter can't be so fast.
#[must_use]
pub fn subjects() -> Vec<Subject> {
    let rate = Rate::per_second(FLOOD.into());
    let plain = || Limiter::new(rate, FLOOD_BURST);
    let fixed = on_its_own_line(FixedWindow::new(LIMIT, WINDOW));
    let sliding = on_its_own_line(SlidingWindow::new(LIMIT, WINDOW, 10));
    let log = on_its_own_line(SlidingLog::new(LOGGED, LOG_WINDOW));
    let leaky = LeakyBucket::builder(rate, FLOOD_BURST).delay(FLOOD_BURST).build();
    let leaky = on_its_own_line(leaky.expect("within what it can be"));
    // A request pays for the one before it, three times as much while it is cold.
    let fast = Rate::per_second(u64::from(FLOOD) * 100);
    let bursty = on_its_own_line(SmoothBursty::new(fast));
    let warming = on_its_own_line(SmoothWarmingUp::new(fast, WINDOW));
    let steps = Limiter::builder(Rate::new(u64::from(LIMIT), WINDOW).expect("not too fast"))
        .burst(LIMIT)
        .refill(paceline::Refill::Interval)
        .build();
    let steps = on_its_own_line(steps.expect("within what it can be"));
    let both = on_its_own_line(All::new((plain(), plain())));
    let breaker = CircuitBreaker::new(10, 20, Duration::from_secs(5)).expect("within its range");
    let guarded = on_its_own_line((breaker, plain()));
    vec![
        Subject::sync(Kind::Granted, PACKED[0], || fixed.try_acquire(), Result::is_ok),
        Subject::sync(Kind::Granted, PACKED[1], || sliding.try_acquire(), Result::is_ok),
        // A thread that is preempted between its reading of the clock and its decision comes back to
        // another window.
        Subject::sync(Kind::Granted, PACKED[2], || log.try_acquire(), Result::is_ok)
            .allowing_strays(8),
        Subject::sync(Kind::Granted, PACKED[3], || leaky.try_acquire(), Result::is_ok),
        Subject::sync(Kind::Granted, PACKED[4], || bursty.try_acquire(), Result::is_ok),
        // The other thread's request is paid for from its own reading of the clock on, which may be a
        // few nanoseconds later than this one's: then this one is refused.
        Subject::sync(Kind::Granted, PACKED[5], || warming.try_acquire(), Result::is_ok)
            .on_one_thread_only(),
        Subject::sync(Kind::Granted, PACKED[6], || steps.try_acquire(), Result::is_ok),
        Subject::sync(Kind::Granted, BOTH, || both.try_acquire(), Result::is_ok),
        Subject::sync(
            Kind::Granted,
            GUARDED,
            || {
                let call = guarded.0.enter().map_err(|_| ())?;
                guarded.1.try_acquire().map_err(|_| ())?;
                call.succeeded();
                Ok::<(), ()>(())
            },
            Result::is_ok,
        ),
    ]
}
