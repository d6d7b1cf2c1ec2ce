//! The smooth limiters: Guava's rules, and what Guava lacks (giving up loses nothing).

#![expect(clippy::float_cmp, reason = "of small whole numbers, which are exact")]

mod common;

use common::{SECOND, at, frozen};
use futures::FutureExt;
use paceline::smooth::{Builder, SmoothBursty, SmoothWarmingUp};
use paceline::{AcquireError, DynRateLimit, Rate, RateLimit, ReserveError, TryAcquireError};
use proptest::prelude::*;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::task::{JoinSet, yield_now};
use tokio::time::{Instant, advance, sleep_until, timeout};

const MILLISECOND: Duration = Duration::from_millis(1);
const NANOSECOND: Duration = Duration::from_nanos(1);

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

// ---- Guava's rule ------------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn a_request_pays_for_the_one_before_it() {
    let limiter = SmoothBursty::new(Rate::per_second(5));
    assert_eq!(limiter.acquire_many(4).await, Ok(Duration::ZERO));
    assert_eq!(limiter.acquire_many(10).await, Ok(millis(800)));
    assert_eq!(limiter.acquire().await, Ok(secs(2)));
}

#[tokio::test(start_paused = true)]
async fn a_second_is_stored_unless_more_is_asked_for() {
    let limiter = SmoothBursty::new(Rate::per_second(5));
    let larger = SmoothBursty::with_max_burst(Rate::per_second(5), secs(10));
    assert_eq!(limiter.stored_permits(), 0.0);
    advance(secs(3)).await;
    assert_eq!((limiter.stored_permits(), larger.stored_permits()), (5.0, 15.0));
    assert_eq!(limiter.reserve_many(6), Ok(Duration::ZERO));
    assert_eq!(limiter.reserve_many(1), Ok(millis(200)));
    assert_eq!(larger.reserve_many(15), Ok(Duration::ZERO));
    assert_eq!(larger.reserve_many(1), Ok(Duration::ZERO));
    assert_eq!(larger.reserve_many(1), Ok(millis(200)));
}

#[tokio::test(start_paused = true)]
async fn a_cold_limiter_warms_up_as_guavas() {
    let limiter = SmoothWarmingUp::new(Rate::per_second(2), secs(4));
    let mut waits = Vec::new();
    for _ in 0..8 {
        waits.push(limiter.acquire().await.unwrap().as_millis());
    }
    assert_eq!(waits, [0, 1375, 1125, 875, 625, 500, 500, 500]);
    advance(secs(60)).await;
    assert_eq!(limiter.stored_permits(), 8.0, "and is cold again");
}

#[test]
fn a_new_rate_keeps_the_debt_and_scales_what_is_stored() {
    frozen(|base| {
        let limiter = SmoothBursty::new(Rate::per_second(10));
        let now = at(base, SECOND);
        assert_eq!(limiter.stored_permits_at(now), 10.0);
        limiter.set_rate_at(Rate::per_second(100), now).unwrap();
        assert_eq!(limiter.rate(), Rate::per_second(100));
        assert_eq!(limiter.stored_permits_at(now), 100.0);
        assert_eq!(limiter.reserve_many_at(200, now), Ok(Duration::ZERO));
        limiter.set_rate_at(Rate::per_second(1), now).unwrap();
        assert_eq!(limiter.reserve_many_at(1, now), Ok(secs(1)), "the debt of a hundred at 100/s");
        assert_eq!(limiter.reserve_many_at(1, now), Ok(secs(2)));

        let limiter = SmoothWarmingUp::new(Rate::per_second(2), secs(4));
        assert_eq!(limiter.stored_permits_at(base), 8.0);
        limiter.set_rate_at(Rate::per_second(20), base).unwrap();
        assert_eq!(limiter.stored_permits_at(base), 80.0);
    });
}

#[tokio::test(start_paused = true)]
async fn who_has_a_turn_keeps_it_when_the_rate_changes() {
    let limiter = Arc::new(SmoothBursty::new(Rate::per_second(1)));
    assert!(limiter.try_acquire().is_ok());
    let waiting = tokio::spawn(Arc::clone(&limiter).acquire_owned());
    yield_now().await;
    limiter.set_rate(Rate::per_second(1_000)).unwrap();
    assert_eq!(waiting.await.unwrap(), Ok(secs(1)));
}

