//! [`SlidingLog`]: never more than the limit in any window, exactly.
//!
//! The log is a ring of `limit` slots, and each use has a slot. The uses of one slot lie a window or
//! more apart (see [`slot`]), so in any half-open window of that length there is at most one of each
//! slot: at most `limit`. That is all of the argument; what follows is about fairness alone.
//!
//! Places are taken in the order of the ring. The *head* counts them, and moves before the slot is
//! written. As long as each is used when it can be, slots are sorted by time from the head on; a
//! request for `n` is served when the last of its `n` slots is free. So turns come in the order in
//! which they were booked, and a big request is not overtaken. Three cases are not so plain:
//!
//! * *A place that is claimed and not written yet.* Who comes to its slot before it is written has
//!   gone round the ring meanwhile, finds the slot free and uses it. Its owner then fails to extend
//!   the chain at its turn, gives back what else it has, and begins again. The slot has been used
//!   once for two places, which loses nothing: the ring is as it would be had the owner come last.
//! * *A place that is given back.* Its use is taken off the chain if it is the last, and the head
//!   moves back if nothing was claimed after it. Otherwise it becomes a *hole*. If the chain ends
//!   before it, the hole is open: the slot is free, and that the head has passed it is all there
//!   is to remember. If another use follows in the chain, the hole is closed: it is good until its
//!   turn, since the next use counts on a window from then.
//! * *A clock that steps back, or threads that read it and come in another order.* Then slots are
//!   not quite sorted, and a request may be served a little later than it might; never earlier.

mod choice;
mod slot;

use super::builder::Builder;
use super::engine::{Engine, Held, NEVER, accept};
use super::face::face;
use super::set::Set;
use super::settings::Settings;
use crate::line::{Ask, Refusal};
use crate::sync::{AtomicU64, Ordering};
use crate::turns::Waiters;
use choice::{Candidate, Choice, choose, distinct};
use crossbeam_utils::CachePadded;
use slot::{Slot, Word};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// A limiter that grants at most `limit` permits in any half-open window of its length, exactly.
///
/// It remembers when each of the last `limit` permits was used. It starts with all of them free.
///
/// Choose it where the contract is to the letter ("no more than 100 requests in any 10 s") and the
/// limit is not large. For large limits [`SlidingWindow`](crate::window::SlidingWindow) keeps the same
/// bound in less memory, and is up to one of its sub-windows stricter. Where the contract says nothing
/// of windows, a [`Limiter`](crate::Limiter) serves more evenly.
///
/// # The bound
///
/// In any window `[t, t + window)` of whole nanoseconds at most `limit` permits are granted, by
/// whichever of the verbs. For who waits, what counts is when its turn comes; it wakes up to two
/// milliseconds later, by Tokio's timer, so what is *used* may lie that much closer together. A window
/// of zero counts as one nanosecond. Time ends 146 years after the limiter was made.
///
/// Nothing is kept back that the bound allows: a `try` is refused only if the window is full, or if
/// somebody waits whose turn comes first. (A clock that steps back can make it a little stricter, and
/// so can a change of the limit, for a window's length.)
///
/// # Fairness
///
/// Those who wait book their turns in the order in which they come, and a request for many is not
/// overtaken by those for few. A turn that is given back goes to the next who comes and would have to
/// wait longer. Each waits on a timer of its own, so one that is not polled again delays nobody.
///
/// # Errors
///
/// As for [`Limiter`](crate::Limiter): a closed limiter refuses everything, a request for no permits
/// then succeeds, and one for more than the limit is refused with `ExceedsBurst`. `retry_after` is
/// right to the nanosecond. A refusal changes nothing and writes nothing.
///
/// # Cost
///
/// A word for each permit of the largest limit. A grant of one permit costs two compare-and-swaps,
/// whatever the limit; one of `n` costs `n + 1`. Lock-free; who waits allocates, and a change of the limit
/// looks at all slots.
///
/// # Examples
///
/// ```
/// use paceline::window::SlidingLog;
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = SlidingLog::new(2, Duration::from_secs(1));
/// limiter.acquire().await?;
/// tokio::time::advance(Duration::from_millis(300)).await;
/// limiter.acquire().await?;
/// // The first leaves the window a second after it was used.
/// let refused = limiter.try_acquire().unwrap_err();
/// assert_eq!(refused.retry_after(), Some(Duration::from_millis(700)));
/// # Ok(())
/// # }
/// ```
pub struct SlidingLog {
    engine: Log,
    waiters: Waiters,
}

