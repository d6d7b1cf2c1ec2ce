//! What several processes get together, and whether that is too much in any window.

use crate::{
    Plan,
    support::{
        Server,
        uses::{self, ServerClock, Use},
    },
};
use paceline::{
    Rate,
    redis::{Lease, RedisLimiter},
};
use paceline_peers::{again, table::Table};
use std::time::Duration;
use tokio::{
    task::{JoinSet, spawn_blocking},
    time::{Instant, sleep},
};

/// The first argument of a process that works.
pub(crate) const WORKER: &str = "worker";
const PROCESSES: usize = 3;
/// In each of them.
const TASKS: usize = 8;
const RATE: u64 = 1_000;
const BURST: u32 = 100;

pub(crate) async fn measure(server: &Server, plan: Plan) {
    let time = if plan.quick { 1 } else { 10 };
    let mut table = Table::new(&["", "of the limit", "worst window"]);
    table.section(&format!(
        "{PROCESSES} processes with {TASKS} tasks each, {time} s at {RATE}/s, from when the burst of {BURST} is spent; \
         permits above burst + rate * w"
    ));
    for mode in ["strict", "leased"] {
        let mut processes = JoinSet::new();
        // In the middle of the second after next all are there.
        let start = server.now().await + 1_500_000;
        for _ in 0..PROCESSES {
            let words = [WORKER, &server.url(), mode, &start.to_string(), &time.to_string()];
            let args = words.map(str::to_owned);
            processes.spawn_blocking(move || again::once_more(&args).expect("a worker"));
        }
        let uses: Vec<Use> =
            processes.join_all().await.iter().flat_map(|text| uses::read(text)).collect();
        let excess = spawn_blocking({
            let uses = uses.clone();
            move || uses::excess(&uses, RATE, BURST.into())
        });
        table.row(vec![
            format!("  {mode}"),
            format!("{:.4}", part(&uses, start, time)),
            format!("{:.1}", excess.await.expect("it only counts")),
        ]);
    }
    println!("{table}");
}

/// How much of what may be used in the seconds after the start is.
fn part(uses: &[Use], start: u64, seconds: u64) -> f64 {
    let within = |used: &&Use| (start..start + seconds * 1_000_000).contains(&used.latest);
    let count = u32::try_from(uses.iter().filter(within).count()).expect("some thousands");
    let limit = u32::try_from(RATE * seconds).expect("some thousands");
    f64::from(count) / f64::from(limit)
}

/// Acquires again and again, from half a second before the start until the time is over, and prints all uses.
pub(crate) async fn work(words: &[String]) {
    let [url, mode, start, time] = words else { panic!("a worker needs four words") };
    let (start, time): (u64, u64) = (start.parse().expect("a time"), time.parse().expect("a time"));
    let client = redis::Client::open(&**url).expect("a URL");
    let connection = client.get_multiplexed_async_connection().await.expect("the server is up");
    let name = format!("total, {mode}");
    let builder = RedisLimiter::builder(connection, &name, Rate::per_second(RATE)).burst(BURST);
    let builder = if mode == "leased" { builder.lease(Lease::new()) } else { builder };
    let limiter: &RedisLimiter =
        Box::leak(Box::new(builder.build().await.expect("the server is up")));
    let clock = ServerClock::read(&client).await;
    let now = clock.used(Instant::now(), Instant::now()).earliest;
    let ahead = |until: u64| Duration::from_micros(until.saturating_sub(now));
    let end = Instant::now() + ahead(start + time * 1_000_000);
    sleep(ahead(start - 500_000)).await;
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        tasks.spawn(async move {
            let mut uses = Vec::new();
            while Instant::now() < end {
                let asked = Instant::now();
                limiter.acquire().await.expect("the server is up");
                uses.push(clock.used(asked, Instant::now()));
            }
            uses
        });
    }
    print!("{}", uses::written(&tasks.join_all().await.concat()));
}
