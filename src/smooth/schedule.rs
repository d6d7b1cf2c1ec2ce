//! A schedule: one word that requests move on, and the stretches that were given back.
//!
//! Every request occupies a stretch of the schedule of its own, from one [`Mark`] to the next. That
//! is all that must hold: its turn comes where the stretch begins, so what a window of time sees
//! used is what fits into it, and into what is stored, and one request that reaches beyond.

#[cfg(all(test, paceline_loom))]
mod ledger;

use super::pace::{Pace, Price};
use super::rule::{Mark, Rule};
use super::span::Span;
use crate::line::{Free, Holes, Interval, Outlook, Patience, Position, Refusal, Turn};
use crate::rate::Rate;
use crate::sync::{AtomicU128, Ordering};
use crossbeam_utils::CachePadded;

pub(crate) struct Schedule<R> {
    rule: R,
    /// The end of what is booked. Written by every grant, so on a cache line of its own.
    end: CachePadded<AtomicU128>,
    /// Written rarely, read by all.
    pace: CachePadded<Pace>,
    holes: Holes,
}

/// A stretch of the schedule; an empty one if nothing was needed.
///
/// Marks are kept in halves, since whole ones would align it to 16 bytes.
#[derive(Debug)]
pub(crate) struct Booking {
    start: [u64; 2],
    end: [u64; 2],
    turn: u64,
    pub(super) permits: u32,
    pub(super) immediate: bool,
}

/// What was found among the holes.
enum Found {
    Booked(Booking),
    /// None of them serves the request.
    None,
    /// Another thread has taken it.
    Gone,
}

impl Booking {
    fn nothing(permits: u32) -> Self {
        Self { start: [0; 2], end: [0; 2], turn: 0, permits, immediate: true }
    }

    #[inline]
    fn of(start: Mark, end: Mark, turn: u64, now: u64, permits: u32) -> Self {
        let (start, end) = (start.position().to_words(), end.position().to_words());
        Self { start, end, turn, permits, immediate: turn <= now }
    }

    fn interval(&self) -> Interval {
        Interval { start: Position::from_words(self.start), end: Position::from_words(self.end) }
    }

    fn is_nothing(&self) -> bool {
        self.start == self.end
    }

    /// How long after `now` its turn comes.
    pub(crate) fn wait(&self, now: u64) -> u64 {
        if self.immediate { 0 } else { self.turn.saturating_sub(now) }
    }

    pub(super) fn turn(&self) -> u64 {
        self.turn
    }
}

impl<R: Rule> Schedule<R> {
    pub(crate) fn new(rule: R, rate: Rate) -> Self {
        let end = CachePadded::new(AtomicU128::new(rule.first().0));
        Self { rule, end, pace: CachePadded::new(Pace::new(rate)), holes: Holes::new() }
    }

    /// Books the earliest turn, if it comes in time. A refusal writes nothing.
    #[inline]
    pub(crate) fn book(
        &self,
        now: u64,
        permits: u32,
        patience: Patience,
    ) -> Result<Booking, Refusal> {
        loop {
            let seen = self.end();
            let time = match self.pace.price() {
                Price::Closed => return Err(Refusal::Closed),
                _ if permits == 0 => return Ok(Booking::nothing(0)),
                Price::Free => return Ok(Booking::nothing(permits)),
                Price::Never => return Err(never(patience)),
                Price::Each(interval) => interval.times(permits),
            };
            let start = self.rule.present(seen, now);
            let turn = self.rule.turn(start);
            if turn.is_none_or(|turn| turn > now) && self.holes.are_about() {
                match self.book_hole(now, permits, time, patience, start)? {
                    Found::Booked(booking) => return Ok(booking),
                    Found::Gone => continue,
                    Found::None => {}
                }
            }
            let turn = in_time(turn, now, patience)?;
            let end = self.rule.charged(start, time);
            if self.exchange(seen, end) {
                return Ok(Booking::of(start, end, turn, now, permits));
            }
        }
    }

    /// Whether `permits` could be had at `now`. Writes nothing.
    pub(crate) fn peek(&self, now: u64, permits: u32) -> Result<(), Refusal> {
        let patience = Patience::Until(now);
        let seen = self.end();
        let time = match self.pace.price() {
            Price::Closed => return Err(Refusal::Closed),
            Price::Free => return Ok(()),
            _ if permits == 0 => return Ok(()),
            Price::Never => return Err(never(patience)),
            Price::Each(interval) => interval.times(permits),
        };
        let tail = self.rule.present(seen, now);
        let late = self.rule.turn(tail).is_none_or(|turn| turn > now);
        let hole = if late { self.find_hole(now, time, tail) } else { None };
        let start = hole.map_or(tail, |(start, ..)| start);
        in_time(self.rule.turn(start), now, patience).map(drop)
    }

    /// Books the earliest part of the holes before `tail` that has room for it.
    #[cold]
    fn book_hole(
        &self,
        now: u64,
        permits: u32,
        time: Span,
        patience: Patience,
        tail: Mark,
    ) -> Result<Found, Refusal> {
        let Some((start, end, plan)) = self.find_hole(now, time, tail) else {
            return Ok(Found::None);
        };
        let turn = in_time(self.rule.turn(start), now, patience)?;
        // What lies before the plan is in the past.
        if self.holes.claim(&plan, Position::INFINITE) {
            return Ok(Found::Booked(Booking::of(start, end, turn, now, permits)));
        }
        Ok(Found::Gone)
    }

