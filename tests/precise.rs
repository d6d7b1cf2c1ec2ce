//! A limiter that is built to be precise: by paused time it does what any other does.

#![expect(clippy::float_cmp, reason = "a whole number of tokens is exact in an f64")]

use paceline::{AcquireError, Limiter, Rate};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::{Instant, sleep, timeout};

const MILLI: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3_600);

/// Margins below, about and above the time that a token takes, and one that is never over.
const MARGINS: [Duration; 6] = [
    Duration::ZERO,
    Duration::from_micros(1),
    Duration::from_millis(2),
    Duration::from_millis(100),
    Duration::from_millis(150),
    Duration::MAX,
];

fn precise(rate: Rate, burst: u32, margin: Duration) -> Limiter {
    Limiter::builder(rate).burst(burst).precise(margin).build().unwrap()
}

type Waited = Result<Duration, AcquireError>;

/// A task that acquires, polled once.
async fn waiter(limiter: &Arc<Limiter>, permits: u32) -> JoinHandle<Waited> {
    let task = tokio::spawn(Arc::clone(limiter).acquire_many_owned(permits));
    yield_now().await;
    task
}

/// What it comes to; by paused time, one that waits in vain is given up at once.
async fn in_time<T>(future: impl Future<Output = T>) -> T {
    timeout(1_000 * HOUR, future).await.expect("it ends")
}

/// When each of some waiters had its turn, and how long it says it waited.
async fn turns(limiter: Limiter) -> Vec<(Duration, Waited)> {
    let (limiter, start) = (Arc::new(limiter), Instant::now());
    let mut waiters = Vec::new();
    for (index, permits) in [1, 1, 2, 1, 3, 1, 1].into_iter().enumerate() {
        let limiter = Arc::clone(&limiter);
        waiters.push(tokio::spawn(async move {
            sleep(MILLI * 10 * u32::try_from(index).unwrap()).await;
            let waited = limiter.acquire_many(permits).await;
            (start.elapsed(), waited)
        }));
    }
    let mut turns = Vec::new();
    for waiter in waiters {
        turns.push(waiter.await.unwrap());
    }
    for _ in 0..3 {
        let waited = limiter.acquire().await;
        turns.push((start.elapsed(), waited));
    }
    turns
}

