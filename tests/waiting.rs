//! Those who wait: they hear of every change, oversleeping costs nothing, and places are bounded.
#![expect(clippy::float_cmp, reason = "whole and half tokens are exact")]

use paceline::{Acquire, AcquireError, Limiter, Rate};
use proptest::prelude::*;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::{Instant, advance, sleep, timeout};

const HOUR: Duration = Duration::from_secs(3_600);

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

type Waited = Result<Duration, AcquireError>;

/// A task that acquires, polled once.
async fn waiter(limiter: &Arc<Limiter>, permits: u32) -> JoinHandle<Waited> {
    let future = Arc::clone(limiter).acquire_many_owned(permits);
    let task = tokio::spawn(future);
    yield_now().await;
    task
}

fn poll_once(future: &mut Pin<Box<Acquire<'_>>>) -> Poll<Waited> {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

// ---- Every change is heard ---------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn waiters_at_one_an_hour_go_at_once_and_in_order_when_it_becomes_a_thousand_a_second() {
    let limiter = Arc::new(Limiter::new(Rate::per_hour(1), 1));
    limiter.acquire().await.unwrap();
    let mut waiters = Vec::new();
    for _ in 0..5 {
        waiters.push(waiter(&limiter, 1).await);
    }
    sleep(Duration::from_secs(10)).await;
    limiter.set_rate(Rate::per_second(1_000)).unwrap();
    for (index, waiter) in (1..).zip(waiters) {
        let waited = waiter.await.unwrap().unwrap();
        // A three hundred and sixtieth of a token had been minted.
        assert_eq!(waited, Duration::from_secs(10) + millis(index));
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiter_waits_on_when_the_rate_falls() {
    let limiter = Arc::new(Limiter::new(Rate::per_second(10), 1));
    limiter.acquire().await.unwrap();
    let waiter = waiter(&limiter, 1).await;
    sleep(millis(50)).await;
    limiter.set_rate(Rate::per_hour(1)).unwrap();
    // Half of it is still to be minted.
    assert_eq!(waiter.await.unwrap(), Ok(millis(50) + HOUR / 2));
}

#[tokio::test(start_paused = true)]
async fn a_reservation_tells_its_delay_by_the_present_clock() {
    let limiter = Limiter::new(Rate::per_second(10), 1);
    limiter.acquire().await.unwrap();
    let turn = limiter.reserve().unwrap();
    assert_eq!(turn.delay(), millis(100));
    limiter.set_rate(Rate::per_second(20)).unwrap();
    assert_eq!(turn.delay(), millis(50));
    limiter.pause_until(Instant::now() + millis(7));
    assert_eq!(turn.delay(), millis(57));
    limiter.set_rate(Rate::ZERO).unwrap();
    assert_eq!(turn.delay(), Duration::MAX);
    assert_eq!(turn.ready_at(), None);
    limiter.set_rate(Rate::UNLIMITED).unwrap();
    assert_eq!(turn.delay(), millis(7), "still paused");
    limiter.resume();
    assert_eq!(turn.delay(), Duration::ZERO);
    assert!(timeout(millis(1), turn.ready()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn all_who_wait_are_pushed_back_by_a_pause_and_go_on_when_it_is_over() {
    let limiter = Arc::new(Limiter::new(Rate::per_second(10), 2));
    limiter.acquire_many(2).await.unwrap();
    let first = waiter(&limiter, 1).await;
    let second = waiter(&limiter, 1).await;
    sleep(millis(50)).await;
    limiter.pause_until(Instant::now() + millis(1_000));
    assert_eq!(first.await.unwrap(), Ok(millis(1_100)));
    assert_eq!(second.await.unwrap(), Ok(millis(1_200)));
}

#[tokio::test(start_paused = true)]
async fn a_pause_lets_what_is_stored_pass_and_mints_nothing() {
    let limiter = Limiter::new(Rate::per_second(10), 3);
    let now = Instant::now();
    limiter.pause_until(now + HOUR);
    assert!(limiter.try_acquire_many(3).is_ok());
    let refused = limiter.try_acquire().unwrap_err();
    assert_eq!(refused.retry_after(), Some(HOUR + millis(100)));
    advance(HOUR / 2).await;
    assert_eq!(limiter.tokens(), 0.0);
    // The later end holds.
    limiter.pause_until(now + HOUR / 2);
    limiter.pause_until(now + HOUR + millis(50));
    let refused = limiter.try_acquire().unwrap_err();
    assert_eq!(refused.retry_after(), Some(HOUR / 2 + millis(150)));
    limiter.resume();
    let refused = limiter.try_acquire().unwrap_err();
    assert_eq!(refused.retry_after(), Some(millis(100)));
    // It does nothing when there is no pause.
    advance(millis(99)).await;
    limiter.resume();
    assert_eq!(limiter.try_acquire().unwrap_err().retry_after(), Some(millis(1)));
}

#[tokio::test(start_paused = true)]
async fn an_unlimited_limiter_can_be_paused() {
    let limiter = Arc::new(Limiter::new(Rate::UNLIMITED, 1));
    limiter.acquire_many(1_000).await.unwrap();
    limiter.pause_until(Instant::now() + millis(100));
    assert!(limiter.try_acquire().is_ok(), "its burst is stored");
    assert_eq!(limiter.try_acquire().unwrap_err().retry_after(), Some(millis(100)));
    let waiters = [waiter(&limiter, 1).await, waiter(&limiter, 1).await];
    for waiter in waiters {
        assert_eq!(waiter.await.unwrap(), Ok(millis(100)));
    }
    assert_eq!(limiter.acquire_many(1_000).await, Ok(Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_sleeper_that_asks_more_than_a_lowered_burst_fails_at_once_and_gives_back() {
    let limiter = Arc::new(Limiter::new(Rate::per_second(10), 4));
    limiter.acquire_many(4).await.unwrap();
    let large = waiter(&limiter, 3).await;
    let small = waiter(&limiter, 1).await;
    let turn = limiter.reserve_many(3).unwrap();
    limiter.set_burst(2).unwrap();
    let refused = large.await.unwrap();
    assert_eq!(refused, Err(AcquireError::ExceedsBurst { requested: 3, burst: 2 }));
    // What it gave back is had by the next; who was behind it keeps its promise, and so does a
    // reservation of more than the burst.
    assert_eq!(limiter.acquire_many(2).await, Ok(millis(200)));
    assert_eq!(small.await.unwrap(), Ok(millis(400)));
    assert_eq!(turn.delay(), millis(300));
}

#[tokio::test(start_paused = true)]
async fn a_sleeper_that_is_moved_beyond_its_deadline_fails_at_once_and_gives_back() {
    let limiter = Limiter::new(Rate::per_second(10), 1);
    limiter.acquire().await.unwrap();
    let within = limiter.acquire().within(millis(150));
    let before = limiter.acquire().before(Instant::now() + millis(250));
    let change = async {
        sleep(millis(50)).await;
        limiter.set_rate(Rate::per_second(1)).unwrap();
    };
    let (within, before, ()) = tokio::join!(within, before, change);
    for (outcome, wait, limit) in [(within, 550, 150), (before, 1_550, 250)] {
        let wait = Some(millis(wait));
        let expected =
            AcquireError::WouldExceedDeadline { requested: 1, wait, limit: millis(limit) };
        assert_eq!(outcome, Err(expected));
    }
    assert_eq!(limiter.tokens(), 0.5);
}

#[tokio::test(start_paused = true)]
async fn all_who_wait_are_let_go_when_it_closes() {
    let limiter = Arc::new(Limiter::new(Rate::ZERO, 1));
    limiter.acquire().await.unwrap();
    let waiters = [waiter(&limiter, 1).await, waiter(&limiter, 1).await];
    sleep(HOUR).await;
    limiter.close();
    for waiter in waiters {
        assert_eq!(waiter.await.unwrap(), Err(AcquireError::Closed));
    }
}

#[tokio::test]
async fn no_change_is_missed_whenever_it_comes() {
    // On real threads, with nothing that reads the clock: the rate goes from never to without
    // limit at some point while the waiter looks, listens and falls asleep.
    for _ in 0..2_000 {
        let limiter = Arc::new(Limiter::new(Rate::ZERO, 0));
        let other = Arc::clone(&limiter);
        limiter.set_burst(1).unwrap();
        let changer = std::thread::spawn(move || other.set_rate(Rate::UNLIMITED).unwrap());
        limiter.acquire().await.unwrap();
        changer.join().unwrap();
    }
}

// ---- Slack -------------------------------------------------------------------------------------

/// How many a task that loops for a second gets, when each timer is late by up to a millisecond.
async fn looped(limiter: &Limiter) -> u64 {
    let start = Instant::now();
    let mut used = 0;
    while start.elapsed() < Duration::from_secs(1) {
        limiter.acquire().await.unwrap();
        used += 1;
    }
    used
}

#[tokio::test(start_paused = true)]
async fn what_is_minted_while_a_task_oversleeps_is_not_lost() {
    let limiter = Limiter::new(Rate::per_second(10_000), 1);
    let used = tokio::task::unconstrained(looped(&limiter)).await;
    assert!((9_990..=10_010).contains(&used), "{used}");
}

#[tokio::test(start_paused = true)]
async fn without_slack_it_is_lost() {
    let strict = Limiter::builder(Rate::per_second(10_000)).slack(Duration::ZERO).build().unwrap();
    let used = tokio::task::unconstrained(looped(&strict)).await;
    assert!(used <= 2_000, "{used}");
}

#[tokio::test(start_paused = true)]
async fn an_idle_limiter_gathers_no_more_than_its_burst() {
    let limiter = Limiter::new(Rate::per_second(1_000), 5);
    looped(&limiter).await;
    sleep(Duration::from_secs(1)).await;
    for _ in 0..5 {
        assert_eq!(limiter.acquire().await, Ok(Duration::ZERO));
    }
    assert!(limiter.acquire().await.unwrap() > Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn those_who_try_or_reserve_are_judged_strictly() {
    let limiter = Limiter::new(Rate::per_second(1_000), 1);
    limiter.acquire().await.unwrap();
    let mut late = Box::pin(limiter.acquire());
    assert!(poll_once(&mut late).is_pending());
    advance(millis(5)).await;
    assert!(poll_once(&mut late).is_ready());
    assert!(limiter.try_acquire().is_ok());
    assert!(limiter.try_acquire().is_err(), "five have been minted, and the bucket holds one");
    assert_eq!(limiter.reserve().unwrap().delay(), millis(1));
}

#[tokio::test(start_paused = true)]
async fn one_that_oversleeps_its_slack_books_again_and_is_not_starved_by_newcomers() {
    let limiter = Limiter::builder(Rate::per_second(1_000)).slack(millis(5)).build().unwrap();
    limiter.acquire().await.unwrap();
    let mut late = Box::pin(limiter.acquire());
    assert!(poll_once(&mut late).is_pending());
    let mut others: Vec<_> = (0..3).map(|_| Box::pin(limiter.acquire())).collect();
    for other in &mut others {
        assert!(poll_once(other).is_pending());
    }
    advance(millis(100)).await;
    // Far beyond the slack: its own token is gone, and it has one of those that are left.
    assert_eq!(poll_once(&mut late), Poll::Ready(Ok(millis(100))));
}

/// What somebody does who acquires.
#[derive(Clone, Copy, Debug)]
enum Step {
    Acquire(u32),
    /// Polls all who wait.
    Poll,
    Give(usize),
    Pass(u64),
    SetRate(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1..4_u32).prop_map(Step::Acquire),
        3 => Just(Step::Poll),
        1 => (0..50_usize).prop_map(Step::Give),
        4 => prop_oneof![1..3_000_000_u64, 1..30_000_000_u64].prop_map(Step::Pass),
        1 => prop::sample::select(vec![100_u64, 777, 5_000]).prop_map(Step::SetRate),
    ];
    prop::collection::vec(step, 1..80)
}

/// Permits that went on at a time, and the rates since when.
#[derive(Default)]
struct Went {
    uses: Vec<(u128, u128)>,
    rates: Vec<(u128, u128)>,
}

impl Went {
    /// What is minted in `(from, to]`, times 10^9.
    fn minted(&self, from: u128, to: u128) -> u128 {
        let ends = self.rates.iter().skip(1).map(|(since, _)| *since).chain([u128::MAX]);
        let stretches = self.rates.iter().zip(ends);
        stretches
            .map(|((since, rate), end)| end.min(to).saturating_sub((*since).max(from)) * rate)
            .sum()
    }

    fn check(&self, burst: u128, slack: u128) -> Result<(), TestCaseError> {
        for (index, (first, _)) in self.uses.iter().enumerate() {
            let mut used = 0;
            for (last, permits) in &self.uses[index..] {
                used += permits;
                // The window starts a nanosecond before the first, and a slack is added to it.
                let most = self.minted(first.saturating_sub(1 + slack), *last);
                prop_assert!(used * 1_000_000_000 <= burst * 1_000_000_000 + most);
            }
        }
        Ok(())
    }
}

async fn check_slack(burst: u32, slack: u64, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let builder = Limiter::builder(Rate::per_second(1_000)).burst(burst);
    let limiter = builder.slack(Duration::from_nanos(slack)).build().unwrap();
    let start = Instant::now();
    let mut went = Went { rates: vec![(0, 1_000)], ..Went::default() };
    let mut waiting: Vec<(u32, Pin<Box<Acquire<'_>>>)> = Vec::new();
    for step in steps {
        match step {
            Step::Acquire(n) => {
                waiting.push((n.min(burst), Box::pin(limiter.acquire_many(n.min(burst)))));
            }
            Step::Poll => {}
            Step::Give(one) => {
                if let Some(one) = one.checked_rem(waiting.len()) {
                    drop(waiting.swap_remove(one));
                }
            }
            Step::Pass(nanos) => {
                advance(Duration::from_nanos(nanos)).await;
                // Nobody is polled, so all who wait are late.
                continue;
            }
            Step::SetRate(rate) => {
                limiter.set_rate(Rate::per_second(rate)).unwrap();
                went.rates.push((start.elapsed().as_nanos(), rate.into()));
            }
        }
        let mut still = Vec::new();
        for (n, mut future) in waiting {
            match poll_once(&mut future) {
                Poll::Ready(outcome) => {
                    prop_assert!(outcome.is_ok());
                    went.uses.push((start.elapsed().as_nanos(), n.into()));
                }
                Poll::Pending => still.push((n, future)),
            }
        }
        waiting = still;
    }
    went.check(burst.into(), slack.into())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    /// In exact integers: `burst + rate * (w + slack)`, by the times at which callers went on.
    #[test]
    fn no_window_holds_more_than_the_slack_allows(
        burst in 1..6_u32,
        slack in prop_oneof![Just(0_u64), 1..5_000_000_u64, Just(20_000_000)],
        steps in steps(),
    ) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(tokio::task::unconstrained(check_slack(burst, slack, steps)))?;
    }
}

// ---- Bounds ------------------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn no_more_wait_than_may_and_one_that_gives_up_frees_its_place_at_once() {
    let limiter = Limiter::builder(Rate::per_second(10)).max_waiters(2).build().unwrap();
    assert_eq!(limiter.acquire().await, Ok(Duration::ZERO), "it need not wait");
    let mut first = Box::pin(limiter.acquire());
    let mut second = Box::pin(limiter.acquire());
    assert!(poll_once(&mut first).is_pending() && poll_once(&mut second).is_pending());
    let full = limiter.acquire().await;
    assert_eq!(full, Err(AcquireError::QueueFull { max_waiters: 2 }));
    assert!(full.unwrap_err().to_string().contains('2'));
    assert_eq!(limiter.tokens(), -2.0, "it took nothing");
    drop(first);
    let mut third = Box::pin(limiter.acquire());
    assert!(poll_once(&mut third).is_pending());
    // It has the turn that was given back.
    assert_eq!(third.await, Ok(millis(100)));
    assert_eq!(second.await, Ok(millis(200)));
    advance(millis(100)).await;
    assert_eq!(limiter.acquire().await, Ok(Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_wait_beyond_the_longest_is_refused_at_once_and_says_by_how_much() {
    let limiter = Limiter::builder(Rate::per_second(10)).max_wait(millis(150)).build().unwrap();
    limiter.acquire().await.unwrap();
    let mut first = Box::pin(limiter.acquire());
    assert!(poll_once(&mut first).is_pending());
    let (wait, limit) = (Some(millis(200)), millis(150));
    let expected = AcquireError::WouldExceedDeadline { requested: 1, wait, limit };
    assert!(expected.to_string().contains("200ms") && expected.to_string().contains("150ms"));
    assert_eq!(limiter.acquire().await, Err(expected));
    assert_eq!(first.await, Ok(millis(100)));
}

// ---- Refund ------------------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn a_turn_that_was_not_used_is_free_again_as_far_as_it_has_not_overflowed() {
    for (late, back) in [(0, 3_u8), (1_000, 3), (2_000, 2), (3_000, 1), (4_000, 0)] {
        let limiter = Limiter::new(Rate::per_second(1), 4);
        limiter.try_acquire_many(4).unwrap();
        let turn = limiter.reserve_many(3).unwrap();
        advance(Duration::from_secs(3) + millis(late)).await;
        // Others have what came after it.
        while limiter.try_acquire().is_ok() {}
        let before = limiter.tokens();
        turn.refund();
        assert_eq!((limiter.tokens() - before).round(), f64::from(back), "{late} ms late");
        let taken = (0..9).filter(|_| limiter.try_acquire().is_ok()).count();
        assert_eq!(taken, usize::from(back), "{late} ms late");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refund_before_the_turn_is_a_cancel() {
    let limiter = Limiter::new(Rate::per_second(1), 1);
    limiter.acquire().await.unwrap();
    limiter.reserve().unwrap().refund_at(Instant::now());
    assert_eq!(limiter.tokens(), 0.0);
    assert_eq!(limiter.reserve().unwrap().delay(), Duration::from_secs(1));
}
