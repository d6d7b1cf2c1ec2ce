//! Races for the schedules of the smooth limiters.
//!
//! Their word of 128 bits has a stand-in here, whose operations are single steps.

use super::{EACH_NANOSECOND, race_on};
use crate::line::{Outlook, Patience};
use crate::rate::Rate;
use crate::smooth::{Booking, Burst, Schedule, Warmup};

/// A permit each two nanoseconds.
const HALF: Rate = Rate::per_second(500_000_000);

/// A schedule that stores nothing, on which so many permits have been booked one by one.
fn booked(count: usize) -> (Schedule<Burst>, Vec<Booking>) {
    let schedule = Schedule::new(Burst::new(0), EACH_NANOSECOND);
    let bookings = (0..count).map(|_| book(&schedule, 1)).collect();
    (schedule, bookings)
}

/// A cold one.
fn booked_cold(count: usize) -> (Schedule<Warmup>, Vec<Booking>) {
    let schedule = Schedule::new(Warmup::new(8, 3.0), EACH_NANOSECOND);
    let bookings = (0..count).map(|_| book(&schedule, 1)).collect();
    (schedule, bookings)
}

fn book<R: crate::smooth::Rule>(schedule: &Schedule<R>, permits: u32) -> Booking {
    schedule.book(0, permits, Patience::Forever).expect("there is room")
}

fn turn(booking: &Booking) -> u64 {
    booking.wait(0)
}

#[test]
fn booking_races_with_booking() {
    race_on(
        || booked(1),
        |(schedule, _)| book(schedule, 1),
        |(schedule, _)| book(schedule, 2),
        |(schedule, bookings), one, two| {
            assert!([(1, 2), (3, 1)].contains(&(turn(&one), turn(&two))));
            schedule.assert_accounted(bookings.iter().chain([&one, &two]));
        },
    );
}

#[test]
fn a_try_races_with_a_try() {
    race_on(
        || booked(0),
        |(schedule, _)| schedule.book(0, 1, Patience::Until(0)).ok(),
        |(schedule, _)| schedule.book(0, 1, Patience::Until(0)).ok(),
        |(schedule, _), left, right| {
            assert!(left.is_some() != right.is_some());
            schedule.assert_accounted(left.iter().chain(&right));
        },
    );
}

#[test]
fn cancel_at_the_tail_races_with_booking() {
    race_on(
        || booked(2),
        |(schedule, bookings)| schedule.give_back(0, &bookings[1]),
        |(schedule, _)| book(schedule, 1),
        |(schedule, bookings), (), booked| {
            assert!([1, 2].contains(&turn(&booked)));
            schedule.assert_accounted([&bookings[0], &booked]);
            let next = book(schedule, 1);
            assert_eq!(turn(&booked) + turn(&next), 3, "what was given back is found");
        },
    );
}

#[test]
fn cancel_at_the_tail_of_a_cold_schedule_races_with_booking() {
    race_on(
        || booked_cold(2),
        |(schedule, bookings)| schedule.give_back(0, &bookings[1]),
        |(schedule, _)| book(schedule, 1),
        |(schedule, bookings), (), booked| {
            schedule.assert_accounted([&bookings[0], &booked]);
            let next = book(schedule, 1);
            schedule.assert_accounted([&bookings[0], &booked, &next]);
            assert!(turn(&booked) == turn(&bookings[1]) || turn(&next) == turn(&bookings[1]));
        },
    );
}

#[test]
fn two_cancel_at_the_tail() {
    race_on(
        || booked(3),
        |(schedule, bookings)| schedule.give_back(0, &bookings[1]),
        |(schedule, bookings)| schedule.give_back(0, &bookings[2]),
        |(schedule, bookings), (), ()| {
            schedule.assert_accounted([&bookings[0]]);
            assert_eq!(turn(&book(schedule, 1)), 1);
        },
    );
}

#[test]
fn cancel_in_the_middle_races_with_a_taker() {
    race_on(
        || booked(3),
        |(schedule, bookings)| schedule.give_back(0, &bookings[1]),
        |(schedule, _)| book(schedule, 1),
        |(schedule, bookings), (), taken| {
            assert!([1, 3].contains(&turn(&taken)));
            schedule.assert_accounted([&bookings[0], &bookings[2], &taken]);
        },
    );
}

#[test]
fn a_hole_is_taken_by_two() {
    race_on(
        || {
            let (schedule, bookings) = booked(3);
            schedule.give_back(0, &bookings[1]);
            (schedule, bookings)
        },
        |(schedule, _)| book(schedule, 1),
        |(schedule, _)| book(schedule, 1),
        |(schedule, bookings), left, right| {
            assert_eq!(turn(&left).min(turn(&right)), 1);
            schedule.assert_accounted([&bookings[0], &bookings[2], &left, &right]);
        },
    );
}

