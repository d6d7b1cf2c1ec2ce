//! `Sometimes`: Go's rule, call by call, on threads, and when what it runs calls it or panics.

mod common;

use common::{SECOND, at, frozen};
use paceline::Sometimes;
use proptest::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use tokio::time::{Instant, advance};

/// How many of so many calls at `now` run.
fn run(sometimes: &Sometimes, calls: u64, now: Instant) -> u64 {
    (0..calls).map(|_| u64::from(sometimes.call_at(now, || ()).is_some())).sum()
}

/// Which of so many calls at `now` run.
fn which(sometimes: &Sometimes, calls: u64, now: Instant) -> Vec<u64> {
    (0..calls).filter(|call| sometimes.call_at(now, || *call).is_some()).collect()
}

// ---- The rules ---------------------------------------------------------------------------------

#[test]
fn without_a_rule_the_first_call_runs_and_no_other() {
    frozen(|base| {
        for sometimes in [
            Sometimes::new(),
            Sometimes::default(),
            Sometimes::new().first(0).every(0).interval(Duration::ZERO),
        ] {
            assert_eq!(which(&sometimes, 5, base), [0]);
            assert_eq!(run(&sometimes, 5, at(base, 1_000 * SECOND)), 0);
        }
    });
}

#[test]
fn each_rule_runs_what_it_says_and_together_they_run_what_one_of_them_says() {
    frozen(|base| {
        assert_eq!(which(&Sometimes::new().first(3), 10, base), [0, 1, 2]);
        assert_eq!(which(&Sometimes::new().every(3), 10, base), [0, 3, 6, 9]);
        assert_eq!(which(&Sometimes::new().every(1), 4, base), [0, 1, 2, 3]);
        assert_eq!(which(&Sometimes::new().first(2).every(4), 10, base), [0, 1, 4, 8]);
        let second = Duration::from_secs(1);
        let sometimes = Sometimes::new().first(2).every(4).interval(second);
        assert_eq!(which(&sometimes, 4, base), [0, 1]);
        // Calls four to seven.
        assert_eq!(which(&sometimes, 4, at(base, SECOND - 1)), [0]);
        assert_eq!(which(&sometimes, 3, at(base, 2 * SECOND - 2)), [0]);
        assert_eq!(which(&sometimes, 4, at(base, 2 * SECOND - 1)), [1]);
    });
}

#[test]
fn an_interval_is_over_to_the_nanosecond_and_counts_from_the_last_that_ran() {
    frozen(|base| {
        let sometimes = Sometimes::new().interval(Duration::from_secs(1));
        assert_eq!(run(&sometimes, 2, base), 1);
        assert_eq!(run(&sometimes, 2, at(base, SECOND - 1)), 0);
        assert_eq!(run(&sometimes, 2, at(base, SECOND + 5)), 1);
        assert_eq!(run(&sometimes, 2, at(base, 2 * SECOND + 4)), 0);
        assert_eq!(run(&sometimes, 2, at(base, 2 * SECOND + 5)), 1);
    });
}

/// Go's, with a lock around it that it does not need here.
struct Go {
    first: u64,
    every: u64,
    interval: u64,
    count: u64,
    last: u64,
}

