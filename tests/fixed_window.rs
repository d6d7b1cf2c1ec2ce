//! `FixedWindow`: so many permits in each window, what waits for the next ones, and when they begin.

mod common;

use common::{SECOND, at, frozen};
use paceline::window::{Align, FixedWindow};
use paceline::{AcquireError, BuildError, RangeError, TryAcquireError};
use proptest::prelude::*;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::{Instant, advance, sleep, timeout};

const WINDOW: Duration = Duration::from_secs(1);
const NANO: Duration = Duration::from_nanos(1);

type Waited = Result<Duration, AcquireError>;

/// How many can be had one by one at `now`, up to 1000.
fn drain(limiter: &FixedWindow, now: Instant) -> u32 {
    (0..1_000).find(|_| limiter.try_acquire_many_at(1, now).is_err()).unwrap_or(1_000)
}

#[track_caller]
fn retry_after(limiter: &FixedWindow, n: u32, now: Instant) -> Option<Duration> {
    limiter.try_acquire_many_at(n, now).unwrap_err().retry_after()
}

/// A task that acquires, polled once.
async fn waiter(limiter: &Arc<FixedWindow>, permits: u32) -> JoinHandle<Waited> {
    let task = tokio::spawn(Arc::clone(limiter).acquire_many_owned(permits));
    yield_now().await;
    task
}

fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

// ---- So many in each window --------------------------------------------------------------------

#[test]
fn a_window_has_its_limit_and_the_next_one_has_it_again() {
    frozen(|base| {
        let limiter = FixedWindow::new(10, WINDOW);
        assert_eq!((limiter.limit(), limiter.window()), (10, WINDOW));
        for window in [0, 1, 2, 7, 1_000_000] {
            let begin = base + WINDOW * window;
            assert_eq!(limiter.available_at(begin), 10);
            assert_eq!(drain(&limiter, begin), 10);
            assert_eq!(limiter.available_at(begin), 0);
            assert_eq!(drain(&limiter, begin + WINDOW - NANO), 0);
        }
    });
}

#[test]
fn what_is_not_used_of_a_window_is_lost_with_it() {
    frozen(|base| {
        let limiter = FixedWindow::new(10, WINDOW);
        assert!(limiter.try_acquire_many_at(3, base).is_ok());
        assert_eq!(drain(&limiter, base + WINDOW), 10);
        assert_eq!(drain(&limiter, base + WINDOW * 5), 10);
    });
}

#[test]
fn across_a_boundary_twice_the_limit_is_used_within_a_nanosecond() {
    frozen(|base| {
        let limiter = FixedWindow::new(10, WINDOW);
        let boundary = base + WINDOW;
        assert_eq!(drain(&limiter, boundary - NANO), 10);
        assert_eq!(drain(&limiter, boundary), 10);
        assert_eq!(drain(&limiter, boundary + WINDOW - NANO), 0);
    });
}

#[test]
fn a_refusal_says_when_the_window_ends() {
    frozen(|base| {
        for window in [1, 7, 999, 1_000_003, SECOND, 3_600 * SECOND] {
            let limiter = FixedWindow::new(3, Duration::from_nanos(window));
            let mut now = 0;
            for share in [0, 1, window / 3, window - 1] {
                assert_eq!(drain(&limiter, at(base, now)), 3);
                let within = now + share.min(window - 1);
                let wait = retry_after(&limiter, 2, at(base, within)).unwrap();
                let end = at(base, within) + wait;
                assert_eq!(end, at(base, now + window));
                assert_eq!(retry_after(&limiter, 2, end - NANO), Some(NANO));
                assert!(limiter.try_acquire_many_at(2, end).is_ok());
                // It begins there, with what is left of it.
                assert_eq!(drain(&limiter, end), 1);
                now += 2 * window;
            }
        }
    });
}

#[test]
fn a_window_can_be_shorter_than_a_millisecond() {
    frozen(|base| {
        let limiter = FixedWindow::new(2, Duration::from_nanos(300));
        let granted: u32 = (0..3_000).map(|nanos| drain(&limiter, at(base, nanos))).sum();
        assert_eq!(granted, 20);
    });
}

