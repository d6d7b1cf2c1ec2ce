//! A stream and a sink that keep to a rate, one of them by weight.
//!
//! ```sh
//! cargo run --release --features stream --example stream
//! ```

use futures::{SinkExt, StreamExt, stream};
use paceline::stream::{SinkRateLimitExt, StreamRateLimitExt};
use paceline::{Limiter, Rate};
use std::time::Instant;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let began = Instant::now();
    let per_second = Limiter::new(Rate::per_second(10), 1);

    // An item for each permit. It may be dropped and polled again at any time.
    let mut jobs = stream::iter(["read", "parse", "store"]).rate_limit_stream(&per_second);
    while let Some(job) = jobs.next().await {
        println!("{:>4} ms  {}", began.elapsed().as_millis(), job?);
    }

    // By weight: 200 characters per second, of which one item may be 50. What is heavier comes back.
    let characters = Limiter::new(Rate::per_second(200), 50);
    let length = |line: &String| u32::try_from(line.len()).unwrap_or(u32::MAX);
    let mut sink = Vec::new().rate_limit_sink_by(&characters, length);
    for length in [30, 60, 45] {
        match sink.send("x".repeat(length)).await {
            Ok(()) => println!("{:>4} ms  sent {length}", began.elapsed().as_millis()),
            Err(refused) => println!("{:>4} ms  {refused}", began.elapsed().as_millis()),
        }
    }
    let (sent, waiting) = sink.into_parts();
    assert_eq!((sent.len(), waiting), (2, None));
    Ok(())
}
