//! What a limiter cannot do without, alone: a reading of the clock and a change of one shared word.

use super::on_its_own_line;
use crate::measure::{Kind, Subject};
use std::{
    hint::black_box,
    sync::atomic::{AtomicU64, Ordering},
    time::Instant,
};

/// `Instant::now()` alone. What a refusal needs.
pub const NOW: &str = "Instant::now()";
/// One compare-and-swap alone. On two threads, both on the same word.
pub const CAS: &str = "one CAS";
/// Both, and between them the distance from an earlier instant, for which the standard library
/// has a call of its own. Whoever counts in nanoseconds by this clock needs it.
const DISTANCE_AND_CAS: &str = "Instant::now() - start + one CAS";
/// Both, one after the other. What a grant needs.
pub const NOW_AND_CAS: &str = "Instant::now() + one CAS";

/// The clocks, the compare-and-swap, and both.
#[must_use]
pub fn subjects() -> Vec<Subject> {
    let word = on_its_own_line(AtomicU64::new(0));
    let both = on_its_own_line(AtomicU64::new(0));
    let distance = on_its_own_line(AtomicU64::new(0));
    let start = Instant::now();
    let quanta = on_its_own_line(quanta::Clock::new());
    vec![
        Subject::sync(Kind::Floor, NOW, Instant::now, |_| true),
        Subject::sync(Kind::Floor, CAS, || step(word), |_| true),
        Subject::sync(
            Kind::Floor,
            NOW_AND_CAS,
            || {
                black_box(&Instant::now());
                step(both)
            },
            |_| true,
        ),
        Subject::sync(
            Kind::Floor,
            DISTANCE_AND_CAS,
            move || {
                black_box(Instant::now().saturating_duration_since(start));
                step(distance)
            },
            |_| true,
        ),
        Subject::sync(Kind::Floor, "quanta's Clock::now()", || quanta.now(), |_| true),
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
