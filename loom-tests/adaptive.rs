//! Races of reports to limits that adapt.

use super::race_on;
use crate::adaptive::{Aimd, Core, Gradient, Method, Outcome, Pace, Terms};
use crate::concurrency::Concurrency;
use crate::line::{Bounds, Line, Settings};
use crate::rate::Rate;

const MILLISECOND: u64 = 1_000_000;
const QUICK: Outcome = Outcome::Succeeded(MILLISECOND);

/// A concurrency limit and what it governs, as in `AdaptiveConcurrency`.
struct Governed {
    core: Core,
    concurrency: Concurrency,
}

fn governed(method: Method, limits: [u32; 3]) -> Governed {
    Governed { core: Core::new(method, limits), concurrency: Concurrency::new(limits[1]) }
}

fn aimd(limits: [u32; 3]) -> Governed {
    governed(Method::Aimd(Aimd::new()), limits)
}

impl Governed {
    fn report(&self, round: u64, outcome: Outcome) {
        if self.core.report(round, outcome, true) {
            self.core.govern(&self.concurrency);
        }
    }

    /// The limit in force, which is what the reports have made of it, in places too.
    fn limit(&self) -> u32 {
        let limit = self.core.level().whole();
        assert_eq!(self.concurrency.limit(), limit, "an old limit is in force");
        assert_eq!(self.concurrency.available(), limit, "nobody is in");
        limit
    }
}

#[test]
fn two_failures_of_a_round_decrease_once() {
    race_on(
        || aimd([1, 16, 20]),
        |limit| limit.report(0, Outcome::Failed),
        |limit| limit.report(0, Outcome::Failed),
        |limit, (), ()| {
            assert_eq!(limit.limit(), 12);
            assert_eq!(limit.core.level().round, 1);
        },
    );
}

#[test]
fn two_successes_both_count() {
    race_on(
        || aimd([1, 1, 20]),
        |limit| limit.report(0, QUICK),
        |limit| limit.report(0, QUICK),
        // One and then half: the second finds a limit of two.
        |limit, (), ()| {
            assert_eq!(limit.limit(), 2);
            limit.report(0, QUICK);
            limit.report(0, QUICK);
            assert_eq!(limit.limit(), 3);
        },
    );
}

#[test]
fn a_success_races_with_a_failure() {
    race_on(
        || aimd([1, 4, 4]),
        |limit| limit.report(0, QUICK),
        |limit| limit.report(0, Outcome::Failed),
        // The success is of no account after it, and beyond the most before.
        |limit, (), ()| assert_eq!(limit.limit(), 3),
    );
}

#[test]
fn one_makes_it_grow_and_one_lowers_it_after() {
    race_on(
        || aimd([1, 1, 20]),
        |limit| limit.report(0, QUICK),
        |limit| {
            limit.report(0, Outcome::Failed);
            limit.report(1, QUICK);
        },
        // Of 1 or 2 three quarters, at least one; and one more.
        |limit, (), ()| assert_eq!(limit.limit(), 2),
    );
}

#[test]
fn two_latencies_close_a_round_together() {
    race_on(
        || {
            let limit = governed(Method::gradient(Gradient::new()), [1, 10, 20]);
            (0..9).for_each(|_| limit.report(0, QUICK));
            assert_eq!(limit.limit(), 10, "one is missing");
            limit
        },
        |limit| limit.report(0, QUICK),
        |limit| limit.report(0, QUICK),
        |limit, (), ()| {
            // Four to queue, smoothed: judged once. The other one is of the next round.
            assert_eq!(limit.core.level().limit, (10 << 20) + (4 << 20) / 5);
            (0..8).for_each(|_| limit.report(0, QUICK));
            assert_eq!(limit.limit(), 10);
            limit.report(0, QUICK);
            assert_eq!(limit.limit(), 11);
        },
    );
}

#[test]
fn a_limit_is_lowered_while_another_raises_it() {
    race_on(
        || {
            let concurrency = Concurrency::new(3);
            let places = [(); 3].map(|()| concurrency.try_acquire().unwrap());
            (concurrency, places)
        },
        |(concurrency, _)| concurrency.set_limit(1),
        |(concurrency, _)| {
            concurrency.set_limit(4);
            concurrency.try_acquire().map(drop).is_ok()
        },
        |(concurrency, _), (), _| {
            let room = concurrency.limit().saturating_sub(3);
            assert_eq!(concurrency.available(), room, "of {} three are in", concurrency.limit());
        },
    );
}

// ---- Rates --------------------------------------------------------------------------------------

const TERMS: Terms = Terms { min: 10_000, max: 102_000, increase: 1000, round: 10 };

/// A rate and what it governs, as in `AdaptiveRate`.
struct Paced {
    pace: Pace,
    line: Line,
}

fn paced() -> Paced {
    let rate = Rate::per_second(100);
    let bounds = Bounds { rate: Rate::per_second(1000), burst: 1 };
    Paced { pace: Pace::new(TERMS, 100_000), line: Line::new(Settings::full(rate, 1, bounds, 0)) }
}

impl Paced {
    fn govern(&self, changed: bool, now: u64) -> bool {
        if changed {
            self.pace.govern(|rate| self.line.set_rate(now, rate).unwrap());
        }
        changed
    }

    fn succeeded(&self, began: u64, now: u64) -> bool {
        self.govern(self.pace.succeeded(began, now), now)
    }

    fn refused(&self, began: u64, now: u64) -> bool {
        self.govern(self.pace.refused(began, now), now)
    }

    fn rate(&self) -> u64 {
        let rate = self.pace.rate();
        assert_eq!(
            self.line.rate(),
            Rate::new(rate, std::time::Duration::from_secs(1000)).unwrap()
        );
        rate
    }
}

#[test]
fn two_refusals_of_a_round_decrease_once() {
    race_on(
        paced,
        |rate| rate.refused(1, 10),
        |rate| rate.refused(2, 11),
        |rate, left, right| {
            assert!(left != right);
            assert_eq!(rate.rate(), 90_000);
            assert!(!rate.refused(12, 19), "the same round");
        },
    );
}

#[test]
fn two_successes_make_it_grow_once() {
    race_on(
        paced,
        |rate| rate.succeeded(1, 10),
        |rate| rate.succeeded(2, 11),
        |rate, left, right| {
            assert!(left != right);
            assert_eq!(rate.rate(), 101_000);
            assert!(!rate.succeeded(3, 19));
            assert!(rate.succeeded(3, 21));
            assert_eq!(rate.rate(), 102_000, "the most");
        },
    );
}

#[test]
fn a_refusal_races_with_a_success() {
    race_on(
        paced,
        |rate| rate.succeeded(1, 10),
        |rate| rate.refused(2, 10),
        |rate, grown, refused| {
            assert!(refused, "no refusal is lost");
            // With the growth first, what it added goes before the tenth; after it, there is none.
            assert_eq!(rate.rate(), 90_000, "grown: {grown}");
            assert!(!rate.succeeded(11, 19), "since then it is not calm for a round");
        },
    );
}
