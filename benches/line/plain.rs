//! The floors, and what is measured without holes about.

use crate::{Group, Subject};
use crossbeam_utils::CachePadded;
use paceline::{Limiter, Rate, Reservation};
use std::{
    hint::black_box,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};
use tokio::{task::unconstrained, time::Instant as TokioInstant};

/// The clock alone. What a refusal needs.
pub(crate) const NOW: &str = "Instant::now()";
/// The clock and a CAS. What a grant needs.
pub(crate) const NOW_AND_CAS: &str = "Instant::now() + one CAS";
/// The same by the clock that the library reads.
pub(crate) const TOKIO_NOW_AND_CAS: &str = "tokio's + one CAS";

/// A try as everybody makes it.
pub(crate) const TRY: &str = "try_acquire()";
/// A try granted by a bucket that is full.
pub(crate) const TRY_FULL: &str = "try_acquire(), full bucket";
/// A ready acquire.
pub(crate) const ACQUIRE: &str = "acquire().await";
/// A ready acquire that is not asked to let others run.
pub(crate) const ACQUIRE_UNCONSTRAINED: &str = "acquire().await, unconstrained";

/// More than a run takes.
const STOCK: u32 = 1_000_000_000;

/// So many tokens may seem to be out while two threads book and cancel: each holds one, and the
/// count of what is free is no snapshot. If nothing were given back it would be thousands.
const SLOP: f64 = 1_000.0;

pub(crate) fn subjects() -> Vec<Subject> {
    [floors(), tries(), ready(), turns()].into_iter().flatten().collect()
}

fn floors() -> Vec<Subject> {
    let word = || leak(CachePadded::new(AtomicU64::new(0)));
    let (alone, with_now, with_tokio) = (word(), word(), word());
    let floor = Group::Floor;
    vec![
        Subject::sync(floor, NOW, Instant::now, |_| true),
        // The tests of this package switch on tokio's `test-util`. With it every reading of the
        // clock asks first whether time was ever paused, here and in every operation below.
        Subject::sync(floor, "tokio's Instant::now(), with test-util", TokioInstant::now, |_| true),
        Subject::sync(floor, "one CAS", || step(alone), |_| true),
        Subject::sync(
            floor,
            NOW_AND_CAS,
            || {
                black_box(&Instant::now());
                step(with_now)
            },
            |_| true,
        ),
        Subject::sync(
            floor,
            TOKIO_NOW_AND_CAS,
            || {
                black_box(&TokioInstant::now());
                step(with_tokio)
            },
            |_| true,
        ),
    ]
}

fn tries() -> Vec<Subject> {
    let (stocked, timeless) = (stocked(), stocked());
    // More is minted than two threads can take. The burst is a tenth of a second's worth: a thread
    // that is preempted before it decides comes back with an old time, and is granted all the same.
    let full = leak(Limiter::new(Rate::per_second(1_000_000_000), 100_000_000));
    let (denied, timeless_denied) = (spent(), spent());
    let now = TokioInstant::now();
    vec![
        Subject::sync(Group::Granted, TRY, || stocked.try_acquire(), Result::is_ok),
        Subject::sync(Group::Granted, TRY_FULL, || full.try_acquire(), Result::is_ok),
        Subject::sync(
            Group::Granted,
            "try_acquire_many_at(), no clock read",
            move || timeless.try_acquire_many_at(1, now),
            Result::is_ok,
        ),
        Subject::sync(Group::Denied, TRY, || denied.try_acquire(), Result::is_err),
        Subject::sync(
            Group::Denied,
            "try_acquire_many_at(), no clock read",
            move || timeless_denied.try_acquire_many_at(1, now),
            Result::is_err,
        ),
    ]
}

fn ready() -> Vec<Subject> {
    let limiter = stocked();
    vec![
        Subject::future(
            Group::Ready,
            ACQUIRE,
            || limiter.acquire(),
            |waited| matches!(waited, Ok(Duration::ZERO)),
        ),
        // Outside of tokio's cooperative budget.
        Subject::future(
            Group::Ready,
            ACQUIRE_UNCONSTRAINED,
            || unconstrained(limiter.acquire()),
            |waited| matches!(waited, Ok(Duration::ZERO)),
        ),
    ]
}

fn turns() -> Vec<Subject> {
    let (kept, given_back) = (stocked(), stocked());
    let (spent, timeless_spent) = (spent(), spent());
    let now = TokioInstant::now();
    let book_and_cancel = move |limiter: &'static Limiter| {
        limiter.reserve_many_at(1, now).map(|turn| turn.cancel_at(now))
    };
    vec![
        Subject::sync(
            Group::Reserve,
            "reserve(), at once and kept",
            || kept.reserve(),
            |turn| turn.as_ref().is_ok_and(|turn| turn.delay().is_zero()),
        ),
        // Not by the running clock: a turn that has come is not given back.
        Subject::sync(
            Group::Reserve,
            "reserve_many_at() + cancel_at(), at once",
            move || book_and_cancel(given_back),
            move |booking| booking.is_ok() && given_back.tokens_at(now) > f64::from(STOCK) - SLOP,
        ),
        Subject::sync(
            Group::Reserve,
            "reserve_many_at() + cancel_at(), in the future",
            move || book_and_cancel(timeless_spent),
            move |booking| booking.is_ok() && timeless_spent.tokens_at(now) > -SLOP,
        ),
        Subject::sync(
            Group::Reserve,
            "reserve() + cancel(), in the future",
            || spent.reserve().map(Reservation::cancel),
            |booking| booking.is_ok() && spent.tokens() > -SLOP,
        ),
    ]
}

/// The loop that every lock-free limiter has, without a decision in it.
///
/// The orderings are those that such a limiter would ask for. On x86 they cost nothing; elsewhere
/// a relaxed floor would be one that nobody can stand on.
fn step(word: &AtomicU64) -> u64 {
    let mut seen = word.load(Ordering::Acquire);
    loop {
        match word.compare_exchange_weak(
            seen,
            seen.wrapping_add(1),
            Ordering::AcqRel,
            Ordering::Acquire,
        ) {
            Ok(before) => return before,
            Err(now) => seen = now,
        }
    }
}

/// A limiter that grants whatever a run asks, and is never full meanwhile.
fn stocked() -> &'static Limiter {
    leak(Limiter::new(Rate::per_second(1_000_000), STOCK))
}

/// A limiter whose only permit is gone until tomorrow.
fn spent() -> &'static Limiter {
    let limiter = Limiter::new(Rate::per_day(1), 1);
    assert!(limiter.try_acquire().is_ok(), "a new limiter is full");
    leak(limiter)
}

/// For the whole run. What is padded in it stays on cache lines of its own.
pub(crate) fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}
