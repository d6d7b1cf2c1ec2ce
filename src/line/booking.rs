//! What a request was given.

use super::position::{Grains, Interval, Position};

/// A permit or several: intervals of the line, or nothing if nothing was needed.
///
/// Small, since each who waits holds one; nearly all are a single interval.
#[derive(Debug)]
pub(crate) struct Booking(Pieces);

#[derive(Debug)]
enum Pieces {
    Nothing,
    Now(Piece),
    Later(Piece),
    Many(Box<Many>),
}

/// An interval in 24 bytes; an [`Interval`] takes 32, and its alignment 8 more.
#[derive(Clone, Copy, Debug)]
struct Piece {
    start: [u64; 2],
    length: u64,
}

/// Intervals in their order.
#[derive(Debug)]
struct Many {
    pieces: Vec<Interval>,
    immediate: bool,
}

impl Piece {
    fn interval(self) -> Interval {
        let start = Position::from_words(self.start);
        Interval { start, end: start + Grains(self.length) }
    }
}

impl Booking {
    pub(crate) const NOTHING: Self = Self(Pieces::Nothing);

    /// An interval, and whether it could be used when it was booked.
    #[inline]
    pub(crate) fn of(interval: Interval, immediate: bool) -> Self {
        let Interval { start, end } = interval;
        #[expect(clippy::cast_possible_truncation, reason = "at most the largest capacity")]
        let piece = Piece { start: start.to_words(), length: end.beyond(start) as u64 };
        Self(if immediate { Pieces::Now(piece) } else { Pieces::Later(piece) })
    }

    pub(crate) fn of_many(pieces: Vec<Interval>, immediate: bool) -> Self {
        match pieces[..] {
            [piece] => Self::of(piece, immediate),
            _ => Self(Pieces::Many(Box::new(Many { pieces, immediate }))),
        }
    }

    /// Whether it could be used when it was booked.
    pub(crate) fn is_immediate(&self) -> bool {
        match &self.0 {
            Pieces::Nothing | Pieces::Now(_) => true,
            Pieces::Later(_) => false,
            Pieces::Many(many) => many.immediate,
        }
    }

    /// Its intervals, in their order.
    pub(crate) fn pieces(&self) -> impl DoubleEndedIterator<Item = Interval> {
        let (one, many) = match &self.0 {
            Pieces::Nothing => (None, &[][..]),
            Pieces::Now(piece) | Pieces::Later(piece) => (Some(piece.interval()), &[][..]),
            Pieces::Many(many) => (None, &many.pieces[..]),
        };
        one.into_iter().chain(many.iter().copied())
    }

    /// What is left of it without the first `used` grains. Its turn has come.
    #[cfg(feature = "io")]
    pub(crate) fn beyond(&self, used: Grains) -> Self {
        let mut used = u128::from(used.0);
        let left = self.pieces().filter_map(|piece| {
            let length = piece.end.beyond(piece.start);
            let cut = used.min(length);
            used -= cut;
            #[expect(clippy::cast_possible_truncation, reason = "at most `used`")]
            let start = piece.start + Grains(cut as u64);
            (cut < length).then_some(Interval { start, ..piece })
        });
        Self::of_many(left.collect(), true)
    }

    /// The length of all of it.
    pub(crate) fn length(&self) -> u128 {
        self.pieces().map(|piece| piece.end.beyond(piece.start)).sum()
    }
}

#[cfg(all(test, feature = "io", not(paceline_loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_beyond_the_used_is_all_the_rest_in_its_place(
            gaps_and_lengths in prop::collection::vec((0..9_u64, 1..9_u64), 1..6),
            used in 0..60_u64,
        ) {
            let mut end = Position::ORIGIN;
            let pieces: Vec<_> = gaps_and_lengths
                .into_iter()
                .map(|(gap, length)| {
                    let start = end + Grains(gap);
                    end = start + Grains(length);
                    Interval { start, end }
                })
                .collect();
            let grains = |booking: &Booking| -> Vec<Position> {
                let of = |piece: Interval| {
                    let length = u64::try_from(piece.end.beyond(piece.start)).unwrap();
                    (0..length).map(move |n| piece.start + Grains(n))
                };
                booking.pieces().flat_map(of).collect()
            };
            let all = Booking::of_many(pieces, false);
            let rest = all.beyond(Grains(used));
            let used = usize::try_from(used).unwrap().min(grains(&all).len());
            prop_assert_eq!(&grains(&all)[used..], &grains(&rest)[..]);
        }
    }
}
