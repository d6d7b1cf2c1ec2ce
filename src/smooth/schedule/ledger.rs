//! For the loom models: where every stretch of a schedule is.

use super::{Booking, Schedule};
use crate::line::{Interval, Position};
use crate::smooth::rule::Rule;

impl<R: Rule> Schedule<R> {
    /// Checks that all of a schedule that was never idle is in exactly one place: in one of the
    /// bookings `held`, or in a hole.
    pub(crate) fn assert_accounted<'a>(&self, held: impl IntoIterator<Item = &'a Booking>) {
        let held = held.into_iter().filter(|booking| !booking.is_nothing());
        let holes = self.holes.alive(Position::BEGINNING).map(|free| free.interval);
        let mut pieces: Vec<Interval> = held.map(Booking::interval).chain(holes).collect();
        pieces.sort_by_key(|piece| piece.start);
        let mut end = self.rule.first().position();
        for piece in &pieces {
            assert!(piece.start >= end, "a stretch is in two places: {pieces:?}");
            assert_eq!(piece.start, end, "a stretch is nowhere: {pieces:?}");
            end = piece.end;
        }
        assert_eq!(self.end().position(), end, "the end is elsewhere: {pieces:?}");
    }
}
