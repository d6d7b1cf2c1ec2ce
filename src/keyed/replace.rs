//! A page is replaced as a whole: when it has no room for keys that come, or time has passed beyond
//! what its words can tell. Then keys that are full are left out, so nothing else need sweep them.
//!
//! It is done in three steps, each of which anybody may do again: the page is *sealed*, so that
//! no key comes to it; its words are *frozen*, so that they change no more; and then a page of what
//! they say takes its place, by one compare-and-swap. Who finds a word frozen does not wait for
//! whoever froze it, but replaces the page too; one of them wins, and it does not matter which.
//! Nobody takes from a page that is gone, since all its words are frozen; so no token is given by two.

use super::own::{Own, Retired};
use super::page::{Entry, Floors, GROUPS, Item, Page, Recent, group, items};
use super::quota::Quotas;
use super::table::{When, hash};
use crate::line::{Base, Position, Word, freeze};
use crate::sync::{AtomicU64, Seen, Swap};
use std::cmp::Reverse;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

/// A key that stays.
struct Stays<K> {
    key: K,
    hash: u64,
    quota: u16,
    spent: Position,
    own: Option<Arc<Own>>,
}

impl<K: Clone + Eq + Hash> Page<K> {
    /// A page of nothing, whose words count from `when`.
    pub(super) fn empty(quotas: &Quotas, when: When) -> Self {
        Self::of(Vec::new(), &bases(quotas, when), Floors::default())
    }

    /// What takes its place, with at least `gone` keys less if that can be.
    pub(super) fn replaced(
        &self,
        quotas: &Quotas,
        hasher: &impl BuildHasher,
        when: When,
        gone: usize,
    ) -> Self {
        let mut all = self.frozen(quotas, hasher, when);
        let count = all.len();
        let bases = self.bases_after(quotas, when, &all);
        all.retain(|key| key.own.is_some() || key.spent > bases[usize::from(key.quota)].position());
        let mut floors = self.floors_from(&bases);
        let more = (gone + all.len()).saturating_sub(count);
        for key in forget(&mut all, more, quotas) {
            floors.raise(key.hash, key.quota, key.spent, &bases);
        }
        Self::of(all, &bases, floors)
    }

    /// All its keys, once nothing of them changes any more; but for those of whose own limiters it is
    /// known that they are full.
    fn frozen(&self, quotas: &Quotas, hasher: &impl BuildHasher, when: When) -> Vec<Stays<K>> {
        let recent = self.seal();
        let entries = self.entries.iter().enumerate();
        let entries = entries.map(|(index, entry)| (entry, self.quota(index), Some(index)));
        let came = items(&recent).filter_map(|item| match item {
            Item::Key(entry, quota) => Some((entry, *quota, None)),
            _ => None,
        });
        let mut all = Vec::with_capacity(self.len());
        for (entry, quota, index) in entries.chain(came) {
            let Entry { key, word } = entry;
            let word = freeze(word);
            let mut stays = Stays {
                key: key.clone(),
                hash: hash(hasher, key),
                quota,
                spent: self.base(quota).read(word),
                own: None,
            };
            // Who marked the word but found the page sealed will look again.
            if let Some(own) = self.own_of(word, key, index, &recent) {
                match own.retire(quotas, when) {
                    Some(Retired::At(spent)) => stays.spent = spent,
                    Some(Retired::Full) => continue,
                    None => stays.own = Some(own),
                }
            }
            all.push(stays);
        }
        all
    }

    fn own_of(
        &self,
        word: Word,
        key: &K,
        index: Option<usize>,
        recent: &Seen<Recent<K>>,
    ) -> Option<Arc<Own>> {
        if !word.has_own() {
            return None;
        }
        let came = items(recent).find_map(|item| match item {
            Item::Own(of, own) if of == key => Some(Arc::clone(own)),
            _ => None,
        });
        came.or_else(|| self.own_of_entry(index?))
    }