#[tokio::test(start_paused = true)]
async fn turns_come_when_they_come_without_it() {
    for rate in [Rate::per_second(10), Rate::per_second(7), Rate::per_second(1_000)] {
        let expected = turns(Limiter::new(rate, 3)).await;
        assert!(expected.iter().any(|(_, waited)| *waited != Ok(Duration::ZERO)));
        for margin in MARGINS {
            let turns = in_time(turns(precise(rate, 3, margin))).await;
            assert_eq!(turns, expected, "with {margin:?} at {rate}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_turn_follows_the_other_on_the_dot() {
    for margin in MARGINS {
        let limiter = precise(Rate::per_second(10), 1, margin);
        let start = Instant::now();
        for turn in 0..20 {
            in_time(limiter.acquire()).await.unwrap();
            assert_eq!(start.elapsed(), 100 * MILLI * turn, "with {margin:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_hear_of_every_change() {
    for margin in MARGINS {
        let limiter = Arc::new(precise(Rate::per_hour(1), 1, margin));
        in_time(limiter.acquire()).await.unwrap();
        let waiters = [waiter(&limiter, 1).await, waiter(&limiter, 1).await];
        limiter.set_rate(Rate::ZERO).unwrap();
        sleep(MILLI).await;
        limiter.set_rate(Rate::per_second(10)).unwrap();
        sleep(50 * MILLI).await;
        limiter.set_rate(Rate::per_second(20)).unwrap();
        limiter.pause_until(Instant::now() + 10 * MILLI);
        for (turn, waiter) in [86, 136].into_iter().zip(waiters) {
            assert_eq!(in_time(waiter).await.unwrap(), Ok(turn * MILLI), "with {margin:?}");
        }
        let (last, never) = (waiter(&limiter, 1).await, waiter(&limiter, 1).await);
        limiter.set_rate(Rate::UNLIMITED).unwrap();
        for waiter in [last, never] {
            assert_eq!(in_time(waiter).await.unwrap(), Ok(Duration::ZERO), "with {margin:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_is_dropped_gives_back() {
    for margin in MARGINS {
        let limiter = Arc::new(precise(Rate::per_second(10), 2, margin));
        in_time(limiter.acquire_many(2)).await.unwrap();
        let (first, second) = (waiter(&limiter, 2).await, waiter(&limiter, 1).await);
        // Within the margin of its turn, or before.
        sleep(199 * MILLI).await;
        first.abort();
        yield_now().await;
        assert_eq!(limiter.tokens(), 0.99, "with {margin:?}");
        assert_eq!(in_time(limiter.acquire_many(2)).await, Ok(MILLI), "with {margin:?}");
        assert_eq!(in_time(second).await.unwrap(), Ok(300 * MILLI), "with {margin:?}");
        timeout(99 * MILLI, limiter.acquire()).await.unwrap_err();
        assert_eq!(in_time(limiter.acquire()).await, Ok(MILLI), "with {margin:?}");
        assert_eq!(limiter.tokens(), 0.0, "with {margin:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn all_who_wait_are_let_go_when_it_closes() {
    for margin in MARGINS {
        for rate in [Rate::per_second(10), Rate::ZERO] {
            let limiter = Arc::new(precise(rate, 1, margin));
            in_time(limiter.acquire()).await.unwrap();
            let waiters = [waiter(&limiter, 1).await, waiter(&limiter, 1).await];
            sleep(99 * MILLI).await;
            limiter.close();
            let start = Instant::now();
            for waiter in waiters {
                let outcome = in_time(waiter).await.unwrap();
                assert_eq!(outcome, Err(AcquireError::Closed), "with {margin:?} at {rate}");
            }
            assert_eq!(start.elapsed(), Duration::ZERO, "with {margin:?} at {rate}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_deadline_is_judged_by_the_turn() {
    for margin in MARGINS {
        let limiter = precise(Rate::per_second(10), 1, margin);
        in_time(limiter.acquire()).await.unwrap();
        let late = in_time(limiter.acquire().within(99 * MILLI)).await.unwrap_err();
        assert!(matches!(late, AcquireError::WouldExceedDeadline { .. }), "{late:?}");
        assert_eq!(in_time(limiter.acquire().within(100 * MILLI)).await, Ok(100 * MILLI));
    }
}

#[tokio::test(start_paused = true)]
async fn striped_it_is_the_same() {
    for margin in MARGINS {
        let builder = Limiter::builder(Rate::per_second(10)).burst(12).precise(margin);
        let limiter = builder.build_striped(2, 4).unwrap();
        while limiter.try_acquire().is_ok() {}
        for n in [1, 2, 1] {
            let waited = in_time(limiter.acquire_many(n)).await;
            assert_eq!(waited, Ok(n * 100 * MILLI), "with {margin:?}");
        }
    }
}

/// By the machine's clock, of which nothing is asked but that it goes on.
#[test]
fn in_real_time_each_turn_is_used_once() {
    const TURNS: usize = 200;
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_time().build().unwrap();
    runtime.block_on(async {
        let limiter = Arc::new(precise(Rate::per_second(10_000), 1, 2 * MILLI));
        let served = Arc::new(AtomicUsize::new(0));
        let mut tasks = Vec::new();
        for _ in 0..4 {
            let (limiter, served) = (Arc::clone(&limiter), Arc::clone(&served));
            tasks.push(tokio::spawn(async move {
                for _ in 0..TURNS / 4 {
                    limiter.acquire().await.unwrap();
                    served.fetch_add(1, Ordering::Relaxed);
                }
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(served.load(Ordering::Relaxed), TURNS);
        // Nothing is booked any more, and nothing is kept beyond the burst.
        let tokens = limiter.tokens();
        assert!((0.0..=1.0).contains(&tokens), "{tokens}");
    });
}
