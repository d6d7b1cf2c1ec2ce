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
    (1..8_u32, 1..40_u64, 1..12_u32).prop_map(|(limit, window, segments)| Setup {
        limit,
        window,
        segments,
    })
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
    /// The time that the last refusal named, what was asked for, and whether nobody waited.
    hint: Option<(u64, u32, bool)>,
    used: Vec<Use>,
    waiting: Vec<Held<E::Places>>,
}

impl<E: Engine> Run<E> {
    fn new(engine: E) -> Self {
        Self { engine, now: 0, hint: None, used: vec![], waiting: vec![] }
    }

    /// All that is used, and all that will be.
    fn uses(&self) -> Vec<Use> {
        let waiting =
            self.waiting.iter().map(|held| Use { at: held.turn.unwrap(), permits: held.permits });
        self.used.iter().copied().chain(waiting).collect()
    }

    fn set_time(&mut self, when: When) -> Option<u64> {
        let off = |time: u64, offset: i64| time.saturating_add_signed(offset);
        let mut hinted = None;
        self.now = match when {
            When::Later(nanos) => self.now + nanos,
            When::Earlier(nanos) => self.now.saturating_sub(nanos),
            When::Hint(offset) => match self.hint {
                Some((time, ..)) => {
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
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        let (used, waiting): (Vec<_>, Vec<_>) = waiting.partition(|held| held.turn.unwrap() <= now);
        self.waiting = waiting;
        let used = used.into_iter();
        self.used.extend(used.map(|held| Use { at: held.turn.unwrap(), permits: held.permits }));
    }

    fn step(&mut self, when: When, what: What) {
        let hinted = self.set_time(when);
        self.wake();
        let hint = self.hint.take();
        match what {
            What::Try(permits) => {
                // The same request, if it is to come when it was told.
                let permits = hint.filter(|_| hinted.is_some()).map_or(permits, |(_, n, _)| n);
                let outcome = self.ask(permits, Patience::Until(self.now));
                if let Some(hinted) = hinted {
                    // A turn that was given back before that of others is good for no longer.
                    if self.now <= hinted || hint.is_some_and(|(.., alone)| alone) {
                        let now = self.now;
                        assert_eq!(outcome.is_ok(), now >= hinted, "{outcome:?} at {now}");
                    }
                }
                if let Err(Refusal::Late(turn)) = outcome {
                    let alone = self.uses().iter().all(|one| one.at <= self.now);
                    self.hint = Some((self.now + turn.wait().unwrap(), permits, alone));
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

/// Whatever the limit is set to: those who try keep to what it is when they do.
fn counts_what_was_used<E: Engine>(
    mut run: Run<E>,
    window: u64,
    tries: &[(u64, u32, Option<u32>)],
) {
    for (later, permits, limit) in tries {
        run.now += later;
        if let Some(limit) = limit {
            run.engine.set_limit(*limit);
        }
        let limit = run.engine.settings().limit();
        if run.ask(*permits, Patience::Until(run.now)).is_ok() {
            let used = used_in(&run.used, (run.now + 1).saturating_sub(window), window);
            assert!(used <= limit.into(), "{used} of {limit} at {}", run.now);
        }
    }
    // A window and a sub-window after the last, all of the limit is free again.
    let limit = run.engine.settings().limit();
    assert_eq!(run.engine.available(run.now + 3 * window), limit);
}

fn tries_and_limits() -> impl Strategy<Value = Vec<(u64, u32, Option<u32>)>> {
    let limit = prop_oneof![2 => Just(None), 1 => (0..8_u32).prop_map(Some)];
    prop::collection::vec((0..9_u64, 1..4_u32, limit), 1..60)
}

#[test]
fn a_refusal_writes_nothing() {
    let log = Log::new(3, 3, 100);
    let line = Line::new(3, 3, 100, 4);
    for permits in [2, 1, 3] {
        let ask = Ask::new(50, permits, Patience::Forever);
        log.book(ask).unwrap();
        line.book(ask).unwrap();
    }
    for now in [0, 10, 60, 149, 160, 999] {
        let before = (log.words(), line.words());
        for permits in [1, 2, 4] {
            for patience in [Patience::Until(now), Patience::Until(now + 20)] {
                let ask = Ask::new(now, permits, patience);
                if now < 149 || permits == 4 {
                    assert!(log.book(ask).is_err() && line.book(ask).is_err(), "{ask:?}");
                }
            }
        }
        assert_eq!((log.words(), line.words()), before);
    }
    log.settings().close();
    line.settings().close();
    let before = (log.words(), line.words());
    let ask = Ask::new(9999, 1, Patience::Forever);
    assert_eq!(log.book(ask).unwrap_err(), Refusal::Closed);
    assert_eq!(line.book(ask).unwrap_err(), Refusal::Closed);
    assert_eq!((log.words(), line.words()), before);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3000) })]

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

    #[test]
    fn a_log_counts_what_was_used_before_a_change(
        setup in setup(), tries in tries_and_limits(),
    ) {
        let run = Run::new(Log::new(setup.limit, 8, setup.window));
        counts_what_was_used(run, setup.window, &tries);
    }

    #[test]
    fn a_line_counts_what_was_used_before_a_change(
        setup in setup(), tries in tries_and_limits(),
    ) {
        counts_what_was_used(line(setup), setup.window, &tries);
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
        let segment = run.engine.segment();
        let more = (setup.window.div_ceil(segment) + 1) * segment;
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
