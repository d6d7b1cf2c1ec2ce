//! Limiters by window: what goes wrong elsewhere, and those who wait.

mod common;

use common::{SECOND as NANOS_OF_A_SECOND, at, frozen};
use futures::FutureExt as _;
use paceline::window::{SlidingLog, SlidingWindow};
use paceline::{AcquireError, RangeError, RateLimit, TryAcquireError};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, advance, sleep_until, timeout};

const SECOND: Duration = Duration::from_secs(1);

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn nothing_is_granted_twice_across_the_edge_of_a_period() {
    frozen(|base| {
        let log = SlidingLog::new(10, SECOND);
        let window = SlidingWindow::new(10, SECOND, 10);
        for time in [999_999_999, 1_000_000_000] {
            let granted = (0..20).filter(|_| log.try_acquire_many_at(1, at(base, time)).is_ok());
            let in_window =
                (0..20).filter(|_| window.try_acquire_many_at(1, at(base, time)).is_ok());
            let expected = if time < 1_000_000_000 { 10 } else { 0 };
            assert_eq!((granted.count(), in_window.count()), (expected, expected));
        }
    });
}

#[test]
fn a_lowered_limit_counts_what_was_used() {
    frozen(|base| {
        let log = SlidingLog::new(10, SECOND);
        let window = SlidingWindow::new(10, SECOND, 10);
        assert!(log.try_acquire_many(7).is_ok() && window.try_acquire_many(7).is_ok());
        log.set_limit(8).unwrap();
        window.set_limit_at(8, base).unwrap();
        assert_eq!((log.available(), window.available()), (1, 1));
        log.set_limit(5).unwrap();
        window.set_limit(5).unwrap();
        assert!(log.try_acquire().is_err() && window.try_acquire().is_err());
        assert_eq!(log.available_at(at(base, NANOS_OF_A_SECOND)), 5);
        assert_eq!(window.available_at(at(base, 1_100_000_000)), 5);
        let max = 10;
        assert_eq!(log.set_limit(11), Err(RangeError::BurstExceedsMax { burst: 11, max }));
        assert_eq!(log.limit(), 5);
    });
}

#[test]
fn refusals_come_in_their_order() {
    let log = SlidingLog::new(2, SECOND);
    assert!(log.try_acquire_many(0).is_ok());
    let exceeds = TryAcquireError::ExceedsBurst { requested: 3, burst: 2 };
    assert_eq!(log.try_acquire_many(3), Err(exceeds.clone()));
    let window = SlidingWindow::new(2, SECOND, 4);
    assert_eq!(window.try_acquire_many(3), Err(exceeds));
    log.close();
    window.close();
    assert_eq!(log.try_acquire_many(0), Err(TryAcquireError::Closed));
    assert_eq!(window.try_acquire_many(3), Err(TryAcquireError::Closed));
}

#[test]
fn a_hint_is_when_enough_leaves() {
    frozen(|base| {
        let log = SlidingLog::new(4, SECOND);
        for time in [0, 100, 200, 300] {
            assert!(log.try_acquire_many_at(1, at(base, time)).is_ok());
        }
        let refused = log.try_acquire_many_at(3, at(base, 400)).unwrap_err();
        assert_eq!(refused.retry_after(), Some(Duration::from_nanos(1_000_000_200 - 400)));
        assert!(log.try_acquire_many_at(3, at(base, 1_000_000_199)).is_err());
        assert!(log.try_acquire_many_at(3, at(base, 1_000_000_200)).is_ok());
    });
}

