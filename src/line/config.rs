//! The clock and the capacity, changed rarely and read by every operation without blocking.
//!
//! Two slots and a version. The version's parity says which slot is in force; a writer fills the
//! other one and then moves the version on. A reader that finds the version where it was has read
//! a slot that nobody wrote to meanwhile. It retries only when a change was *finished* in between,
//! so a writer that is stopped half-way stops nobody: this is not a seqlock.
//!
//! Writers exclude each other with a mutex. Only reconfiguration takes it.

use super::clock::{Clock, Speed};
use super::plain::Plain;
use super::position::{Grains, Position};
use crate::rate::Rate;
use crate::sync::{AtomicU64, Mutex, Ordering, fence};
use std::sync::PoisonError;

/// A time in which the line stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pause {
    pub(crate) from: u64,
    pub(crate) until: u64,
}

/// What the owner of a limiter has set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) clock: Clock,
    pub(crate) capacity: Grains,
    /// The horizon never lies below this: a larger capacity revives nothing that has overflowed.
    pub(crate) floor: Position,
    pub(crate) rate: Rate,
    /// The last pause, unless somebody has ended it. The clock of a line whose steps are aligned starts
    /// before the pause is over, with the step that goes on then.
    pub(crate) paused: Option<Pause>,
    /// How much more than the limit was used in the step that the clock starts with, since the limit
    /// was lowered meanwhile: see [`Line::set_limit`](super::Line::set_limit).
    pub(crate) overdrawn: Grains,
}

impl Config {
    /// The first position that the bucket still holds at `now`, by a reading of then.
    #[inline]
    pub(crate) fn horizon(&self, filled: Position) -> Position {
        (filled - self.capacity).max(self.floor)
    }

    /// The first position at which a hole still counts at `now`.
    #[inline]
    pub(crate) fn alive_from(&self, now: u64) -> Position {
        self.horizon(self.clock.passed(now))
    }

    /// When the pause that lasts at `now` began.
    pub(crate) fn pause_at(&self, now: u64) -> Option<u64> {
        self.paused.filter(|pause| now < pause.until).map(|pause| pause.from)
    }

    /// The first time from `now` on at which the line may go on, by the present settings.
    pub(crate) fn goes_on(&self, now: u64) -> u64 {
        self.paused.map_or(0, |pause| pause.until).max(self.clock.start).max(now)
    }

    pub(super) fn to_words(self) -> [u64; WORDS] {
        let plain = Plain::of(&self);
        let Clock { start, origin, speed, since, last_step } = self.clock;
        let [origin_high, origin_low] = origin.to_words();
        let [floor_high, floor_low] = self.floor.to_words();
        let Rate { tokens, period } = self.rate;
        let paused = self.paused.unwrap_or(NOT_PAUSED);
        [
            plain.from,
            plain.capacity.0,
            start,
            origin_high,
            origin_low,
            speed.whole,
            speed.over,
            speed.part,
            self.capacity.0,
            floor_high,
            floor_low,
            tokens,
            period,
            paused.from,
            paused.until,
            since,
            last_step,
            self.overdrawn.0,
        ]
    }

    pub(super) fn from_words(words: [u64; WORDS]) -> Self {
        let [
            _,
            _,
            start,
            origin_high,
            origin_low,
            whole,
            over,
            part,
            capacity,
            floor_high,
            floor_low,
            tokens,
            period,
            from,
            until,
            since,
            last_step,
            overdrawn,
        ] = words;
        Self {
            clock: Clock {
                start,
                origin: Position::from_words([origin_high, origin_low]),
                speed: Speed { whole, part, over },
                since,
                last_step,
            },
            capacity: Grains(capacity),
            floor: Position::from_words([floor_high, floor_low]),
            rate: Rate { tokens, period },
            paused: Some(Pause { from, until }).filter(|paused| *paused != NOT_PAUSED),
            overdrawn: Grains(overdrawn),
        }
    }
}

pub(super) const WORDS: usize = 18;

const NOT_PAUSED: Pause = Pause { from: u64::MAX, until: u64::MAX };

/// The words that [`Plain`] is made of come first, to be read alone.
const PLAIN_WORDS: usize = 7;

impl Plain {
    #[inline]
    fn from_words(words: [u64; PLAIN_WORDS]) -> Self {
        let [from, capacity, start, origin_high, origin_low, whole, over] = words;
        Self {
            from,
            start,
            origin: Position::from_words([origin_high, origin_low]),
            speed: Speed { whole, part: 0, over },
            capacity: Grains(capacity),
        }
    }
}

type Slot = [AtomicU64; WORDS];

