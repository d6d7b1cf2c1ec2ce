//! Real threads on the same keys, while keys come, are forgotten, and have limiters of their own and
//! lose them: whatever they do at once, every token of a key is granted once, or free once, and never
//! both.
//!
//! The models in `loom-tests/keyed.rs` try every interleaving of a few steps, over a stand-in for the
//! pointers that are replaced. Here are many steps and the real ones. Nothing depends on how fast the
//! machine is or on how it schedules the threads: their clock stands still but between rounds.
#![cfg(feature = "keyed")]

use fastrand::Rng;
use paceline::keyed::Quota;
use paceline::{Keyed, Rate, Reservation};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, advance};

const THREADS: u64 = 4;

const KEYS: usize = 5;

/// A runtime whose clock stands still.
fn paused() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

/// Does `work` for all of `items` at once, on a thread each, by the clock of `runtime`.
fn at_once<T: Send, R: Send>(
    runtime: &Runtime,
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let items: Vec<T> = items.into_iter().collect();
    let start = Barrier::new(items.len());
    thread::scope(|scope| {
        let (start, work) = (&start, &work);
        let spawn = |item| {
            scope.spawn(move || {
                let _entered = runtime.enter();
                start.wait();
                work(item)
            })
        };
        let threads: Vec<_> = items.into_iter().map(spawn).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Takes all that the key has. Says how much it was.
fn sweep(keyed: &Keyed<usize>, key: usize) -> u64 {
    (0..u64::MAX).find(|_| keyed.try_acquire(&key).is_err()).unwrap()
}

/// What a thread has booked, and how much of each key it has used.
#[derive(Default)]
struct Storm<'a> {
    booked: Vec<(usize, Reservation<'a>)>,
    used: [u64; KEYS],
}

impl<'a> Storm<'a> {
    fn step(&mut self, keyed: &'a Keyed<usize>, rng: &mut Rng) {
        let key = rng.usize(0..KEYS);
        match rng.u32(0..16) {
            0..=5 => {
                if keyed.try_acquire(&key).is_ok() {
                    self.used[key] += 1;
                }
            }
            6..=8 => self.booked.push((key, keyed.reserve(&key).unwrap())),
            9..=12 if !self.booked.is_empty() => {
                let (_, turn) = self.booked.swap_remove(rng.usize(0..self.booked.len()));
                // Not used so far, whether its turn has come or not.
                turn.refund();
            }
            13 => keyed.retain_busy(),
            // Others that come and go, so that pages are replaced.
            _ => drop(keyed.try_acquire(&rng.usize(KEYS..64))),
        }
    }

    /// Uses all turns that have come.
    fn use_up(&mut self) {
        let (came, to_come) = std::mem::take(&mut self.booked)
            .into_iter()
            .partition::<Vec<_>, _>(|(_, turn)| turn.delay().is_zero());
        self.booked = to_come;
        for (key, turn) in came {
            drop(turn);
            self.used[key] += 1;
        }
    }
}

#[test]
fn every_token_of_a_key_is_granted_once() {
    const ROUNDS: u64 = 60;
    const OPERATIONS: usize = 300;
    const BURST: u64 = 40;
    for seed in 0..4 {
        let runtime = paused();
        let entered = runtime.enter();
        // Ten in a step of a hundredth of a second, so nothing overflows from one sweep to the next.
        let keyed: Keyed<usize> = Keyed::new(Rate::per_second(1_000), 40);
        drop(entered);
        let mut storms: Vec<Storm<'_>> = (0..THREADS).map(|_| Storm::default()).collect();
        let mut swept = [0; KEYS];
        for round in 0..ROUNDS {
            let numbered = storms.into_iter().zip(0_u64..);
            storms = at_once(&runtime, numbered, |(mut storm, thread)| {
                let mut rng = Rng::with_seed(seed << 32 | round << 8 | thread);
                storm.use_up();
                for _ in 0..OPERATIONS {
                    storm.step(&keyed, &mut rng);
                }
                storm.use_up();
                storm
            });
            let _entered = runtime.enter();
            if round + 1 == ROUNDS {
                for (_, turn) in storms.iter_mut().flat_map(|storm| storm.booked.drain(..)) {
                    turn.cancel();
                }
            }
            for (key, swept) in swept.iter_mut().enumerate() {
                *swept += sweep(&keyed, key);
                let used = *swept + storms.iter().map(|storm| storm.used[key]).sum::<u64>();
                assert_eq!(used, BURST + 10 * round, "seed {seed}, round {round}, key {key}");
            }
            runtime.block_on(advance(Duration::from_millis(10)));
        }
        let _entered = runtime.enter();
        drop(storms);
        runtime.block_on(advance(Duration::from_secs(1)));
        keyed.retain_busy();
        assert!(keyed.is_empty(), "seed {seed}: {keyed:?}");
    }
}

/// Each round all keys are full, and forgotten by some while others take from them.
#[test]
fn a_key_that_is_forgotten_and_comes_again_has_its_burst_and_no_more() {
    const ROUNDS: u64 = 300;
    const BURST: u64 = 20;
    let runtime = paused();
    let entered = runtime.enter();
    let keyed: Keyed<usize> = Keyed::new(Rate::per_second(20), 20);
    drop(entered);
    for round in 0..ROUNDS {
        let granted = at_once(&runtime, 0..THREADS, |thread| {
            let mut rng = Rng::with_seed(round << 8 | thread);
            let mut granted = [0; KEYS];
            for _ in 0..60 {
                let key = rng.usize(0..KEYS);
                let count = &mut granted[key];
                match rng.u32(0..12) {
                    0 => keyed.retain_busy(),
                    1 => {
                        let turn = keyed.reserve(&key).unwrap();
                        if turn.delay().is_zero() {
                            *count += 1;
                        } else {
                            turn.cancel();
                        }
                    }
                    _ => *count += u64::from(keyed.try_acquire(&key).is_ok()),
                }
            }
            granted
        });
        let _entered = runtime.enter();
        for key in 0..KEYS {
            let granted = granted.iter().map(|granted| granted[key]).sum::<u64>();
            assert_eq!(granted + sweep(&keyed, key), BURST, "round {round}, key {key}");
        }
        assert_eq!(keyed.len(), KEYS);
        runtime.block_on(advance(Duration::from_secs(1)));
    }
}

#[test]
fn of_all_who_bring_a_key_one_has_its_token() {
    const COUNT: usize = 20_000;
    let runtime = paused();
    let keyed: Keyed<usize> = Keyed::new(Rate::ZERO, 1);
    let granted = at_once(&runtime, 0..THREADS, |_| {
        (0..COUNT).filter(|key| keyed.try_acquire(key).is_ok()).count()
    });
    assert_eq!(granted.into_iter().sum::<usize>(), COUNT);
    assert_eq!(keyed.len(), COUNT);
}

/// Some flood, some wait, and the keys of all are forgotten to make room.
#[test]
fn under_a_cap_no_key_has_more_than_its_limit_and_the_cap_holds() {
    const ROUNDS: u64 = 40;
    const MOST: usize = 12;
    const BURST: u64 = 10;
    for seed in 0..4 {
        let runtime = paused();
        let entered = runtime.enter();
        let start = Instant::now();
        let quota = Quota::new(Rate::per_second(100), 10);
        let keyed: Keyed<usize> = Keyed::builder(quota).max_keys(MOST).build().unwrap();
        drop(entered);
        let mut total = [0; KEYS];
        for round in 0..ROUNDS {
            let granted = at_once(&runtime, 0..THREADS, |thread| {
                let mut rng = Rng::with_seed(seed << 32 | round << 8 | thread);
                let mut granted = [0; KEYS];
                for _ in 0..500 {
                    let key = rng.usize(0..KEYS);
                    let count = &mut granted[key];
                    match rng.u32(0..10) {
                        0..=4 => *count += u64::from(keyed.try_acquire(&key).is_ok()),
                        5 => {
                            let turn = keyed.reserve(&key).unwrap();
                            if turn.delay().is_zero() {
                                *count += 1;
                            } else {
                                turn.cancel();
                            }
                        }
                        _ => {
                            let n = rng.u32(1..=10);
                            drop(keyed.try_acquire_many(&rng.usize(KEYS..1_000_000), n));
                        }
                    }
                }
                granted
            });
            let _entered = runtime.enter();
            let elapsed = u64::try_from(start.elapsed().as_millis()).unwrap();
            for (key, total) in total.iter_mut().enumerate() {
                *total += granted.iter().map(|granted| granted[key]).sum::<u64>();
                let most = BURST + elapsed / 10;
                assert!(*total <= most, "seed {seed}, round {round}: {total} of {most}");
            }
            runtime.block_on(advance(Duration::from_millis(70)));
        }
        let _entered = runtime.enter();
        for key in KEYS..KEYS + 1_000 {
            let _ = keyed.try_acquire(&key);
        }
        assert!(keyed.len() <= MOST, "seed {seed}: {keyed:?}");
    }
}
