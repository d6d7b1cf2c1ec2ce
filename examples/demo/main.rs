//! An HTTP service offered four times what it allows, by callers who do not wait long.
//!
//! ```text
//! cargo run --release --example demo
//! ```
//!
//! The service (`server.rs`) takes a permit for every request that it answers. Its callers
//! (`clients.rs`) come whether or not it keeps up, and hang up after a tenth of a second. That is
//! where rate limiters break down: a turn booked for a caller who has left is a turn that nobody
//! uses, and under overload nearly all have left before their turn comes.
//!
//! So the same load goes to two limiters. With one, the future of [`Limiter::acquire`] is dropped
//! when its caller leaves, and the turn goes to somebody else; with the other, a turn once booked
//! stays booked. After ten seconds `report.rs` prints what became of the requests, and `chart.rs`
//! draws it.

mod chart;
mod clients;
mod report;
mod server;

use std::env;
use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use paceline::{Limiter, Rate};

/// Why the demo could not be shown to the end.
type Failure = Box<dyn Error + Send + Sync>;

/// Requests per second that the service allows.
const LIMIT: u32 = 100;
/// Requests that it allows at once after a quiet time.
const BURST: u32 = 10;
/// Requests per second that its callers send, on average.
const OFFERED: u32 = 400;
/// How long a caller waits for an answer.
const PATIENCE: Duration = Duration::from_millis(100);
/// How long the callers keep coming.
const LOAD: Duration = Duration::from_secs(10);
/// The callers come at random, but at the same random times in every run.
const SEED: u64 = 7;

#[tokio::main]
async fn main() -> ExitCode {
    match demo().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // HTTP clients say "client error" and keep the reason one level down.
            let mut message = format!("the demo failed: {error}");
            let mut source = error.source();
            while let Some(cause) = source {
                message = format!("{message}: {cause}");
                source = cause.source();
            }
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

async fn demo() -> Result<(), Failure> {
    let limiter = || Limiter::new(Rate::per_second(u64::from(LIMIT)), BURST);
    let server = server::start(limiter(), limiter()).await?;

    println!(
        "A service on http://{server} has two limiters, each of {LIMIT}/s (burst {BURST}).\n\
         For {} s callers send {OFFERED} requests/s to each, and hang up after {} ms.\n",
        LOAD.as_secs(),
        PATIENCE.as_millis(),
    );

    // Two crowds, one for each limiter, who come at the same times and ask for the same things.
    let arrivals = clients::arrivals(OFFERED, LOAD, SEED);
    let progress = report::progress(2 * arrivals.len())?;
    let ended = tokio::try_join!(
        clients::offer(format!("http://{server}/given-back"), &arrivals, &progress),
        clients::offer(format!("http://{server}/kept"), &arrivals, &progress),
    );
    progress.finish_and_clear();
    let (given_back, kept) = ended?;

    report::print(&given_back, &kept)?;

    // Beside the program, and so under `target`, wherever that is.
    let path = env::current_exe()?.with_extension("svg");
    chart::draw(&path, &given_back, &kept)?;
    let shown = path.strip_prefix(env::current_dir()?).unwrap_or(&path);
    println!("\nThe same as a chart: {}", shown.display());
    Ok(())
}
