//! The striped limiter: to all who use it it is one bucket, whichever stripes its permits lie in.

#![expect(clippy::float_cmp, reason = "a whole number of tokens is exact in an f64")]

#[path = "common/stripes.rs"]
mod stripes;

use futures::future::poll_immediate;
use paceline::{
    Acquire, AcquireError, BuildError, Limiter, RangeError, Rate, ReserveError, Striped,
    TryAcquireError,
};
use std::pin::pin;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use stripes::{EACH_MICRO, HOUR, SHAPES, at_once, drain, drain_by, micros, paused, striped};
use tokio::runtime::Handle;
use tokio::task::yield_now;
use tokio::time::{Instant, advance, sleep, timeout};

const MILLI: Duration = Duration::from_millis(1);

/// Runs a test while time stands still.
fn frozen(test: impl FnOnce()) {
    let runtime = paused();
    let _entered = runtime.enter();
    test();
}

// ---- How it is built ---------------------------------------------------------------------------

#[test]
fn the_least_burst_that_an_error_names_builds_and_no_lesser_one() {
    let shapes =
        [(1, 1), (1, 4_095), (2, 1), (3, 7), (5, 64), (64, 64), (1_024, 1), (1_024, 4_095)];
    for (stripes, batch) in shapes {
        let build = |burst| Limiter::builder(EACH_MICRO).burst(burst).build_striped(stripes, batch);
        let Err(BuildError::BurstTooSmall { burst: 1, least }) = build(1) else {
            panic!("{stripes} stripes of {batch} are built with a burst of 1")
        };
        let Err(error) = build(least - 1) else { panic!("{} is not too small", least - 1) };
        assert_eq!(error, BuildError::BurstTooSmall { burst: least - 1, least });
        let message = error.to_string();
        assert!(message.contains(&least.to_string()), "{message}");
        assert!(message.contains(&(least - 1).to_string()), "{message}");

        let limiter = build(least).unwrap();
        assert_eq!(limiter.burst(), least);
        assert_eq!(limiter.tokens(), f64::from(least));
        assert_eq!(limiter.largest_request(), batch, "a batch is beside the stripes");
        assert_eq!(build(least + 5).unwrap().largest_request(), batch + 5);
    }
}

#[test]
fn without_stripes_being_named_they_hold_half_of_the_burst_at_most() {
    let Err(BuildError::BurstTooSmall { burst: 1, least }) = Striped::new(EACH_MICRO, 1) else {
        panic!("a burst of 1 has stripes")
    };
    let Err(BuildError::BurstTooSmall { .. }) = Striped::new(EACH_MICRO, least - 1) else {
        panic!("less than the least has stripes")
    };
    for burst in [least, least + 1, 2 * least + 7, 10_000, 1_000_000] {
        let limiter = Striped::new(EACH_MICRO, burst).unwrap();
        assert_eq!(limiter.burst(), burst);
        assert_eq!(limiter.rate(), EACH_MICRO);
        assert_eq!(limiter.tokens(), f64::from(burst));
        let (largest, half) = (limiter.largest_request(), burst.div_ceil(2));
        assert!((half..burst).contains(&largest), "{largest} of {burst}");
    }
}

#[test]
fn there_are_1_to_1024_stripes_of_1_to_4095() {
    let build =
        |stripes, batch| Limiter::builder(EACH_MICRO).burst(u32::MAX).build_striped(stripes, batch);
    for (stripes, batch) in [
        (0, 8),
        (1_025, 8),
        (u32::MAX, 8),
        (8, 0),
        (8, 4_096),
        (8, u32::MAX),
        (0, 0),
        (u32::MAX, u32::MAX),
    ] {
        let error = build(stripes, batch).unwrap_err();
        assert_eq!(error, BuildError::StripesOutOfRange { stripes, batch });
        let message = error.to_string();
        assert!(message.contains(&format!("{stripes} stripes of {batch} ")), "{message}");
    }
    for (stripes, batch) in [(1, 1), (1, 4_095), (1_024, 1), (1_024, 4_095)] {
        let limiter = build(stripes, batch).unwrap();
        assert_eq!(u32::MAX - limiter.largest_request(), stripes * batch);
    }
}