    /// Where words count from in the page that takes its place: never further back than here, and not
    /// so far back that one is out of reach.
    fn bases_after(&self, quotas: &Quotas, when: When, all: &[Stays<K>]) -> Vec<Base> {
        let mut after = bases(quotas, when);
        for (quota, base) in (0..).zip(&mut after) {
            *base = (*base).max(self.base(quota));
        }
        for key in all.iter().filter(|key| key.own.is_none()) {
            let base = &mut after[usize::from(key.quota)];
            *base = base.within_reach_of(key.spent);
        }
        after
    }

    fn floors_from(&self, bases: &[Base]) -> Floors {
        let mut floors = Floors::default();
        for (index, beyond) in self.floors.0.iter().enumerate().filter(|(_, beyond)| **beyond > 0) {
            let quota = u16::try_from(index / Floors::GROUPS).expect("of a quota");
            let spent = self.base(quota).position().ahead(u128::from(*beyond));
            floors.raise_at(index, quota, spent, bases);
        }
        floors
    }

    fn of(mut all: Vec<Stays<K>>, bases: &[Base], floors: Floors) -> Self {
        all.sort_by_key(|key| group(key.hash));
        let mut starts = [0; GROUPS + 1];
        for key in &all {
            starts[group(key.hash) + 1] += 1;
        }
        for index in 0..GROUPS {
            starts[index + 1] += starts[index];
        }
        let several = bases.len() > 1;
        let quotas = all.iter().filter(|_| several).map(|key| key.quota).collect();
        let owns = (0..).zip(&all);
        let owns = owns.filter_map(|(index, key)| Some((index, Arc::clone(key.own.as_ref()?))));
        let owns = owns.collect();
        let entry = |key: Stays<K>| {
            let base = bases[usize::from(key.quota)];
            let word = match &key.own {
                // What is spent is for the limiter to say.
                Some(_) => Word::default().with_own(),
                None => base.write(key.spent).expect("the base was chosen so"),
            };
            Entry { key: key.key, word: AtomicU64::new(word.to_u64()) }
        };
        let entries = all.into_iter().map(entry).collect();
        let (base, other_bases) = (bases[0], bases[1..].into());
        let recent = Swap::new(None);
        Self { base, other_bases, starts, entries, quotas, owns, floors, recent }
    }
}

fn bases(quotas: &Quotas, when: When) -> Vec<Base> {
    quotas.iter().map(|quota| quota.limiter().line().base(quota.at(when))).collect()
}

/// Takes out the `count` keys that are full the soonest.
fn forget<K>(all: &mut Vec<Stays<K>>, count: usize, quotas: &Quotas) -> Vec<Stays<K>> {
    if count == 0 {
        return Vec::new();
    }
    // Those whose limiters are in use are not let go, and one that is never full is the last to be.
    all.sort_by_cached_key(|key| {
        let full_at = quotas.get(key.quota).limiter().line().full_at(key.spent);
        Reverse((key.own.is_some(), full_at.is_none(), full_at))
    });
    let free = all.iter().rev().take_while(|key| key.own.is_none()).count();
    all.split_off(all.len() - count.min(free))
}

impl Floors {
    fn raise(&mut self, hash: u64, quota: u16, spent: Position, bases: &[Base]) {
        self.raise_at(Self::index(hash, quota), quota, spent, bases);
    }

    fn raise_at(&mut self, index: usize, quota: u16, spent: Position, bases: &[Base]) {
        let beyond = spent.beyond(bases[usize::from(quota)].position());
        if beyond == 0 {
            return;
        }
        if self.0.is_empty() {
            self.0 = vec![0; bases.len() * Self::GROUPS].into();
        }
        // A floor is what is spent of a key that had a word, so it fits; and higher is safe.
        let beyond = u64::try_from(beyond).unwrap_or(u64::MAX);
        self.0[index] = self.0[index].max(beyond);
    }
}
