//! What a permit from a lease costs: the time until it is there, and its part of the round trips.

use crate::{Plan, load::TASKS, server, support::Server};
use paceline::{
    Rate,
    redis::{Lease, RedisLimiter},
};
use paceline_peers::{measure::middle, table::Table};
use redis::aio::MultiplexedConnection;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{task::JoinSet, time};

/// More than is asked for, and less.
const LIMITS: [(&str, u64); 2] = [("100k/s", 100_000), ("10k/s", 10_000)];
const PACE: Duration = Duration::from_millis(1);

pub(crate) async fn measure(server: &Server, plan: Plan) {
    let connection = server.connection().await;
    let mut table =
        Table::new(&["", "acquires/s", "per round trip", "p50 us", "p99 us", "p99.9 us"]);
    table.section(&format!(
        "{TASKS} tasks that acquire each {PACE:?}; the burst is a second's worth"
    ));
    for (name, rate) in LIMITS {
        let mut runs = Vec::new();
        for _ in 0..plan.runs {
            runs.push(run(&connection, rate, plan.round * 4).await);
        }
        let column = |figure: usize| middle(runs.iter().map(|run| run[figure]).collect());
        let cells = (0..5).map(|figure| format!("{:.0}", column(figure)));
        table.row([format!("  leased, {name}")].into_iter().chain(cells).collect());
    }
    println!("{table}");
}

/// Acquires per second and per round trip, and percentiles of the time that they take, in microseconds.
async fn run(connection: &MultiplexedConnection, rate: u64, time: Duration) -> [f64; 5] {
    let mut connection = connection.clone();
    let burst = u32::try_from(rate).expect("a small rate");
    let limiter = RedisLimiter::builder(connection.clone(), "leased", Rate::per_second(rate))
        .burst(burst)
        .lease(Lease::new())
        .build()
        .await;
    let limiter = Arc::new(limiter.expect("the server is up"));
    // Until it knows how much is wanted.
    paced(&limiter, time / 4).await;
    let (_, before) = server::scripts(&mut connection).await;
    let start = Instant::now();
    let mut waits = paced(&limiter, time).await;
    let elapsed = start.elapsed().as_secs_f64();
    let (_, after) = server::scripts(&mut connection).await;
    drop(limiter);
    let () = server::ask(&mut connection, &["FLUSHALL", "ASYNC"]).await;
    waits.sort_unstable();
    let micros = |part: usize| {
        let wait = waits[(waits.len() - 1) * part / 1_000];
        wait.as_secs_f64() * 1e6
    };
    #[expect(clippy::cast_precision_loss, reason = "some hundred thousands")]
    let acquires = waits.len() as f64;
    let round_trips = (after - before).max(1.0);
    [acquires / elapsed, acquires / round_trips, micros(500), micros(990), micros(999)]
}

async fn paced(limiter: &Arc<RedisLimiter>, time: Duration) -> Vec<Duration> {
    let end = time::Instant::now() + time;
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let limiter = Arc::clone(limiter);
        tasks.spawn(async move {
            let mut waits = Vec::new();
            let mut pace = time::interval(PACE);
            pace.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
            while pace.tick().await < end {
                let asked = Instant::now();
                limiter.acquire().await.expect("the server is up");
                waits.push(asked.elapsed());
            }
            waits
        });
    }
    tasks.join_all().await.concat()
}
