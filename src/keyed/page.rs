//! A page of keys: all those whose hashes begin alike.
//!
//! The keys of a page never change, but for a short list of those that came since it was made. What
//! changes in place is each key's word. Everything else is done by [replacing](super::replace) the page.

use super::own::Own;
use crate::line::Base;
use crate::sync::{AtomicU64, Seen, Swap};
use std::borrow::Borrow;
use std::sync::Arc;

/// A key and what is spent of its line.
pub(super) struct Entry<K> {
    pub(super) key: K,
    pub(super) word: AtomicU64,
}

/// Keys of a page are in so many groups, by their hashes.
pub(super) const GROUPS: usize = 64;

pub(super) struct Page<K> {
    /// Where the words of keys of the first quota count from; and those of the other quotas.
    pub(super) base: Base,
    pub(super) other_bases: Box<[Base]>,
    /// Where each group of keys begins, and the last one ends.
    pub(super) starts: [u32; GROUPS + 1],
    pub(super) entries: Box<[Entry<K>]>,
    /// The quota of each entry, if there are several.
    pub(super) quotas: Box<[u16]>,
    /// Limiters of their own, by their entries, in order.
    pub(super) owns: Box<[(u32, Arc<Own>)]>,
    /// How far keys are spent that have gone before they were full: see [`Floors`].
    pub(super) floors: Floors,
    /// What came since, the latest first.
    pub(super) recent: Swap<Recent<K>>,
}

/// Something that came since the page was made.
pub(super) struct Recent<K> {
    pub(super) item: Item<K>,
    pub(super) next: Option<Arc<Recent<K>>>,
    /// How many there are, with this one, and how many of them are keys.
    pub(super) length: u32,
    pub(super) keys: u32,
}

pub(super) enum Item<K> {
    /// A key that the page did not have, and its quota.
    Key(Entry<K>, u16),
    /// A limiter of its own for a key that is marked so.
    Own(K, Arc<Own>),
    /// Nothing comes after this.
    Seal,
}

/// What is spent at least of a key that comes, since one with a hash alike was forgotten before it was
/// full: a position beyond the base for each quota and each of some groups of hashes; nothing if none
/// was forgotten.
#[derive(Default)]
pub(super) struct Floors(pub(super) Box<[u64]>);

impl Floors {
    pub(super) const GROUPS: usize = 64;

    /// Where that of a key stands.
    pub(super) fn index(hash: u64, quota: u16) -> usize {
        // Other bits than those that the groups of keys go by.
        let group = usize::try_from((hash >> 8) % (Self::GROUPS as u64)).expect("below the groups");
        usize::from(quota) * Self::GROUPS + group
    }

    pub(super) fn of(&self, hash: u64, quota: u16) -> u64 {
        self.0.get(Self::index(hash, quota)).copied().unwrap_or(0)
    }
}

/// Where a key stands in its page.
#[derive(Clone, Copy)]
pub(super) struct Slot<'a> {
    pub(super) word: &'a AtomicU64,
    pub(super) base: Base,
    pub(super) quota: u16,
}

/// The group that keys of this hash are in.
#[inline]
pub(super) fn group(hash: u64) -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "the low bits are what is wanted")]
    let low = hash as usize;
    low % GROUPS
}

impl<K> Page<K> {
    pub(super) fn base(&self, quota: u16) -> Base {
        match quota {
            0 => self.base,
            _ => self.other_bases[usize::from(quota) - 1],
        }
    }

    /// How many keys it holds.
    pub(super) fn len(&self) -> usize {
        self.entries.len() + self.recent.load().get().map_or(0, |recent| recent.keys as usize)
    }

    /// Calls `then` with each limiter of its own that a key has.
    pub(super) fn for_each_own(&self, mut then: impl FnMut(&Own)) {
        self.owns.iter().for_each(|(_, own)| then(own));
        for item in items(&self.recent.load()) {
            if let Item::Own(_, own) = item {
                then(own);
            }
        }
    }

