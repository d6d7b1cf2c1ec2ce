//! Races for what was given back.

use super::{book, booked, race, take};
use crate::line::{Booking, Line, Loss};

/// As [`booked`], with the first booking of all given back.
fn first_given_back(burst: u32, count: usize) -> (Line, Vec<Booking>) {
    let (line, bookings) = booked(burst, count);
    line.give_back(0, &bookings[0]);
    (line, bookings)
}

#[test]
fn cancel_races_with_take_of_the_same_hole() {
    race(
        || booked(2, 2),
        // Not at the tail, so it becomes a hole.
        |line, bookings| line.give_back(0, &bookings[0]),
        |line, _| take(line, 0, 1),
        |line, bookings, (), taken| {
            line.assert_accounted(2, taken.iter().chain([&bookings[1]]), Loss::None);
            assert_eq!(taken.is_none(), take(line, 0, 1).is_some());
        },
    );
}

#[test]
fn a_hole_is_taken_by_two() {
    race(
        || first_given_back(2, 2),
        |line, _| take(line, 0, 1),
        |line, _| take(line, 0, 1),
        |line, bookings, left, right| {
            assert!(left.is_some() != right.is_some());
            let held = left.iter().chain(&right).chain([&bookings[1]]);
            line.assert_accounted(2, held, Loss::None);
        },
    );
}

#[test]
fn two_take_a_part_each_of_the_same_hole() {
    race(
        || {
            let (line, _) = booked(3, 0);
            let bookings = vec![book(&line, 0, 2), book(&line, 0, 1)];
            line.give_back(0, &bookings[0]);
            (line, bookings)
        },
        |line, _| book(line, 0, 1),
        |line, _| book(line, 0, 1),
        |line, bookings, left, right| {
            line.assert_accounted(3, [&left, &right, &bookings[1]], Loss::None);
        },
    );
}

#[test]
fn two_gather_the_same_holes() {
    race(
        || {
            let (line, bookings) = first_given_back(4, 4);
            line.give_back(0, &bookings[2]);
            (line, bookings)
        },
        |line, _| book(line, 0, 2),
        |line, _| book(line, 0, 2),
        |line, bookings, left, right| {
            // At best one gets both holes. One that meets the other's hand gets one and the tail.
            assert!(!left.is_immediate() || !right.is_immediate());
            line.assert_accounted(4, [&left, &right, &bookings[1], &bookings[3]], Loss::None);
        },
    );
}

#[test]
fn a_gathering_of_holes_and_tail_races_with_a_booking() {
    race(
        || first_given_back(2, 2),
        // The hole, and the token that was minted since.
        |line, _| take(line, 1, 2),
        |line, _| book(line, 1, 1),
        |line, bookings, taken, later| {
            let held = taken.iter().chain([&later, &bookings[1]]);
            line.assert_accounted(2, held, Loss::None);
        },
    );
}

#[test]
fn a_hole_overflows_while_it_is_taken() {
    race(
        || first_given_back(2, 3),
        |line, _| take(line, 0, 1),
        // At 9 the hole has overflowed, and who gives back at 9 sweeps it away.
        |line, bookings| line.give_back(9, &bookings[2]),
        |line, bookings, taken, ()| {
            let held = taken.iter().chain([&bookings[1]]);
            line.assert_accounted(2, held, Loss::Possible);
        },
    );
}

#[test]
fn a_hole_is_trimmed_while_it_is_taken() {
    race(
        || {
            let (line, _) = booked(3, 0);
            let bookings = vec![book(&line, 0, 2), book(&line, 0, 1), book(&line, 0, 3)];
            line.give_back(0, &bookings[0]);
            (line, bookings)
        },
        // At 2 the first token of the hole has overflowed, the second has not.
        |line, _| take(line, 2, 1),
        |line, _| take(line, 0, 1),
        |line, bookings, late, early| {
            assert!(late.is_some() || early.is_some());
            let held = late.iter().chain(&early).chain(&bookings[1..]);
            line.assert_accounted(3, held, Loss::Possible);
        },
    );
}

#[test]
fn two_sweep_what_has_overflowed() {
    race(
        || first_given_back(2, 4),
        |line, bookings| line.give_back(9, &bookings[1]),
        |line, bookings| line.give_back(2, &bookings[2]),
        |line, bookings, (), ()| line.assert_accounted(2, [&bookings[3]], Loss::Possible),
    );
}

#[test]
fn the_hole_counter_never_hides_a_hole() {
    race(
        || {
            let (line, bookings) = booked(3, 3);
            line.give_back(0, &bookings[1]);
            (line, bookings)
        },
        |line, bookings| line.give_back(0, &bookings[0]),
        |line, _| [take(line, 0, 1), take(line, 0, 1)],
        |line, bookings, (), [first, second]| {
            // The second token was free all the while. Who gets the first one, earlier, may not
            // be told that there is no more.
            let first = first.expect("one was free");
            assert!(second.is_some() || first.start() == bookings[1].start());
            let held = second.iter().chain([&first, &bookings[2]]);
            line.assert_accounted(3, held, Loss::None);
        },
    );
}

#[test]
fn who_gave_back_finds_a_hole() {
    race(
        || first_given_back(3, 3),
        |line, bookings| {
            line.give_back(0, &bookings[1]);
            // Whether the other took one or not, there is one now.
            take(line, 0, 1).expect("a hole was given back before")
        },
        |line, _| take(line, 0, 1),
        |line, bookings, one, other| {
            let held = other.iter().chain([&one, &bookings[2]]);
            line.assert_accounted(3, held, Loss::None);
        },
    );
}
