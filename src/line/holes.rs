//! Intervals that were given back, to be used again.
//!
//! A hole is in the set or in the hand of the one thread that removed it, never both. Taking part
//! of a hole is a removal and an insertion of the rest. Neighbours are not merged: a booking
//! gathers them anyway.

use super::position::{Grains, Interval, Position};
use crate::sync::{AtomicUsize, Ordering, SortedMap};
use std::collections::VecDeque;

/// All holes of a line, by position.
pub(crate) struct Holes {
    /// At least the number of holes in `map`: raised before an insertion, lowered after a
    /// removal. So zero means that there is none.
    count: AtomicUsize,
    /// From start to end.
    map: SortedMap<Position, Position>,
}

/// A stretch of free tokens, and the key of the hole that it lies in (none at the tail).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Free {
    pub(crate) hole: Option<Position>,
    pub(crate) interval: Interval,
}

impl Holes {
    pub(crate) fn new() -> Self {
        Self { count: AtomicUsize::new(0), map: SortedMap::new() }
    }

    /// Whether there may be any.
    #[inline]
    pub(crate) fn are_about(&self) -> bool {
        // Relaxed: a hole whose insertion happened before this call has raised the counter before
        // this load, and all that was lowered since was removed. Of a hole that is inserted at the
        // same time as this call nothing is promised.
        self.count.load(Ordering::Relaxed) != 0
    }

    /// The counter, and where each hole starts and ends.
    #[cfg(all(test, not(paceline_loom)))]
    pub(crate) fn words(&self) -> (usize, Vec<Interval>) {
        let holes = std::iter::successors(self.map.first(), |(start, _)| self.map.after(*start));
        let holes = holes.map(|(start, end)| Interval { start, end });
        (self.count.load(Ordering::SeqCst), holes.collect())
    }

    pub(crate) fn put(&self, hole: Interval) {
        // Relaxed, and before the insertion: see `are_about`. Raised after it, there would be a
        // hole that a zero hides, and a removal could lower the counter below zero.
        self.count.fetch_add(1, Ordering::Relaxed);
        self.map.insert(hole.start, hole.end);
    }

    /// Takes the hole that starts at `start` out of the set. One caller wins it.
    fn remove(&self, start: Position) -> Option<Interval> {
        let end = self.map.remove(start)?;
        // Relaxed, and after the removal: see `are_about`.
        self.count.fetch_sub(1, Ordering::Relaxed);
        Some(Interval { start, end })
    }

    /// Takes the last hole if it ends at `end`.
    pub(crate) fn remove_last(&self, end: Position) -> Option<Interval> {
        let (start, _) = self.map.last().filter(|(_, last)| *last == end)?;
        let hole = self.remove(start)?;
        if hole.end == end {
            return Some(hole);
        }
        self.put(hole);
        None
    }

    /// Drops up to `most` of the holes that have overflowed, where `alive_from` is the first
    /// position that has not.
    pub(crate) fn sweep(&self, alive_from: Position, most: usize) {
        for _ in 0..most {
            if !self.are_about() {
                return;
            }
            let Some((start, _)) = self.map.first().filter(|(_, end)| *end <= alive_from) else {
                return;
            };
            // It may have come back longer since, in which case it is not dropped.
            if let Some(hole) = self.remove(start).filter(|hole| hole.end > alive_from) {
                self.put(hole);
            }
        }
    }

    /// What is free at and beyond `alive_from`, in its order.
    pub(crate) fn alive(&self, alive_from: Position) -> impl Iterator<Item = Free> {
        let first = self.map.at_or_before(alive_from).filter(|(_, end)| *end > alive_from);
        let first = first.or_else(|| self.map.after(alive_from));
        std::iter::successors(first, |(start, _)| self.map.after(*start)).map(move |(hole, end)| {
            let start = hole.max(alive_from);
            Free { hole: Some(hole), interval: Interval { start, end } }
        })
    }

    /// The first position from which all up to `end` is free.
    pub(crate) fn free_back_from(&self, mut end: Position) -> Position {
        while let Some((start, hole_end)) = self.map.at_or_before(end.behind(1)) {
            if hole_end < end {
                break;
            }
            end = start;
        }
        end
    }

    /// Takes the holes that `plan` (in the order of their positions) lies in, and puts back what
    /// it leaves of them, but for what lies before `alive_from` and has overflowed. If another thread was faster, puts all back and says no.
    ///
    /// Everybody takes in the order of positions, so of all who are in each other's way the one
    /// that holds the last gets on.
    pub(crate) fn claim(&self, plan: &[Free], alive_from: Position) -> bool {
        let holes = plan.iter().filter_map(|free| Some((free.hole?, free.interval)));
        for (taken, (start, wanted)) in holes.clone().enumerate() {
            match self.remove(start) {
                Some(hole) if hole.end >= wanted.end => {
                    let before = hole.start.max(alive_from);
                    if before < wanted.start {
                        self.put(Interval { start: before, end: wanted.start });
                    }
                    if hole.end > wanted.end {
                        self.put(Interval { start: wanted.end, end: hole.end });
                    }
                }
                lost => {
                    if let Some(shorter) = lost {
                        self.put(shorter);
                    }
                    holes.take(taken).for_each(|(_, interval)| self.put(interval));
                    return false;
                }
            }
        }
        true
    }
}