#[test]
fn windows_of_less_than_a_millisecond_and_many_sub_windows() {
    frozen(|base| {
        let window = SlidingWindow::new(3, Duration::from_micros(1), 1024);
        assert_eq!(window.segments(), 1000, "a sub-window is a nanosecond or more");
        let fine = SlidingWindow::new(3, SECOND, 1024);
        let log = SlidingLog::new(3, Duration::from_micros(1));
        for round in 0..5000_u64 {
            let now = at(base, round * 1001);
            assert!(window.try_acquire_many_at(3, now).is_ok());
            assert!(log.try_acquire_many_at(3, now).is_ok());
            assert!(window.try_acquire_many_at(1, now).is_err());
            let now = at(base, round * 1_000_977_075);
            assert!(fine.try_acquire_many_at(3, now).is_ok(), "a window and a sub-window later");
            assert!(fine.try_acquire_many_at(1, now).is_err());
        }
    });
}

#[test]
fn a_clock_that_steps_back_neither_stops_nor_doubles_the_refill() {
    frozen(|base| {
        let log = SlidingLog::new(2, SECOND);
        let window = SlidingWindow::new(2, SECOND, 10);
        let both = |n, millis: u64| {
            let now = at(base, millis * 1_000_000);
            let granted = log.try_acquire_many_at(n, now).is_ok();
            assert_eq!(granted, window.try_acquire_many_at(n, now).is_ok(), "at {millis}");
            granted
        };
        assert!(both(2, 60_000));
        assert!(!both(1, 30_000) && !both(1, 0) && !both(1, 60_000));
        assert!(both(1, 61_180) && both(1, 61_120) && !both(1, 61_180));
        assert!(both(2, 62_300));
    });
}

async fn largest_limits(limiter: &impl RateLimit, period: Duration) {
    let start = Instant::now();
    let all = u32::MAX;
    let turns = [0; 3]
        .map(|_| async { limiter.acquire_many(all).await.map(|_| start.elapsed()) }.boxed_local());
    let turns = futures::future::join_all(turns).await;
    assert_eq!(turns, [0, 1, 2].map(|periods| Ok(period * periods)));
}

#[tokio::test(start_paused = true)]
async fn the_largest_limit_does_not_overflow() {
    let window = SlidingWindow::new(u32::MAX, SECOND, 10);
    largest_limits(&window, millis(1100)).await;
}

#[test]
fn a_log_of_a_million_grants_a_million() {
    frozen(|base| {
        let log = SlidingLog::new(1_000_000, SECOND);
        for _ in 0..1_000_000 {
            assert!(log.try_acquire_many_at(1, base).is_ok());
        }
        assert!(log.try_acquire_many_at(1, base).is_err());
        assert!(log.try_acquire_many_at(1_000_000, at(base, 1_000_000_000)).is_ok());
    });
}

// ---- Those who wait -----------------------------------------------------------------------------

