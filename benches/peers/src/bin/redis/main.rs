//! Prints what a limit on a server costs beside what nothing can be had without, and how near it comes
//! to its rate: strict and leased.
//!
//! It starts servers of its own, on ports that are free. `--quick` only shows that everything runs;
//! `--only WORD` keeps the figures whose name contains the word (`strict`, `script`, `memory`, `leased`,
//! `total`,
//! `outage`, `overload`); `--runs N` measures each figure in so many rounds and prints the median.

mod floors;
mod leased;
mod load;
mod memory;
mod outage;
mod overload;
mod server;
mod strict;
#[expect(dead_code, unused_imports, reason = "the tests do more to their servers")]
#[path = "../../../../../tests/redis/support/mod.rs"]
mod support;
mod total;

use paceline_peers::{options::Options, versions};
use std::{process::ExitCode, thread, time::Duration};
use support::{Engine, Server};

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a multi_thread runtime");
    match Options::from_args(std::env::args().skip(1)) {
        Ok(options) if options.rest.is_empty() => {
            for engine in Engine::ALL {
                runtime.block_on(run(engine, &options));
            }
            ExitCode::SUCCESS
        }
        Ok(options) if options.rest.first().is_some_and(|word| word == total::WORKER) => {
            runtime.block_on(total::work(&options.rest[1..]));
            ExitCode::SUCCESS
        }
        Ok(_) | Err(_) => {
            eprintln!("usage: redis {}", Options::USAGE);
            ExitCode::FAILURE
        }
    }
}

/// How long, and how often.
#[derive(Clone, Copy)]
struct Plan {
    quick: bool,
    runs: u32,
    round: Duration,
}

async fn run(engine: Engine, options: &Options) {
    let Some(server) = Server::start(engine).await else { return };
    let quick = options.quick;
    let runs = options.runs.unwrap_or(if quick { 1 } else { 9 });
    let round = Duration::from_millis(if quick { 50 } else { 400 });
    let plan = Plan { quick, runs, round };
    println!(
        "\n{}. Medians; rounds: {runs}, {round:?} each. Cores: {}.\n{}.",
        engine.name(),
        thread::available_parallelism().map_or(0, usize::from),
        versions::list(["tokio", "redis"])
    );
    if options.wants("strict") || options.wants("script") {
        strict::measure(&server, plan).await;
    }
    if options.wants("memory") {
        memory::measure(&server, plan).await;
    }
    if options.wants("leased") {
        leased::measure(&server, plan).await;
    }
    if options.wants("overload") {
        overload::measure(&server, plan).await;
    }
    if options.wants("outage") {
        outage::measure(engine, plan).await;
    }
    if options.wants("total") {
        total::measure(&server, plan).await;
    }
}