#[test]
fn what_exceeds_the_limit_is_refused_and_takes_nothing() {
    frozen(|base| {
        let limiter = FixedWindow::new(10, WINDOW);
        for requested in [11, u32::MAX] {
            let refused = limiter.try_acquire_many_at(requested, base).unwrap_err();
            assert_eq!(refused, TryAcquireError::ExceedsBurst { requested, burst: 10 });
            assert_eq!(refused.retry_after(), None);
            let mut waits = Box::pin(limiter.acquire_many(requested));
            let refused = AcquireError::ExceedsBurst { requested, burst: 10 };
            assert_eq!(poll_once(waits.as_mut()), Poll::Ready(Err(refused)));
        }
        assert_eq!(drain(&limiter, base), 10);
    });
}

#[test]
fn nothing_is_always_granted_until_it_is_closed() {
    frozen(|base| {
        for limit in [0, 3] {
            let limiter = FixedWindow::new(limit, WINDOW);
            assert_eq!(drain(&limiter, base), limit);
            assert!(limiter.try_acquire_many_at(0, base).is_ok());
            let nothing = poll_once(Box::pin(limiter.acquire_many(0)).as_mut());
            assert_eq!(nothing, Poll::Ready(Ok(Duration::ZERO)));
            limiter.close();
            assert_eq!(limiter.try_acquire_many_at(0, base), Err(TryAcquireError::Closed));
        }
    });
}

#[test]
fn a_clock_that_steps_back_neither_doubles_a_window_nor_stops_it() {
    frozen(|base| {
        let limiter = FixedWindow::new(10, WINDOW);
        let second = base + WINDOW;
        assert!(limiter.try_acquire_many_at(4, second).is_ok());
        // Back in the first window, which is over.
        assert_eq!(retry_after(&limiter, 6, second - NANO), Some(NANO));
        assert_eq!(retry_after(&limiter, 7, second - NANO), Some(WINDOW + NANO));
        assert_eq!(drain(&limiter, base), 0);
        assert_eq!(drain(&limiter, second), 6);
        assert_eq!(drain(&limiter, second + WINDOW), 10);
    });
}

// ---- Another limit -----------------------------------------------------------------------------

#[test]
fn a_higher_limit_gives_the_difference_at_once() {
    frozen(|base| {
        let limiter = FixedWindow::new(10, WINDOW);
        let now = base + WINDOW / 4;
        assert!(limiter.try_acquire_many_at(7, now).is_ok());
        limiter.set_limit_at(25, now).unwrap();
        assert_eq!(limiter.limit(), 25);
        assert_eq!(limiter.available_at(now), 18);
        assert_eq!(drain(&limiter, now), 18);
        assert_eq!(retry_after(&limiter, 25, now), Some(WINDOW * 3 / 4));
        assert_eq!(drain(&limiter, base + WINDOW), 25);
    });
}

#[test]
fn of_a_lower_limit_what_was_used_of_the_window_counts() {
    frozen(|base| {
        let limiter = FixedWindow::new(10, WINDOW);
        assert!(limiter.try_acquire_many_at(3, base).is_ok());
        limiter.set_limit_at(5, base + WINDOW / 2).unwrap();
        assert_eq!(drain(&limiter, base + WINDOW / 2), 2);
        assert_eq!(drain(&limiter, base + WINDOW), 5);
        // Used is more than the limit now; the next window owes nothing.
        limiter.set_limit_at(2, base + WINDOW).unwrap();
        assert_eq!(retry_after(&limiter, 2, base + WINDOW), Some(WINDOW));
        assert_eq!(drain(&limiter, base + WINDOW * 2), 2);
    });
}