/// A limiter of one permit per second, which leaves the window so much after it was used.
async fn a_lone_waiter_that_gives_up(limiter: &impl RateLimit, leaves: Duration) {
    limiter.acquire().await.unwrap();
    let start = Instant::now();
    assert!(timeout(millis(500), limiter.acquire()).await.is_err());
    sleep_until(start + leaves - millis(1)).await;
    assert!(limiter.try_acquire().is_err());
    advance(millis(1)).await;
    assert!(limiter.try_acquire().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_lone_waiter_that_gives_up_leaves_no_trace() {
    for late in [0, 200] {
        let log = SlidingLog::new(1, SECOND);
        a_lone_waiter_that_gives_up(&log, SECOND).await;
        let window = SlidingWindow::new(1, SECOND, 10);
        a_lone_waiter_that_gives_up(&window, millis(1100)).await;
        advance(millis(late)).await;
    }
}

async fn hopeless(limiter: &impl RateLimit) {
    limiter.acquire_many(2).await.unwrap();
    let refused = limiter.acquire_many_within(1, millis(900)).now_or_never();
    assert!(matches!(refused, Some(Err(AcquireError::WouldExceedDeadline { .. }))));
    let deadline = Instant::now() + millis(900);
    let refused = limiter.acquire_many_before(1, deadline).now_or_never();
    assert!(matches!(refused, Some(Err(AcquireError::WouldExceedDeadline { .. }))));
    assert!(limiter.acquire_many_within(1, millis(1100)).await.is_ok(), "it took nothing");
}

#[tokio::test(start_paused = true)]
async fn a_hopeless_wait_is_refused_at_once() {
    hopeless(&SlidingLog::new(2, SECOND)).await;
    hopeless(&SlidingWindow::new(2, SECOND, 10)).await;
}

/// Of a limit of 10 half is used, and one waits for all of it while others try all the time.
async fn big_request(limiter: &impl RateLimit) -> Duration {
    limiter.acquire_many(5).await.unwrap();
    let mut big = std::pin::pin!(limiter.acquire_many(10));
    for _ in 0..200 {
        if let Some(waited) = big.as_mut().now_or_never() {
            return waited.unwrap();
        }
        assert!(limiter.try_acquire().is_err(), "nobody passes it");
        advance(millis(10)).await;
    }
    panic!("starved")
}

#[tokio::test(start_paused = true)]
async fn a_big_request_is_not_starved_by_small_ones() {
    assert_eq!(big_request(&SlidingLog::new(10, SECOND)).await, SECOND);
    assert_eq!(big_request(&SlidingWindow::new(10, SECOND, 10)).await, millis(1100));
}

/// 400 tasks per second ask a limiter of 100 per second, each for up to `most` permits, and give up
/// after 100 ms. What is granted in each of its periods.
async fn overload<L: RateLimit + 'static>(limiter: L, period: Duration, most: u32) -> Vec<u32> {
    let limiter = Arc::new(limiter);
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for index in 0..4000 {
        sleep_until(start + Duration::from_micros(2500) * index).await;
        let limiter = Arc::clone(&limiter);
        let permits = 1 + index % most;
        tasks.spawn(async move {
            let outcome = timeout(millis(100), limiter.acquire_many(permits)).await;
            outcome.is_ok_and(|acquired| acquired.is_ok()).then(|| (start.elapsed(), permits))
        });
    }
    let mut granted = vec![0; 8];
    for (time, permits) in tasks.join_all().await.into_iter().flatten() {
        let period = usize::try_from(time.as_millis() / period.as_millis()).unwrap();
        granted.get_mut(period).into_iter().for_each(|sum| *sum += permits);
    }
    granted
}

#[tokio::test(start_paused = true)]
async fn callers_that_time_out_get_the_limit_in_every_window() {
    for most in [1, 3] {
        let log = overload(SlidingLog::new(100, SECOND), SECOND, most).await;
        let window = SlidingWindow::new(100, SECOND, 10);
        let window = overload(window, millis(1100), most).await;
        println!("up to {most}: {log:?} {window:?}");
        for granted in [log, window] {
            assert!(granted.iter().all(|sum| (95..=105).contains(sum)), "{granted:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_raised_limit_lets_in_those_who_wait() {
    let log = SlidingLog::builder(1, SECOND).max_limit(10).build().unwrap();
    let window = SlidingWindow::new(1, SECOND, 10);
    log.acquire().await.unwrap();
    window.acquire().await.unwrap();
    let both = async { (log.acquire().await, window.acquire().await) };
    let raise = async {
        tokio::time::sleep(millis(300)).await;
        log.set_limit(10).unwrap();
        tokio::time::sleep(millis(100)).await;
        window.set_limit(10).unwrap();
    };
    let ((first, second), ()) = tokio::join!(both, raise);
    assert_eq!((first, second), (Ok(millis(300)), Ok(millis(100))));
}

#[tokio::test(start_paused = true)]
async fn a_closed_limiter_lets_all_go() {
    let log = SlidingLog::new(1, SECOND);
    log.acquire().await.unwrap();
    let close = async {
        tokio::time::sleep(millis(10)).await;
        log.close();
    };
    let (waited, ()) = tokio::join!(log.acquire(), close);
    assert_eq!(waited, Err(AcquireError::Closed));
}
