//! At times that it is told, a limit on a server answers as a limiter of one process does whose
//! nanosecond is its microsecond.

use crate::support::{Engine, Server};
use paceline::redis::{RedisLimiter, Reservation, TimeSource};
use paceline::{Limiter, Rate, TryAcquireError};
use proptest::prelude::*;
use redis::aio::MultiplexedConnection;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::time::Instant;

/// When the tests begin, in microseconds since the Unix epoch.
const BEGINNING: u64 = 1_796_000_000_000_000;

/// Tokens per microseconds.
type Speed = (u64, u64);

#[derive(Clone, Copy, Debug)]
enum Step {
    Try(u32),
    Reserve(u32),
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

/// Speeds that both limiters reckon with exactly when they are built for the last: what is
/// rounded is rounded differently.
fn families() -> Vec<(Vec<Speed>, u64)> {
    let with = |speeds: &[Speed]| [speeds, &[(0, 1), (1, 0)]].concat();
    vec![
        (with(&[(1, 1_000_000), (3, 1_000_000), (1, 10_000), (1, 60_000_000)]), 1_000),
        (with(&[(100, 1_000_000), (1_000_000, 1_000_000), (7_000_000, 1_000_000)]), 7_000_000),
        (with(&[(1, 7_000), (1, 3_500)]), 1_000),
    ]
}

fn rate((tokens, micros): Speed, nanos: u64) -> Rate {
    match micros {
        0 => Rate::UNLIMITED,
        _ => Rate::new(tokens, Duration::from_nanos(micros * nanos)).expect("one of ours"),
    }
}

/// Both limiters, and the reservations that were made of both.
struct Pair<'a> {
    remote: RedisLimiter,
    local: &'a Limiter,
    began: Instant,
    clock: Arc<AtomicU64>,
    booked: RefCell<Vec<Booked<'a>>>,
}

struct Booked<'a> {
    theirs: Reservation,
    ours: paceline::Reservation<'a>,
    /// Whether the rate was changed since. Then it is only said when it comes as long as it has not
    /// come: nobody tells of a change to whom it does not matter any more.
    retimed: bool,
}

impl<'a> Pair<'a> {
    fn now(&self) -> u64 {
        self.clock.load(Ordering::SeqCst)
    }

    /// The instant of the limiter in this process.
    fn local_now(&self) -> Instant {
        self.began + Duration::from_nanos(self.now() - BEGINNING)
    }

    async fn perform(&self, step: Step, speeds: &[Speed]) {
        let now = self.local_now();
        match step {
            Step::Try(n) => self.try_acquire(n).await,
            Step::Reserve(n) => {
                let theirs = self.remote.reserve_many(n).await;
                let ours = self.local.reserve_many_at(n, now);
                match (theirs, ours) {
                    (Ok(theirs), Ok(ours)) => {
                        self.booked.borrow_mut().push(Booked { theirs, ours, retimed: false });
                    }
                    (Err(theirs), Err(ours)) => assert_eq!(theirs.refusal(), Some(&ours)),
                    (theirs, ours) => panic!("{theirs:?} is not {ours:?}"),
                }
            }
            Step::Cancel(one) => {
                if let Some(Booked { theirs, ours, .. }) = self.take(one) {
                    ours.cancel_at(now);
                    theirs.cancel().await.expect("the server is up");
                }
            }
            Step::Refund(one) => {
                if let Some(Booked { theirs, ours, .. }) = self.take(one) {
                    ours.refund_at(now);
                    theirs.refund().await.expect("the server is up");
                }
            }
            Step::Wait(micros) => {
                self.clock.fetch_add(micros, Ordering::SeqCst);
            }
            Step::UntilTurn(one, by) => {
                let booked = self.booked.borrow();
                if let Some(one) = booked.get(one % booked.len().max(1)) {
                    let due = one.theirs.due().map_or(0, micros);
                    let time = due.saturating_add_signed(by).max(self.now());
                    // Not to the end of the world.
                    if time < BEGINNING + (1 << 40) {
                        self.clock.store(time, Ordering::SeqCst);
                    }
                }
            }
            Step::SetRate(one) => {
                let speed = speeds[one % speeds.len()];
                self.booked.borrow_mut().iter_mut().for_each(|one| one.retimed = true);
                self.remote.set_rate(rate(speed, 1_000)).await.expect("within the bounds");
                self.local.set_rate_at(rate(speed, 1), now).expect("within the bounds");
            }
            Step::SetBurst(burst) => {
                self.remote.set_burst(burst).await.expect("within the bounds");
                self.local.set_burst_at(burst, now).expect("within the bounds");
            }
        }
    }

