//! One stripe: a few tokens at hand, in a word of its own.

use crate::line::Overflow;
use crate::sync::{AtomicU64, Ordering};
use crossbeam_utils::CachePadded;

/// What a stripe holds.
///
/// ```text
///   63       62                  24 23       12 11       0
///  ┌────────┬──────────────────────┬───────────┬──────────┐
///  │ closed │ changes              │ promised  │ tokens   │
///  └────────┴──────────────────────┴───────────┴──────────┘
/// ```
///
/// `promised` is room kept for tokens that somebody took and may bring back. `changes` counts
/// whatever adds tokens: so two equal words, seen one after the other, mean that nobody took any
/// in between. (It comes around after 2^39 of them.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word(u64);

const FIELD_BITS: u32 = 12;
const FIELD: u64 = (1 << FIELD_BITS) - 1;
const CHANGE: u64 = 1 << (2 * FIELD_BITS);
const CLOSED: u64 = 1 << 63;

/// As many tokens as fit.
pub(crate) const MOST_TOKENS: u32 = (1 << FIELD_BITS) - 1;

impl Word {
    #[inline]
    pub(crate) fn tokens(self) -> u32 {
        (self.0 & FIELD) as u32
    }

    fn promised(self) -> u32 {
        (self.0 >> FIELD_BITS & FIELD) as u32
    }

    fn is_closed(self) -> bool {
        self.0 & CLOSED != 0
    }

    /// How many more it may hold, of a batch in all. None once it is closed.
    pub(crate) fn room(self, batch: u32) -> u32 {
        if self.is_closed() { 0 } else { batch - self.tokens() - self.promised() }
    }

    #[inline]
    fn less(self, tokens: u32) -> Self {
        Self(self.0 - u64::from(tokens))
    }

    fn with(self, tokens: u32) -> Self {
        if tokens == 0 || self.is_closed() {
            return self;
        }
        Self((self.0 & CLOSED) | ((self.0 + CHANGE + u64::from(tokens)) & !CLOSED))
    }

    fn promising(self, tokens: u32) -> Self {
        Self(self.0 + (u64::from(tokens) << FIELD_BITS))
    }

    fn kept_promise(self, tokens: u32) -> Self {
        Self(self.0 - (u64::from(tokens) << FIELD_BITS))
    }

    /// Closed it holds nothing, so that who takes needs no second look.
    fn closed(self) -> Self {
        Self((self.0 & !FIELD) | CLOSED)
    }
}

/// What became of a request to a stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// There was not enough.
    Nothing,
    Some,
    /// It took all that there was.
    Last,
    /// It had what it asked for, and another thread was in its way.
    Contended,
}

/// A stripe.
pub(crate) struct Stripe {
    /// Written by the thread whose stripe it is, as a rule.
    word: CachePadded<AtomicU64>,
    record: CachePadded<Record>,
}

/// What those who come by know of a stripe.
struct Record {
    /// The word as somebody saw it.
    seen: AtomicU64,
    /// How many tokens had overflowed of the line then, or later.
    since: AtomicU64,
}

impl Stripe {
    pub(crate) fn empty() -> Self {
        let record = Record { seen: AtomicU64::new(0), since: AtomicU64::new(0) };
        Self { word: CachePadded::new(AtomicU64::new(0)), record: CachePadded::new(record) }
    }

    pub(crate) fn word(&self) -> Word {
        // Acquire: who records what it sees reads the clock next, and the line then. Relaxed, the
        // clock could be read before the word, and what was taken in between would count as missing
        // for longer than it was.
        Word(self.word.load(Ordering::Acquire))
    }

