//! The lap, which says what the state word means.

use super::{EACH_NANOSECOND, race, take};
use crate::line::{Booking, Bounds, Line, Loss};

/// A line of two tokens, one of which is taken. It is so coarse that a token is an eighth of a
/// lap; one is minted each nanosecond, so a lap is eight of them.
///
/// At 801, a booking of two crosses the start of a lap, and the line has come around the circle of
/// words many times. So all that turning a lap may take is done: a leap, a lift and a step.
fn coarse() -> (Line, Vec<Booking>) {
    let bounds = Bounds { rate: EACH_NANOSECOND, burst: 2 };
    let line = Line::coarse(1 << 59, EACH_NANOSECOND, 2, bounds);
    let taken = take(&line, 0, 1).expect("it is full");
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
            line.assert_accounted(2, left.iter().chain(&right), Loss::Possible);
            assert!(take(line, 14, 2).is_none());
            assert!(take(line, 15, 2).is_some());
        },
    );
}

#[test]
fn circles_are_skipped_by_two() {
    race(
        coarse,
        |line, _| take(line, 801, 2),
        |line, _| take(line, 802, 2),
        |line, _, left, right| {
            assert!(left.is_some() != right.is_some(), "{left:?} {right:?}");
            line.assert_accounted(2, left.iter().chain(&right), Loss::Possible);
        },
    );
}

#[test]
fn nobody_is_refused_while_circles_are_skipped() {
    // There is one for each, whatever the words mean in between.
    race(
        coarse,
        |line, _| take(line, 801, 1).expect("there are two"),
        |line, _| take(line, 801, 1).expect("there are two"),
        |line, _, left, right| line.assert_accounted(2, [&left, &right], Loss::Possible),
    );
}

#[test]
fn nobody_is_refused_while_a_lap_is_turned() {
    race(
        coarse,
        |line, _| take(line, 13, 1).expect("there are two"),
        |line, _| take(line, 13, 1).expect("there are two"),
        |line, _, left, right| line.assert_accounted(2, [&left, &right], Loss::Possible),
    );
}

#[test]
fn a_lap_is_turned_while_an_older_now_books() {
    race(
        coarse,
        |line, _| take(line, 801, 2).expect("full"),
        |line, _| take(line, 1, 1),
        |line, bookings, late, early| {
            let held = early.iter().chain([&bookings[0], &late]);
            line.assert_accounted(2, held, Loss::Possible);
            assert!(take(line, 801, 1).is_none());
            assert!(take(line, 802, 2).is_none());
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
            line.assert_accounted(2, [&taken], Loss::Possible);
        },
    );
}
