//! How many may wait at once.

use crate::sync::{AtomicU32, Ordering};

/// The places for those who wait.
#[derive(Debug)]
pub(crate) struct Queue {
    /// As many as there can be stands for no limit, and then nobody is counted.
    places: u32,
    taken: AtomicU32,
}

impl Queue {
    pub(crate) const UNBOUNDED: u32 = u32::MAX;

    pub(crate) fn new(places: u32) -> Self {
        Self { places, taken: AtomicU32::new(0) }
    }

    /// How many places there are.
    pub(crate) fn places(&self) -> u32 {
        self.places
    }

    /// Takes a place, to be given back by [`Queue::leave`]; or says that there is none.
    pub(crate) fn enter(&self) -> bool {
        // Relaxed: the number of places is all that is told here, and the read-modify-write sees
        // to it that nobody misses another's. Nothing is published by it.
        let enter = |taken| (taken < self.places).then_some(taken + 1);
        self.places == Self::UNBOUNDED
            || self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, enter).is_ok()
    }

    /// Gives back a place.
    pub(crate) fn leave(&self) {
        if self.places != Self::UNBOUNDED {
            // Relaxed: as above.
            self.taken.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
