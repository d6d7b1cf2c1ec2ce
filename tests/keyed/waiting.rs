//! Who waits for a turn of a key.

use futures::FutureExt;
use paceline::{AcquireError, Keyed, LeakyBucket, Limiter, Rate};
use std::cell::Cell;
use std::time::Duration;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{Instant, advance};

const MILLI: Duration = Duration::from_millis(1);

fn like(builder: paceline::Builder) -> (Keyed<u8>, Limiter) {
    (Keyed::like(builder.clone().build().unwrap()), builder.build().unwrap())
}

/// Each timer is late by up to a millisecond, in which ten are minted, and the bucket holds one.
#[tokio::test(start_paused = true)]
async fn what_is_minted_while_a_task_oversleeps_is_not_lost() {
    let keyed: Keyed<u8> = Keyed::new(Rate::per_second(10_000), 1);
    let looped = async {
        let (start, mut used) = (Instant::now(), 0);
        while start.elapsed() < Duration::from_secs(1) {
            keyed.acquire(&0).await.unwrap();
            used += 1;
        }
        used
    };
    let used = tokio::task::unconstrained(looped).await;
    assert!((9_990..=10_010).contains(&used), "{used}");
    advance(Duration::from_secs(1)).await;
    keyed.retain_busy();
    assert!(keyed.is_empty());
}

#[tokio::test(start_paused = true)]
async fn turns_of_a_key_come_in_the_order_in_which_they_were_asked_for() {
    let keyed: Keyed<u8> = Keyed::new(Rate::per_second(1_000), 1);
    let start = Instant::now();
    let turns = (0..300_u16).map(|index| {
        let key = u8::try_from(index % 3).unwrap();
        let acquire = keyed.acquire_owned(key);
        tokio::spawn(async move {
            acquire.await.unwrap();
            (key, index, start.elapsed())
        })
    });
    for turn in turns.collect::<Vec<_>>() {
        let (_, index, came) = turn.await.unwrap();
        assert_eq!(came, MILLI * u32::from(index / 3));
    }
}

#[tokio::test]
async fn a_task_that_never_has_to_wait_lets_others_run() {
    let local = LocalSet::new();
    local
        .run_until(async {
            let keyed: Keyed<u8> = Keyed::new(Rate::UNLIMITED, 1);
            let limited: Keyed<u8> = Keyed::new(Rate::per_day(1), 0);
            for keyed in [keyed, limited] {
                let turns = std::rc::Rc::new(Cell::new(0));
                let counted = std::rc::Rc::clone(&turns);
                let other = spawn_local(async move {
                    loop {
                        counted.set(counted.get() + 1);
                        tokio::task::yield_now().await;
                    }
                });
                for _ in 0..10_000 {
                    let _ = keyed.acquire(&0).await;
                }
                other.abort();
                assert!(turns.get() >= 10, "{} turns beside {keyed:?}", turns.get());
            }
        })
        .await;
}

/// Each refusal is what a limiter alone says, and holds no place.
#[tokio::test(start_paused = true)]
async fn a_refusal_says_what_a_limiter_alone_would() {
    let builder = || Limiter::builder(Rate::per_second(10)).burst(2);
    let bounds = [
        builder(),
        builder().max_wait(Duration::from_millis(150)),
        builder().max_wait(Duration::ZERO),
        builder().max_waiters(0),
        builder().max_waiters(1),
        builder().max_waiters(0).max_wait(Duration::from_millis(10)),
        Limiter::builder(Rate::ZERO).burst(2),
        Limiter::builder(Rate::UNLIMITED).burst(0),
        Limiter::builder(Rate::per_second(10)).burst(0),
    ];
    advance(Duration::from_secs(5)).await;
    for builder in bounds {
        let (keyed, alone) = like(builder);
        let now = Instant::now();
        let deadlines = [None, Some(now - MILLI), Some(now), Some(now + 120 * MILLI)];
        for n in [0, 1, 2, 3] {
            for within in [None, Some(Duration::ZERO), Some(Duration::from_millis(100))] {
                for before in deadlines {
                    let (mut one, mut other) = (keyed.acquire_many(&0, n), alone.acquire_many(n));
                    if let Some(within) = within {
                        (one, other) = (one.within(within), other.within(within));
                    }
                    if let Some(before) = before {
                        (one, other) = (one.before(before), other.before(before));
                    }
                    let case = (n, within, before.map(|before| before - now + MILLI));
                    let outcome = tokio::task::unconstrained(async {
                        (one.now_or_never(), other.now_or_never())
                    });
                    let (one, other) = outcome.await;
                    assert_eq!(one, other, "{case:?} of {alone:?}");
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_bucket_that_leaks_refuses_who_finds_its_queue_full() {
    let keyed: Keyed<u8> = Keyed::like(LeakyBucket::new(Rate::per_second(10), 2));
    let mut waiting = Vec::new();
    for _ in 0..3 {
        let mut turn = Box::pin(keyed.acquire(&0));
        let _ = (&mut turn).now_or_never();
        waiting.push(turn);
    }
    let refused = keyed.acquire(&0).await;
    assert_eq!(refused, Err(AcquireError::QueueFull { max_waiters: 2 }));
    assert_eq!(keyed.acquire(&1).await, Ok(Duration::ZERO));
    drop(waiting.pop());
    assert!(keyed.acquire(&0).now_or_never().is_none(), "a place is free");
}

#[tokio::test(start_paused = true)]
async fn futures_and_turns_may_go_in_any_order_and_leave_nothing_behind() {
    for seed in 0..20 {
        let keyed: Keyed<u64> = Keyed::new(Rate::per_second(10), 2);
        let mut rng = fastrand::Rng::with_seed(seed);
        let (mut waiting, mut turns) = (Vec::new(), Vec::new());
        for _ in 0..200 {
            let key = rng.u64(0..10);
            let mut acquire = keyed.acquire_owned(key);
            match rng.u32(0..3) {
                0 => turns.push(keyed.reserve(&key).unwrap()),
                1 => waiting.push(Box::pin(acquire)),
                _ => {
                    acquire = acquire.within(Duration::from_secs(100));
                    let mut acquire = Box::pin(acquire);
                    let _ =
                        tokio::task::unconstrained(async { (&mut acquire).now_or_never() }).await;
                    waiting.push(acquire);
                }
            }
        }
        assert!(keyed.len() <= 10);
        rng.shuffle(&mut waiting);
        rng.shuffle(&mut turns);
        while let Some(turn) = turns.pop() {
            drop(waiting.pop());
            match rng.u32(0..3) {
                0 => turn.cancel(),
                1 => turn.refund(),
                _ => drop(turn),
            }
        }
        drop(waiting);
        let mut held = 0;
        keyed.for_each(|_, tokens| held += u32::from(tokens < 2.0));
        assert!(held > 0, "turns that were dropped are spent");
        advance(Duration::from_secs(60)).await;
        keyed.retain_busy();
        assert!(keyed.is_empty(), "seed {seed}: {keyed:?}");
    }
}
