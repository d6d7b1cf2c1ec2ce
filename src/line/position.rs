//! Places on the token line and lengths of it, and how a place fits into one word.
//!
//! A [`Position`] is a number of *grains* from the beginning of the line and never wraps. The
//! state word holds only 64 bits of it; a [`Lap`] says which position a word means:
//!
//! ```text
//!              lap - 1        lap        lap + 1       lap + 2
//! line   ──────┬─────────────┬─────────────┬─────────────┬─────────────┬──────▶
//!              │◀─── a word read under `lap` lies in one of these four ───▶│
//!              │◀──── where `spent` may be ────────────▶│    (never)       │
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

    /// How many tokens a capacity is.
    pub(crate) fn in_tokens(self, token: Self) -> u32 {
        u32::try_from(self.0 / token.0).expect("made of a u32 of tokens")
    }
}

/// A place on the line, in grains from its beginning; or the end of a piece of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position(u128);

impl Position {
    /// Where minting starts: high enough that nothing below it is ever negative.
    pub(crate) const ORIGIN: Self = Self(1 << 64);

    #[cfg(all(test, paceline_loom))]
    pub(crate) const BEGINNING: Self = Self(0);

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

    /// How many whole tokens lie before this, where one token begins at the origin; at most `u64::MAX`.
    pub(crate) fn whole_tokens(self, token: Grains) -> u64 {
        u64::try_from(self.since_first(token) / u128::from(token.0)).unwrap_or(u64::MAX)
    }

    /// As [`Self::whole_tokens`], with the one that it lies in.
    pub(crate) fn begun_tokens(self, token: Grains) -> u64 {
        u64::try_from(self.since_first(token).div_ceil(u128::from(token.0))).unwrap_or(u64::MAX)
    }

    /// The grains from the beginning of the first whole token.
    fn since_first(self, token: Grains) -> u128 {
        self.0 - Self::ORIGIN.0 % u128::from(token.0)
    }

    /// The lap that this lies in.
    #[expect(clippy::cast_possible_truncation, reason = "positions stay below 2^126")]
    fn lap(self) -> u64 {
        (self.0 >> LAP_BITS) as u64
    }

    /// Both halves, for words that keep the whole position.
    #[expect(clippy::cast_possible_truncation, reason = "the halves are what is asked for")]
    pub(crate) fn to_words(self) -> [u64; 2] {
        [(self.0 >> 64) as u64, self.0 as u64]
    }

    pub(crate) fn from_words([high, low]: [u64; 2]) -> Self {
        Self((u128::from(high) << 64) | u128::from(low))
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

/// What a state word means: the lap that the line is in, and by how many laps words are turned.
///
/// ```text
///   63                                2 1      0
///  ┌───────────────────────────────────┬────────┐
///  │ number                            │ turned │
///  └───────────────────────────────────┴────────┘
/// ```
///
/// A word is the position less `turned` laps, modulo 2^64. Turning all words on at once is how a
/// line that nobody touched for long is brought up to date without touching the state word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lap(u64);

impl Lap {
    const TURNED_BITS: u32 = u64::BITS - LAP_BITS;

    fn new(number: u64, turned: u64) -> Self {
        Self((number << Self::TURNED_BITS) | (turned % (1 << Self::TURNED_BITS)))
    }

    /// The lap for a line that is at `position` first.
    pub(crate) fn of(position: Position) -> Self {
        Self::new(position.lap(), 0)
    }

    pub(crate) fn from_word(word: u64) -> Self {
        Self(word)
    }

    pub(crate) fn to_word(self) -> u64 {
        self.0
    }

    fn number(self) -> u64 {
        self.0 >> Self::TURNED_BITS
    }

    fn turned(self) -> u64 {
        self.0 % (1 << Self::TURNED_BITS)
    }

    /// The state word that means `position` under this lap.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the word is the low half")]
    pub(crate) fn write(self, position: Position) -> u64 {
        (position.0 as u64).wrapping_sub(self.turned() << LAP_BITS)
    }

    /// The position that `word` means under this lap.
    #[inline]
    pub(crate) fn read(self, word: u64) -> Position {
        let first = start_of(self.number() - 1);
        Position(first.0 + u128::from(word.wrapping_sub(self.write(first))))
    }

    /// No booking ends so far beyond what was minted when it was made.
    pub(crate) const FARTHEST_DEBT: i64 = -(1 << LAP_BITS);

    /// How far `position` lies beyond the one that `word` means, if it lies in this lap or the
    /// next.
    ///
    /// The distance is more than minus two laps and less than three; these are told apart modulo
    /// four, with the sign, but for what is two laps and more ahead, which looks like two laps
    /// and less behind: beyond [`Self::FARTHEST_DEBT`].
    #[inline]
    #[expect(clippy::cast_possible_wrap, reason = "that is the sign")]
    pub(crate) fn distance(self, position: Position, word: u64) -> Option<i64> {
        let laps = position.lap().wrapping_sub(self.number());
        (laps <= 1).then(|| self.write(position).wrapping_sub(word) as i64)
    }

    /// A cancel may move `spent` back to here, and no further.
    #[inline]
    pub(crate) fn reaches_back_to(self) -> Position {
        start_of(self.number())
    }

    /// Bookings must end before this, or this is no longer the lap.
    #[inline]
    pub(crate) fn end(self) -> Position {
        start_of(self.number() + 2)
    }

    /// What must become of the lap, or of `spent` first, for a booking that starts at `start` and
    /// ends at or beyond [`Self::end`].
    ///
    /// The next lap is the one after this; or, where the booking starts more than a lap beyond
    /// it, the one before the booking's, and then all words mean places so many laps further on.
    /// All of them have overflowed then: they meant places before `end`, and now mean ones before
    /// the lap in which the booking starts.
    ///
    /// Either is safe only while `spent` cannot come to lie before the places that the next lap
    /// knows, not even by a cancel that has looked already and goes back by up to the largest
    /// capacity. So if need be `spent` is lifted first, over what has overflowed: to the start of
    /// the booking or, if that is far away, to the same place in the next lap. (To its very
    /// beginning would do too, but then lifts would write the same few words again and again, and
    /// one that came late could meet an equal word and lift too far.)
    pub(crate) fn turn(self, spent: Position, start: Position) -> Turning {
        let next = self.number() + 1;
        if spent < self.reaches_back_to() + Grains::MOST_CAPACITY {
            let laps_beyond = start.lap() - next;
            return Turning::Lift(Position(start.0 - start_of(laps_beyond).0));
        }
        let nearest = next.max(start.lap() - 1);
        Turning::Next(Self::new(nearest, self.turned() + (nearest - next)))
    }
}

/// How the next lap is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turning {
    /// `spent` must be lifted to this position.
    Lift(Position),
    /// This is the next lap.
    Next(Lap),
}

fn start_of(lap: u64) -> Position {
    Position(u128::from(lap) << LAP_BITS)
}

/// A piece of the line, from `start` up to but not including `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) start: Position,
    pub(crate) end: Position,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl Lap {
        /// The same lap, with all words turned on by so many laps.
        pub(crate) fn turned_by(self, laps: u64) -> Self {
            Self::new(self.number(), laps)
        }
    }

