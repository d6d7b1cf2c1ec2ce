//! The operations that were recorded of Go's `time/rate`, on a server and in one process.
//!
//! What Go answered is compared in `tests/go_traces.rs`. Here both limiters are asked at the same
//! whole microseconds, and must say the same.

#[expect(dead_code, reason = "what Go answered is compared elsewhere")]
#[path = "../go_traces/trace.rs"]
mod trace;

use crate::pair::Pair;
use crate::support::{Engine, Server};
use paceline::redis::RedisLimiter;
use paceline::{Limiter, Rate};
use redis::aio::MultiplexedConnection;
use trace::{Call, TRACES, Trace, parse};

/// The traces all of whose limits are one event in a microsecond or more, or unlimited, and their
/// operations.
const EXPECTED: (usize, usize) = (275, 6_640);

#[tokio::test]
async fn a_limit_on_a_server_replays_go_as_a_limiter_of_one_process_does() {
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let connection = server.patient_connection().await;
    let mut compared = (0, 0);
    for trace in parse::traces(TRACES).iter().filter(|trace| is_slow(trace)) {
        replay(connection.clone(), trace).await;
        compared = (compared.0 + 1, compared.1 + trace.steps.len());
    }
    assert_eq!(compared, EXPECTED);
}

fn is_slow(trace: &Trace) -> bool {
    trace.limits().all(|limit| limit.per_second <= 1e6 || limit.per_second.is_infinite())
}

async fn replay(connection: MultiplexedConnection, trace: &Trace) {
    let (first, largest) = (trace.limit.rate(), trace.bursts().max().expect("it has one"));
    let name = format!("sequence {}", trace.number);
    let fastest = Rate::per_second(1_000_000);
    let remote = RedisLimiter::builder(connection, name, first)
        .burst(trace.burst)
        .max_rate(fastest)
        .max_burst(largest);
    let local = Limiter::builder(first).burst(trace.burst).max_rate(fastest).max_burst(largest);
    let local = local.build().expect("within its own bounds");
    let pair = Pair::new(remote, &local, 1_000, 1).await;
    for step in &trace.steps {
        pair.wait_until(step.at / 1_000);
        match step.call {
            Call::TryAcquire { n } => pair.try_acquire(n).await,
            Call::Reserve { id, n } => pair.reserve(id, n).await,
            Call::Cancel { id } => pair.cancel(id).await,
            Call::SetRate(limit) => pair.set_rate(limit.rate(), limit.rate()).await,
            Call::SetBurst(burst) => pair.set_burst(burst).await,
            Call::DelayFrom { .. } | Call::Tokens => {}
        }
        pair.assert_same().await;
    }
}