#[test]
fn a_limit_that_goes_down_and_up_again_gives_nothing_twice() {
    frozen(|base| {
        let limiter = FixedWindow::new(10, WINDOW);
        let mut used = 0;
        for _ in 0..3 {
            if limiter.try_acquire_many_at(8, base).is_ok() {
                used += 8;
            }
            limiter.set_limit_at(3, base).unwrap();
            assert_eq!(drain(&limiter, base), 0);
            limiter.set_limit_at(5, base).unwrap();
            assert_eq!(drain(&limiter, base), 0);
            limiter.set_limit_at(10, base).unwrap();
        }
        assert_eq!(used + drain(&limiter, base), 10);
        // In the next window nothing of it is left.
        limiter.set_limit_at(3, base + WINDOW - NANO).unwrap();
        limiter.set_limit_at(10, base + WINDOW).unwrap();
        assert_eq!(drain(&limiter, base + WINDOW), 10);
    });
}

#[test]
fn a_limit_of_zero_refuses_all_until_it_is_raised() {
    frozen(|base| {
        let limiter = FixedWindow::new(0, WINDOW);
        let refused = limiter.try_acquire_many_at(1, base);
        assert_eq!(refused, Err(TryAcquireError::ExceedsBurst { requested: 1, burst: 0 }));
        assert_eq!(limiter.available_at(base), 0);
        limiter.set_limit_at(4, base + WINDOW / 2).unwrap();
        assert_eq!(drain(&limiter, base + WINDOW / 2), 4);
        assert_eq!(retry_after(&limiter, 1, base + WINDOW / 2), Some(WINDOW / 2));
        assert_eq!(drain(&limiter, base + WINDOW), 4);
        limiter.set_limit_at(0, base + WINDOW * 2).unwrap();
        assert_eq!(drain(&limiter, base + WINDOW * 3), 0);
    });
}

#[test]
fn a_limit_beyond_what_it_was_built_for_is_refused_and_names_both() {
    frozen(|base| {
        let limiter = FixedWindow::builder(10, WINDOW).max_limit(20).build().unwrap();
        limiter.set_limit(20).unwrap();
        let refused = limiter.set_limit(21).unwrap_err();
        assert_eq!(refused, RangeError::BurstExceedsMax { burst: 21, max: 20 });
        assert!(refused.to_string().contains("21") && refused.to_string().contains("20"));
        assert_eq!(limiter.set_limit_at(u32::MAX, base).is_err(), limiter.limit() == 20);
        assert_eq!(drain(&limiter, base), 20);
    });
}

/// A counter for each window, and no more.
struct Model {
    /// When one of the windows begins, in nanoseconds.
    begin: i128,
    window: i128,
    limit: u32,
    /// The last window that anything was used of, and how much.
    last: i128,
    used: u32,
    /// What is earlier than the window of the last change counts as its begin.
    changed: i128,
}

#[derive(Debug, PartialEq)]
enum Answer {
    Granted,
    Retry(u64),
    Never,
}

impl Model {
    fn window_of(&self, now: u64) -> i128 {
        (i128::from(now) - self.begin).div_euclid(self.window)
    }

    fn try_acquire(&mut self, n: u32, now: u64) -> Answer {
        let present = self.window_of(now).max(self.changed);
        let first = present.max(self.last);
        let used = if first == self.last { self.used } else { 0 };
        let fits = used.saturating_add(n) <= self.limit;
        if n == 0 {
            return Answer::Granted;
        } else if n > self.limit {
            return Answer::Never;
        } else if fits && first == present {
            (self.last, self.used) = (first, used + n);
            return Answer::Granted;
        }
        let turn = self.begin + (first + i128::from(!fits)) * self.window;
        Answer::Retry(u64::try_from(turn - i128::from(now)).unwrap())
    }

