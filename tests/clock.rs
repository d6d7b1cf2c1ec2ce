//! A limiter by a clock of quanta: by one that is told how to move, also backwards.

#![cfg(feature = "quanta")]
#![expect(clippy::float_cmp, reason = "a whole number of tokens is exact in an f64")]

use fastrand::Rng;
use paceline::{AcquireError, Builder, Clock, Limiter, Rate};
use quanta::Mock;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::yield_now;
use tokio::time::{Instant, advance, sleep, timeout};

const MILLI: Duration = Duration::from_millis(1);
const NANO: Duration = Duration::from_nanos(1);
const HOUR: Duration = Duration::from_secs(3_600);

/// A limiter and the clock that it goes by, which is far from its own beginning.
fn build(rate: Rate, burst: u32, more: impl FnOnce(Builder) -> Builder) -> (Limiter, Arc<Mock>) {
    let (clock, mock) = quanta::Clock::mock();
    mock.increment(HOUR);
    let builder = more(Limiter::builder(rate).burst(burst).clock(clock));
    (builder.build().unwrap(), mock)
}

fn limiter(rate: Rate, burst: u32) -> (Limiter, Arc<Mock>) {
    build(rate, burst, |builder| builder)
}

fn drain(limiter: &Limiter) -> u64 {
    (0..u64::MAX).find(|_| limiter.try_acquire().is_err()).unwrap()
}

fn retry_after(limiter: &Limiter) -> Option<Duration> {
    limiter.try_acquire().unwrap_err().retry_after()
}