impl Go {
    fn call(&mut self, now: u64) -> bool {
        let runs = self.count == 0
            || self.count < self.first
            || (self.every > 0 && self.count % self.every == 0)
            || (self.interval > 0 && now.saturating_sub(self.last) >= self.interval);
        if runs && self.interval > 0 {
            self.last = now;
        }
        self.count += 1;
        runs
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_runs_what_gos_runs(
        first in 0..5_u64,
        every in 0..7_u64,
        interval in prop_oneof![Just(0_u64), 1..60_u64],
        pauses in prop::collection::vec(prop_oneof![Just(0_u64), 0..5_u64, 0..90_u64], 1..100),
        resets in prop::collection::vec(0..100_usize, 0..3),
    ) {
        frozen(|base| {
            let sometimes = Sometimes::new().first(first).every(every);
            let sometimes = sometimes.interval(Duration::from_nanos(interval));
            let go = || Go { first, every, interval, count: 0, last: 0 };
            let (mut model, mut now) = (go(), 0);
            for (call, pause) in pauses.into_iter().enumerate() {
                now += pause;
                if resets.contains(&call) {
                    sometimes.reset();
                    model = go();
                }
                let ran = sometimes.call_at(at(base, now), || call);
                prop_assert_eq!(ran, model.call(now).then_some(call));
            }
            Ok(())
        })?;
    }
}

// ---- What it runs ------------------------------------------------------------------------------

#[test]
fn what_it_runs_may_call_it() {
    frozen(|base| {
        let sometimes = Sometimes::new().first(2);
        let inner = sometimes.call_at(base, || {
            let inner = sometimes.call_at(base, || sometimes.call_at(base, || ()));
            assert_eq!(inner, Some(None), "the second call runs, and the third one does not");
            sometimes.call_at(base, || ())
        });
        assert_eq!(inner, Some(None));
    });
}

#[test]
fn a_call_that_panics_counts_as_one_that_ran() {
    frozen(|base| {
        let sometimes = Sometimes::new().first(2).interval(Duration::from_secs(1));
        for _ in 0..2 {
            let panics = || sometimes.call_at(base, || panic!("as it is meant to"));
            assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        }
        assert_eq!(run(&sometimes, 3, at(base, SECOND - 1)), 0);
        assert_eq!(run(&sometimes, 3, at(base, SECOND)), 1);
    });
}

#[test]
fn after_a_reset_the_next_call_is_the_first() {
    frozen(|base| {
        let sometimes = Sometimes::new().first(2).every(5).interval(Duration::from_secs(1));
        assert_eq!(which(&sometimes, 4, base), [0, 1]);
        sometimes.reset();
        assert_eq!(which(&sometimes, 6, base), [0, 1, 5]);
        // Whenever it ran before: also if that was later.
        assert_eq!(run(&sometimes, 1, at(base, 9 * SECOND)), 1);
        sometimes.reset();
        assert_eq!(which(&sometimes, 4, base), [0, 1]);
        assert_eq!(run(&sometimes, 1, at(base, SECOND)), 1);
    });
}

#[tokio::test(start_paused = true)]
async fn a_call_goes_by_tokios_clock() {
    let sometimes = Sometimes::new().interval(Duration::from_secs(1));
    assert_eq!(sometimes.call(|| 1), Some(1));
    assert_eq!(sometimes.call(|| 2), None);
    advance(Duration::from_secs(1)).await;
    assert_eq!(sometimes.call(|| 3), Some(3));
}

// ---- On threads --------------------------------------------------------------------------------

const THREADS: u64 = 4;
const CALLS: u64 = 10_000;

/// How many run of as many calls from each of the threads at once.
fn run_on_threads(sometimes: &Sometimes, now: impl Fn(u64) -> Instant + Sync) -> u64 {
    let (ran, start) = (AtomicU64::new(0), Barrier::new(usize::try_from(THREADS).unwrap()));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                start.wait();
                for call in 0..CALLS {
                    sometimes.call_at(now(call), || ran.fetch_add(1, Ordering::Relaxed));
                }
            });
        }
    });
    ran.into_inner()
}

#[test]
fn on_threads_as_many_run_as_in_turn() {
    frozen(|base| {
        let calls = THREADS * CALLS;
        assert_eq!(run_on_threads(&Sometimes::new(), |_| base), 1);
        assert_eq!(run_on_threads(&Sometimes::new().first(1_234), |_| base), 1_234);
        let every = Sometimes::new().every(7);
        assert_eq!(run_on_threads(&every, |_| base), calls.div_ceil(7));
    });
}

#[test]
fn of_threads_that_find_the_same_interval_over_one_runs() {
    frozen(|base| {
        let rounds = 2_000;
        let sometimes = Sometimes::new().interval(Duration::from_secs(1));
        assert_eq!(run(&sometimes, 1, base), 1);
        let (ran, arrived) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for round in 1..=rounds {
                        // Both go on at the same moment, as near as threads come to it.
                        arrived.fetch_add(1, Ordering::SeqCst);
                        while arrived.load(Ordering::SeqCst) < 2 * round {
                            thread::yield_now();
                        }
                        let now = at(base, round * SECOND);
                        sometimes.call_at(now, || ran.fetch_add(1, Ordering::Relaxed));
                    }
                });
            }
        });
        assert_eq!(ran.into_inner(), rounds);
    });
}

#[test]
fn on_threads_no_two_run_within_an_interval() {
    frozen(|base| {
        let each = 100;
        let sometimes = Sometimes::new().interval(Duration::from_nanos(each));
        let ran = run_on_threads(&sometimes, |call| at(base, call));
        // Times go back and forth here, and those that come late find that a later one ran.
        assert!((1..=CALLS / each).contains(&ran), "{ran}");
    });
}
