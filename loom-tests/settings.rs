//! Reconfiguration races with the operations.
//!
//! Two threads each: more, or a higher bound on preemptions, do not finish.

use super::{EACH_NANOSECOND, book, booked, race, take};
use crate::line::{Booking, Line, Loss};
use crate::rate::Rate;

const HALF: Rate = Rate::per_second(500_000_000);

fn halve_rate(line: &Line, _: &[Booking]) {
    line.set_rate(2, HALF).unwrap();
}

fn lower_burst(line: &Line, _: &[Booking]) {
    line.set_burst(0, 1).unwrap();
}

fn raise_burst(line: &Line, _: &[Booking]) {
    line.set_burst(0, 3).unwrap();
}

#[test]
fn set_rate_races_with_try() {
    race(
        || booked(1, 1),
        halve_rate,
        |line, _| take(line, 3, 1),
        |line, bookings, (), taken| {
            assert_eq!(line.rate(), HALF);
            // At 3 the old rate has minted 3 and the new one 2 1/2, so one is there by either,
            // but the next one is a matter of the new rate alone.
            let taken = taken.expect("one is there");
            assert!(take(line, 3, 1).is_none());
            line.assert_accounted(1, [&bookings[0], &taken], Loss::Possible);
        },
    );
}

#[test]
fn a_rate_of_nothing_races_with_try() {
    race(
        || booked(1, 1),
        |line, _| line.set_rate(0, Rate::ZERO).unwrap(),
        |line, _| [take(line, 1, 1), take(line, 2, 1)],
        |line, bookings, (), [first, second]| {
            assert!(second.is_none() || first.is_some(), "minted after the change was seen");
            assert!(take(line, 9, 1).is_none());
            let held = first.iter().chain(&second).chain(bookings);
            line.assert_accounted(1, held, Loss::None);
        },
    );
}

#[test]
fn who_sees_a_booking_under_the_new_rate_sees_the_new_rate() {
    race(
        || booked(1, 0),
        |line, _| {
            line.set_rate(0, Rate::ZERO).unwrap();
            take(line, 0, 1)
        },
        |line, _| take(line, 100, 1),
        |line, _, left, right| {
            // Before the change the token at 100 is there, and the one at 0 is gone once it is
            // taken. After it, it is never minted.
            assert!(left.is_some() != right.is_some());
            line.assert_accounted(1, left.iter().chain(&right), Loss::Possible);
        },
    );
}

#[test]
fn set_rate_races_with_reserve() {
    race(
        || booked(1, 1),
        |line, _| line.set_rate(0, HALF).unwrap(),
        |line, _| book(line, 0, 1),
        |line, bookings, (), second| {
            line.assert_accounted(1, [&bookings[0], &second], Loss::None);
            assert_eq!(line.due(&second), Some(2), "by the new rate, whoever came first");
        },
    );
}

#[test]
fn set_rate_races_with_cancel() {
    race(
        || booked(1, 2),
        |line, _| line.set_rate(0, HALF).unwrap(),
        |line, bookings| line.give_back(0, &bookings[1]),
        |line, bookings, (), ()| {
            line.assert_accounted(1, [&bookings[0]], Loss::None);
            let again = book(line, 0, 1);
            assert_eq!(line.due(&again), Some(2), "given back to the grain");
        },
    );
}

#[test]
fn set_burst_races_with_try() {
    race(
        || booked(2, 0),
        lower_burst,
        |line, _| take(line, 0, 2),
        |line, _, (), both| {
            assert_eq!(line.burst(), 1);
            let one = take(line, 0, 1);
            assert_eq!(both.is_none(), one.is_some(), "two by the old burst, or one by the new");
            line.assert_accounted(2, both.iter().chain(&one), Loss::Possible);
        },
    );
}

#[test]
fn a_larger_burst_revives_nothing_while_it_races_with_try() {
    race(
        || booked(2, 0),
        raise_burst,
        |line, _| take(line, 0, 2),
        |line, _, (), both| {
            assert!(both.is_some());
            assert!(take(line, 0, 1).is_none(), "the third had overflowed");
            line.assert_accounted(2, &both, Loss::None);
        },
    );
}

#[test]
fn set_burst_races_with_reserve() {
    race(
        || booked(2, 2),
        lower_burst,
        |line, _| book(line, 0, 1),
        |line, bookings, (), third| {
            line.assert_accounted(2, bookings.iter().chain([&third]), Loss::None);
            assert_eq!(line.due(&third), Some(1));
        },
    );
}

#[test]
fn set_burst_races_with_cancel() {
    race(
        || booked(2, 3),
        lower_burst,
        |line, bookings| line.give_back(0, &bookings[1]),
        |line, bookings, (), ()| {
            line.assert_accounted(2, [&bookings[0], &bookings[2]], Loss::None);
            assert!(take(line, 0, 1).is_some(), "it is the last token that was minted");
        },
    );
}

#[test]
fn pause_races_with_try() {
    race(
        || booked(1, 1),
        |line, _| line.pause_until(0, 9),
        |line, _| take(line, 1, 1),
        |line, bookings, (), taken| {
            line.assert_accounted(1, taken.iter().chain(bookings), Loss::None);
            // By the old clock it took the first token, by the new one nothing is minted.
            assert!(take(line, 9, 1).is_none());
            assert_eq!(take(line, 10, 1).is_some(), taken.is_none());
        },
    );
}

#[test]
fn resume_races_with_reserve() {
    race(
        || {
            let (line, bookings) = booked(1, 1);
            line.pause_until(0, 9);
            (line, bookings)
        },
        |line, _| line.resume(1),
        |line, _| book(line, 0, 1),
        |line, bookings, (), second| {
            line.assert_accounted(1, [&bookings[0], &second], Loss::None);
            assert_eq!(line.due(&second), Some(2), "a nanosecond after it went on");
        },
    );
}

#[test]
fn close_races_with_try() {
    race(
        || booked(2, 0),
        |line, _| line.close(),
        |line, _| take(line, 0, 1),
        |line, _, (), taken| {
            assert!(line.is_closed());
            assert!(take(line, 0, 1).is_none());
            line.assert_accounted(2, &taken, Loss::None);
        },
    );
}

#[test]
fn leaving_unlimited_races_with_try() {
    race(
        || {
            let (line, bookings) = booked(1, 1);
            line.set_rate(0, Rate::UNLIMITED).unwrap();
            (line, bookings)
        },
        |line, _| line.set_rate(0, EACH_NANOSECOND).unwrap(),
        |line, _| take(line, 0, 1).expect("unlimited or full"),
        |line, bookings, (), taken| {
            // Without a limit it took nothing of the line; with one, it emptied the bucket.
            let more = take(line, 0, 1);
            assert_eq!(more.is_some(), line.tokens_in(&taken) == 0);
            let held = more.iter().chain([&bookings[0], &taken]);
            line.assert_accounted(1, held, Loss::Possible);
        },
    );
}
