//! For the loom models: where every token of a line is.

use super::position::{Interval, Position};
use super::{Booking, Line, Settings};
use super::{
    config::{Config, ConfigCell, WORDS},
    position::Grains,
    scale::Bounds,
};
use crate::rate::Rate;

impl Line {
    /// Checks that every token that was handed out since the line was full is in exactly one
    /// place: in one of the bookings `held`, in a hole, or (if `lost` allows it) overflowed.
    pub(crate) fn assert_accounted<'a>(
        &self,
        initial: u32,
        held: impl IntoIterator<Item = &'a Booking>,
        loss: Loss,
    ) {
        let held = held.into_iter().flat_map(Booking::pieces);
        let mut pieces: Vec<Interval> = held.chain(self.all_holes()).collect();
        pieces.sort_by_key(|piece| piece.start);
        let mut end = Position::ORIGIN - self.token.times(initial);
        for piece in &pieces {
            assert!(piece.start >= end, "a token is in two places: {piece:?} in {pieces:?}");
            if loss == Loss::None {
                assert_eq!(piece.start, end, "a token is nowhere: {pieces:?}");
            }
            end = piece.end;
        }
        let spent = self.state.view().spent;
        assert!(spent >= end, "handed out beyond the end {spent:?} of the line: {pieces:?}");
        if loss == Loss::None {
            assert_eq!(spent, end, "a token is nowhere: {pieces:?}");
        }
    }

    pub(crate) fn all_holes(&self) -> Vec<Interval> {
        let holes = self.holes.alive(Position::BEGINNING);
        holes.map(|free| free.interval).collect()
    }
}

impl Booking {
    pub(crate) fn start(&self) -> Option<Position> {
        Some(self.pieces().next()?.start)
    }
}

/// Whether tokens of a line may have overflowed unused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    None,
    Possible,
}

impl Line {
    /// A line of `burst` tokens of so many grains each, to bring laps about soon.
    pub(crate) fn coarse(token: u64, rate: Rate, burst: u32, bounds: Bounds) -> Self {
        Self::with_token(Grains(token), Settings::full(rate, burst, bounds, 0))
    }
}

/// A config whose words all say one number.
impl ConfigCell {
    pub(crate) fn numbered(number: u64) -> Self {
        Self::new(Config::from_words([number; WORDS]))
    }

    pub(crate) fn set_number(&self, number: u64) {
        self.replace(|_| Config::from_words([number; WORDS]));
    }

    pub(crate) fn add_to_number(&self, more: u64) {
        self.replace(|config| Config::from_words(config.to_words().map(|word| word + more)));
    }

    /// The number, if it could be read while nothing changed. Of the words it reads those of the
    /// plain case: with all of them a model does not finish.
    pub(crate) fn number(&self) -> Option<u64> {
        let (version, plain) = self.peek_plain();
        let [high, low] = plain.origin.to_words();
        self.is_still(version).then(|| {
            let words = [high, low, plain.start, plain.speed.whole];
            assert_eq!(words, [low; 4], "torn");
            low
        })
    }
}
