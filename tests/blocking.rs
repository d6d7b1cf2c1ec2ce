//! Threads without a runtime: they wait for their turns as tasks do.

use paceline::smooth::{SmoothBursty, SmoothWarmingUp};
use paceline::window::{FixedWindow, SlidingLog, SlidingWindow};
use paceline::{AcquireError, Concurrency, DynRateLimit, LeakyBucket, Limiter, Rate, Striped};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::task::{block_in_place, spawn_blocking};

const DAY: Duration = Duration::from_secs(86_400);

/// Each kind of limiter, of a permit that is there and another in a day.
fn one_of_each() -> Vec<Box<dyn DynRateLimit>> {
    let rate = Rate::per_day(1);
    let striped: Striped =
        Limiter::builder(rate).burst(2).initial(1).build_striped(1, 1).expect("there is room");
    vec![
        Box::new(Limiter::new(rate, 1)),
        Box::new(striped),
        Box::new(LeakyBucket::new(rate, 9)),
        Box::new(FixedWindow::new(1, DAY)),
        Box::new(SlidingWindow::new(1, DAY, 4)),
        Box::new(SlidingLog::new(1, DAY)),
        Box::new(SmoothBursty::new(rate)),
        Box::new(SmoothWarmingUp::new(rate, Duration::ZERO)),
    ]
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

/// Lets others run until so many tokens are booked that are not minted.
fn until_booked(limiter: &Limiter, tokens: f64) {
    while limiter.tokens() > -tokens {
        thread::yield_now();
    }
}

#[test]
fn what_is_there_is_had_at_once_and_what_comes_too_late_is_refused_at_once() {
    for limiter in one_of_each() {
        assert_eq!(limiter.blocking_acquire(), Ok(Duration::ZERO));
        let refused = limiter.blocking_acquire_many_within(1, Duration::from_secs(1));
        assert!(matches!(refused, Err(AcquireError::WouldExceedDeadline { .. })), "{refused:?}");
        assert_eq!(limiter.blocking_acquire_many(0), Ok(Duration::ZERO));
    }
}

#[test]
fn those_who_wait_are_let_go_when_any_limiter_is_closed() {
    for limiter in one_of_each() {
        limiter.blocking_acquire().unwrap();
        thread::scope(|scope| {
            let (began, begins) = mpsc::channel();
            let limiter = &limiter;
            let waiter = scope.spawn(move || {
                began.send(()).unwrap();
                limiter.blocking_acquire()
            });
            begins.recv().unwrap();
            thread::yield_now();
            limiter.close();
            assert_eq!(waiter.join().unwrap(), Err(AcquireError::Closed));
        });
    }
}

#[test]
fn one_who_waits_hears_of_a_faster_rate() {
    let limiter = Limiter::new(Rate::ZERO, 1);
    limiter.blocking_acquire().unwrap();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| limiter.blocking_acquire());
        until_booked(&limiter, 1.0);
        limiter.set_rate(Rate::per_day(1)).unwrap();
        limiter.set_rate(Rate::per_second(1_000_000)).unwrap();
        assert!(waiter.join().unwrap().is_ok());
    });
}

#[test]
fn one_who_waits_is_refused_when_the_burst_becomes_too_small_and_gives_back() {
    let limiter = Limiter::new(Rate::per_day(1), 3);
    limiter.blocking_acquire_many(3).unwrap();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| limiter.blocking_acquire_many(2));
        until_booked(&limiter, 1.5);
        limiter.set_burst(1).unwrap();
        let refused = Err(AcquireError::ExceedsBurst { requested: 2, burst: 1 });
        assert_eq!(waiter.join().unwrap(), refused);
    });
    assert!(limiter.tokens() > -0.1, "{} tokens", limiter.tokens());
}

#[test]
fn many_threads_take_each_permit_once() {
    let limiter = Limiter::builder(Rate::per_second(10_000)).burst(5).build().unwrap();
    let began = tokio::time::Instant::now();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..50).for_each(|_| assert!(limiter.blocking_acquire().is_ok())));
        }
    });
    // 400, of which 5 were there, and 50 may be had early by the slack.
    let least = Duration::from_micros((400 - 5 - 50) * 100);
    assert!(began.elapsed() >= least, "in {:?}", began.elapsed());
}

#[test]
fn threads_and_tasks_have_their_turns_on_one_line() {
    let limiter = Limiter::new(Rate::ZERO, 1);
    limiter.blocking_acquire().unwrap();
    thread::scope(|scope| {
        let thread = scope.spawn(|| limiter.blocking_acquire());
        until_booked(&limiter, 1.0);
        let task = scope.spawn(|| runtime().block_on(async { limiter.acquire().await }));
        until_booked(&limiter, 2.0);
        let last = scope.spawn(|| limiter.acquire_many(1).within(DAY).blocking());
        // Its turn never comes, and it may not wait for ever.
        assert!(last.join().unwrap().is_err());
        limiter.set_rate(Rate::per_second(1000)).unwrap();
        assert!(thread.join().unwrap().is_ok());
        assert!(task.join().unwrap().is_ok());
    });
}

