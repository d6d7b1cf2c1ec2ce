//! The lines of many keys that are minted alike, each kept in one word.
//!
//! A key's word says what is spent of its line, and one [`Line`] says for all of them how they are
//! minted and what they hold. A line of which nothing is used but what has overflowed is full; such a
//! key needs no word at all. So to forget a key that is full mints nothing.

use super::clock::{Clock, Minting};
use super::config::Config;
#[cfg(feature = "http")]
use super::decide::Tail;
use super::decide::{Patience, Refusal};
use super::plain::Verdict;
use super::position::{Grains, Interval, Position};
use super::slack::Slack;
use super::state::State;
use super::{Answer, Ask, Bounds, Holes, Line};
#[cfg(feature = "http")]
use crate::rate::Rate;
use crate::sync::{AtomicU64, Ordering};
#[cfg(feature = "http")]
use std::time::Duration;

/// How a limiter stands, all at one time.
#[cfg(feature = "http")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) rate: Rate,
    pub(crate) burst: u32,
    /// Whole permits; none while there is debt.
    pub(crate) left: u32,
    /// How long until there is one more; `None` if that is never.
    pub(crate) next: Option<Duration>,
}

/// Where the words of some keys count from. Whatever lies before it has overflowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Base(Position);

/// What is spent of a key's line, and two marks. Without a mark it may change; with one it never
/// does again.
///
/// ```text
///   63       62     61                        0
///  ┌────────┬─────┬───────────────────────────┐
///  │ frozen │ own │ grains beyond the base    │
///  └────────┴─────┴───────────────────────────┘
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Word(u64);

impl Word {
    /// The page that it is in is being replaced.
    const FROZEN: u64 = 1 << 63;
    /// The key has a limiter of its own, which went on from here.
    const OWN: u64 = 1 << 62;

    /// Of a key whose line is spent that far, and that has or gets a limiter of its own.
    pub(crate) fn with_own(self) -> Self {
        Self(self.0 | Self::OWN)
    }

    pub(crate) fn to_u64(self) -> u64 {
        self.0
    }

    #[inline]
    pub(crate) fn is_marked(self) -> bool {
        self.0 & (Self::FROZEN | Self::OWN) != 0
    }

    pub(crate) fn is_frozen(self) -> bool {
        self.0 & Self::FROZEN != 0
    }

    pub(crate) fn has_own(self) -> bool {
        self.0 & Self::OWN != 0
    }

    fn beyond_base(self) -> u64 {
        self.0 & !(Self::FROZEN | Self::OWN)
    }
}

impl Base {
    /// How far beyond the base words are used: half of what a word can hold, so that what is minted
    /// can always be told apart from what is spent.
    const REACH: u64 = 1 << 61;

    #[inline]
    pub(crate) fn read(self, word: Word) -> Position {
        self.0 + Grains(word.beyond_base())
    }

    /// The word for `position`, if it is within reach.
    #[inline]
    pub(crate) fn write(self, position: Position) -> Option<Word> {
        let beyond = u64::try_from(position.beyond(self.0)).ok()?;
        (position >= self.0 && beyond < Self::REACH).then_some(Word(beyond))
    }

    /// How far `position` lies beyond the one that `word` means, if it is within reach.
    #[inline]
    #[expect(clippy::cast_possible_wrap, reason = "both are below half of the range")]
    fn distance(self, position: Position, word: Word) -> Option<i64> {
        self.write(position).map(|Word(beyond)| beyond as i64 - word.beyond_base() as i64)
    }

    pub(crate) fn position(self) -> Position {
        self.0
    }

    /// This, or the next one that `position` is within reach of.
    pub(crate) fn within_reach_of(self, position: Position) -> Self {
        let out_of_reach = position.beyond(self.0).saturating_sub(u128::from(Self::REACH - 1));
        Self(self.0.ahead(out_of_reach))
    }
}

/// Lets the word change no more, and returns it.
pub(crate) fn freeze(word: &AtomicU64) -> Word {
    // AcqRel. Acquire: pairs with the Release in `exchange`, so that who copies the word knows the
    // configuration under which it was written, and does not judge it by one that is older. Release:
    // pairs with the Acquire loads of words; who finds the mark finds the page sealed, too.
    Word(word.fetch_or(Word::FROZEN, Ordering::AcqRel))
}

/// Why a word was not taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Untaken {
    Refused(Refusal),
    /// The page must be replaced first: it is frozen, or time has passed beyond its reach.
    Stale,
    /// The key has a limiter of its own.
    Own,
}