/// 600 000/s is one in 1666 2/3 ns. Guava gives one in 1 us.
#[test]
fn rates_that_guava_rounds_are_exact() {
    frozen(|base| {
        for tokens in [3, 7, 80_001, 600_000, 1_000_003, 1_500_000, 4_294_967_291] {
            let rate = Rate::per_second(tokens);
            for burst in [Duration::ZERO, secs(1)] {
                let limiter = SmoothBursty::with_max_burst(rate, burst);
                for taken in 0..2_000 {
                    let wait = limiter.reserve_many_at(1, base).unwrap();
                    assert_eq!(wait.as_nanos(), nanos_for(taken, tokens));
                }
            }
            // Warm after the first request.
            let limiter = SmoothWarmingUp::with_cold_factor(rate, NANOSECOND, 1.0);
            let _ = limiter.reserve_many_at(10_000, base).unwrap();
            for taken in 10_000..12_000 {
                let wait = limiter.reserve_many_at(1, base).unwrap();
                let exact = nanos_for(taken, tokens);
                // Early by a thousandth of a nanosecond it is another whole one.
                assert!(wait.as_nanos() == exact || wait.as_nanos() + 1 == exact);
            }
        }
    });
}

/// The first nanosecond in which so many are minted.
fn nanos_for(taken: u64, per_second: u64) -> u128 {
    (u128::from(taken) * u128::from(SECOND)).div_ceil(u128::from(per_second))
}

/// Coming back in the very nanosecond of each hint, whose fractions must not add up.
#[test]
fn one_who_comes_back_when_told_gets_the_whole_rate() {
    frozen(|base| {
        let rate = Rate::per_second(600_000);
        let even = SmoothBursty::with_max_burst(rate, Duration::ZERO);
        come_back_when_told(base, |now| even.try_acquire_many_at(1, now));
        let warming = SmoothWarmingUp::with_cold_factor(rate, secs(1), 1.0);
        come_back_when_told(base, |now| warming.try_acquire_many_at(1, now));
    });
}

fn come_back_when_told(base: Instant, acquire: impl Fn(Instant) -> Result<(), TryAcquireError>) {
    let mut now = base;
    for _ in 0..60_000 {
        if let Err(refused) = acquire(now) {
            now += refused.retry_after().expect("some time");
            assert_eq!(acquire(now), Ok(()));
        }
    }
    let exact = Duration::from_nanos(99_998_333);
    assert!((now - base).abs_diff(exact) <= NANOSECOND, "{:?}", now - base);
}

#[test]
fn a_warm_up_of_zero_is_an_even_pace() {
    frozen(|base| {
        let rate = Rate::per_second(5);
        let warming = SmoothWarmingUp::new(rate, Duration::ZERO);
        let even = SmoothBursty::with_max_burst(rate, Duration::ZERO);
        let mut now = base;
        for (index, n) in [1, 2, 1, 3, 1, 5].into_iter().enumerate() {
            assert_eq!(warming.reserve_many_at(n, now), even.reserve_many_at(n, now));
            assert_eq!(warming.stored_permits_at(now), 0.0);
            now += secs(u64::from(index % 2 == 0));
        }
    });
}

#[test]
fn a_clock_that_steps_back_neither_stops_nor_doubles() {
    frozen(|base| {
        let limiter = SmoothBursty::new(Rate::per_second(10));
        assert_eq!(limiter.try_acquire_many_at(1, at(base, SECOND)), Ok(()));
        // Of what was stored up to then there are four left.
        for _ in 0..5 {
            assert_eq!(limiter.try_acquire_many_at(1, at(base, SECOND / 2)), Ok(()));
        }
        assert!(limiter.try_acquire_many_at(1, at(base, SECOND / 2)).is_err());
        for _ in 0..5 {
            assert_eq!(limiter.try_acquire_many_at(1, at(base, SECOND)), Ok(()));
        }
        assert!(limiter.try_acquire_many_at(1, at(base, SECOND)).is_err());

        let limiter = SmoothWarmingUp::new(Rate::per_second(10), secs(1));
        assert_eq!(limiter.reserve_many_at(1, at(base, SECOND)), Ok(Duration::ZERO));
        let later = limiter.reserve_many_at(1, at(base, SECOND)).unwrap();
        let limiter = SmoothWarmingUp::new(Rate::per_second(10), secs(1));
        assert_eq!(limiter.reserve_many_at(1, at(base, SECOND)), Ok(Duration::ZERO));
        let earlier = limiter.reserve_many_at(1, at(base, SECOND - 7)).unwrap();
        assert_eq!(earlier, later + 7 * NANOSECOND, "the same turn");
    });
}