#[test]
fn there_are_as_many_stripes_as_the_next_power_of_two() {
    for (asked, stripes) in [(1, 1), (2, 2), (3, 4), (5, 8), (513, 1_024), (1_024, 1_024)] {
        let limiter = striped(EACH_MICRO, 100_000, asked, 8);
        assert_eq!(100_000 - limiter.largest_request(), stripes * 8);
    }
}

#[test]
fn it_is_not_built_beyond_its_own_bounds_and_the_errors_name_the_totals() {
    let builder = || Limiter::builder(EACH_MICRO).burst(100);
    let (rate, max) = (EACH_MICRO, Rate::per_second(1));
    let refused = [
        (builder().initial(101), BuildError::InitialExceedsBurst { initial: 101, burst: 100 }),
        (builder().max_rate(max), BuildError::RateExceedsMax { rate, max }),
        (builder().max_burst(99), BuildError::BurstExceedsMax { burst: 100, max: 99 }),
        (builder().max_burst(0), BuildError::BurstExceedsMax { burst: 100, max: 0 }),
    ];
    for (builder, error) in refused {
        assert_eq!(builder.build_striped(2, 8).unwrap_err(), error);
    }
    let exact = builder().initial(100).max_rate(rate).max_burst(100).build_striped(2, 8);
    assert_eq!(exact.unwrap().burst(), 100);
}

#[test]
fn it_starts_with_as_many_as_is_said_in_all() {
    frozen(|| {
        for initial in 0..=40 {
            let builder = Limiter::builder(Rate::ZERO).burst(40).initial(initial);
            let limiter = builder.build_striped(4, 5).unwrap();
            assert_eq!(limiter.tokens(), f64::from(initial));
            assert_eq!(drain(&limiter), initial);
            assert_eq!(limiter.tokens(), 0.0);
        }
    });
}

#[tokio::test(start_paused = true)]
async fn one_that_starts_with_nothing_fills_up_to_the_burst() {
    for initial in [0, 1, 20, 33, 39] {
        let builder = Limiter::builder(EACH_MICRO).burst(40).initial(initial);
        let limiter = builder.build_striped(4, 5).unwrap();
        advance(HOUR).await;
        // One that begins with a part of a stripe has used the rest of it, so to speak.
        let full = drain(&limiter);
        assert!((36..=40).contains(&full), "{full} from {initial}");
        assert!(full == 40 || initial > 20, "{full} from {initial}");
        advance(HOUR).await;
        assert_eq!(drain(&limiter), 40, "from {initial}");
    }
}

// ---- One caller --------------------------------------------------------------------------------

#[test]
fn one_caller_uses_the_whole_burst_and_is_refused_then() {
    frozen(|| {
        for (stripes, batch, burst) in SHAPES {
            let limiter = striped(EACH_MICRO, burst, stripes, batch);
            assert_eq!(drain(&limiter), burst, "{stripes} stripes of {batch}");
            for n in 1..=limiter.largest_request() {
                let refused = limiter.try_acquire_many(n).unwrap_err();
                assert!(matches!(&refused, TryAcquireError::Limited(by) if by.requested() == n));
                assert_eq!(refused.retry_after(), Some(micros(n)));
            }
            assert_eq!(limiter.tokens(), 0.0);
        }
    });
}

