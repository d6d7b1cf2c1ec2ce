//! What servers, networks and processes do to each other. Nothing is used that the limit does not allow,
//! but for what a server forgets; and how much that is, is said.

use crate::support::load::{Load, Log};
use crate::support::uses::{self, ServerClock};
use crate::support::workers::{self, Workers};
use crate::support::{Cluster, Engine, PATIENCE, Server, eventually, network};
use paceline::Rate;
use paceline::redis::{
    Error, Failure, Fallback, KeyedRedisLimiter, Lease, RedisLimiter, TimeSource, connect,
};
use redis::aio::ConnectionLike;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

const RATE: u64 = 1_000;
const BURST: u32 = 100;
/// So slow that nothing is minted in a test.
const SLOW: Rate = Rate::per_hour(1);

async fn limiter<C>(connection: C, lease: Option<Lease>) -> RedisLimiter
where
    C: ConnectionLike + Clone + Send + Sync + 'static,
{
    let builder = RedisLimiter::builder(connection, "test", Rate::per_second(RATE)).burst(BURST);
    let builder = match lease {
        Some(lease) => builder.lease(lease),
        None => builder,
    };
    builder.build().await.unwrap()
}

/// One that asks the server each time, and one that leases.
async fn both(server: &Server) -> [RedisLimiter; 2] {
    [
        limiter(connect(server.client()).await.unwrap(), None).await,
        limiter(connect(server.client()).await.unwrap(), Some(Lease::new())).await,
    ]
}

/// A while under load.
async fn a_while() {
    sleep(Duration::from_millis(700)).await;
}

async fn is_served(limiter: &RedisLimiter) {
    eventually("it is served again", || async { limiter.acquire().await.is_ok() }).await;
}

#[tokio::test]
async fn a_server_that_is_killed_and_comes_back_with_its_disk_has_lost_nothing() {
    for engine in Engine::ALL {
        let Some(mut server) = Server::start_durable(engine).await else { continue };
        let clock = ServerClock::read(&server.client()).await;
        let limiters = both(&server).await;
        let load = Load::start(&limiters, 8, clock);
        a_while().await;
        server.kill();
        a_while().await;
        server.start_again().await;
        let back = server.now().await;
        for limiter in &limiters {
            is_served(limiter).await;
        }
        a_while().await;
        let log = load.stop().await;
        assert!(!log.failures.is_empty());
        assert!(log.between(0, back) > 0 && log.between(back, u64::MAX) > 0);
        let excess = log.excess(RATE, BURST);
        assert!(excess <= 0.0, "{excess} too many");
    }
}

/// A full bucket is what a limit is that nobody knows.
#[tokio::test]
async fn a_server_that_forgets_all_gives_a_burst_again_and_no_more() {
    let Some(mut server) = Server::start(Engine::Redis).await else { return };
    let clock = ServerClock::read(&server.client()).await;
    let limiters = both(&server).await;
    let load = Load::start(&limiters, 8, clock);
    a_while().await;
    server.kill();
    server.start_again().await;
    for limiter in &limiters {
        is_served(limiter).await;
    }
    a_while().await;
    let log = load.stop().await;
    // And what was at hand of a lease when that happened: a quarter of the burst at most.
    let excess = log.excess(RATE, BURST + BURST / 4);
    assert!(excess <= f64::from(BURST), "{excess} too many");
}

#[tokio::test]
async fn a_server_that_is_stopped_for_a_while_has_lost_nothing() {
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let clock = ServerClock::read(&server.client()).await;
    let limiters = both(&server).await;
    let load = Load::start(&limiters, 8, clock);
    a_while().await;
    server.pause();
    sleep(Duration::from_secs(2)).await;
    let paused = Instant::now();
    server.resume();
    for limiter in &limiters {
        is_served(limiter).await;
    }
    a_while().await;
    let log = load.stop().await;
    let while_paused = log.failures.iter().filter(|(when, _)| *when < paused);
    let open = while_paused.filter(|(_, failure)| matches!(failure, Failure::Open(_))).count();
    assert!(open > 0, "the breaker spared nobody");
    let excess = log.excess(RATE, BURST);
    assert!(excess <= 0.0, "{excess} too many");
}

