//! What is compared with: scripts as short as can be, over the same connection.

use redis::{Script, aio::MultiplexedConnection};

/// Nothing at all.
pub(crate) fn empty() -> Script {
    Script::new("return 1")
}

/// The usual cell rate algorithm: one GET, one SET, and the server's time, in doubles and without any
/// care for what they round.
pub(crate) fn gcra() -> Script {
    Script::new(
        "local time = redis.call('TIME')
         local now = time[1] * 1000000 + time[2]
         local emission, tolerance = tonumber(ARGV[1]), tonumber(ARGV[2])
         local arrival = tonumber(redis.call('GET', KEYS[1]) or now)
         if arrival < now then arrival = now end
         local next_arrival = arrival + emission
         local wait = next_arrival - tolerance - now
         if wait > 0 then return {0, wait} end
         redis.call('SET', KEYS[1], next_arrival, 'PX', math.ceil((next_arrival - now) / 1000))
         return {1, 0}",
    )
}

/// Calls a script once.
pub(crate) async fn call(script: &Script, key: &str, connection: &mut MultiplexedConnection) {
    let called = script.key(key).arg(1).arg(1_000_000).invoke_async(connection).await;
    let () = called.expect("the server is up");
}
