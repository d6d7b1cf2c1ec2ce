//! Races for several lines at once.

use super::{booked, race_on, take};
use crate::all::member::{Member, Seen};
use crate::all::members::Members;
use crate::error::{AcquireError, Limited, TryAcquireError};
use crate::line::{Ask, Booking, Line, Loss, Outlook, Patience, Refusal};
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::time::Instant;

/// A line at which time stands still.
impl Member for Line {
    type Turn = Booking;

    fn time(&self, _now: Instant) -> u64 {
        0
    }

    fn peek(&self, n: u32, _now: u64) -> Result<(), TryAcquireError> {
        self.peek(Ask::new(0, n, Patience::Until(0))).map_err(|refusal| limited(n, refusal))
    }

    fn hold(&self, n: u32, _now: u64) -> Result<Booking, TryAcquireError> {
        self.book(Ask::new(0, n, Patience::Until(0))).map_err(|refusal| limited(n, refusal))
    }

    fn book(&self, n: u32, _: Instant, _: Option<Instant>) -> Result<Booking, AcquireError> {
        Ok(super::book(self, 0, n))
    }

    fn look(&self, _now: Instant, turn: &Booking) -> Seen {
        match self.look(0, turn) {
            Outlook::Turn { late, .. } => Seen::Turn { late },
            _ => Seen::Wait(None),
        }
    }

    fn woke(&self, _now: Instant, _late: u64) {}

    fn give_back(&self, _now: Instant, turn: &Booking) {
        self.give_back(0, turn);
    }

    fn changed(&self) -> Option<Arc<Notify>> {
        None
    }
}

fn limited(n: u32, refusal: Refusal) -> TryAcquireError {
    let Refusal::Late(turn) = refusal else { unreachable!("that is why it refuses: {refusal:?}") };
    TryAcquireError::Limited(Limited::new(n, turn))
}

/// A line of two tokens and one of one.
fn two_and_one() -> (Line, Line) {
    (booked(2, 0).0, booked(1, 0).0)
}

fn take_both(lines: &(Line, Line)) -> bool {
    (&lines.0, &lines.1).hold(1, Instant::now()).is_ok()
}

#[test]
fn two_take_of_both_and_there_is_enough_for_one() {
    race_on(two_and_one, take_both, take_both, |lines, left, right| {
        assert!(left || right, "one of them came first");
        assert!(left != right);
        assert!(take(&lines.0, 0, 1).is_some(), "what the other took of the first is back");
        assert!(take(&lines.0, 0, 1).is_none() && take(&lines.1, 0, 1).is_none());
    });
}

#[test]
fn who_takes_of_both_races_with_one_who_takes_of_the_second() {
    race_on(
        two_and_one,
        take_both,
        |lines| take(&lines.1, 0, 1).is_some(),
        |lines, both, second| {
            assert!(both != second);
            let left = [(); 2].map(|()| take(&lines.0, 0, 1).is_some());
            assert_eq!(
                left,
                [true, second],
                "nothing is taken of the first where the second refused"
            );
        },
    );
}

#[test]
fn who_gives_up_both_races_with_one_who_takes_both() {
    race_on(
        || {
            let lines = two_and_one();
            // The one of the second line is gone, and a turn with each is held.
            let gone = super::book(&lines.1, 0, 1);
            let turns = Members::book(&(&lines.0, &lines.1), 1, Instant::now(), None).unwrap();
            (lines, gone, turns)
        },
        |(lines, _, turns)| (&lines.0, &lines.1).give_back(Instant::now(), turns),
        |(lines, ..)| take_both(lines),
        |(lines, gone, _), (), taken| {
            assert!(!taken, "the second has nothing before a nanosecond has passed");
            lines.1.assert_accounted(1, [gone], Loss::None);
            lines.0.assert_accounted(2, [], Loss::None);
        },
    );
}
