//! What is refused, in which order, with what message; and that a refusal changes nothing.

#![expect(clippy::float_cmp, reason = "a whole number of tokens is exact in an f64")]

mod common;

use common::{SECOND, at, frozen};
use paceline::{
    Acquire, AcquireError, BuildError, Builder, Limited, Limiter, RangeError, Rate, RateError,
    Reservation, ReserveError, TryAcquireError,
};
use std::cell::Cell;
use std::error::Error;
use std::fmt::{Debug, Display};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;
use tokio::time::{Instant, advance};

const MILLI: Duration = Duration::from_millis(1);

fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// What an acquire says at once.
#[track_caller]
fn at_once(acquire: Acquire<'_>) -> Result<Duration, AcquireError> {
    match poll_once(pin!(acquire)) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => panic!("it waits"),
    }
}

#[track_caller]
fn assert_names(error: &impl Display, values: &[&str]) {
    let message = error.to_string();
    for value in values {
        assert!(message.contains(value), "{message:?} does not name {value}");
    }
}

// ---- The order ---------------------------------------------------------------------------------

#[test]
fn a_closed_limiter_refuses_everything_even_nothing() {
    frozen(|base| {
        for rate in [Rate::per_second(10), Rate::UNLIMITED, Rate::ZERO] {
            let limiter = Limiter::new(rate, 2);
            let held = limiter.reserve_many_at(1, base).unwrap();
            limiter.close();
            limiter.close();
            assert!(limiter.is_closed());
            for n in [0, 1, 2, 3, u32::MAX] {
                let tried = limiter.try_acquire_many_at(n, base);
                assert_eq!(tried, Err(TryAcquireError::Closed));
                assert_eq!(tried.unwrap_err().retry_after(), None);
                let reserved = limiter.reserve_many_at(n, base);
                assert_eq!(reserved.unwrap_err(), ReserveError::Closed);
                let past = limiter.acquire_many(n).before(base);
                for acquire in [limiter.acquire_many(n), past] {
                    assert_eq!(at_once(acquire), Err(AcquireError::Closed));
                }
            }
            assert_eq!(poll_once(pin!(held.ready())), Poll::Ready(Err(AcquireError::Closed)));
            held.cancel_at(base);
            assert_names(&TryAcquireError::Closed, &["closed"]);
            assert_names(&ReserveError::Closed, &["closed"]);
            assert_names(&AcquireError::Closed, &["closed"]);
        }
    });
}

#[test]
fn nothing_is_granted_at_once_whatever_the_burst_the_debt_and_the_deadline() {
    frozen(|base| {
        let now = at(base, SECOND);
        for rate in [Rate::per_second(10), Rate::UNLIMITED, Rate::ZERO] {
            for burst in [0, 2] {
                let limiter = Limiter::new(rate, burst);
                for _ in 0..2 {
                    let tokens = limiter.tokens_at(now);
                    limiter.try_acquire_many_at(0, now).unwrap();
                    let reservation = limiter.reserve_many_at(0, now).unwrap();
                    assert_eq!(reservation.permits(), 0);
                    assert_eq!(reservation.ready_at(), Some(now));
                    reservation.cancel_at(now);
                    let past = limiter.acquire_many(0).before(base - MILLI);
                    for acquire in [limiter.acquire_many(0), past] {
                        assert_eq!(at_once(acquire), Ok(Duration::ZERO));
                    }
                    assert_eq!(limiter.tokens_at(now), tokens);
                    if burst > 0 {
                        let _ = limiter.reserve_many_at(burst, now).unwrap();
                        let _ = limiter.reserve_many_at(burst, now).unwrap();
                    }
                }
            }
        }
    });
}

