//! The verbs in a few lines: try, await, give up, ask first.
//!
//! ```text
//! cargo run --example quickstart
//! ```

use paceline::{Limiter, Rate};
use std::time::Duration;
use tokio::time::timeout;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // 20 permits per second, of which up to 2 are kept for when they are wanted.
    let limiter = Limiter::new(Rate::per_second(20), 2);

    for call in 1..=5 {
        let waited = limiter.acquire().await?;
        println!("call {call} waited {} ms", waited.as_millis());
    }

    // Now, or not at all. The refusal knows when to come back.
    if let Err(refused) = limiter.try_acquire() {
        println!("refused: {refused}");
    }

    // A caller that gives up drops its future, and so gives its turn back.
    if timeout(Duration::from_millis(10), limiter.acquire()).await.is_err() {
        println!("gave up after 10 ms; {:.1} tokens, none of them lost", limiter.tokens());
    }

    // One that knows how long it can wait is told at once.
    if let Err(refused) = limiter.acquire_many(2).within(Duration::from_millis(10)).await {
        println!("refused: {refused}");
    }
    Ok(())
}