#[test]
fn a_reservation_is_waited_for_and_hears_of_changes() {
    let limiter = Limiter::new(Rate::ZERO, 1);
    assert_eq!(limiter.reserve().unwrap().blocking_ready(), Ok(()));
    let turn = limiter.reserve().unwrap();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| turn.blocking_ready());
        limiter.set_rate(Rate::per_second(1_000_000)).unwrap();
        assert_eq!(waiter.join().unwrap(), Ok(()));
    });
    let never = limiter.reserve().unwrap();
    limiter.close();
    assert_eq!(never.blocking_ready(), Err(AcquireError::Closed));
}

#[test]
fn it_panics_where_tasks_run_even_if_it_need_not_wait() {
    let limiter = Limiter::new(Rate::per_second(1), 5);
    let panics = |blocks: &dyn Fn()| {
        let payload = catch_unwind(AssertUnwindSafe(blocks)).expect_err("a panic");
        let message = payload.downcast_ref::<String>().expect("a message");
        assert!(message.contains("Cannot block the current thread from within a runtime"));
    };
    runtime().block_on(async {
        panics(&|| drop(limiter.blocking_acquire()));
        panics(&|| drop(limiter.blocking_acquire_many(2)));
        panics(&|| drop(limiter.acquire().blocking()));
    });
    for limiter in one_of_each() {
        runtime().block_on(async { panics(&|| drop(limiter.blocking_acquire())) });
    }
    assert!(limiter.try_acquire_many(5).is_ok(), "nothing was taken");
}

#[test]
fn it_is_allowed_where_tokio_lets_a_thread_block() {
    let limiter = std::sync::Arc::new(Limiter::new(Rate::per_second(1), 2));
    let shared = limiter.clone();
    runtime().block_on(async move {
        spawn_blocking(move || shared.blocking_acquire()).await.unwrap().unwrap();
        let here = tokio::spawn(async move { block_in_place(|| limiter.blocking_acquire()) });
        here.await.unwrap().unwrap();
    });
}

#[test]
fn the_panic_names_the_place_of_the_call() {
    let (place, places) = mpsc::channel();
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let file = info.location().map(|location| location.file().to_owned());
        let _ = place.send(file);
        before(info);
    }));
    let limiter = Limiter::new(Rate::per_second(1), 1);
    let outcome =
        catch_unwind(AssertUnwindSafe(|| runtime().block_on(async { limiter.blocking_acquire() })));
    let _ = std::panic::take_hook();
    assert!(outcome.is_err());
    let places: Vec<_> = places.iter().flatten().collect();
    assert!(places.iter().all(|file| file.ends_with("blocking.rs")), "{places:?}");
}

#[cfg(feature = "keyed")]
#[test]
fn a_key_has_its_turns_too() {
    let keyed: paceline::Keyed<String> = paceline::Keyed::new(Rate::per_day(1), 1);
    assert_eq!(keyed.blocking_acquire("alice"), Ok(Duration::ZERO));
    assert_eq!(keyed.blocking_acquire_many("bob", 1), Ok(Duration::ZERO));
    assert!(keyed.acquire("alice").within(Duration::from_secs(1)).blocking().is_err());
    thread::scope(|scope| {
        let waiter = scope.spawn(|| keyed.blocking_acquire("alice"));
        while keyed.tokens("alice") > -0.5 {
            thread::yield_now();
        }
        keyed.set_rate(Rate::per_second(1000)).unwrap();
        assert!(waiter.join().unwrap().is_ok());
    });
    runtime().block_on(async {
        let blocks = AssertUnwindSafe(|| keyed.blocking_acquire("carol"));
        assert!(catch_unwind(blocks).is_err());
    });
}

#[test]
fn a_thread_waits_for_a_place() {
    let places = Concurrency::new(2);
    let (one, both) = (places.blocking_acquire().unwrap(), places.clone());
    thread::scope(|scope| {
        let (began, begins) = mpsc::channel();
        let waiter = scope.spawn(move || {
            began.send(()).unwrap();
            both.blocking_acquire_many(2).map(drop)
        });
        begins.recv().unwrap();
        thread::yield_now();
        drop(one);
        assert_eq!(waiter.join().unwrap(), Ok(()));
    });
    let _both = places.blocking_acquire_many(2).unwrap();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| places.blocking_acquire().map(drop));
        places.close();
        assert_eq!(waiter.join().unwrap(), Err(AcquireError::Closed));
    });
    runtime().block_on(async {
        assert!(catch_unwind(AssertUnwindSafe(|| places.blocking_acquire())).is_err());
    });
}
