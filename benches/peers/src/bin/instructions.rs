//! Runs one operation so many times, for who counts instructions: `benches/instructions.sh`.
//!
//! ```text
//! instructions                 lists the operations
//! instructions OP COUNT        runs one of them
//! ```
//!
//! Whatever an operation needs is made before its loop, so two runs with different counts differ
//! by the operations alone. Every one is made sure of, in the loop: a look at the outcome is what a
//! caller pays too, and it is an instruction or two.

use paceline::{Builder, Limiter, Rate, Reservation};
use paceline_peers::measure::runtime;
use std::{future::Future, hint::black_box, process::ExitCode, time::Duration};
use tokio::time::Instant;

/// The name of an operation, and what runs it so many times.
type Operation = (&'static str, fn(u32));

/// All of them. A new one is a line here, and its count is recorded by the script.
const OPERATIONS: [Operation; 8] = [
    ("try-granted", try_granted),
    ("try-denied", try_denied),
    ("try-granted-clock", try_granted_clock),
    ("try-striped", try_striped),
    ("acquire-ready", acquire_ready),
    ("reserve-cancel", reserve_cancel),
    ("book-first-hole", book_first_hole),
    ("denied-with-holes", denied_with_holes),
];

const USAGE: &str = "usage: instructions [OP COUNT]";

/// Holes about, where there are any.
const HOLES: usize = 100;

/// A turn each millisecond, where turns are booked.
const TURN: Duration = Duration::from_millis(1);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match start(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}\n{USAGE}");
            ExitCode::FAILURE
        }
    }
}

fn start(args: &[String]) -> Result<(), String> {
    match args {
        [] => OPERATIONS.iter().for_each(|(name, _)| println!("{name}")),
        [wanted, count] => {
            let (_, run) = OPERATIONS
                .iter()
                .find(|(name, _)| name == wanted)
                .ok_or_else(|| format!("unknown operation {wanted:?}"))?;
            run(count.parse().map_err(|_| format!("not a count: {count:?}"))?);
        }
        _ => return Err(format!("unknown arguments {args:?}")),
    }
    Ok(())
}

// ---- Time is given, and no clock is read --------------------------------------------------------

/// Time goes on by a token for each that is taken.
fn try_granted(count: u32) {
    let limiter = Limiter::new(Rate::per_second(10_000_000), 10_000_000);
    let mut now = Instant::now();
    repeat(count, Result::is_ok, || {
        now += Duration::from_nanos(100);
        limiter.try_acquire_many_at(1, now)
    });
}

fn try_denied(count: u32) {
    let (limiter, now) = spent();
    repeat(count, Result::is_err, || limiter.try_acquire_many_at(1, now));
}

/// A turn in the future: one that has come is not given back.
fn reserve_cancel(count: u32) {
    let (limiter, now) = spent();
    repeat(count, Result::is_ok, || {
        limiter.reserve_many_at(1, now).map(|turn| turn.cancel_at(now))
    });
    assert_eq!(next_turn(&limiter, now), TURN, "all were given back");
}

// ---- The clock is read --------------------------------------------------------------------------

fn try_granted_clock(count: u32) {
    let limiter = stocked();
    repeat(count, Result::is_ok, || limiter.try_acquire());
}

/// From a stripe, which is filled from the line once in so many as it holds. The clock is read then
/// alone.
fn try_striped(count: u32) {
    let limiter = stock().build_striped(2, 128).expect("the burst is large");
    repeat(count, Result::is_ok, || limiter.try_acquire());
}

fn acquire_ready(count: u32) {
    let limiter = stocked();
    repeat_ready(count, |waited| matches!(waited, Ok(Duration::ZERO)), || limiter.acquire());
}

// ---- Holes are about ----------------------------------------------------------------------------

/// Takes the first hole and leaves it again.
fn book_first_hole(count: u32) {
    let (limiter, now) = with_holes();
    repeat(count, Result::is_ok, || {
        limiter.reserve_many_at(1, now).map(|turn| turn.cancel_at(now))
    });
    assert_eq!(next_turn(&limiter, now), TURN, "it is there still");
}

/// Looks whether a hole would do: none has come due.
fn denied_with_holes(count: u32) {
    let (limiter, now) = with_holes();
    repeat(count, Result::is_err, || limiter.try_acquire_many_at(1, now));
    assert_eq!(next_turn(&limiter, now), TURN, "it is there still");
}

// ---- Limiters -----------------------------------------------------------------------------------

/// Grants whatever a run asks, and is never full meanwhile.
fn stocked() -> Limiter {
    stock().build().expect("within what a limiter can be")
}

fn stock() -> Builder {
    Limiter::builder(Rate::per_second(1_000_000)).burst(1_000_000_000)
}

/// Its only permit was taken at the time that comes with it.
fn spent() -> (Limiter, Instant) {
    let limiter = Limiter::new(Rate::every(TURN), 1);
    let now = Instant::now();
    assert!(limiter.try_acquire_many_at(1, now).is_ok(), "a new limiter is full");
    (limiter, now)
}

/// The same with every other turn given back, from the first on.
fn with_holes() -> (Limiter, Instant) {
    let (limiter, now) = spent();
    let book = |_| limiter.reserve_many_at(1, now).expect("the line has room");
    let turns: Vec<Reservation<'_>> = (0..2 * HOLES).map(book).collect();
    turns.into_iter().step_by(2).for_each(|turn| turn.cancel_at(now));
    assert_eq!(next_turn(&limiter, now), TURN, "the first was given back");
    (limiter, now)
}

/// How far away the turn is that would be booked next.
fn next_turn(limiter: &Limiter, now: Instant) -> Duration {
    let turn = limiter.reserve_many_at(1, now).expect("the line has room");
    let delay = turn.delay_from(now);
    turn.cancel_at(now);
    delay
}

// ---- Loops --------------------------------------------------------------------------------------

/// Runs an operation, and fails unless every outcome is what its name says.
fn repeat<T>(count: u32, as_named: impl Fn(&T) -> bool, mut op: impl FnMut() -> T) {
    let mut strays = 0;
    for _ in 0..count {
        // By reference: by value it would be copied first.
        strays += u32::from(!as_named(black_box(&op())));
    }
    assert_eq!(strays, 0, "of {count} operations so many did something else");
}

/// The same for futures that are ready, all in one `block_on`. Tokio's cooperative budget is left
/// on: to go round the scheduler once in 128 operations is part of them.
fn repeat_ready<T, F: Future<Output = T>>(
    count: u32,
    as_named: impl Fn(&T) -> bool,
    op: impl Fn() -> F,
) {
    let strays = runtime().block_on(async {
        let mut strays = 0;
        for _ in 0..count {
            strays += u32::from(!as_named(black_box(&op().await)));
        }
        strays
    });
    assert_eq!(strays, 0, "of {count} operations so many did something else");
}
