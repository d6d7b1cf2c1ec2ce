//! `KeyedBuilder::max_keys`: however many keys come, no more are kept, and nobody gets more than a
//! limiter alone would give.

use futures::FutureExt;
use paceline::{AcquireError, Keyed, Limiter, Rate, Reservation};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::time::Duration;
use tokio::time::{Instant, advance};

const SECOND: u64 = 1_000_000_000;

fn keyed(rate: Rate, burst: u32, max_keys: usize) -> Keyed<u64> {
    Keyed::builder(paceline::keyed::Quota::new(rate, burst)).max_keys(max_keys).build().unwrap()
}

#[derive(Clone, Debug)]
enum Step {
    Try(u64, u32),
    Acquire(u64, u32),
    Drop(usize),
    Reserve(u64, u32),
    Cancel(usize),
    Wait(u64),
    Tidy,
}

fn step() -> impl Strategy<Value = Step> {
    // Most keys come once; a few come again and again.
    let key = || prop_oneof![0..4_u64, 0..40_u64, any::<u64>()];
    let n = || 1..4_u32;
    prop_oneof![
        8 => (key(), n()).prop_map(|(key, n)| Step::Try(key, n)),
        2 => (key(), n()).prop_map(|(key, n)| Step::Acquire(key, n)),
        1 => any::<usize>().prop_map(Step::Drop),
        1 => (key(), n()).prop_map(|(key, n)| Step::Reserve(key, n)),
        1 => any::<usize>().prop_map(Step::Cancel),
        3 => prop_oneof![0..3_u64, 0..SECOND / 5, 0..3 * SECOND].prop_map(Step::Wait),
        1 => Just(Step::Tidy),
    ]
}

type Waiting<'a> = Pin<Box<dyn Future<Output = Result<Duration, AcquireError>> + 'a>>;

/// When each key was given how much.
#[derive(Default)]
struct Given(BTreeMap<u64, Vec<(u64, u32)>>);

impl Given {
    fn add(&mut self, key: u64, now: u64, n: u32) {
        self.0.entry(key).or_default().push((now, n));
    }

    /// In each window no key has more than its burst and what was minted in it.
    fn check(&self, per_second: u64, burst: u32) -> Result<(), TestCaseError> {
        for (key, given) in &self.0 {
            for (index, (first, _)) in given.iter().enumerate() {
                let mut sum = 0;
                for (last, n) in &given[index..] {
                    sum += u64::from(*n);
                    // In billionths; the window begins a nanosecond before the first.
                    let most = u64::from(burst) * SECOND + per_second * (last - first + 1);
                    prop_assert!(sum * SECOND <= most, "{}: {:?}", key, given);
                }
            }
        }
        Ok(())
    }
}

fn check(
    per_second: u64,
    burst: u32,
    max_keys: usize,
    steps: Vec<Step>,
) -> Result<(), TestCaseError> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(tokio::task::unconstrained(async {
        let keyed = Keyed::builder(
            // Strict, so that who waits has no more than who tries.
            Limiter::builder(Rate::per_second(per_second))
                .burst(burst)
                .slack(Duration::ZERO)
                .build()
                .unwrap(),
        );
        let keyed: Keyed<u64> = keyed.max_keys(max_keys).build().unwrap();
        let start = Instant::now();
        let nanos = || u64::try_from(start.elapsed().as_nanos()).unwrap();
        let (mut given, mut held) = (Given::default(), BTreeSet::new());
        let mut waiting: Vec<(u64, u32, Waiting<'_>)> = Vec::new();
        let mut turns: Vec<(u64, Reservation<'_>)> = Vec::new();
        for step in steps {
            match step {
                Step::Try(key, n) => {
                    if keyed.try_acquire_many(&key, n).is_ok() {
                        given.add(key, nanos(), n);
                    }
                }
                Step::Acquire(key, n) => {
                    let keyed = keyed.clone();
                    let waits = async move { keyed.acquire_many(&key, n).await };
                    waiting.push((key, n, Box::pin(waits)));
                }
                Step::Drop(index) if !waiting.is_empty() => {
                    drop(waiting.swap_remove(index % waiting.len()));
                }
                Step::Reserve(key, n) => {
                    turns.extend(keyed.reserve_many(&key, n).ok().map(|turn| (key, turn)));
                }
                Step::Cancel(index) if !turns.is_empty() => {
                    turns.swap_remove(index % turns.len()).1.cancel();
                }
                Step::Wait(nanoseconds) => advance(Duration::from_nanos(nanoseconds)).await,
                Step::Tidy => keyed.retain_busy(),
                Step::Drop(_) | Step::Cancel(_) => {}
            }
            waiting.retain_mut(|(key, n, waits)| match waits.now_or_never() {
                Some(outcome) => {
                    if outcome.is_ok() {
                        given.add(*key, nanos(), *n);
                    }
                    false
                }
                None => true,
            });
            // They may hold what was given back, too.
            held.extend(waiting.iter().map(|(key, ..)| *key));
            held.extend(turns.iter().map(|(key, _)| *key));
            prop_assert!(keyed.len() <= max_keys.max(held.len() + 1), "{}", keyed.len());
        }
        drop((waiting, turns));
        advance(Duration::from_secs(60)).await;
        keyed.retain_busy();
        prop_assert!(keyed.is_empty());
        for key in 0..50 {
            let _ = keyed.try_acquire_many(&key, 3);
            prop_assert!(keyed.len() <= max_keys, "{}", keyed.len());
        }
        given.check(per_second, burst)
    }))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn whatever_is_forgotten_no_key_has_more_than_its_limit(
        per_second in 1..20_u64,
        burst in 3..8_u32,
        max_keys in 1..10_usize,
        steps in prop::collection::vec(step(), 1..200),
    ) {
        check(per_second, burst, max_keys, steps)?;
    }
}

/// Calls `test` while Tokio's clock stands still, so that all times are those that it gives.
fn frozen<T>(test: impl FnOnce(Instant) -> T) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    let _entered = runtime.enter();
    test(Instant::now())
}