impl From<Refusal> for Untaken {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl Line {
    /// Makes this the line that says how those of many keys are minted. If it waits for its first use,
    /// that is now: no key is its user.
    pub(crate) fn for_keys(self, now: u64) -> Self {
        let minting = match self.minting {
            Minting::InStepsFromUse => Minting::InSteps,
            minting => minting,
        };
        self.state.config().replace(|config| {
            let start = config.clock.start;
            let start = if start == Clock::NOT_STARTED { now } else { start };
            Config { clock: Clock { start, ..config.clock }, ..config }
        });
        Self { has_keys: true, minting, ..self }
    }

    /// As [`Self::take_plain`], from the line of the key whose word this is.
    #[inline]
    pub(crate) fn take_plain_from(
        &self,
        now: u64,
        tokens: u32,
        base: Base,
        word: &AtomicU64,
    ) -> Verdict {
        let cost = self.cost(tokens);
        let config = self.state.config();
        loop {
            let (version, plain) = config.peek_plain();
            // Acquire: pairs with the Release in `exchange`. Who sees a word that was written under a
            // newer configuration finds that newer one in the check below, and does not judge the word
            // by the older.
            let seen = Word(word.load(Ordering::Acquire));
            if seen.is_marked() || version.is_closed() || !config.is_still(version) {
                return Verdict::Unclear;
            }
            match plain.decide(now, cost, |minted| base.distance(minted, seen)) {
                Verdict::Take(end) => match base.write(end) {
                    Some(taken) if !exchange(word, seen, taken) => {}
                    Some(_) => return Verdict::Take(end),
                    None => return Verdict::Unclear,
                },
                verdict => return verdict,
            }
        }
    }

    /// As [`Self::take_plain_from`], for whatever is not plain.
    pub(crate) fn take_from(
        &self,
        now: u64,
        tokens: u32,
        base: Base,
        word: &AtomicU64,
    ) -> Result<(), Untaken> {
        loop {
            let (closed, config, seen) = self.with_word(word);
            if seen.is_frozen() {
                return Err(Untaken::Stale);
            }
            if seen.has_own() {
                return Err(Untaken::Own);
            }
            let end = self.end_of_taking(now, tokens, closed, &config, base.read(seen))?;
            let Some(end) = end else { return Ok(()) };
            let Some(taken) = base.write(end) else { return Err(Untaken::Stale) };
            if exchange(word, seen, taken) {
                return Ok(());
            }
        }
    }

    /// Whether `tokens` could be had of a line that is spent up to `spent`, and where they would end;
    /// none if nothing is needed. Writes nothing.
    ///
    /// # Errors
    ///
    /// Why not.
    pub(crate) fn peek_beyond(
        &self,
        now: u64,
        tokens: u32,
        spent: Position,
    ) -> Result<Option<Position>, Refusal> {
        let (version, config) = self.state.config().read();
        self.end_of_taking(now, tokens, version.is_closed(), &config, spent)
    }

    /// Whether `ask` would be served of a line that is spent up to `spent`. Writes nothing.
    ///
    /// # Errors
    ///
    /// Why not.
    pub(crate) fn ask_beyond(&self, ask: Ask, spent: Position) -> Result<(), Refusal> {
        let (version, config) = self.state.config().read();
        match self.answer(version.is_closed(), &config, spent, ask, || false) {
            Answer::Refused(refusal) => Err(refusal),
            _ => Ok(()),
        }
    }

    fn end_of_taking(
        &self,
        now: u64,
        tokens: u32,
        closed: bool,
        config: &Config,
        spent: Position,
    ) -> Result<Option<Position>, Refusal> {
        let ask = Ask::new(now, tokens, Patience::Until(now));
        match self.answer(closed, config, spent, ask, || false) {
            Answer::Nothing => Ok(None),
            Answer::Booked(_, Interval { end, .. }, _) => Ok(Some(end)),
            Answer::Refused(refusal) => Err(refusal),
            Answer::LookAtHoles => unreachable!("there are none"),
        }
    }

    /// Where words of keys begin to count from, at `now`: the line of who has used nothing beyond it is full.
    pub(crate) fn base(&self, now: u64) -> Base {
        let (_, config) = self.state.config().read();
        if config.clock.is_unlimited_at(now) {
            // Where the overflow will be when that is over: see `Line::minted`.
            return Base(config.clock.origin + Grains::ROOM);
        }
        // Rounded down: one that begins here has been full for a grain, as `Tail::at` asks.
        Base(config.horizon(config.clock.read(now).minted))
    }

