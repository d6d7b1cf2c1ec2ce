//! Races of a line that mints in steps: its first use, and changes of its limit; and of `Sometimes`.

use super::{race_on, take};
use crate::line::{Ask, Bounds, Line, Minting, Patience, Settings};
use crate::rate::Rate;
use crate::sometimes::Sometimes;
use std::time::Duration;

/// Windows of ten nanoseconds.
fn per_window(limit: u32) -> Rate {
    Rate::new(limit.into(), Duration::from_nanos(10)).unwrap()
}

fn window(limit: u32, minting: Minting) -> Line {
    let bounds = Bounds { rate: per_window(100), burst: 100 };
    Line::new(Settings {
        minting,
        has_windows: true,
        ..Settings::full(per_window(limit), limit, bounds, 0)
    })
}

fn take_each(line: &Line, now: u64, count: usize) -> usize {
    (0..count).filter(|_| take(line, now, 1).is_some()).count()
}

#[test]
fn two_are_the_first_to_use_a_window() {
    race_on(
        || window(1, Minting::InStepsFromUse),
        |line| take(line, 3, 1).is_some(),
        |line| take(line, 4, 1).is_some(),
        |line, left, right| {
            assert!(left != right);
            // The window began with one of them, and ends ten later.
            assert!(take(line, 12, 1).is_none());
            assert!(take(line, 14, 1).is_some());
            assert!(take(line, 22, 1).is_none());
        },
    );
}

#[test]
fn a_limit_is_lowered_while_it_is_used() {
    race_on(
        || {
            let line = window(3, Minting::InSteps);
            assert_eq!(take_each(&line, 1, 1), 1);
            line
        },
        |line| line.set_limit(2, 2, per_window(2)).unwrap(),
        |line| take_each(line, 3, 1),
        |line, (), taken| {
            let used = 1 + taken + take_each(line, 4, 3);
            assert!(used <= 2, "what was used before counts: {used}");
            assert!(take_each(line, 10, 3) <= 2);
        },
    );
}

#[test]
fn a_limit_is_lowered_below_what_is_used_meanwhile() {
    race_on(
        || window(3, Minting::InSteps),
        |line| line.set_limit(2, 1, per_window(1)).unwrap(),
        |line| take_each(line, 3, 2),
        |line, (), taken| {
            let used = taken + take_each(line, 4, 3);
            // Two, if both came before the change.
            assert!((1..=2).contains(&used), "{used}");
            assert!(take_each(line, 10, 3) <= 1);
            assert_eq!(take_each(line, 20, 3), 1);
        },
    );
}

#[test]
fn a_limit_is_raised_while_it_is_used() {
    race_on(
        || window(1, Minting::InSteps),
        |line| line.set_limit(2, 3, per_window(3)).unwrap(),
        |line| take_each(line, 3, 2),
        |line, (), taken| {
            assert_eq!(taken + take_each(line, 4, 4), 3);
            assert_eq!(take_each(line, 10, 4), 3);
        },
    );
}

#[test]
fn two_calls_come_after_the_same_interval() {
    race_on(
        || {
            let sometimes = Sometimes::new().interval(Duration::from_nanos(10));
            assert!(sometimes.runs(0));
            sometimes
        },
        |sometimes| sometimes.runs(10),
        |sometimes| sometimes.runs(11),
        |_, left, right| assert!(left != right),
    );
}

#[test]
fn the_first_call_races_with_the_next() {
    race_on(
        || Sometimes::new().interval(Duration::from_nanos(10)),
        |sometimes| sometimes.runs(0),
        |sometimes| sometimes.runs(0),
        |_, left, right| assert!(left != right),
    );
}

#[test]
fn two_who_do_not_fit_into_a_window_leave_it_and_go_into_different_ones() {
    let book = |line: &Line| line.book(Ask::new(1, 3, Patience::Forever)).unwrap();
    race_on(
        || {
            let line = window(3, Minting::InSteps);
            assert_eq!(take_each(&line, 1, 1), 1);
            line
        },
        book,
        book,
        |line, left, right| {
            let mut turns = [line.due(&left), line.due(&right)];
            turns.sort();
            assert_eq!(turns, [Some(10), Some(20)]);
            // What one of them leaves of a window is not lost, and was not given twice.
            assert_eq!(take_each(line, 5, 3), 2);
            assert_eq!(take_each(line, 10, 3), 0);
        },
    );
}

#[test]
fn a_limit_goes_down_and_up_again_while_it_is_used() {
    race_on(
        || window(3, Minting::InSteps),
        |line| {
            line.set_limit(2, 1, per_window(1)).unwrap();
            line.set_limit(2, 3, per_window(3)).unwrap();
        },
        |line| take_each(line, 3, 2),
        |line, (), taken| {
            assert_eq!(taken + take_each(line, 4, 4), 3);
            assert_eq!(take_each(line, 10, 4), 3);
        },
    );
}
