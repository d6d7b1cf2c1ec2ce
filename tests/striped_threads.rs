//! Threads that share a striped limiter: whichever stripes its permits lie in, each is used once,
//! and none is used that a bucket of the whole burst would not have.

#![expect(clippy::float_cmp, reason = "a whole number of tokens is exact in an f64")]

#[path = "common/stripes.rs"]
mod stripes;

use paceline::{Limiter, Rate, Striped};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::num::NonZeroU64;
use std::sync::{Arc, Barrier, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use stripes::{EACH_MICRO, HOUR, SHAPES, at_once, drain, drain_by, micros, paused, striped};
use tokio::runtime::{Handle, Runtime};
use tokio::time::advance;

// ---- In turn -------------------------------------------------------------------------------------

/// A thread that does what it is told, by the clock of a runtime.
struct Worker {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

type Job = Box<dyn FnOnce() + Send>;

impl Worker {
    fn new(runtime: &Handle) -> Self {
        let (jobs, to_do) = mpsc::channel::<Job>();
        let runtime = runtime.clone();
        let work = move || {
            let _entered = runtime.enter();
            for job in to_do {
                job();
            }
        };
        Self { jobs: Some(jobs), thread: Some(thread::spawn(work)) }
    }

    /// Does the job and waits for it.
    fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, outcome) = mpsc::channel();
        let job = Box::new(move || done.send(job()).unwrap());
        self.jobs.as_ref().unwrap().send(job).unwrap();
        outcome.recv().unwrap()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.jobs.take());
        self.thread.take().unwrap().join().unwrap();
    }
}

/// A thread that has another one of two stripes than this one.
async fn worker_with_the_other_stripe() -> Worker {
    for _ in 0..1_000 {
        let worker = Worker::new(&Handle::current());
        let limiter = Arc::new(striped(EACH_MICRO, 20, 2, 4));
        limiter.try_acquire_many(12).unwrap();
        let theirs = Arc::clone(&limiter);
        worker.run(move || theirs.try_acquire_many(4).unwrap());
        advance(HOUR).await;
        // Who has an empty stripe comes by and finds what has overflowed.
        limiter.try_acquire().unwrap();
        if limiter.tokens() < 16.0 {
            return worker;
        }
    }
    panic!("all threads have the same stripe")
}