/// The earliest pieces to make up `need` that lie as near to each other as `together` says, which is
/// given their start and their end: within one burst, so that the first has not overflowed when the
/// last is minted, or in one window. `free` must end with `need` or more in one piece that does, as
/// the tail of the line is.
///
/// Only runs that begin with a piece are looked at: one that begins later in the piece ends later
/// by as much or more, so it is no shorter.
pub(crate) fn earliest_run(
    free: impl Iterator<Item = Free>,
    need: Grains,
    together: impl Fn(Position, Position) -> bool,
) -> Vec<Free> {
    let length = |free: &Free| free.interval.end.beyond(free.interval.start);
    let mut run = VecDeque::new();
    let mut gathered = 0;
    for piece in free {
        run.push_back(piece);
        gathered += length(&piece);
        while let Some(excess) = gathered.checked_sub(u128::from(need.0)) {
            let end = piece.interval.end.behind(excess);
            let Some(first) = run.front() else { break };
            if together(first.interval.start, end) {
                run.back_mut().expect("it has a front").interval.end = end;
                return run.into();
            }
            gathered -= length(first);
            run.pop_front();
        }
    }
    unreachable!("the last piece is long enough alone")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TOKEN: Grains = Grains(10);

    fn at(grains: u128) -> Position {
        Position::ORIGIN.ahead(grains)
    }

    /// Tries every run of single tokens in turn.
    fn by_search(free: &[Free], need: u32, burst: Grains) -> Position {
        let tokens: Vec<Position> = free
            .iter()
            .flat_map(|free| {
                let count = free.interval.end.beyond(free.interval.start) / u128::from(TOKEN.0);
                (0..count).map(|index| free.interval.start.ahead(index * u128::from(TOKEN.0)))
            })
            .collect();
        let runs = tokens.windows(need as usize);
        let mut ends = runs.map(|run| (run[0], *run.last().unwrap() + TOKEN));
        let (_, end) = ends
            .find(|(start, end)| end.beyond(*start) <= u128::from(burst.0))
            .expect("the tail is long enough");
        end
    }

    proptest! {
        #[test]
        fn the_earliest_run_is_the_first_that_a_search_finds(
            pieces in prop::collection::vec((0..40_u128, 1..4_u128), 0..12),
            need in 1..8_u32,
            more in 0..4_u32,
        ) {
            let burst = TOKEN.times(need + more);
            let mut place = 0;
            let mut free = Vec::new();
            for (gap, tokens) in pieces {
                let start = place + gap;
                place = start + tokens * u128::from(TOKEN.0);
                let interval = Interval { start: at(start), end: at(place) };
                free.push(Free { hole: Some(at(start)), interval });
            }
            let tail = Interval { start: at(place), end: at(place) + TOKEN.times(need) };
            free.push(Free { hole: None, interval: tail });
            let run = earliest_run(free.iter().copied(), TOKEN.times(need), |start, end| end.beyond(start) <= u128::from(burst.0));
            let length = |free: &Free| free.interval.end.beyond(free.interval.start);
            let needed = u128::from(TOKEN.times(need).0);
            prop_assert_eq!(run.iter().map(length).sum::<u128>(), needed);
            let (first, last) = (run.first().unwrap(), run.last().unwrap());
            prop_assert!(last.interval.end.beyond(first.interval.start) <= u128::from(burst.0));
            prop_assert_eq!(last.interval.end, by_search(&free, need, burst));
        }
    }

    #[cfg(not(paceline_loom))]
    mod set {
        use super::*;

        fn holes(pieces: &[(u128, u128)]) -> Holes {
            let holes = Holes::new();
            for (start, end) in pieces {
                holes.put(Interval { start: at(*start), end: at(*end) });
            }
            holes
        }

        fn alive(holes: &Holes, from: u128) -> Vec<(u128, u128)> {
            let place = |position: Position| position.beyond(Position::ORIGIN);
            let free = holes.alive(at(from));
            free.map(|free| (place(free.interval.start), place(free.interval.end))).collect()
        }

        #[test]
        fn what_has_overflowed_is_left_out() {
            let holes = holes(&[(0, 10), (20, 50), (60, 70)]);
            assert_eq!(alive(&holes, 0), [(0, 10), (20, 50), (60, 70)]);
            assert_eq!(alive(&holes, 1), [(1, 10), (20, 50), (60, 70)]);
            assert_eq!(alive(&holes, 10), [(20, 50), (60, 70)]);
            assert_eq!(alive(&holes, 21), [(21, 50), (60, 70)]);
            assert_eq!(alive(&holes, 50), [(60, 70)]);
            assert_eq!(alive(&holes, 70), []);
        }

        #[test]
        fn a_sweep_drops_what_has_overflowed_and_no_more() {
            let holes = holes(&[(0, 10), (10, 20), (20, 40), (50, 60)]);
            holes.sweep(at(30), 1);
            assert_eq!(alive(&holes, 0), [(10, 20), (20, 40), (50, 60)]);
            holes.sweep(at(30), 9);
            assert_eq!(alive(&holes, 0), [(20, 40), (50, 60)]);
            holes.sweep(at(99), 9);
            assert!(!holes.are_about());
        }

        #[test]
        fn a_claim_puts_back_what_it_leaves_and_all_if_one_is_gone() {
            let holes = holes(&[(0, 30), (50, 60)]);
            let free = |key, start, end| Free {
                hole: Some(at(key)),
                interval: Interval { start: at(start), end: at(end) },
            };
            assert!(!holes.claim(&[free(0, 0, 10), free(40, 40, 50)], at(0)));
            assert_eq!(alive(&holes, 0), [(0, 10), (10, 30), (50, 60)]);
            assert!(holes.claim(&[free(10, 10, 20), free(50, 50, 60)], at(0)));
            assert_eq!(alive(&holes, 0), [(0, 10), (20, 30)]);
        }
    }
}
