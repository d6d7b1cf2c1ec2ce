//! `stats`: what there is to see of a limiter.

use paceline::smooth::SmoothBursty;
use paceline::window::{FixedWindow, SlidingWindow};
use paceline::{LeakyBucket, Limiter, Rate, RateLimit, Stats};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;
use tokio::time::{advance, timeout};

const SECOND: Duration = Duration::from_secs(1);

fn cx() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

fn numbers(stats: Stats) -> (f64, u32, usize, bool) {
    (stats.tokens, stats.waiters, stats.holes, stats.closed)
}

#[tokio::test(start_paused = true)]
async fn waiters_are_those_who_wait_and_holes_what_they_leave() {
    for builder in [
        Limiter::builder(Rate::per_second(1)).burst(2),
        Limiter::builder(Rate::per_second(1)).burst(2).max_waiters(9),
    ] {
        let limiter = builder.build().unwrap();
        assert_eq!(numbers(limiter.stats()), (2.0, 0, 0, false));
        limiter.acquire_many(2).await.unwrap();
        let mut waiting: Vec<_> = (0..5).map(|_| Box::pin(limiter.acquire())).collect();
        assert_eq!(numbers(limiter.stats()), (0.0, 0, 0, false), "not polled yet");
        for waits in &mut waiting {
            assert!(waits.as_mut().poll(&mut cx()).is_pending());
        }
        assert_eq!(numbers(limiter.stats()), (-5.0, 5, 0, false));
        drop(waiting.remove(3));
        drop(waiting.remove(1));
        assert_eq!(numbers(limiter.stats()), (-3.0, 3, 2, false));
        drop(waiting);
        assert_eq!(numbers(limiter.stats()), (0.0, 0, 0, false));
        assert!(timeout(SECOND / 2, limiter.acquire()).await.is_err());
        assert!(limiter.acquire().within(SECOND / 4).await.is_err());
        assert_eq!(numbers(limiter.stats()), (0.5, 0, 0, false));
        limiter.close();
        assert_eq!(numbers(limiter.stats()), (0.5, 0, 0, true));
    }
}

#[tokio::test(start_paused = true)]
async fn a_hole_that_has_overflowed_counts_no_more() {
    let limiter = Limiter::new(Rate::per_second(1), 1);
    limiter.acquire().await.unwrap();
    let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(limiter.acquire())).collect();
    for waits in &mut waiting {
        assert!(waits.as_mut().poll(&mut cx()).is_pending());
    }
    drop(waiting.remove(0));
    assert_eq!(limiter.stats().holes, 1);
    advance(SECOND * 3).await;
    assert_eq!(limiter.stats().holes, 0);
}

#[test]
fn a_thread_that_blocks_is_a_waiter() {
    let limiter = Limiter::new(Rate::ZERO, 0);
    limiter.set_burst(1).unwrap();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| limiter.blocking_acquire());
        while limiter.stats().waiters == 0 {
            thread::yield_now();
        }
        limiter.close();
        assert!(waiter.join().unwrap().is_err());
    });
    assert_eq!(limiter.stats().waiters, 0);
}

#[tokio::test(start_paused = true)]
async fn all_limiters_have_them() {
    async fn tokens_left_of_five(limiter: &impl RateLimit) -> f64 {
        limiter.acquire_many(2).await.unwrap();
        limiter.stats().tokens
    }
    let rate = Rate::per_second(5);
    let striped = Limiter::builder(rate).burst(5).build_striped(1, 2).unwrap();
    for left in [
        tokens_left_of_five(&Limiter::new(rate, 5)).await,
        tokens_left_of_five(&striped).await,
        tokens_left_of_five(&LeakyBucket::builder(rate, 9).delay(4).build().unwrap()).await,
        tokens_left_of_five(&FixedWindow::new(5, SECOND)).await,
        tokens_left_of_five(&SlidingWindow::new(5, SECOND, 5)).await,
        // It starts with nothing stored, and any number passes.
        tokens_left_of_five(&SmoothBursty::new(rate)).await + 3.0,
    ] {
        assert!((left - 3.0).abs() < 1e-9, "{left}");
    }
}
