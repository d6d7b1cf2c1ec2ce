//! What a limit takes of the server's memory.

use crate::{Plan, server, support::Server};
use paceline::{
    Rate,
    redis::{KeyedRedisLimiter, RedisLimiter},
};
use paceline_peers::table::Table;
use redis::aio::MultiplexedConnection;

const HOLES: usize = 100;

pub(crate) async fn measure(server: &Server, plan: Plan) {
    let mut connection = server.connection().await;
    let mut table = Table::new(&["", "bytes"]);
    table.section(&"on the server");
    let usage = with_holes(&mut connection, 0).await;
    table.row(vec!["  a limit, MEMORY USAGE".to_owned(), usage.to_string()]);
    let usage = with_holes(&mut connection, HOLES).await;
    table.row(vec![format!("  with {HOLES} holes, MEMORY USAGE"), usage.to_string()]);
    let limits = if plan.quick { 1_000 } else { 1_000_000 };
    let bytes = of_many(&mut connection, limits).await / limits;
    table.row(vec![
        format!("  each of {limits}, with all that the server keeps"),
        bytes.to_string(),
    ]);
    println!("{table}");
}

/// A limit with so many holes, between which turns are booked.
async fn with_holes(connection: &mut MultiplexedConnection, holes: usize) -> u64 {
    let limiter =
        RedisLimiter::builder(connection.clone(), "memory", Rate::per_hour(1)).build().await;
    let limiter = limiter.expect("the server is up");
    limiter.try_acquire().await.expect("it is full");
    let mut turns = Vec::new();
    for _ in 0..2 * holes {
        turns.push(limiter.reserve().await.expect("the server is up"));
    }
    for turn in turns.into_iter().step_by(2) {
        turn.cancel().await.expect("the server is up");
    }
    let keys: Vec<String> = server::ask(connection, &["KEYS", "*memory*"]).await;
    let usage = server::ask(connection, &["MEMORY", "USAGE", &keys[0]]).await;
    let () = server::ask(connection, &["DEL", &keys[0]]).await;
    usage
}

async fn of_many(connection: &mut MultiplexedConnection, limits: u64) -> u64 {
    let before = server::used_memory(connection).await;
    let limiter =
        KeyedRedisLimiter::builder(connection.clone(), "many", Rate::per_hour(1)).build().await;
    let limiter = limiter.expect("the server is up");
    for first in (0..limits).step_by(1_000) {
        let calls = (first..first + 1_000).map(|number| {
            let (limiter, key) = (&limiter, format!("user:{number}"));
            async move { limiter.try_acquire(&key).await.expect("it is full") }
        });
        futures::future::join_all(calls).await;
    }
    let after = server::used_memory(connection).await;
    let () = server::ask(connection, &["FLUSHALL", "ASYNC"]).await;
    after - before
}
