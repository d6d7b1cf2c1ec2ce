//! Several limits at once: all or nothing.

#![expect(clippy::float_cmp, reason = "a whole number of tokens is exact in an f64")]

mod common;

use common::{SECOND, at, frozen};
use paceline::window::{FixedWindow, SlidingLog, SlidingWindow};
use paceline::{
    AcquireError, All, Concurrency, LeakyBucket, Limiter, Rate, Striped, TryAcquireError,
};
use proptest::prelude::*;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, advance, timeout};

fn per_second(rate: u64, burst: u32) -> Limiter {
    Limiter::new(Rate::per_second(rate), burst)
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

// ---- Try ---------------------------------------------------------------------------------------

#[test]
fn it_is_granted_by_all_or_taken_from_none() {
    frozen(|base| {
        let (wide, narrow) = (per_second(10, 10), per_second(1, 2));
        let all = All::new((&wide, &narrow));
        let granted = [(); 3].map(|()| all.try_acquire_many_at(1, base).is_ok());
        assert_eq!(granted, [true, true, false]);
        assert_eq!((wide.tokens_at(base), narrow.tokens_at(base)), (8.0, 0.0));
        // Also if the first is the one that refuses.
        let all = All::new((&narrow, &wide));
        assert!(all.try_acquire_many_at(1, base).is_err());
        assert_eq!(wide.tokens_at(base), 8.0);
    });
}

#[test]
fn a_refusal_says_when_the_last_of_them_has_what_is_asked_for() {
    frozen(|base| {
        let (fast, slow) = (per_second(10, 1), per_second(1, 1));
        let all = All::new((&fast, &slow));
        drop(all.try_acquire_many_at(1, base).unwrap());
        let refused = all.try_acquire_many_at(1, base).unwrap_err();
        assert_eq!(refused.retry_after(), Some(seconds(1)));
        assert!(all.try_acquire_many_at(1, at(base, SECOND - 1)).is_err());
        assert!(all.try_acquire_many_at(1, at(base, SECOND)).is_ok());
        // By whichever of them.
        let all = All::new((&slow, &fast));
        let refused = all.try_acquire_many_at(1, at(base, SECOND)).unwrap_err();
        assert_eq!(refused.retry_after(), Some(seconds(1)));
    });
}

#[test]
fn never_is_longer_than_any_wait() {
    frozen(|base| {
        let (never, slow) = (Limiter::new(Rate::ZERO, 1), per_second(1, 1));
        for all in [All::new((&never, &slow)), All::new((&slow, &never))] {
            let _ = all.try_acquire_many_at(1, base);
            assert_eq!(all.try_acquire_many_at(1, base).unwrap_err().retry_after(), None);
        }
    });
}

#[test]
fn the_weightiest_reason_is_told() {
    frozen(|base| {
        let (small, limited, closed) = (per_second(1, 1), per_second(1, 2), per_second(1, 9));
        limited.try_acquire_many_at(2, base).unwrap();
        let busy = Concurrency::new(2);
        let _place = busy.try_acquire().unwrap();
        let both = All::new((&limited, &small)).try_acquire_many_at(2, base).unwrap_err();
        assert_eq!(both, TryAcquireError::ExceedsBurst { requested: 2, burst: 1 });
        let both = All::new((&limited, &busy)).try_acquire_many_at(2, base).unwrap_err();
        assert_eq!(both, TryAcquireError::AtCapacity { requested: 2, limit: 2 });
        closed.close();
        let all = All::new((&limited, &small, &closed)).try_acquire_many_at(2, base).unwrap_err();
        assert_eq!(all, TryAcquireError::Closed);
    });
}

#[test]
fn places_go_back_when_a_rate_refuses_and_are_held_when_all_grant() {
    frozen(|base| {
        let (rate, places) = (per_second(1, 1), Concurrency::new(3));
        let all = All::new((&rate, &places));
        let permits = all.try_acquire_many_at(1, base).unwrap();
        assert_eq!(places.available(), 2);
        assert!(all.try_acquire_many_at(1, base).is_err());
        assert_eq!(places.available(), 2);
        drop(permits);
        assert_eq!(places.available(), 3);
    });
}

#[test]
fn a_limit_that_is_named_twice_is_asked_for_twice_as_much() {
    frozen(|base| {
        let (rate, places) = (per_second(1, 3), Concurrency::new(3));
        let all = All::new((&rate, &places, &rate, &places));
        let permits = all.try_acquire_many_at(1, base).unwrap();
        assert_eq!((rate.tokens_at(base), places.available()), (1.0, 1));
        drop(permits);
        assert!(all.try_acquire_many_at(1, base).is_err(), "one is left, of two");
        assert_eq!((rate.tokens_at(base), places.available()), (1.0, 3));
    });
}

#[test]
fn any_limiter_can_be_a_member_in_any_collection() {
    frozen(|base| {
        let striped = Striped::new(Rate::per_second(1), 1_000).unwrap();
        let window = FixedWindow::new(2, seconds(60));
        let leaky = Arc::new(LeakyBucket::new(Rate::per_second(1), 1));
        let all = All::new((striped, &window, Arc::clone(&leaky), per_second(1, 1)));
        assert!(all.try_acquire_many_at(1, base).is_ok());
        assert!(all.try_acquire_many_at(1, base).is_err());
        assert_eq!(window.available_at(base), 1);

        let limits = vec![per_second(1, 2), per_second(1, 1)];
        let slice = All::new(&limits[..]);
        assert!(slice.try_acquire_many_at(1, base).is_ok());
        assert!(slice.try_acquire_many_at(1, base).is_err());
        let shared: Vec<Arc<Limiter>> = limits.into_iter().map(Arc::new).collect();
        assert_eq!(shared[0].tokens_at(base), 1.0);
        assert!(All::new(shared).try_acquire_many_at(1, base).is_err());
        assert!(
            All::new([per_second(1, 1), per_second(1, 1)]).try_acquire_many_at(1, base).is_ok()
        );
    });
}

proptest! {
    /// Whatever was taken before, a refusal leaves each as it was, and a grant takes of each.
    #[test]
    fn a_try_takes_of_each_or_of_none(
        rates in prop::collection::vec((1_u64..5, 1_u32..6), 2..5),
        steps in prop::collection::vec((0_u64..SECOND, 1_u32..4, any::<prop::sample::Index>()), 1..40),
    ) {
        frozen(|base| -> Result<(), TestCaseError> {
            let limits: Vec<_> = rates.iter().map(|(rate, burst)| per_second(*rate, *burst)).collect();
            let all = All::new(&limits[..]);
            let mut now = 0;
            for (wait, n, other) in steps {
                now += wait;
                let time = at(base, now);
                let _ = other.get(&limits).try_acquire_many_at(1, time);
                let tokens = || -> Vec<f64> { limits.iter().map(|l| l.tokens_at(time)).collect() };
                let before = tokens();
                let enough = before.iter().all(|tokens| *tokens >= f64::from(n));
                let outcome = all.try_acquire_many_at(n, time);
                prop_assert_eq!(outcome.is_ok(), enough);
                let taken = if enough { f64::from(n) } else { 0.0 };
                for (before, after) in before.iter().zip(tokens()) {
                    prop_assert!((before - taken - after).abs() < 1e-9);
                }
                if let Some(hint) = outcome.err().and_then(|refused| refused.retry_after()) {
                    let hint = u64::try_from(hint.as_nanos()).unwrap();
                    prop_assert!(all.try_acquire_many_at(n, at(base, now + hint - 1)).is_err());
                }
            }
            Ok(())
        })?;
    }
}

// ---- Waiting -----------------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn it_waits_as_long_as_the_slowest_asks() {
    let (fast, slow) = (per_second(10, 1), per_second(1, 1));
    let all = All::new((&fast, &slow));
    assert_eq!(all.acquire().await.unwrap().waited(), Duration::ZERO);
    assert_eq!(all.acquire().await.unwrap().waited(), seconds(1));
    assert_eq!(all.acquire().await.unwrap().waited(), seconds(1));
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_overflows_while_it_waits_for_another_is_not_used() {
    // The turn with the fast one comes after 1 ms and has overflowed long before the slow one's.
    let (fast, slow) = (per_second(1000, 1), per_second(1, 1));
    let all = All::new((&fast, &slow));
    drop(all.acquire().await.unwrap());
    let waited = all.acquire().await.unwrap().waited();
    assert_eq!(waited, seconds(1));
    // So it took the one that was there then, and the next is there a millisecond later.
    let refused = fast.try_acquire().unwrap_err();
    assert_eq!(refused.retry_after(), Some(Duration::from_millis(1)));
}

#[tokio::test(start_paused = true)]
async fn who_gives_up_gives_back_everywhere() {
    let (one, other, places) = (per_second(10, 1), per_second(1, 1), Concurrency::new(2));
    let all = All::new((&one, &other, &places));
    let _held = all.acquire().await.unwrap();
    assert!(timeout(Duration::from_millis(10), all.acquire()).await.is_err());
    assert_eq!(places.available(), 1);
    assert_eq!((one.tokens(), other.tokens()), (0.1, 0.01));
    // The next has its turns.
    assert_eq!(other.reserve().unwrap().delay().as_millis(), 990);
}

#[tokio::test(start_paused = true)]
async fn a_window_is_not_used_by_one_who_gives_up_waiting_for_another() {
    let (slow, log) = (per_second(1, 1), SlidingLog::new(1, seconds(60)));
    let window = SlidingWindow::new(1, seconds(60), 6);
    slow.acquire().await.unwrap();
    let all = All::new((&slow, &log, &window));
    assert!(timeout(Duration::from_millis(100), all.acquire()).await.is_err());
    assert_eq!((log.available(), window.available()), (1, 1));
    // And the one who waits to the end has it, when all have come.
    assert_eq!(all.acquire().await.unwrap().waited(), Duration::from_millis(900));
    assert_eq!((log.available(), window.available()), (0, 0));
    // A place in the window to come is given back.
    assert!(timeout(seconds(30), all.acquire()).await.is_err());
    assert_eq!(all.acquire().await.unwrap().waited().as_secs() / 10, 3);
}

#[tokio::test(start_paused = true)]
async fn what_comes_too_late_is_refused_at_once_and_takes_nothing() {
    let (fast, slow) = (per_second(10, 1), per_second(1, 1));
    let all = All::new((&fast, &slow));
    drop(all.acquire().await.unwrap());
    let began = Instant::now();
    let refused = all.acquire_many_within(1, Duration::from_millis(999)).await.unwrap_err();
    assert!(matches!(
        refused,
        AcquireError::WouldExceedDeadline { requested: 1, wait: Some(wait), .. } if wait == seconds(1)
    ));
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!((fast.tokens(), slow.tokens()), (0.0, 0.0));
    assert!(all.acquire_many_before(1, began + seconds(1)).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_place_ends_with_the_deadline() {
    let places = Concurrency::new(1);
    let all = All::new((per_second(1000, 10), &places));
    let _held = all.acquire().await.unwrap();
    let refused = all.acquire_many_within(1, seconds(3)).await.unwrap_err();
    assert!(matches!(
        refused,
        AcquireError::WouldExceedDeadline { wait: None, limit, .. } if limit == seconds(3)
    ));
}

#[tokio::test(start_paused = true)]
async fn who_names_them_in_another_order_does_not_wait_for_ever() {
    let (one, other) = (Concurrency::new(1), Concurrency::new(1));
    let (one, other) = (&one, &other);
    let work = |first, second| async move {
        for _ in 0..100 {
            let permits = All::new((first, second)).acquire().await.unwrap();
            tokio::task::yield_now().await;
            drop(permits);
        }
    };
    let all = async { tokio::join!(work(one, other), work(other, one), work(one, one_of(other))) };
    timeout(seconds(60), all).await.expect("nobody waits for ever");
}

fn one_of(concurrency: &Concurrency) -> &Concurrency {
    concurrency
}

#[tokio::test(start_paused = true)]
async fn a_change_of_any_of_them_is_heard() {
    let limits = Arc::new((per_second(1000, 1), Limiter::new(Rate::per_hour(1), 1)));
    let waiting = {
        let limits = Arc::clone(&limits);
        tokio::spawn(async move {
            let all = All::new((&limits.0, &limits.1));
            drop(all.acquire().await.unwrap());
            all.acquire().await.map(|permits| permits.waited())
        })
    };
    tokio::task::yield_now().await;
    advance(seconds(1)).await;
    limits.1.set_rate(Rate::per_second(1)).unwrap();
    // A second of the old rate is next to nothing.
    let waited = waiting.await.unwrap().unwrap();
    assert!((1_999..=2_000).contains(&waited.as_millis()), "{waited:?}");

    let waiting = {
        let limits = Arc::clone(&limits);
        tokio::spawn(async move { All::new((&limits.0, &limits.1)).acquire().await.map(drop) })
    };
    tokio::task::yield_now().await;
    limits.0.close();
    assert_eq!(waiting.await.unwrap(), Err(AcquireError::Closed));
}

#[tokio::test(start_paused = true)]
async fn a_crowd_has_what_the_tightest_allows() {
    let limits = Arc::new((per_second(50, 5), per_second(20, 20), Concurrency::new(10)));
    let served = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let tasks: Vec<_> = (0..40)
        .map(|_| {
            let (limits, served) = (Arc::clone(&limits), Arc::clone(&served));
            tokio::spawn(async move {
                let all = All::new((&limits.0, &limits.1, &limits.2));
                loop {
                    // Most give up again and again.
                    if let Ok(permits) = timeout(Duration::from_millis(300), all.acquire()).await {
                        drop(permits.unwrap());
                        served.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    }
                }
            })
        })
        .collect();
    tokio::time::sleep(seconds(10)).await;
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
    let served = served.load(std::sync::atomic::Ordering::Relaxed);
    assert!((200..=222).contains(&served), "{served} of 20/s and a burst of 20 in 10 s");
}

// ---- Concurrency -------------------------------------------------------------------------------

#[test]
fn no_more_than_the_limit_are_in_whatever_becomes_of_it() {
    let concurrency = Concurrency::new(3);
    let mut places: Vec<_> = (0..3).map(|_| concurrency.try_acquire().unwrap()).collect();
    let full = TryAcquireError::AtCapacity { requested: 1, limit: 3 };
    assert_eq!(concurrency.try_acquire().unwrap_err(), full);
    concurrency.set_limit(1);
    places.truncate(1);
    assert!(concurrency.try_acquire().is_err(), "one is in");
    concurrency.set_limit(2);
    let second = concurrency.try_acquire().unwrap();
    assert!(concurrency.try_acquire().is_err());
    // Lowered and raised while all are in: none is let in twice.
    concurrency.set_limit(0);
    concurrency.set_limit(2);
    assert!(concurrency.try_acquire().is_err());
    drop((places, second));
    assert_eq!(concurrency.available(), 2);
    let two = concurrency.try_acquire_many(2).unwrap();
    concurrency.set_limit(1);
    drop(two);
    assert_eq!(concurrency.available(), 1);
    assert_eq!(
        concurrency.try_acquire_many(2).unwrap_err(),
        TryAcquireError::ExceedsBurst { requested: 2, burst: 1 }
    );
}

#[tokio::test(start_paused = true)]
async fn places_are_had_in_the_order_of_asking_and_closed_lets_all_go() {
    let concurrency = Concurrency::new(1);
    let place = concurrency.acquire().await.unwrap();
    let second = concurrency.acquire();
    let third = concurrency.acquire();
    tokio::pin!(second, third);
    assert!(timeout(seconds(1), second.as_mut()).await.is_err());
    assert!(timeout(seconds(1), third.as_mut()).await.is_err());
    drop(place);
    let place = second.await.unwrap();
    concurrency.close();
    assert_eq!(third.await.unwrap_err(), AcquireError::Closed);
    assert_eq!(concurrency.try_acquire().unwrap_err(), TryAcquireError::Closed);
    drop(place);
}