#[tokio::test(start_paused = true)]
async fn what_another_thread_used_of_its_stripe_is_made_good_when_somebody_came_by_twice() {
    const BATCH: u32 = 8;
    let worker = worker_with_the_other_stripe().await;
    for used in 0..BATCH {
        for passes in 0..5 {
            let limiter = Arc::new(striped(EACH_MICRO, 4 * BATCH + 5, 2, BATCH));
            let theirs = Arc::clone(&limiter);
            worker.run(move || (0..used).for_each(|_| theirs.try_acquire().unwrap()));
            for _ in 0..passes {
                advance(HOUR).await;
                for _ in 0..BATCH {
                    limiter.try_acquire().unwrap();
                }
            }
            let back = if passes < 2 { 0 } else { used };
            // The last pass emptied this stripe, which was filled from the line.
            let expected = limiter.burst() - used + back - if passes > 0 { BATCH } else { 0 };
            assert_eq!(limiter.tokens(), f64::from(expected), "{used}, passes: {passes}");
            assert_eq!(drain(&limiter), expected, "{used}, passes: {passes}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_thread_uses_what_lies_in_the_stripes_of_others_and_they_do_what_lies_in_its_own() {
    let workers: Vec<_> = (0..4).map(|_| Worker::new(&Handle::current())).collect();
    for (stripes, batch, burst) in SHAPES {
        let limiter = Arc::new(striped(EACH_MICRO, burst, stripes, batch));
        for round in 0..8_usize {
            // One after the other has a few, and one of them has the rest.
            let mut used = 0;
            for (worker, most) in workers.iter().zip([1, 2, 5, 3]) {
                let theirs = Arc::clone(&limiter);
                used += worker.run(move || {
                    (0..most).map_while(|_| theirs.try_acquire().ok()).map(|()| 1).sum::<u32>()
                });
            }
            let theirs = Arc::clone(&limiter);
            used += workers[round % 4].run(move || drain(&theirs));
            // All stripes were emptied, and this shows in the next round.
            assert_eq!(used, burst, "{stripes} stripes of {batch}, round {round}");
            advance(HOUR).await;
        }
    }
}

/// Each takes `n` at a time until it is refused, all of them at once. Says how much they got.
fn drain_at_once(runtime: &Handle, limiter: &Striped, weights: &[u32]) -> u32 {
    let barrier = Barrier::new(weights.len());
    let drain = |n: u32| {
        let _entered = runtime.enter();
        barrier.wait();
        drain_by(limiter, n)
    };
    let drain = &drain;
    thread::scope(|scope| {
        let threads: Vec<_> = weights.iter().map(|n| scope.spawn(move || drain(*n))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

/// Whatever a thread has in its hand, it goes on until it is refused itself. So when the last one
/// is, there is nothing left.
#[test]
fn threads_at_once_use_all_that_there_is_and_no_more() {
    let runtime = paused();
    let _entered = runtime.enter();
    for (stripes, batch, burst) in SHAPES {
        for weights in [[1, 1, 1, 1], [1, 1, 2, 3]] {
            for round in 0..20 {
                let limiter = striped(EACH_MICRO, burst, stripes, batch);
                let most = limiter.largest_request();
                let weights = weights.map(|n| n.min(most));
                let drain_all = || {
                    let used = drain_at_once(runtime.handle(), &limiter, &weights);
                    // One that asks for several leaves what is less, and puts it back while others
                    // look elsewhere.
                    let left = drain(&limiter);
                    assert!(left == 0 || weights != [1; 4], "{left} are left");
                    used + left
                };
                let case = format!("{stripes} stripes of {batch} of {burst}, round {round}");
                assert_eq!(drain_all(), burst, "{case}");
                // As long as nothing overflows, nothing is lost.
                for minted in [1, most / 2, most, 1, most - 1] {
                    runtime.block_on(advance(micros(minted)));
                    assert_eq!(drain_all(), minted, "{case}");
                }
                // A stripe that one thread emptied while another looked at it may have been seen
                // as it was before, and then it is not filled the first time.
                runtime.block_on(advance(HOUR));
                let used = drain_all();
                assert!((most..=burst).contains(&used), "{used}: {case}");
                // One thread alone sees all.
                runtime.block_on(advance(HOUR));
                let used = drain(&limiter);
                assert!((most..=burst).contains(&used), "{used}: {case}");
                runtime.block_on(advance(HOUR));
                assert_eq!(drain(&limiter), burst, "{case}");
            }
        }
    }
}

#[test]
fn threads_that_acquire_at_once_use_all_that_there_is_and_no_more() {
    let runtime = paused();
    let _entered = runtime.enter();
    for (stripes, batch, burst) in SHAPES {
        for _ in 0..20 {
            let limiter = striped(Rate::ZERO, burst, stripes, batch);
            let barrier = Barrier::new(4);
            let used: u32 = thread::scope(|scope| {
                let drain = || {
                    let _entered = runtime.enter();
                    barrier.wait();
                    let served = || at_once(limiter.acquire().within(Duration::ZERO)).ok();
                    std::iter::from_fn(served).map(|_| 1).sum::<u32>()
                };
                let threads = [(); 4].map(|()| scope.spawn(drain));
                threads.into_iter().map(|thread| thread.join().unwrap()).sum()
            });
            assert_eq!(used, burst, "{stripes} stripes of {batch}");
        }
    }
}

// ---- The bound ---------------------------------------------------------------------------------

/// A token takes so many nanoseconds, a whole number; no time stands for none at all.
const PERIODS: [u64; 5] = [1, 2, 10, 1_000, 0];

/// The tokens that the slowest of them mints in a nanosecond are counted in parts of this.
const PARTS: u64 = 1_000;

fn rate(period: u64) -> Rate {
    NonZeroU64::new(period)
        .map_or(Rate::ZERO, |period| Rate::every(Duration::from_nanos(period.get())))
}

#[derive(Clone, Debug)]
struct Scene {
    stripes: u32,
    batch: u32,
    /// Beside the least burst.
    extra: u32,
    period: u64,
    steps: Vec<Move>,
}

#[derive(Clone, Debug)]
enum Move {
    /// So many eighths of the time in which the burst is minted.
    Eighths(u64),
    Nanos(u64),
    /// The permits that one of the threads asks for, so many times.
    Try(usize, u32, u32),
    Hold(u32),
    Cancel(usize),
    SetRate(usize),
    /// Beside the least burst.
    SetBurst(u32),
}

fn scenes(settings: u32) -> impl Strategy<Value = Scene> {
    let tries = (0..4_usize, 1_u32..=8, 1_u32..=20);
    let step = prop_oneof![
        4 => (1_u64..=24).prop_map(Move::Eighths),
        2 => (1_u64..=3_000).prop_map(Move::Nanos),
        12 => tries.prop_map(|(who, n, times)| Move::Try(who, n, times)),
        4 => (0..4_usize).prop_map(|who| Move::Try(who, 1, 1_000)),
        1 => (1_u32..=8).prop_map(Move::Hold),
        1 => (0..100_usize).prop_map(Move::Cancel),
        settings => (0..PERIODS.len()).prop_map(Move::SetRate),
        settings => (0_u32..=20).prop_map(Move::SetBurst),
    ];
    let period = prop::sample::select(PERIODS[..4].to_vec());
    let shape = (1_u32..=4, 1_u32..=6, 0_u32..=20, period);
    (shape, prop::collection::vec(step, 1..60)).prop_map(
        |((stripes, batch, extra, period), steps)| Scene { stripes, batch, extra, period, steps },
    )
}

/// Permits that were used at one time.
struct Use {
    at: u64,
    permits: u64,
    /// What was minted by then, and a nanosecond before, in parts of a token.
    minted: u64,
    minted_before: u64,
    /// The burst a nanosecond before.
    burst_before: u64,
}

/// Plays a scene and looks at every window that begins a nanosecond before one use and ends with
/// another: all others have no more in them, or are longer.
fn check_bound(scene: &Scene, runtime: &Runtime, workers: &[Worker]) -> Result<(), TestCaseError> {
    let held = scene.stripes.next_power_of_two() * scene.batch;
    let least = held + scene.batch;
    let builder = Limiter::builder(rate(scene.period)).burst(least + scene.extra);
    let builder = builder.max_rate(rate(1)).max_burst(1_000);
    let limiter = Arc::new(builder.build_striped(scene.stripes, scene.batch).unwrap());
    let speed_of = |period| PARTS.checked_div(period).unwrap_or(0);
    let (mut now, mut minted, mut speed) = (0, 0, speed_of(scene.period));
    let (mut speed_before, mut burst_before) = (0, u64::from(limiter.burst()));
    let mut period = scene.period;
    let (mut uses, mut held) = (Vec::new(), Vec::new());
    for step in &scene.steps {
        match *step {
            Move::Eighths(_) | Move::Nanos(_) => {
                let nanos = match *step {
                    Move::Nanos(nanos) => nanos,
                    Move::Eighths(eighths) => eighths * period * u64::from(limiter.burst()) / 8,
                    _ => unreachable!(),
                };
                if nanos == 0 {
                    continue;
                }
                runtime.block_on(advance(Duration::from_nanos(nanos)));
                now += nanos;
                minted += speed * nanos;
                (speed_before, burst_before) = (speed, u64::from(limiter.burst()));
            }
            Move::Try(who, n, times) => {
                let theirs = Arc::clone(&limiter);
                let tries =
                    move || (0..times).map_while(|_| theirs.try_acquire_many(n).ok()).count();
                let permits = u64::from(n) * workers[who].run(tries) as u64;
                let minted_before = minted - speed_before;
                uses.push(Use { at: now, permits, minted, minted_before, burst_before });
            }
            Move::Hold(n) => held.extend(limiter.reserve_many(n)),
            Move::Cancel(one) if !held.is_empty() => held.swap_remove(one % held.len()).cancel(),
            Move::Cancel(_) => {}
            Move::SetRate(to) => {
                period = PERIODS[to];
                limiter.set_rate(rate(period)).unwrap();
                speed = speed_of(period);
            }
            Move::SetBurst(extra) => limiter.set_burst(least + extra).unwrap(),
        }
    }
    for (index, first) in uses.iter().enumerate() {
        let mut sum = 0;
        for last in &uses[index..] {
            sum += last.permits * PARTS;
            let most = first.burst_before * PARTS + last.minted - first.minted_before;
            prop_assert!(
                sum <= most,
                "{} of {} permits from {} to {} ns",
                sum / PARTS,
                most / PARTS,
                first.at,
                last.at
            );
        }
    }
    Ok(())
}

/// So many cases, unless `PROPTEST_CASES` asks for more or fewer.
fn cases(usual: u32) -> ProptestConfig {
    let default = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => default,
        None => ProptestConfig { cases: usual, ..default },
    }
}

fn check_bounds(settings: u32) {
    let runtime = paused();
    let _entered = runtime.enter();
    let workers: Vec<_> = (0..4).map(|_| Worker::new(runtime.handle())).collect();
    let check = |scene: Scene| check_bound(&scene, &runtime, &workers);
    TestRunner::new(cases(400)).run(&scenes(settings), check).unwrap();
}

#[test]
fn in_every_window_a_burst_and_what_is_minted_is_used_at_most() {
    check_bounds(0);
}

/// By the burst with which the window begins: a larger one revives nothing.
#[test]
fn in_every_window_it_is_so_whatever_is_set_meanwhile() {
    check_bounds(1);
}

/// Stripes, the batch, what there is beside the least burst, and the period.
type Shape = (u32, u32, u32, u64);

/// One caller, as of a plain bucket of the whole burst.
#[test]
fn one_caller_that_drains_it_has_all_that_is_minted() {
    let runtime = paused();
    let _entered = runtime.enter();
    let shape = (1_u32..=4, 1_u32..=6, 0_u32..=20, prop::sample::select(PERIODS[..4].to_vec()));
    let times = prop::collection::vec((0_u64..=24, 0_u64..=3), 1..20);
    let check = |((stripes, batch, extra, period), times): (Shape, Vec<(u64, u64)>)| {
        let burst = (stripes.next_power_of_two() + 1) * batch + extra;
        let limiter = Limiter::builder(rate(period)).burst(burst).build_striped(stripes, batch);
        let limiter = limiter.unwrap();
        let (burst, line) = (u64::from(burst), u64::from(limiter.largest_request()));
        prop_assert_eq!(u64::from(drain(&limiter)), burst);
        // What is minted and not used, in nanoseconds.
        let mut there = 0;
        for (eighths, more) in times {
            let nanos = (burst * eighths * period / 8).saturating_sub(1) + more;
            runtime.block_on(advance(Duration::from_nanos(nanos)));
            there += nanos;
            let used = u64::from(drain(&limiter));
            let most = (there / period).min(burst);
            if there <= line * period {
                prop_assert_eq!(used, most, "nothing overflows");
                there -= used * period;
            } else {
                // Of what overflows, whole tokens go to the stripes, and the parts of a token at
                // both ends are lost.
                let least = (there / period).saturating_sub(2).min(burst);
                prop_assert!((least..=most).contains(&used), "{} of {}", used, most);
                there = 0;
                drain_to_a_whole_token(&runtime, &limiter, period);
            }
        }
        Ok(())
    };
    TestRunner::new(cases(400)).run(&(shape, times), check).unwrap();
}

/// Lets the token that is being minted be finished, and uses it.
fn drain_to_a_whole_token(runtime: &Runtime, limiter: &Striped, period: u64) {
    let refused = limiter.try_acquire().unwrap_err();
    let wait = refused.retry_after().unwrap();
    assert!(wait <= Duration::from_nanos(period), "{wait:?}");
    runtime.block_on(advance(wait));
    assert_eq!(drain(limiter), 1);
}
