//! The limiters of their own that keys have.

use super::{Table, When, present};
use crate::keyed::own::Own;
use crate::keyed::page::{Item, Page};
use crate::keyed::quota::{Quota, Quotas};
use crate::line::{Position, look_at, mark_own};
use crate::sync::{Ordering, fence};
use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

impl<K, S> Table<K, S>
where
    K: Clone + Eq + Hash,
    S: BuildHasher,
{
    /// The limiter of its own that `key` has, or gets now; to be [left](Self::leave).
    pub(in crate::keyed) fn own<Q>(&self, hash: u64, key: &Q, when: When) -> Arc<Own>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        loop {
            let page = self.page(hash, when);
            let present = present(&page);
            let Some((quota, word, spent, marked)) = present.with(hash, key, |slot| {
                let word = look_at(slot.word);
                let marked = !word.is_marked() && mark_own(slot.word, word);
                (slot.quota, word, slot.base.read(word), marked)
            }) else {
                let quota = self.quota_of(key);
                let start = present.least_spent(hash, quota);
                let start =
                    start.max(self.line(quota).base(self.quotas.get(quota).at(when)).position());
                match present.base(quota).write(start) {
                    Some(word) if self.insert(hash, key, quota, word.with_own(), &page, when) => {
                        let key = key.to_owned();
                        if let Some(own) = present.add_own(key, &self.quotas, quota, start) {
                            return own;
                        }
                    }
                    Some(_) => {}
                    None => self.replace(hash, &page, when, 0),
                }
                continue;
            };
            if marked {
                if let Some(own) = present.add_own(key.to_owned(), &self.quotas, quota, spent) {
                    return own;
                }
            } else if !word.is_marked() {
                continue;
            } else if !word.is_frozen() {
                if let Some(own) = present.own(hash, key).filter(|own| own.enter()) {
                    return own;
                }
            }
            // It is frozen, or retired, or who marked it has not come so far.
            self.replace(hash, &page, when, 0);
        }
    }

    /// Gives `key` the settings of its quota, if it has others.
    pub(in crate::keyed) fn reset<Q>(&self, key: &Q)
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let hash = self.hash(key);
        let page = self.pages[self.place(hash)].load();
        let own = page.get().and_then(|page| page.own(hash, key));
        let Some(own) = own.filter(|own| own.is_apart() && own.enter()) else { return };
        own.release();
        self.quota_for(key).settle(own.limiter());
        self.leave(hash, &own, When::Now);
    }

    /// Ends a use of a limiter that a key has of its own. If it was the last one, the key goes on by
    /// its word, if that can say all.
    pub(in crate::keyed) fn leave(&self, hash: u64, own: &Own, when: When) {
        if own.leave() && own.is_idle(&self.quotas, when) {
            let page = self.pages[self.place(hash)].load();
            if page.get().is_some() {
                self.replace(hash, &page, when, 0);
            }
        }
    }

    /// Tells the limiters that keys have of their own that the settings of the quotas are others now.
    pub(in crate::keyed) fn settings_changed(&self) {
        // SeqCst fence: see `add_own`.
        fence(Ordering::SeqCst);
        self.for_each_own(|quota, own| {
            own.limiter().follow(quota.limiter(), || !own.is_apart());
            if own.is_released() {
                quota.settle(own.limiter());
            }
        });
    }

    pub(super) fn for_each_own(&self, mut then: impl FnMut(&Quota, &Own)) {
        for page in &self.pages {
            if let Some(page) = page.load().get() {
                page.for_each_own(|own| then(self.quotas.get(own.quota()), own));
            }
        }
    }
}

impl<K: Clone> Page<K> {
    /// Gives `key`, which is marked for it, a limiter like that of `quota` that goes on from `spent`; unless
    /// the page has no room.
    fn add_own(&self, key: K, quotas: &Quotas, quota: u16, spent: Position) -> Option<Arc<Own>> {
        let template = quotas.get(quota).limiter();
        let version = template.line().version();
        let own = Arc::new(Own::new(template.like(spent), quota));
        let entered = own.enter();
        debug_assert!(entered, "it is new");
        loop {
            let recent = self.recent.load();
            if !self.has_room(&recent) {
                return None;
            }
            if self.add(&recent, Item::Own(key.clone(), Arc::clone(&own))) {
                break;
            }
        }
        // SeqCst fence: pairs with the one in `settings_changed`. Either whoever changes the settings
        // finds this limiter there, or the load below finds the change; weaker, neither might.
        fence(Ordering::SeqCst);
        if template.line().version() != version {
            own.limiter().follow(template, || !own.is_apart());
        }
        Some(own)
    }
}