// ---- Its time counts ---------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn permits_come_by_it_and_not_by_tokios() {
    let (limiter, mock) = limiter(Rate::per_second(1_000), 10);
    assert_eq!(drain(&limiter), 10);
    advance(HOUR).await;
    assert_eq!(drain(&limiter), 0);
    assert_eq!(limiter.tokens(), 0.0);
    mock.increment(3 * MILLI);
    assert_eq!(limiter.tokens(), 3.0);
    assert_eq!(drain(&limiter), 3);
    mock.increment(HOUR);
    assert_eq!(drain(&limiter), 10);
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_right_to_the_nanosecond_by_it() {
    for rate in [Rate::per_second(3), Rate::per_second(7), Rate::per_second(1_000_000)] {
        let (limiter, mock) = limiter(rate, 2);
        drain(&limiter);
        for _ in 0..20 {
            let wait = retry_after(&limiter).unwrap();
            assert!(wait > NANO);
            mock.increment(wait.saturating_sub(NANO));
            assert_eq!(retry_after(&limiter), Some(NANO), "at {rate}");
            mock.increment(NANO);
            limiter.try_acquire().unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn settings_count_from_its_now_on() {
    let (limiter, mock) = limiter(Rate::per_second(1_000), 10);
    drain(&limiter);
    mock.increment(4 * MILLI);
    limiter.set_rate(Rate::per_second(100)).unwrap();
    mock.increment(20 * MILLI);
    assert_eq!(drain(&limiter), 6);
    mock.increment(HOUR);
    limiter.set_burst(3).unwrap();
    limiter.set_burst(10).unwrap();
    assert_eq!(drain(&limiter), 3);
}

#[tokio::test(start_paused = true)]
async fn striped_it_goes_by_it_too() {
    let (clock, mock) = quanta::Clock::mock();
    let builder = Limiter::builder(Rate::per_second(1_000)).burst(12).clock(clock);
    let limiter = builder.build_striped(2, 4).unwrap();
    let drain = || (0..100).find(|_| limiter.try_acquire().is_err());
    assert_eq!(drain(), Some(12));
    advance(HOUR).await;
    assert_eq!(drain(), Some(0));
    mock.increment(3 * MILLI);
    assert_eq!(drain(), Some(3));
    mock.increment(HOUR);
    assert_eq!(drain(), Some(12));
}

// ---- It steps back -----------------------------------------------------------------------------

#[test]
fn a_step_back_mints_nothing_twice_and_is_made_up_for() {
    let (limiter, mock) = limiter(Rate::per_second(1_000), 10);
    drain(&limiter);
    mock.increment(5 * MILLI);
    assert_eq!(drain(&limiter), 5);
    mock.decrement(3 * MILLI);
    assert_eq!(drain(&limiter), 0);
    assert_eq!(retry_after(&limiter), Some(4 * MILLI));
    mock.increment(3 * MILLI);
    assert_eq!(drain(&limiter), 0);
    mock.increment(MILLI);
    assert_eq!(drain(&limiter), 1);
    mock.increment(HOUR);
    assert_eq!(drain(&limiter), 10);
}

#[test]
fn before_its_beginning_it_is_as_at_its_beginning() {
    let (limiter, mock) = limiter(Rate::per_second(1_000), 10);
    mock.decrement(HOUR);
    assert_eq!(limiter.tokens(), 10.0);
    assert_eq!(drain(&limiter), 10);
    assert_eq!(retry_after(&limiter), Some(MILLI));
    mock.increment(HOUR);
    assert_eq!(drain(&limiter), 0);
    mock.increment(7 * MILLI);
    assert_eq!(drain(&limiter), 7);
}

/// In nanoseconds: a token each, so that what is minted is what time it is.
#[test]
fn random_steps_back_mint_no_more_than_the_latest_time_and_no_less() {
    const BURST: u64 = 1_000;
    for seed in 0..50 {
        let mut rng = Rng::with_seed(seed);
        let (limiter, mock) = limiter(Rate::every(NANO), 1_000);
        let (begin, mut latest) = (mock.value(), 0);
        let mut used = drain(&limiter);
        assert_eq!(used, BURST);
        for _ in 0..1_000 {
            if rng.u32(0..3) == 0 {
                mock.decrement(rng.u64(0..200).min(mock.value()));
            } else {
                mock.increment(rng.u64(0..200));
            }
            latest = latest.max(mock.value().saturating_sub(begin));
            for _ in 0..rng.u32(0..4) {
                used += u64::from(limiter.try_acquire().is_ok());
            }
            if rng.u32(0..4) == 0 {
                // A setting by an older time mints nothing twice either.
                limiter.set_rate(Rate::every(2 * NANO)).unwrap();
                limiter.set_rate(Rate::every(NANO)).unwrap();
            }
            if rng.u32(0..2) == 0 {
                used += drain(&limiter);
            }
            assert!(used <= BURST + latest, "seed {seed}: {used} of {BURST} and {latest}");
        }
        // It has come to no harm.
        let back = (begin + latest).saturating_sub(mock.value());
        mock.increment(back);
        used += drain(&limiter);
        assert!(used <= BURST + latest, "seed {seed}: {used} of {BURST} and {latest}");
        mock.increment(17_u64);
        assert_eq!(drain(&limiter), 17, "seed {seed}");
        mock.increment(HOUR);
        assert_eq!(drain(&limiter), BURST, "seed {seed}");
    }
}

/// Drained at each step, so that nothing overflows: all that is minted by the latest time is used.
#[test]
fn steps_back_forget_nothing() {
    for seed in 0..50 {
        let mut rng = Rng::with_seed(seed);
        let (limiter, mock) = limiter(Rate::every(NANO), 1_000);
        let (begin, mut latest, mut used) = (mock.value(), 0, drain(&limiter));
        for _ in 0..1_000 {
            if rng.u32(0..3) == 0 {
                mock.decrement(rng.u64(0..1_000).min(mock.value()));
            } else {
                mock.increment(rng.u64(0..500));
            }
            latest = latest.max(mock.value().saturating_sub(begin));
            used += drain(&limiter);
            assert_eq!(used, 1_000 + latest, "seed {seed}");
        }
    }
}

// ---- Those who wait ----------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn who_waits_sleeps_as_long_as_its_turn_is_off_and_looks_again() {
    let (limiter, mock) = limiter(Rate::per_second(10), 1);
    let limiter = Arc::new(limiter);
    drain(&limiter);
    let start = Instant::now();
    let task = tokio::spawn(Arc::clone(&limiter).acquire_owned());
    sleep(99 * MILLI).await;
    mock.increment(60 * MILLI);
    // The timer was set when nothing had been minted. It finds that 40 ms are left, and then 10.
    sleep(2 * MILLI).await;
    assert!(!task.is_finished());
    mock.increment(30 * MILLI);
    sleep(40 * MILLI).await;
    assert!(!task.is_finished());
    mock.increment(10 * MILLI);
    let waited = timeout(HOUR, task).await.unwrap().unwrap();
    assert_eq!(waited, Ok(100 * MILLI), "by its clock");
    assert_eq!(start.elapsed(), 150 * MILLI, "by Tokio's");
    assert_eq!(drain(&limiter), 0);
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_served_when_the_clock_has_moved_on_before_the_timer() {
    let (limiter, mock) = limiter(Rate::per_second(10), 1);
    let limiter = Arc::new(limiter);
    drain(&limiter);
    let task = tokio::spawn(Arc::clone(&limiter).acquire_owned());
    yield_now().await;
    mock.increment(100 * MILLI);
    let start = Instant::now();
    let waited = timeout(HOUR, task).await.unwrap().unwrap();
    assert_eq!(waited, Ok(100 * MILLI));
    assert_eq!(start.elapsed(), 100 * MILLI);
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_clock_that_stands_or_steps_back_waits_on_and_can_give_up() {
    let (limiter, mock) = limiter(Rate::per_second(10), 1);
    drain(&limiter);
    timeout(10 * HOUR, limiter.acquire()).await.unwrap_err();
    assert_eq!(limiter.tokens(), 0.0);
    mock.increment(50 * MILLI);
    let step_back = async {
        sleep(MILLI).await;
        mock.decrement(30 * MILLI);
        sleep(HOUR).await;
        mock.increment(80 * MILLI);
    };
    let (waited, ()) = tokio::join!(timeout(10 * HOUR, limiter.acquire()), step_back);
    assert_eq!(waited.unwrap(), Ok(50 * MILLI));
    assert_eq!(drain(&limiter), 0);
}

#[tokio::test(start_paused = true)]
async fn precise_by_it_there_is_no_hanging_either() {
    for margin in [NANO, 2 * MILLI, HOUR] {
        let (limiter, mock) = build(Rate::per_second(10), 1, |builder| builder.precise(margin));
        drain(&limiter);
        let clock = async {
            for _ in 0..100 {
                sleep(MILLI).await;
                mock.increment(MILLI);
            }
        };
        let (waited, ()) = tokio::join!(timeout(HOUR, limiter.acquire()), clock);
        assert_eq!(waited.unwrap(), Ok(100 * MILLI), "with {margin:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deadline_is_as_far_off_by_it_as_by_tokios() {
    let (limiter, mock) = limiter(Rate::per_second(10), 1);
    drain(&limiter);
    // They are hours apart.
    advance(7 * HOUR).await;
    mock.increment(50 * MILLI);
    let late = limiter.acquire().before(Instant::now() + 49 * MILLI).await;
    let wait = Some(50 * MILLI);
    let error = AcquireError::WouldExceedDeadline { requested: 1, wait, limit: 49 * MILLI };
    assert_eq!(late, Err(error));
    let past = limiter.acquire().before(Instant::now() - MILLI).await;
    assert!(matches!(past, Err(AcquireError::WouldExceedDeadline { .. })), "{past:?}");
    let clock = async {
        sleep(50 * MILLI).await;
        mock.increment(50 * MILLI);
    };
    let acquire = limiter.acquire().before(Instant::now() + 50 * MILLI);
    let (waited, ()) = tokio::join!(timeout(HOUR, acquire), clock);
    assert_eq!(waited.unwrap(), Ok(50 * MILLI));
}

#[tokio::test(start_paused = true)]
async fn a_pause_ends_as_far_off_by_it_as_by_tokios() {
    let (limiter, mock) = limiter(Rate::per_second(10), 1);
    drain(&limiter);
    advance(7 * HOUR).await;
    limiter.pause_until(Instant::now() + 30 * MILLI);
    assert_eq!(retry_after(&limiter), Some(130 * MILLI));
    mock.increment(40 * MILLI);
    assert_eq!(retry_after(&limiter), Some(90 * MILLI));
    limiter.pause_until(Instant::now());
    assert_eq!(retry_after(&limiter), Some(90 * MILLI), "an end that has passed");
    limiter.pause_until(Instant::now() + HOUR);
    mock.increment(5 * MILLI);
    limiter.resume();
    assert_eq!(retry_after(&limiter), Some(90 * MILLI));
}

#[tokio::test(start_paused = true)]
async fn a_reservation_is_ready_as_far_off_by_tokios_as_by_it() {
    let (limiter, mock) = limiter(Rate::per_second(10), 1);
    drain(&limiter);
    let turn = limiter.reserve().unwrap();
    assert_eq!(turn.delay(), 100 * MILLI);
    assert_eq!(turn.ready_at(), Some(Instant::now() + 100 * MILLI));
    advance(HOUR).await;
    assert_eq!(turn.ready_at(), Some(Instant::now() + 100 * MILLI));
    mock.increment(60 * MILLI);
    assert_eq!(turn.delay(), 40 * MILLI);
    assert_eq!(turn.ready_at(), Some(Instant::now() + 40 * MILLI));
    let at = Instant::now() + 15 * MILLI;
    assert_eq!(turn.delay_from(at), 25 * MILLI);
    mock.increment(60 * MILLI);
    assert_eq!(turn.delay(), Duration::ZERO);
    assert_eq!(turn.ready_at(), Some(Instant::now() - 20 * MILLI));
    assert_eq!(timeout(HOUR, turn.ready()).await.unwrap(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_time_of_ones_own_is_as_far_off_by_it() {
    let (limiter, mock) = limiter(Rate::per_second(10), 10);
    drain(&limiter);
    advance(7 * HOUR).await;
    mock.increment(250 * MILLI);
    let now = Instant::now();
    assert_eq!(limiter.tokens_at(now), 2.5);
    assert_eq!(limiter.tokens_at(now + 50 * MILLI), 3.0);
    assert_eq!(limiter.tokens_at(now - 150 * MILLI), 1.0);
    assert!(limiter.try_acquire_many_at(3, now + 49 * MILLI).is_err());
    assert!(limiter.try_acquire_many_at(3, now + 50 * MILLI).is_ok());
}

// ---- The real one ------------------------------------------------------------------------------

/// Nothing is asked of time but that it goes on.
#[tokio::test]
async fn by_the_processors_counter_it_works() {
    let clock = Clock::from(quanta::Clock::new());
    let builder = Limiter::builder(Rate::per_second(2_000)).burst(3).clock(clock);
    let limiter = builder.build().unwrap();
    for n in [3, 1, 2, 3] {
        limiter.acquire_many(n).await.unwrap();
    }
    let turn = limiter.reserve_many(3).unwrap();
    assert!(turn.ready_at().is_some());
    turn.ready().await.unwrap();
    while limiter.try_acquire().is_err() {
        yield_now().await;
    }
    limiter.set_rate(Rate::ZERO).unwrap();
    let (tokens, left) = (limiter.tokens(), drain(&limiter));
    assert!((0.0..=3.0).contains(&tokens) && left <= 3, "{left} of {tokens}");
    limiter.close();
    assert_eq!(limiter.acquire().await, Err(AcquireError::Closed));
}
