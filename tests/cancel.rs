//! What is given back is there again, all of it and no more.

#![expect(clippy::float_cmp, reason = "a whole number of tokens is exact in an f64")]

mod common;
#[path = "common/steps.rs"]
mod steps;

use common::{SECOND, at, frozen};
use paceline::{Acquire, Limiter, Rate, Reservation};
use proptest::prelude::*;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use steps::{Act, Driver, cases, setups, steps};
use tokio::time::{Instant, advance, timeout};

// ---- Any order ---------------------------------------------------------------------------------

/// Books `permits` one after the other and tells when their turns come.
fn book<'a>(
    limiter: &'a Limiter,
    permits: &[u32],
    now: Instant,
) -> (Vec<Option<Reservation<'a>>>, Vec<Option<Instant>>) {
    let booked: Vec<_> =
        permits.iter().map(|n| limiter.reserve_many_at(*n, now).unwrap()).collect();
    let turns = booked.iter().map(Reservation::ready_at).collect();
    (booked.into_iter().map(Some).collect(), turns)
}

/// Books behind a burst that is spent, cancels all in `order`, and books again.
#[track_caller]
fn assert_order_gives_all_back(base: Instant, rate: Rate, permits: &[u32], order: &[usize]) {
    let burst = 10;
    let limiter = Limiter::new(rate, burst);
    let now = at(base, SECOND / 7);
    limiter.try_acquire_many_at(burst, now).unwrap();
    let tokens = limiter.tokens_at(now);
    let (mut booked, turns) = book(&limiter, permits, now);
    for index in order {
        booked[*index].take().unwrap().cancel_at(now);
    }
    let back = limiter.tokens_at(now);
    assert!((back - tokens).abs() < 1e-9, "{back} after {order:?} at {rate}, {tokens} before");
    let (_, again) = book(&limiter, permits, now);
    assert_eq!(again, turns, "after {order:?} at {rate}");
}

#[test]
fn ten_that_are_cancelled_in_any_order_give_all_back() {
    frozen(|base| {
        for per_second in [3, 7, 30, 60, 100, 144, 1000] {
            let rate = Rate::per_second(per_second);
            let mut random = fastrand::Rng::with_seed(per_second);
            let mut order: Vec<usize> = (0..10).collect();
            assert_order_gives_all_back(base, rate, &[1; 10], &order);
            order.reverse();
            assert_order_gives_all_back(base, rate, &[1; 10], &order);
            for _ in 0..1_000 {
                random.shuffle(&mut order);
                assert_order_gives_all_back(base, rate, &[1; 10], &order);
            }
        }
    });
}

#[test]
fn mixed_weights_that_are_cancelled_in_any_order_give_all_back() {
    frozen(|base| {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..1_000 {
            let permits: Vec<u32> = (0..10).map(|_| random.u32(1..=10)).collect();
            let mut order: Vec<usize> = (0..10).collect();
            random.shuffle(&mut order);
            assert_order_gives_all_back(base, Rate::per_second(7), &permits, &order);
        }
    });
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn never_more_comes_back_than_was_cancelled(
        mut setup in setups(),
        unlimited in any::<bool>(),
        steps in steps(0, 50, 80),
    ) {
        if unlimited {
            setup.rates.push(Rate::UNLIMITED);
        }
        frozen(|base| {
            let limiter = setup.limiter();
            let mut driver = Driver::new(base, &limiter);
            let (mut latest, mut calls) = (0, Vec::new());
            for step in steps {
                let Some(mut call) = driver.decide(step, &setup) else { continue };
                call.at = call.at.max(latest);
                latest = call.at;
                calls.push(call);
                let Act::Cancel(one) = call.what else {
                    driver.take(call);
                    continue;
                };
                let now = at(base, call.at);
                let permits = driver.reservations[one].as_ref().map_or(0, Reservation::permits);
                let in_time = driver.turn(one).is_none_or(|turn| turn >= call.at);
                let before = limiter.tokens_at(now);
                driver.take(call);
                let back = limiter.tokens_at(now) - before;
                let most = if in_time { f64::from(permits) } else { 0.0 };
                prop_assert!((-1e-6..=most + 1e-6).contains(&back), "{back} of {most}: {calls:?}");
            }
            Ok(())
        })?;
    }
}

// ---- Places that are taken again ---------------------------------------------------------------

/// Ten per second, so that turns are 100 ms apart, with the burst spent and `queued` booked.
fn queued(base: Instant, limiter: &Limiter, queued: usize) -> Vec<Option<Reservation<'_>>> {
    limiter.try_acquire_many_at(limiter.burst(), base).unwrap();
    book(limiter, &vec![1; queued], base).0
}

/// How many tenths of a second after `base` the turn of a new booking comes.
fn next_turn(base: Instant, limiter: &Limiter, permits: u32) -> u128 {
    let turn = limiter.reserve_many_at(permits, base).unwrap().ready_at().unwrap();
    (turn - base).as_nanos() / 100_000_000
}

