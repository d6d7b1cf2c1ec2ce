//! Both engines at explicit times, held against brute force.

use super::engine::{Engine, Held};
use super::log::Log;
use super::sliding::Line;
use crate::line::{Ask, Patience, Refusal};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum When {
    Later(u64),
    /// Threads that read the clock come in another order.
    Earlier(u64),
    /// So far off the time that the last refusal named.
    Hint(i64),
    /// So far off the turn of one who waits.
    Turn(usize, i64),
}

#[derive(Clone, Copy, Debug)]
enum What {
    Try(u32),
    Wait(u32),
    Cancel(usize),
}

#[derive(Clone, Copy, Debug)]
struct Setup {
    limit: u32,
    window: u64,
    segments: u32,
}

fn setup() -> impl Strategy<Value = Setup> {
    (1..8_u32, 1..40_u64, 1..12_u32)
        .prop_map(|(limit, window, segments)| Setup { limit, window, segments })
}

fn steps() -> impl Strategy<Value = Vec<(When, What)>> {
    let when = prop_oneof![
        4 => (0..4_u64).prop_map(When::Later),
        1 => (0..100_u64).prop_map(When::Later),
        1 => (1..9_u64).prop_map(When::Earlier),
        3 => (-1..=1_i64).prop_map(When::Hint),
        2 => (0..9_usize, -1..=1_i64).prop_map(|(one, offset)| When::Turn(one, offset)),
    ];
    let permits = || prop_oneof![3 => Just(1), 2 => 1..9_u32];
    let what = prop_oneof![
        4 => permits().prop_map(What::Try),
        4 => permits().prop_map(What::Wait),
        3 => (0..9_usize).prop_map(What::Cancel),
    ];
    prop::collection::vec((when, what), 1..60)
}

/// Permits that are used at a time.
#[derive(Clone, Copy, Debug)]
struct Use {
    at: u64,
    permits: u32,
}

/// What is used in `[from, from + length)`.
fn used_in(uses: &[Use], from: u64, length: u64) -> u64 {
    let inside = uses.iter().filter(|one| (from..from + length).contains(&one.at));
    inside.map(|one| u64::from(one.permits)).sum()
}

/// The most that is used in any window.
fn most_in_a_window(uses: &[Use], window: u64) -> u64 {
    uses.iter().map(|one| used_in(uses, one.at, window)).max().unwrap_or(0)
}

/// An engine, and what it was asked.
struct Run<E: Engine> {
    engine: E,
    now: u64,
    hint: Option<(u64, u32)>,
    used: Vec<Use>,
    waiting: Vec<Held<E::Places>>,
}

impl<E: Engine> Run<E> {
    fn new(engine: E) -> Self {
        Self { engine, now: 0, hint: None, used: vec![], waiting: vec![] }
    }

    /// All that is used, and all that will be.
    fn uses(&self) -> Vec<Use> {
        let waiting = self.waiting.iter().map(|held| Use { at: held.turn.unwrap(), permits: held.permits });
        self.used.iter().copied().chain(waiting).collect()
    }

    fn set_time(&mut self, when: When) -> Option<u64> {
        let off = |time: u64, offset: i64| time.saturating_add_signed(offset);
        let mut hinted = None;
        self.now = match when {
            When::Later(nanos) => self.now + nanos,
            When::Earlier(nanos) => self.now.saturating_sub(nanos),
            When::Hint(offset) => match self.hint {
                Some((time, _)) => {
                    hinted = Some(time);
                    off(time, offset)
                }
                None => self.now,
            },
            When::Turn(one, offset) => match self.waiting.get(one) {
                Some(held) => off(held.turn.unwrap(), offset),
                None => self.now,
            },
        };
        hinted
    }

    fn ask(&mut self, permits: u32, patience: Patience) -> Result<(), Refusal> {
        let held = self.engine.book(Ask::new(self.now, permits, patience))?;
        match held.turn {
            None => self.used.push(Use { at: self.now, permits }),
            Some(turn) => {
                assert!(turn > self.now);
                self.waiting.push(held);
            }
        }
        Ok(())
    }

    /// As those who wait do when they wake.
    fn wake(&mut self) {
        let now = self.now;
        let used = self.waiting.extract_if(.., |held| held.turn.unwrap() <= now);
        self.used.extend(used.map(|held| Use { at: held.turn.unwrap(), permits: held.permits }));
    }

    fn step(&mut self, when: When, what: What) {
        let hinted = self.set_time(when);
        self.wake();
        let hint = self.hint.take();
        match what {
            What::Try(permits) => {
                // The same request, if it is to come when it was told.
                let permits = hint.filter(|_| hinted.is_some()).map_or(permits, |(_, n)| n);
                let outcome = self.ask(permits, Patience::Until(self.now));
                if let Some(hinted) = hinted {
                    assert_eq!(outcome.is_ok(), self.now >= hinted, "{outcome:?} at {}", self.now);
                }
                if let Err(Refusal::Late(turn)) = outcome {
                    self.hint = Some((self.now + turn.wait().unwrap(), permits));
                }
            }
            What::Wait(permits) => {
                let _ = self.ask(permits, Patience::Forever);
            }
            What::Cancel(one) if one < self.waiting.len() => {
                let held = self.waiting.remove(one);
                self.engine.give_back(self.now, &held);
            }
            What::Cancel(_) => self.hint = hint,
        }
    }
}

