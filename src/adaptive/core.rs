//! What becomes of a concurrency limit when a call is reported.

use super::aimd::Aimd;
use super::gradient::{Gradient, Latencies};
use super::level::{AtomicLevel, Level, ONE};
use crate::concurrency::Concurrency;

/// How a limit follows the reports.
#[derive(Debug)]
pub(crate) enum Method {
    Aimd(Aimd),
    Gradient(Gradient, Latencies),
}

impl Method {
    /// By the gradient, of which nothing is known yet.
    pub(crate) fn gradient(gradient: Gradient) -> Self {
        Self::Gradient(gradient, Latencies::new())
    }
}

/// What became of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    /// It succeeded, after so many nanoseconds.
    Succeeded(u64),
    Failed,
}

/// The limit, and how it moves.
#[derive(Debug)]
pub(crate) struct Core {
    method: Method,
    min: u64,
    max: u64,
    level: AtomicLevel,
}

impl Core {
    pub(crate) fn new(method: Method, [min, initial, max]: [u32; 3]) -> Self {
        let [min, max] = [min, max].map(|limit| u64::from(limit) * ONE);
        Self { method, min, max, level: AtomicLevel::new(initial) }
    }

    pub(crate) fn level(&self) -> Level {
        self.level.load()
    }

    /// Learns from a call that began in `round`. `busy` is whether the limit was half in use at least:
    /// else success says nothing about a larger one. Says whether the limit is another, in whole numbers.
    pub(crate) fn report(&self, round: u64, outcome: Outcome, busy: bool) -> bool {
        let moved = match (&self.method, outcome) {
            (Method::Aimd(aimd), Outcome::Succeeded(latency)) if !aimd.is_too_long(latency) => self
                .advance(round, busy, |level| Level { limit: Aimd::grown(level.limit), ..level }),
            (Method::Aimd(aimd), _) => {
                self.advance(round, true, |level| level.cut(aimd.cut(level.limit)))
            }
            (Method::Gradient(gradient, latencies), Outcome::Succeeded(latency)) => {
                let level = self.level();
                let current = level.round == round;
                let trend = current.then(|| latencies.add(latency, level.whole())).flatten();
                trend.and_then(|trend| {
                    let next = |level: Level| gradient.next(level.limit, trend);
                    self.advance(round, busy, |level| Level { limit: next(level), ..level })
                })
            }
            (Method::Gradient(..), Outcome::Failed) => {
                self.advance(round, true, |level| level.cut(Gradient::cut(level.limit)))
            }
        };
        moved.is_some_and(|(before, after)| before.whole() != after.whole())
    }

    /// Sets `concurrency` to the limit, by everybody whose report has changed it.
    ///
    /// Who is overtaken between reading the limit and setting it sets an old one; so it looks again.
    /// `set_limit` acquires what the one before it released, and so the last of all who set it sees
    /// every change that any of them had seen.
    pub(crate) fn govern(&self, concurrency: &Concurrency) {
        let mut limit = self.level().whole();
        loop {
            concurrency.set_limit(limit);
            let latest = self.level().whole();
            if latest == limit {
                return;
            }
            limit = latest;
        }
    }

    /// Moves the level, if it is still in `round`: of the calls that began before a decrease none moves
    /// it again.
    fn advance(
        &self,
        round: u64,
        wanted: bool,
        next: impl Fn(Level) -> Level,
    ) -> Option<(Level, Level)> {
        self.level.advance(|level| {
            let next = (wanted && level.round == round).then(|| next(level))?;
            Some(Level { limit: next.limit.clamp(self.min, self.max), ..next })
        })
    }
}