// ---- Refusals ----------------------------------------------------------------------------------

#[test]
fn a_refused_try_says_when_to_come_back_to_the_nanosecond() {
    frozen(|base| {
        let limiter = SmoothBursty::new(Rate::per_second(3));
        assert_eq!(limiter.try_acquire_many_at(u32::MAX, base), Ok(()), "however many");
        let limiter_of = |n| {
            let limiter = SmoothBursty::new(Rate::per_second(3));
            assert_eq!(limiter.try_acquire_many_at(n, base), Ok(()));
            limiter
        };
        for n in 1..50 {
            let limiter = limiter_of(n);
            for _ in 0..2 {
                let refused = limiter.try_acquire_many_at(1_000, base).unwrap_err();
                let wait = refused.retry_after().expect("some time");
                assert_eq!(wait.as_nanos(), (u128::from(n) * u128::from(SECOND)).div_ceil(3));
                assert!(limiter.try_acquire_many_at(1, base + wait - NANOSECOND).is_err());
            }
            let wait = limiter.try_acquire_many_at(1, base).unwrap_err().retry_after().unwrap();
            assert_eq!(limiter.try_acquire_many_at(1, base + wait), Ok(()));
        }
    });
}

#[tokio::test(start_paused = true)]
async fn a_refusal_changes_nothing() {
    for limiter in both(Rate::per_second(10)) {
        limiter.acquire_many(10).await.unwrap();
        let before = limiter.try_acquire().unwrap_err();
        let refused = limiter.acquire_many_within(7, millis(10)).await;
        assert!(matches!(refused, Err(AcquireError::WouldExceedDeadline { requested: 7, .. })));
        let refused = limiter.acquire_many_before(1, Instant::now() + millis(10)).await;
        assert!(matches!(refused, Err(AcquireError::WouldExceedDeadline { .. })));
        assert_eq!(limiter.try_acquire_many(0), Ok(()));
        assert_eq!(limiter.try_acquire().unwrap_err(), before);
    }
}

fn both(rate: Rate) -> [Box<dyn DynRateLimit>; 2] {
    [Box::new(SmoothBursty::new(rate)), Box::new(SmoothWarmingUp::new(rate, secs(1)))]
}

#[tokio::test(start_paused = true)]
async fn within_and_before_are_guavas_timeout() {
    let limiter = SmoothBursty::new(Rate::per_second(5));
    assert_eq!(limiter.acquire().within(Duration::ZERO).await, Ok(Duration::ZERO));
    assert!(limiter.acquire().within(millis(199)).await.is_err());
    assert_eq!(limiter.acquire().within(millis(200)).await, Ok(millis(200)));
    let deadline = Instant::now() + millis(200);
    assert!(limiter.acquire().before(deadline - NANOSECOND).await.is_err());
    assert_eq!(limiter.acquire_many(100).before(deadline).await, Ok(millis(200)));
    assert!(limiter.acquire().before(Instant::now() - NANOSECOND).await.is_err());
    advance(secs(60)).await;
    let passed = limiter.acquire().before(Instant::now() - NANOSECOND).await;
    assert!(
        matches!(passed, Err(AcquireError::WouldExceedDeadline { .. })),
        "though it could be had"
    );
    assert_eq!(limiter.stored_permits(), 5.0, "and is left");
}