#[tokio::test]
async fn scripts_that_are_forgotten_under_load_are_sent_again_and_nobody_notices() {
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let clock = ServerClock::read(&server.client()).await;
    let load = Load::start(&both(&server).await, 8, clock);
    for _ in 0..20 {
        sleep(Duration::from_millis(30)).await;
        server.flush_scripts().await;
    }
    let log = load.stop().await;
    assert_eq!(log.failures, []);
    let excess = log.excess(RATE, BURST);
    assert!(excess <= 0.0, "{excess} too many");
}

/// A replica that has not heard of a permit gives it again: as many, and no more.
#[tokio::test]
async fn a_failover_gives_again_what_the_replica_had_not_heard_of() {
    for engine in Engine::ALL {
        let Some(server) = Server::start(engine).await else { continue };
        let replica = server.start_replica().await;
        let build = |connection| RedisLimiter::builder(connection, "test", SLOW).burst(100).build();
        let mut connection = server.connection().await;
        let before = build(connection.clone()).await.unwrap();
        before.try_acquire_many(40).await.unwrap();
        let heard = redis::cmd("WAIT").arg(1).arg(0).query_async(&mut connection).await;
        assert_eq!(heard, Ok(1));
        replica.promote().await;
        before.try_acquire_many(30).await.unwrap();
        drop(server);
        let after = build(replica.connection().await).await.unwrap();
        after.try_acquire_many(60).await.unwrap();
        assert!(after.try_acquire().await.is_err());
    }
}

#[tokio::test]
async fn a_network_that_is_cut_for_a_while_loses_nothing() {
    if !network::is_own("faults::a_network_that_is_cut_for_a_while_loses_nothing") {
        return;
    }
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let clock = ServerClock::read(&server.client()).await;
    let limiters = both(&server).await;
    let load = Load::start(&limiters, 8, clock);
    a_while().await;
    network::loopback(false);
    sleep(Duration::from_secs(2)).await;
    network::loopback(true);
    for limiter in &limiters {
        is_served(limiter).await;
    }
    a_while().await;
    let log = load.stop().await;
    assert!(!log.failures.is_empty());
    let excess = log.excess(RATE, BURST);
    assert!(excess <= 0.0, "{excess} too many");
}

/// By the time of the processes, one whose clock is ahead takes from the others what it takes too early.
#[tokio::test]
async fn a_clock_that_is_off_by_an_hour_mints_nothing_twice() {
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let now = Arc::new(AtomicU64::new(1_796_000_000));
    let connection = server.connection().await;
    let build = |ahead: u64| {
        let now = Arc::clone(&now);
        let time =
            TimeSource::from_fn(move || Duration::from_secs(now.load(Ordering::SeqCst) + ahead));
        let builder = RedisLimiter::builder(connection.clone(), "test", Rate::per_minute(1));
        builder.burst(10).time(time).build()
    };
    let (right, ahead) = (build(0).await.unwrap(), build(3_600).await.unwrap());
    let mut used = 0;
    for _ in 0..2 * 3_600 / 60 {
        // Each minute, both as often as they can.
        for limiter in [&right, &ahead] {
            while limiter.try_acquire().await.is_ok() {
                used += 1;
            }
        }
        now.fetch_add(60, Ordering::SeqCst);
    }
    // What is minted in two hours, and in the one that is ahead; and a burst before and one after that.
    assert!(used <= 10 + 10 + 180, "{used}");
    assert!(used >= 120, "{used}");
}

/// Three processes of which one is killed. What it had at hand is lost: a quarter of a burst at most.
#[tokio::test]
async fn three_processes_use_no_more_than_the_limit_together() {
    const TEST: &str = "faults::three_processes_use_no_more_than_the_limit_together";
    if let Some(errand) = workers::errand() {
        return work(&errand).await;
    }
    for mode in ["strict", "leased"] {
        let Some(server) = Server::start(Engine::Redis).await else { return };
        let mut workers = Workers::start(TEST, 4, |_| format!("{mode} {}", server.url()));
        sleep(Duration::from_secs(1)).await;
        workers.kill(0);
        let uses: Vec<_> = workers.join().iter().flat_map(|text| uses::read(text)).collect();
        assert!(!uses.is_empty());
        let excess = Log { uses, ..Log::default() }.excess(RATE, BURST);
        assert!(excess <= 0.0, "{mode}: {excess} too many");
    }
}

