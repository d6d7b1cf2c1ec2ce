//! Limits without leases: what several processes get of them, and when the server forgets.

use crate::support::{Cluster, Engine, PATIENCE, Server};
use paceline::redis::{Error, KeyedRedisLimiter, RedisLimiter, TimeSource};
use paceline::{AcquireError, Rate};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

#[tokio::test]
async fn a_server_that_forgot_the_script_is_sent_it_again() {
    for engine in Engine::ALL {
        let Some(server) = Server::start(engine).await else { continue };
        let builder =
            RedisLimiter::builder(server.patient_connection().await, "test", Rate::per_hour(1));
        let limiter = builder.burst(3).timeout(PATIENCE).build().await.unwrap();
        limiter.try_acquire().await.unwrap();
        server.flush_scripts().await;
        limiter.try_acquire().await.unwrap();
        limiter.try_acquire().await.unwrap();
        assert!(limiter.try_acquire().await.is_err());
    }
}

#[tokio::test]
async fn a_node_of_a_cluster_that_forgot_the_script_is_sent_it_again() {
    let Some(cluster) = Cluster::start(Engine::Redis).await else { return };
    let builder = KeyedRedisLimiter::builder(cluster.connection().await, "test", Rate::per_hour(1));
    let limiter = builder.timeout(PATIENCE).build().await.unwrap();
    for node in &cluster.nodes {
        node.flush_scripts().await;
        // Some of them are on each node.
        for key in 0..20 {
            let key = format!("{key} after {}", node.port());
            limiter.try_acquire(&key).await.unwrap();
            assert!(limiter.try_acquire(&key).await.is_err());
        }
    }
}

#[tokio::test]
async fn a_wait_that_is_too_long_is_refused_at_once_and_takes_nothing() {
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let hour = Rate::per_hour(1);
    let builder = RedisLimiter::builder(server.patient_connection().await, "test", hour).burst(2);
    let limiter = builder.timeout(PATIENCE).build().await.unwrap();
    let minute = Duration::from_secs(60);
    assert!(limiter.acquire_many(2).within(minute).await.is_ok());
    let refused = limiter.acquire_many(2).within(minute).await.unwrap_err();
    let Some(AcquireError::WouldExceedDeadline { requested: 2, wait: Some(wait), limit }) =
        refused.refusal()
    else {
        panic!("{refused:?}")
    };
    assert!(*wait > minute * 110 && *wait <= minute * 121, "{wait:?}");
    assert_eq!(*limit, minute);
    let past = Instant::now();
    assert!(limiter.acquire().before(past).await.is_err());
    assert!(limiter.acquire().within(minute).before(past + minute * 600).await.is_err());
    let exceeds = AcquireError::ExceedsBurst { requested: 3, burst: 2 };
    assert_eq!(limiter.acquire_many(3).await, Err(Error::Refused(exceeds)));
    assert!(limiter.tokens().await.unwrap() >= 0.0);
}

/// As fast as it is minted, by several who wait: in a real time that nobody looks at.
#[tokio::test]
async fn those_who_wait_are_all_served() {
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let builder =
        RedisLimiter::builder(server.patient_connection().await, "test", Rate::per_second(2_000));
    let limiter = builder.burst(3).timeout(PATIENCE).build().await.unwrap();
    let mut tasks = JoinSet::new();
    for _ in 0..50 {
        let limiter = limiter.clone();
        tasks.spawn(async move {
            for _ in 0..5 {
                limiter.acquire().await.unwrap();
            }
        });
    }
    timeout(PATIENCE, tasks.join_all()).await.unwrap();
}

/// Limit 100/s, burst 10, 400 arrivals a second over three processes, each of which gives up after
/// 100 ms: where cancelled turns were lost, nobody would be served after the first second.
#[tokio::test]
async fn a_crowd_that_gives_up_leaves_its_turns_to_the_next() {
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let clock = Arc::new(AtomicU64::new(1_796_000_000_000_000));
    let began = clock.load(Ordering::SeqCst);
    let mut processes = Vec::new();
    for _ in 0..3 {
        let told = Arc::clone(&clock);
        let time = TimeSource::from_fn(move || Duration::from_micros(told.load(Ordering::SeqCst)));
        let builder =
            RedisLimiter::builder(server.patient_connection().await, "test", Rate::per_second(100));
        let builder = builder.burst(10).time(time).timeout(PATIENCE);
        processes.push(builder.build().await.unwrap());
    }
    let mut waiting = BTreeMap::new();
    let mut by_second = [0; 6];
    for arrival in 0..2_400_u64 {
        let now = began + arrival * 2_500;
        // Those whose patience ends before.
        while let Some(entry) = waiting.first_entry().filter(|entry| *entry.key() <= now) {
            clock.store(*entry.key(), Ordering::SeqCst);
            let turn: paceline::redis::Reservation = entry.remove();
            assert_eq!(turn.cancel().await, Ok(true));
        }
        clock.store(now, Ordering::SeqCst);
        let process = usize::try_from(arrival).unwrap() % processes.len();
        let turn = processes[process].reserve().await.unwrap();
        let due = u64::try_from(turn.due().unwrap().as_micros()).unwrap();
        if due <= now + 100_000 {
            let second = usize::try_from((due - began) / 1_000_000).unwrap();
            if let Some(served) = by_second.get_mut(second) {
                *served += 1;
            }
        } else {
            waiting.insert(now + 100_000, turn);
        }
    }
    // The last of the burst and the first second comes at the end of it.
    assert_eq!(by_second[0], 109);
    assert!(by_second[1..5].iter().all(|of| (99..=101).contains(of)), "{by_second:?}");
}