#[tokio::test(start_paused = true)]
async fn the_builder_bounds_those_who_wait() {
    let limiter = Builder::new(Rate::per_second(1)).max_wait(secs(1)).build_bursty();
    assert!(limiter.try_acquire_many(2).is_ok());
    assert!(matches!(limiter.acquire().await, Err(AcquireError::WouldExceedDeadline { .. })));

    let limiter = Builder::new(Rate::per_second(1)).max_waiters(0).build_warming_up(secs(1));
    assert_eq!(limiter.acquire().await, Ok(Duration::ZERO));
    assert_eq!(limiter.acquire().await, Err(AcquireError::QueueFull { max_waiters: 0 }));
}

#[tokio::test(start_paused = true)]
async fn closed_it_refuses_all_and_lets_all_go() {
    let limiter = Arc::new(SmoothWarmingUp::new(Rate::per_second(1), secs(1)));
    assert!(limiter.try_acquire().is_ok());
    let waiting = tokio::spawn(Arc::clone(&limiter).acquire_owned());
    advance(MILLISECOND).await;
    assert!(!limiter.is_closed());
    limiter.close();
    assert!(limiter.is_closed());
    assert_eq!(waiting.await.unwrap(), Err(AcquireError::Closed));
    assert_eq!(limiter.acquire_many(0).await, Err(AcquireError::Closed));
    assert_eq!(limiter.try_acquire(), Err(TryAcquireError::Closed));
    assert_eq!(limiter.reserve_many(1), Err(ReserveError::Closed));
    limiter.set_rate(Rate::UNLIMITED).unwrap();
    assert!(limiter.is_closed() && limiter.try_acquire().is_err());
}

// ---- The ends of the scale ---------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn a_rate_of_zero_refuses_at_once_and_books_nothing() {
    let limiter = SmoothBursty::new(Rate::ZERO);
    advance(secs(1)).await;
    assert_eq!(limiter.try_acquire().unwrap_err().retry_after(), None);
    assert_eq!(limiter.acquire().await, Err(AcquireError::DebtTooLarge { requested: 1 }));
    let refused = limiter.acquire().within(secs(1)).await;
    assert!(matches!(refused, Err(AcquireError::WouldExceedDeadline { wait: None, .. })));
    assert_eq!(limiter.reserve_many(2), Err(ReserveError::DebtTooLarge { requested: 2 }));
    assert_eq!(limiter.stored_permits(), 0.0);
    limiter.set_rate(Rate::per_second(5)).unwrap();
    assert_eq!(limiter.stored_permits(), 5.0, "its second was stored all the while");
}

#[tokio::test(start_paused = true)]
async fn unlimited_everything_passes() {
    let limiter = SmoothBursty::new(Rate::per_second(10));
    assert!(limiter.try_acquire_many(50).is_ok());
    limiter.set_rate(Rate::UNLIMITED).unwrap();
    assert_eq!(limiter.acquire_many(u32::MAX).await, Ok(Duration::ZERO));
    assert_eq!(limiter.stored_permits(), f64::INFINITY);
    limiter.set_rate(Rate::per_second(10)).unwrap();
    assert_eq!(limiter.reserve_many(1), Ok(secs(5)), "the debt is still there");
    advance(secs(60)).await;

    limiter.set_rate(Rate::UNLIMITED).unwrap();
    assert!(limiter.try_acquire_many(1_000).is_ok());
    limiter.set_rate(Rate::per_second(2)).unwrap();
    assert_eq!(limiter.stored_permits(), 2.0, "full, as in Guava");

    let limiter = SmoothWarmingUp::new(Rate::UNLIMITED, secs(10));
    assert!(limiter.try_acquire_many(1_000).is_ok());
    limiter.set_rate(Rate::per_second(1)).unwrap();
    assert_eq!(limiter.stored_permits(), 0.0, "warm, as in Guava");
    assert_eq!(limiter.reserve_many(1), Ok(Duration::ZERO));
    assert_eq!(limiter.reserve_many(1), Ok(secs(1)));
}

