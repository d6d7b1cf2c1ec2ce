//! [`Attempt`]: a call of which one says what became of it.

use super::concurrency::Shared;
use super::core::Outcome;
use crate::concurrency::Place;
use crate::time::nanos;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A call under an [`AdaptiveConcurrency`](super::AdaptiveConcurrency): it has its place until it is
/// reported or dropped.
///
/// It began when it was given out, by Tokio's clock. Each report says so once:
///
/// | | |
/// |---|---|
/// | [`succeeded`](Self::succeeded) | the service answered, in the time since it began |
/// | [`failed`](Self::failed) | the service had too much: a timeout, HTTP's 429 or 503 |
/// | dropped | nothing is known: the caller gave up, or it failed for a reason of its own, as a 404 does |
#[derive(Debug)]
#[must_use = "dropped, it gives its place back and says nothing"]
pub struct Attempt {
    shared: Arc<Shared>,
    /// None if its place is held elsewhere.
    #[expect(dead_code, reason = "held")]
    place: Option<Place>,
    round: u64,
    began: Instant,
}

impl Attempt {
    pub(super) fn new(shared: Arc<Shared>, place: Option<Place>) -> Self {
        let round = shared.round();
        Self { shared, place, round, began: Instant::now() }
    }

    /// The service answered, in the time since this began.
    pub fn succeeded(self) {
        let latency = self.began.elapsed();
        self.succeeded_after(latency);
    }

    /// The service answered after `latency`, whatever the clock says: for replays, and for who measures
    /// without what is not the service's.
    pub fn succeeded_after(self, latency: Duration) {
        self.shared.report(self.round, Outcome::Succeeded(nanos(latency)));
    }

    /// The service had too much, or did not answer in time.
    pub fn failed(self) {
        self.shared.report(self.round, Outcome::Failed);
    }
}
