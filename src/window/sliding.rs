//! [`SlidingWindow`]: never more than the limit in any window, in memory that does not grow with it.
//!
//! Time is cut into sub-windows, and a window of any position touches `segments + 1` of them at most.
//! Permits are places on a line, taken one after the other. The *mark* of a sub-window is how many
//! places were used before it began, and two rules keep the limit:
//!
//! > A place is used in a sub-window only if it does not lie before the mark of it,
//! > and lies less than `limit` beyond the mark of `segments` sub-windows ago.
//!
//! Marks do not decrease, so whatever is used in `segments + 1` sub-windows that follow each other lies
//! at or beyond the mark of the first of them, and less than `limit` beyond that: these are `limit`
//! places. Nothing more is needed of a mark but that all go by the same (see [`marks`]); one that is
//! too low or too high costs permits, and grants none. (If the limit is changed, take the one by
//! which the last of these places was booked.)
//!
//! The *head* is the next place that nobody has. Who must wait takes places from there too, of which
//! the *runs* say in which sub-window their turn comes; turns come in the order of places. A run is
//! written before the head moves over it, so whoever decides a mark and sees the head finds it, and
//! the mark stays at or before those whose turn is still to come. One who decides on a mark by an
//! older head has announced it: who claims places to wait looks for that afterwards, sees the mark
//! decided, and begins again if by then its turn does not keep both rules.
//!
//! What is given back at the head moves it back; the rest becomes a *hole*, which is as good as the
//! turn that it was: until its sub-window ends. Then it counts as used.

mod marks;

use super::builder::Builder;
use super::engine::{Engine, Held, NEVER, accept};
use super::face::face;
use super::set::Set;
use super::settings::Settings;
use crate::line::{Ask, Patience, Refusal};
use crate::sync::{AtomicU64, Ordering};
use crate::turns::Waiters;
use crossbeam_utils::CachePadded;
use marks::{Marks, ROOM};
use std::time::Duration;

/// A limiter that grants at most `limit` permits in any window of its length, by counting them in
/// sub-windows.
///
/// It starts with all of them free. Choose it for large limits by window, since its memory does not grow
/// with the limit. [`SlidingLog`](crate::window::SlidingLog) is exact and remembers every permit; where
/// the contract says nothing of windows, a [`Limiter`](crate::Limiter) serves more evenly.
///
/// # The bound
///
/// In any window `[t, t + window)` of whole nanoseconds at most `limit` permits are granted, by
/// whichever of the verbs, wherever the window begins. A permit counts until the window is over and the
/// sub-window in which it ends; so it is stricter than it must be by up to one sub-window of
/// `window / segments`, rounded up to a nanosecond. Under full load it grants `limit` permits in
/// `segments + 1` sub-windows.
///
/// For who waits, what counts is when its turn comes; it wakes up to two milliseconds later, by Tokio's
/// timer, so what is *used* may lie that much closer together. A window of zero counts as one
/// nanosecond. Time ends 146 years after the limiter was made.
///
/// # Fairness
///
/// Those who wait book their turns in the order in which they come, and a request for many is not
/// overtaken by those for few. A turn that is given back goes to the next who comes and would have to
/// wait longer; if nobody comes before its sub-window ends, and others have booked behind it, it counts
/// as used. Each waits on a timer of its own, so one that is not polled again delays nobody.
///
/// # Errors
///
/// As for [`Limiter`](crate::Limiter): a closed limiter refuses everything, a request for no permits
/// then succeeds, and one for more than the limit is refused with `ExceedsBurst`. `retry_after` is
/// right to the nanosecond: it is when enough leaves the window. A refusal changes nothing and writes
/// nothing.
///
/// # Cost
///
/// Two to four words for each sub-window. A grant of any number of permits costs one
/// compare-and-swap, and the first in a sub-window one for each that has begun since the last.
/// Lock-free; who waits allocates.
///
/// # Examples
///
/// ```
/// use paceline::window::SlidingWindow;
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // 1000 in any minute, in sub-windows of a second.
/// let limiter = SlidingWindow::new(1000, Duration::from_secs(60), 60);
/// limiter.acquire_many(1000).await?;
/// // They count until the second is over in which the minute ends.
/// assert_eq!(limiter.acquire().await?, Duration::from_secs(61));
/// # Ok(())
/// # }
/// ```
pub struct SlidingWindow {
    engine: Line,
    waiters: Waiters,
}