    /// Where in the holes before `tail` a request has room, and the pieces of them that it is. Holes
    /// that touch are one; over a gap it does not reach, since the time in there is another's.
    fn find_hole(&self, now: u64, time: Span, tail: Mark) -> Option<(Mark, Mark, Vec<Free>)> {
        let mut run: Vec<Free> = Vec::new();
        let mut start = tail;
        for Free { hole, interval } in self.holes.alive(Mark::at(now)) {
            let hole = hole?;
            if run.last().is_none_or(|last| last.interval.end != hole) {
                run.clear();
                start = self.rule.present(Mark::from_position(hole), now);
            }
            // Beyond the tail it came after the tail was looked at.
            if start >= tail {
                return None;
            }
            if start.position() >= interval.end {
                run.clear();
                continue;
            }
            let end = self.rule.charged(start, time);
            let from = hole.max(start.position());
            let whole = Interval { start: from, end: interval.end };
            run.push(Free { hole: Some(hole), interval: whole });
            if end.position() <= interval.end {
                run.last_mut()?.interval.end = end.position();
                return Some((start, end, run));
            }
        }
        None
    }

    /// Makes free again what was booked and has not been used.
    pub(crate) fn give_back(&self, now: u64, booking: &Booking) {
        if booking.is_nothing() {
            return;
        }
        let Interval { start, end } = booking.interval();
        if self.exchange(Mark::from_position(end), Mark::from_position(start)) {
            self.swallow_last_holes(start);
        } else {
            self.holes.put(Interval { start, end });
        }
        // Each that comes lets up to two that have passed go, so they cannot pile up.
        self.holes.sweep(Mark::at(now), 2);
    }

    /// Moves the end, which has just come back to `end`, back over the holes there. One that comes
    /// to lie there later is no loss: the next booking that would wait takes it.
    fn swallow_last_holes(&self, mut end: Position) {
        while self.holes.are_about() {
            let Some(hole) = self.holes.remove_last(end) else { return };
            if !self.exchange(Mark::from_position(hole.end), Mark::from_position(hole.start)) {
                self.holes.put(hole);
                return;
            }
            end = hole.start;
        }
    }

    #[inline]
    fn end(&self) -> Mark {
        // Acquire: pairs with the Release in `exchange`, and comes before the price is read. Who
        // sees what was charged by a newer rate must not charge by an older one; with Relaxed it
        // could.
        Mark(self.end.load(Ordering::Acquire))
    }

    /// The one compare-and-swap of the word. Charged by the price that was read before, it is as if
    /// it had come before any change of it since.
    ///
    /// A word that left and came back in between does no harm: only the owner of the last stretch
    /// moves it back, and then it is again the end of what is booked.
    #[inline]
    fn exchange(&self, from: Mark, to: Mark) -> bool {
        // Release: pairs with the Acquire load in `end`; see there. On failure nothing is learnt but
        // that the word must be read again, so Relaxed.
        self.end.compare_exchange(from.0, to.0, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// What one who has slept finds. Its turn is what it was when it was booked, and waits for it
    /// however late it comes: as in Guava, a change of the rate moves nobody who has a turn.
    pub(crate) fn look(&self, now: u64, booking: &Booking) -> Outlook {
        if self.is_closed() {
            Outlook::Closed
        } else if booking.turn <= now {
            Outlook::Turn { late: now - booking.turn, overflown: false }
        } else {
            Outlook::Wait(Some(booking.turn))
        }
    }

    /// Goes by `rate` from `now` on. Marks are times, so they stay; but when a time without limit
    /// ends, during which nobody has moved the word on, it is brought up to date.
    pub(crate) fn set_rate(&self, now: u64, rate: Rate) {
        self.pace.set(rate, || {
            loop {
                let seen = self.end();
                if self.exchange(seen, self.rule.refreshed(seen, now)) {
                    return;
                }
            }
        });
    }

    pub(crate) fn rate(&self) -> Rate {
        self.pace.rate()
    }

    pub(crate) fn close(&self) {
        self.pace.close();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.pace.price() == Price::Closed
    }

    /// What is stored at `now`, in permits of the present rate: to show.
    pub(crate) fn stored_permits(&self, now: u64) -> f64 {
        let stored = self.rule.stored(self.end(), now);
        match self.pace.price() {
            Price::Each(interval) => stored.in_units_of(interval),
            Price::Free => f64::INFINITY,
            Price::Never | Price::Closed => 0.0,
        }
    }
}

/// The turn, if it comes before who is so patient gives up.
#[inline]
fn in_time(turn: Option<u64>, now: u64, patience: Patience) -> Result<u64, Refusal> {
    let Some(turn) = turn else { return Err(never(patience)) };
    match patience {
        Patience::Until(time) if turn > time || now > time => {
            Err(Refusal::Late(Turn::after(Some(turn.saturating_sub(now)))))
        }
        _ => Ok(turn),
    }
}

/// Nobody waits for a turn that never comes.
fn never(patience: Patience) -> Refusal {
    match patience {
        Patience::Forever => Refusal::NoRoom,
        Patience::Until(_) => Refusal::Late(Turn::after(None)),
    }
}
