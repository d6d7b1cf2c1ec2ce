//! Pacing jobs of different weights: a nightly batch that may cost a database so much and no more.
//!
//! A job costs as many permits as it reads rows (in thousands). Small jobs are not held up for good by
//! big ones, nor the other way around, since turns come in the order of asking; a job whose deadline
//! can't be met is refused before it costs anything; and one that is called off gives back its turn.
//!
//!     cargo run --release --example scheduler

use paceline::{AcquireError, Limiter, Rate};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// What the database may be asked for: thousands of rows a second, and at once.
const RATE: Rate = Rate::per_second(100);
const BURST: u32 = 50;

struct Job {
    name: &'static str,
    /// Thousands of rows.
    weight: u32,
    /// The longest that it is worth waiting for.
    patience: Duration,
}

const fn job(name: &'static str, weight: u32, patience_ms: u64) -> Job {
    Job { name, weight, patience: Duration::from_millis(patience_ms) }
}

const JOBS: [Job; 8] = [
    job("invoices", 50, 2_000),
    job("reminders", 5, 2_000),
    job("statistics", 40, 2_000),
    job("clean-up", 10, 100),
    job("newsletter", 30, 2_000),
    job("thumbnails", 20, 2_000),
    job("all of it", 80, 2_000),
    job("audit", 1, 2_000),
];

// Time is paused: it goes on by itself to the next turn as soon as all wait. So the plan for two
// seconds is made in no time, and comes out the same each time.
#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    let limiter = Arc::new(Limiter::new(RATE, BURST));
    let began = Instant::now();
    println!("{RATE} thousand rows, {BURST} at once\n");
    println!("{:>8}  {:<12}{:>6}  ", "ms", "job", "weight");

    let start = |job| tokio::spawn(run(job, Arc::clone(&limiter), began));
    let mut jobs: Vec<_> = JOBS.into_iter().map(start).collect();
    // One is called off while it waits for its turn, and one that comes later has it.
    sleep(Duration::from_millis(300)).await;
    jobs.remove(4).abort();
    println!("{:>8}  {:<12}{:>6}  is called off", 300, "newsletter", 30);
    jobs.push(start(job("urgent fix", 30, 500)));
    for job in jobs {
        job.await.expect("no job panics");
    }
    let took = began.elapsed();
    println!("\nall done after {took:?}");
}

async fn run(job: Job, limiter: Arc<Limiter>, began: Instant) {
    let Job { name, weight, patience } = job;
    let outcome = match limiter.acquire_many(weight).within(patience).await {
        Ok(_) => String::from("runs"),
        Err(AcquireError::ExceedsBurst { burst, .. }) => {
            // More than can ever be had at once: in parts, which others may come between.
            let mut left = weight;
            while left > 0 {
                let part = left.min(burst / 2);
                limiter.acquire_many(part).await.expect("half a burst, and nobody closes it");
                left -= part;
            }
            format!("runs, in parts of {}", burst / 2)
        }
        Err(refused) => format!("is left out: {refused}"),
    };
    let at = began.elapsed().as_millis();
    println!("{at:>8}  {name:<12}{weight:>6}  {outcome}");
}
