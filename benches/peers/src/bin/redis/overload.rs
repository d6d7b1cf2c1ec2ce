//! Four times the limit, from callers who give up after a while, over several connections.

use crate::{Plan, server, support::Server};
use paceline::{
    Rate,
    redis::{Builder, Lease, RedisLimiter},
};
use paceline_peers::table::Table;
use std::time::Duration;
use tokio::{
    task::JoinSet,
    time::{Instant, interval, timeout},
};

const CONNECTIONS: usize = 3;
const RATE: u64 = 100;
const BURST: u32 = 10;
/// One comes after so long, and gives up after that.
const EACH: Duration = Duration::from_micros(2_500);
const PATIENCE: Duration = Duration::from_millis(100);

pub(crate) async fn measure(server: &Server, plan: Plan) {
    let seconds: u64 = if plan.quick { 1 } else { 8 };
    let mut table = Table::new(&["", "permits in each second"]);
    table.section(&format!(
        "{RATE}/s, burst {BURST}; over {CONNECTIONS} connections one comes each {EACH:?}, and gives up after {PATIENCE:?}"
    ));
    for (name, lease) in [("strict", None), ("leased", Some(Lease::new()))] {
        let mut limiters = Vec::new();
        for _ in 0..CONNECTIONS {
            let rate = Rate::per_second(RATE);
            let builder = RedisLimiter::builder(server.connection().await, "overload", rate);
            let builder = builder.burst(BURST);
            let builder = lease.into_iter().fold(builder, Builder::lease);
            limiters.push(builder.build().await.expect("the server is up"));
        }
        let counts = served(&limiters, seconds).await;
        let () = server::ask(&mut server.connection().await, &["FLUSHALL", "ASYNC"]).await;
        table.row(vec![format!("  {name}"), format!("{counts:?}")]);
    }
    println!("{table}");
}

async fn served(limiters: &[RedisLimiter], seconds: u64) -> Vec<u32> {
    let began = Instant::now();
    let mut ticks = interval(EACH);
    let mut callers = JoinSet::new();
    for limiter in limiters.iter().cycle() {
        if ticks.tick().await.duration_since(began).as_secs() >= seconds {
            break;
        }
        let limiter = limiter.clone();
        callers.spawn(async move {
            let acquired = timeout(PATIENCE, limiter.acquire().into_future()).await;
            acquired.is_ok_and(|acquired| acquired.is_ok()).then(|| began.elapsed().as_secs())
        });
    }
    let mut counts: Vec<u32> = (0..seconds).map(|_| 0).collect();
    for second in callers.join_all().await.into_iter().flatten() {
        if let Some(count) = usize::try_from(second).ok().and_then(|second| counts.get_mut(second))
        {
            *count += 1;
        }
    }
    counts
}
