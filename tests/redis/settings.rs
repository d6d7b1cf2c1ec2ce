//! What is set holds for all who share a limit.

use crate::support::{Engine, PATIENCE, Server, eventually};
use paceline::redis::{Error, KeyedRedisLimiter, RedisLimiter};
use paceline::{BuildError, RangeError, Rate};
use redis::AsyncCommands;
use tokio::time::timeout;

const SLOW: Rate = Rate::per_hour(1);
const FAST: Rate = Rate::per_second(1_000);

async fn limiter(server: &Server, rate: Rate, burst: u32) -> RedisLimiter {
    let builder =
        RedisLimiter::builder(server.patient_connection().await, "test", rate).burst(burst);
    builder.timeout(PATIENCE).build().await.unwrap()
}

#[tokio::test]
async fn the_first_to_come_decides_and_the_others_follow() {
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let first = limiter(&server, SLOW, 7).await;
    first.try_acquire().await.unwrap();
    let second = limiter(&server, FAST, 9).await;
    assert_eq!((second.rate(), second.burst()), (SLOW, 7));
    second.try_acquire().await.unwrap();
    assert!(first.tokens().await.unwrap() < 5.1);
}

#[tokio::test]
async fn who_calls_next_hears_of_a_change_and_who_waits_is_retimed() {
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let one = limiter(&server, SLOW, 1).await;
    let other = limiter(&server, SLOW, 1).await;
    other.try_acquire().await.unwrap();
    let waiting = tokio::spawn({
        let other = other.clone();
        async move { other.acquire().await }
    });
    eventually("it waits", || async { one.tokens().await.unwrap() < -0.9 }).await;
    one.set_rate(FAST).await.unwrap();
    one.set_burst(50).await.unwrap();
    assert_eq!((one.rate(), one.burst()), (FAST, 50));
    // It asks by itself.
    timeout(PATIENCE, waiting).await.unwrap().unwrap().unwrap();
    other.acquire().await.unwrap();
    assert_eq!((other.rate(), other.burst()), (FAST, 50));
}

#[tokio::test]
async fn what_was_set_outlives_the_memory_of_the_server_and_an_idle_time() {
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let one = limiter(&server, FAST, 1).await;
    let other = limiter(&server, FAST, 1).await;
    one.set_burst(20).await.unwrap();
    let ttl: i64 = server.patient_connection().await.pttl("paceline:{test}").await.unwrap();
    assert_eq!(ttl, -1, "what was set does not expire");
    server.flush().await;
    // It has not heard of it.
    other.try_acquire().await.unwrap();
    assert_eq!(other.burst(), 1);
    one.try_acquire_many(0).await.unwrap();
    one.acquire_many(5).await.unwrap();
    other.try_acquire_many(0).await.unwrap();
    assert_eq!(other.burst(), 20);
}

#[tokio::test]
async fn beyond_what_a_limiter_is_built_for_nothing_is_set() {
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let builder = || async {
        RedisLimiter::builder(server.patient_connection().await, "test", SLOW)
            .timeout(PATIENCE)
            .max_rate(FAST)
            .max_burst(5)
    };
    let limiter = builder().await.build().await.unwrap();
    let faster = Rate::per_second(1_001);
    let refused = limiter.set_rate(faster).await.unwrap_err();
    assert_eq!(refused, RangeError::RateExceedsMax { rate: faster, max: FAST }.into());
    let refused = limiter.set_burst(6).await.unwrap_err();
    assert_eq!(refused, RangeError::BurstExceedsMax { burst: 6, max: 5 }.into());
    limiter.set_rate(Rate::UNLIMITED).await.unwrap();
    assert!(limiter.rate().is_unlimited());
    let refused = builder().await.burst(6).build().await.unwrap_err();
    assert_eq!(refused, Error::Refused(BuildError::BurstExceedsMax { burst: 6, max: 5 }));
}

#[tokio::test]
async fn each_key_has_a_limit_of_its_own_which_is_gone_when_it_is_full() {
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let mut connection = server.patient_connection().await;
    let builder = KeyedRedisLimiter::builder(connection.clone(), "api", Rate::per_second(10));
    let limiter = builder.burst(5).timeout(PATIENCE).build().await.unwrap();
    limiter.try_acquire_many("a", 5).await.unwrap();
    assert!(limiter.try_acquire("a").await.is_err());
    limiter.try_acquire_many("b", 2).await.unwrap();
    let keys: Vec<String> = connection.keys("*").await.unwrap();
    assert_eq!(keys.len(), 2, "{keys:?}");
    let ttl: i64 = connection.pttl("paceline:{api:b}").await.unwrap();
    assert!((0..=200).contains(&ttl), "{ttl} ms");
    // A booking ahead keeps it for longer.
    let turn = limiter.reserve_many("b", 5).await.unwrap();
    let ttl: i64 = connection.pttl("paceline:{api:b}").await.unwrap();
    assert!(ttl > 200 && ttl <= 700, "{ttl} ms");
    assert_eq!(turn.cancel().await, Ok(true));
    limiter.set_burst("c", 3).await.unwrap();
    limiter.try_acquire_many("c", 3).await.unwrap();
    eventually("all but what was set is gone", || {
        let mut connection = connection.clone();
        async move {
            let keys: Vec<String> = connection.keys("*").await.unwrap();
            keys == ["paceline:{api:c}"]
        }
    })
    .await;
}
