//! The lap, which says what the state word means.

use super::{EACH_NANOSECOND, race, take};
use crate::line::{Booking, Bounds, Line, Overflow};

/// A line of two tokens, both taken. It is so coarse that a token is an eighth of a lap; one is
/// minted each nanosecond, so a lap is eight of them.
fn coarse() -> (Line, Vec<Booking>) {
    let bounds = Bounds { rate: EACH_NANOSECOND, burst: 2 };
    let line = Line::coarse(1 << 59, EACH_NANOSECOND, 2, bounds);
    let taken = take(&line, 0, 2).expect("it is full");
    (line, vec![taken])
}

#[test]
fn a_lap_is_turned_by_two() {
    race(
        coarse,
        |line, _| take(line, 13, 2),
        |line, _| take(line, 13, 2),
        |line, _, left, right| {
            assert!(left.is_some() != right.is_some());
            line.assert_accounted(2, left.iter().chain(&right), Overflow::Possible);
            assert!(take(line, 14, 2).is_none());
            assert!(take(line, 15, 2).is_some());
        },
    );
}

#[test]
fn circles_are_skipped_by_two() {
    race(
        coarse,
        |line, _| take(line, 1_000, 2),
        |line, _| take(line, 1_001, 2),
        |line, _, left, right| {
            assert!(left.is_some() != right.is_some(), "{left:?} {right:?}");
            line.assert_accounted(2, left.iter().chain(&right), Overflow::Possible);
        },
    );
}

#[test]
fn a_lap_is_turned_while_an_older_now_books() {
    race(
        coarse,
        |line, _| take(line, 1_000, 2).expect("full"),
        |line, _| take(line, 1, 1),
        |line, bookings, late, early| {
            let held = early.iter().chain([&bookings[0], &late]);
            line.assert_accounted(2, held, Overflow::Possible);
            assert!(take(line, 1_000, 1).is_none());
            assert!(take(line, 1_001, 2).is_none());
        },
    );
}

#[test]
fn a_lap_is_turned_while_one_cancels() {
    race(
        coarse,
        |line, bookings| line.give_back(0, &bookings[0]),
        |line, _| take(line, 13, 2).expect("full"),
        |line, _, (), taken| {
            assert!(take(line, 13, 1).is_none());
            line.assert_accounted(2, [&taken], Overflow::Possible);
        },
    );
}
