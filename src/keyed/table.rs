//! The pages of all keys, and what can be done with a key of them.

mod keys;
mod owns;

use super::own::Own;
use super::page::{Page, Slot};
use super::quota::{Quota, Quotas};
#[cfg(feature = "http")]
use super::together::standing_of;
use crate::error::TryAcquireError;
use crate::limiter::Limiter;
#[cfg(feature = "http")]
use crate::line::Standing;
use crate::line::{Line, Position, Untaken, Verdict, look_at};
use crate::sync::{AtomicUsize, Ordering, Seen, Swap};
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

impl<K> Page<K> {
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
