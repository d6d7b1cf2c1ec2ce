//! Races for the end of the line.

use super::{book, booked, check, race, spawn, take};
use crate::line::Loss;
use loom::sync::Arc;

#[test]
fn concurrent_tries_never_exceed_the_burst() {
    check(|| {
        let shared = Arc::new(booked(2, 0));
        let others = [(); 2].map(|()| spawn(&shared, |(line, _)| take(line, 0, 1)));
        let mut taken = vec![take(&shared.0, 0, 1)];
        taken.extend(others.map(|other| other.join().unwrap()));
        assert_eq!(taken.iter().flatten().count(), 2);
        shared.0.assert_accounted(2, taken.iter().flatten(), Loss::None);
    });
}

#[test]
fn concurrent_tries_of_an_idle_bucket_take_it_once() {
    race(
        || booked(2, 0),
        |line, _| take(line, 1_000, 2),
        |line, _| take(line, 1_001, 2),
        |line, _, left, right| {
            // A token was minted between the two: not enough for both, whoever came first.
            assert!(left.is_some() != right.is_some());
            line.assert_accounted(2, left.iter().chain(&right), Loss::Possible);
        },
    );
}

#[test]
fn cancel_at_the_tail_races_with_booking() {
    race(
        || booked(1, 2),
        |line, bookings| line.give_back(0, &bookings[1]),
        |line, _| book(line, 0, 1),
        |line, bookings, (), second| {
            line.assert_accounted(1, [&bookings[0], &second], Loss::None);
            // Whoever came first, what was given back is had by the next.
            let third = book(line, 0, 1);
            line.assert_accounted(1, [&bookings[0], &second, &third], Loss::None);
            let turns = [&second, &third].map(|booking| line.due(booking).unwrap());
            assert!(turns == [1, 2] || turns == [2, 1], "{turns:?}");
        },
    );
}

#[test]
fn two_neighbours_cancel_at_once() {
    race(
        || booked(1, 3),
        |line, bookings| line.give_back(0, &bookings[1]),
        |line, bookings| line.give_back(0, &bookings[2]),
        |line, bookings, (), ()| {
            line.assert_accounted(1, [&bookings[0]], Loss::None);
            let again = [book(line, 0, 1), book(line, 0, 1)];
            assert_eq!(again.each_ref().map(|booking| line.due(booking).unwrap()), [1, 2]);
            line.assert_accounted(1, again.iter().chain([&bookings[0]]), Loss::None);
        },
    );
}

#[test]
fn cancel_swallows_a_hole_while_another_books() {
    race(
        || {
            let (line, bookings) = booked(1, 3);
            line.give_back(0, &bookings[1]);
            (line, bookings)
        },
        |line, bookings| line.give_back(0, &bookings[2]),
        |line, _| book(line, 0, 1),
        |line, bookings, (), again| {
            line.assert_accounted(1, [&bookings[0], &again], Loss::None);
        },
    );
}

#[test]
fn cancel_swallows_a_hole_while_another_cancels_the_one_before() {
    race(
        || {
            let (line, bookings) = booked(1, 4);
            line.give_back(0, &bookings[2]);
            (line, bookings)
        },
        |line, bookings| line.give_back(0, &bookings[3]),
        |line, bookings| line.give_back(0, &bookings[1]),
        |line, bookings, (), ()| line.assert_accounted(1, [&bookings[0]], Loss::None),
    );
}

#[test]
fn cancel_at_the_tail_races_with_a_try_that_needs_it() {
    race(
        || booked(2, 2),
        |line, bookings| line.give_back(0, &bookings[1]),
        |line, _| take(line, 0, 1),
        |line, bookings, (), taken| {
            line.assert_accounted(2, taken.iter().chain([&bookings[0]]), Loss::None);
            assert_eq!(taken.is_none(), take(line, 0, 1).is_some());
        },
    );
}
