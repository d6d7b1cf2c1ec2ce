//! What is given back is free again, and once.

use crate::support::{Engine, PATIENCE, Server, eventually};
use crate::wire::Wire;
use futures::FutureExt;
use paceline::Rate;
use paceline::redis::{Failure, RedisLimiter, Reservation};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// So slow that nothing is minted in a test.
const SLOW: Rate = Rate::per_hour(1);

async fn limiter(wire: &Wire, burst: u32) -> RedisLimiter {
    let builder = RedisLimiter::builder(wire.clone(), "test", SLOW).burst(burst);
    builder.timeout(PATIENCE).build().await.unwrap()
}

async fn tokens(limiter: &RedisLimiter) -> i64 {
    // What is minted during a test makes them no whole numbers.
    #[expect(clippy::cast_possible_truncation, reason = "small")]
    let tokens = limiter.tokens().await.unwrap().floor() as i64;
    tokens
}

async fn reserve(limiter: &RedisLimiter, n: u32) -> Reservation {
    limiter.reserve_many(n).await.unwrap()
}

#[tokio::test]
async fn a_cancel_whose_answers_are_lost_is_applied_once() {
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let wire = Wire::new(server.patient_connection().await);
    let limiter = limiter(&wire, 5).await;
    let _spent = reserve(&limiter, 5).await;
    let (one, other) = (reserve(&limiter, 2).await, reserve(&limiter, 3).await);
    assert_eq!(tokens(&limiter).await, -5);
    wire.take_sent();
    wire.lose(2);
    // Whoever hears no answer tries again, and is then told that it was done before.
    assert_eq!(one.cancel().await, Ok(false));
    assert_eq!(wire.take_sent().len(), 3);
    assert_eq!(tokens(&limiter).await, -3);
    assert_eq!(other.cancel().await, Ok(true));
    assert_eq!(tokens(&limiter).await, 0);
}

/// The ways in which an interval can be booked again: as a hole, in part, and at the end of the
/// line.
#[tokio::test]
async fn an_old_cancel_that_arrives_again_frees_nobody_elses_turn() {
    let Some(server) = Server::start(Engine::Redis).await else { return };
    for (cancelled, booked_behind, booked_again) in
        [(2, true, 2), (2, true, 1), (3, false, 3), (3, false, 2), (1, true, 3)]
    {
        let wire = Wire::new(server.patient_connection().await);
        let limiter = limiter(&wire, 3).await;
        let _spent = reserve(&limiter, 3).await;
        let first = reserve(&limiter, cancelled).await;
        let behind = if booked_behind { Some(reserve(&limiter, 1).await) } else { None };
        wire.take_sent();
        assert_eq!(first.cancel().await, Ok(true));
        let cancel = wire.take_sent();
        wire.repeat(&cancel).await;
        let again = reserve(&limiter, booked_again).await;
        let before = limiter.tokens().await.unwrap();
        wire.repeat(&cancel).await;
        wire.repeat(&cancel).await;
        assert!((limiter.tokens().await.unwrap() - before).abs() < 0.1, "{cancelled}");
        // Its own cancel counts.
        assert_eq!(again.cancel().await, Ok(true));
        drop(behind);
        let after = limiter.tokens().await.unwrap();
        assert!((after - before - f64::from(booked_again)).abs() < 0.1, "{cancelled}");
        server.flush().await;
    }
}

#[tokio::test]
async fn what_was_booked_before_the_server_forgot_is_not_given_back_after() {
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let wire = Wire::new(server.patient_connection().await);
    let limiter = limiter(&wire, 3).await;
    let old = reserve(&limiter, 2).await;
    server.flush().await;
    let _new = reserve(&limiter, 3).await;
    assert_eq!(old.refund().await, Ok(false));
    assert_eq!(tokens(&limiter).await, 0);
}

#[tokio::test]
async fn calls_that_are_dropped_give_back_what_the_server_booked() {
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let wire = Wire::new(server.patient_connection().await);
    let limiter = limiter(&wire, 125).await;
    let other = self::limiter(&Wire::new(server.patient_connection().await), 125).await;
    let held = wire.hold().await;
    let mut calls = JoinSet::new();
    for _ in 0..25 {
        let [one, two, three, four] = [(); 4].map(|()| limiter.clone());
        calls.spawn(async move { drop(one.try_acquire().await) });
        calls.spawn(async move { drop(two.acquire().await) });
        calls.spawn(async move { drop(three.reserve().await) });
        calls.spawn(async move { drop(four.acquire_many(2).await) });
    }
    eventually("some are booked", || async { tokens(&other).await < 125 }).await;
    calls.shutdown().await;
    drop(held);
    eventually("all is back", || async { tokens(&other).await == 125 }).await;
}

/// As when a call is polled once in a `select!`.
#[tokio::test]
async fn a_call_that_is_dropped_before_it_was_sent_is_not_sent() {
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let wire = Wire::new(server.patient_connection().await);
    let limiter = limiter(&wire, 1).await;
    wire.take_sent();
    assert!(limiter.try_acquire().now_or_never().is_none());
    assert_eq!(tokens(&limiter).await, 1);
    assert_eq!(wire.take_sent().len(), 1);
}

#[tokio::test]
async fn one_who_waits_and_is_dropped_gives_its_turn_back() {
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let wire = Wire::new(server.patient_connection().await);
    let limiter = limiter(&wire, 1).await;
    limiter.try_acquire().await.unwrap();
    let waiting = tokio::spawn({
        let limiter = limiter.clone();
        async move { limiter.acquire().await }
    });
    eventually("it waits", || async { tokens(&limiter).await == -1 }).await;
    waiting.abort();
    eventually("its turn is back", || async { tokens(&limiter).await == 0 }).await;
}

#[tokio::test]
async fn a_call_ends_in_time_and_what_it_booked_later_is_given_back() {
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let limit = Duration::from_secs(1);
    let builder = RedisLimiter::builder(server.patient_connection().await, "test", SLOW)
        .burst(3)
        .timeout(limit);
    let limiter = builder.build().await.unwrap();
    server.pause();
    let began = Instant::now();
    let failed = limiter.try_acquire_many(2).await.unwrap_err();
    assert!(began.elapsed() < PATIENCE);
    assert_eq!(failed, Failure::Timeout { limit }.into());
    server.resume();
    eventually("the server answers", || async { limiter.tokens().await.is_ok() }).await;
    eventually("all is back", || async { limiter.tokens().await == Ok(3.0) }).await;
}

/// What was given back is known by a bit for each booking, for so many bookings.
#[tokio::test]
async fn one_who_cancels_after_very_many_others_is_refused_and_frees_nothing() {
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let wire = Wire::new(server.patient_connection().await);
    let limiter = limiter(&wire, 1).await;
    limiter.try_acquire().await.unwrap();
    let old = reserve(&limiter, 1).await;
    for _ in 0..350 {
        let batch = (0..100).map(|_| async {
            let turn = reserve(&limiter, 1).await;
            assert_eq!(turn.cancel().await, Ok(true));
        });
        futures::future::join_all(batch).await;
    }
    assert_eq!(tokens(&limiter).await, -1);
    assert_eq!(old.cancel().await, Ok(false));
    assert_eq!(tokens(&limiter).await, -1);
    let bytes = server.bytes("paceline:{test}").await;
    assert!(bytes < 8_000, "{bytes} bytes");
}
