//! The same requests through every kind of limiter, each of ten per second.
//!
//! ```text
//! cargo run --release --example algorithms            # the chart goes beside the program
//! cargo run --release --example algorithms chart.svg  # or here
//! ```
//!
//! A caller waits for up to 300 ms, and is refused at once if its turn would come later. Time is
//! Tokio's paused clock, which jumps from one event to the next: six seconds take none, and every run
//! has the same outcome.
//!
//! What to look at: in the scene of the bursts, a fixed window lets twice its limit through within a
//! tenth of a second, around the boundary of two windows. The others let through what they have
//! gathered at most, or spread it.

mod chart;
mod limiters;
mod scenes;
mod table;

use std::env;
use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use futures::future::join_all;
use paceline::DynRateLimit;
use tokio::time::{Instant, sleep_until};

use limiters::LIMITERS;
use scenes::Scene;

/// Permits per second of each limiter.
const LIMIT: u32 = 10;
/// How long a caller waits for its turn.
const PATIENCE: Duration = Duration::from_millis(300);

/// What one limiter did with one scene.
struct Outcome {
    /// When somebody was admitted, from the beginning of the scene.
    admitted: Vec<Duration>,
    refused: usize,
}

impl Outcome {
    /// The most that were admitted within a second, and when that second began.
    fn fullest_second(&self) -> (usize, Duration) {
        let second = |from: &Duration| *from..*from + Duration::from_secs(1);
        let count = |from| self.admitted.iter().filter(|time| second(from).contains(*time)).count();
        let all = self.admitted.iter().map(|from| (count(from), *from));
        // The first of several.
        all.rev().max_by_key(|(count, _)| *count).unwrap_or_default()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let scenes = scenes::all();
    let outcomes: Vec<(&str, Vec<Outcome>)> = LIMITERS
        .iter()
        .map(|(name, limiter)| {
            let outcomes = scenes.iter().map(|scene| play(scene, *limiter)).collect();
            (*name, outcomes)
        })
        .collect();
    table::print(&scenes, &outcomes);

    // Beside the program, and so under `target`, wherever that is.
    let path = match env::args_os().nth(1) {
        Some(path) => PathBuf::from(path),
        None => env::current_exe()?.with_extension("svg"),
    };
    chart::draw(&path, &scenes, &outcomes)?;
    let shown = path.strip_prefix(env::current_dir()?).unwrap_or(&path);
    println!("\nThe same as a chart: {}", shown.display());
    Ok(())
}

/// Plays a scene to a limiter that is made at its beginning.
fn play(scene: &Scene, limiter: fn() -> Box<dyn DynRateLimit>) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime with nothing but a timer");
    runtime.block_on(async {
        let (limiter, begin) = (limiter(), Instant::now());
        let callers = scene.arrivals.iter().map(|arrival| {
            let limiter = &limiter;
            async move {
                sleep_until(begin + *arrival).await;
                let served = limiter.acquire_many_within(1, PATIENCE).await;
                served.is_ok().then(|| begin.elapsed())
            }
        });
        let served = join_all(callers).await;
        let mut admitted: Vec<_> = served.iter().copied().flatten().collect();
        admitted.sort();
        Outcome { refused: served.len() - admitted.len(), admitted }
    })
}
