//! From Guava's `RateLimiter` to here: an even pace, a warm-up, and a `tryAcquire` that waits for a
//! while.
//!
//! ```text
//! cargo run --example guava
//! ```
//!
//! Time is paused, so it is over at once: what is printed are the waits.

use paceline::Rate;
use paceline::smooth::{SmoothBursty, SmoothWarmingUp};
use std::time::Duration;

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // RateLimiter.create(5.0)
    let packets = SmoothBursty::new(Rate::per_second(5));
    for permits in [4, 10, 1] {
        // acquire(permits): each request pays for the one before it.
        let waited = packets.acquire_many(permits).await?;
        println!("acquire({permits}) waited {:.1} s", waited.as_secs_f64());
    }

    // tryAcquire(), and tryAcquire(1, 300, MILLISECONDS)
    if let Err(refused) = packets.try_acquire() {
        println!("tryAcquire(): {refused}");
    }
    let waited = packets.acquire().within(Duration::from_millis(300)).await?;
    println!("tryAcquire(300 ms) waited {:.1} s", waited.as_secs_f64());

    // RateLimiter.create(2.0, Duration.ofSeconds(4))
    let queries = SmoothWarmingUp::new(Rate::per_second(2), Duration::from_secs(4));
    print!("a cold limiter, and how it warms up:");
    for _ in 0..8 {
        print!(" {:.3}", queries.acquire().await?.as_secs_f64());
    }
    println!(" s");
    Ok(())
}