    /// Whether something may still come after `recent`.
    pub(super) fn has_room(&self, recent: &Seen<Recent<K>>) -> bool {
        let most = (self.entries.len() / 16).clamp(4, 16);
        !is_sealed(recent) && recent.get().is_none_or(|recent| (recent.length as usize) < most)
    }

    /// Whether it has so few keys that it may as well be replaced for each that comes.
    pub(super) fn is_small(&self) -> bool {
        self.entries.len() < 8
    }

    pub(super) fn quota(&self, index: usize) -> u16 {
        self.quotas.get(index).copied().unwrap_or(0)
    }

    /// What `then` makes of the slot of `key`, if it is here.
    #[inline]
    pub(super) fn with<Q, R>(
        &self,
        hash: u64,
        key: &Q,
        then: impl FnOnce(Slot<'_>) -> R,
    ) -> Option<R>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        match self.entry(hash, key) {
            Some((entry, index)) => {
                let quota = self.quota(index);
                Some(then(Slot { word: &entry.word, base: self.base(quota), quota }))
            }
            None => self.with_recent(key, then),
        }
    }

    #[inline]
    fn entry<Q>(&self, hash: u64, key: &Q) -> Option<(&Entry<K>, usize)>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        let group = group(hash);
        let (start, end) = (self.starts[group] as usize, self.starts[group + 1] as usize);
        let mut entries = self.entries[start..end].iter().zip(start..);
        entries.find(|(entry, _)| entry.key.borrow() == key)
    }

    #[cold]
    fn with_recent<Q, R>(&self, key: &Q, then: impl FnOnce(Slot<'_>) -> R) -> Option<R>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        let recent = self.recent.load();
        let slot = items(&recent).find_map(|item| match item {
            Item::Key(entry, quota) if entry.key.borrow() == key => {
                Some(Slot { word: &entry.word, base: self.base(*quota), quota: *quota })
            }
            _ => None,
        });
        slot.map(then)
    }

    /// The limiter of its own that `key` has.
    pub(super) fn own<Q>(&self, hash: u64, key: &Q) -> Option<Arc<Own>>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        let recent = self.recent.load();
        let own = items(&recent).find_map(|item| match item {
            Item::Own(of, own) if of.borrow() == key => Some(Arc::clone(own)),
            _ => None,
        });
        own.or_else(|| self.own_of_entry(self.entry(hash, key)?.1))
    }

    pub(super) fn own_of_entry(&self, index: usize) -> Option<Arc<Own>> {
        let index = u32::try_from(index).ok()?;
        let found = self.owns.binary_search_by_key(&index, |(of, _)| *of).ok()?;
        Some(Arc::clone(&self.owns[found].1))
    }

    /// Lets nothing come to it any more. Returns what came, with the seal first.
    pub(super) fn seal(&self) -> Seen<Recent<K>> {
        loop {
            let recent = self.recent.load();
            if is_sealed(&recent) {
                return recent;
            }
            self.add(&recent, Item::Seal);
        }
    }

    /// Adds `item` if nothing has come since `recent`. False if something has.
    pub(super) fn add(&self, recent: &Seen<Recent<K>>, item: Item<K>) -> bool {
        let (length, keys) = recent.get().map_or((0, 0), |last| (last.length, last.keys));
        let is_key = matches!(item, Item::Key(..));
        let next = recent.get().cloned();
        let added = Recent { item, next, length: length + 1, keys: keys + u32::from(is_key) };
        self.recent.replace(recent, Some(Arc::new(added)))
    }
}

/// The items of a list, the latest first.
pub(super) fn items<K>(recent: &Seen<Recent<K>>) -> impl Iterator<Item = &Item<K>> {
    let rest =
        std::iter::successors(recent.get().map(|last| &**last), |recent| recent.next.as_deref());
    rest.map(|recent| &recent.item)
}

/// Whether nothing comes to a list any more.
fn is_sealed<K>(recent: &Seen<Recent<K>>) -> bool {
    recent.get().is_some_and(|last| matches!(last.item, Item::Seal))
}
