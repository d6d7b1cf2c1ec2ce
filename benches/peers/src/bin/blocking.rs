//! Prints which part of its rate threads reach that block for their permits, and how evenly they are
//! served.
//!
//! `--quick` only shows that everything runs; `--runs N` measures so often, and what is printed are
//! medians.

#![expect(clippy::cast_precision_loss, reason = "figures for people")]

use paceline::{Limiter, Rate};
use paceline_peers::{measure::middle, options::Options, process, table::Table};
use std::{
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

const THREADS: u32 = 16;
const RATES: [(u64, &str); 3] = [(100, "100/s"), (1_000, "1k/s"), (10_000, "10k/s")];

fn main() -> ExitCode {
    match Options::from_args(std::env::args().skip(1)) {
        Ok(options) if options.rest.is_empty() => {
            run(&options);
            ExitCode::SUCCESS
        }
        Ok(_) | Err(_) => {
            eprintln!("usage: blocking {}", Options::USAGE);
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) {
    let (time, runs) = if options.quick { (1, 1) } else { (5, options.runs.unwrap_or(5)) };
    let time = Duration::from_secs(time);
    println!("{THREADS} threads that call blocking_acquire for {time:?}, with a burst of 1.\n");
    let mut table = Table::new(&["", "part of the rate", "Jain's index", "processor"]);
    for (rate, name) in RATES.iter().filter(|(_, name)| options.wants(name)) {
        let runs: Vec<_> = (0..runs).map(|_| measure(*rate, time)).collect();
        let of = |figure: fn(&Run) -> f64| middle(runs.iter().map(figure).collect());
        table.row(vec![
            (*name).to_owned(),
            format!("{:.4}", of(|run| run.part)),
            format!("{:.5}", of(|run| run.jain)),
            format!("{:.1} %", of(|run| run.cpu) * 100.0),
        ]);
    }
    println!("{table}");
}

struct Run {
    part: f64,
    jain: f64,
    cpu: f64,
}

fn measure(rate: u64, time: Duration) -> Run {
    let limiter = Limiter::builder(Rate::per_second(rate)).initial(0).build().expect("it is valid");
    let (began, cpu) = (Instant::now(), process::cpu());
    let end = began + time;
    let shares: Vec<f64> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    let mut share = 0.0;
                    // Who has a turn before the end has it within the time.
                    while limiter.acquire().before(end.into()).blocking().is_ok() {
                        share += 1.0;
                    }
                    share
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let cpu = process::cpu().saturating_sub(cpu).as_secs_f64() / time.as_secs_f64();
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    Run {
        part: sum / (rate as f64 * time.as_secs_f64()),
        jain: sum * sum / (f64::from(THREADS) * squares),
        cpu,
    }
}
