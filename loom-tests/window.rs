//! Races on the limiters by window. Times are nanoseconds, and all is asked while nobody's turn has
//! passed.

use super::race_on;
use crate::line::{Ask, Patience};
use crate::window::{Engine, Held, Line, Log};

type Turn<E> = Held<<E as Engine>::Places>;

/// An engine, and some turns that are booked.
struct Scene<E: Engine> {
    engine: E,
    turns: Vec<Turn<E>>,
}

impl<E: Engine> Scene<E> {
    /// So many permits are used at 0, and turns booked after them.
    fn new(engine: E, used: u32, turns: &[u32]) -> Self {
        for _ in 0..used {
            assert!(granted(&engine, 0, 1).is_some());
        }
        let turns = turns.iter().map(|permits| wait(&engine, 0, *permits)).collect();
        Self { engine, turns }
    }
}

/// A window of 10 ns.
fn log(limit: u32, used: u32, turns: &[u32]) -> Scene<Log> {
    Scene::new(Log::new(limit, limit, 10), used, turns)
}

/// A window of 10 ns in one sub-window, so what is used at 0 counts until 20.
fn line(limit: u32, used: u32, turns: &[u32]) -> Scene<Line> {
    Scene::new(Line::new(limit, limit, 10, 1), used, turns)
}

/// Tries as those who try do. The time, if it was granted.
fn granted<E: Engine>(engine: &E, now: u64, permits: u32) -> Option<u64> {
    let granted = engine.take(now, permits)
        || engine.book(Ask::new(now, permits, Patience::Until(now))).is_ok();
    granted.then_some(now)
}

fn wait<E: Engine>(engine: &E, now: u64, permits: u32) -> Turn<E> {
    engine.book(Ask::new(now, permits, Patience::Forever)).expect("there is room")
}

/// When it is used.
fn time<E: Engine>(turn: &Turn<E>, booked: u64) -> u64 {
    turn.turn.unwrap_or(booked)
}

/// Checks that in no window more than `limit` of `uses` lie.
fn assert_within(limit: usize, mut uses: Vec<u64>) {
    uses.sort_unstable();
    let crowded = uses.windows(limit + 1).find(|some| some[limit] - some[0] < 10);
    assert!(crowded.is_none(), "{uses:?}");
}

// ---- The log ------------------------------------------------------------------------------------

/// With a limit of one, whoever comes second finds a slot that is claimed and not written.
#[test]
fn log_two_try_for_the_last_place() {
    race_on(
        || log(1, 0, &[]),
        |scene| granted(&scene.engine, 3, 1),
        |scene| granted(&scene.engine, 5, 1),
        |scene, left, right| {
            assert!(left.is_some() != right.is_some());
            assert!(granted(&scene.engine, 15, 1).is_some(), "it leaves the window by then");
        },
    );
}

#[test]
fn log_two_try_and_there_is_a_place_for_each() {
    race_on(
        || log(2, 0, &[]),
        |scene| granted(&scene.engine, 3, 1),
        |scene| granted(&scene.engine, 3, 1),
        |scene, left, right| {
            assert!(left.is_some() && right.is_some());
            assert!(granted(&scene.engine, 12, 1).is_none());
            assert!(granted(&scene.engine, 13, 2).is_some());
        },
    );
}

#[test]
fn log_one_who_tries_races_with_one_who_waits_for_all() {
    race_on(
        || log(2, 1, &[]),
        |scene| granted(&scene.engine, 5, 1),
        |scene| time::<Log>(&wait(&scene.engine, 5, 2), 5),
        |_, tried, waited| {
            assert_within(2, [0, waited, waited].into_iter().chain(tried).collect());
            assert!(tried.is_some() || waited == 10, "only who is granted delays the other");
        },
    );
}

#[test]
fn log_two_wait() {
    race_on(
        || log(1, 1, &[]),
        |scene| time::<Log>(&wait(&scene.engine, 5, 1), 5),
        |scene| time::<Log>(&wait(&scene.engine, 5, 1), 5),
        |scene, left, right| {
            let mut turns = [left, right];
            turns.sort_unstable();
            assert_eq!(turns, [10, 20]);
            assert_eq!(time::<Log>(&wait(&scene.engine, 5, 1), 5), 30);
        },
    );
}

#[test]
fn log_cancel_at_the_head_races_with_a_booking() {
    race_on(
        || log(2, 2, &[1]),
        |scene| scene.engine.give_back(5, &scene.turns[0]),
        |scene| time::<Log>(&wait(&scene.engine, 5, 1), 5),
        |scene, (), turn| {
            assert_eq!(turn, 10);
            assert_eq!(time::<Log>(&wait(&scene.engine, 5, 1), 5), 10, "the other place");
            assert_eq!(time::<Log>(&wait(&scene.engine, 5, 1), 5), 20);
        },
    );
}

/// Of two turns in one chain the first is given back while a third is booked behind them.
#[test]
fn log_cancel_races_with_an_extension_of_its_chain() {
    race_on(
        || log(1, 1, &[1]),
        |scene| scene.engine.give_back(5, &scene.turns[0]),
        |scene| time::<Log>(&wait(&scene.engine, 5, 1), 5),
        |scene, (), turn| {
            let next = time::<Log>(&wait(&scene.engine, 5, 1), 5);
            let after = time::<Log>(&wait(&scene.engine, 5, 1), 5);
            assert_within(1, vec![0, turn, next, after]);
            let mut turns = [turn, next, after];
            turns.sort_unstable();
            assert_eq!(turns, [10, 20, 30], "and none is lost");
        },
    );
}