impl SlidingLog {
    /// A limiter of `limit` permits in any `window`.
    #[must_use]
    pub fn new(limit: u32, window: Duration) -> Self {
        Self::build(Log::new(limit, limit, crate::time::nanos(window)), Waiters::default())
    }

    /// A limiter of which more is said than its limit and window.
    pub fn builder(limit: u32, window: Duration) -> Builder<Self> {
        Builder::new(limit, window, 0)
    }

    pub(super) fn build(engine: Log, waiters: Waiters) -> Self {
        Self { engine, waiters }
    }
}

face!(SlidingLog, Log);

/// The slots, and how far they are claimed.
pub(crate) struct Log {
    settings: Settings,
    window: u64,
    /// How many places were claimed, less those that were given back at the end.
    head: CachePadded<AtomicU64>,
    /// As many as the largest limit; those from the limit on are retired.
    slots: Box<[Slot]>,
    /// What was given back with others behind it, by the number of the place.
    holes: Set<u64, Hole>,
}

/// A place that was given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hole {
    slot: usize,
    /// What the slot said before.
    before: Word,
    /// The end of its use, if another follows in the chain; then it is closed.
    end: Option<u64>,
}

/// A place that is held.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    number: u64,
    slot: usize,
    before: Word,
    /// Until when the chain counts its use.
    end: u64,
}

impl Log {
    pub(crate) fn new(limit: u32, max_limit: u32, window: u64) -> Self {
        let slots: Box<[Slot]> = (0..max_limit).map(|_| Slot::free()).collect();
        slots[limit as usize..].iter().for_each(|slot| {
            slot.retire();
        });
        Self {
            settings: Settings::new(limit, max_limit),
            window: window.max(1),
            head: CachePadded::new(AtomicU64::new(0)),
            slots,
            holes: Set::new(),
        }
    }

    pub(super) fn window(&self) -> u64 {
        self.window
    }

    #[inline]
    fn head(&self) -> u64 {
        // Acquire: pairs with the Release in `move_head`. Who sees a place given back finds its
        // slot free. (Claims in between are read-modify-writes, and keep the pairing.)
        self.head.load(Ordering::Acquire)
    }

    /// Claims places, or gives them back if they are the last.
    ///
    /// A head that left and came back does no harm: the slots say who may use them.
    #[inline]
    fn move_head(&self, from: u64, to: u64) -> bool {
        // Release: see `head`. Relaxed on failure: nothing is learnt but that another was faster.
        self.head.compare_exchange(from, to, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "less than a limit")]
    fn slot_of(number: u64, limit: u32) -> usize {
        (number % u64::from(limit)) as usize
    }

    /// When the slots from `head` on are free, one after the other.
    #[inline]
    fn times(&self, head: u64, limit: u32) -> impl Iterator<Item = u64> {
        (0..limit).map(move |index| {
            self.slots[Self::slot_of(head + u64::from(index), limit)].word().time()
        })
    }

    #[inline]
    fn end(&self, turn: u64) -> u64 {
        turn.saturating_add(self.window).min(NEVER)
    }

    /// Takes the first places from `head` on for good, if nobody was faster.
    #[inline]
    fn take_at_head(&self, head: u64, limit: u32, permits: u32, now: u64) -> bool {
        if !self.move_head(head, head + u64::from(permits)) {
            return false;
        }
        let end = self.end(now);
        let lapped = (head..head + u64::from(permits))
            .find(|number| self.slots[Self::slot_of(*number, limit)].extend(now, end).is_none());
        let Some(lapped) = lapped else { return true };
        self.give_up(head, limit, permits, now, lapped);
        false
    }

