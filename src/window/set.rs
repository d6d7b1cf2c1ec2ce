//! A sorted set of what was given back, that costs nothing to pass by while it is empty.

use crate::sync::{AtomicUsize, Ordering, SortedMap};

/// Each entry is in the set or in the hand of the one thread that removed it, never both.
pub(super) struct Set<K, V> {
    /// At least the number of entries: raised before an insertion, lowered after a removal. So
    /// zero means that there is none.
    count: AtomicUsize,
    map: SortedMap<K, V>,
}

impl<K: Ord + Copy + Send + 'static, V: Copy + Send + 'static> Set<K, V> {
    pub(super) fn new() -> Self {
        Self { count: AtomicUsize::new(0), map: SortedMap::new() }
    }

    /// Whether there may be any.
    #[inline]
    pub(super) fn are_about(&self) -> bool {
        // Relaxed: an entry whose insertion happened before this call has raised the counter
        // before this load, and all that was lowered since was removed. Of one that is inserted at
        // the same time as this call nothing is promised.
        self.count.load(Ordering::Relaxed) != 0
    }

    pub(super) fn put(&self, key: K, value: V) {
        // Relaxed, and before the insertion: see `are_about`.
        self.count.fetch_add(1, Ordering::Relaxed);
        self.map.insert(key, value);
    }

    /// Takes an entry out. One caller wins it.
    pub(super) fn remove(&self, key: K) -> Option<V> {
        let value = self.map.remove(key)?;
        // Relaxed, and after the removal: see `are_about`.
        self.count.fetch_sub(1, Ordering::Relaxed);
        Some(value)
    }

    pub(super) fn at_or_before(&self, key: K) -> Option<(K, V)> {
        if self.are_about() { self.map.at_or_before(key) } else { None }
    }

    pub(super) fn last(&self) -> Option<(K, V)> {
        if self.are_about() { self.map.last() } else { None }
    }

    /// All entries, in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (K, V)> {
        let first = if self.are_about() { self.map.first() } else { None };
        std::iter::successors(first, |(key, _)| self.map.after(*key))
    }
}
