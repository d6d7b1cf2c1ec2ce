//! The state word, and the one CAS loop that moves it.
//!
//! The word is `spent`: the end of what has been handed out of the line. Beside the configuration
//! lies the lap, which says what position the word means. Where `spent` may be under a lap:
//!
//! | | because |
//! |---|---|
//! | not before the start of the lap before | the lap is turned only when `spent` is well beyond the start of it, and a cancel goes back by less than that |
//! | before the end of the lap after | a booking that would end there turns the lap first |
//!
//! So a word has one meaning; see [`Lap`].

use super::config::{Config, ConfigCell, Version};
use super::plain::Verdict;
use super::position::{Grains, Lap, Position, Turning};
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
        start >= self.lap.reaches_back_to()
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
        let lap = Lap::of(spent);
        Self {
            spent: CachePadded::new(AtomicU64::new(lap.write(spent))),
            settings: CachePadded::new(Settings {
                lap: AtomicU64::new(lap.to_word()),
                config: ConfigCell::new(config),
            }),
        }
    }

    pub(crate) fn config(&self) -> &ConfigCell {
        &self.settings.config
    }

    /// Every word of it.
    #[cfg(all(test, not(paceline_loom)))]
    pub(crate) fn words(&self) -> Vec<u64> {
        let words = [&*self.spent, &self.settings.lap].map(|word| word.load(Ordering::SeqCst));
        words.into_iter().chain(self.config().words()).collect()
    }

    /// The state at one instant. Writes nothing; tries again only when another thread has
    /// finished a change of the configuration or of the lap in between.
    #[inline]
    pub(crate) fn view(&self) -> View {
        loop {
            if let Some((version, config, lap, spent)) = self.read(ConfigCell::peek) {
                let spent = lap.read(spent);
                return View { closed: version.is_closed(), config, spent, lap };
            }
        }
    }

    /// What `peek` reads of the configuration, and the lap and the state word as they were at the
    /// same instant; nothing if another thread has finished a change in between.
    #[inline]
    fn read<C>(
        &self,
        peek: impl Fn(&ConfigCell) -> (Version, C),
    ) -> Option<(Version, C, Lap, u64)> {
        let (version, config) = peek(self.config());
        // Acquire: pairs with the Release in `turn_lap`. Who sees the new lap must see the lift
        // of `spent` that came before it, or an old word would be read under a new lap.
        let lap = self.settings.lap.load(Ordering::Acquire);
        // Acquire: pairs with the Release in `exchange`. Who sees a word that was written under a
        // newer configuration or lap must find that newer one in the two checks below; with
        // Relaxed they could still see the older and pass.
        let spent = self.spent.load(Ordering::Acquire);
        // Relaxed: the Acquire load above keeps it behind.
        let same_lap = self.settings.lap.load(Ordering::Relaxed) == lap;
        let whole = same_lap && self.config().is_still(version);
        whole.then(|| (version, config, Lap::from_word(lap), spent))
    }

    /// Takes `cost` for a request that is plain and can have it at once. Writes nothing if it
    /// can't.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "measured: see benches/README.md")]
    pub(crate) fn take_plain(&self, now: u64, cost: Grains) -> Verdict {
        loop {
            let Some((version, plain, lap, spent)) = self.read(ConfigCell::peek_plain) else {
                return Verdict::Unclear;
            };
            if version.is_closed() {
                return Verdict::Unclear;
            }
            match plain.decide(now, cost, |minted| lap.distance(minted, spent)) {
                Verdict::Take(end) if !self.exchange(lap, spent, end) => {}
                verdict => return verdict,
            }
        }
    }

    /// What [`Self::take_plain`] would say. Writes nothing.
    #[inline]
    pub(crate) fn peek_plain(&self, now: u64, cost: Grains) -> Verdict {
        match self.read(ConfigCell::peek_plain) {
            Some((version, plain, lap, spent)) if !version.is_closed() => {
                plain.decide(now, cost, |minted| lap.distance(minted, spent))
            }
            _ => Verdict::Unclear,
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
                    if end >= view.lap.end() {
                        self.turn_lap(view.lap, view.spent, start);
                    } else if self.exchange(view.lap, view.lap.write(view.spent), end) {
                        return then;
                    }
                }
                Step::Back { start, then } => {
                    if self.exchange(view.lap, view.lap.write(view.spent), start) {
                        return then;
                    }
                }
            }
        }
    }

    /// The one compare-and-swap of the state word.
    ///
    /// A word that left and came back in between does no harm: only the owner of the last
    /// interval moves `spent` back, and then it is again the end of what has been handed out. (To
    /// come back otherwise it would have to go once around the circle and meet the same grain.)
    /// If the lap was turned on in between, what is written means a place that has overflowed.
    #[inline]
    fn exchange(&self, lap: Lap, from: u64, to: Position) -> bool {
        let to = lap.write(to);
        // Release: pairs with the Acquire load in `read`; see there. On failure nothing is learnt
        // but that the state must be viewed again, so Relaxed.
        self.spent.compare_exchange(from, to, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// Brings the lap nearer to a booking that starts at `start` and ends beyond the reach of the
    /// lap. Whoever comes here does it; nobody waits.
    #[cold]
    fn turn_lap(&self, lap: Lap, spent: Position, start: Position) {
        // A lost race here means that somebody else has moved `spent` or the lap.
        match lap.turn(spent, start) {
            Turning::Lift(to) => {
                self.exchange(lap, lap.write(spent), to);
            }
            Turning::Next(next) => {
                let (from, to) = (lap.to_word(), next.to_word());
                // Release: pairs with the Acquire load of the lap in `read`. It publishes the
                // place of `spent` that this lap was chosen for. Relaxed on failure: nothing is
                // learnt from it.
                let lap = &self.settings.lap;
                let _ = lap.compare_exchange(from, to, Ordering::Release, Ordering::Relaxed);
            }
        }
    }
}
