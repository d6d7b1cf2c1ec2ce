//! Threads without a runtime share a rate, in turns.
//!
//! ```sh
//! cargo run --release --example blocking
//! ```

use paceline::{AcquireError, Limiter, Rate};
use std::thread;
use std::time::{Duration, Instant};

const THREADS: u32 = 8;
const JOBS: u32 = 100;

fn main() {
    let limiter = Limiter::new(Rate::per_second(1000), 1);
    let began = Instant::now();
    thread::scope(|scope| {
        let workers = (0..THREADS).map(|_| scope.spawn(|| work(&limiter, JOBS)));
        for (number, worker) in workers.collect::<Vec<_>>().into_iter().enumerate() {
            let longest = worker.join().expect("a worker does not panic");
            println!("worker {number}: {JOBS} jobs, waited for {longest:.1?} at most");
        }
    });
    let rate = f64::from(THREADS * JOBS) / began.elapsed().as_secs_f64();
    println!("together: {rate:.0} jobs per second");

    // A bound, refused at once; and one who waits hears that the limiter closes.
    let _ = limiter.set_rate(Rate::per_hour(1));
    let refused = limiter.acquire().within(Duration::from_millis(100)).blocking();
    println!("at one an hour: {}", refused.expect_err("too late"));
    thread::scope(|scope| {
        let waiter = scope.spawn(|| limiter.blocking_acquire());
        limiter.close();
        assert_eq!(waiter.join().expect("no panic"), Err(AcquireError::Closed));
    });
}

/// Does so many jobs, each in its turn; says how long the longest wait was.
fn work(limiter: &Limiter, jobs: u32) -> Duration {
    let wait = |_| limiter.blocking_acquire().expect("the limiter is open");
    (0..jobs).map(wait).max().unwrap_or_default()
}
