//! What differs between the schedules: pure functions of a [`Mark`].

use super::span::Span;
use crate::line::Position;

/// Where a schedule is: up to when it is booked, and what is stored. One word of 128 bits, which each
/// rule reads its own way.
///
/// The marks of a schedule are ordered as their times are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark(pub(super) u128);

impl Mark {
    /// As a key of the set of holes.
    #[expect(clippy::cast_possible_truncation, reason = "the halves are what is asked for")]
    pub(super) fn position(self) -> Position {
        Position::from_words([(self.0 >> 64) as u64, self.0 as u64])
    }

    pub(super) fn from_position(position: Position) -> Self {
        let [high, low] = position.to_words();
        Self((u128::from(high) << 64) | u128::from(low))
    }

    /// The first mark of the nanosecond `now`. What ends before is past, whatever the rule.
    pub(super) fn at(now: u64) -> Position {
        Position::from_words([now, 0])
    }
}

/// How a schedule is charged. A request occupies the stretch from one mark to the next, and its turn
/// comes at the beginning of it: it pays for itself by making the next one wait.
pub(crate) trait Rule: Send + Sync {
    /// Where a schedule begins.
    fn first(&self) -> Mark;

    /// What `mark` has become at `now`, if nobody came: time that was not used is stored, as far as
    /// there is room for it, and is lost beyond.
    ///
    /// Who comes in the nanosecond of the turn comes on time, and takes up where it begins. If the
    /// fraction were dropped, a caller who comes back just when it was told to would make the
    /// schedule late, each time a little more.
    fn present(&self, mark: Mark, now: u64) -> Mark;

    /// Where a request that starts at `mark` ends, if its permits take `time` when nothing is
    /// stored. Later than `mark`, for any time that is not zero.
    fn charged(&self, mark: Mark, time: Span) -> Mark;

    /// When the turn of a request that starts at `mark` comes; `None` if never.
    fn turn(&self, mark: Mark) -> Option<u64>;

    /// What becomes of `mark` at `now`, when a time without limit ends.
    fn refreshed(&self, mark: Mark, now: u64) -> Mark;

    /// What is stored, as the time in which it would be minted.
    fn stored(&self, mark: Mark, now: u64) -> Span;
}