    /// Gives back what was taken from `head` on up to the place that another one uses, and what
    /// was claimed behind it.
    #[cold]
    fn give_up(&self, head: u64, limit: u32, permits: u32, now: u64, lapped: u64) {
        for number in (head..head + u64::from(permits)).rev().filter(|number| *number != lapped) {
            let slot = Self::slot_of(number, limit);
            if number < lapped {
                // What it said before was not kept: it was free by `now`.
                let before = Word::free_from(now);
                self.leave(Place { number, slot, before, end: self.end(now) });
            } else {
                self.leave_open(number, Hole { slot, before: self.slots[slot].word(), end: None });
            }
        }
    }

    /// The soonest places, at the head and among the holes.
    fn choose(&self, head: u64, limit: u32, permits: u32, now: u64) -> Choice {
        let candidates = self.candidates(head, limit, permits, now);
        let holes = if permits == 1 {
            // They lie in the order of their times.
            candidates.take(1).collect()
        } else {
            distinct(candidates.collect())
        };
        choose(now, permits, holes.into_iter(), self.times(head, limit))
    }

    /// The holes that can be used from `now` on, but for those to whose slots the head comes within
    /// `reach` places.
    fn candidates(
        &self,
        head: u64,
        limit: u32,
        reach: u32,
        now: u64,
    ) -> impl Iterator<Item = Candidate> {
        self.holes
            .iter()
            .filter_map(move |(number, hole)| self.candidate(number, &hole, head, limit, reach))
            .filter(move |hole| hole.from < NEVER && hole.from.max(now) <= hole.until)
    }

    fn candidate(
        &self,
        number: u64,
        hole: &Hole,
        head: u64,
        limit: u32,
        reach: u32,
    ) -> Option<Candidate> {
        if let Some(end) = hole.end {
            let (from, until) = (hole.before.time(), end.checked_sub(self.window)?);
            return Some(Candidate { number, slot: None, from, until });
        }
        let ahead = (hole.slot + limit as usize).checked_sub(Self::slot_of(head, limit))?;
        let reached = ahead % (limit as usize) < reach as usize;
        let from = self.slots[hole.slot].word().time();
        let used = from > hole.before.time();
        let candidate = Candidate { number, slot: Some(hole.slot), from, until: NEVER };
        (!used && !reached).then_some(candidate)
    }

    /// Takes what was chosen; if another was faster, takes nothing.
    fn claim(&self, choice: &Choice, head: u64, limit: u32, now: u64) -> Option<Vec<Place>> {
        let mut holes = Vec::with_capacity(choice.holes.len());
        for wanted in &choice.holes {
            let Some(hole) = self.holes.remove(wanted.number) else { break };
            holes.push((wanted.number, hole));
        }
        let next = head + u64::from(choice.at_head);
        let all = holes.len() == choice.holes.len() && (next == head || self.move_head(head, next));
        if !all {
            for (number, hole) in holes {
                self.holes.put(number, hole);
            }
            return None;
        }
        let at_head = (head..next).map(|number| {
            let slot = Self::slot_of(number, limit);
            (number, Hole { slot, before: Word::free_from(0), end: None })
        });
        let places = self.extend_all(holes.into_iter().chain(at_head), choice.turn)?;
        let could_be_used_from = places.iter().map(|place| place.before.time()).max();
        if choice.turn > now && could_be_used_from < Some(choice.turn) {
            // What it would wait for was given back meanwhile.
            places.into_iter().rev().for_each(|place| self.leave(place));
            return None;
        }
        Some(places)
    }