#[test]
fn more_than_the_burst_is_refused_as_that_even_if_it_would_be_late_too() {
    frozen(|base| {
        let limiter = Limiter::new(Rate::per_second(10), 2);
        for spent in [0, 2, 2] {
            let _ = limiter.reserve_many_at(spent, base).unwrap();
            for requested in [3, 1_000, u32::MAX] {
                let burst = 2;
                let tried = limiter.try_acquire_many_at(requested, base).unwrap_err();
                assert_eq!(tried, TryAcquireError::ExceedsBurst { requested, burst });
                assert_eq!(tried.retry_after(), None);
                let reserved = limiter.reserve_many_at(requested, base).unwrap_err();
                assert_eq!(reserved, ReserveError::ExceedsBurst { requested, burst });
                let late = limiter.acquire_many(requested).before(base - MILLI);
                for acquire in [limiter.acquire_many(requested), late] {
                    let acquired = at_once(acquire).unwrap_err();
                    assert_eq!(acquired, AcquireError::ExceedsBurst { requested, burst });
                    assert_names(&acquired, &[&requested.to_string(), "burst of 2"]);
                }
                assert_names(&tried, &[&requested.to_string(), "burst of 2"]);
                assert_names(&reserved, &[&requested.to_string(), "burst of 2"]);
            }
        }
    });
}

#[test]
fn an_unlimited_limiter_grants_more_than_its_burst() {
    frozen(|base| {
        for burst in [0, 1, 100] {
            let limiter = Limiter::new(Rate::UNLIMITED, burst);
            for n in [1, 101, u32::MAX] {
                limiter.try_acquire_many_at(n, base).unwrap();
                assert_eq!(limiter.reserve_many_at(n, base).unwrap().ready_at(), Some(base));
                assert_eq!(at_once(limiter.acquire_many(n)), Ok(Duration::ZERO));
            }
            assert_eq!(limiter.tokens_at(base), f64::from(burst));
        }
    });
}

#[test]
fn a_zero_burst_refuses_all_but_nothing() {
    frozen(|base| {
        let limiter = Limiter::new(Rate::per_second(1_000), 0);
        for now in [base, at(base, 1_000 * SECOND)] {
            limiter.try_acquire_many_at(0, now).unwrap();
            let error = TryAcquireError::ExceedsBurst { requested: 1, burst: 0 };
            assert_eq!(limiter.try_acquire_many_at(1, now), Err(error));
            assert_eq!(limiter.tokens_at(now), 0.0);
        }
    });
}

// ---- Too late ----------------------------------------------------------------------------------

#[test]
fn a_zero_rate_lets_the_burst_pass_once_and_then_says_never() {
    frozen(|base| {
        let limiter = Limiter::new(Rate::ZERO, 3);
        limiter.try_acquire_many_at(3, base).unwrap();
        for now in [base, at(base, 1_000_000_000 * SECOND)] {
            let denied = limiter.try_acquire_many_at(1, now).unwrap_err();
            assert!(matches!(denied, TryAcquireError::Limited(_)), "{denied:?}");
            assert_eq!(denied.retry_after(), None);
            assert_names(&denied, &["1 permits"]);
        }
        let bounded = limiter.acquire().within(Duration::from_secs(3));
        let refused = at_once(bounded).unwrap_err();
        let limit = Duration::from_secs(3);
        assert_eq!(refused, AcquireError::WouldExceedDeadline { requested: 1, wait: None, limit });
        assert_names(&refused, &["1 permits", "never", "3s"]);
        let reservation = limiter.reserve_many_at(2, base).unwrap();
        assert_eq!(reservation.ready_at(), None);
        assert_eq!(reservation.delay_from(base), Duration::MAX);
        // It may still be given back, at any time.
        reservation.cancel_at(at(base, SECOND));
        assert_eq!(limiter.tokens_at(base), 0.0);
        assert!(poll_once(pin!(limiter.acquire())).is_pending());
    });
}

#[test]
fn a_denied_try_says_when_to_retry() {
    frozen(|base| {
        let limiter = Limiter::new(Rate::per_second(10), 5);
        limiter.try_acquire_many_at(4, base).unwrap();
        let denied = limiter.try_acquire_many_at(4, base).unwrap_err();
        assert_names(&denied, &["4 permits", "300ms"]);
        let TryAcquireError::Limited(denied) = denied else { panic!("{denied:?}") };
        assert_eq!(denied.requested(), 4);
        assert_eq!(denied.retry_after(), Some(300 * MILLI));
    });
}

