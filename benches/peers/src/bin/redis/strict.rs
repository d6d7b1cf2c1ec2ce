//! The cost of a call: of the whole, and of the server's part of it.

use crate::{
    Plan, floors,
    load::{self, TASKS},
    server,
    support::Server,
};
use paceline::{Rate, redis::RedisLimiter};
use paceline_peers::{measure::middle, table::Table};
use redis::{Script, aio::MultiplexedConnection};
use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

type Call = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

struct Subject {
    name: &'static str,
    call: Call,
    per_second: Vec<f64>,
    micros: Vec<f64>,
}

impl Subject {
    fn new(name: &'static str, call: Call) -> Self {
        Self { name, call, per_second: Vec::new(), micros: Vec::new() }
    }
}

pub(crate) async fn measure(server: &Server, plan: Plan) {
    let connection = server.connection().await;
    let mut subjects = [
        Subject::new("a script of nothing", script(floors::empty(), &connection)),
        Subject::new("a GCRA script: TIME, GET, SET", script(floors::gcra(), &connection)),
        Subject::new(
            "try_acquire, granted",
            limiter("granted", Rate::per_second(1_000_000), &connection).await,
        ),
        Subject::new(
            "try_acquire, refused",
            limiter("refused", Rate::per_hour(1), &connection).await,
        ),
    ];
    for run in 0..plan.runs {
        // A B C D, D C B A: what goes on meets all of them.
        let order: Vec<usize> =
            if run % 2 == 0 { (0..4).collect() } else { (0..4).rev().collect() };
        for index in order {
            let subject = &mut subjects[index];
            round(subject, plan.round, connection.clone()).await;
        }
    }
    let floor = middle(subjects[0].per_second.clone());
    let gcra = middle(subjects[1].micros.clone());
    let mut table =
        Table::new(&["", "calls/s", "of nothing", "us on the server (one task)", "of GCRA"]);
    table.section(&format!("{TASKS} tasks over one connection"));
    for Subject { name, per_second, micros, .. } in subjects {
        let (per_second, micros) = (middle(per_second), middle(micros));
        table.row(vec![
            format!("  {name}"),
            format!("{per_second:.0}"),
            format!("{:.2}", per_second / floor),
            format!("{micros:.2}"),
            format!("{:.2}", micros / gcra),
        ]);
    }
    println!("\n{table}");
}

async fn round(subject: &mut Subject, time: Duration, mut connection: MultiplexedConnection) {
    let load = |tasks| {
        let call = Arc::clone(&subject.call);
        load::per_second(time, tasks, move || call())
    };
    subject.per_second.push(load(TASKS).await);
    // Of one task, each of whose requests is a script of its own.
    let (micros, calls) = server::scripts(&mut connection).await;
    load(1).await;
    let (micros_after, calls_after) = server::scripts(&mut connection).await;
    subject.micros.push((micros_after - micros) / (calls_after - calls));
}

fn script(script: Script, connection: &MultiplexedConnection) -> Call {
    let (script, connection) = (Arc::new(script), connection.clone());
    Arc::new(move || {
        let (script, mut connection) = (Arc::clone(&script), connection.clone());
        Box::pin(async move { floors::call(&script, "floor", &mut connection).await })
    })
}

/// With a burst of a million, which nobody empties at a million per second.
async fn limiter(name: &str, rate: Rate, connection: &MultiplexedConnection) -> Call {
    let burst = if rate == Rate::per_hour(1) { 1 } else { 1_000_000 };
    let limiter = RedisLimiter::builder(connection.clone(), name, rate).burst(burst).build().await;
    let limiter = Arc::new(limiter.expect("the server is up"));
    Arc::new(move || {
        let limiter = Arc::clone(&limiter);
        Box::pin(async move {
            // Refused or not, the script has run.
            let _ = limiter.try_acquire().await;
        })
    })
}