    /// Writes the slots of claimed places; if one of them is used by another, gives all back.
    fn extend_all(
        &self,
        mut claimed: impl Iterator<Item = (u64, Hole)>,
        turn: u64,
    ) -> Option<Vec<Place>> {
        let mut held = Vec::new();
        while let Some((number, hole)) = claimed.next() {
            let Hole { slot, before, end } = hole;
            let place = match end {
                Some(end) if before.time() <= turn && turn <= end - self.window => {
                    Some(Place { number, slot, before, end })
                }
                Some(_) => None,
                None => {
                    let end = self.end(turn);
                    let before = self.slots[slot].extend(turn, end);
                    before.map(|before| Place { number, slot, before, end })
                }
            };
            let Some(place) = place else {
                if hole.end.is_some() {
                    self.holes.put(number, hole);
                }
                let rest: Vec<_> = claimed.collect();
                rest.into_iter().rev().for_each(|(number, hole)| self.leave_open(number, hole));
                held.into_iter().rev().for_each(|place| self.leave(place));
                return None;
            };
            held.push(place);
        }
        Some(held)
    }

    /// Gives a place back.
    fn leave(&self, place: Place) {
        let Place { number, slot, before, end } = place;
        let last = self.slots[slot].take_off(end, before);
        let hole = Hole { slot, before, end: (!last).then_some(end) };
        self.leave_open(number, hole);
    }

    /// Gives back a place of which nothing stands in its slot, unless the hole is closed.
    fn leave_open(&self, number: u64, hole: Hole) {
        if hole.end.is_none() && self.move_head(number + 1, number) {
            self.swallow(number);
        } else {
            self.holes.put(number, hole);
            if hole.end.is_none() {
                self.reopen_before(number, hole);
            }
        }
    }

    /// Moves the head, which has just come back to `number`, back over the holes there.
    fn swallow(&self, mut number: u64) {
        while number > 0 && self.holes.are_about() {
            let before = number - 1;
            let Some(hole) = self.holes.remove(before) else { return };
            let hole = self.opened(hole);
            if hole.end.is_some() || !self.move_head(number, before) {
                self.holes.put(before, hole);
                return;
            }
            number = before;
        }
    }

    /// Opens the closed holes that lay before an open one in its chain.
    fn reopen_before(&self, mut number: u64, mut hole: Hole) {
        let limit = u64::from(self.settings.limit());
        while let Some(before) = number.checked_sub(limit).filter(|_| limit > 0) {
            let Some(closed) = self.holes.remove(before) else { return };
            let opened = if closed.slot == hole.slot { self.opened(closed) } else { closed };
            self.holes.put(before, opened);
            if opened == closed {
                return;
            }
            (number, hole) = (before, opened);
        }
    }

    /// The hole, open if nothing follows it in its chain.
    fn opened(&self, hole: Hole) -> Hole {
        match hole.end {
            Some(end) if self.slots[hole.slot].take_off(end, hole.before) => {
                Hole { end: None, ..hole }
            }
            _ => hole,
        }
    }

    /// Drops those of the first `most` holes that are of no use any more.
    fn sweep(&self, now: u64, most: usize) {
        let latest_end = self.end(now);
        for (number, hole) in self.holes.iter().take(most) {
            let is_over = hole.end.map_or_else(
                // Its slot was used by one who came to it from the head, and whose turn has come.
                || {
                    let end = self.slots[hole.slot].word().time();
                    end > hole.before.time() && end <= latest_end
                },
                |end| end < latest_end,
            );
            if is_over {
                self.holes.remove(number);
            }
        }
    }
}

impl Engine for Log {
    type Places = Vec<Place>;

    fn settings(&self) -> &Settings {
        &self.settings
    }

    #[inline]
    fn take(&self, now: u64, permits: u32) -> bool {
        let now = now.min(NEVER - 1);
        let Ok(limit) = self.settings.admit(permits) else { return false };
        let head = self.head();
        permits > 0
            && self.times(head, limit).take(permits as usize).all(|time| time <= now)
            && self.take_at_head(head, limit, permits, now)
    }

