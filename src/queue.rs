//! How many may wait at once.

use crate::sync::{AtomicU32, Ordering};
use crossbeam_utils::CachePadded;

/// The places for those who wait.
#[derive(Debug)]
pub(crate) struct Queue {
    /// As many as there can be stands for no limit. Only those who do wait are counted then, so who
    /// need not touches nothing that others write.
    places: u32,
    /// On a cache line of its own: those who need not wait read what lies beside it.
    taken: CachePadded<AtomicU32>,
}

impl Queue {
    pub(crate) const UNBOUNDED: u32 = u32::MAX;

    pub(crate) fn new(places: u32) -> Self {
        Self { places, taken: CachePadded::new(AtomicU32::new(0)) }
    }

    /// How many places there are.
    pub(crate) fn places(&self) -> u32 {
        self.places
    }

    /// How many wait, and with a limit also those who have a place and do not know yet whether they
    /// must.
    pub(crate) fn taken(&self) -> u32 {
        // Relaxed: a number to look at, which publishes nothing.
        self.taken.load(Ordering::Relaxed)
    }

    /// Takes a place; or says that there is none. Then it is followed by [`Queue::pass`], or by
    /// [`Queue::stay`] and [`Queue::leave`].
    pub(crate) fn enter(&self) -> bool {
        // Relaxed: the number of places is all that is told here, and the read-modify-write sees
        // to it that nobody misses another's. Nothing is published by it.
        let enter = |taken| (taken < self.places).then_some(taken + 1);
        self.is_unbounded()
            || self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, enter).is_ok()
    }

    /// Gives back the place of one who need not wait.
    pub(crate) fn pass(&self) {
        if !self.is_unbounded() {
            self.leave();
        }
    }

    /// Waits in the place that was entered.
    pub(crate) fn stay(&self) {
        if self.is_unbounded() {
            // Relaxed: as in `enter`.
            self.taken.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Gives back the place of one who has waited.
    pub(crate) fn leave(&self) {
        // Relaxed: as in `enter`.
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }

    fn is_unbounded(&self) -> bool {
        self.places == Self::UNBOUNDED
    }
}