#[test]
fn a_turn_at_the_very_end_of_the_wait_is_in_time_and_a_nanosecond_later_is_not() {
    let (wait, less) = (200 * MILLI, Duration::from_nanos(199_999_999));
    frozen(|base| {
        let limiter = Limiter::new(Rate::per_second(10), 2);
        limiter.try_acquire_many_at(2, base).unwrap();
        let acquire = || limiter.acquire_many(2);
        let in_time = [
            acquire().within(wait),
            acquire().within(Duration::MAX),
            acquire().before(base + wait),
            acquire().within(wait).before(base + 2 * wait),
        ];
        for acquire in in_time {
            assert!(poll_once(pin!(acquire)).is_pending());
            assert_eq!(limiter.tokens_at(base), 0.0);
        }
        let late = [
            (acquire().within(less), less),
            (acquire().before(base + less), less),
            (acquire().within(MILLI).before(base + wait), MILLI),
            (acquire().within(wait).before(base + MILLI), MILLI),
            (acquire().within(MILLI).within(wait), MILLI),
            (acquire().before(base + MILLI).before(base + wait), MILLI),
            (acquire().within(Duration::ZERO), Duration::ZERO),
            (acquire().before(base - MILLI), Duration::ZERO),
        ];
        for (acquire, limit) in late {
            let refused = at_once(acquire).unwrap_err();
            let wait = Some(wait);
            assert_eq!(refused, AcquireError::WouldExceedDeadline { requested: 2, wait, limit });
            assert_names(&refused, &["2 permits", "200ms", &format!("{limit:?}")]);
            assert_eq!(limiter.tokens_at(base), 0.0);
        }
    });
}

#[tokio::test(start_paused = true)]
async fn a_deadline_in_the_past_refuses_even_what_is_there() {
    let limiter = Limiter::new(Rate::per_second(10), 2);
    advance(MILLI).await;
    let past = Instant::now() - Duration::from_nanos(1);
    let refused = limiter.acquire().before(past).await.unwrap_err();
    assert!(matches!(refused, AcquireError::WouldExceedDeadline { .. }), "{refused:?}");
    assert_eq!(limiter.tokens(), 2.0);
    assert_eq!(limiter.acquire().before(Instant::now()).await, Ok(Duration::ZERO));
    assert_eq!(limiter.acquire().within(Duration::ZERO).await, Ok(Duration::ZERO));
}

// ---- A refusal changes nothing -----------------------------------------------------------------

/// Limiters of ten per second and a burst of 4, to be met by what is refused.
fn situations(base: Instant) -> Vec<(&'static str, Limiter)> {
    let limiter = |situation: &'static str, prepare: fn(&Limiter, Instant)| {
        let limiter = Limiter::new(Rate::per_second(10), 4);
        prepare(&limiter, base);
        (situation, limiter)
    };
    vec![
        limiter("full", |_, _| {}),
        limiter("nearly empty", |limiter, base| limiter.try_acquire_many_at(3, base).unwrap()),
        limiter("in debt", |limiter, base| {
            for _ in 0..5 {
                let _ = limiter.reserve_many_at(3, base).unwrap();
            }
        }),
        limiter("with holes", |limiter, base| {
            let mut booked: Vec<_> =
                (0..12).map(|_| Some(limiter.reserve_many_at(1, base).unwrap())).collect();
            for index in [5, 7, 10] {
                booked[index].take().unwrap().cancel_at(base);
            }
        }),
    ]
}

#[test]
fn a_refusal_changes_nothing() {
    frozen(|base| {
        for ((situation, limiter), (_, untouched)) in
            situations(base).into_iter().zip(situations(base))
        {
            if situation != "full" {
                for n in [4, 2] {
                    let denied = limiter.try_acquire_many_at(n, base).unwrap_err();
                    assert!(matches!(denied, TryAcquireError::Limited(_)), "{situation}");
                }
                at_once(limiter.acquire_many(4).within(MILLI)).unwrap_err();
                at_once(limiter.acquire_many(2).before(base - MILLI)).unwrap_err();
            }
            limiter.try_acquire_many_at(5, base).unwrap_err();
            limiter.reserve_many_at(5, base).unwrap_err();
            at_once(limiter.acquire_many(u32::MAX)).unwrap_err();
            limiter.set_rate_at(Rate::per_second(1_000_000_000), base).unwrap_err();
            limiter.set_burst_at(u32::MAX, base).unwrap_err();

            assert_eq!(limiter.rate(), untouched.rate());
            assert_eq!(limiter.burst(), untouched.burst());
            assert_eq!(limiter.tokens_at(base), untouched.tokens_at(base), "{situation}");
            for n in [1, 2, 1, 4, 1, 3] {
                let [turn, expected] = [&limiter, &untouched]
                    .map(|limiter| limiter.reserve_many_at(n, base).unwrap().ready_at());
                assert_eq!(turn, expected, "{situation}");
            }
        }
    });
}

