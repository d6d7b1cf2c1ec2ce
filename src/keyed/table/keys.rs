//! Keys that come and go.

use super::{Table, When, present};
use crate::keyed::page::{Entry, Item, Page, Recent, items};
use crate::line::Word;
use crate::sync::{AtomicU64, Ordering, Seen};
use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

impl<K, S> Table<K, S>
where
    K: Clone + Eq + Hash,
    S: BuildHasher,
{
    /// Adds `key`, unless something else has come to its page. False if it must be looked at again.
    pub(super) fn insert<Q>(
        &self,
        hash: u64,
        key: &Q,
        quota: u16,
        word: Word,
        page: &Seen<Page<K>>,
        when: When,
    ) -> bool
    where
        K: Borrow<Q>,
        Q: Eq + ToOwned<Owned = K> + ?Sized,
    {
        let present = present(page);
        let recent = present.recent.load();
        if !present.has_room(&recent) {
            self.replace(hash, page, when, 0);
            return false;
        }
        if has_key(&recent, key) {
            return false;
        }
        // Before a place is taken, which a `clone` that panics would keep.
        let entry = Entry { key: key.to_owned(), word: AtomicU64::new(word.to_u64()) };
        if !self.enter(hash, when) {
            return false;
        }
        let added = present.add(&recent, Item::Key(entry, quota));
        if !added {
            self.leave_places(1);
        } else if present.is_small() && !word.has_own() {
            // It costs nothing to speak of to have the key where it is found soonest.
            let merged = present.merged(&self.quotas, &self.hasher, when);
            self.put(self.place(hash), page, merged);
        }
        added
    }

    /// Takes a place for one key more. If all are taken, makes room and has it looked at again; and if
    /// all keys are held by those who wait, there is one more than there may be.
    pub(super) fn enter(&self, hash: u64, when: When) -> bool {
        let enter = |len: usize| (len < self.most).then_some(len + 1);
        // Relaxed, here and below: only the number is told by it, and each change sees the one before.
        if self.len.fetch_update(Ordering::Relaxed, Ordering::Relaxed, enter).is_ok() {
            return true;
        }
        let first = self.place(hash);
        for place in (first..self.pages.len()).chain(0..first) {
            let page = self.pages[place].load();
            let Some(present) = page.get() else { continue };
            let (keys, mut held, mut is_idle) = (present.len(), 0, false);
            present.for_each_own(|own| {
                held += 1;
                // Of the first page only, so that it is not dear where all keys are held.
                is_idle |= place == first && own.is_idle(&self.quotas, when);
            });
            // A page is not replaced in vain: who finds no room is to add its key to this one.
            if held >= keys && !is_idle {
                continue;
            }
            // Several at once, so that a flood does not replace a page for each key.
            if self.replace_at(place, &page, when, (keys / 16).max(1)) {
                return false;
            }
        }
        self.len.fetch_add(1, Ordering::Relaxed);
        true
    }

    pub(super) fn leave_places(&self, keys: usize) {
        self.len.fetch_sub(keys, Ordering::Relaxed);
    }

    /// Replaces `page`, unless somebody else has, with at least `gone` keys less if that can be.
    #[cold]
    pub(super) fn replace(&self, hash: u64, page: &Seen<Page<K>>, when: When, gone: usize) {
        self.replace_at(self.place(hash), page, when, gone);
    }

    /// False if there are as many keys as before.
    pub(super) fn replace_at(
        &self,
        place: usize,
        page: &Seen<Page<K>>,
        when: When,
        gone: usize,
    ) -> bool {
        let next = present(page).replaced(&self.quotas, &self.hasher, when, gone);
        self.put(place, page, next)
    }

    /// Puts `next` in the place of `page`, unless somebody else has put something there. False if there
    /// are as many keys as before.
    pub(super) fn put(&self, place: usize, page: &Seen<Page<K>>, next: Page<K>) -> bool {
        // It is sealed, so it has as many keys as it ever had; and keys do not become more by this.
        let fewer = present(page).len() - next.len();
        // Also if no key is left: who comes with an older time finds what was forgotten since.
        if !self.pages[place].replace(page, Some(Arc::new(next))) {
            return true;
        }
        self.leave_places(fewer);
        fewer > 0
    }

    /// Forgets all keys that are full.
    pub(in crate::keyed) fn retain_busy(&self, when: When) {
        for (place, page) in self.pages.iter().enumerate() {
            let page = page.load();
            if page.get().is_some() {
                self.replace_at(place, &page, when, 0);
            }
        }
    }

    /// Each key there is with its free permits.
    pub(in crate::keyed) fn for_each(&self, mut then: impl FnMut(&K, f64)) {
        for page in &self.pages {
            let page = page.load();
            let Some(page) = page.get() else { continue };
            let recent = page.recent.load();
            let came = items(&recent).filter_map(|item| match item {
                Item::Key(entry, _) => Some(&entry.key),
                _ => None,
            });
            for key in page.entries.iter().map(|entry| &entry.key).chain(came) {
                then(key, self.tokens(key, When::Now));
            }
        }
    }
}

fn has_key<K, Q>(recent: &Seen<Recent<K>>, key: &Q) -> bool
where
    K: Borrow<Q>,
    Q: Eq + ?Sized,
{
    items(recent).any(|item| matches!(item, Item::Key(entry, _) if entry.key.borrow() == key))
}
