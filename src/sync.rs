//! The only place that knows loom: atomics, the fence, the lock of the setters, and the sorted map.
//!
//! A test build under `--cfg paceline_loom` gets loom's types, every other build the real ones.

#[cfg(not(all(test, paceline_loom)))]
mod real {
    pub(crate) use std::sync::Mutex;
    #[cfg(feature = "redis")]
    pub(crate) use std::sync::atomic::AtomicBool;
    pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

    pub(crate) use portable_atomic::AtomicU128;

    use crossbeam_skiplist::SkipMap;
    use std::ops::Bound;

    #[cfg(feature = "keyed")]
    pub(crate) use self::swap::{Seen, Swap};

    #[cfg(feature = "keyed")]
    mod swap {
        use arc_swap::{ArcSwapOption, Guard};
        use std::sync::Arc;

        /// A shared value, or none, that is replaced as a whole and read without a lock.
        pub(crate) struct Swap<T>(ArcSwapOption<T>);

        /// What was there when it was looked at.
        pub(crate) struct Seen<T>(Guard<Option<Arc<T>>>);

        impl<T> Swap<T> {
            pub(crate) fn new(value: Option<Arc<T>>) -> Self {
                Self(ArcSwapOption::new(value))
            }

            /// Sees all that was done before it was stored.
            #[inline]
            pub(crate) fn load(&self) -> Seen<T> {
                Seen(self.0.load())
            }

            /// Stores `value` if there is still what was `seen`. False if not.
            pub(crate) fn replace(&self, seen: &Seen<T>, value: Option<Arc<T>>) -> bool {
                let before = self.0.compare_and_swap(&seen.0, value);
                match (&*before, seen.get()) {
                    (Some(before), Some(seen)) => Arc::ptr_eq(before, seen),
                    (before, seen) => before.is_none() && seen.is_none(),
                }
            }
        }

        impl<T> Seen<T> {
            #[inline]
            pub(crate) fn get(&self) -> Option<&Arc<T>> {
                self.0.as_ref()
            }
        }
    }

    /// A lock-free ordered map: keys are never inserted while present, and of all who remove a
    /// key exactly one wins.
    pub(crate) struct SortedMap<K, V>(SkipMap<K, V>);

    impl<K: Ord + Copy + Send + 'static, V: Copy + Send + 'static> SortedMap<K, V> {
        pub(crate) fn new() -> Self {
            Self(SkipMap::new())
        }

        pub(crate) fn insert(&self, key: K, value: V) {
            self.0.insert(key, value);
        }

        /// Removes `key` and returns its value if this call is the one that removed it.
        ///
        /// Not `SkipMap::remove`, which (in 0.1.3) returns the entry also to a caller that lost
        /// the race for it; `Entry::remove` says who won.
        pub(crate) fn remove(&self, key: K) -> Option<V> {
            let entry = self.0.get(&key)?;
            let value = *entry.value();
            entry.remove().then_some(value)
        }

        /// The entry with the largest key of at most `key`.
        pub(crate) fn at_or_before(&self, key: K) -> Option<(K, V)> {
            let entry = self.0.upper_bound(Bound::Included(&key))?;
            Some((*entry.key(), *entry.value()))
        }

        /// The entry with the smallest key above `key`.
        pub(crate) fn after(&self, key: K) -> Option<(K, V)> {
            let entry = self.0.lower_bound(Bound::Excluded(&key))?;
            Some((*entry.key(), *entry.value()))
        }

        pub(crate) fn first(&self) -> Option<(K, V)> {
            let entry = self.0.front()?;
            Some((*entry.key(), *entry.value()))
        }

        pub(crate) fn last(&self) -> Option<(K, V)> {
            let entry = self.0.back()?;
            Some((*entry.key(), *entry.value()))
        }
    }
}

#[cfg(not(all(test, paceline_loom)))]
pub(crate) use real::*;