#[tokio::test(start_paused = true)]
async fn one_caller_that_drained_it_and_was_idle_for_long_uses_the_whole_burst_again() {
    for (stripes, batch, burst) in SHAPES {
        let limiter = striped(EACH_MICRO, burst, stripes, batch);
        for idle in [HOUR, micros(2 * burst + 2), 1_000 * HOUR, HOUR] {
            assert_eq!(drain(&limiter), burst, "{stripes} stripes of {batch}");
            advance(idle).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn many_at_a_time_use_it_all_as_well_and_find_it_full_again() {
    for (stripes, batch, burst) in SHAPES {
        for n in [2, 3, batch, batch + 1, burst] {
            let limiter = striped(EACH_MICRO, burst, stripes, batch);
            let n = n.min(limiter.largest_request());
            for _ in 0..3 {
                assert_eq!(drain_by(&limiter, n), burst / n * n, "{stripes} of {batch} by {n}");
                assert_eq!(drain(&limiter), burst % n, "{stripes} of {batch} by {n}");
                advance(HOUR).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn retry_after_a_drain_is_right_to_the_nanosecond() {
    let periods = [1, 7, 1_000, 333_333].map(Duration::from_nanos);
    for period in periods {
        let limiter = striped(Rate::every(period), 40, 4, 5);
        for n in 1..=limiter.largest_request() {
            drain(&limiter);
            let wait = limiter.try_acquire_many(n).unwrap_err().retry_after();
            assert_eq!(wait, Some(n * period));
            let nano = Duration::from_nanos(1);
            advance((n * period).saturating_sub(nano)).await;
            let refused = limiter.try_acquire_many(n).unwrap_err();
            assert_eq!(refused.retry_after(), Some(nano), "{n} at one per {period:?}");
            advance(nano).await;
            limiter.try_acquire_many(n).unwrap();
            let next = limiter.try_acquire().unwrap_err();
            assert_eq!(next.retry_after(), Some(period));
        }
    }
}

/// Exactly so many permits, while the line has some: what a stripe lacks is what was used since
/// it was last filled.
#[tokio::test(start_paused = true)]
async fn what_was_used_of_a_stripe_without_emptying_it_is_missing_after_a_long_time() {
    const BATCH: u32 = 8;
    for used in 0..=40 {
        let limiter = striped(EACH_MICRO, 4 * BATCH + 48, 4, BATCH);
        for _ in 0..used {
            limiter.try_acquire().unwrap();
        }
        advance(HOUR).await;
        assert_eq!(drain(&limiter), limiter.burst() - used % BATCH, "after {used}");
        advance(HOUR).await;
        assert_eq!(drain(&limiter), limiter.burst(), "that it was emptied makes it good");
    }
}

#[tokio::test(start_paused = true)]
async fn more_than_the_largest_request_is_refused_with_that_number() {
    let limiter = striped(EACH_MICRO, 100, 4, 8);
    assert_eq!(limiter.largest_request(), 68);
    for requested in [69, 100, 101, u32::MAX] {
        let burst = 68;
        let error = TryAcquireError::ExceedsBurst { requested, burst };
        assert_eq!(limiter.try_acquire_many(requested), Err(error));
        let error = AcquireError::ExceedsBurst { requested, burst };
        assert_eq!(limiter.acquire_many(requested).await, Err(error));
        let error = ReserveError::ExceedsBurst { requested, burst };
        assert_eq!(limiter.reserve_many(requested).unwrap_err(), error);
    }
    assert_eq!(limiter.tokens(), 100.0, "that took nothing");
    limiter.try_acquire_many(68).unwrap();
    assert_eq!(drain(&limiter), 32);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_granted_at_once_until_it_is_closed() {
    for rate in [EACH_MICRO, Rate::ZERO, Rate::UNLIMITED] {
        let limiter = striped(rate, 20, 2, 5);
        for _ in 0..2 {
            limiter.try_acquire_many(0).unwrap();
            assert_eq!(limiter.acquire_many(0).await, Ok(Duration::ZERO));
            let past = Instant::now() - MILLI;
            assert_eq!(limiter.acquire_many(0).before(past).await, Ok(Duration::ZERO));
            assert_eq!(limiter.reserve_many(0).unwrap().delay(), Duration::ZERO);
            if !rate.is_unlimited() {
                drain(&limiter);
            }
        }
        limiter.close();
        assert_eq!(limiter.try_acquire_many(0), Err(TryAcquireError::Closed));
        assert_eq!(limiter.acquire_many(0).await, Err(AcquireError::Closed));
        assert_eq!(limiter.reserve_many(0).unwrap_err(), ReserveError::Closed);
    }
}

/// The line is taken first, so that what is left lies in the stripes.
#[tokio::test(start_paused = true)]
async fn stripes_and_line_together_serve_what_neither_has() {
    for (stripes, batch, burst) in SHAPES {
        let limiter = striped(EACH_MICRO, burst, stripes, batch);
        let (line, held) = (limiter.largest_request(), burst - limiter.largest_request());
        limiter.try_acquire_many(line).unwrap();
        if held < line {
            // One beyond the stripes is refused and takes nothing, until the line has that one.
            let refused = limiter.try_acquire_many(held + 1);
            assert!(matches!(refused, Err(TryAcquireError::Limited(_))), "{refused:?}");
            advance(micros(1)).await;
            limiter.try_acquire_many(held + 1).unwrap();
        } else {
            limiter.try_acquire_many(line).unwrap();
            assert_eq!(drain(&limiter), held - line);
        }
        assert_eq!(drain(&limiter), 0);
    }
}

#[test]
fn a_refusal_of_many_leaves_all_for_those_who_ask_for_less() {
    frozen(|| {
        for left in 1..20 {
            let builder = Limiter::builder(EACH_MICRO).burst(60).initial(left);
            let limiter = builder.build_striped(4, 8).unwrap();
            for n in left + 1..=limiter.largest_request() {
                limiter.try_acquire_many(n).unwrap_err();
                assert_eq!(limiter.tokens(), f64::from(left));
            }
            assert_eq!(drain(&limiter), left);
        }
    });
}

// ---- Settings ----------------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn a_new_rate_counts_from_now_on() {
    let limiter = striped(EACH_MICRO, 100, 4, 8);
    drain(&limiter);
    advance(micros(10)).await;
    limiter.set_rate(Rate::per_second(1_000)).unwrap();
    assert_eq!(limiter.rate(), Rate::per_second(1_000));
    advance(5 * MILLI).await;
    assert_eq!(drain(&limiter), 15);
    assert_eq!(limiter.try_acquire().unwrap_err().retry_after(), Some(MILLI));
    limiter.set_rate(Rate::ZERO).unwrap();
    advance(HOUR).await;
    assert_eq!(limiter.try_acquire().unwrap_err().retry_after(), None);
    limiter.set_rate(EACH_MICRO).unwrap();
    advance(HOUR).await;
    assert_eq!(drain(&limiter), 100);
}

#[tokio::test(start_paused = true)]
async fn a_rate_beyond_what_it_was_built_for_is_refused_and_changes_nothing() {
    let max = Rate::per_second(2_000_000);
    let builder = Limiter::builder(EACH_MICRO).burst(100).max_rate(max);
    let limiter = builder.build_striped(4, 8).unwrap();
    let rate = Rate::per_second(2_000_001);
    assert_eq!(limiter.set_rate(rate), Err(RangeError::RateExceedsMax { rate, max }));
    assert_eq!(limiter.rate(), EACH_MICRO);
    assert_eq!(limiter.set_rate(max), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn without_a_limit_everybody_passes_and_the_bucket_is_full_when_there_is_one_again() {
    for (stripes, batch, burst) in SHAPES {
        let limiter = striped(EACH_MICRO, burst, stripes, batch);
        drain(&limiter);
        limiter.set_rate(Rate::UNLIMITED).unwrap();
        for n in [1, burst, u32::MAX, 1, 2] {
            limiter.try_acquire_many(n).unwrap();
            assert_eq!(limiter.acquire_many(n).await, Ok(Duration::ZERO));
        }
        limiter.set_rate(EACH_MICRO).unwrap();
        let full = drain(&limiter);
        assert!((limiter.largest_request()..=burst).contains(&full), "{full} of {burst}");
        advance(HOUR).await;
        assert_eq!(drain(&limiter), burst, "{stripes} stripes of {batch}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_burst_out_of_range_is_refused_with_the_totals_and_changes_nothing() {
    let builder = Limiter::builder(EACH_MICRO).burst(100).max_burst(200);
    let limiter = builder.build_striped(4, 8).unwrap();
    for burst in [0, 8, 32, 39] {
        assert_eq!(limiter.set_burst(burst), Err(RangeError::BurstTooSmall { burst, least: 40 }));
    }
    for burst in [201, u32::MAX] {
        assert_eq!(limiter.set_burst(burst), Err(RangeError::BurstExceedsMax { burst, max: 200 }));
    }
    assert_eq!((limiter.burst(), limiter.largest_request()), (100, 68));
    assert_eq!(limiter.tokens(), 100.0);
    for burst in [200, 40, 100] {
        limiter.set_burst(burst).unwrap();
        assert_eq!((limiter.burst(), limiter.largest_request()), (burst, burst - 32));
    }
}

#[test]
fn where_no_largest_burst_is_said_the_one_that_the_error_names_can_be_set() {
    let limiter = striped(EACH_MICRO, 100, 4, 8);
    let refused = limiter.set_burst(u32::MAX).unwrap_err();
    let RangeError::BurstExceedsMax { burst: u32::MAX, max } = refused else {
        panic!("{refused:?}")
    };
    let error = RangeError::BurstExceedsMax { burst: max + 1, max };
    assert_eq!(limiter.set_burst(max + 1), Err(error));
    limiter.set_burst(max).unwrap();
    assert_eq!(limiter.burst(), max);
}

#[tokio::test(start_paused = true)]
async fn a_smaller_burst_counts_at_once_and_a_larger_one_revives_nothing() {
    let limiter = striped(EACH_MICRO, 100, 4, 8);
    limiter.set_burst(50).unwrap();
    limiter.set_burst(80).unwrap();
    assert_eq!(limiter.tokens(), 50.0);
    assert_eq!(drain(&limiter), 50);
    advance(HOUR).await;
    assert_eq!(drain(&limiter), 80);

    // While the stripes are empty, what is lost of the line is not kept in them either.
    advance(micros(40)).await;
    limiter.set_burst(60).unwrap();
    let used = drain(&limiter);
    assert!((28..=40).contains(&used), "{used}");
    limiter.set_burst(100).unwrap();
    advance(HOUR).await;
    assert_eq!(drain(&limiter), 100);
}

#[tokio::test(start_paused = true)]
async fn a_pause_mints_nothing_and_lets_all_that_is_stored_pass() {
    let limiter = striped(EACH_MICRO, 100, 4, 8);
    limiter.pause_until(Instant::now() + HOUR);
    advance(HOUR / 2).await;
    assert_eq!(drain(&limiter), 100);
    assert_eq!(limiter.try_acquire().unwrap_err().retry_after(), Some(HOUR / 2 + micros(1)));
    advance(HOUR / 4).await;
    assert_eq!(drain(&limiter), 0);
    limiter.resume();
    assert_eq!(limiter.try_acquire().unwrap_err().retry_after(), Some(micros(1)));
    limiter.resume();
    advance(micros(7)).await;
    assert_eq!(drain(&limiter), 7);
    limiter.pause_until(Instant::now() + micros(1_000));
    advance(micros(1_003)).await;
    assert_eq!(drain(&limiter), 3);
    advance(HOUR).await;
    assert_eq!(drain(&limiter), 100);
}

#[tokio::test(start_paused = true)]
async fn tokens_are_those_of_the_line_and_of_the_stripes() {
    let limiter = striped(Rate::per_second(1_000), 40, 2, 8);
    let mut left = 40;
    while left > 0 {
        assert_eq!(limiter.tokens(), f64::from(left));
        let n = 3.min(left);
        limiter.try_acquire_many(n).unwrap();
        left -= n;
    }
    assert_eq!(limiter.tokens(), 0.0);
    let turn = limiter.reserve_many(2).unwrap();
    assert_eq!(limiter.tokens(), -2.0);
    assert_eq!(turn.delay(), 2 * MILLI);
    turn.cancel();
    assert_eq!(limiter.tokens(), 0.0);
    advance(5 * MILLI / 2).await;
    assert_eq!(limiter.tokens(), 2.5);
}

#[tokio::test(start_paused = true)]
async fn reservations_are_of_the_line_and_keep_nobody_from_the_stripes() {
    let limiter = striped(Rate::per_second(1_000), 40, 2, 8);
    let all = limiter.reserve_many(24).unwrap();
    assert_eq!(all.delay(), Duration::ZERO);
    let next = limiter.reserve().unwrap();
    assert_eq!(next.delay(), MILLI);
    assert_eq!(drain(&limiter), 16, "what the stripes hold");
    all.cancel();
    assert_eq!(drain(&limiter), 24);
    assert_eq!(next.delay(), MILLI);
}

/// A turn that is booked moves the line on, past all that has overflowed by then.
#[tokio::test(start_paused = true)]
async fn after_a_long_time_the_stripes_fill_up_whoever_comes_first() {
    for (stripes, batch, burst) in SHAPES {
        let first = |limiter: &Striped, who: u32| match who {
            0 => limiter.try_acquire().unwrap(),
            1 => drop(limiter.reserve().unwrap()),
            2 => assert_eq!(at_once(limiter.acquire()), Ok(Duration::ZERO)),
            _ => {
                let acquire = limiter.acquire().before(Instant::now());
                assert_eq!(at_once(acquire), Ok(Duration::ZERO));
            }
        };
        for who in 0..4 {
            let limiter = striped(EACH_MICRO, burst, stripes, batch);
            drain(&limiter);
            advance(HOUR).await;
            first(&limiter, who);
            assert_eq!(drain(&limiter), burst - 1, "{who} with {stripes} stripes of {batch}");
        }
    }
}

// ---- It closes ---------------------------------------------------------------------------------

#[test]
fn closed_it_refuses_at_once_what_lies_in_the_stripes_too() {
    frozen(|| {
        let runtime = Handle::current();
        let limiter = Arc::new(striped(EACH_MICRO, 100, 4, 8));
        limiter.try_acquire().unwrap();
        assert!(!limiter.is_closed());
        limiter.close();
        assert!(limiter.is_closed());
        let refused = move |limiter: &Striped| {
            for n in [0, 1, 2, 8, 68, 69, u32::MAX] {
                let tried = limiter.try_acquire_many(n);
                assert_eq!(tried, Err(TryAcquireError::Closed));
                assert_eq!(at_once(limiter.acquire_many(n)), Err(AcquireError::Closed));
                assert_eq!(limiter.reserve_many(n).unwrap_err(), ReserveError::Closed);
            }
        };
        refused(&limiter);
        for _ in 0..4 {
            // Each new thread has another stripe.
            let (limiter, runtime) = (Arc::clone(&limiter), runtime.clone());
            let other = thread::spawn(move || {
                let _entered = runtime.enter();
                refused(&limiter);
            });
            other.join().unwrap();
        }
        limiter.close();
        limiter.set_rate(Rate::UNLIMITED).unwrap();
        refused(&limiter);
    });
}

#[tokio::test(start_paused = true)]
async fn all_who_wait_are_let_go_when_it_closes() {
    let limiter = Arc::new(striped(Rate::ZERO, 20, 2, 4));
    drain(&limiter);
    let waiters = [waiter(&limiter, 1).await, waiter(&limiter, 12).await];
    sleep(HOUR).await;
    limiter.close();
    for waiter in waiters {
        assert_eq!(waiter.await.unwrap(), Err(AcquireError::Closed));
    }
}

// ---- Those who wait ----------------------------------------------------------------------------

/// A task that acquires, polled once.
async fn waiter(
    limiter: &Arc<Striped>,
    permits: u32,
) -> tokio::task::JoinHandle<Result<Duration, AcquireError>> {
    let task = tokio::spawn(Arc::clone(limiter).acquire_many_owned(permits));
    yield_now().await;
    task
}

#[test]
fn an_acquire_is_ready_at_once_while_line_or_stripes_hold_its_permits() {
    // Outside of any runtime, where one that waits panics.
    let limiter = striped(Rate::ZERO, 40, 4, 4);
    for n in [1, 4, 5, 3, 1, 2] {
        assert_eq!(at_once(limiter.acquire_many(n)), Ok(Duration::ZERO));
    }
    limiter.try_acquire_many(8).unwrap();
    // What is left lies in the stripes.
    for n in [1, 4, 5, 2, 3, 1] {
        assert_eq!(at_once(limiter.acquire_many(n).within(HOUR)), Ok(Duration::ZERO));
    }
    let refused = at_once(limiter.acquire().within(HOUR)).unwrap_err();
    let error = AcquireError::WouldExceedDeadline { requested: 1, wait: None, limit: HOUR };
    assert_eq!(refused, error);
}

#[tokio::test(start_paused = true)]
async fn all_of_it_can_be_acquired_and_then_the_turns_come_one_by_one() {
    let limiter = striped(Rate::per_second(10), 40, 4, 4);
    for _ in 0..40 {
        assert_eq!(limiter.acquire().await, Ok(Duration::ZERO));
    }
    for _ in 0..10 {
        assert_eq!(limiter.acquire().await, Ok(100 * MILLI));
    }
    assert_eq!(limiter.acquire_many(24).await, Ok(2_400 * MILLI));
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_have_their_turns_in_the_order_in_which_they_came() {
    let limiter = Arc::new(striped(Rate::per_second(10), 40, 4, 4));
    drain(&limiter);
    let mut waiters = Vec::new();
    for n in [1, 3, 1, 2, 1] {
        waiters.push(waiter(&limiter, n).await);
    }
    assert_eq!(limiter.tokens(), -8.0);
    // Who tries has its turn behind them, also when theirs have come.
    for passed in 0..8_u32 {
        let wait = Some((9 - passed) * 100 * MILLI);
        assert_eq!(limiter.try_acquire().unwrap_err().retry_after(), wait);
        sleep(100 * MILLI).await;
    }
    for (waiter, turn) in waiters.into_iter().zip([1, 4, 5, 7, 8]) {
        assert_eq!(waiter.await.unwrap(), Ok(turn * 100 * MILLI));
    }
    assert_eq!(limiter.tokens(), 0.0);
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_hear_of_every_change() {
    let limiter = Arc::new(striped(Rate::per_hour(1), 40, 4, 4));
    drain(&limiter);
    let (first, second) = (waiter(&limiter, 1).await, waiter(&limiter, 20).await);
    let third = waiter(&limiter, 1).await;
    limiter.set_rate(Rate::per_second(10)).unwrap();
    limiter.pause_until(Instant::now() + HOUR);
    sleep(MILLI).await;
    limiter.resume();
    assert_eq!(first.await.unwrap(), Ok(101 * MILLI));
    limiter.set_burst(30).unwrap();
    let refused = AcquireError::ExceedsBurst { requested: 20, burst: 14 };
    assert_eq!(second.await.unwrap(), Err(refused));
    assert_eq!(third.await.unwrap(), Ok(2_201 * MILLI));
}

#[tokio::test(start_paused = true)]
async fn acquires_that_are_dropped_give_all_back() {
    let limiter = Arc::new(striped(Rate::per_second(10), 40, 4, 4));
    drain(&limiter);
    let mut waiters = Vec::new();
    for n in [1, 2, 3, 1] {
        waiters.push(waiter(&limiter, n).await);
    }
    assert_eq!(limiter.tokens(), -7.0);
    for index in [1, 0] {
        waiters[index].abort();
    }
    yield_now().await;
    assert_eq!(limiter.tokens(), -4.0);
    // The next have their turns.
    let next = waiter(&limiter, 3).await;
    for index in [2, 3] {
        waiters[index].abort();
    }
    assert_eq!(next.await.unwrap(), Ok(300 * MILLI));
    assert_eq!(limiter.tokens(), 0.0);

    // One that was never polled held nothing, and neither does one that timed out.
    drop(limiter.acquire_many(24));
    timeout(50 * MILLI, limiter.acquire_many(24)).await.unwrap_err();
    sleep(50 * MILLI).await;
    assert_eq!(limiter.try_acquire(), Ok(()));
    assert_eq!(drain(&limiter), 0);
    sleep(HOUR).await;
    assert_eq!(drain(&limiter), 40);
}

#[tokio::test(start_paused = true)]
async fn what_a_dropped_acquire_gave_back_can_be_tried_for() {
    let limiter = Arc::new(striped(Rate::per_second(10), 40, 4, 4));
    drain(&limiter);
    let (first, second) = (waiter(&limiter, 3).await, waiter(&limiter, 1).await);
    advance(Duration::from_millis(250)).await;
    first.abort();
    yield_now().await;
    assert_eq!(drain(&limiter), 2, "in the middle of the line");
    assert_eq!(second.await.unwrap(), Ok(400 * MILLI));
}

#[tokio::test(start_paused = true)]
async fn one_whose_turn_comes_too_late_is_refused_at_once_and_takes_nothing() {
    let limiter = striped(Rate::per_second(10), 40, 4, 4);
    drain(&limiter);
    let start = Instant::now();
    let late =
        |limit| AcquireError::WouldExceedDeadline { requested: 2, wait: Some(200 * MILLI), limit };
    let limit = 199 * MILLI;
    assert_eq!(limiter.acquire_many(2).within(limit).await, Err(late(limit)));
    assert_eq!(limiter.acquire_many(2).before(start + limit).await, Err(late(limit)));
    let both = limiter.acquire_many(2).within(HOUR).before(start + limit);
    assert_eq!(both.await, Err(late(limit)));
    assert_eq!(Instant::now(), start);
    assert_eq!(limiter.tokens(), 0.0);
    let limit = 200 * MILLI;
    assert_eq!(limiter.acquire_many(2).within(limit).await, Ok(limit));
    let deadline = Instant::now() + limit;
    assert_eq!(limiter.acquire_many(2).before(deadline).await, Ok(limit));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_has_passed_refuses_what_the_stripes_hold_too() {
    let limiter = striped(Rate::per_second(10), 40, 4, 4);
    let past = Instant::now();
    sleep(MILLI).await;
    let error = AcquireError::WouldExceedDeadline {
        requested: 1,
        wait: Some(Duration::ZERO),
        limit: Duration::ZERO,
    };
    assert_eq!(limiter.acquire().before(past).await, Err(error));
    assert_eq!(limiter.tokens(), 40.0);
    for n in [1, 24, 1, 2, 8] {
        let acquire = limiter.acquire_many(n).before(Instant::now());
        assert_eq!(acquire.await, Ok(Duration::ZERO));
    }
    assert_eq!(drain(&limiter), 4);
}

#[tokio::test(start_paused = true)]
async fn places_to_wait_and_the_longest_wait_are_bounded_as_it_was_built() {
    let builder = Limiter::builder(Rate::per_second(10)).burst(40);
    let limiter = builder.max_waiters(1).max_wait(100 * MILLI).build_striped(4, 4).unwrap();
    let limiter = Arc::new(limiter);
    assert_eq!(limiter.acquire_many(24).await, Ok(Duration::ZERO));
    drain(&limiter);
    let late = limiter.acquire_many(2).await.unwrap_err();
    assert!(matches!(late, AcquireError::WouldExceedDeadline { .. }), "{late:?}");
    let first = waiter(&limiter, 1).await;
    let full = Err(AcquireError::QueueFull { max_waiters: 1 });
    assert_eq!(limiter.acquire().await, full);
    assert_eq!(first.await.unwrap(), Ok(100 * MILLI));
}

#[tokio::test(start_paused = true)]
async fn a_loop_of_acquires_from_stripes_lets_others_run() {
    let limiter = striped(Rate::ZERO, 10_000, 2, 100);
    let mut others = 0;
    let acquires = async {
        for _ in 0..10_000 {
            assert_eq!(limiter.acquire().await, Ok(Duration::ZERO));
        }
    };
    let mut acquires = pin!(acquires);
    while poll_immediate(acquires.as_mut()).await.is_none() {
        others += 1;
        yield_now().await;
    }
    assert!(others >= 10, "{others}");
}

// ---- Types -------------------------------------------------------------------------------------

fn shared<T: Send + Sync + 'static>() {}
fn movable<T: Unpin>() {}
fn sendable<T: Send>(_: &T) {}

#[test]
fn it_can_be_shared_and_sent_and_its_owned_futures_outlive_everything() {
    shared::<Striped>();
    movable::<Striped>();
    shared::<Acquire<'static, Striped>>();
    let limiter = Arc::new(striped(Rate::ZERO, 8, 2, 2));
    sendable(&limiter.acquire().within(MILLI));
    sendable(&limiter.reserve().unwrap().ready());
    let owned: [Acquire<'static, Striped>; 2] = [
        Arc::clone(&limiter).acquire_owned(),
        Arc::clone(&limiter).acquire_many_owned(4).before(Instant::now() + HOUR),
    ];
    drop(limiter);
    for acquire in owned {
        assert_eq!(at_once(acquire), Ok(Duration::ZERO));
    }
}

#[test]
fn it_says_what_it_is() {
    frozen(|| {
        let limiter = striped(Rate::per_second(10), 40, 4, 4);
        limiter.try_acquire().unwrap();
        let text = format!("{limiter:?}");
        for part in ["Striped", "10", "burst: 40", "tokens: 39.0", "closed: false"] {
            assert!(text.contains(part), "{text}");
        }
    });
}
