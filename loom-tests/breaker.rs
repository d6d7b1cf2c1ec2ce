//! Races for the word of a circuit breaker. Time stands still.

use super::race_on;
use crate::breaker::{BreakerState, CircuitBreaker};
use std::time::Duration;

/// One that opens after two failures of two, for no time at all, with so many probes.
fn breaker(probes: u32) -> CircuitBreaker {
    CircuitBreaker::new(2, 2, Duration::ZERO).unwrap().probes(probes).unwrap()
}

fn opened(probes: u32) -> CircuitBreaker {
    let breaker = breaker(probes);
    breaker.open_at(0);
    breaker
}

fn is_closed(breaker: &CircuitBreaker) -> bool {
    breaker.state() == BreakerState::Closed
}

#[test]
fn two_failures_at_once_are_two() {
    let fail = |breaker: &CircuitBreaker| breaker.enter_at(0).unwrap().failed_at(0);
    race_on(|| breaker(1), fail, fail, |breaker, (), ()| assert!(!is_closed(breaker)));
}

#[test]
fn two_want_to_be_the_only_probe() {
    // Each keeps its call.
    let enter = |breaker: &CircuitBreaker| breaker.enter_at(0).map(std::mem::forget).is_ok();
    race_on(
        || opened(1),
        enter,
        enter,
        |breaker, left, right| {
            assert!(left != right);
            assert_eq!(breaker.state(), BreakerState::HalfOpen);
        },
    );
}

#[test]
fn a_probe_that_is_dropped_races_with_one_who_enters() {
    race_on(
        || opened(1),
        |breaker| breaker.enter_at(0).map(drop).is_ok(),
        |breaker| breaker.enter_at(0).map(std::mem::forget).is_ok(),
        |breaker, _, stays| {
            // The place of the one that was dropped is free again, once and not twice.
            assert_eq!(breaker.enter_at(0).map(std::mem::forget).is_ok(), !stays);
            assert!(breaker.enter_at(0).is_err());
        },
    );
}

#[test]
fn a_probe_that_succeeds_races_with_one_that_fails() {
    race_on(
        || opened(2),
        |breaker| breaker.enter_at(0).map(|call| call.succeeded()).is_ok(),
        |breaker| breaker.enter_at(0).map(|call| call.failed_at(0)).is_ok(),
        |breaker, _, failed| assert!(!failed || !is_closed(breaker), "one failed"),
    );
}

#[test]
fn a_failure_races_with_closing() {
    race_on(
        || {
            let breaker = breaker(1);
            breaker.enter_at(0).unwrap().failed_at(0);
            breaker
        },
        |breaker| breaker.enter_at(0).map(|call| call.failed_at(0)).is_ok(),
        CircuitBreaker::close,
        |breaker, entered, ()| {
            assert!(entered);
            // If it was closed last, or the failure came from before, nothing is counted; if the failure
            // came after, it is one of two.
            assert!(is_closed(breaker) || breaker.state() != BreakerState::HalfOpen);
        },
    );
}