#[test]
fn a_debt_beyond_the_end_of_time_is_never_paid() {
    frozen(|base| {
        let slowest = Rate::every(Duration::MAX);
        for limiter in [
            SmoothBursty::new(slowest),
            SmoothBursty::with_max_burst(slowest, Duration::MAX),
            SmoothBursty::new(Rate::per_day(1)),
        ] {
            assert_eq!(limiter.reserve_many_at(u32::MAX, base), Ok(Duration::ZERO));
            let refused = limiter.try_acquire_many_at(u32::MAX, base).unwrap_err();
            assert_eq!(refused.retry_after(), None);
            let debt = ReserveError::DebtTooLarge { requested: u32::MAX };
            assert_eq!(limiter.reserve_many_at(u32::MAX, base), Err(debt));
        }
        for warmup in [Duration::ZERO, NANOSECOND, secs(1), Duration::MAX] {
            for factor in [1.0, 3.0, 1000.0] {
                let limiter = SmoothWarmingUp::with_cold_factor(slowest, warmup, factor);
                assert_eq!(limiter.reserve_many_at(u32::MAX, base), Ok(Duration::ZERO));
                assert!(limiter.reserve_many_at(u32::MAX, base).is_err());
                let fastest = Rate::per_second(1_000_000_000_000);
                let limiter = SmoothWarmingUp::with_cold_factor(fastest, warmup, factor);
                assert_eq!(limiter.reserve_many_at(u32::MAX, base), Ok(Duration::ZERO));
                assert!(limiter.reserve_many_at(u32::MAX, base).unwrap() >= 4 * MILLISECOND);
            }
        }
    });
}

#[test]
#[should_panic(expected = "the cold factor 0.5 is not a number from 1 to 1000")]
fn a_cold_factor_below_one_panics() {
    let _ = SmoothWarmingUp::with_cold_factor(Rate::per_second(1), secs(1), 0.5);
}

#[test]
#[should_panic(expected = "the cold factor NaN is not a number from 1 to 1000")]
fn a_cold_factor_that_is_no_number_panics() {
    let _ = Builder::new(Rate::per_second(1)).cold_factor(f64::NAN);
}

// ---- Giving up ---------------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn the_last_who_gives_up_leaves_no_trace() {
    for limiter in both(Rate::per_second(10)) {
        limiter.acquire_many(3).await.unwrap();
        let turn = || {
            let refused = limiter.try_acquire().unwrap_err();
            Instant::now() + refused.retry_after().expect("some time")
        };
        let before = turn();
        assert!(timeout(MILLISECOND, limiter.acquire_many(20)).await.is_err());
        assert_eq!(turn(), before);
    }
}

/// Three wait, and the one in the middle gives up.
#[tokio::test(start_paused = true)]
async fn who_gives_up_in_the_middle_leaves_its_turn_to_the_next_that_fits() {
    let limiter = SmoothBursty::new(Rate::per_second(10));
    limiter.acquire().await.unwrap();
    let mut first = Box::pin(limiter.acquire());
    let mut middle = Box::pin(limiter.acquire_many(3));
    let mut last = Box::pin(limiter.acquire());
    for waiting in [&mut first, &mut middle, &mut last] {
        assert!(waiting.as_mut().now_or_never().is_none());
    }
    drop(middle);
    assert_eq!(limiter.reserve_many(4), Ok(millis(600)), "which is too long for it");
    assert_eq!(limiter.reserve_many(2), Ok(millis(200)));
    assert_eq!(limiter.reserve_many(2), Ok(millis(1000)), "one is left");
    assert_eq!(limiter.reserve_many(1), Ok(millis(400)));
    assert_eq!(first.await, Ok(millis(100)));
    assert_eq!(last.await, Ok(millis(500)));
}

#[tokio::test(start_paused = true)]
async fn holes_that_touch_are_one() {
    let limiter = SmoothBursty::new(Rate::per_second(10));
    limiter.acquire().await.unwrap();
    let mut waiting: Vec<_> = (0..4).map(|_| Box::pin(limiter.acquire())).collect();
    for waiting in &mut waiting {
        assert!(waiting.as_mut().now_or_never().is_none());
    }
    drop(waiting.remove(1));
    assert_eq!(limiter.reserve_many(2), Ok(millis(500)));
    drop(waiting.remove(0));
    assert_eq!(limiter.reserve_many(2), Ok(millis(100)), "both of them");
}

