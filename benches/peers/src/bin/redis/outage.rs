//! A server that is killed under load and comes back: how long calls take, and when all is as before.

use crate::{
    Plan,
    load::TASKS,
    support::{Engine, Server},
};
use paceline::{
    Rate,
    redis::{Builder, Error, Lease, RedisLimiter, connect},
};
use paceline_peers::table::{Table, tenths};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{task::JoinSet, time::sleep};

const RATE: u32 = 1_000;
const BURST: u32 = 100;
/// The rate is back when so many are served in this time.
const BIN: Duration = Duration::from_millis(100);

/// A call: when it ended, how long it took, and whether it was served.
type Call = (Instant, Duration, bool);

pub(crate) async fn measure(engine: Engine, plan: Plan) {
    let down = Duration::from_millis(if plan.quick { 300 } else { 2_000 });
    let mut table =
        Table::new(&["", "longest call ms", "of those that fail", "back at rate after ms"]);
    table.section(&format!(
        "{TASKS} tasks that acquire, {RATE}/s; the server is killed for {down:?}"
    ));
    for (name, lease) in [("strict", None), ("leased", Some(Lease::new()))] {
        let Some(mut server) = Server::start_durable(engine).await else { return };
        let connection = connect(server.client()).await.expect("the server is up");
        let rate = Rate::per_second(RATE.into());
        let builder = RedisLimiter::builder(connection, "outage", rate).burst(BURST);
        let builder = lease.into_iter().fold(builder, Builder::lease);
        let limiter = Arc::new(builder.build().await.expect("the server is up"));
        let stop = Arc::new(AtomicBool::new(false));
        let mut tasks = JoinSet::new();
        for _ in 0..TASKS {
            tasks.spawn(acquire(Arc::clone(&limiter), Arc::clone(&stop)));
        }
        sleep(down).await;
        server.kill();
        sleep(down).await;
        server.start_again().await;
        let back = Instant::now();
        sleep(Duration::from_secs(2)).await;
        stop.store(true, Ordering::Relaxed);
        let calls: Vec<Call> = tasks.join_all().await.concat();
        let longest = |which: &dyn Fn(&&Call) -> bool| {
            let times = calls.iter().filter(which).map(|(_, took, _)| *took);
            tenths(times.max().unwrap_or_default().as_secs_f64() * 1e3)
        };
        table.row(vec![
            format!("  {name}"),
            longest(&|_| true),
            longest(&|(.., served)| !served),
            format!("{:.0}", at_rate(&calls, back).as_secs_f64() * 1e3),
        ]);
    }
    println!("{table}");
}

async fn acquire(limiter: Arc<RedisLimiter>, stop: Arc<AtomicBool>) -> Vec<Call> {
    let mut calls = Vec::new();
    // Relaxed: it tells nothing but that it is over.
    while !stop.load(Ordering::Relaxed) {
        let asked = Instant::now();
        let outcome = limiter.acquire().await;
        calls.push((Instant::now(), asked.elapsed(), outcome.is_ok()));
        if matches!(outcome, Err(Error::Failed(_))) {
            sleep(Duration::from_millis(5)).await;
        }
    }
    calls
}

/// How long after the server's return a tenth of a second ends that serves nine tenths of the rate.
fn at_rate(calls: &[Call], back: Instant) -> Duration {
    let served = |from: Duration| {
        let within = |(ended, _, served): &&Call| {
            *served && (back + from..back + from + BIN).contains(ended)
        };
        calls.iter().filter(within).count()
    };
    let enough = usize::try_from(RATE).expect("usize holds a u32") * 9 / 100;
    let mut from = Duration::ZERO;
    while served(from) < enough && from < Duration::from_secs(2) {
        from += BIN / 10;
    }
    from + BIN
}
