//! What the server says of itself.

use redis::{FromRedisValue, aio::MultiplexedConnection, cmd};

/// The microseconds that the server has spent in scripts, and how many it has run.
pub(crate) async fn scripts(connection: &mut MultiplexedConnection) -> (f64, f64) {
    let stats: String = ask(connection, &["INFO", "commandstats"]).await;
    let figure = |name: &str| {
        let line = stats.lines().find(|line| line.starts_with("cmdstat_evalsha:"));
        let figure =
            line.and_then(|line| line.split([':', ',']).find_map(|part| part.strip_prefix(name)));
        figure.and_then(|figure| figure.parse().ok()).unwrap_or(0.0)
    };
    (figure("usec="), figure("calls="))
}

/// The bytes that all its keys take.
pub(crate) async fn used_memory(connection: &mut MultiplexedConnection) -> u64 {
    let memory: String = ask(connection, &["INFO", "memory"]).await;
    let used = memory.lines().find_map(|line| line.strip_prefix("used_memory:"));
    used.and_then(|used| used.trim().parse().ok()).expect("INFO memory")
}

/// The answer to a command.
pub(crate) async fn ask<T: FromRedisValue>(
    connection: &mut MultiplexedConnection,
    words: &[&str],
) -> T {
    let mut command = cmd(words[0]);
    command.arg(&words[1..]);
    command.query_async(connection).await.unwrap_or_else(|error| panic!("{words:?}: {error}"))
}