/// The stretch of a cold request is as long as its permits were dear. Who takes it over pays the same.
#[tokio::test(start_paused = true)]
async fn a_cold_turn_that_is_given_back_serves_as_many_as_it_would_have() {
    let limiter = SmoothWarmingUp::new(Rate::per_second(2), secs(4));
    limiter.acquire().await.unwrap();
    let mut middle = Box::pin(limiter.acquire_many(2));
    assert!(middle.as_mut().now_or_never().is_none());
    assert_eq!(limiter.reserve_many(1), Ok(millis(1375 + 1125 + 875)));
    drop(middle);
    assert_eq!(limiter.reserve_many(1), Ok(millis(1375)));
    assert_eq!(limiter.reserve_many(1), Ok(millis(1375 + 1125)));
    assert_eq!(limiter.reserve_many(1), Ok(millis(1375 + 1125 + 875 + 625)));
}

#[tokio::test(start_paused = true)]
async fn who_acquires_gets_a_hint_that_counts_the_holes() {
    let limiter = SmoothBursty::new(Rate::per_second(3));
    assert!(limiter.try_acquire().is_ok());
    let mut first = Box::pin(limiter.acquire());
    assert!(first.as_mut().now_or_never().is_none());
    assert!(limiter.reserve_many(1).is_ok());
    drop(first);
    let base = Instant::now();
    let hint = limiter.try_acquire_many_at(1, base).unwrap_err().retry_after().unwrap();
    assert_eq!(hint, Duration::from_nanos(333_333_334));
    assert!(limiter.try_acquire_many_at(1, base + hint - NANOSECOND).is_err());
    assert_eq!(limiter.try_acquire_many_at(1, base + hint), Ok(()));

    let limiter = SmoothWarmingUp::new(Rate::per_second(3), secs(1));
    assert!(limiter.try_acquire().is_ok());
    let mut first = Box::pin(limiter.acquire());
    assert!(first.as_mut().now_or_never().is_none());
    assert!(limiter.reserve_many(1).is_ok());
    drop(first);
    let base = Instant::now();
    let hint = limiter.try_acquire_many_at(1, base).unwrap_err().retry_after().unwrap();
    assert!(limiter.try_acquire_many_at(1, base + hint - NANOSECOND).is_err());
    assert_eq!(limiter.try_acquire_many_at(1, base + hint), Ok(()));
}

/// 400 tasks per second ask a limiter of 100/s, and give up after 100 ms.
#[tokio::test(start_paused = true)]
async fn a_crowd_that_gives_up_gets_the_rate_in_every_second() {
    let used = crowd(Arc::new(SmoothBursty::new(Rate::per_second(100)))).await;
    println!("bursty: {used:?}");
    assert!(used[1..].iter().all(|used| (99..=101).contains(used)), "{used:?}");

    let used = crowd(Arc::new(SmoothWarmingUp::new(Rate::per_second(100), secs(1)))).await;
    println!("warming up: {used:?}");
    assert!(used[3..].iter().all(|used| (95..=101).contains(used)), "{used:?}");
}

async fn crowd(limiter: Arc<impl RateLimit + 'static>) -> [u32; 8] {
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for index in 0..3_200 {
        sleep_until(start + Duration::from_micros(2_500) * index).await;
        let limiter = Arc::clone(&limiter);
        tasks.spawn(async move {
            let acquired = timeout(millis(100), limiter.acquire()).await;
            acquired.is_ok_and(|acquired| acquired.is_ok()).then(|| start.elapsed())
        });
    }
    let mut used = [0; 8];
    for went_on in tasks.join_all().await.into_iter().flatten() {
        let second = usize::try_from(went_on.as_secs()).expect("a few");
        used.get_mut(second).into_iter().for_each(|used| *used += 1);
    }
    used
}

/// Requests of one to four, 400 permits per second in all, each as patient as it happens to be.
#[tokio::test(start_paused = true)]
async fn a_crowd_of_many_sizes_gets_nearly_the_rate_in_every_second() {
    let used = mixed_crowd(Arc::new(SmoothBursty::new(Rate::per_second(100)))).await;
    println!("bursty: {used:?}");
    assert!(used[1..].iter().all(|used| (95..=105).contains(used)), "{used:?}");

    let used = mixed_crowd(Arc::new(SmoothWarmingUp::new(Rate::per_second(100), secs(1)))).await;
    println!("warming up: {used:?}");
    assert!(used[3..].iter().all(|used| (90..=105).contains(used)), "{used:?}");
}