/// A count of the changes, and whether the limiter is closed.
///
/// ```text
///   63      62                                   0
///  ┌────────┬─────────────────────────────────────┐
///  │ closed │ changes (the lowest bit: the slot)  │
///  └────────┴─────────────────────────────────────┘
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version(u64);

impl Version {
    const CLOSED: u64 = 1 << 63;

    #[inline]
    pub(crate) fn is_closed(self) -> bool {
        self.0 & Self::CLOSED != 0
    }

    #[inline]
    fn slot(self) -> usize {
        usize::from(self.0 & 1 != 0)
    }

    fn next(self) -> Self {
        Self(self.0 + 1)
    }

    fn closed(self) -> Self {
        Self(self.0 | Self::CLOSED)
    }
}

/// A [`Config`] that is replaced as a whole.
pub(crate) struct ConfigCell {
    version: AtomicU64,
    slots: [Slot; 2],
    writers: Mutex<()>,
}

impl ConfigCell {
    pub(crate) fn new(config: Config) -> Self {
        let slot = || config.to_words().map(AtomicU64::new);
        Self { version: AtomicU64::new(0), slots: [slot(), slot()], writers: Mutex::new(()) }
    }

    #[cfg(all(test, not(paceline_loom)))]
    pub(super) fn words(&self) -> Vec<u64> {
        let words = std::iter::once(&self.version).chain(self.slots.iter().flatten());
        words.map(|word| word.load(Ordering::SeqCst)).collect()
    }

    /// What is in force, to be believed only if [`Self::is_still`] says so afterwards.
    #[inline]
    pub(crate) fn peek(&self) -> (Version, Config) {
        let (version, words) = self.peek_words();
        (version, Config::from_words(words))
    }

    /// As [`Self::peek`], but only what the plain case needs.
    #[inline]
    pub(crate) fn peek_plain(&self) -> (Version, Plain) {
        let (version, words) = self.peek_words();
        (version, Plain::from_words(words))
    }

    #[inline]
    fn peek_words<const N: usize>(&self) -> (Version, [u64; N]) {
        // Acquire: pairs with the Release store in `replace`. Weaker, the words below could be
        // read from before the change that this version announces.
        let version = Version(self.version.load(Ordering::Acquire));
        let slot = &self.slots[version.slot()];
        // Relaxed: a word of a later change may be read here. `is_still` finds that out.
        (version, std::array::from_fn(|index| slot[index].load(Ordering::Relaxed)))
    }

    /// Whether all that was loaded since [`Self::peek`] gave `version`, the words as well as the
    /// state word, was loaded while `version` was in force.
    #[inline]
    pub(crate) fn is_still(&self, version: Version) -> bool {
        // Acquire fence: pairs with the Release fence in `replace`. Had a word been read that the
        // change after the next one wrote into this slot, then the load below sees that next
        // version at least. Without it that load could be done before the words are read.
        fence(Ordering::Acquire);
        // Relaxed: the fence orders it.
        self.version.load(Ordering::Relaxed) == version.0
    }

    /// What is in force.
    pub(crate) fn read(&self) -> (Version, Config) {
        loop {
            let (version, config) = self.peek();
            if self.is_still(version) {
                return (version, config);
            }
        }
    }

    /// Changes the configuration to what `change` makes of it, at the one instant at which the
    /// version moves. Other writers wait; readers do not.
    pub(crate) fn replace(&self, change: impl FnOnce(Config) -> Config) {
        // Nothing panics while the lock is held but `change`, and it has changed nothing then.
        let _writer = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        let (version, config) = self.read();
        let changed = change(config);
        if changed == config {
            return;
        }
        let next = version.next();
        // Release fence: pairs with the Acquire fence in `is_still`. It orders the version that
        // this writer has just read before the words that it now writes, so that who sees one of
        // these words sees that version too, and knows that its slot is gone.
        fence(Ordering::Release);
        for (slot, word) in self.slots[next.slot()].iter().zip(changed.to_words()) {
            // Relaxed: announced by the store of the version below.
            slot.store(word, Ordering::Relaxed);
        }
        // Release: pairs with the Acquire load in `peek`, and publishes the words above.
        self.version.store(next.0, Ordering::Release);
    }

    /// Closes for good.
    pub(crate) fn close(&self) {
        let _writer = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        let (version, _) = self.read();
        // Release: as in `replace`, which the lock keeps from storing an older version over it.
        self.version.store(version.closed().0, Ordering::Release);
    }

    pub(crate) fn is_closed(&self) -> bool {
        // Acquire: who sees it closed sees all that the closer did before.
        Version(self.version.load(Ordering::Acquire)).is_closed()
    }
}