#[test]
fn the_earliest_cancelled_turns_are_booked_again_first() {
    frozen(|base| {
        let limiter = Limiter::new(Rate::per_second(10), 5);
        let mut booked = queued(base, &limiter, 10);
        for index in [6, 2, 3] {
            booked[index].take().unwrap().cancel_at(base);
        }
        let turns = [(); 5].map(|()| next_turn(base, &limiter, 1));
        assert_eq!(turns, [3, 4, 7, 11, 12]);
    });
}

#[test]
fn several_cancelled_turns_serve_one_booking_only_if_a_burst_spans_them() {
    frozen(|base| {
        let limiter = Limiter::new(Rate::per_second(10), 4);
        let mut booked = queued(base, &limiter, 12);
        for index in [0, 3, 5, 9] {
            booked[index].take().unwrap().cancel_at(base);
        }
        // Of 1, 4, 6 and 10, a burst spans the first two, and then none; 10 does with the end.
        assert_eq!(next_turn(base, &limiter, 2), 4);
        assert_eq!(next_turn(base, &limiter, 2), 13);
        assert_eq!(next_turn(base, &limiter, 2), 15);
        assert_eq!(next_turn(base, &limiter, 1), 6);
    });
}

#[test]
fn what_is_free_counts_also_when_it_is_more_than_the_burst() {
    frozen(|base| {
        let limiter = Limiter::new(Rate::per_second(10), 1);
        let mut booked = queued(base, &limiter, 10);
        for reservation in &mut booked[..9] {
            reservation.take().unwrap().cancel_at(base);
        }
        // One is booked and not minted; those before it are free.
        assert_eq!(limiter.tokens_at(base), -1.0);
    });
}

// ---- In time, and too late ---------------------------------------------------------------------

#[test]
fn exactly_at_its_turn_a_cancel_gives_back_and_a_nanosecond_later_it_does_not() {
    frozen(|base| {
        for per_second in [3, 7, 30, 60, 100, 144, 1000] {
            for (late, back) in [(0, 1), (1, 0)] {
                let limiter = Limiter::new(Rate::per_second(per_second), 1);
                let at_once = limiter.reserve_many_at(1, base).unwrap();
                at_once.cancel_at(at(base, late));
                assert_eq!(limiter.try_acquire_many_at(1, at(base, late)).is_ok(), back == 1);

                let limiter = Limiter::new(Rate::per_second(per_second), 1);
                limiter.try_acquire_many_at(1, base).unwrap();
                let turn = limiter.reserve_many_at(1, base).unwrap();
                let then = turn.ready_at().unwrap() + Duration::from_nanos(late);
                turn.cancel_at(then);
                let granted = limiter.try_acquire_many_at(1, then).is_ok();
                assert_eq!(granted, back == 1, "{per_second}/s, {late} ns late");
            }
        }
    });
}

#[test]
fn a_change_of_the_rate_at_the_very_turn_does_not_make_a_cancel_too_late() {
    frozen(|base| {
        let limiter = Limiter::new(Rate::per_second(10), 1);
        limiter.try_acquire_many_at(1, base).unwrap();
        let turn = limiter.reserve_many_at(1, base).unwrap();
        let then = turn.ready_at().unwrap();
        limiter.set_rate_at(Rate::per_second(20), then).unwrap();
        assert_eq!(turn.ready_at(), Some(then));
        turn.cancel_at(then);
        assert_eq!(limiter.tokens_at(then), 1.0);
    });
}

#[test]
fn a_cancel_at_the_end_does_not_bring_back_what_has_overflowed_beside_it() {
    frozen(|base| {
        let limiter = Limiter::new(Rate::per_second(1), 2);
        limiter.try_acquire_many_at(2, base).unwrap();
        let [first, second, third] = [(); 3].map(|()| limiter.reserve_many_at(1, base).unwrap());
        first.cancel_at(base);
        second.cancel_at(base);
        // Half of the first has overflowed, so that only the second can be had.
        let now = at(base, 5 * SECOND / 2);
        let before = limiter.tokens_at(now);
        third.cancel_at(now);
        let back = limiter.tokens_at(now) - before;
        assert!(back <= 1.0, "{back} came back of 1");
    });
}

// ---- Futures -----------------------------------------------------------------------------------

fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test(start_paused = true)]
async fn an_acquire_that_is_never_polled_takes_nothing() {
    let limiter = Limiter::new(Rate::per_second(10), 3);
    drop(limiter.acquire_many(3));
    let unpolled = limiter.acquire_many(2).within(Duration::from_secs(1));
    assert_eq!(limiter.tokens(), 3.0);
    drop(unpolled);
    assert_eq!(limiter.tokens(), 3.0);
}

#[tokio::test(start_paused = true)]
async fn an_acquire_that_times_out_gives_its_turn_to_the_next() {
    let limiter = Limiter::new(Rate::per_second(10), 1);
    assert_eq!(limiter.acquire().await, Ok(Duration::ZERO));
    let start = Instant::now();
    for _ in 0..50 {
        assert!(timeout(Duration::from_millis(1), limiter.acquire()).await.is_err());
    }
    // Fifty that gave up are in nobody's way.
    assert!(limiter.acquire().await.is_ok());
    assert_eq!(start.elapsed(), Duration::from_millis(100));
}

