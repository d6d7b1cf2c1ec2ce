//! Takes of all the policies that a request is under, or of none.

use super::policies::Asks;
use crate::all::All;
use crate::all::members::weightier;
use crate::error::{AcquireError, TryAcquireError};
use std::time::Duration;

/// Takes what can be had now.
///
/// It looks at all before it takes of the first; only where another thread comes in between is
/// something taken and given back.
pub(super) fn now(asks: &Asks) -> Result<(), TryAcquireError> {
    if asks.len() > 1 {
        if let Some(refusal) = asks.iter().filter_map(|ask| ask.refusal()).reduce(weightier) {
            return Err(refusal);
        }
    }
    for (taken, ask) in asks.iter().enumerate() {
        if let Err(refusal) = ask.policy.limiter().try_acquire_many(ask.key, ask.permits) {
            for ask in asks.iter().take(taken) {
                ask.policy.limiter().give_back(ask.key, ask.permits);
            }
            return Err(refusal);
        }
    }
    Ok(())
}

/// Waits until all can be had, within so long if that is said.
pub(super) async fn in_turn(asks: &Asks, within: Option<Duration>) -> Result<(), AcquireError> {
    if let [ask] = asks.iter().collect::<Vec<_>>()[..] {
        let mut acquire = ask.policy.limiter().acquire_many(ask.key, ask.permits);
        if let Some(within) = within {
            acquire = acquire.within(within);
        }
        return acquire.await.map(drop);
    }
    let shares = asks.iter().map(|ask| ask.policy.limiter().share(ask.key, ask.permits));
    let all = All::new(shares.collect::<Vec<_>>());
    let permits = match within {
        Some(within) => all.acquire_many_within(1, within).await?,
        None => all.acquire().await?,
    };
    drop(permits);
    Ok(())
}