impl SlidingWindow {
    /// A limiter of `limit` permits in any `window`, which is cut into so many sub-windows. None
    /// counts as one, and there are no more than the window has nanoseconds.
    #[must_use]
    pub fn new(limit: u32, window: Duration, segments: u32) -> Self {
        let window = crate::time::nanos(window);
        Self::build(Line::new(limit, u32::MAX, window, segments), Waiters::default())
    }

    /// A limiter of which more is said than its limit and window.
    pub fn builder(limit: u32, window: Duration, segments: u32) -> Builder<Self> {
        Builder::new(limit, window, segments)
    }

    pub(super) fn build(engine: Line, waiters: Waiters) -> Self {
        Self { engine, waiters }
    }

    /// How many sub-windows there are in a window.
    #[must_use]
    pub fn segments(&self) -> u64 {
        self.engine.segments
    }
}

face!(SlidingWindow, Line);

/// The line of places.
pub(crate) struct Line {
    settings: Settings,
    window: u64,
    /// How long a sub-window is.
    segment: u64,
    segments: u64,
    /// The next place that nobody has.
    head: CachePadded<AtomicU64>,
    marks: Marks,
    /// Where those who wait begin, with their sub-windows. The ticket tells apart those who try for
    /// the same place.
    runs: Set<Run, ()>,
    tickets: AtomicU64,
    /// What was given back with others behind it, by sub-window and start: the end, and the ticket
    /// of the run.
    holes: Set<(u64, u64), (u64, u64)>,
}

/// The first place, the sub-window, and the ticket.
type Run = (u64, u64, u64);

/// Places that are held, for the same sub-window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    start: u64,
    end: u64,
    sub: u64,
    ticket: u64,
}

/// What one who asks sees.
#[derive(Clone, Copy, Debug)]
struct View {
    limit: u32,
    head: u64,
    latest: u64,
    /// The sub-window from which on it may be served: the present one, or for one who comes very late
    /// the first of which enough is known.
    sub: u64,
    /// The first place that may be used then.
    start: u64,
    /// The sub-window before which nobody may be served who waits at the head: that of the last
    /// who does so already, since turns come in the order of places. For one who does not wait it is
    /// the present one.
    earliest: u64,
}

/// What a request is to take.
#[derive(Debug)]
struct Choice {
    sub: u64,
    holes: Vec<Piece>,
    at_head: u32,
}

impl Line {
    pub(crate) fn new(limit: u32, max_limit: u32, window: u64, segments: u32) -> Self {
        let window = window.clamp(1, NEVER);
        let segment = window.div_ceil(u64::from(segments.max(1)));
        let segments = window.div_ceil(segment);
        Self {
            settings: Settings::new(limit, max_limit),
            window,
            segment,
            segments,
            head: CachePadded::new(AtomicU64::new(0)),
            marks: Marks::new(segments),
            runs: Set::new(),
            tickets: AtomicU64::new(0),
            holes: Set::new(),
        }
    }

    pub(super) fn window(&self) -> u64 {
        self.window
    }

    /// The sub-window at `now`.
    #[inline]
    fn sub_at(&self, now: u64) -> u64 {
        now / self.segment + self.marks.length()
    }

    /// When a sub-window begins.
    fn start_of(&self, sub: u64) -> u64 {
        let since = sub.saturating_sub(self.marks.length());
        since.checked_mul(self.segment).map_or(NEVER, |start| start.min(NEVER))
    }

    #[inline]
    fn head(&self) -> u64 {
        // Acquire: pairs with the Release in `move_head`. Who sees the head finds the runs that were
        // written before it moved over them. (Later moves are read-modify-writes, and keep the
        // pairing.)
        self.head.load(Ordering::Acquire)
    }

