//! Takes of several policies: all or nothing.

use super::Key;
use super::policies::Asks;
use crate::error::{AcquireError, TryAcquireError};
use std::time::Duration;

/// So many permits for a key.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) key: Key,
    pub(super) permits: u32,
}

/// Takes what can be had now.
pub(super) fn now(asks: &Asks) -> Result<(), TryAcquireError> {
    for (policy, ask) in asks.iter().skip(1) {
        policy.limiter().peek_many(&ask.key, ask.permits)?;
    }
    for (policy, ask) in asks.iter() {
        policy.limiter().try_acquire_many(&ask.key, ask.permits)?;
    }
    Ok(())
}

/// Waits until all can be had.
pub(super) async fn in_turn(asks: &Asks, within: Option<Duration>) -> Result<(), AcquireError> {
    for (policy, ask) in asks.iter() {
        policy.limiter().acquire_many(&ask.key, ask.permits, within).await?;
    }
    Ok(())
}