// ---- Settings ----------------------------------------------------------------------------------

#[test]
fn beyond_what_it_is_built_for_a_limiter_is_not_set() {
    let (fast, max) = (Rate::per_second(101), Rate::per_second(100));
    let limiter =
        Limiter::builder(Rate::per_second(5)).burst(2).max_rate(max).max_burst(7).build().unwrap();
    let error = limiter.set_rate(fast).unwrap_err();
    assert_eq!(error, RangeError::RateExceedsMax { rate: fast, max });
    assert_names(&error, &["101/s", "100/s"]);
    let error = limiter.set_burst(8).unwrap_err();
    assert_eq!(error, RangeError::BurstExceedsMax { burst: 8, max: 7 });
    assert_names(&error, &["8", "7"]);
    assert_eq!((limiter.rate(), limiter.burst()), (Rate::per_second(5), 2));
    limiter.set_rate(max).unwrap();
    limiter.set_burst(7).unwrap();
    assert_eq!((limiter.rate(), limiter.burst()), (max, 7));
    // These are never beyond.
    limiter.set_rate(Rate::UNLIMITED).unwrap();
    limiter.set_rate(Rate::ZERO).unwrap();
    limiter.set_burst(0).unwrap();
}

#[test]
fn unless_it_says_otherwise_a_limiter_can_be_set_to_what_is_usual() {
    let usual = (Rate::per_second(10_000_000), 10_000_000);
    let slow = (Rate::per_second(50_000), 10_000);
    let cases = [
        (Rate::per_minute(1), usual),
        (Rate::per_second(7_777_777), usual),
        (Rate::ZERO, usual),
        (Rate::UNLIMITED, usual),
        (Rate::per_hour(59), slow),
        (Rate::per_day(1), slow),
        (Rate::every(Duration::MAX), slow),
    ];
    frozen(|base| {
        for (start, (rate, burst)) in cases {
            let built = Limiter::builder(start).burst(1).build().unwrap();
            for limiter in [Limiter::new(start, 1), built] {
                limiter.set_rate_at(rate, base).unwrap();
                limiter.set_burst_at(burst, base).unwrap();
                assert_eq!((limiter.rate(), limiter.burst()), (rate, burst));
                let full = at(base, 1_000 * SECOND);
                limiter.try_acquire_many_at(burst, full).unwrap();
                let denied = limiter.try_acquire_many_at(1, full).unwrap_err();
                let wait = rate.period() / u32::try_from(rate.tokens()).unwrap();
                assert_eq!(denied.retry_after(), Some(wait), "{start} set to {rate}");
                limiter.set_rate_at(start, full).unwrap();
            }
        }
    });
}

#[test]
fn a_builder_refuses_what_does_not_fit_together() {
    let (rate, max) = (Rate::per_second(10), Rate::per_second(9));
    let builder = || Limiter::builder(rate);
    assert_eq!(builder().build().unwrap().burst(), 1);

    let error = builder().burst(4).initial(5).build().unwrap_err();
    assert_eq!(error, BuildError::InitialExceedsBurst { initial: 5, burst: 4 });
    assert_names(&error, &["5", "4"]);
    let error = builder().max_rate(max).build().unwrap_err();
    assert_eq!(error, BuildError::RateExceedsMax { rate, max });
    assert_names(&error, &["10/s", "9/s"]);
    let error = builder().burst(6).max_burst(3).build().unwrap_err();
    assert_eq!(error, BuildError::BurstExceedsMax { burst: 6, max: 3 });
    assert_names(&error, &["6", "3"]);
}

#[test]
fn a_limiter_starts_with_what_it_is_told() {
    frozen(|base| {
        for initial in 0..=4 {
            let limiter =
                Limiter::builder(Rate::per_second(10)).burst(4).initial(initial).build().unwrap();
            assert_eq!(limiter.tokens_at(base), f64::from(initial));
            let next = limiter.reserve_many_at(4, base).unwrap();
            assert_eq!(next.delay_from(base), (4 - initial) * 100 * MILLI);
        }
    });
}