    /// Claims places, or gives them back if they are the last. A head that left and came back does
    /// no harm: all before it is held by somebody, whoever that is.
    #[inline]
    fn move_head(&self, from: u64, to: u64) -> bool {
        // Release: see `head`. On failure nothing is learnt but that another was faster.
        self.head.compare_exchange(from, to, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// What the mark of `sub` would be if it were decided now, with `head` read before.
    fn place(&self, sub: u64, head: u64) -> u64 {
        let waits = self.runs.iter().find(|((_, turn, _), ())| *turn >= sub);
        waits.map_or(head, |((start, ..), ())| start.min(head))
    }

    /// The mark of `sub`, as decided or as it would be; None if it is forgotten.
    #[inline]
    fn mark(&self, sub: u64, head: u64, latest: u64) -> Option<u64> {
        if sub <= latest {
            return self.marks.get(sub, head);
        }
        let least = self.marks.get(latest, head)?;
        Some(self.place(sub, head).max(least))
    }

    /// None if the ring has gone on meanwhile.
    #[inline]
    fn view(&self, now: u64, limit: u32, waits: bool) -> Option<View> {
        // The head first: whoever moved it has seen the sub-window that it is by then.
        let head = self.head();
        let latest = self.marks.latest();
        let known = (latest + self.segments + 1).saturating_sub(self.marks.length());
        let sub = self.sub_at(now).max(known);
        let start = self.mark(sub, head, latest)?.max(head);
        let last = if waits { self.runs.last() } else { None };
        let earliest = last.map_or(sub, |((_, turn, _), ())| turn.max(sub));
        Some(View { limit, head, latest, sub, start, earliest })
    }

    /// The first sub-window in which the place before `end` can be used, with all before it.
    fn turn(&self, view: &View, end: u64) -> Option<u64> {
        let View { limit, head, latest, sub, earliest, .. } = *view;
        // The first sub-window whose mark is so high is `segments` before the turn.
        let needed = end.saturating_sub(limit.into());
        let first = sub - self.segments;
        if self.mark(first, head, latest)? >= needed {
            return Some(sub);
        }
        let from = if needed <= self.mark(latest, head, latest)? {
            let (mut low, mut high) = (first, latest);
            while high - low > 1 {
                let middle = low.midpoint(high);
                if self.mark(middle, head, latest)? >= needed {
                    high = middle;
                } else {
                    low = middle;
                }
            }
            high
        } else {
            let run = self.runs.at_or_before((needed - 1, u64::MAX, u64::MAX));
            run.map_or(latest, |((_, turn, _), ())| turn.max(latest)) + 1
        };
        Some((from + self.segments).max(earliest))
    }

    /// The soonest places, at the head and among the holes.
    fn choose(&self, view: &View, permits: u32) -> Option<Choice> {
        let all = view.start + u64::from(permits);
        let at_head = Choice { sub: self.turn(view, all)?, holes: Vec::new(), at_head: permits };
        if at_head.sub == view.sub || !self.holes.are_about() {
            return Some(at_head);
        }
        let mut group = Choice { sub: 0, holes: Vec::new(), at_head: permits };
        let holes = self.holes.iter();
        let holes = holes.map(|((sub, start), (end, ticket))| Piece { start, end, sub, ticket });
        let holes = holes.skip_while(|hole| hole.sub < view.sub);
        for hole in holes.take_while(|hole| hole.sub < at_head.sub) {
            if hole.sub != group.sub {
                group = Choice { sub: hole.sub, holes: Vec::new(), at_head: permits };
            }
            let end = hole.end.min(hole.start + u64::from(group.at_head));
            #[expect(clippy::cast_possible_truncation, reason = "at most what is still missing")]
            let length = (end - hole.start) as u32;
            group.at_head -= length;
            group.holes.push(Piece { end, ..hole });
            let missing = view.start + u64::from(group.at_head);
            if group.at_head == 0 || self.turn(view, missing)? <= group.sub {
                return Some(group);
            }
        }
        Some(at_head)
    }

    /// Takes the places from the head on that can be used in the present sub-window, for good.
    #[inline]
    fn take_at_head(&self, view: &View, permits: u32) -> bool {
        self.move_head(view.head, view.start + u64::from(permits))
    }

    /// Takes what was chosen, for one who waits or takes holes. If another was faster, takes nothing.
    fn claim(&self, view: &View, choice: &Choice) -> Option<Vec<Piece>> {
        let mut pieces = Vec::with_capacity(choice.holes.len() + 1);
        for wanted in &choice.holes {
            let Some(piece) = self.take_hole(wanted) else {
                self.put_holes(&pieces);
                return None;
            };
            pieces.push(piece);
        }
        if choice.at_head > 0 {
            let Some(piece) = self.claim_at_head(view, choice) else {
                self.put_holes(&pieces);
                return None;
            };
            pieces.push(piece);
        }
        Some(pieces)
    }

    fn take_hole(&self, wanted: &Piece) -> Option<Piece> {
        let key = (wanted.sub, wanted.start);
        let (end, ticket) = self.holes.remove(key)?;
        if end < wanted.end {
            self.holes.put(key, (end, ticket));
            return None;
        }
        if end > wanted.end {
            // The run stays with the first part, which the rest does not outlive at the head.
            self.holes.put((wanted.sub, wanted.end), (end, u64::MAX));
        }
        Some(Piece { ticket, ..*wanted })
    }

    fn put_holes(&self, pieces: &[Piece]) {
        for piece in pieces {
            self.holes.put((piece.sub, piece.start), (piece.end, piece.ticket));
        }
    }

    fn claim_at_head(&self, view: &View, choice: &Choice) -> Option<Piece> {
        let (start, sub) = (view.start, choice.sub);
        let end = start + u64::from(choice.at_head);
        // Relaxed: only that no two get the same counts.
        let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
        let run = (start, sub, ticket);
        self.runs.put(run, ());
        if !self.move_head(view.head, end) {
            self.runs.remove(run);
            return None;
        }
        if !self.is_kept(view, start, end, sub) {
            // If somebody has claimed behind it, the places are lost.
            self.move_head(end, start);
            self.runs.remove(run);
            return None;
        }
        Some(Piece { start, end, sub, ticket })
    }

    /// Whether places that were just claimed can still be used in `sub` by both rules.
    ///
    /// What was seen before the claim may have gone and come back meanwhile with other turns, and
    /// others may be about to decide marks by an older head. From here on neither can be: what
    /// lies before a claimed place keeps its turn, and who decides another mark sees these places.
    fn is_kept(&self, view: &View, start: u64, end: u64, sub: u64) -> bool {
        self.turn_to(self.marks.turning());
        let latest = self.marks.latest();
        let claimed = View { head: end, latest, earliest: view.sub, ..*view };
        let mark = self.marks.get(latest.min(sub), end);
        mark.is_some_and(|mark| mark <= start)
            && self.turn(&claimed, end).is_some_and(|turn| turn <= sub)
    }

    /// Decides the marks up to that of `sub`, and forgets what lies before.
    fn turn_to(&self, sub: u64) {
        if sub <= self.marks.latest() {
            return;
        }
        self.marks.turn_to(sub, |sub| {
            let head = self.head();
            self.place(sub, head)
        });
        while let Some((run, ())) = self.runs.iter().next().filter(|((_, turn, _), ())| *turn < sub)
        {
            self.runs.remove(run);
        }
        while let Some((hole, _)) = self.holes.iter().next().filter(|((turn, _), _)| *turn < sub) {
            self.holes.remove(hole);
        }
    }

    /// Moves the head, which has just come back to `end`, back over the holes there.
    fn swallow(&self, mut end: u64) {
        while let Some((key, _)) = self.holes.last().filter(|(_, (last, _))| *last == end) {
            let Some((last, ticket)) = self.holes.remove(key) else { return };
            let (sub, start) = key;
            if last != end || !self.move_head(end, start) {
                self.holes.put(key, (last, ticket));
                return;
            }
            self.runs.remove((start, sub, ticket));
            end = start;
        }
    }
}

impl Engine for Line {
    type Places = Vec<Piece>;

    fn settings(&self) -> &Settings {
        &self.settings
    }

    #[inline]
    fn take(&self, now: u64, permits: u32) -> bool {
        let Ok(limit) = self.settings.admit(permits) else { return false };
        let latest = self.marks.latest();
        let sub = self.sub_at(now.min(NEVER - 1));
        if permits == 0 || sub > latest {
            return false;
        }
        let head = self.head();
        let (Some(start), Some(first)) =
            (self.marks.get(sub, head), self.marks.get(sub - self.segments, head))
        else {
            return false;
        };
        let end = start.max(head) + u64::from(permits);
        end <= first + u64::from(limit) && self.move_head(head, end)
    }

    fn try_book(&self, ask: Ask) -> Option<Result<Held<Vec<Piece>>, Refusal>> {
        let Ask { tokens: permits, patience, .. } = ask;
        let now = ask.now.min(NEVER - 1);
        let limit = match self.settings.admit(permits) {
            Ok(limit) => limit,
            Err(refusal) => return Some(Err(refusal)),
        };
        let waits = !matches!(patience, Patience::Until(time) if time <= now);
        let view = self.view(now, limit, waits)?;
        let choice = self.choose(&view, permits)?;
        let immediate = choice.sub == self.sub_at(now);
        let end = view.start + u64::from(choice.at_head);
        let oldest = self.mark(view.sub - self.segments, view.head, view.latest)?;
        let turn = if immediate {
            now
        } else if end - oldest >= ROOM {
            NEVER
        } else {
            self.start_of(choice.sub)
        };
        if let Err(refusal) = accept(now, turn, patience) {
            return Some(Err(refusal));
        }
        if view.sub > view.latest {
            self.turn_to(view.sub);
            return None;
        }
        if immediate && choice.holes.is_empty() {
            return self.take_at_head(&view, permits).then(|| Ok(Held::at_once(permits, limit)));
        }
        let places = self.claim(&view, &choice)?;
        Some(Ok(if immediate {
            Held::at_once(permits, limit)
        } else {
            Held { turn: Some(turn), permits, limit, places: Some(places) }
        }))
    }

    fn earliest(&self, now: u64, permits: u32) -> Option<u64> {
        let limit = self.settings.admit(permits).ok()?;
        let sub = self.choose(&self.view(now, limit, true)?, permits)?.sub;
        Some(if sub == self.sub_at(now) { now } else { self.start_of(sub) })
    }

    fn give_back(&self, now: u64, held: &Held<Vec<Piece>>) {
        let sub = self.sub_at(now);
        for piece in held.places.iter().flatten().rev() {
            if self.move_head(piece.end, piece.start) {
                self.runs.remove((piece.start, piece.sub, piece.ticket));
                self.swallow(piece.start);
            } else if piece.sub >= sub {
                self.put_holes(&[*piece]);
            }
        }
    }

    fn set_limit(&self, limit: u32) {
        self.settings.change(|_, publish| publish(limit));
    }

    fn available(&self, now: u64) -> u32 {
        let limit = self.settings.limit();
        loop {
            let Some(view) = self.view(now, limit, false) else { continue };
            let View { head, latest, sub, start, .. } = view;
            let Some(first) = self.mark(sub - self.segments, head, latest) else { continue };
            if sub != self.sub_at(now) {
                return 0;
            }
            let at_head = (first + u64::from(limit)).saturating_sub(start);
            let holes = self.holes.iter().filter(|((turn, _), _)| *turn == sub);
            let in_holes: u64 = holes.map(|((_, start), (end, _))| end - start).sum();
            return u32::try_from(at_head + in_holes).unwrap_or(limit).min(limit);
        }
    }
}

#[cfg(all(test, not(paceline_loom)))]
impl Line {
    pub(super) fn segment(&self) -> u64 {
        self.segment
    }

    /// All that could be written.
    pub(super) fn words(&self) -> impl PartialEq + std::fmt::Debug + use<> {
        let runs: Vec<_> = self.runs.iter().map(|(run, ())| run).collect();
        let holes: Vec<_> = self.holes.iter().map(|(key, _)| key).collect();
        (self.head(), self.marks.words(), runs, holes)
    }
}
