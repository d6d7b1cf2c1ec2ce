//! What [`Acquire`](crate::Acquire) needs of a limiter, and what those who wait share.

use crate::error::{AcquireError, TryAcquireError};
use crate::line::{Outlook, Patience, Refusal};
use crate::queue::Queue;
use crate::time::Timeline;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// A limiter whose turns can be awaited. It is for the limiters of this crate alone.
///
/// Times are nanoseconds since the limiter was made, by its own clock.
pub(crate) trait Turns: Send + Sync {
    /// A turn that is held.
    type Booking: fmt::Debug + Send + Sync;

    /// What those who wait share.
    fn waiters(&self) -> &Waiters;

    /// Takes `permits` for good if that is a simple case, they can be had now, and `before` has not
    /// passed: the fast path. If not, says what time it is.
    ///
    /// # Errors
    ///
    /// The time.
    fn take_at_once(&self, permits: u32, before: u64) -> Result<(), u64>;

    /// Takes `permits` for good if they can be had at `now`; if that is `None`, at the time that it is.
    ///
    /// # Errors
    ///
    /// Why not. Nothing has changed then.
    fn try_at(&self, permits: u32, now: Option<u64>) -> Result<(), TryAcquireError>;

    /// Whether `permits` could be had at `now`. Writes nothing.
    ///
    /// # Errors
    ///
    /// Why not.
    fn peek_at(&self, permits: u32, now: u64) -> Result<(), TryAcquireError>;

    /// As [`Self::try_at`], and holds what it took, so that it can be given back.
    ///
    /// # Errors
    ///
    /// Why not. Nothing has changed then.
    fn hold_at(&self, permits: u32, now: u64) -> Result<Self::Booking, TryAcquireError>;

    /// Refuses everything from now on, and lets all go who wait.
    fn close(&self);

    fn is_closed(&self) -> bool;

    /// Books the earliest turn, if it comes in time. A refusal changes nothing.
    ///
    /// # Errors
    ///
    /// Why nothing was booked.
    fn book(&self, now: u64, permits: u32, patience: Patience) -> Result<Self::Booking, Refusal>;

    /// Whether it could be used when it was booked.
    fn is_immediate(&self, booking: &Self::Booking) -> bool;

    /// How many permits it is.
    fn permits_of(&self, booking: &Self::Booking) -> u32;

    /// When its turn comes by the present settings; `None` if never.
    fn due(&self, booking: &Self::Booking) -> Option<u64>;

    /// What one who has slept finds.
    fn look(&self, now: u64, booking: &Self::Booking) -> Outlook;

    /// Remembers that somebody who slept has woken `late`.
    fn woke(&self, now: u64, late: u64);

    /// Makes free again what was booked and has not been used.
    fn give_back(&self, now: u64, booking: &Self::Booking);

    /// The permits that are free at `now`, to look at; negative while more is booked.
    fn free(&self, now: u64) -> f64;

    /// How many intervals were given back and are not used again yet.
    fn holes(&self, _now: u64) -> usize {
        0
    }

    /// Told of each `acquire` that is served, but not by [`Self::take_at_once`].
    fn served(&self, _waited: Duration) {}

    /// Told of each `acquire` that is refused.
    fn refused(&self, _error: &AcquireError) {}

    /// Told of each `acquire` that is dropped while it waits.
    fn cancelled(&self) {}
}

/// The clock, the bounds on the wait, and word of changes.
#[derive(Debug)]
pub(crate) struct Waiters {
    pub(crate) time: Timeline,
    /// The longest that an `acquire` may wait, in nanoseconds.
    pub(crate) max_wait: u64,
    pub(crate) queue: Queue,
    /// Tells those who wait of every change of the settings.
    pub(crate) changed: Arc<Notify>,
    /// How long before a turn the timer wakes who waits for it, in nanoseconds; from then on it
    /// yields. None if the timer is to do all of it.
    pub(crate) precise: Option<u64>,
}

impl Waiters {
    pub(crate) fn new(time: Timeline, max_wait: u64, queue: Queue, precise: Option<u64>) -> Self {
        Self { time, max_wait, queue, changed: Arc::new(Notify::new()), precise }
    }

    /// For another limiter by the same clock, with the same bounds.
    #[cfg(feature = "keyed")]
    pub(crate) fn like(&self) -> Self {
        let queue = Queue::new(self.queue.places());
        Self::new(self.time.clone(), self.max_wait, queue, self.precise)
    }
}

impl Default for Waiters {
    /// By Tokio's clock and without bounds.
    fn default() -> Self {
        Self::new(Timeline::default(), u64::MAX, Queue::new(Queue::UNBOUNDED), None)
    }
}