#[test]
fn two_take_of_holes_that_touch() {
    race_on(
        || {
            let (schedule, bookings) = booked(4);
            schedule.give_back(0, &bookings[1]);
            schedule.give_back(0, &bookings[2]);
            (schedule, bookings)
        },
        |(schedule, _)| book(schedule, 2),
        |(schedule, _)| book(schedule, 1),
        |(schedule, bookings), two, one| {
            schedule.assert_accounted([&bookings[0], &bookings[3], &two, &one]);
        },
    );
}

#[test]
fn a_taker_races_with_a_cancel_at_the_tail_that_swallows_its_hole() {
    race_on(
        || {
            let (schedule, bookings) = booked(3);
            schedule.give_back(0, &bookings[1]);
            (schedule, bookings)
        },
        |(schedule, bookings)| schedule.give_back(0, &bookings[2]),
        |(schedule, _)| book(schedule, 1),
        |(schedule, bookings), (), taken| {
            // The hole, or what comes after it while the other has it in its hand.
            assert!([1, 2].contains(&turn(&taken)));
            schedule.assert_accounted([&bookings[0], &taken]);
            assert_eq!(turn(&taken) + turn(&book(schedule, 1)), 3, "and then it is there again");
        },
    );
}

#[test]
fn set_rate_races_with_booking() {
    race_on(
        || booked(1),
        |(schedule, _)| {
            schedule.set_rate(0, HALF);
            book(schedule, 1)
        },
        |(schedule, _)| book(schedule, 1),
        |(schedule, bookings), after, other| {
            // The other was charged one or two, by the rate before or after; and if it came behind
            // one who was charged by the new rate, by that.
            let (after_turn, other_turn) = (turn(&after), turn(&other));
            assert!([(1, 3), (2, 1), (3, 1)].contains(&(after_turn, other_turn)));
            schedule.assert_accounted([&bookings[0], &after, &other]);
            let end = turn(&book(schedule, 1));
            assert_eq!(end, if after_turn == 2 { 4 } else { 5 });
            assert_eq!(schedule.rate(), HALF);
        },
    );
}

#[test]
fn set_rate_races_with_set_rate() {
    race_on(
        || booked(1),
        |(schedule, _)| schedule.set_rate(0, HALF),
        |(schedule, _)| schedule.set_rate(0, Rate::per_second(250_000_000)),
        |(schedule, _), (), ()| {
            book(schedule, 1);
            let charged = turn(&book(schedule, 1)) - 1;
            let expected = if schedule.rate() == HALF { 2 } else { 4 };
            assert_eq!(charged, expected, "it goes by the rate that it shows");
        },
    );
}

#[test]
fn set_rate_races_with_one_who_looks_at_it() {
    race_on(
        || booked(1),
        |(schedule, _)| schedule.set_rate(0, HALF),
        |(schedule, _)| {
            let shown = schedule.rate();
            book(schedule, 1);
            (shown, turn(&book(schedule, 1)) - 1)
        },
        |_, (), (shown, charged)| {
            assert!(shown == EACH_NANOSECOND || charged == 2, "it is charged as it was told");
        },
    );
}

/// Two are stored when a time without limit ends.
#[test]
fn the_end_of_a_time_without_limit_races_with_booking() {
    race_on(
        || Schedule::new(Burst::new(2), Rate::UNLIMITED),
        |schedule| schedule.set_rate(9, EACH_NANOSECOND),
        |schedule| {
            let book = || schedule.book(9, 1, Patience::Until(9)).is_ok();
            [book(), book(), book(), book()]
        },
        |schedule, (), granted| {
            assert!(granted[..3].iter().all(|granted| *granted));
            // Two that were stored, and one that the next pays for.
            let left = (0..9).take_while(|_| schedule.book(9, 1, Patience::Until(9)).is_ok());
            assert!(left.count() <= 3);
            assert!(schedule.book(9, 1, Patience::Until(9)).is_err());
        },
    );
}

#[test]
fn close_races_with_booking() {
    race_on(
        || booked(1),
        |(schedule, bookings)| {
            schedule.close();
            assert_eq!(schedule.look(9, &bookings[0]), Outlook::Closed);
        },
        |(schedule, _)| schedule.book(0, 1, Patience::Forever).ok(),
        |(schedule, bookings), (), booked| {
            assert!(schedule.book(0, 0, Patience::Forever).is_err());
            schedule.assert_accounted(bookings.iter().chain(&booked));
        },
    );
}

#[test]
fn close_races_with_set_rate() {
    race_on(
        || booked(1),
        |(schedule, _)| schedule.close(),
        |(schedule, _)| schedule.set_rate(0, HALF),
        |(schedule, _), (), ()| assert!(schedule.is_closed()),
    );
}