#[test]
fn a_flood_of_keys_keeps_to_the_cap_and_the_limit_of_a_key_under_attack() {
    const FLOOD: u64 = 1_000_000;
    const MOST: usize = 1_000;
    frozen(|start| {
        let rate = Rate::per_second(1_000);
        let (keyed, alone) = (keyed(rate, 20, MOST), Limiter::new(rate, 20));
        for key in 1..=FLOOD {
            let now = start + Duration::from_micros(key);
            assert!(keyed.try_acquire_many_at(&key, 1, now).is_ok(), "who comes anew has all");
            if key % 100 == 0 {
                let attack = keyed.try_acquire_many_at(&0, 1, now);
                assert_eq!(attack, alone.try_acquire_many_at(1, now));
                assert!(keyed.len() <= MOST);
            }
        }
    });
}

/// Those of the flood use up all that they can, and a key that others look like is under attack.
#[test]
fn a_flood_that_spends_all_mints_nothing() {
    const FLOOD: u64 = 100_000;
    frozen(|start| {
        let keyed = keyed(Rate::per_second(100), 10, 200);
        let mut granted = 0;
        for key in 1..=FLOOD {
            let now = start + Duration::from_micros(10 * key);
            let _ = keyed.try_acquire_many_at(&key, 10, now);
            granted += u32::from(keyed.try_acquire_many_at(&0, 1, now).is_ok());
            assert!(keyed.len() <= 200);
        }
        assert!(granted <= 10 + 100, "{granted}");
        assert!(granted > 60, "{granted}: a key that comes all the time is served");
    });
}

#[test]
fn keys_that_are_full_go_first() {
    frozen(|start| {
        let keyed = keyed(Rate::per_second(1), 10, 20);
        let later = start + Duration::from_secs(5);
        for key in 0..10 {
            assert!(keyed.try_acquire_many_at(&key, 10, later).is_ok());
            assert!(keyed.try_acquire_many_at(&(100 + key), 1, start).is_ok());
        }
        for key in 200..210 {
            assert!(keyed.try_acquire_many_at(&key, 1, later).is_ok());
            assert!(keyed.len() <= 20);
        }
        for key in 0..10 {
            assert!(keyed.tokens_at(&key, later) < 1.0, "{key} was forgotten");
        }
        let mut kept = Vec::new();
        keyed.for_each(|key, _| kept.push(*key));
        assert!((0..10).all(|key| kept.contains(&key)), "{kept:?}");
    });
}

#[tokio::test(start_paused = true)]
async fn who_waits_holds_the_key_whatever_comes() {
    let keyed = keyed(Rate::per_second(1), 3, 16);
    let mut turns = Vec::new();
    for key in 0..8_u64 {
        assert!(keyed.try_acquire_many(&key, 3).is_ok());
        let keyed = keyed.clone();
        turns.push(tokio::spawn(async move { keyed.acquire_many(&key, 2).await }));
    }
    tokio::task::yield_now().await;
    for key in 1_000..20_000_u64 {
        let _ = keyed.try_acquire_many(&key, 3);
        assert!(keyed.len() <= 16);
    }
    for turn in turns {
        assert_eq!(turn.await.unwrap(), Ok(Duration::from_secs(2)));
    }
    for key in 0..8_u64 {
        assert!(keyed.try_acquire(&key).is_err(), "its turn took what was minted");
    }
}

/// There would be nobody to let go.
#[tokio::test(start_paused = true)]
async fn where_all_keys_are_held_there_are_more_and_the_cap_holds_again_when_they_are_not() {
    let keyed = keyed(Rate::per_second(1), 1, 4);
    let mut turns: Vec<_> = (0..50).map(|key| keyed.reserve(&key).unwrap()).collect();
    assert_eq!(keyed.len(), 50);
    for key in 100..200 {
        assert!(keyed.try_acquire(&key).is_ok() || keyed.peek(&key).is_err());
        assert!(keyed.len() <= 51, "one beside those that are held");
    }
    turns.truncate(2);
    for key in 200..400 {
        let _ = keyed.try_acquire(&key);
    }
    assert!(keyed.len() <= 4, "{}", keyed.len());
    drop(turns);
    advance(Duration::from_secs(1)).await;
    keyed.retain_busy();
    assert_eq!(keyed.len(), 0);
}
