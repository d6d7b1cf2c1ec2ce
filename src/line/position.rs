//! Places on the token line and lengths of it, and how a place fits into one word.
//!
//! A [`Position`] is a number of *grains* from the beginning of the line and never wraps. The
//! state word holds only its low 64 bits; [`Lap`] says which position a word means:
//!
//! ```text
//!              lap - 1        lap        lap + 1       lap + 2
//! line   ──────┬─────────────┬─────────────┬─────────────┬─────────────┬──────▶
//!              │◀── a word read under `lap` lies in one of these four ──▶│
//!              │◀──── where `spent` is allowed to be ────▶│    (guard)   │
//! ```
//!
//! Four laps of 2^62 grains make up the 2^64 values of a word, so each word has one meaning.

use std::ops::{Add, Sub};

/// A lap is 2^62 grains: four of them are all that a word can tell apart.
const LAP_BITS: u32 = 62;

/// A length of the line, in grains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Grains(pub(crate) u64);

impl Grains {
    /// How far ahead of the horizon the line may be booked.
    pub(crate) const ROOM: Self = Self(1 << LAP_BITS);

    /// The largest capacity: four of them fit into [`Self::ROOM`], so that three full reserves
    /// ahead of a full bucket still compare right.
    pub(crate) const MOST_CAPACITY: Self = Self(Self::ROOM.0 / 4);

    /// The length of `count` pieces of this length.
    pub(crate) fn times(self, count: u32) -> Self {
        Self(self.0 * u64::from(count))
    }
}

/// A place on the line, in grains from its beginning; or the end of a piece of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position(u128);

impl Position {
    /// Where minting starts: high enough that nothing below it is ever negative.
    pub(crate) const ORIGIN: Self = Self(1 << 64);

    /// Beyond every position that a clock can reach.
    pub(crate) const INFINITE: Self = Self(1 << 125);

    /// How far this lies beyond `other`; nothing when it does not.
    pub(crate) fn beyond(self, other: Self) -> u128 {
        self.0.saturating_sub(other.0)
    }

    /// This position and `grains` more.
    pub(crate) fn ahead(self, grains: u128) -> Self {
        Self(self.0 + grains)
    }

    /// This position less `grains`.
    pub(crate) fn behind(self, grains: u128) -> Self {
        Self(self.0 - grains)
    }

    /// How many whole pieces of length `token` fit between this and `end`.
    pub(crate) fn whole_tokens_to(self, end: Self, token: Grains) -> u128 {
        end.beyond(self) / u128::from(token.0)
    }

    /// This position, or the first after it at or beyond `from` that is whole tokens away.
    pub(crate) fn skip_tokens_to(self, from: Self, token: Grains) -> Self {
        let token = u128::from(token.0);
        Self(self.0 + from.beyond(self).div_ceil(token) * token)
    }

    pub(crate) fn lap(self) -> Lap {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "positions stay below 2^126, laps below 2^64"
        )]
        Lap((self.0 >> LAP_BITS) as u64)
    }

    /// What the state word holds for this position.
    #[expect(clippy::cast_possible_truncation, reason = "the word is the low half")]
    pub(crate) fn word(self) -> u64 {
        self.0 as u64
    }

    /// Both halves, for words that keep the whole position.
    #[expect(clippy::cast_possible_truncation, reason = "the halves are what is asked for")]
    pub(crate) fn to_words(self) -> [u64; 2] {
        [(self.0 >> 64) as u64, self.0 as u64]
    }

    pub(crate) fn from_words([high, low]: [u64; 2]) -> Self {
        Self(u128::from(high) << 64 | u128::from(low))
    }
}

impl Add<Grains> for Position {
    type Output = Self;
    fn add(self, length: Grains) -> Self {
        Self(self.0 + u128::from(length.0))
    }
}

impl Sub<Grains> for Position {
    type Output = Self;
    fn sub(self, length: Grains) -> Self {
        Self(self.0 - u128::from(length.0))
    }
}

/// The number of a lap of the line, and the key to what a state word means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Lap(pub(crate) u64);

impl Lap {
    /// How many laps the values of a word make up.
    const PER_CIRCLE: u64 = 1 << (u64::BITS - LAP_BITS);

    pub(crate) fn start(self) -> Position {
        Position(u128::from(self.0) << LAP_BITS)
    }

    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The last lap of at most `latest` under which every word reads a whole number of circles
    /// further on than under this one.
    pub(crate) fn whole_circles_towards(self, latest: Self) -> Self {
        let laps = latest.0.saturating_sub(self.0);
        Self(self.0 + laps / Self::PER_CIRCLE * Self::PER_CIRCLE)
    }

    /// The position that `word` means under this lap.
    pub(crate) fn read(self, word: u64) -> Position {
        let first = Self(self.0 - 1).start();
        Position(first.0 + u128::from(word.wrapping_sub(first.word())))
    }
}

/// A piece of the line, from `start` up to but not including `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) start: Position,
    pub(crate) end: Position,
}
