//! The pages of all keys, and what can be done with a key of them.

use super::own::Own;
use super::page::{Entry, Item, Page, Recent, Slot, items};
use super::quota::{Quota, Quotas};
#[cfg(feature = "http")]
use super::together::standing_of;
use crate::error::TryAcquireError;
use crate::limiter::Limiter;
#[cfg(feature = "http")]
use crate::line::Standing;
use crate::line::{Line, Position, Untaken, Verdict, Word, look_at, mark_own};
use crate::sync::{AtomicU64, AtomicUsize, Ordering, Seen, Swap, fence};
use crate::turns::Turns;
use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use tokio::time::Instant;

/// When something is done: to be read of the clock of a quota.
#[derive(Clone, Copy, Debug)]
pub(super) enum When {
    Now,
    At(Instant),
}

impl When {
    /// As the clock of `limiter` counts.
    #[inline]
    pub(super) fn by(self, limiter: &Limiter) -> u64 {
        match self {
            Self::Now => limiter.now(),
            Self::At(now) => limiter.waiters().time.nanos(now),
        }
    }
}

/// Which of the quotas a key has.
pub(super) type Classify<K> = dyn Fn(&K) -> usize + Send + Sync;

pub(super) struct Table<K, S> {
    pages: Box<[Swap<Page<K>>]>,
    hasher: S,
    quotas: Quotas,
    classify: Option<Box<Classify<K>>>,
    /// How many keys there are, and may be.
    len: AtomicUsize,
    most: usize,
}

/// What came of a request on a key's word.
enum Taking {
    Done(Result<(), TryAcquireError>),
    Stale,
    Own,
}

