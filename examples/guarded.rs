//! A client with all that guards a downstream: two rates and a number at a time that hold together, a
//! circuit breaker, and a log that is not flooded.
//!
//!     cargo run --release --example guarded

use paceline::{All, BreakerState, CircuitBreaker, Concurrency, Limiter, Rate, Sometimes};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::time::{Instant, sleep};

struct Client {
    per_second: Limiter,
    per_minute: Limiter,
    at_a_time: Concurrency,
    breaker: CircuitBreaker,
    log: Sometimes,
    began: Instant,
    served: AtomicU32,
    failed: AtomicU32,
    refused: AtomicU32,
}

impl Client {
    fn new() -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            per_second: Limiter::new(Rate::per_second(20), 5),
            per_minute: Limiter::new(Rate::per_minute(600), 100),
            at_a_time: Concurrency::new(4),
            // Half of the last ten failed: three seconds' rest, and then two probes.
            breaker: CircuitBreaker::new(5, 10, Duration::from_secs(3))?.probes(2)?,
            log: Sometimes::new().first(1).interval(Duration::from_secs(2)),
            began: Instant::now(),
            served: AtomicU32::new(0),
            failed: AtomicU32::new(0),
            refused: AtomicU32::new(0),
        })
    }

    async fn call(&self) {
        // First of all, so that what is refused here takes no permit.
        let Ok(call) = self.breaker.enter() else {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let limits = All::new((&self.per_second, &self.per_minute, &self.at_a_time));
        let Ok(_permits) = limits.acquire_many_within(1, Duration::from_secs(1)).await else {
            // That is no failure of the downstream: the call says nothing.
            self.refused.fetch_add(1, Ordering::Relaxed);
            return;
        };
        match self.downstream().await {
            Ok(()) => {
                call.succeeded();
                self.served.fetch_add(1, Ordering::Relaxed);
            }
            Err(why) => {
                call.failed();
                self.failed.fetch_add(1, Ordering::Relaxed);
                let at = self.began.elapsed();
                self.log.call(|| println!("  {at:>5.1?}  a call failed: {why}"));
            }
        }
    }

    /// Takes 100 ms, and is broken from the fourth to the eighth second.
    async fn downstream(&self) -> Result<(), &'static str> {
        sleep(Duration::from_millis(100)).await;
        let broken = Duration::from_secs(4)..Duration::from_secs(8);
        if broken.contains(&self.began.elapsed()) { Err("502 Bad Gateway") } else { Ok(()) }
    }
}

// On paused time, so that twelve seconds take none and come out the same each time.
#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = Arc::new(Client::new()?);
    let callers = Arc::clone(&client);
    tokio::spawn(async move {
        loop {
            let client = Arc::clone(&callers);
            tokio::spawn(async move { client.call().await });
            sleep(Duration::from_millis(25)).await;
        }
    });
    println!("40 calls a second to a downstream that is broken for four seconds\n");
    for second in 1..=12 {
        sleep(Duration::from_secs(1)).await;
        let count = |counter: &AtomicU32| counter.swap(0, Ordering::Relaxed);
        let state = match client.breaker.state() {
            BreakerState::Open { remaining } => format!("open for {remaining:.1?}"),
            state => state.to_string(),
        };
        println!(
            "second {second:>2}: served {:>3}, failed {:>3}, refused {:>3}   breaker {state}",
            count(&client.served),
            count(&client.failed),
            count(&client.refused),
        );
    }
    Ok(())
}