async fn mixed_crowd(limiter: Arc<impl RateLimit + 'static>) -> [u32; 8] {
    let start = Instant::now();
    let mut random = fastrand::Rng::with_seed(7);
    let mut tasks = JoinSet::new();
    for index in 0..1_280 {
        sleep_until(start + Duration::from_micros(6_250) * index).await;
        let (limiter, n) = (Arc::clone(&limiter), random.u32(1..5));
        let patience = millis(random.u64(20..500));
        tasks.spawn(async move {
            let acquired = timeout(patience, limiter.acquire_many(n)).await;
            acquired.is_ok_and(|acquired| acquired.is_ok()).then(|| (start.elapsed(), n))
        });
    }
    let mut used = [0; 8];
    for (went_on, n) in tasks.join_all().await.into_iter().flatten() {
        let second = usize::try_from(went_on.as_secs()).expect("a few");
        used.get_mut(second).into_iter().for_each(|used| *used += n);
    }
    used
}

// ---- Whatever is done ----------------------------------------------------------------------------

/// What is needed of both.
trait Smooth: RateLimit {
    fn reserve_at(&self, n: u32, now: Instant) -> Duration;
    fn try_at(&self, n: u32, now: Instant) -> Result<(), TryAcquireError>;
    fn set(&self, rate: Rate);
}

macro_rules! smooth {
    ($limiter:ty) => {
        impl Smooth for $limiter {
            fn reserve_at(&self, n: u32, now: Instant) -> Duration {
                self.reserve_many_at(n, now).expect("it is open and has a rate")
            }
            fn try_at(&self, n: u32, now: Instant) -> Result<(), TryAcquireError> {
                self.try_acquire_many_at(n, now)
            }
            fn set(&self, rate: Rate) {
                self.set_rate(rate).expect("every rate is within its reach");
            }
        }
    };
}
smooth!(SmoothBursty);
smooth!(SmoothWarmingUp);

#[derive(Clone, Debug)]
enum Act {
    Pass(u64),
    Try(u32),
    Reserve(u32),
    Wait(u32),
    GiveUp(prop::sample::Index),
    SetRate(u64),
}

/// Rates are at most what it starts with.
fn acts() -> impl Strategy<Value = (u64, Vec<Act>)> {
    (1..20_u64).prop_flat_map(|per_second| {
        let act = prop_oneof![
            2 => (0..2_000_000_000_u64).prop_map(Act::Pass),
            2 => (1..8_u32).prop_map(Act::Try),
            2 => (1..8_u32).prop_map(Act::Reserve),
            4 => (1..8_u32).prop_map(Act::Wait),
            4 => any::<prop::sample::Index>().prop_map(Act::GiveUp),
            1 => (1..=per_second).prop_map(Act::SetRate),
        ];
        (Just(per_second), prop::collection::vec(act, 1..80))
    })
}

proptest! {
    #[test]
    fn bursty_keeps_its_bound_and_its_hints((per_second, acts) in acts(), burst in 0..3_u64) {
        let rate = Rate::per_second(per_second);
        check(|| SmoothBursty::with_max_burst(rate, secs(burst)), per_second, burst, acts)?;
    }

    /// Nothing that is stored makes it faster than its rate.
    #[test]
    fn warming_up_keeps_its_bound_and_its_hints((per_second, acts) in acts(), warmup in 0..5_000_u64) {
        let rate = Rate::per_second(per_second);
        check(|| SmoothWarmingUp::new(rate, millis(warmup)), per_second, 0, acts)?;
    }
}

