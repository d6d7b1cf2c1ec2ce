//! What can be seen from outside with the feature `tracing`. Without it, all of this is nothing.
//!
//! The names of the events and their fields are part of the public interface; they are listed in
//! the crate's documentation. Nothing is told of a request that is served at once.

#[cfg(feature = "tracing")]
mod events {
    use crate::breaker::BreakerState;
    use crate::error::AcquireError;
    use crate::rate::Rate;
    use std::time::Duration;
    use tracing::{Level, event};

    /// Where all events come from.
    const TARGET: &str = "paceline";

    pub(crate) fn wait_began(permits: u32) {
        event!(name: "wait.began", target: TARGET, Level::TRACE, permits);
    }

    pub(crate) fn wait_ended(permits: u32, waited: Duration) {
        event!(name: "wait.ended", target: TARGET, Level::TRACE, permits, ?waited);
    }

    pub(crate) fn wait_refused(error: &AcquireError) {
        event!(name: "wait.refused", target: TARGET, Level::TRACE, %error);
    }

    pub(crate) fn wait_cancelled(permits: impl FnOnce() -> u32) {
        let permits = permits();
        event!(name: "wait.cancelled", target: TARGET, Level::TRACE, permits);
    }

    pub(crate) fn rate_set(rate: Rate) {
        event!(name: "rate.set", target: TARGET, Level::DEBUG, %rate);
    }

    pub(crate) fn burst_set(burst: u32) {
        event!(name: "burst.set", target: TARGET, Level::DEBUG, burst);
    }

    pub(crate) fn paused(pause: Duration) {
        event!(name: "paused", target: TARGET, Level::DEBUG, ?pause);
    }

    pub(crate) fn resumed() {
        event!(name: "resumed", target: TARGET, Level::DEBUG, "resumed");
    }

    pub(crate) fn closed() {
        event!(name: "closed", target: TARGET, Level::DEBUG, "closed");
    }

    pub(crate) fn breaker(state: BreakerState) {
        event!(name: "breaker.state", target: TARGET, Level::DEBUG, %state);
    }
}

#[cfg(not(feature = "tracing"))]
mod events {
    use crate::breaker::BreakerState;
    use crate::error::AcquireError;
    use crate::rate::Rate;
    use std::time::Duration;

    pub(crate) fn wait_began(_permits: u32) {}
    pub(crate) fn wait_ended(_permits: u32, _waited: Duration) {}
    pub(crate) fn wait_refused(_error: &AcquireError) {}
    pub(crate) fn wait_cancelled(_permits: impl FnOnce() -> u32) {}
    pub(crate) fn rate_set(_rate: Rate) {}
    pub(crate) fn burst_set(_burst: u32) {}
    pub(crate) fn paused(_pause: Duration) {}
    pub(crate) fn resumed() {}
    pub(crate) fn closed() {}
    pub(crate) fn breaker(_state: BreakerState) {}
}

pub(crate) use events::*;