#[test]
fn log_two_cancel_in_one_chain() {
    race_on(
        || log(1, 1, &[1, 1]),
        |scene| scene.engine.give_back(5, &scene.turns[0]),
        |scene| scene.engine.give_back(5, &scene.turns[1]),
        |scene, (), ()| {
            assert_eq!(time::<Log>(&wait(&scene.engine, 5, 1), 5), 10);
            assert_eq!(time::<Log>(&wait(&scene.engine, 5, 1), 5), 20);
        },
    );
}

#[test]
fn log_a_hole_is_taken_by_two() {
    race_on(
        || {
            let scene = log(2, 2, &[1, 1]);
            scene.engine.give_back(5, &scene.turns[0]);
            scene
        },
        |scene| granted(&scene.engine, 10, 1),
        |scene| granted(&scene.engine, 10, 1),
        |_, left, right| assert!(left.is_some() != right.is_some()),
    );
}

#[test]
fn log_two_for_several_each() {
    race_on(
        || log(3, 0, &[]),
        |scene| granted(&scene.engine, 3, 2),
        |scene| granted(&scene.engine, 4, 2),
        |scene, left, right| {
            assert!(left.is_some() != right.is_some());
            let third = granted(&scene.engine, 4, 1);
            assert!(third.is_some(), "what the other gave up is free");
            assert!(granted(&scene.engine, 4, 1).is_none());
        },
    );
}

#[test]
fn log_a_lower_limit_races_with_a_try() {
    race_on(
        || log(2, 0, &[]),
        |scene| scene.engine.set_limit(1),
        |scene| granted(&scene.engine, 3, 1),
        |scene, (), tried| {
            assert!(tried.is_some());
            assert!(granted(&scene.engine, 4, 1).is_none(), "it counts, wherever it was");
            assert!(granted(&scene.engine, 13, 1).is_some());
        },
    );
}

// ---- The line of places -------------------------------------------------------------------------

#[test]
fn line_two_try_for_the_last_place() {
    race_on(
        || line(1, 0, &[]),
        |scene| granted(&scene.engine, 3, 1),
        |scene| granted(&scene.engine, 13, 1),
        |_, left, right| assert!(left.is_some() != right.is_some()),
    );
}

/// One claims in the old sub-window while another decides the mark of the new one.
#[test]
fn line_a_turn_of_the_sub_window_races_with_a_claim() {
    race_on(
        || line(2, 0, &[]),
        |scene| granted(&scene.engine, 9, 1),
        |scene| granted(&scene.engine, 10, 1),
        |scene, left, right| {
            assert!(left.is_some() && right.is_some());
            let next = granted(&scene.engine, 20, 2);
            assert_within(2, [left, right, next, next].into_iter().flatten().collect());
            assert!(granted(&scene.engine, 30, 2).is_some(), "all have left");
        },
    );
}

/// Two decide marks, one of them more than the other.
#[test]
fn line_two_turn_the_sub_window() {
    race_on(
        || line(2, 2, &[]),
        |scene| granted(&scene.engine, 20, 1),
        |scene| granted(&scene.engine, 30, 1),
        |scene, left, right| {
            assert!(right.is_some());
            let more = granted(&scene.engine, 30, 1);
            assert_within(2, [left, right, more].into_iter().flatten().collect());
        },
    );
}

/// One waits for more than is free in one sub-window while others turn to it.
#[test]
fn line_one_who_waits_for_all_races_with_a_turn() {
    race_on(
        || line(2, 1, &[]),
        |scene| time::<Line>(&wait(&scene.engine, 5, 2), 5),
        |scene| granted(&scene.engine, 10, 1),
        |scene, waited, tried| {
            let last = granted(&scene.engine, 40, 1);
            let uses = [0, waited, waited].into_iter().chain(tried).chain(last);
            assert_within(2, uses.collect());
        },
    );
}

/// Places are given back and claimed again while another decides marks by what it saw before.
#[test]
fn line_a_turn_races_with_a_cancel_and_a_booking() {
    race_on(
        || line(1, 1, &[1]),
        |scene| {
            scene.engine.give_back(15, &scene.turns[0]);
            time::<Line>(&wait(&scene.engine, 15, 1), 15)
        },
        |scene| granted(&scene.engine, 30, 1),
        |scene, waited, tried| {
            let next = time::<Line>(&wait(&scene.engine, 30, 1), 30);
            assert_within(1, [0, waited, next].into_iter().chain(tried).collect());
        },
    );
}

#[test]
fn line_two_wait() {
    race_on(
        || line(1, 1, &[]),
        |scene| time::<Line>(&wait(&scene.engine, 5, 1), 5),
        |scene| time::<Line>(&wait(&scene.engine, 5, 1), 5),
        |_, left, right| {
            let mut turns = [left, right];
            turns.sort_unstable();
            assert_eq!(turns, [20, 40]);
        },
    );
}

#[test]
fn line_cancel_at_the_head_races_with_a_booking() {
    race_on(
        || line(1, 1, &[1]),
        |scene| scene.engine.give_back(5, &scene.turns[0]),
        |scene| time::<Line>(&wait(&scene.engine, 5, 1), 5),
        |scene, (), turn| {
            let next = time::<Line>(&wait(&scene.engine, 5, 1), 5);
            let mut turns = [turn, next];
            turns.sort_unstable();
            assert_eq!(turns, [20, 40], "none is lost and none is given twice");
        },
    );
}

#[test]
fn line_a_hole_is_taken_by_two() {
    race_on(
        || {
            let scene = line(1, 1, &[1, 1]);
            scene.engine.give_back(5, &scene.turns[0]);
            scene
        },
        |scene| granted(&scene.engine, 20, 1),
        |scene| granted(&scene.engine, 20, 1),
        |_, left, right| assert!(left.is_some() != right.is_some()),
    );
}
