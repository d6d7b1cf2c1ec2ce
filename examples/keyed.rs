//! A limit per user: quotas by plan, a flood of strangers, and a user who waits for a turn.
//!
//! ```text
//! cargo run --example keyed --features keyed
//! ```

use paceline::keyed::Quota;
use paceline::{Keyed, Rate};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let free = Quota::new(Rate::per_second(2), 3);
    let paid = Quota::new(Rate::per_second(50), 100);
    let users: Keyed<String> = Keyed::builder(free)
        .quotas([paid], |user: &String| usize::from(user.starts_with("paid/")))
        .max_keys(1_000)
        .build()?;

    let granted = |user: &str| (0..200).filter(|_| users.try_acquire(user).is_ok()).count();
    println!(
        "of 200 requests at once: alice {}, paid/bob {}",
        granted("alice"),
        granted("paid/bob")
    );

    // Strangers that come once: no more than a thousand are kept, and alice is none of those who go.
    for stranger in 0..100_000 {
        let _ = users.try_acquire(&format!("stranger {stranger}"));
    }
    println!("{} users are kept; alice has {:.1} permits", users.len(), users.tokens("alice"));

    // Whoever asks in time is served, in the order in which they came.
    let waited = users.acquire("alice").await?;
    println!("alice waited {} ms for the next one", waited.as_millis());

    // One user's limit, while it runs.
    users.set_rate_of("alice", Rate::per_second(1_000))?;
    let waited = users.acquire("alice").await?;
    println!("and {} ms at a thousand a second", waited.as_millis());

    users.reset("alice");
    if let Err(refused) = users.try_acquire_many("alice", 3) {
        println!("refused: {refused}");
    }
    Ok(())
}