    fn try_book(&self, ask: Ask) -> Option<Result<Held<Vec<Place>>, Refusal>> {
        let Ask { tokens: permits, patience, .. } = ask;
        let now = ask.now.min(NEVER - 1);
        let limit = match self.settings.admit(permits) {
            Ok(limit) => limit,
            Err(refusal) => return Some(Err(refusal)),
        };
        let head = self.head();
        let at_head = self.times(head, limit).take(permits as usize).fold(now, u64::max);
        if at_head <= now && !patience.is_over(now) {
            let taken = self.take_at_head(head, limit, permits, now);
            return taken.then(|| Ok(Held::at_once(permits, limit)));
        }
        // Without holes a refusal is to cost no more than it must.
        let choice = (self.holes.are_about() || accept(now, at_head, patience).is_ok())
            .then(|| self.choose(head, limit, permits, now));
        let turn = choice.as_ref().map_or(at_head, |choice| choice.turn);
        if let Err(refusal) = accept(now, turn, patience) {
            // A slot that was taken just now says nothing of the next one. (The head may have
            // gone and come back in between, for one who booked a turn and gave it back. Then slots
            // were as full as they look.)
            return (self.head() == head).then_some(Err(refusal));
        }
        let places = self.claim(&choice?, head, limit, now)?;
        Some(Ok(match turn {
            turn if turn <= now => Held::at_once(permits, limit),
            turn => Held { turn: Some(turn), permits, limit, places: Some(places) },
        }))
    }

    fn earliest(&self, now: u64, permits: u32) -> Option<u64> {
        let limit = self.settings.admit(permits).ok()?;
        let turn = self.choose(self.head(), limit, permits, now).turn;
        (turn < NEVER).then_some(turn)
    }

    fn give_back(&self, now: u64, held: &Held<Vec<Place>>) {
        let places = held.places.iter().flatten();
        places.rev().for_each(|place| self.leave(*place));
        // Each that comes lets some that are of no use go, so they cannot pile up.
        self.sweep(now, 4);
    }

    fn set_limit(&self, limit: u32) {
        self.settings.change(|present, publish| {
            let (stay, retired) = self.slots.split_at(limit as usize);
            if limit > present {
                stay[present as usize..].iter().for_each(Slot::revive);
                count_retired(retired, stay);
                publish(limit);
            } else if limit < present {
                publish(limit);
                count_retired(retired, stay);
            }
        });
    }

    fn available(&self, now: u64) -> u32 {
        let limit = self.settings.limit();
        let head = self.head();
        if limit == 0 {
            return 0;
        }
        let at_head = self.times(head, limit).take_while(|time| *time <= now).count();
        let reach = u32::try_from(at_head).unwrap_or(limit);
        let holes = self.candidates(head, limit, reach, now).filter(|hole| hole.from <= now);
        let holes = distinct(holes.collect());
        reach.saturating_add(u32::try_from(holes.len()).unwrap_or(u32::MAX)).min(limit)
    }
}

/// Lets `retired` be used no more. The latest of what was used in them counts in those that `stay`,
/// each in the one that would be free first.
///
/// All are sealed before: where a slot counts for another, what is below must not come back. Slots
/// only ever end later by this, so the limit is kept meanwhile too; and in the end, at any time, as
/// many of those that stay are not free as there are uses of the last window, or all of them.
fn count_retired(retired: &[Slot], stay: &[Slot]) {
    let ends: Vec<u64> = retired.iter().map(Slot::retire).collect();
    let mut first: BinaryHeap<_> = stay.iter().map(Slot::seal).zip(0..).map(Reverse).collect();
    for retired in ends {
        while let Some(Reverse((end, slot))) = first.pop() {
            let is = if end >= retired { Err(end) } else { stay[slot].put_off(end, retired) };
            let now = is.err().unwrap_or(retired);
            first.push(Reverse((now, slot)));
            if now >= retired {
                break;
            }
        }
    }
}

#[cfg(all(test, not(paceline_loom)))]
impl Log {
    /// All that could be written.
    pub(super) fn words(&self) -> impl PartialEq + std::fmt::Debug + use<> {
        let words: Vec<_> = self.slots.iter().map(Slot::word).collect();
        let holes: Vec<_> = self.holes.iter().collect();
        (self.head(), words, holes)
    }
}
