//! One slot of the log: a chain of uses, each of which comes a window or more after the one before.
//!
//! The word says from when on the next use may come. Whoever books a use extends the chain by one
//! compare-and-swap, from the very word that it looked at; whoever gives back the last use takes it
//! off again in the same way. So the chain is right whatever happens in between, and that alone
//! keeps the limit: of the uses of one slot no two lie in one window.

use crate::sync::{AtomicU64, Ordering};
use crate::window::engine::NEVER;

/// Nobody may extend the chain.
const RETIRED: u64 = 1 << 63;
/// The uses below are not taken off any more, since another slot may count them too.
const SEALED: u64 = 1 << 62;

/// What a slot says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word(u64);

impl Word {
    /// That of a chain that ends then.
    pub(super) fn free_from(time: u64) -> Self {
        Self(time.min(NEVER))
    }

    /// When the next use may come.
    #[inline]
    pub(super) fn time(self) -> u64 {
        if self.0 & RETIRED == 0 { self.0 & !SEALED } else { NEVER }
    }

    /// When the chain ends, retired or not.
    fn end(self) -> u64 {
        self.0 & !(RETIRED | SEALED)
    }
}

pub(super) struct Slot(AtomicU64);

impl Slot {
    pub(super) fn free() -> Self {
        Self(AtomicU64::new(0))
    }

    #[inline]
    pub(super) fn word(&self) -> Word {
        // Acquire: pairs with the Release in `extend`. Who sees a use sees the head of the log as
        // its owner left it, so a refusal that looked at a slot just taken finds out.
        Word(self.0.load(Ordering::Acquire))
    }

    /// Adds a use at `turn`, after which the chain ends at `end`; says what the word was. None if
    /// `turn` is too early by now.
    #[inline]
    pub(super) fn extend(&self, turn: u64, end: u64) -> Option<Word> {
        let mut word = self.word();
        while word.time() <= turn {
            // Release: see `word`. Relaxed on failure: nothing is done by what was read before it
            // is compared again, and the chain itself is this one word.
            match self.0.compare_exchange(word.0, end, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return Some(word),
                Err(now) => word = Word(now),
            }
        }
        None
    }

    /// Takes the use off that ends at `end`, if it is the last of the chain and not sealed.
    pub(super) fn take_off(&self, end: u64, before: Word) -> bool {
        // A word that left and came back does no harm: a chain ends at `end` above this use again
        // only if all that came after it was taken off.
        // Relaxed: who is to find it free sees it by the head that moves back, or by the hole.
        self.0.compare_exchange(end, before.0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Seals the chain; says when it ends.
    pub(super) fn seal(&self) -> u64 {
        // Relaxed: the chain is this one word; and so below.
        Word(self.0.fetch_or(SEALED, Ordering::Relaxed)).end()
    }

    /// Seals the chain and lets nobody extend it; says when it ends.
    pub(super) fn retire(&self) -> u64 {
        Word(self.0.fetch_or(SEALED | RETIRED, Ordering::Relaxed)).end()
    }

    /// Lets the chain be extended again.
    pub(super) fn revive(&self) {
        // Relaxed: who uses the slot has seen the limit that was published after this.
        self.0.fetch_and(!RETIRED, Ordering::Relaxed);
    }

    /// Lets the chain end at `later` if it ends at `end` and is not retired; if not, says when it
    /// ends.
    pub(super) fn put_off(&self, end: u64, later: u64) -> Result<(), u64> {
        let word = Word(self.0.load(Ordering::Relaxed));
        if word.end() != end {
            return Err(word.end());
        }
        // Relaxed: as above; whoever changed the word meanwhile is found by the exchange.
        self.0
            .compare_exchange(word.0, later | SEALED, Ordering::Relaxed, Ordering::Relaxed)
            .map(|_| ())
            .map_err(|now| Word(now).end())
    }
}
