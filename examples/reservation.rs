//! A turn that is booked first and decided on later: `Reservation::cancel` on timeout.
//!
//! ```text
//! cargo run --example reservation
//! ```

use paceline::{AcquireError, Limiter, Rate, Reservation};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let limiter = Limiter::new(Rate::per_second(10), 1);
    limiter.acquire().await?;

    let turns = [limiter.reserve()?, limiter.reserve()?, limiter.reserve()?];
    for (number, turn) in turns.iter().enumerate() {
        println!("turn {number} comes in {} ms", turn.delay().as_millis());
    }

    // All must be done in 250 ms. Whose turn does not come by then gives it back.
    let deadline = Instant::now() + Duration::from_millis(250);
    for (number, turn) in turns.into_iter().enumerate() {
        if wait_or_cancel(turn, deadline).await? {
            println!("turn {number} was used");
        } else {
            println!("turn {number} was cancelled; {:.1} tokens", limiter.tokens());
        }
    }

    // Who books next has the turn that was given back.
    println!("the next turn comes in {} ms", limiter.reserve()?.delay().as_millis());
    Ok(())
}

/// Whether the turn came in time.
async fn wait_or_cancel(turn: Reservation<'_>, deadline: Instant) -> Result<bool, AcquireError> {
    if let Ok(ready) = timeout_at(deadline, turn.ready()).await {
        return ready.map(|()| true);
    }
    turn.cancel();
    Ok(false)
}
