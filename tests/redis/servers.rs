//! That the servers of these tests do what the other tests take for granted.

use crate::support::{Cluster, Engine, PATIENCE, Server, eventually, network, uses};
use redis::{AsyncCommands, RedisResult};
use std::time::Duration;
use tokio::time::{sleep, timeout};

#[tokio::test]
async fn each_engine_starts_on_a_port_of_its_own() {
    for engine in Engine::ALL {
        let Some(one) = Server::start(engine).await else { continue };
        let Some(other) = Server::start(engine).await else { continue };
        let () = one.connection().await.set("key", 1).await.unwrap();
        assert_eq!(other.connection().await.get("key").await, Ok(None::<u32>));
        assert!(one.now().await <= other.now().await);
    }
}

#[tokio::test]
async fn a_durable_server_that_was_killed_comes_back_with_what_it_knew() {
    let Some(mut server) = Server::start_durable(Engine::Redis).await else { return };
    let mut connection = server.manager().await;
    let () = connection.set("key", 1).await.unwrap();
    server.kill();
    assert!(connection.get::<_, Option<u32>>("key").await.is_err());
    server.start_again().await;
    eventually("the connection is back", || {
        let mut connection = connection.clone();
        async move { connection.get("key").await == Ok(Some(1)) }
    })
    .await;
}

#[tokio::test]
async fn a_paused_server_answers_nothing_until_it_is_resumed() {
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let mut connection = server.manager().await;
    server.pause();
    let answer: RedisResult<()> = connection.set("key", 1).await;
    assert!(answer.unwrap_err().is_timeout());
    server.resume();
    // It has read what was sent meanwhile.
    eventually("the key is there", || {
        let mut connection = connection.clone();
        async move { connection.get("key").await == Ok(Some(1)) }
    })
    .await;
}

#[tokio::test]
async fn a_replica_that_is_promoted_goes_on_with_what_it_was_sent() {
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let replica = server.start_replica().await;
    let () = server.connection().await.set("key", 1).await.unwrap();
    let mut connection = replica.connection().await;
    eventually("the key has arrived", || {
        let mut connection = connection.clone();
        async move { connection.get("key").await == Ok(Some(1)) }
    })
    .await;
    drop(server);
    replica.promote().await;
    let () = connection.set("key", 2).await.unwrap();
}

#[tokio::test]
async fn a_cluster_has_its_keys_on_three_nodes() {
    for engine in Engine::ALL {
        let Some(cluster) = Cluster::start(engine).await else { continue };
        let mut connection = cluster.connection().await;
        for key in 0..64 {
            let () = connection.set(format!("key {key}"), key).await.unwrap();
        }
        let mut keys = 0;
        for node in &cluster.nodes {
            let here: u32 =
                redis::cmd("DBSIZE").query_async(&mut node.connection().await).await.unwrap();
            assert!(here > 0);
            keys += here;
        }
        assert_eq!(keys, 64);
    }
}

#[tokio::test]
async fn nothing_gets_through_a_network_that_is_cut() {
    if !network::is_own("servers::nothing_gets_through_a_network_that_is_cut") {
        return;
    }
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let mut connection = server.connection().await;
    connection.set_response_timeout(Duration::from_secs(30));
    network::loopback(false);
    let mut other = connection.clone();
    let cut = tokio::spawn(async move { other.set("key", 1).await });
    sleep(Duration::from_millis(100)).await;
    assert!(!cut.is_finished());
    network::loopback(true);
    // What was sent into the cut is sent again by TCP.
    let answer: RedisResult<()> = timeout(PATIENCE, cut).await.unwrap().unwrap();
    answer.unwrap();
}

#[test]
fn a_window_with_too_many_uses_is_found() {
    let at = |micros| uses::Use { earliest: micros, latest: micros + 10 };
    // A burst of two, and one each millisecond.
    let good = [at(0), at(1), at(1_000), at(2_000)];
    assert!(uses::excess(&good, 1_000, 2) <= 0.0);
    let bad = [at(0), at(1), at(900), at(2_000)];
    assert!(uses::excess(&bad, 1_000, 2) > 0.05);
    assert_eq!(uses::read(&uses::written(&bad)), bad);
}