async fn work(errand: &str) {
    let (mode, url) = errand.split_once(' ').expect("a mode and a URL");
    let client = redis::Client::open(url).unwrap();
    let clock = ServerClock::read(&client).await;
    let connection = client.get_multiplexed_async_connection().await.unwrap();
    let lease = (mode == "leased").then(Lease::new);
    let load = Load::start(&[limiter(connection, lease).await], 4, clock);
    sleep(Duration::from_secs(2)).await;
    println!("\n{}", uses::written(&load.stop().await.uses));
}

#[tokio::test]
async fn what_a_process_that_dies_had_at_hand_is_lost_and_nothing_else() {
    const TEST: &str = "faults::what_a_process_that_dies_had_at_hand_is_lost_and_nothing_else";
    if let Some(url) = workers::errand() {
        let connection = redis::Client::open(url).unwrap().get_multiplexed_async_connection().await;
        let builder = RedisLimiter::builder(connection.unwrap(), "test", SLOW).burst(1_000);
        let limiter = builder.lease(Lease::new().period(PATIENCE)).build().await.unwrap();
        for _ in 0..100 {
            limiter.acquire().await.unwrap();
        }
        // Until it is killed.
        return sleep(PATIENCE).await;
    }
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let mut workers = Workers::start(TEST, 1, |_| server.url());
    let builder = RedisLimiter::builder(server.connection().await, "test", SLOW).burst(1_000);
    let limiter = builder.build().await.unwrap();
    eventually("all is used", || async { limiter.tokens().await.unwrap() < 901.0 }).await;
    workers.kill(0);
    let left = limiter.tokens().await.unwrap();
    assert!(left >= 1_000.0 - 100.0 - 250.0, "{left}");
}

#[tokio::test]
async fn on_a_cluster_each_key_has_its_burst_and_no_more() {
    for engine in Engine::ALL {
        let Some(cluster) = Cluster::start(engine).await else { continue };
        let connection = cluster.connection().await;
        let keyed = KeyedRedisLimiter::builder(connection.clone(), "test", SLOW).burst(5);
        let keyed = keyed.build().await.unwrap();
        for round in 0..7 {
            for key in 0..30 {
                let served = keyed.try_acquire(format!("user {key}")).await;
                assert_eq!(served.is_ok(), round < 5, "{served:?}");
            }
            cluster.nodes[round % 3].flush_scripts().await;
        }
        let leased =
            RedisLimiter::builder(connection, "leased", SLOW).burst(500).lease(Lease::new());
        let leased = leased.build().await.unwrap();
        let mut served = 0;
        while leased.try_acquire().await.is_ok() {
            served += 1;
        }
        assert_eq!(served, 500);
    }
}

#[tokio::test]
async fn without_a_server_a_fallback_serves_and_calls_end_in_time() {
    let Some(mut server) = Server::start(Engine::Redis).await else { return };
    let connection = connect(server.client()).await.unwrap();
    let build = |fallback| {
        let builder = RedisLimiter::builder(connection.clone(), "test", SLOW).burst(100);
        builder.timeout(Duration::from_millis(50)).fallback(fallback).build()
    };
    let processes = NonZeroU32::new(4).unwrap();
    let closed = build(Fallback::Closed).await.unwrap();
    let open = build(Fallback::Open).await.unwrap();
    let local = build(Fallback::Local { processes }).await.unwrap();
    server.kill();
    for _ in 0..200 {
        let called = timeout(PATIENCE, closed.try_acquire()).await.expect("a call that ends");
        assert!(matches!(called, Err(Error::Failed(_))), "{called:?}");
        timeout(PATIENCE, open.try_acquire()).await.expect("a call that ends").unwrap();
        let called = timeout(PATIENCE, local.try_acquire()).await.expect("a call that ends");
        // The server has served until now, and nothing is minted.
        assert!(matches!(called, Err(Error::Refused(_))), "{called:?}");
    }
    let waits = timeout(Duration::from_millis(300), local.acquire().into_future()).await;
    assert!(waits.is_err(), "its turn comes in four hours");
    server.start_again().await;
    for limiter in [&closed, &local] {
        is_served(limiter).await;
    }
}