impl<K, S> Table<K, S>
where
    K: Clone + Eq + Hash,
    S: BuildHasher,
{
    pub(super) fn new(
        pages: usize,
        most: usize,
        hasher: S,
        quotas: Quotas,
        classify: Option<Box<Classify<K>>>,
    ) -> Self {
        let pages = (0..pages).map(|_| Swap::new(None)).collect();
        Self { pages, hasher, quotas, classify, len: AtomicUsize::new(0), most }
    }

    pub(super) fn quotas(&self) -> &Quotas {
        &self.quotas
    }

    #[inline]
    pub(super) fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        hash(&self.hasher, key)
    }

    pub(super) fn len(&self) -> usize {
        // Relaxed: for display, and for a bound that `enter` keeps by read-modify-writes.
        self.len.load(Ordering::Relaxed)
    }

    pub(super) fn most(&self) -> usize {
        self.most
    }

    #[inline]
    fn place(&self, hash: u64) -> usize {
        let high = (hash >> 32) as usize;
        high & (self.pages.len() - 1)
    }

    // ---- What is asked of a key ------------------------------------------------------------------

    /// Takes `n` permits of `key` if they can be had.
    #[inline]
    pub(super) fn take<Q>(&self, key: &Q, n: u32, when: When) -> Result<(), TryAcquireError>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let hash = self.hash(key);
        match self.take_plain(hash, key, n, when) {
            Some(outcome) => outcome,
            None => self.take_any(hash, key, n, when),
        }
    }

    #[cold]
    fn take_any<Q>(&self, hash: u64, key: &Q, n: u32, when: When) -> Result<(), TryAcquireError>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.take_otherwise(hash, key, n, when).unwrap_or_else(|own| {
            let outcome = own.limiter().try_at(n, Some(when.by(own.limiter())));
            self.leave(hash, &own, when);
            outcome
        })
    }

    /// As [`Self::take`], unless `key` has a limiter of its own.
    ///
    /// # Errors
    ///
    /// That limiter, to be [left](Self::leave).
    #[inline]
    pub(super) fn take_unless_own<Q>(
        &self,
        hash: u64,
        key: &Q,
        n: u32,
        when: When,
    ) -> Result<Result<(), TryAcquireError>, Arc<Own>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        match self.take_plain(hash, key, n, when) {
            Some(outcome) => Ok(outcome),
            None => self.take_otherwise(hash, key, n, when),
        }
    }

    /// As [`Self::take`], if that is a plain case.
    #[inline]
    fn take_plain<Q>(
        &self,
        hash: u64,
        key: &Q,
        n: u32,
        when: When,
    ) -> Option<Result<(), TryAcquireError>>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        let page = self.pages[self.place(hash)].load();
        // Beside the outcome of the closure, which so is a byte that need not be moved about.
        let mut late = None;
        let granted = page.get()?.with(hash, key, |slot| {
            let quota = self.quotas.get(slot.quota);
            let line = quota.limiter().line();
            match line.take_plain_from(quota.at(when), n, slot.base, slot.word) {
                Verdict::Take(_) => true,
                Verdict::Wait(turn) => {
                    late = Some(turn);
                    false
                }
                Verdict::Unclear => false,
            }
        })?;
        if granted {
            return Some(Ok(()));
        }
        late.map(|turn| Err(TryAcquireError::late(n, turn)))
    }

    #[cold]
    fn take_otherwise<Q>(
        &self,
        hash: u64,
        key: &Q,
        n: u32,
        when: When,
    ) -> Result<Result<(), TryAcquireError>, Arc<Own>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        loop {
            let page = self.page(hash, when);
            let present = present(&page);
            let take = |slot: Slot<'_>| self.quotas.get(slot.quota).take(slot, n, when);
            match present.with(hash, key, take) {
                Some(Taking::Done(outcome)) => return Ok(outcome),
                Some(Taking::Stale) => self.replace(hash, &page, when, 0),
                Some(Taking::Own) => match present.own(hash, key) {
                    Some(own) if own.enter() => return Err(own),
                    _ => self.replace(hash, &page, when, 0),
                },
                None => {
                    let quota = self.quota_of(key);
                    let (line, now) = (self.line(quota), self.quotas.get(quota).at(when));
                    let least = present.least_spent(hash, quota);
                    match line.peek_beyond(now, n, least) {
                        Err(why) => return Ok(Err(TryAcquireError::of(n, why))),
                        Ok(None) => return Ok(Ok(())),
                        Ok(Some(end)) => match present.base(quota).write(end) {
                            Some(word) if self.insert(hash, key, quota, word, &page, when) => {
                                return Ok(Ok(()));
                            }
                            Some(_) => {}
                            None => self.replace(hash, &page, when, 0),
                        },
                    }
                }
            }
        }
    }

    /// Whether `n` permits of `key` could be had. Writes nothing.
    pub(super) fn peek<Q>(&self, key: &Q, n: u32, when: When) -> Result<(), TryAcquireError>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.look(
            key,
            when,
            |quota, spent| {
                let outcome = quota.limiter().line().peek_beyond(quota.at(when), n, spent);
                outcome.map(drop).map_err(|why| TryAcquireError::of(n, why))
            },
            |quota, own| own.peek_at(n, quota.at(when)),
        )
    }

    /// The free permits of `key`.
    pub(super) fn tokens<Q>(&self, key: &Q, when: When) -> f64
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.look(
            key,
            when,
            |quota, spent| quota.limiter().line().tokens_beyond(quota.at(when), spent),
            |quota, own| own.line().tokens(quota.at(when)),
        )
    }

    /// How `key` stands.
    #[cfg(feature = "http")]
    pub(super) fn standing<Q>(&self, key: &Q) -> Standing
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.look(
            key,
            When::Now,
            |quota, spent| quota.limiter().line().standing_beyond(quota.at(When::Now), spent),
            |quota, own| standing_of(own, quota.at(When::Now)),
        )
    }

    /// What is to say of the line of `key`, by its word or by the limiter of its own. Writes nothing.
    pub(super) fn look<Q, R>(
        &self,
        key: &Q,
        when: When,
        by_word: impl Fn(&Quota, Position) -> R,
        by_own: impl Fn(&Quota, &Limiter) -> R,
    ) -> R
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let hash = self.hash(key);
        let page = self.pages[self.place(hash)].load();
        let found = page.get().and_then(|page| {
            page.with(hash, key, |slot| {
                let word = look_at(slot.word);
                let own = word.has_own().then(|| page.own(hash, key)).flatten();
                let quota = self.quotas.get(slot.quota);
                match own {
                    Some(own) => by_own(quota, own.limiter()),
                    None => by_word(quota, slot.base.read(word)),
                }
            })
        });
        found.unwrap_or_else(|| {
            let index = self.quota_of(key);
            let quota = self.quotas.get(index);
            let least = page.get().map(|page| page.least_spent(hash, index));
            let line = quota.limiter().line();
            by_word(quota, least.unwrap_or_else(|| line.base(quota.at(when)).position()))
        })
    }

    // ---- A limiter of its own --------------------------------------------------------------------

    /// The limiter of its own that `key` has, or gets now; to be [left](Self::leave).
    pub(super) fn own<Q>(&self, hash: u64, key: &Q, when: When) -> Arc<Own>
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
    pub(super) fn reset<Q>(&self, key: &Q)
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
    pub(super) fn leave(&self, hash: u64, own: &Own, when: When) {
        if own.leave() && own.is_idle(&self.quotas, when) {
            let page = self.pages[self.place(hash)].load();
            if page.get().is_some() {
                self.replace(hash, &page, when, 0);
            }
        }
    }

    /// Tells the limiters that keys have of their own that the settings of the quotas are others now.
    pub(super) fn settings_changed(&self) {
        // SeqCst fence: see `add_own`.
        fence(Ordering::SeqCst);
        self.for_each_own(|quota, own| {
            own.limiter().follow(quota.limiter(), || !own.is_apart());
            if own.is_released() {
                quota.settle(own.limiter());
            }
        });
    }

    fn for_each_own(&self, mut then: impl FnMut(&Quota, &Own)) {
        for page in &self.pages {
            if let Some(page) = page.load().get() {
                page.for_each_own(|own| then(self.quotas.get(own.quota()), own));
            }
        }
    }

    // ---- Keys that come and go -------------------------------------------------------------------

    /// Adds `key`, unless something else has come to its page. False if it must be looked at again.
    fn insert<Q>(
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
    fn enter(&self, hash: u64, when: When) -> bool {
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

    fn leave_places(&self, keys: usize) {
        self.len.fetch_sub(keys, Ordering::Relaxed);
    }

    /// Replaces `page`, unless somebody else has, with at least `gone` keys less if that can be.
    #[cold]
    fn replace(&self, hash: u64, page: &Seen<Page<K>>, when: When, gone: usize) {
        self.replace_at(self.place(hash), page, when, gone);
    }

    /// False if there are as many keys as before.
    fn replace_at(&self, place: usize, page: &Seen<Page<K>>, when: When, gone: usize) -> bool {
        let next = present(page).replaced(&self.quotas, &self.hasher, when, gone);
        self.put(place, page, next)
    }

    /// Puts `next` in the place of `page`, unless somebody else has put something there. False if there
    /// are as many keys as before.
    fn put(&self, place: usize, page: &Seen<Page<K>>, next: Page<K>) -> bool {
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
    pub(super) fn retain_busy(&self, when: When) {
        for (place, page) in self.pages.iter().enumerate() {
            let page = page.load();
            if page.get().is_some() {
                self.replace_at(place, &page, when, 0);
            }
        }
    }

    /// Each key there is with its free permits.
    pub(super) fn for_each(&self, mut then: impl FnMut(&K, f64)) {
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

    /// The page of keys of that hash.
    fn page(&self, hash: u64, when: When) -> Seen<Page<K>> {
        let place = &self.pages[self.place(hash)];
        loop {
            let page = place.load();
            if page.get().is_some() {
                return page;
            }
            place.replace(&page, Some(Arc::new(Page::empty(&self.quotas, when))));
        }
    }

    fn quota_of<Q>(&self, key: &Q) -> u16
    where
        Q: ToOwned<Owned = K> + ?Sized,
    {
        let Some(classify) = &self.classify else { return 0 };
        let last = self.quotas.iter().count() - 1;
        u16::try_from(classify(&key.to_owned()).min(last)).expect("the builder has checked it")
    }

    /// The quota of `key`.
    pub(super) fn quota_for<Q>(&self, key: &Q) -> &Quota
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let hash = self.hash(key);
        let page = self.pages[self.place(hash)].load();
        let found = page.get().and_then(|page| page.with(hash, key, |slot| slot.quota));
        self.quotas.get(found.unwrap_or_else(|| self.quota_of(key)))
    }

    fn line(&self, quota: u16) -> &Line {
        self.quotas.get(quota).limiter().line()
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

    /// What is spent at least of a key that is not here.
    fn least_spent(&self, hash: u64, quota: u16) -> Position {
        self.base(quota).position().ahead(u128::from(self.floors.of(hash, quota)))
    }
}

/// The hash of a key. Multiplied (Knuth's multiplicative hashing), since pages go by the high bits, which
/// are all alike where small numbers are their own hashes.
#[inline]
pub(super) fn hash(hasher: &impl BuildHasher, key: &(impl Hash + ?Sized)) -> u64 {
    hasher.hash_one(key).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn present<K>(page: &Seen<Page<K>>) -> &Arc<Page<K>> {
    page.get().expect("a page that was found")
}

fn has_key<K, Q>(recent: &Seen<Recent<K>>, key: &Q) -> bool
where
    K: Borrow<Q>,
    Q: Eq + ?Sized,
{
    items(recent).any(|item| matches!(item, Item::Key(entry, _) if entry.key.borrow() == key))
}

impl Quota {
    fn take(&self, Slot { word, base, .. }: Slot<'_>, n: u32, when: When) -> Taking {
        match self.limiter().line().take_from(self.at(when), n, base, word) {
            Ok(()) => Taking::Done(Ok(())),
            Err(Untaken::Refused(why)) => Taking::Done(Err(TryAcquireError::of(n, why))),
            Err(Untaken::Stale) => Taking::Stale,
            Err(Untaken::Own) => Taking::Own,
        }
    }
}
