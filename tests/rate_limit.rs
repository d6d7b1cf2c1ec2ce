//! `RateLimit` and `DynRateLimit`: all limiters by the verbs that they share.

use paceline::smooth::{SmoothBursty, SmoothWarmingUp};
use paceline::window::{FixedWindow, SlidingLog, SlidingWindow};
use paceline::{
    Acquire, AcquireError, BoxAcquire, DynRateLimit, LeakyBucket, Limiter, Rate, RateLimit,
    TryAcquireError,
};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);
const PER_SECOND: Rate = Rate::per_second(1);

/// Does something with each kind of limiter that there is, of a permit per second and no burst.
macro_rules! for_each_limiter {
    ($limiter:ident => $act:expr) => {{
        {
            let $limiter = Limiter::new(PER_SECOND, 1);
            $act;
        }
        {
            // A stripe and a batch of one leave room for one beside them.
            let $limiter = Limiter::builder(PER_SECOND).burst(2).initial(1);
            let $limiter = $limiter.build_striped(1, 1).unwrap();
            $act;
        }
        {
            let $limiter = FixedWindow::new(1, SECOND);
            $act;
        }
        {
            let $limiter = LeakyBucket::new(PER_SECOND, 9);
            $act;
        }
        {
            // With a sub-window more, as which it counts the one that it is in.
            let $limiter = SlidingWindow::new(1, SECOND * 4 / 5, 4);
            $act;
        }
        {
            let $limiter = SlidingLog::new(1, SECOND);
            $act;
        }
        {
            let $limiter = SmoothBursty::new(PER_SECOND);
            $act;
        }
        {
            // It is cold, and so slow, only when it has been idle.
            let $limiter = SmoothWarmingUp::new(PER_SECOND, Duration::ZERO);
            $act;
        }
    }};
}

/// The same, behind `dyn`.
macro_rules! for_each_boxed {
    ($limiter:ident => $act:expr) => {
        for_each_limiter!($limiter => {
            let $limiter: Box<dyn DynRateLimit> = Box::new($limiter);
            $act
        })
    };
}

fn poll_once(future: &mut BoxAcquire<'_>) -> Poll<Result<Duration, AcquireError>> {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// What all limiters do in the same way.
async fn use_up(limiter: &impl RateLimit) {
    assert!(limiter.try_acquire().is_ok());
    let refused = limiter.try_acquire().unwrap_err();
    assert_eq!(refused.retry_after(), Some(SECOND));
    assert!(limiter.try_acquire_many(0).is_ok());
    let late = |limit| {
        let wait = Some(SECOND);
        Err(AcquireError::WouldExceedDeadline { requested: 1, wait, limit })
    };
    let half = SECOND / 2;
    assert_eq!(limiter.acquire_many_within(1, half).await, late(half));
    assert_eq!(limiter.acquire_many_before(1, Instant::now() + half).await, late(half));
    assert_eq!(limiter.acquire_many_within(1, SECOND).await, Ok(SECOND));
    assert_eq!(limiter.acquire_many_before(1, Instant::now() + SECOND).await, Ok(SECOND));
    assert_eq!(limiter.acquire().await, Ok(SECOND));
    assert_eq!(limiter.acquire_many(0).await, Ok(Duration::ZERO));
    // Given up, and taken by the next.
    assert!(timeout(half, limiter.acquire()).await.is_err());
    assert_eq!(limiter.acquire().await, Ok(half));
    assert!(!limiter.is_closed());
    limiter.close();
    assert!(limiter.is_closed());
    assert_eq!(limiter.try_acquire(), Err(TryAcquireError::Closed));
    assert_eq!(limiter.acquire().await, Err(AcquireError::Closed));
}

#[tokio::test(start_paused = true)]
async fn a_generic_function_takes_any_of_them() {
    for_each_limiter!(limiter => use_up(&limiter).await);
}

#[tokio::test(start_paused = true)]
async fn any_of_them_may_be_behind_dyn() {
    for_each_boxed!(limiter => {
        assert!(limiter.try_acquire().is_ok());
        assert!(limiter.try_acquire_many(1).is_err());
        assert_eq!(limiter.acquire().await, Ok(SECOND));
        assert_eq!(limiter.acquire_many(1).await, Ok(SECOND));
        assert_eq!(limiter.acquire_many_within(1, SECOND).await, Ok(SECOND));
        let deadline = Instant::now() + SECOND;
        assert_eq!(limiter.acquire_many_before(1, deadline).await, Ok(SECOND));
        assert!(limiter.acquire_many_within(1, SECOND / 2).await.is_err());
        assert!(limiter.acquire_many_before(1, Instant::now()).await.is_err());
        limiter.close();
        assert!(limiter.is_closed());
        assert_eq!(limiter.acquire().await, Err(AcquireError::Closed));
    });
}

#[tokio::test(start_paused = true)]
async fn behind_dyn_a_future_that_is_dropped_gives_back() {
    for_each_boxed!(limiter => {
        limiter.acquire().await.unwrap();
        for _ in 0..20 {
            let mut gives_up = limiter.acquire();
            assert!(poll_once(&mut gives_up).is_pending());
        }
        let mut first = limiter.acquire();
        assert!(poll_once(&mut first).is_pending());
        let mut second = limiter.acquire();
        assert!(poll_once(&mut second).is_pending());
        drop(first);
        assert_eq!(limiter.acquire().await, Ok(SECOND));
        assert_eq!(second.await, Ok(SECOND * 2));
    });
}

#[tokio::test(start_paused = true)]
async fn one_that_is_never_polled_takes_nothing() {
    for_each_boxed!(limiter => {
        drop(limiter.acquire());
        let _not_polled: BoxAcquire<'_> = limiter.acquire_many(1);
        assert!(limiter.try_acquire().is_ok());
    });
}

/// Compiles if it can be sent.
fn sendable<T: Send>(value: T) -> T {
    value
}

fn sendable_by_a_generic(limiter: &impl RateLimit) -> impl Future<Output = ()> + Send {
    sendable(async move {
        let _ = limiter.acquire().await;
        sleep(SECOND).await;
    })
}

#[tokio::test(start_paused = true)]
async fn its_futures_can_be_sent_to_other_threads() {
    for_each_limiter!(limiter => {
        let limiter = Arc::new(limiter);
        tokio::spawn(async move { sendable_by_a_generic(&*limiter).await }).await.unwrap();
    });
    for_each_boxed!(limiter => {
        let limiter: Arc<dyn DynRateLimit> = Arc::from(limiter);
        let task = tokio::spawn(async move { limiter.acquire().await });
        assert_eq!(task.await.unwrap(), Ok(Duration::ZERO));
    });
}

#[tokio::test(start_paused = true)]
async fn the_future_of_each_is_an_acquire_and_not_boxed() {
    let limiter = Limiter::new(PER_SECOND, 1);
    let acquire: Acquire<'_> = RateLimit::acquire(&limiter);
    assert!(acquire.within(SECOND).await.is_ok());
    let limiter = FixedWindow::new(1, SECOND);
    let acquire: Acquire<'_, FixedWindow> = RateLimit::acquire(&limiter);
    assert!(acquire.within(SECOND).await.is_ok());
}
