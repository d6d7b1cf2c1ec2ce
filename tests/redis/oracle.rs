//! At times that it is told, a limit on a server answers as a limiter of one process does whose
//! nanosecond is its microsecond.

use crate::pair::Pair;
use crate::support::{Engine, Server};
use paceline::redis::RedisLimiter;
use paceline::{Limiter, Rate};
use proptest::prelude::*;
use redis::aio::MultiplexedConnection;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::runtime::Builder;

/// Tokens per microseconds.
type Speed = (u64, u64);

#[derive(Clone, Debug)]
enum Step {
    Try(u32),
    Reserve(u32),
    /// A try and a reservation of each, sent together.
    Together(Vec<u32>),
    Cancel(usize),
    Refund(usize),
    Wait(u64),
    /// Until so many microseconds before or after the turn of one that is booked.
    UntilTurn(usize, i64),
    SetRate(usize),
    SetBurst(u32),
}

#[derive(Clone, Debug)]
struct Scene {
    speeds: Vec<Speed>,
    /// Per second.
    fastest: u64,
    burst: u32,
    steps: Vec<Step>,
}

fn scenes() -> impl Strategy<Value = Scene> {
    let speeds = prop::sample::select(families()).prop_flat_map(|(family, fastest)| {
        (prop::collection::vec(prop::sample::select(family), 1..3), Just(fastest))
    });
    let step = prop_oneof![
        4 => (0..6_u32).prop_map(Step::Try),
        5 => (1..4_u32).prop_map(Step::Reserve),
        2 => prop::collection::vec(0..4_u32, 1..5).prop_map(Step::Together),
        4 => any::<usize>().prop_map(Step::Cancel),
        2 => any::<usize>().prop_map(Step::Refund),
        2 => (0..3_000_000_u64).prop_map(Step::Wait),
        2 => (0..30_u64).prop_map(Step::Wait),
        3 => (any::<usize>(), -2..3_i64).prop_map(|(one, by)| Step::UntilTurn(one, by)),
        1 => any::<usize>().prop_map(Step::SetRate),
        1 => (0..9_u32).prop_map(Step::SetBurst),
    ];
    (speeds, 1..8_u32, prop::collection::vec(step, 1..60))
        .prop_map(|((speeds, fastest), burst, steps)| Scene { speeds, fastest, burst, steps })
}

/// Speeds that both limiters reckon with exactly, whichever comes first, and the fastest: what is
/// rounded is rounded differently.
fn families() -> Vec<(Vec<Speed>, u64)> {
    let with = |speeds: &[Speed]| [speeds, &[(0, 1), (1, 0)]].concat();
    vec![
        (with(&[(1, 1_000_000), (3, 1_000_000), (1, 10_000), (1, 60_000_000)]), 1_000),
        (with(&[(100, 1_000_000), (1_000_000, 1_000_000), (7_000_000, 1_000_000)]), 7_000_000),
        (vec![(1, 7_000), (3, 7_000)], 1_000),
    ]
}

fn rate((tokens, micros): Speed, nanos: u64) -> Rate {
    match micros {
        0 => Rate::UNLIMITED,
        _ => Rate::new(tokens, Duration::from_nanos(micros * nanos)).expect("one of ours"),
    }
}

async fn compare(connection: MultiplexedConnection, name: String, scene: Scene) {
    let first = scene.speeds[0];
    let remote = RedisLimiter::builder(connection, name, rate(first, 1_000))
        .burst(scene.burst)
        .max_rate(Rate::per_second(scene.fastest))
        .max_burst(1_000);
    let local = Limiter::builder(rate(first, 1))
        .burst(scene.burst)
        .max_rate(Rate::per_second(scene.fastest * 1_000))
        .max_burst(1_000)
        .build()
        .expect("within its own bounds");
    let pair = Pair::new(remote, &local, 1, 0).await;
    // A limit on a server has always been full when it is first used.
    pair.wait(1);
    for (id, step) in (0..).step_by(10).zip(scene.steps) {
        perform(&pair, id, step, &scene.speeds).await;
        pair.assert_same().await;
    }
}

async fn perform(pair: &Pair<'_>, id: u32, step: Step, speeds: &[Speed]) {
    let booked = pair.booked();
    let one = |index: usize| booked.get(index.checked_rem(booked.len())?).copied();
    match step {
        Step::Try(n) => pair.try_acquire(n).await,
        Step::Reserve(n) => pair.reserve(id, n).await,
        Step::Together(permits) => pair.together(id, &permits).await,
        Step::Cancel(index) => pair.cancel(one(index).unwrap_or(id)).await,
        Step::Refund(index) => pair.refund(one(index).unwrap_or(id)).await,
        Step::Wait(micros) => pair.wait(micros),
        Step::UntilTurn(index, by) => {
            let turn = one(index).and_then(|one| pair.turn(one)).unwrap_or(0);
            // Not to the end of the world.
            if turn < 1 << 40 {
                pair.wait_until(turn.saturating_add_signed(by));
            }
        }
        Step::SetRate(index) => {
            let speed = speeds[index % speeds.len()];
            pair.set_rate(rate(speed, 1_000), rate(speed, 1)).await;
        }
        Step::SetBurst(burst) => pair.set_burst(burst).await,
    }
}

#[test]
fn a_limit_on_a_server_answers_as_a_limiter_of_one_process() {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let Some(server) = runtime.block_on(Server::start(Engine::Redis)) else { return };
    let connection = runtime.block_on(server.patient_connection());
    let case = AtomicU64::new(0);
    let cases =
        std::env::var("PROPTEST_CASES").map_or(200, |cases| cases.parse().expect("a count"));
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(scene in scenes())| {
        let name = format!("case {}", case.fetch_add(1, Ordering::SeqCst));
        runtime.block_on(compare(connection.clone(), name, scene));
    });
}

#[tokio::test]
async fn a_hole_that_overflows_in_the_microsecond_of_a_change_is_still_good() {
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let (slow, fast) = ((1_000_000, 1_000_000), (7_000_000, 1_000_000));
    let steps = [
        Step::Reserve(4),
        Step::Reserve(4),
        Step::SetRate(1),
        Step::Wait(1),
        Step::SetRate(0),
        Step::Refund(0),
    ];
    let (speeds, steps) = (vec![slow, fast], steps.to_vec());
    let scene = Scene { speeds, fastest: 7_000_000, burst: 8, steps };
    compare(server.patient_connection().await, "test".to_owned(), scene).await;
}
