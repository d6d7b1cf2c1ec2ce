//! A circuit breaker: when it opens, what it lets through, and when it closes.

use futures::future::pending;
use paceline::{BreakerError, BreakerState, CallError, CircuitBreaker};
use std::time::Duration;
use tokio::time::{advance, timeout};

const OPEN_FOR: Duration = Duration::from_secs(5);

fn breaker(failures: u32, calls: u32, probes: u32) -> CircuitBreaker {
    CircuitBreaker::new(failures, calls, OPEN_FOR).unwrap().probes(probes).unwrap()
}

fn fail(breaker: &CircuitBreaker, times: u32) {
    for _ in 0..times {
        breaker.enter().unwrap().failed();
    }
}

#[tokio::test(start_paused = true)]
async fn it_opens_after_so_many_failures_and_refuses_until_its_time_is_over() {
    let breaker = breaker(3, 5, 1);
    fail(&breaker, 2);
    assert_eq!(breaker.state(), BreakerState::Closed);
    fail(&breaker, 1);
    assert_eq!(breaker.state(), BreakerState::Open { remaining: OPEN_FOR });
    assert_eq!(breaker.enter().unwrap_err().retry_after(), Some(OPEN_FOR));
    advance(Duration::from_micros(4_999_999)).await;
    assert_eq!(breaker.enter().unwrap_err().retry_after(), Some(Duration::from_micros(1)));
    advance(Duration::from_micros(1)).await;
    breaker.enter().unwrap().succeeded();
    assert_eq!(breaker.state(), BreakerState::Closed);
    // And nothing of before is counted.
    fail(&breaker, 2);
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn successes_push_failures_out_of_the_count() {
    let breaker = breaker(2, 3, 1);
    for _ in 0..20 {
        fail(&breaker, 1);
        breaker.enter().unwrap().succeeded();
        breaker.enter().unwrap().succeeded();
    }
    assert_eq!(breaker.state(), BreakerState::Closed);
    fail(&breaker, 1);
    breaker.enter().unwrap().succeeded();
    fail(&breaker, 1);
    assert!(breaker.enter().is_err());
}

#[tokio::test(start_paused = true)]
async fn half_open_it_makes_so_many_probes_and_closes_when_all_succeeded() {
    let breaker = breaker(1, 1, 3);
    fail(&breaker, 1);
    advance(OPEN_FOR).await;
    let probes = [(); 3].map(|()| breaker.enter().unwrap());
    assert_eq!(breaker.state(), BreakerState::HalfOpen);
    assert_eq!(breaker.enter().unwrap_err().retry_after(), None);
    let [first, second, third] = probes;
    first.succeeded();
    second.succeeded();
    assert!(breaker.enter().is_err(), "three are enough");
    assert_eq!(breaker.state(), BreakerState::HalfOpen);
    third.succeeded();
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_fails_opens_it_again_and_the_others_are_not_counted() {
    let breaker = breaker(1, 1, 2);
    fail(&breaker, 1);
    advance(OPEN_FOR).await;
    let (one, other) = (breaker.enter().unwrap(), breaker.enter().unwrap());
    one.failed();
    assert_eq!(breaker.state(), BreakerState::Open { remaining: OPEN_FOR });
    other.succeeded();
    assert_eq!(breaker.state(), BreakerState::Open { remaining: OPEN_FOR });
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_dropped_is_neither_and_makes_room_for_another() {
    let breaker = breaker(1, 1, 1);
    fail(&breaker, 1);
    advance(OPEN_FOR).await;
    for _ in 0..3 {
        let probe = breaker.call(pending::<Result<(), ()>>());
        assert!(timeout(Duration::from_secs(1), probe).await.is_err());
        assert_eq!(breaker.state(), BreakerState::HalfOpen);
    }
    assert_eq!(breaker.call(async { Ok::<_, ()>(7) }).await, Ok(7));
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn what_began_before_a_change_is_not_counted_after_it() {
    let breaker = breaker(1, 1, 1);
    let slow = [(); 2].map(|()| breaker.enter().unwrap());
    fail(&breaker, 1);
    advance(OPEN_FOR).await;
    let probe = breaker.enter().unwrap();
    let [late_failure, late_success] = slow;
    late_success.succeeded();
    assert_eq!(breaker.state(), BreakerState::HalfOpen);
    late_failure.failed();
    assert_eq!(breaker.state(), BreakerState::HalfOpen);
    probe.succeeded();
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_call_says_what_became_of_it() {
    let breaker = breaker(1, 1, 1);
    assert_eq!(breaker.call(async { Err::<(), _>("no") }).await, Err(CallError::Failed("no")));
    let refused = breaker.call(async { Ok::<(), &str>(()) }).await.unwrap_err();
    assert_eq!(refused.to_string(), "the circuit breaker is open: retry after 5s");
}

#[tokio::test(start_paused = true)]
async fn it_can_be_opened_and_closed_by_hand() {
    let breaker = breaker(1, 1, 1);
    breaker.open();
    assert!(breaker.enter().is_err());
    breaker.close();
    assert!(breaker.enter().is_ok());
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let made = |failures, calls| CircuitBreaker::new(failures, calls, OPEN_FOR).map(drop);
    assert_eq!(made(1, 33), Err(BreakerError::CallsOutOfRange { calls: 33 }));
    assert_eq!(made(0, 5), Err(BreakerError::FailuresOutOfRange { failures: 0, calls: 5 }));
    assert_eq!(made(6, 5), Err(BreakerError::FailuresOutOfRange { failures: 6, calls: 5 }));
    assert_eq!(made(32, 32), Ok(()));
    let probes = breaker(1, 1, 1).probes(0).map(drop);
    assert_eq!(probes, Err(BreakerError::ProbesOutOfRange { probes: 0 }));
    assert!(probes.unwrap_err().to_string().ends_with("not 0"));
}