fn log(setup: Setup) -> Run<Log> {
    Run::new(Log::new(setup.limit, setup.limit, setup.window))
}

fn line(setup: Setup) -> Run<Line> {
    Run::new(Line::new(setup.limit, u32::MAX, setup.window, setup.segments))
}

fn keeps_the_limit<E: Engine>(mut run: Run<E>, setup: Setup, steps: Vec<(When, What)>) {
    for (when, what) in steps {
        run.step(when, what);
        let most = most_in_a_window(&run.uses(), setup.window);
        assert!(most <= setup.limit.into(), "{most} after {what:?} at {}", run.now);
    }
}

/// All that was booked is given back, in any order, before its turn.
fn leaves_no_trace<E: Engine>(
    mut run: Run<E>,
    twin: &Run<E>,
    used: &[(u64, u32)],
    waiters: &[(u32, usize)],
    span: u64,
) {
    for (later, permits) in used {
        run.now += later;
        for engine in [&run.engine, &twin.engine] {
            let _ = engine.book(Ask::new(run.now, *permits, Patience::Until(run.now)));
        }
    }
    let now = run.now;
    for (permits, _) in waiters {
        let _ = run.ask(*permits, Patience::Forever);
    }
    for (_, one) in waiters {
        if !run.waiting.is_empty() {
            let held = run.waiting.remove(one % run.waiting.len());
            run.engine.give_back(now, &held);
        }
    }
    // Those who asked and did not have to wait have used it.
    let at_once: u32 = run.used.iter().map(|one| one.permits).sum();
    if at_once > 0 {
        let _ = twin.engine.book(Ask::new(now, at_once, Patience::Until(now)));
    }
    for time in now..now + span {
        assert_eq!(run.engine.available(time), twin.engine.available(time), "at {time}");
    }
}

fn used() -> impl Strategy<Value = Vec<(u64, u32)>> {
    prop::collection::vec((0..9_u64, 1..4_u32), 0..12)
}

fn waiters() -> impl Strategy<Value = Vec<(u32, usize)>> {
    prop::collection::vec((prop_oneof![2 => Just(1_u32), 1 => 1..5_u32], 0..9_usize), 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_log_keeps_the_limit_in_every_window(setup in setup(), steps in steps()) {
        keeps_the_limit(log(setup), setup, steps);
    }

    #[test]
    fn a_line_keeps_the_limit_in_every_window(setup in setup(), steps in steps()) {
        keeps_the_limit(line(setup), setup, steps);
    }

    #[test]
    fn a_log_is_left_as_if_nobody_had_waited(
        setup in setup(), used in used(), waiters in waiters(),
    ) {
        leaves_no_trace(log(setup), &log(setup), &used, &waiters, 2 * setup.window);
    }

    #[test]
    fn a_line_is_left_as_if_nobody_had_waited(
        setup in setup(), used in used(), waiters in waiters(),
    ) {
        leaves_no_trace(line(setup), &line(setup), &used, &waiters, 3 * setup.window);
    }

    /// Whatever is tried, it is granted if and only if brute force says so.
    #[test]
    fn a_log_agrees_with_brute_force(
        setup in setup(), tries in prop::collection::vec((0..9_u64, 1..9_u32), 1..80),
    ) {
        let mut run = log(setup);
        for (later, permits) in tries {
            run.now += later;
            let recent = used_in(&run.used, (run.now + 1).saturating_sub(setup.window), setup.window);
            let free = u64::from(setup.limit) - recent;
            prop_assert_eq!(u64::from(run.engine.available(run.now)), free);
            let granted = run.ask(permits, Patience::Until(run.now)).is_ok();
            prop_assert_eq!(granted, u64::from(permits) <= free);
        }
    }

    /// What is granted when a window of one more sub-window is counted is granted here; what is not
    /// when a window alone is counted is not.
    #[test]
    fn a_line_is_stricter_by_at_most_a_sub_window(
        setup in setup(), tries in prop::collection::vec((0..9_u64, 1..9_u32), 1..80),
    ) {
        let mut run = line(setup);
        let more = setup.window + 2 * setup.window.div_ceil(setup.segments.into()) - 1;
        for (later, permits) in tries {
            run.now += later;
            let free = |window: u64| {
                let recent = used_in(&run.used, (run.now + 1).saturating_sub(window), window);
                u64::from(setup.limit).saturating_sub(recent)
            };
            let (least, most) = (free(more), free(setup.window));
            let available = u64::from(run.engine.available(run.now));
            prop_assert!(least <= available && available <= most, "{least} {available} {most}");
            let granted = run.ask(permits, Patience::Until(run.now)).is_ok();
            prop_assert_eq!(granted, u64::from(permits) <= available);
        }
    }
}