#[cfg(all(test, paceline_loom))]
mod model {
    pub(crate) use loom::sync::Mutex;
    #[cfg(feature = "redis")]
    pub(crate) use loom::sync::atomic::AtomicBool;
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

    use std::collections::BTreeMap;
    use std::ops::Bound;

    /// Stands in for the 128-bit atomic: each operation is one step. Orderings are not modelled.
    pub(crate) struct AtomicU128(Mutex<u128>);

    impl AtomicU128 {
        pub(crate) fn new(value: u128) -> Self {
            Self(Mutex::new(value))
        }

        pub(crate) fn load(&self, _: Ordering) -> u128 {
            *self.0.lock().unwrap()
        }

        pub(crate) fn store(&self, value: u128, _: Ordering) {
            *self.0.lock().unwrap() = value;
        }

        pub(crate) fn compare_exchange(
            &self,
            from: u128,
            to: u128,
            _: Ordering,
            _: Ordering,
        ) -> Result<u128, u128> {
            let mut value = self.0.lock().unwrap();
            if *value == from { Ok(std::mem::replace(&mut *value, to)) } else { Err(*value) }
        }
    }

    /// Stands in for the pointer that is replaced as a whole: each operation is one step.
    #[cfg(feature = "keyed")]
    pub(crate) struct Swap<T>(Mutex<Option<std::sync::Arc<T>>>);

    #[cfg(feature = "keyed")]
    pub(crate) struct Seen<T>(Option<std::sync::Arc<T>>);

    #[cfg(feature = "keyed")]
    impl<T> Swap<T> {
        pub(crate) fn new(value: Option<std::sync::Arc<T>>) -> Self {
            Self(Mutex::new(value))
        }

        pub(crate) fn load(&self) -> Seen<T> {
            Seen(self.0.lock().unwrap().clone())
        }

        pub(crate) fn replace(&self, seen: &Seen<T>, value: Option<std::sync::Arc<T>>) -> bool {
            let mut present = self.0.lock().unwrap();
            let same = match (&*present, &seen.0) {
                (Some(present), Some(seen)) => std::sync::Arc::ptr_eq(present, seen),
                (present, seen) => present.is_none() && seen.is_none(),
            };
            if same {
                *present = value;
            }
            same
        }
    }

    #[cfg(feature = "keyed")]
    impl<T> Seen<T> {
        pub(crate) fn get(&self) -> Option<&std::sync::Arc<T>> {
            self.0.as_ref()
        }
    }

    /// Stands in for the lock-free map: each operation is one step that nothing interrupts.
    pub(crate) struct SortedMap<K, V>(Mutex<BTreeMap<K, V>>);

    impl<K: Ord + Copy, V: Copy> SortedMap<K, V> {
        pub(crate) fn new() -> Self {
            Self(Mutex::new(BTreeMap::new()))
        }

        pub(crate) fn insert(&self, key: K, value: V) {
            let before = self.0.lock().unwrap().insert(key, value);
            assert!(before.is_none(), "a key was inserted while present");
        }

        pub(crate) fn remove(&self, key: K) -> Option<V> {
            self.0.lock().unwrap().remove(&key)
        }

        pub(crate) fn at_or_before(&self, key: K) -> Option<(K, V)> {
            let map = self.0.lock().unwrap();
            map.range(..=key).next_back().map(|(k, v)| (*k, *v))
        }

        pub(crate) fn after(&self, key: K) -> Option<(K, V)> {
            let map = self.0.lock().unwrap();
            let range = (Bound::Excluded(key), Bound::Unbounded);
            map.range(range).next().map(|(k, v)| (*k, *v))
        }

        pub(crate) fn first(&self) -> Option<(K, V)> {
            let map = self.0.lock().unwrap();
            map.first_key_value().map(|(k, v)| (*k, *v))
        }

        pub(crate) fn last(&self) -> Option<(K, V)> {
            let map = self.0.lock().unwrap();
            map.last_key_value().map(|(k, v)| (*k, *v))
        }
    }
}

#[cfg(all(test, paceline_loom))]
pub(crate) use model::*;
