//! [`Call`]: a call of which one says whether it was refused.

use super::rate::Shared;
use std::sync::Arc;
use std::time::Duration;

/// A call under an [`AdaptiveRate`](super::AdaptiveRate). It began when it was given out, by the limiter's
/// clock.
///
/// Each report says so once. Dropped, it says nothing: the caller gave up, or the call failed for a
/// reason of its own, as a 404 does.
#[derive(Debug)]
#[must_use = "dropped, it says nothing"]
pub struct Call {
    shared: Arc<Shared>,
    began: u64,
}

impl Call {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let began = shared.now();
        Self { shared, began }
    }

    /// The service served it.
    pub fn succeeded(self) {
        self.shared.succeeded(self.began);
    }

    /// The service had too much: HTTP's 429 or 503. With `retry_after`, everybody who waits for a turn
    /// waits for that long from now too; a pause is never made shorter.
    ///
    /// It is as long as the header says, up to [`max_pause`](super::AdaptiveRateBuilder::max_pause).
    pub fn overloaded(self, retry_after: Option<Duration>) {
        self.shared.overloaded(self.began, retry_after);
    }
}
