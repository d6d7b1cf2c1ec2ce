//! A client of an API that finds out how much the API can take.
//!
//! ```text
//! cargo run --release --example api_client            # eight seconds
//! cargo run --release --example api_client -- 2       # or as many as you say
//! ```
//!
//! The API (`server.rs`) answers 429 with `Retry-After` to what is beyond its capacity, which is not
//! known to the client; midway that falls to less than half, and answers take three times as long. A
//! hundred tasks (`client.rs`) call it for as long as they are let. What they do together follows what
//! the API can take: a rate that goes by its refusals, and a concurrency limit that goes by how long it
//! takes. Then a table is printed, and `chart.rs` draws it.

mod chart;
mod client;
mod server;

use std::env;
use std::error::Error;
use std::time::Duration;

use client::Outcome;

/// Why the example could not be shown to the end.
type Failure = Box<dyn Error + Send + Sync>;

/// What the API takes per second, before and after it slows down, and how long an answer takes.
const BEFORE: (u32, Duration) = (200, Duration::from_millis(20));
const AFTER: (u32, Duration) = (80, Duration::from_millis(60));

/// What happened in a stretch of time.
#[derive(Clone, Default)]
struct Bin {
    capacity: u32,
    /// The rate and the concurrency at its end.
    rate: f64,
    at_a_time: u32,
    served: u32,
    refused: u32,
    /// How long those who were served waited for their answer, in milliseconds.
    latencies: Vec<f64>,
}

impl Bin {
    const LENGTH: Duration = Duration::from_millis(250);

    fn per_second(count: u32) -> f64 {
        f64::from(count) / Self::LENGTH.as_secs_f64()
    }

    /// The latency that such a part of those who were served did not exceed, if any were.
    fn latency(&self, per_cent: usize) -> Option<f64> {
        let mut sorted = self.latencies.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        Some(sorted[last * per_cent / 100])
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let seconds = env::args().nth(1).map_or(Ok(8.0), |seconds| seconds.parse())?;
    let length = Duration::try_from_secs_f64(seconds)?;
    let server = server::start(length / 2).await?;
    println!(
        "An API on http://{server} that takes {}/s, and {}/s from {:?} on.\n",
        BEFORE.0,
        AFTER.0,
        length / 2
    );
    let bins = client::run(server, length).await?;
    print(&bins);

    // Beside the program, and so under `target`, wherever that is.
    let path = env::current_exe()?.with_extension("svg");
    chart::draw(&path, &bins)?;
    let shown = path.strip_prefix(env::current_dir()?).unwrap_or(&path);
    println!("\nThe same as a chart: {}", shown.display());
    Ok(())
}

fn print(bins: &[Bin]) {
    println!(
        "{:>7} {:>9} {:>9} {:>8} {:>8} {:>9} {:>9} {:>9}",
        "second", "capacity", "allowed", "served", "refused", "at once", "p50", "p99"
    );
    for (second, bins) in (1..).zip(bins.chunks(4)) {
        let Some(last) = bins.last() else { continue };
        let sum = |of: fn(&Bin) -> u32| bins.iter().map(of).sum::<u32>();
        let all = Bin {
            latencies: bins.iter().flat_map(|bin| bin.latencies.clone()).collect(),
            ..last.clone()
        };
        let latency =
            |per_cent| all.latency(per_cent).map_or("-".to_owned(), |ms| format!("{ms:.0} ms"));
        println!(
            "{second:>7} {:>7}/s {:>7.0}/s {:>8} {:>8} {:>9} {:>9} {:>9}",
            all.capacity,
            all.rate,
            sum(|bin| bin.served),
            sum(|bin| bin.refused),
            all.at_a_time,
            latency(50),
            latency(99),
        );
    }
}

/// Which capacity holds after `passed` of a run in which it falls `midway`.
fn capacity(passed: Duration, midway: Duration) -> (u32, Duration) {
    if passed < midway { BEFORE } else { AFTER }
}

/// What a status says became of the call.
fn outcome(status: axum::http::StatusCode) -> Result<Outcome, Failure> {
    match status.as_u16() {
        200 => Ok(Outcome::Served),
        429 => Ok(Outcome::Refused),
        _ => Err(format!("the API answered {status}").into()),
    }
}
