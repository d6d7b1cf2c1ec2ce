//! A use of a limiter that a key has of its own.

use super::own::Own;
use super::table::{Table, When};
use crate::limiter::Limiter;
use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};
use std::ops::Deref;
use std::sync::Arc;

/// Uses the limiter that a key has of its own, or gets, until it is dropped.
pub(super) struct Hold<K: Clone + Eq + Hash, S: BuildHasher> {
    table: Arc<Table<K, S>>,
    hash: u64,
    own: Arc<Own>,
}

impl<K: Clone + Eq + Hash, S: BuildHasher> Hold<K, S> {
    pub(super) fn of<Q>(table: &Arc<Table<K, S>>, key: &Q, when: When) -> Self
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let hash = table.hash(key);
        Self::entered(table, hash, table.own(hash, key, when))
    }

    /// Of one that is in use already.
    pub(super) fn entered(table: &Arc<Table<K, S>>, hash: u64, own: Arc<Own>) -> Self {
        Self { table: Arc::clone(table), hash, own }
    }

    pub(super) fn own(&self) -> &Own {
        &self.own
    }
}

impl<K: Clone + Eq + Hash, S: BuildHasher> Deref for Hold<K, S> {
    type Target = Limiter;

    fn deref(&self) -> &Limiter {
        self.own.limiter()
    }
}

impl<K: Clone + Eq + Hash, S: BuildHasher> Drop for Hold<K, S> {
    fn drop(&mut self) {
        self.table.leave(self.hash, &self.own, When::Now);
    }
}