#[test]
fn a_bad_rate_is_named_in_its_error() {
    let texts = ["10/fortnight", "", "-1/s", "nonsense", "1/0s", "10000000000000/s"];
    for text in texts {
        let error: RateError = text.parse::<Rate>().unwrap_err();
        assert_names(&error, &[&format!("{text:?}")]);
    }
    let numbers: [(f64, &str); 4] = [
        (f64::NAN, "NaN"),
        (-1.5, "-1.5"),
        (f64::NEG_INFINITY, "-inf"),
        (1e13, "10000000000000.0"),
    ];
    for (number, name) in numbers {
        assert_names(&Rate::from_per_second(number).unwrap_err(), &[name]);
    }
    assert_names(&Rate::new(7, Duration::ZERO).unwrap_err(), &["7 per 0ns"]);
    assert_names(&Rate::new(u64::MAX, MILLI).unwrap_err(), &[&u64::MAX.to_string(), "1ms"]);
    assert_names(&Rate::new(3, Duration::MAX).unwrap_err(), &[&format!("{:?}", Duration::MAX)]);
}

// ---- Runtimes ----------------------------------------------------------------------------------

#[test]
fn outside_of_a_runtime_all_works_that_need_not_wait() {
    let limiter = Limiter::new(Rate::ZERO, 3);
    limiter.try_acquire().unwrap();
    limiter.reserve().unwrap().cancel_at(Instant::now() - Duration::from_secs(3_600));
    assert_eq!(at_once(limiter.acquire()), Ok(Duration::ZERO));
    assert_eq!(limiter.reserve().unwrap().delay(), Duration::ZERO);
    assert_eq!(limiter.tokens(), 0.0);
    at_once(limiter.acquire().within(MILLI)).unwrap_err();
    limiter.set_burst(2).unwrap();
    limiter.set_rate(Rate::UNLIMITED).unwrap();
    assert_eq!(at_once(limiter.acquire()), Ok(Duration::ZERO));
}

/// Polls an acquire that must wait, and tells how it panics.
fn panic_of_waiting(limiter: &Limiter) -> String {
    let waits = || {
        let _ = poll_once(pin!(limiter.acquire()));
    };
    let payload = catch_unwind(AssertUnwindSafe(waits)).unwrap_err();
    payload.downcast_ref::<String>().cloned().unwrap_or_else(|| {
        payload.downcast_ref::<&str>().map(ToString::to_string).unwrap_or_default()
    })
}

#[test]
fn an_acquire_that_must_wait_without_a_timer_panics_as_tokio_does_and_gives_back() {
    let limiter = Limiter::new(Rate::ZERO, 1);
    limiter.try_acquire().unwrap();

    let message = panic_of_waiting(&limiter);
    assert!(
        message.contains("must be called from the context of a Tokio 1.x runtime"),
        "{message}"
    );
    assert_eq!(limiter.tokens(), 0.0);

    let no_timer = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let message = no_timer.block_on(async { panic_of_waiting(&limiter) });
    assert!(message.contains("timers are disabled"), "{message}");
    assert_eq!(limiter.tokens(), 0.0);
}

#[test]
fn two_runtimes_share_a_limiter() {
    const EACH: usize = 20;
    let limiter = Arc::new(Limiter::new(Rate::per_second(10), 3));
    // Each runtime's time runs ahead on its own while its task sleeps.
    let users = [(); 2].map(|()| {
        let limiter = Arc::clone(&limiter);
        thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_time().start_paused(true).build().unwrap();
            runtime.block_on(async {
                let mut used = Vec::new();
                for _ in 0..EACH {
                    limiter.acquire().await.unwrap();
                    used.push(Instant::now());
                }
                used
            })
        })
    });
    let mut used: Vec<_> = users.into_iter().flat_map(|user| user.join().unwrap()).collect();
    assert_eq!(used.len(), 2 * EACH);
    used.sort_unstable();
    for beyond in 1..2 * EACH - 3 {
        for window in used.windows(3 + beyond) {
            // Timers may be a few milliseconds late, which narrows the gaps between uses.
            let length = window[2 + beyond] - window[0] + 5 * MILLI;
            let least = 100 * MILLI * u32::try_from(beyond).unwrap();
            assert!(length >= least, "3 permits and {beyond} more in {length:?}");
        }
    }
}