/// Performs `acts`. In every window what begins is at most what was stored and minted, and one request
/// more; and in the end hints are right.
fn check<L: Smooth>(
    limiter: impl FnOnce() -> L,
    per_second: u64,
    burst: u64,
    acts: Vec<Act>,
) -> Result<(), TestCaseError> {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_time().start_paused(true).build().expect("a timer");
    let (limiter, used) = runtime.block_on(async move {
        let limiter = limiter();
        let used = perform(&limiter, acts).await;
        (limiter, used)
    });
    for (first, _) in &used {
        for (last, _) in used.iter().filter(|(last, _)| last >= first) {
            let inside = used.iter().filter(|(time, _)| (first..=last).contains(&time));
            let permits: Vec<u32> = inside.map(|(_, permits)| *permits).collect();
            let one_more = permits.iter().max().expect("itself");
            let total = permits.iter().sum::<u32>() - one_more;
            let bound = u128::from(per_second) * u128::from(burst * SECOND + last - first + 1);
            prop_assert!(u128::from(total) * u128::from(SECOND) <= bound, "{:?}", used);
        }
    }
    runtime.block_on(async move {
        for n in [1, 7, 2] {
            let now = Instant::now();
            if let Err(refused) = limiter.try_at(n, now) {
                prop_assert_eq!(limiter.try_at(n, now), Err(refused.clone()));
                let turn = now + refused.retry_after().expect("some time");
                prop_assert!(limiter.try_at(n, turn - NANOSECOND).is_err());
                prop_assert_eq!(limiter.try_at(n, turn), Ok(()));
                advance(turn - now).await;
            }
        }
        Ok(())
    })
}

/// The times at which turns come, and their permits.
async fn perform(limiter: &impl Smooth, acts: Vec<Act>) -> Vec<(u64, u32)> {
    let base = Instant::now();
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).expect("some seconds");
    let mut used = Vec::new();
    let mut waiting = Vec::new();
    for act in acts {
        let now = Instant::now();
        let at = nanos(now - base);
        match act {
            Act::Pass(time) => advance(Duration::from_nanos(time)).await,
            Act::Try(n) if limiter.try_at(n, now).is_ok() => used.push((at, n)),
            Act::Try(_) => {}
            Act::Reserve(n) => used.push((at + nanos(limiter.reserve_at(n, now)), n)),
            Act::Wait(n) => {
                let mut acquire = Box::pin(limiter.acquire_many(n));
                if acquire.as_mut().now_or_never().is_some() {
                    used.push((at, n));
                } else {
                    waiting.push(acquire);
                }
            }
            Act::GiveUp(_) if waiting.is_empty() => {}
            Act::GiveUp(index) => drop(waiting.swap_remove(index.index(waiting.len()))),
            Act::SetRate(tokens) => limiter.set(Rate::per_second(tokens)),
        }
    }
    used
}

// ---- On many threads ---------------------------------------------------------------------------

/// Threads book for good, and book and give up. In the end each stretch was used once.
#[test]
fn no_stretch_is_lost_or_used_twice_by_threads() {
    let even = SmoothBursty::with_max_burst(Rate::per_day(1), Duration::ZERO);
    stress(&even);
    stress(&SmoothWarmingUp::with_cold_factor(Rate::per_day(1), secs(1), 1.0));
}

fn stress(limiter: &impl Smooth) {
    const THREADS: u32 = 4;
    const ROUNDS: u32 = 2_000;
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_time().build().expect("a timer");
    let base = Instant::now();
    let mut turns = vec![limiter.reserve_at(1, base)];
    thread::scope(|scope| {
        let book_and_give_up = || {
            let _entered = runtime.enter();
            let mut turns = Vec::new();
            for _ in 0..ROUNDS {
                let mut waiting: [_; 2] = std::array::from_fn(|_| Box::pin(limiter.acquire()));
                for acquire in &mut waiting {
                    assert!(acquire.as_mut().now_or_never().is_none());
                }
                turns.push(limiter.reserve_at(1, base));
                let [first, second] = waiting;
                drop(first);
                drop(second);
            }
            turns
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(book_and_give_up)).collect();
        turns.extend(threads.into_iter().flat_map(|thread| thread.join().expect("no panic")));
    });
    // What is left of the holes, up to the first that comes after all.
    let last = *turns.iter().max().expect("many");
    loop {
        let turn = limiter.reserve_at(1, base);
        turns.push(turn);
        if turn > last {
            break;
        }
    }
    turns.sort_unstable();
    let gaps = turns.windows(2).map(|pair| pair[1].abs_diff(pair[0]).as_secs());
    assert!(gaps.skip(1).all(|gap| gap == 86_400), "{turns:?}");
}