    fn set_limit(&mut self, limit: u32, now: u64) {
        if limit != self.limit {
            self.changed = self.changed.max(self.window_of(now));
            self.limit = limit;
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// After so many sixteenths of a window, and nanoseconds.
    Try(u32, u64, u64),
    /// So many sixteenths of a window before the latest time.
    TryEarlier(u32, u64),
    SetLimit(u32, u64),
    /// When the last refusal said, or a nanosecond before.
    Retry(u32, bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let pause = || prop_oneof![3 => 0..4_u64, 1 => 0..40_u64];
    let step = prop_oneof![
        6 => (0..8_u32, pause(), 0..2_u64).prop_map(|(n, pause, more)| Step::Try(n, pause, more)),
        1 => (0..8_u32, 0..40_u64).prop_map(|(n, back)| Step::TryEarlier(n, back)),
        2 => (0..10_u32, pause()).prop_map(|(limit, pause)| Step::SetLimit(limit, pause)),
        2 => (0..8_u32, any::<bool>()).prop_map(|(n, before)| Step::Retry(n, before)),
    ];
    prop::collection::vec(step, 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_is_a_counter_for_each_window(
        steps in steps(),
        window in prop_oneof![1..50_u64, Just(SECOND), 1_000_000..5_000_000_u64],
        begin in prop_oneof![Just(0_i64), -1_000..1_000_i64, -5_000_000_000..5_000_000_000_i64],
        limit in 0..10_u32,
    ) {
        frozen(|base| {
            let offset = Duration::from_nanos(begin.unsigned_abs());
            let align = if begin < 0 { base - offset } else { base + offset };
            let length = Duration::from_nanos(window);
            let limiter = FixedWindow::builder(limit, length).align(Align::At(align));
            let limiter = limiter.max_limit(10.min(u32::try_from(window * 1_000).unwrap_or(10)));
            let limiter = limiter.build().unwrap();
            let (begin, window_length) = (i128::from(begin), i128::from(window));
            let mut model = Model {
                begin,
                window: window_length,
                limit,
                last: i128::MIN,
                used: 0,
                changed: (-begin).div_euclid(window_length),
            };
            let (mut latest, mut retry) = (0, 0);
            for step in steps {
                let (n, now) = match step {
                    Step::Try(n, pause, more) => (n, latest + window * pause / 16 + more),
                    Step::TryEarlier(n, back) => (n, latest.saturating_sub(window * back / 16)),
                    Step::Retry(n, before) => (n, retry - u64::from(before && retry > 0)),
                    Step::SetLimit(limit, pause) => {
                        latest += window * pause / 16;
                        limiter.set_limit_at(limit, at(base, latest)).unwrap();
                        model.set_limit(limit, latest);
                        continue;
                    }
                };
                latest = latest.max(now);
                let answer = match limiter.try_acquire_many_at(n, at(base, now)) {
                    Ok(()) => Answer::Granted,
                    Err(TryAcquireError::ExceedsBurst { .. }) => Answer::Never,
                    Err(refused) => {
                        let wait = refused.retry_after().unwrap();
                        Answer::Retry(u64::try_from(wait.as_nanos()).unwrap())
                    }
                };
                if let Answer::Retry(wait) = answer {
                    retry = now + wait;
                }
                prop_assert_eq!(answer, model.try_acquire(n, now), "{:?} at {}", step, now);
            }
            Ok(())
        })?;
    }

    #[test]
    fn no_span_of_a_windows_length_has_more_than_twice_the_limit(
        limit in 1..10_u32,
        arrivals in prop::collection::vec((1..4_u32, 0..60_u64), 1..200),
    ) {
        frozen(|base| {
            let limiter = FixedWindow::new(limit, Duration::from_nanos(100));
            let (mut now, mut granted) = (0, Vec::new());
            for (n, pause) in arrivals {
                now += pause.saturating_sub(30);
                if limiter.try_acquire_many_at(n, at(base, now)).is_ok() {
                    granted.push((now, n));
                }
            }
            for (from, _) in &granted {
                let sum = |span: std::ops::Range<u64>| -> u32 {
                    granted.iter().filter(|(time, _)| span.contains(time)).map(|(_, n)| n).sum()
                };
                prop_assert!(sum(*from..from + 100) <= 2 * limit);
                prop_assert!(sum(from / 100 * 100..(from / 100 + 1) * 100) <= limit);
            }
            Ok(())
        })?;
    }
}

// ---- Those who wait ----------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn waiters_go_in_their_order_into_the_windows_to_come() {
    let limiter = Arc::new(FixedWindow::new(2, WINDOW));
    assert!(limiter.try_acquire_many(2).is_ok());
    advance(WINDOW / 4).await;
    let mut waiters = Vec::new();
    for _ in 0..6 {
        waiters.push(waiter(&limiter, 1).await);
    }
    for (index, waiter) in (0..).zip(waiters) {
        let window = 1 + index / 2;
        assert_eq!(
            waiter.await.unwrap(),
            Ok(WINDOW * (window - 1) + WINDOW * 3 / 4),
            "waiter {index}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_largest_limit_there_is_is_acquired_whole_three_times() {
    let limiter = Arc::new(FixedWindow::new(u32::MAX, WINDOW));
    for window in [0, 1, 1] {
        assert_eq!(limiter.acquire_many(u32::MAX).await, Ok(WINDOW * window));
    }
    let limiter = Arc::new(FixedWindow::new(u32::MAX, WINDOW));
    let mut waiters = Vec::new();
    for _ in 0..3 {
        waiters.push(waiter(&limiter, u32::MAX).await);
    }
    for (window, waiter) in (0..).zip(waiters) {
        assert_eq!(waiter.await.unwrap(), Ok(WINDOW * window));
    }
}

#[tokio::test(start_paused = true)]
async fn a_large_request_is_not_starved_by_a_stream_of_small_ones() {
    let limiter = Arc::new(FixedWindow::new(10, WINDOW));
    assert!(limiter.try_acquire_many(9).is_ok());
    let large = waiter(&limiter, 10).await;
    let small = tokio::spawn({
        let limiter = Arc::clone(&limiter);
        async move {
            loop {
                limiter.acquire().await.unwrap();
            }
        }
    });
    assert_eq!(large.await.unwrap(), Ok(WINDOW));
    small.abort();
}

#[tokio::test(start_paused = true)]
async fn one_who_waits_uses_the_window_that_it_comes_to_and_no_other() {
    for used in [0, 3, 9] {
        let limiter = FixedWindow::new(10, WINDOW);
        assert!(limiter.try_acquire_many(used).is_ok());
        assert!(limiter.try_acquire_many(1).is_ok());
        let waited = limiter.acquire_many(10).await;
        assert_eq!(waited, Ok(WINDOW));
        assert_eq!(drain(&limiter, Instant::now()), 0, "after {used}");
        assert_eq!(limiter.acquire_many(10).await, Ok(WINDOW));
    }
}

#[tokio::test(start_paused = true)]
async fn who_does_not_fit_into_a_window_is_served_whole_in_the_next() {
    let limiter = Arc::new(FixedWindow::new(10, WINDOW));
    assert!(limiter.try_acquire_many(10).is_ok());
    let waiters = [waiter(&limiter, 6).await, waiter(&limiter, 6).await, waiter(&limiter, 6).await];
    for (window, waiter) in (1..).zip(waiters) {
        assert_eq!(waiter.await.unwrap(), Ok(WINDOW * window));
        // What they leave of it is for others.
        assert_eq!(drain(&limiter, Instant::now()), 4);
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_window_leaves_the_rest_of_this_one_to_others() {
    let limiter = Arc::new(FixedWindow::new(10, WINDOW));
    assert!(limiter.try_acquire_many(4).is_ok());
    let large = waiter(&limiter, 7).await;
    assert_eq!(drain(&limiter, Instant::now()), 6);
    assert_eq!(large.await.unwrap(), Ok(WINDOW));
    assert_eq!(drain(&limiter, Instant::now()), 3);
}

#[tokio::test(start_paused = true)]
async fn who_cannot_be_served_in_time_is_refused_at_once_and_takes_nothing() {
    let limiter = FixedWindow::new(2, WINDOW);
    assert!(limiter.try_acquire_many(2).is_ok());
    advance(WINDOW / 4).await;
    let now = Instant::now();
    let (wait, limit) = (WINDOW * 3 / 4, Duration::from_nanos(SECOND * 3 / 4 - 1));
    let late = AcquireError::WouldExceedDeadline { requested: 2, wait: Some(wait), limit };
    assert_eq!(limiter.acquire_many(2).within(limit).await, Err(late.clone()));
    assert_eq!(limiter.acquire_many(2).before(now + limit).await, Err(late));
    assert_eq!(Instant::now(), now);
    assert_eq!(limiter.acquire_many(2).within(wait).await, Ok(wait));
    assert_eq!(limiter.acquire_many(2).before(now + wait + WINDOW).await, Ok(WINDOW));
}

#[tokio::test(start_paused = true)]
async fn waiters_that_are_dropped_leave_no_trace() {
    let limiter = Arc::new(FixedWindow::new(10, WINDOW));
    assert!(limiter.try_acquire_many(7).is_ok());
    for n in [10, 1, 5, 10] {
        assert!(timeout(WINDOW / 100, limiter.acquire_many(n)).await.is_err() || n == 1);
    }
    let crowd = futures::future::join_all((0..100).map(|_| limiter.acquire_many(3)));
    assert!(timeout(WINDOW / 100, crowd).await.is_err());
    // One was let through at once, of the crowd none: two were left, and three were asked for.
    assert_eq!(drain(&limiter, Instant::now()), 2);
    let now = Instant::now();
    assert_eq!(
        limiter.acquire_many(10).within(WINDOW).await.map(|waited| now + waited),
        Ok(Instant::now())
    );
    assert_eq!(drain(&limiter, Instant::now()), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_given_back_of_a_window_that_is_over_is_gone() {
    let limiter = FixedWindow::new(10, WINDOW);
    assert!(limiter.try_acquire_many(10).is_ok());
    let mut first = Box::pin(limiter.acquire_many(5));
    assert!(poll_once(first.as_mut()).is_pending());
    let mut second = Box::pin(limiter.acquire_many(5));
    assert!(poll_once(second.as_mut()).is_pending());
    advance(WINDOW).await;
    assert_eq!(second.await, Ok(WINDOW));
    drop(first);
    advance(WINDOW).await;
    assert_eq!(drain(&limiter, Instant::now()), 10);
}

#[tokio::test(start_paused = true)]
async fn waiters_hear_of_a_higher_limit_and_of_the_end() {
    let limiter = Arc::new(FixedWindow::new(2, WINDOW));
    assert!(limiter.try_acquire_many(2).is_ok());
    let waiters = [waiter(&limiter, 1).await, waiter(&limiter, 2).await, waiter(&limiter, 2).await];
    advance(WINDOW / 4).await;
    limiter.set_limit(5).unwrap();
    let [first, second, third] = waiters;
    assert_eq!(first.await.unwrap(), Ok(WINDOW / 4));
    assert_eq!(second.await.unwrap(), Ok(WINDOW / 4));
    limiter.close();
    assert!(limiter.is_closed());
    assert_eq!(third.await.unwrap(), Err(AcquireError::Closed));
    assert_eq!(limiter.acquire().await, Err(AcquireError::Closed));
}

#[tokio::test(start_paused = true)]
async fn one_who_waits_for_more_than_a_lowered_limit_is_refused() {
    let limiter = Arc::new(FixedWindow::new(10, WINDOW));
    assert!(limiter.try_acquire_many(10).is_ok());
    let large = waiter(&limiter, 5).await;
    limiter.set_limit(4).unwrap();
    let refused = AcquireError::ExceedsBurst { requested: 5, burst: 4 };
    assert_eq!(large.await.unwrap(), Err(refused));
    advance(WINDOW).await;
    assert_eq!(drain(&limiter, Instant::now()), 4);
}

#[tokio::test(start_paused = true)]
async fn no_window_has_more_than_a_limit_that_was_lowered_while_they_waited() {
    let limiter = Arc::new(FixedWindow::new(10, WINDOW));
    assert!(limiter.try_acquire_many(10).is_ok());
    let mut waiters = Vec::new();
    for _ in 0..9 {
        waiters.push(waiter(&limiter, 4).await);
    }
    limiter.set_limit(7).unwrap();
    let mut windows = Vec::new();
    for waiter in waiters {
        windows.push(waiter.await.unwrap().unwrap());
    }
    // One of four fits into each.
    windows.sort();
    let each: Vec<_> = (1..=9).map(|window| WINDOW * window).collect();
    assert_eq!(windows, each);
}

#[tokio::test(start_paused = true)]
async fn places_to_wait_are_bounded_if_that_is_asked_for() {
    let limiter = FixedWindow::builder(1, WINDOW).max_waiters(1).max_wait(WINDOW).build().unwrap();
    assert!(limiter.try_acquire().is_ok());
    let mut waits = Box::pin(limiter.acquire());
    assert!(poll_once(waits.as_mut()).is_pending());
    assert_eq!(limiter.acquire().await, Err(AcquireError::QueueFull { max_waiters: 1 }));
    assert_eq!(waits.await, Ok(WINDOW));
    sleep(WINDOW / 2).await;
    let late = limiter.acquire().within(WINDOW * 9).await;
    assert_eq!(late, Ok(WINDOW / 2));
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Wait(u32),
    Try(u32),
    /// One of those who wait.
    Drop(usize),
    Advance(u32),
    SetLimit(u32),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        5 => (1..8_u32).prop_map(Act::Wait),
        3 => (1..8_u32).prop_map(Act::Try),
        2 => (0..20_usize).prop_map(Act::Drop),
        4 => (1..12_u32).prop_map(Act::Advance),
        1 => (1..10_u32).prop_map(Act::SetLimit),
    ];
    prop::collection::vec(act, 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_window_has_more_than_its_limit_whoever_waits_and_gives_up(acts in acts()) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        // Eighths of a window are whole milliseconds, which the timer needs.
        let eighth = Duration::from_millis(1);
        runtime.block_on(async {
            let limiter = FixedWindow::builder(9, eighth * 8).slack(Duration::ZERO).build().unwrap();
            let (mut waiting, mut elapsed) = (Vec::new(), 0);
            let (mut limit, mut used, mut window, mut changed) = (9, 0, 0, None);
            for act in acts {
                match act {
                    Act::Wait(n) => waiting.push((n, Box::pin(limiter.acquire_many(n)))),
                    Act::Try(n) => used += if limiter.try_acquire_many(n).is_ok() { n } else { 0 },
                    Act::Drop(one) if one < waiting.len() => drop(waiting.swap_remove(one)),
                    Act::Drop(_) => {}
                    Act::Advance(eighths) => {
                        advance(eighth * eighths).await;
                        elapsed += eighths;
                    }
                    Act::SetLimit(to) => {
                        limiter.set_limit(to).unwrap();
                        limit = limit.max(to);
                        changed = Some(elapsed / 8);
                    }
                }
                if elapsed / 8 > window {
                    (window, used, limit) = (elapsed / 8, 0, limiter.limit());
                }
                waiting.retain_mut(|(n, waits)| match poll_once(waits.as_mut()) {
                    Poll::Ready(outcome) => {
                        used += outcome.map_or(0, |_| *n);
                        false
                    }
                    Poll::Pending => true,
                });
                prop_assert!(used <= limit, "{used} of {limit} in window {window}");
                if waiting.is_empty() {
                    let left = limiter.limit().saturating_sub(used);
                    prop_assert!(limiter.available() <= left);
                    // Of a window whose limit was changed some of what was given back may be lost.
                    prop_assert!(changed == Some(window) || limiter.available() == left);
                }
            }
            // Nobody is left out: each has its turn within a window for each who waits.
            for (n, waits) in waiting {
                let n_fits = n <= limiter.limit();
                prop_assert_eq!(waits.await.is_ok(), n_fits);
            }
            Ok(())
        })?;
    }
}

// ---- When windows begin ------------------------------------------------------------------------

#[test]
fn windows_begin_at_the_instant_they_are_aligned_to_in_the_past_or_to_come() {
    frozen(|base| {
        let (third, rest) = (WINDOW / 3, WINDOW.checked_sub(WINDOW / 3).unwrap());
        let windows = 1_000;
        for (align, first_end) in [
            (base, WINDOW),
            (base + third, third),
            (base + third + WINDOW * windows, third),
            (base - third, rest),
            (base - third - WINDOW * windows, rest),
            (base + WINDOW * windows, WINDOW),
            (base - WINDOW, WINDOW),
        ] {
            let limiter = FixedWindow::builder(3, WINDOW).align(Align::At(align)).build().unwrap();
            assert_eq!(drain(&limiter, base), 3);
            assert_eq!(retry_after(&limiter, 1, base), Some(first_end));
            assert_eq!(drain(&limiter, base + first_end), 3);
            assert_eq!(retry_after(&limiter, 1, base + first_end), Some(WINDOW));
        }
    });
}

#[tokio::test(start_paused = true)]
async fn windows_begin_with_the_first_request_that_is_granted() {
    let past = Instant::now();
    let limiter = FixedWindow::builder(2, WINDOW).align(Align::FirstUse).build().unwrap();
    advance(WINDOW * 10 + WINDOW / 4).await;
    // None of these is: what is too much, what is nothing, and what comes after its deadline.
    assert!(limiter.try_acquire_many(3).is_err());
    assert!(limiter.try_acquire_many(0).is_ok());
    assert_eq!(limiter.available(), 2);
    assert!(limiter.acquire().before(past).await.is_err());
    assert!(limiter.acquire_many(3).await.is_err());
    limiter.set_limit(1).unwrap();
    limiter.set_limit(2).unwrap();
    advance(WINDOW / 4).await;
    assert!(limiter.try_acquire_many(2).is_ok());
    let refused = limiter.try_acquire().unwrap_err();
    assert_eq!(refused.retry_after(), Some(WINDOW));
    advance(WINDOW / 4).await;
    assert_eq!(limiter.acquire().await, Ok(WINDOW * 3 / 4));
}

#[tokio::test(start_paused = true)]
async fn windows_begin_with_the_first_acquire_as_well() {
    let limiter = FixedWindow::builder(1, WINDOW).align(Align::FirstUse).build().unwrap();
    advance(WINDOW * 3 / 2).await;
    assert_eq!(limiter.acquire().await, Ok(Duration::ZERO));
    assert_eq!(limiter.acquire().await, Ok(WINDOW));
}

#[test]
fn windows_of_the_wall_clock_end_within_a_window() {
    frozen(|base| {
        for window in [Duration::from_nanos(7), WINDOW, Duration::from_secs(86_400)] {
            let builder = FixedWindow::builder(3, window).align(Align::WallClock);
            let limiter = builder.build().unwrap();
            assert_eq!(drain(&limiter, base), 3);
            let wait = retry_after(&limiter, 1, base).unwrap();
            assert!(!wait.is_zero() && wait <= window, "{wait:?}");
            assert_eq!(retry_after(&limiter, 1, base + wait - NANO), Some(NANO));
            assert_eq!(drain(&limiter, base + wait), 3);
            assert_eq!(retry_after(&limiter, 3, base + wait), Some(window));
        }
    });
}

// ---- What cannot be built ----------------------------------------------------------------------

#[test]
fn a_window_that_cannot_be_is_an_error_that_names_it() {
    frozen(|_| {
        let too_many = (1_001, Duration::from_nanos(1));
        for (limit, window) in [(1, Duration::ZERO), (1, Duration::MAX), too_many] {
            let error = FixedWindow::builder(limit, window).build().unwrap_err();
            assert_eq!(error, BuildError::WindowOutOfRange { limit, window });
            assert!(error.to_string().contains(&format!("{limit} permits in {window:?}")));
        }
        assert!(FixedWindow::builder(1_000, NANO).build().is_ok());
        let error = FixedWindow::builder(11, WINDOW).max_limit(10).build().unwrap_err();
        assert_eq!(error, BuildError::BurstExceedsMax { burst: 11, max: 10 });
    });
}

#[test]
#[should_panic(expected = "1 permits in 0ns")]
fn a_window_of_no_length_panics() {
    let _ = FixedWindow::new(1, Duration::ZERO);
}
