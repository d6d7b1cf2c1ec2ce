//! `LeakyBucket`: a queue of bounded length that drains evenly, and nginx's rule.

#![expect(clippy::float_cmp, reason = "whole and half requests are exact")]

mod common;

use common::{SECOND, at, frozen};
use paceline::{AcquireError, BuildError, LeakyBucket, RangeError, Rate, TryAcquireError};
use proptest::prelude::*;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::{Instant, advance, sleep};

const TEN: Rate = Rate::per_second(10);
const TENTH: Duration = Duration::from_millis(100);

type Waited = Result<Duration, AcquireError>;

/// A task that acquires, polled once.
async fn waiter(bucket: &Arc<LeakyBucket>, permits: u32) -> JoinHandle<Waited> {
    let task = tokio::spawn(Arc::clone(bucket).acquire_many_owned(permits));
    yield_now().await;
    task
}

fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

// ---- A queue -----------------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn it_drains_evenly_and_refuses_what_finds_it_full() {
    let bucket = Arc::new(LeakyBucket::new(TEN, 3));
    assert_eq!((bucket.rate(), bucket.capacity()), (TEN, 3));
    let mut waiters = Vec::new();
    for _ in 0..6 {
        waiters.push(waiter(&bucket, 1).await);
    }
    let full = Err(AcquireError::QueueFull { max_waiters: 3 });
    let expected = [0, 1, 2, 3].map(|turn| Ok(TENTH * turn)).into_iter();
    for (waiter, expected) in waiters.into_iter().zip(expected.chain([full.clone(), full])) {
        assert_eq!(waiter.await.unwrap(), expected);
    }
    assert!(AcquireError::QueueFull { max_waiters: 3 }.to_string().contains('3'));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_gathered_for_a_burst_while_it_is_idle() {
    let bucket = LeakyBucket::new(TEN, 9);
    for _ in 0..3 {
        sleep(Duration::from_secs(3_600)).await;
        assert_eq!(bucket.acquire().await, Ok(Duration::ZERO));
        assert_eq!(bucket.acquire().await, Ok(TENTH));
    }
}