#[tokio::test(start_paused = true)]
async fn an_acquire_that_completed_gives_nothing_back() {
    let limiter = Limiter::new(Rate::per_second(10), 1);
    let mut at_once = pin!(limiter.acquire());
    assert!(poll_once(at_once.as_mut()).is_ready());
    let mut waits = Box::pin(limiter.acquire());
    assert!(poll_once(waits.as_mut()).is_pending());
    advance(Duration::from_millis(100)).await;
    assert_eq!(poll_once(waits.as_mut()), Poll::Ready(Ok(Duration::from_millis(100))));
    let before = limiter.tokens();
    drop(waits);
    assert_eq!(limiter.tokens(), before);
}

#[tokio::test(start_paused = true)]
async fn an_acquire_that_is_dropped_after_its_turn_gives_back_what_has_not_overflowed() {
    let cases = [(0, 2.0), (1_000, 2.0), (2_000, 2.0), (2_001, 1.999), (3_500, 0.5), (4_000, 0.0)];
    for (late, back) in cases {
        let limiter = Limiter::new(Rate::per_second(1), 4);
        limiter.try_acquire_many(4).unwrap();
        let mut unpolled = Box::pin(limiter.acquire_many(2));
        assert!(poll_once(unpolled.as_mut()).is_pending());
        advance(Duration::from_millis(2_000 + late)).await;
        // Somebody else has what came after it.
        while limiter.try_acquire().is_ok() {}
        let before = limiter.tokens();
        drop(unpolled);
        let given_back = limiter.tokens() - before;
        // What overflows in a nanosecond still counts in it.
        assert!((given_back - back).abs() < 1.5e-9, "{given_back} at {late} ms late");
    }
}

/// What is done to waiting futures.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Start(u32),
    Drop(usize),
    /// Milliseconds.
    Pass(u64),
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = prop_oneof![
        3 => (1_u32..=4).prop_map(Fate::Start),
        2 => (0_usize..100).prop_map(Fate::Drop),
        2 => prop_oneof![1_u64..=100, Just(50), Just(100)].prop_map(Fate::Pass),
    ];
    prop::collection::vec(fate, 1..60)
}

type Waiter<'a> = (Pin<Box<Acquire<'static>>>, Reservation<'a>, Instant);

/// Those that go on waiting, as their reservations say.
fn poll_all(waiting: Vec<Waiter<'_>>) -> Result<Vec<Waiter<'_>>, TestCaseError> {
    let mut still = Vec::new();
    for (mut future, reservation, since) in waiting {
        match poll_once(future.as_mut()) {
            Poll::Pending => {
                prop_assert!(reservation.delay() > Duration::ZERO, "{future:p} is late");
                still.push((future, reservation, since));
            }
            Poll::Ready(waited) => {
                prop_assert_eq!(reservation.delay(), Duration::ZERO);
                prop_assert_eq!(waited, Ok(since.elapsed()));
            }
        }
    }
    Ok(still)
}

/// Futures do as reservations would, made when they are first polled, and cancelled when they are
/// dropped unfinished.
async fn compare_with_reservations(fates: Vec<Fate>) -> Result<(), TestCaseError> {
    // Without slack, and polled each millisecond, which is when turns come: never late.
    let strict = || Limiter::builder(Rate::per_second(10)).burst(4).slack(Duration::ZERO).build();
    let (limiter, twin) = (Arc::new(strict().unwrap()), strict().unwrap());
    let mut waiting: Vec<Waiter<'_>> = Vec::new();
    for fate in fates {
        match fate {
            Fate::Start(permits) => {
                let now = Instant::now();
                let mut future = Box::pin(Arc::clone(&limiter).acquire_many_owned(permits));
                let reservation = twin.reserve_many_at(permits, now).unwrap();
                match poll_once(future.as_mut()) {
                    Poll::Ready(waited) => {
                        prop_assert_eq!(waited, Ok(Duration::ZERO));
                        prop_assert_eq!(reservation.delay_from(now), Duration::ZERO);
                    }
                    Poll::Pending => waiting.push((future, reservation, now)),
                }
            }
            Fate::Drop(one) => {
                if let Some(one) = one.checked_rem(waiting.len()) {
                    let (future, reservation, _) = waiting.swap_remove(one);
                    drop(future);
                    reservation.cancel();
                }
            }
            Fate::Pass(millis) => {
                for _ in 0..millis {
                    advance(Duration::from_millis(1)).await;
                    waiting = poll_all(waiting)?;
                }
            }
        }
        prop_assert!((limiter.tokens() - twin.tokens()).abs() < 1e-9);
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn futures_that_are_dropped_at_any_point_give_back_what_a_cancel_would(fates in fates()) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        // Polled by hand in one task, they would soon use up its budget.
        let test = tokio::task::unconstrained(compare_with_reservations(fates));
        runtime.block_on(test)?;
    }
}