    /// How a line that is spent up to `spent` stands, by one look at the configuration.
    #[cfg(feature = "http")]
    pub(crate) fn standing_beyond(&self, now: u64, spent: Position) -> Standing {
        let (_, config) = self.state.config().read();
        let Config { clock, capacity, rate, .. } = &config;
        let (rate, burst) = (*rate, capacity.in_tokens(self.token));
        if clock.is_unlimited_at(now) {
            return Standing { rate, burst, left: burst, next: None };
        }
        let tail = Tail::at(now, &config, spent, 0);
        let free = tail.reach.beyond(tail.start).min(u128::from(capacity.0));
        let left = u32::try_from(free / u128::from(self.token.0)).expect("at most the capacity");
        let one_more = || tail.start.ahead(u128::from(self.token.0) * (u128::from(left) + 1));
        let next = (left < burst).then(|| clock.due(one_more())).flatten();
        let next = next.map(|due| Duration::from_nanos(due.saturating_sub(now)));
        Standing { rate, burst, left, next }
    }

    /// The free tokens of a line that is spent up to `spent`.
    pub(crate) fn tokens_beyond(&self, now: u64, spent: Position) -> f64 {
        self.tokens_of(&self.state.config().read().1, now, spent, 0)
    }

    /// What is spent of it.
    pub(crate) fn spent(&self) -> Position {
        self.state.view().spent
    }

    /// When a line that is spent up to `spent` is full again; `None` if never.
    pub(crate) fn full_at(&self, spent: Position) -> Option<u64> {
        let (_, config) = self.state.config().read();
        config.clock.due(spent + config.capacity)
    }

    /// The configuration and a word as they were at the same instant.
    fn with_word(&self, word: &AtomicU64) -> (bool, Config, Word) {
        let config = self.state.config();
        loop {
            let (version, words) = config.peek();
            // Acquire: as in `take_plain_from`.
            let seen = Word(word.load(Ordering::Acquire));
            if config.is_still(version) {
                return (version.is_closed(), words, seen);
            }
        }
    }

    /// A line of its own for a key, minted as this one, that goes on where the key's word was left.
    pub(crate) fn own_line(&self, spent: Position) -> Self {
        let (version, config) = self.state.config().read();
        let line = Self {
            state: State::new(config, spent.max(config.floor)),
            holes: Holes::new(),
            slack: Slack::new(self.slack.most()),
            has_keys: false,
            ..*self
        };
        if version.is_closed() {
            line.close();
        }
        line
    }

    /// Goes on as `other` does, with its clock and its capacity, if `follows` still holds.
    pub(crate) fn follow(&self, other: &Self, follows: impl Fn() -> bool) {
        let present = |config| if follows() { other.state.config().read().1 } else { config };
        self.state.config().replace(present);
    }

    /// The most that it can be set to.
    pub(crate) fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// How often the settings were changed, and whether it is closed.
    pub(crate) fn version(&self) -> super::config::Version {
        self.state.config().read().0
    }

    /// What is spent of a line that nobody uses, if a word can hold all that is to know of it: nothing
    /// that was given back is left, nothing is booked ahead, and nobody has overslept of late, which
    /// would be forgiven to who acquires next.
    pub(crate) fn spent_at_rest(&self, now: u64) -> Option<Position> {
        let view = self.state.view();
        self.holes.sweep(self.alive_from(&view.config, now), usize::MAX);
        let is_booked = view.spent > view.config.clock.read(now).minted;
        let at_rest = !is_booked && !self.holes.are_about() && self.allowance(now) == 0;
        at_rest.then_some(view.spent)
    }

    /// Whether a line that is spent up to `spent` holds all that it may.
    pub(crate) fn is_full(&self, now: u64, spent: Position) -> bool {
        let (_, Config { clock, capacity, floor, .. }) = self.state.config().read();
        spent.max(floor) + capacity <= clock.read(now).minted
    }
}

/// Marks that the key has a limiter of its own from here on. False if the word has changed.
pub(crate) fn mark_own(word: &AtomicU64, seen: Word) -> bool {
    exchange(word, seen, seen.with_own())
}

/// The word, to be looked at before it is marked.
pub(crate) fn look_at(word: &AtomicU64) -> Word {
    // Acquire: as in `take_plain_from`.
    Word(word.load(Ordering::Acquire))
}

/// The one compare-and-swap of a key's word.
///
/// It may meet an equal value although the word has changed: words only grow, but for marks, which
/// stay. So an equal word is the same one.
#[inline]
fn exchange(word: &AtomicU64, from: Word, to: Word) -> bool {
    // Release: pairs with the Acquire loads of words; see `take_plain_from`. On failure nothing is
    // learnt but that the word must be read again, so Relaxed.
    word.compare_exchange(from.0, to.0, Ordering::Release, Ordering::Relaxed).is_ok()
}
