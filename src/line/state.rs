//! The state word, and the one CAS loop that moves it.
//!
//! The word is `spent`: the end of what has been handed out of the line, modulo 2^64. Beside the
//! configuration lies `lap`, the number that says which position the word means.
//!
//! What may be seen (`A` is the lap):
//!
//! | `spent` lies in | because |
//! |---|---|
//! | at or above the start of `A - 1` | the lap moves on only when `spent` is beyond the start of the next one; a cancel goes back by less than a quarter of a lap, and never below the start of the lap it saw |
//! | below the start of `A + 2` | a booking that would end there moves the lap on first |
//!
//! so each word read under `A` has one meaning, with a lap to spare.

use super::config::{Config, ConfigCell};
use super::position::{Lap, Position};
use crate::sync::{AtomicU64, Ordering};
use crossbeam_utils::CachePadded;

/// The words that the operations share.
pub(crate) struct State {
    /// Written by every grant, so on a cache line of its own.
    spent: CachePadded<AtomicU64>,
    /// Written rarely, read by all.
    settings: CachePadded<Settings>,
}

struct Settings {
    lap: AtomicU64,
    config: ConfigCell,
}

/// All of the state as it was at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) closed: bool,
    pub(crate) config: Config,
    pub(crate) spent: Position,
    lap: Lap,
}

impl View {
    /// Whether a cancel may move `spent` back as far as `start` under this lap.
    pub(crate) fn reaches_back_to(&self, start: Position) -> bool {
        start >= self.lap.start()
    }
}

/// What is to be done about a [`View`].
pub(crate) enum Step<T> {
    /// Nothing; this is the outcome.
    Stay(T),
    /// `spent` moves to `end`; what is handed out begins at `start`.
    Forward { start: Position, end: Position, then: T },
    /// `spent` moves back to `start`.
    Back { start: Position, then: T },
}

impl State {
    pub(crate) fn new(config: Config, spent: Position) -> Self {
        Self {
            spent: CachePadded::new(AtomicU64::new(spent.word())),
            settings: CachePadded::new(Settings {
                lap: AtomicU64::new(spent.lap().next().0),
                config: ConfigCell::new(config),
            }),
        }
    }

    pub(crate) fn config(&self) -> &ConfigCell {
        &self.settings.config
    }

    /// The state at one instant. Writes nothing; tries again only when another thread has
    /// finished a change of the configuration or of the lap in between.
    #[inline]
    pub(crate) fn view(&self) -> View {
        loop {
            let (version, config) = self.config().peek();
            // Acquire: pairs with the Release in `turn_lap`. Who sees the new lap must see the
            // lift of `spent` that came before it, or an old word would be read under a new lap.
            let lap = Lap(self.settings.lap.load(Ordering::Acquire));
            // Acquire: pairs with the Release in `exchange`. Who sees a word that was written
            // under a newer configuration or lap must find that newer one in the two checks
            // below; with Relaxed they could still see the older and pass.
            let word = self.spent.load(Ordering::Acquire);
            // Relaxed: the Acquire load above keeps it behind.
            let same_lap = self.settings.lap.load(Ordering::Relaxed) == lap.0;
            if same_lap && self.config().is_still(version) {
                return View { closed: version.is_closed(), config, spent: lap.read(word), lap };
            }
        }
    }

    /// Does what `decide` says of the state, which is asked again whenever the state has changed
    /// meanwhile. It fails to move `spent` only if another thread has moved it, so of all who
    /// work here one always gets on.
    #[inline]
    pub(crate) fn update<T>(&self, mut decide: impl FnMut(&View) -> Step<T>) -> T {
        loop {
            let view = self.view();
            match decide(&view) {
                Step::Stay(outcome) => return outcome,
                Step::Forward { start, end, then } => {
                    if end >= view.lap.next().next().start() {
                        self.turn_lap(&view, start);
                    } else if self.exchange(view.spent, end) {
                        return then;
                    }
                }
                Step::Back { start, then } => {
                    if self.exchange(view.spent, start) {
                        return then;
                    }
                }
            }
        }
    }

    /// The one compare-and-swap of the state word.
    ///
    /// A word that left and came back in between does no harm: only the owner of the last
    /// interval moves `spent` back, and then it is again the end of what has been handed out.
    #[inline]
    fn exchange(&self, from: Position, to: Position) -> bool {
        // Release: pairs with the Acquire load in `view`; see there. On failure nothing is learnt
        // but that the state must be viewed again, so Relaxed.
        self.spent
            .compare_exchange(from.word(), to.word(), Ordering::Release, Ordering::Relaxed)
            .is_ok()
    }

    /// Brings the lap one step nearer to a booking that starts at `start`, beyond the reach of
    /// the lap in `view`. Whoever comes here helps; nobody waits.
    #[cold]
    fn turn_lap(&self, view: &View, start: Position) {
        let Lap(lap) = view.lap;
        // A line that nobody touched for long: each word means the same place some circles on,
        // and all that it can mean (below the start of `lap + 2`) has overflowed where the
        // booking starts. So this lifts `spent`, wherever it is now, out of the past.
        let circles = view.lap.whole_circles_towards(Lap(start.lap().0.saturating_sub(2)));
        let next = if circles > view.lap { circles } else { view.lap.next() };
        if next == view.lap.next() && view.spent < next.start() {
            // What lies below the start of the booking has overflowed, and the next lap starts
            // there too. A lost race means that somebody else has moved `spent`.
            self.exchange(view.spent, next.start());
            return;
        }
        // Release: pairs with the Acquire load of the lap in `view`. It publishes the lift above.
        // Relaxed on failure: somebody else has turned it.
        let _ =
            self.settings.lap.compare_exchange(lap, next.0, Ordering::Release, Ordering::Relaxed);
    }
}