#[test]
fn a_close_from_elsewhere_wakes_who_waits_in_another_runtime() {
    let limiter = Arc::new(Limiter::new(Rate::ZERO, 1));
    limiter.try_acquire().unwrap();
    let (waiting, is_waiting) = mpsc::channel();
    let waiter = thread::spawn({
        let limiter = Arc::clone(&limiter);
        move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            runtime.enable_time().build().unwrap().block_on(async {
                let mut acquire = pin!(limiter.acquire());
                assert!(poll_once(acquire.as_mut()).is_pending());
                waiting.send(()).unwrap();
                acquire.await
            })
        }
    });
    is_waiting.recv().unwrap();
    limiter.close();
    assert_eq!(waiter.join().unwrap(), Err(AcquireError::Closed));
}

#[tokio::test(start_paused = true)]
async fn a_close_wakes_all_who_wait() {
    let limiter = Arc::new(Limiter::new(Rate::per_hour(1), 2));
    limiter.acquire_many(2).await.unwrap();
    let waiters: Vec<_> =
        (1..=2).map(|n| tokio::spawn(Arc::clone(&limiter).acquire_many_owned(n))).collect();
    let reservation = limiter.reserve().unwrap();
    let closed = async {
        // Let the others be polled before it closes.
        tokio::task::yield_now().await;
        assert!(limiter.tokens() < -3.9);
        limiter.close();
    };
    let start = Instant::now();
    let (ready, ()) = tokio::join!(reservation.ready(), closed);
    assert_eq!(ready, Err(AcquireError::Closed));
    for waiter in waiters {
        assert_eq!(waiter.await.unwrap(), Err(AcquireError::Closed));
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_loop_of_acquires_that_need_not_wait_lets_others_run() {
    // They are granted, or there is no limit, or they are refused.
    let limiters = [(Rate::ZERO, 1_000_000), (Rate::UNLIMITED, 1), (Rate::ZERO, 0)];
    let local = tokio::task::LocalSet::new();
    local
        .run_until(async {
            for (rate, burst) in limiters {
                let limiter = Arc::new(Limiter::new(rate, burst));
                let turns = Rc::new(Cell::new(0));
                let other = tokio::task::spawn_local({
                    let turns = Rc::clone(&turns);
                    async move {
                        loop {
                            turns.set(turns.get() + 1);
                            tokio::task::yield_now().await;
                        }
                    }
                });
                for _ in 0..10_000 {
                    let _ = limiter.acquire().await;
                }
                other.abort();
                assert!(turns.get() >= 10, "{} turns beside {rate}, {burst}", turns.get());
            }
        })
        .await;
}

// ---- Types -------------------------------------------------------------------------------------

fn shared<T: Send + Sync + 'static>() {}
fn movable<T: Unpin>() {}
fn error<T: Error + Clone + PartialEq + Debug + Send + Sync + Unpin + 'static>() {}
fn sendable<T: Send>(_: &T) {}

#[test]
fn all_can_be_shared_and_sent_and_owned_futures_outlive_everything() {
    shared::<Limiter>();
    shared::<Builder>();
    shared::<Rate>();
    shared::<Reservation<'static>>();
    shared::<Acquire<'static>>();
    movable::<Limiter>();
    movable::<Builder>();
    movable::<Rate>();
    movable::<Reservation<'static>>();
    error::<AcquireError>();
    error::<TryAcquireError>();
    error::<ReserveError>();
    error::<BuildError>();
    error::<RateError>();
    error::<RangeError>();
    shared::<Limited>();

    let limiter = Arc::new(Limiter::new(Rate::ZERO, 1));
    let reservation = limiter.reserve().unwrap();
    sendable(&reservation.ready());
    sendable(&limiter.acquire().within(MILLI));
    let owned: Acquire<'static> = Arc::clone(&limiter).acquire_owned();
    drop(reservation);
    drop(limiter);
    assert!(at_once(owned.within(MILLI)).is_err());
}
