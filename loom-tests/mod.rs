//! Every race that we can name, each a model named after it, checked with loom.
//!
//! ```text
//! RUSTFLAGS="--cfg paceline_loom" cargo test --release --features keyed --lib loom_tests
//! ```
//!
//! Attached to the library, so that they see its insides (`keyed.rs` to the module that it is of). Times are explicit. The set of holes is
//! a stand-in here, whose operations are single steps; its real self is stressed in
//! `tests/threads.rs`.

mod adaptive;
mod all;
mod breaker;
mod config;
mod holes;
mod laps;
mod periods;
mod settings;
mod smooth;
mod stripes;
mod tail;
mod waiting;
mod window;

use crate::line::{Ask, Booking, Bounds, Line, Patience, Settings, Verdict};
use crate::rate::Rate;
use loom::sync::Arc;
use loom::thread;

/// A token each nanosecond, so that times in the models are small numbers.
pub(crate) const EACH_NANOSECOND: Rate = Rate::per_second(1_000_000_000);

/// Checks every interleaving of up to three preemptions.
///
/// CHESS (Musuvathi and Qadeer, PLDI 2007) found that two suffice for nearly all real bugs.
fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(3);
    // The longest models come near to the thousand that loom allows unless told otherwise.
    builder.max_branches = builder.max_branches.max(4_000);
    builder.check(model);
}

/// Checks `left` beside `right` on a line with some bookings, and what `judge` says of both.
fn race<L: 'static, R: 'static>(
    prepare: fn() -> (Line, Vec<Booking>),
    left: fn(&Line, &[Booking]) -> L,
    right: fn(&Line, &[Booking]) -> R,
    judge: fn(&Line, &[Booking], L, R),
) {
    race_on(
        prepare,
        move |(line, bookings)| left(line, bookings),
        move |(line, bookings)| right(line, bookings),
        move |(line, bookings), left, right| judge(line, bookings, left, right),
    );
}

/// Checks `left` beside `right` on something that they share, and what `judge` says of both.
///
/// Each of the two is once the spawned thread and once the main one. Loom goes back to another
/// thread's access of a word only if it was the last one, so a thread that loads a word before it
/// stores to it hides what the main thread has loaded before; then only the other role, where the
/// loads come later than the stores, finds the race.
pub(crate) fn race_on<S: 'static, L: 'static, R: 'static>(
    prepare: fn() -> S,
    left: impl Fn(&S) -> L + Copy + Send + Sync + 'static,
    right: impl Fn(&S) -> R + Copy + Send + Sync + 'static,
    judge: impl Fn(&S, L, R) + Copy + Send + Sync + 'static,
) {
    check(move || {
        let shared = Arc::new(prepare());
        let spawned = spawn(&shared, left);
        let outcome = right(&shared);
        judge(&shared, spawned.join().unwrap(), outcome);
    });
    check(move || {
        let shared = Arc::new(prepare());
        let spawned = spawn(&shared, right);
        let outcome = left(&shared);
        judge(&shared, outcome, spawned.join().unwrap());
    });
}

fn spawn<S: 'static, T: 'static>(
    shared: &Arc<S>,
    act: impl Fn(&S) -> T + 'static,
) -> thread::JoinHandle<T> {
    let shared = Arc::clone(shared);
    thread::spawn(move || act(&shared))
}

/// A line of `burst` tokens, full at first, of which `count` bookings of one have been made.
fn booked(burst: u32, count: usize) -> (Line, Vec<Booking>) {
    let bounds = Bounds::usual(EACH_NANOSECOND, burst);
    let line = Line::new(Settings::full(EACH_NANOSECOND, burst, bounds, 0));
    let bookings = (0..count).map(|_| book(&line, 0, 1)).collect();
    (line, bookings)
}

fn book(line: &Line, now: u64, tokens: u32) -> Booking {
    line.book(Ask::new(now, tokens, Patience::Forever)).expect("there is room")
}

/// Tries as `Limiter::try_acquire` does: by the fast path, and in full if that is not clear.
fn take(line: &Line, now: u64, tokens: u32) -> Option<Booking> {
    match line.take_plain(now, tokens) {
        Verdict::Take(end) => Some(line.booking_before(end, tokens)),
        Verdict::Wait(_) => None,
        Verdict::Unclear => line.book(Ask::new(now, tokens, Patience::Until(now))).ok(),
    }
}