#[tokio::test(start_paused = true)]
async fn without_capacity_nobody_waits() {
    let bucket = LeakyBucket::new(TEN, 0);
    assert_eq!(bucket.acquire().await, Ok(Duration::ZERO));
    assert_eq!(bucket.acquire().await, Err(AcquireError::QueueFull { max_waiters: 0 }));
    advance(TENTH).await;
    assert_eq!(bucket.acquire().await, Ok(Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn who_gives_up_frees_its_place_at_once() {
    let bucket = LeakyBucket::new(TEN, 2);
    assert_eq!(bucket.acquire().await, Ok(Duration::ZERO));
    let mut first = Box::pin(bucket.acquire());
    assert!(poll_once(first.as_mut()).is_pending());
    for _ in 0..100 {
        let mut second = Box::pin(bucket.acquire());
        assert!(poll_once(second.as_mut()).is_pending());
        let full = Err(AcquireError::QueueFull { max_waiters: 2 });
        assert_eq!(poll_once(Box::pin(bucket.acquire()).as_mut()), Poll::Ready(full));
    }
    // Also one in the middle: who comes next has its turn.
    let mut last = Box::pin(bucket.acquire());
    assert!(poll_once(last.as_mut()).is_pending());
    drop(first);
    assert_eq!(bucket.acquire().await, Ok(TENTH));
    assert_eq!(last.await, Ok(TENTH * 2));
    assert_eq!(bucket.level(), 1.0);
}

#[tokio::test(start_paused = true)]
async fn who_waits_leaves_by_a_new_rate_at_once() {
    let bucket = Arc::new(LeakyBucket::new(Rate::per_hour(1), 2));
    bucket.try_acquire().unwrap();
    let waiters = [waiter(&bucket, 1).await, waiter(&bucket, 1).await];
    sleep(TENTH).await;
    bucket.set_rate(TEN).unwrap();
    assert_eq!(bucket.rate(), TEN);
    let [first, second] = waiters;
    let first = first.await.unwrap().unwrap();
    // A thirty-six-thousandth had drained.
    assert!(first > TENTH && first <= TENTH * 2, "{first:?}");
    let second = second.await.unwrap().unwrap();
    assert!(second > TENTH * 2 && second <= TENTH * 3, "{second:?}");
}

#[tokio::test(start_paused = true)]
async fn who_would_be_late_is_refused_at_once_and_takes_no_place() {
    let bucket = LeakyBucket::builder(TEN, 5).max_wait(TENTH * 3).build().unwrap();
    bucket.try_acquire().unwrap();
    let mut waits = [1, 2, 3].map(|_| Box::pin(bucket.acquire()));
    for wait in &mut waits {
        assert!(poll_once(wait.as_mut()).is_pending());
    }
    let late = |limit| {
        let wait = Some(TENTH * 4);
        Err(AcquireError::WouldExceedDeadline { requested: 1, wait, limit })
    };
    assert_eq!(bucket.acquire().await, late(TENTH * 3));
    assert_eq!(bucket.acquire().within(TENTH * 2).await, late(TENTH * 2));
    assert_eq!(bucket.acquire().before(Instant::now() + TENTH).await, late(TENTH));
    assert_eq!(bucket.level(), 4.0);
    for (turn, wait) in (1..).zip(waits) {
        assert_eq!(wait.await, Ok(TENTH * turn));
    }
}

#[test]
fn the_level_rises_with_each_request_and_falls_evenly() {
    frozen(|base| {
        let bucket = LeakyBucket::builder(TEN, 9).delay(4).build().unwrap();
        assert_eq!(bucket.level_at(base), 0.0);
        bucket.try_acquire_many_at(5, base).unwrap();
        assert_eq!(bucket.level_at(base), 5.0);
        let mut waits = Box::pin(bucket.acquire_many(5));
        assert!(poll_once(waits.as_mut()).is_pending());
        assert_eq!(bucket.level_at(base), 10.0, "capacity and one");
        for (tenths, level) in [(1, 9.0), (4, 6.0), (10, 0.0), (1_000, 0.0)] {
            assert_eq!(bucket.level_at(base + TENTH * tenths), level);
        }
        assert_eq!(bucket.level_at(base + TENTH / 2), 9.5);
        drop(waits);
        assert_eq!(bucket.level_at(base), 5.0);
    });
}

#[test]
fn a_try_does_not_queue_and_says_when_to_come_back() {
    frozen(|base| {
        let bucket = LeakyBucket::new(Rate::per_second(3), 9);
        let nanos = Duration::from_nanos;
        let mut now = base;
        for _ in 0..5 {
            bucket.try_acquire_many_at(1, now).unwrap();
            let wait = bucket.try_acquire_many_at(1, now).unwrap_err().retry_after().unwrap();
            assert!(wait >= nanos(SECOND / 3) && wait <= nanos(SECOND / 3 + 1), "{wait:?}");
            now += wait;
            let early = bucket.try_acquire_many_at(1, now - nanos(1)).unwrap_err();
            assert_eq!(early.retry_after(), Some(nanos(1)));
        }
    });
}

#[tokio::test(start_paused = true)]
async fn more_than_can_leave_at_once_is_refused_as_that() {
    let bucket = LeakyBucket::builder(TEN, 9).delay(2).build().unwrap();
    let burst = 3;
    let refused = TryAcquireError::ExceedsBurst { requested: 4, burst };
    assert_eq!(bucket.try_acquire_many(4), Err(refused));
    let refused = AcquireError::ExceedsBurst { requested: 4, burst };
    assert_eq!(bucket.acquire_many(4).await, Err(refused));
    assert_eq!(bucket.level(), 0.0);
    assert_eq!(bucket.acquire_many(3).await, Ok(Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn all_who_wait_are_let_go_when_it_is_closed() {
    let bucket = Arc::new(LeakyBucket::new(TEN, 2));
    bucket.try_acquire().unwrap();
    let waits = waiter(&bucket, 1).await;
    bucket.close();
    assert!(bucket.is_closed());
    assert_eq!(waits.await.unwrap(), Err(AcquireError::Closed));
    assert_eq!(bucket.acquire_many(0).await, Err(AcquireError::Closed));
    assert_eq!(bucket.try_acquire(), Err(TryAcquireError::Closed));
}

#[test]
fn what_cannot_be_built_or_set_is_an_error_that_names_it() {
    frozen(|_| {
        let error = LeakyBucket::builder(TEN, 3).delay(4).build().unwrap_err();
        assert_eq!(error, BuildError::DelayExceedsCapacity { delay: 4, capacity: 3 });
        assert!(error.to_string().contains('4') && error.to_string().contains('3'));
        let error = LeakyBucket::builder(TEN, 3).max_rate(Rate::per_second(9)).build().unwrap_err();
        assert_eq!(error, BuildError::RateExceedsMax { rate: TEN, max: Rate::per_second(9) });
        let bucket = LeakyBucket::builder(TEN, 3).max_rate(TEN).build().unwrap();
        let rate = Rate::per_second(11);
        let error = bucket.set_rate(rate).unwrap_err();
        assert_eq!(error, RangeError::RateExceedsMax { rate, max: TEN });
        assert_eq!(bucket.rate(), TEN);
    });
}

#[test]
fn at_no_rate_the_first_leaves_and_the_others_wait_for_ever() {
    frozen(|base| {
        let bucket = LeakyBucket::new(Rate::ZERO, 1);
        bucket.try_acquire_many_at(1, base).unwrap();
        let refused = bucket.try_acquire_many_at(1, base + TENTH * 1_000).unwrap_err();
        assert_eq!(refused.retry_after(), None);
        let mut waits = Box::pin(bucket.acquire());
        assert!(poll_once(waits.as_mut()).is_pending());
        let full = Err(AcquireError::QueueFull { max_waiters: 1 });
        assert_eq!(poll_once(Box::pin(bucket.acquire()).as_mut()), Poll::Ready(full));
        bucket.set_rate(Rate::UNLIMITED).unwrap();
        assert_eq!(poll_once(waits.as_mut()), Poll::Ready(Ok(Duration::ZERO)));
    });
}

// ---- nginx -------------------------------------------------------------------------------------

/// `limit_req`, in nanoseconds of draining instead of its thousandths of a request: the excess over
/// the rate, and what becomes of a request by it.
struct Nginx {
    /// The time in which one request drains.
    each: u64,
    burst: u64,
    delay: u64,
    /// What had not drained at the last request that was not refused, and when that was.
    last: Option<(u64, u64)>,
}

impl Nginx {
    fn new(each: u64, burst: u64, delay: u64) -> Self {
        Self { each, burst, delay, last: None }
    }

    /// How long the request is delayed; `None` if it is refused.
    fn request(&mut self, now: u64) -> Option<u64> {
        let excess = match self.last {
            // A key that nginx has not seen begins without excess.
            None => 0,
            Some((excess, then)) => (excess + self.each).saturating_sub(now - then),
        };
        if excess > self.burst * self.each {
            return None;
        }
        self.last = Some((excess, now));
        Some(excess.saturating_sub(self.delay * self.each))
    }
}

/// What the bucket does with requests at these times in milliseconds: how long each waits.
async fn waits(bucket: LeakyBucket, arrivals: &[u64]) -> Vec<Option<u64>> {
    let bucket = Arc::new(bucket);
    let begin = Instant::now();
    let mut waiters = Vec::new();
    for arrival in arrivals {
        tokio::time::sleep_until(begin + Duration::from_millis(*arrival)).await;
        waiters.push(waiter(&bucket, 1).await);
    }
    let mut waits = Vec::new();
    for waiter in waiters {
        waits.push(match waiter.await.unwrap() {
            Ok(waited) => Some(u64::try_from(waited.as_millis()).unwrap()),
            Err(AcquireError::QueueFull { .. }) => None,
            Err(other) => panic!("{other}"),
        });
    }
    waits
}

#[tokio::test(start_paused = true)]
async fn it_does_as_nginx_in_each_of_its_configurations() {
    // rate=10r/s. Seven at once, one after 50 ms, two after 250 ms.
    let arrivals = [0, 0, 0, 0, 0, 0, 0, 50, 250, 250];
    // no burst
    let bucket = LeakyBucket::new(TEN, 0);
    let none = [Some(0), None, None, None, None, None, None, None, Some(0), None];
    assert_eq!(waits(bucket, &arrivals).await, none);
    // burst=3: the excess of the first five is 0, 1, 2, 3 and 4; at 50 ms it is 3.5, at 250 ms it was
    // 3 - 2.5 + 1 = 1.5, and 2.5.
    let bucket = LeakyBucket::new(TEN, 3);
    let queue =
        [Some(0), Some(100), Some(200), Some(300), None, None, None, None, Some(150), Some(250)];
    assert_eq!(waits(bucket, &arrivals).await, queue);
    // burst=4 delay=2: at 50 ms 4.5 is refused, at 250 ms it is 4 - 2.5 + 1 = 2.5, and 3.5.
    let bucket = LeakyBucket::builder(TEN, 4).delay(2).build().unwrap();
    let two_stages =
        [Some(0), Some(0), Some(0), Some(100), Some(200), None, None, None, Some(50), Some(150)];
    assert_eq!(waits(bucket, &arrivals).await, two_stages);
    // burst=5 nodelay: at 250 ms it is 5 - 2.5 + 1 = 3.5, and 4.5.
    let bucket = LeakyBucket::builder(TEN, 5).delay(5).build().unwrap();
    let mut at_once = [Some(0); 10];
    (at_once[6], at_once[7]) = (None, None);
    assert_eq!(waits(bucket, &arrivals).await, at_once);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_does_as_nginx_with_whatever_comes(
        each in prop_oneof![Just(7_u64), Just(10), Just(100)],
        burst in 0..8_u32,
        delay in 0..8_u32,
        pauses in prop::collection::vec(prop_oneof![2 => Just(0_u64), 2 => 1..20_u64, 1 => 1..900_u64], 1..120),
    ) {
        let delay = delay.min(burst);
        let arrivals: Vec<u64> =
            pauses.iter().scan(0, |now, pause| { *now += pause; Some(*now) }).collect();
        let mut nginx = Nginx::new(each, burst.into(), delay.into());
        let expected: Vec<_> = arrivals.iter().map(|now| nginx.request(*now)).collect();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let got = runtime.block_on(async {
            let rate = Rate::every(Duration::from_millis(each));
            let builder = LeakyBucket::builder(rate, burst).delay(delay);
            waits(builder.slack(Duration::ZERO).build().unwrap(), &arrivals).await
        });
        prop_assert_eq!(got, expected);
    }

    #[test]
    fn without_delay_it_does_as_nginx_to_the_nanosecond(
        each in 1..2_000_u64,
        burst in 0..8_u32,
        pauses in prop::collection::vec(prop_oneof![Just(0_u64), 0..3_u64, 0..6_000_u64], 1..120),
    ) {
        frozen(|base| {
            let rate = Rate::every(Duration::from_nanos(each));
            let bucket = LeakyBucket::builder(rate, burst).delay(burst).build().unwrap();
            let mut nginx = Nginx::new(each, burst.into(), burst.into());
            let mut now = 0;
            for pause in pauses {
                now += pause;
                let got = bucket.try_acquire_many_at(1, at(base, now)).is_ok();
                prop_assert_eq!(got, nginx.request(now).is_some());
            }
            Ok(())
        })?;
    }
}