    /// Changes the word, unless `change` says no. This is the one loop that does.
    #[inline]
    fn update(&self, mut change: impl FnMut(Word) -> Option<Word>) -> Option<Word> {
        // Relaxed, all of it: a token is no lock, and orders nothing between who put it here and
        // who takes it. What is told by the word is in the word; the exchange sees to it that
        // nobody takes what another took.
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let next = change(Word(word))?;
            match self.word.compare_exchange(word, next.0, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(Word(word)),
                Err(present) => word = present,
            }
        }
    }

    /// Takes `tokens` if there are so many.
    #[inline]
    pub(crate) fn take(&self, tokens: u32) -> Taken {
        let mut looks = 0;
        let had = self.update(|word| {
            looks += 1;
            (word.tokens() >= tokens).then(|| word.less(tokens))
        });
        match had {
            None => Taken::Nothing,
            Some(had) if had.tokens() == tokens => Taken::Last,
            Some(_) if looks > 1 => Taken::Contended,
            Some(_) => Taken::Some,
        }
    }

    /// Adds as many of `tokens` as there is room for, and says how many that is.
    pub(crate) fn add(&self, tokens: u32, batch: u32) -> u32 {
        let fit = |word: Word| word.room(batch).min(tokens);
        self.update(|word| Some(word.with(fit(word)))).map_or(0, fit)
    }

    /// Takes up to `most`, and promises room for them, to be settled by [`Self::settle`].
    pub(crate) fn borrow(&self, most: u32) -> u32 {
        let part = |word: Word| word.tokens().min(most);
        self.update(|word| Some(word.less(part(word)).promising(part(word)))).map_or(0, part)
    }

    /// Brings back `tokens` of the `borrowed`, which is none or all of them.
    pub(crate) fn settle(&self, borrowed: u32, tokens: u32) {
        self.update(|word| Some(word.kept_promise(borrowed).with(tokens)));
    }

    pub(crate) fn close(&self) {
        self.update(|word| Some(word.closed()));
    }

    /// Records that the word was `word` when no more than `overflowed` had overflowed.
    pub(crate) fn record(&self, word: Word, overflowed: u64) {
        // Relaxed: published by the store below. It only grows: one that is recorded with another
        // word at the same time makes it later than it was, never earlier.
        self.record.since.fetch_max(overflowed, Ordering::Relaxed);
        // Release: pairs with the Acquire load in `fill`. Who sees this word must see an overflow
        // of then or later; an earlier one would count as missing what was there.
        self.record.seen.store(word.0, Ordering::Release);
    }

    /// Whether the word is as it was recorded.
    pub(crate) fn is_recorded(&self, word: Word) -> bool {
        // Relaxed: if it is another's news that is missed, the same is recorded again.
        self.record.seen.load(Ordering::Relaxed) == word.0
    }

    /// Fills up with what has overflowed of the line while this was as it is now, and says how many it
    /// took: the last ones.
    ///
    /// A stripe that is seen as it was seen before was so all the while.
    pub(crate) fn fill(&self, overflow: Overflow, batch: u32) -> u32 {
        // Acquire: pairs with the Release store in `record`.
        let word = Word(self.record.seen.load(Ordering::Acquire));
        // Relaxed: ordered by the load above.
        let due = overflow.since(self.record.since.load(Ordering::Relaxed));
        let tokens = word.room(batch).min(u32::try_from(due).unwrap_or(u32::MAX));
        if tokens == 0 {
            return 0;
        }
        // Relaxed: as in `update`; that the word is still the same is all that counts.
        let (from, to) = (word.0, word.with(tokens).0);
        let filled = self.word.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
        if filled.is_ok() { tokens } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_word_keeps_its_fields_apart(
            tokens in 0..=MOST_TOKENS / 2,
            more in 0..=MOST_TOKENS / 2,
            changes in 0..1_u64 << 39,
            promised in 0..=MOST_TOKENS,
        ) {
            let word = Word((changes << (2 * FIELD_BITS)) | u64::from(tokens)).promising(promised);
            let parts = |word: Word| (word.is_closed(), word.promised(), word.tokens());
            prop_assert_eq!(parts(word), (false, promised, tokens));
            prop_assert_eq!(parts(word.with(more)), (false, promised, tokens + more));
            prop_assert_eq!(word.with(more) == word, more == 0);
            prop_assert_eq!(parts(word.with(more).less(tokens)), (false, promised, more));
            prop_assert_eq!(parts(word.kept_promise(promised)), (false, 0, tokens));
            prop_assert_eq!(parts(word.closed()), (true, promised, 0));
            prop_assert_eq!(parts(word.closed().with(more)), (true, promised, 0));
        }
    }
}