    async fn try_acquire(&self, n: u32) {
        let ours = self.local.try_acquire_many_at(n, self.local_now());
        let theirs = self.remote.try_acquire_many(n).await;
        let hint = theirs.as_ref().err().map(|error| error.retry_after().map(micros));
        assert_eq!(hint, ours.as_ref().err().map(|error| error.retry_after().map(nanos)));
        let exceeds =
            |error: &TryAcquireError| matches!(error, TryAcquireError::ExceedsBurst { .. });
        let theirs = theirs.as_ref().err().and_then(|error| error.refusal());
        assert_eq!(theirs.map(exceeds), ours.as_ref().err().map(exceeds));
    }

    fn take(&self, one: usize) -> Option<Booked<'a>> {
        let mut booked = self.booked.borrow_mut();
        let one = one.checked_rem(booked.len())?;
        Some(booked.swap_remove(one))
    }

    /// Checks that both have the same tokens, and that all turns come at the same time.
    async fn assert_same(&self) {
        let theirs = self.remote.tokens().await.expect("the server is up");
        let ours = self.local.tokens_at(self.local_now());
        assert!((theirs - ours).abs() < 1e-6, "{theirs} tokens there and {ours} here");
        for Booked { theirs, ours, retimed } in self.booked.borrow().iter() {
            let now = self.local_now();
            let ours = match ours.delay_from(now) {
                Duration::MAX => None,
                delay => Some(nanos(delay)),
            };
            let theirs = match theirs.due() {
                None => None,
                Some(due) => Some(micros(due).saturating_sub(self.now())),
            };
            if !retimed || ours != Some(0) {
                assert_eq!(theirs, ours);
            }
        }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).expect("within the time of the tests")
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).expect("within the time of the tests")
}

async fn compare(connection: MultiplexedConnection, name: String, scene: Scene) {
    let clock = Arc::new(AtomicU64::new(BEGINNING));
    let told = Arc::clone(&clock);
    let time = TimeSource::from_fn(move || Duration::from_micros(told.load(Ordering::SeqCst)));
    let first = scene.speeds[0];
    let remote = RedisLimiter::builder(connection, name, rate(first, 1_000))
        .burst(scene.burst)
        .timeout(Duration::from_secs(20))
        .max_rate(Rate::per_second(scene.fastest))
        .max_burst(1_000)
        .time(time)
        .build()
        .await
        .expect("the server is up");
    let local = Limiter::builder(rate(first, 1))
        .burst(scene.burst)
        .max_rate(Rate::per_second(scene.fastest * 1_000))
        .max_burst(1_000)
        .build()
        .expect("within its own bounds");
    let began = Instant::now();
    let pair = Pair { remote, local: &local, began, clock, booked: RefCell::default() };
    // A limit on a server has always been full when it is first used.
    pair.perform(Step::Wait(1), &scene.speeds).await;
    for step in scene.steps {
        pair.perform(step, &scene.speeds).await;
        pair.assert_same().await;
    }
}

#[test]
fn a_limit_on_a_server_answers_as_a_limiter_of_one_process() {
    let runtime = Runtime::new().expect("a runtime");
    let Some(server) = runtime.block_on(Server::start(Engine::Redis)) else { return };
    let connection = runtime.block_on(server.connection());
    let case = AtomicU64::new(0);
    let cases =
        std::env::var("PROPTEST_CASES").map_or(200, |cases| cases.parse().expect("a count"));
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(scene in scenes())| {
        let name = format!("case {}", case.fetch_add(1, Ordering::SeqCst));
        runtime.block_on(compare(connection.clone(), name, scene));
    });
}
