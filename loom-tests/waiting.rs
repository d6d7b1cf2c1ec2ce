//! Those who wait: their slack, and their places.

use super::{EACH_NANOSECOND, check, race, take};
use crate::line::{Ask, Booking, Bounds, Line, Loss, Outlook, Patience, Settings};
use crate::queue::Queue;
use loom::sync::Arc;
use loom::thread;

const SLACK: u64 = 4;

/// A line of one token with a slack, and two turns: at 1 and at 2.
fn two_wait() -> (Line, Vec<Booking>) {
    let bounds = Bounds::usual(EACH_NANOSECOND, 1);
    let line = Line::new(Settings::full(EACH_NANOSECOND, 1, bounds, SLACK));
    let book = || line.book(Ask::new(0, 1, Patience::Forever)).expect("there is room");
    book();
    let turns = vec![book(), book()];
    (line, turns)
}

/// What one who sleeps does when it wakes at `now`: whether it used its turn.
fn wake(line: &Line, now: u64, booking: &Booking) -> bool {
    let Outlook::Turn { late, overflown } = line.look(now, booking) else { return false };
    line.woke(now, late);
    if overflown {
        line.give_back(now, booking);
    }
    !overflown
}

/// One who acquires at `now` and does not wait.
fn acquire(line: &Line, now: u64) -> Option<Booking> {
    line.book_to_wait(now, 1, Patience::Until(now)).ok()
}

#[test]
fn one_who_wakes_late_races_with_one_who_acquires() {
    race(
        two_wait,
        // Late by 4, which is the slack.
        |line, turns| wake(line, 5, &turns[0]),
        |line, _| [acquire(line, 5), acquire(line, 5)],
        |line, turns, used, acquired| {
            assert!(used, "within its slack");
            // In the window (0, 5] no more than 1 + 1 * (5 + 4), whoever knows of the lateness; and
            // never one of the line twice.
            let held = acquired.iter().flatten().chain(turns);
            line.assert_accounted(0, held, Loss::Possible);
        },
    );
}

#[test]
fn two_wake_late_and_one_of_them_too_late() {
    race(
        two_wait,
        |line, turns| wake(line, 7, &turns[0]),
        |line, turns| wake(line, 7, &turns[1]),
        |line, turns, first, second| {
            // The first ended at 1, and has overflowed by more than the slack at 7.
            assert!(!first && second);
            let again = acquire(line, 7);
            assert!(again.is_some());
            line.assert_accounted(0, again.iter().chain([&turns[1]]), Loss::Possible);
        },
    );
}

#[test]
fn one_who_gives_up_races_with_one_who_tries() {
    race(
        two_wait,
        |line, turns| line.give_back(1, &turns[0]),
        |line, _| take(line, 1, 1),
        |line, turns, (), taken| {
            assert_eq!(taken.is_none(), take(line, 1, 1).is_some(), "it is had once");
            line.assert_accounted(0, taken.iter().chain([&turns[1]]), Loss::Possible);
        },
    );
}

#[test]
fn a_refund_races_with_a_try() {
    race(
        two_wait,
        // Both turns have come at 2; the first has overflowed by then.
        |line, turns| line.give_back(2, &turns[1]),
        |line, _| take(line, 2, 1),
        |line, turns, (), taken| {
            assert_eq!(taken.is_none(), take(line, 2, 1).is_some(), "it is had once");
            line.assert_accounted(0, taken.iter().chain([&turns[0]]), Loss::Possible);
        },
    );
}

#[test]
fn a_place_is_had_by_one() {
    check(|| {
        let queue = Arc::new(Queue::new(1));
        let other = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.enter())
        };
        let mine = queue.enter();
        let others = other.join().unwrap();
        assert!(mine != others);
        queue.leave();
        assert!(queue.enter() && !queue.enter());
    });
}