    fn lap() -> impl Strategy<Value = Lap> {
        (1..1_u64 << 59, 0..4_u64).prop_map(|(number, turned)| Lap::new(number, turned))
    }

    proptest! {
        #[test]
        fn a_word_reads_as_the_position_it_was_written_for(lap in lap(), place in 0..4_u128 << 62) {
            let position = start_of(lap.number() - 1).ahead(place);
            prop_assert_eq!(lap.read(lap.write(position)), position);
        }

        #[test]
        fn a_position_survives_its_words(position: u128) {
            prop_assert_eq!(Position::from_words(Position(position).to_words()), Position(position));
        }

        /// Wherever `spent` is allowed to be, and wherever beyond the lap a booking starts.
        #[test]
        fn a_turn_leads_to_a_lap_that_knows_where_spent_is(
            lap in lap(),
            place in 0..3_u128 << 62,
            cost in 1..=Grains::MOST_CAPACITY.0,
            beyond in prop_oneof![0..1_u128 << 62, 0..40_u128 << 62],
        ) {
            let mut lap = lap;
            let mut spent = start_of(lap.number() - 1).ahead(place);
            let end = lap.end().ahead(beyond);
            let start = Position(end.0 - u128::from(cost));
            prop_assume!(start >= spent);
            for _ in 0..8 {
                if end < lap.end() {
                    return Ok(());
                }
                match lap.turn(spent, start) {
                    Turning::Lift(to) => {
                        prop_assert!(spent < to && to <= start, "lifted over what has overflowed");
                        prop_assert!(to < lap.end());
                        spent = to;
                    }
                    Turning::Next(next) => {
                        prop_assert!(next.number() > lap.number());
                        let means = next.read(lap.write(spent));
                        prop_assert!(spent <= means && means <= start.max(spent));
                        // As far as a cancel that has looked already may go back.
                        let back = spent - Grains::MOST_CAPACITY;
                        let back = back.max(lap.reaches_back_to());
                        prop_assert!(next.read(lap.write(back)) <= means);
                        // As far as bookings under the old lap may have gone.
                        let last = lap.end().behind(1);
                        if next.number() > lap.number() + 1 {
                            prop_assert!(next.read(lap.write(last)) < start);
                        } else {
                            prop_assert_eq!(next.read(lap.write(last)), last);
                        }
                        (lap, spent) = (next, means);
                    }
                }
            }
            prop_assert!(false, "still not there");
        }
    }
}
