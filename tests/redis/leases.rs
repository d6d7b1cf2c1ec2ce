//! Leases: what a process has at hand is its own, is used in time, and goes back when nobody uses it.

use crate::support::{Engine, PATIENCE, Server, eventually, uses};
use futures::FutureExt;
use paceline::redis::{Error, Lease, RedisLimiter, TimeSource};
use paceline::{AcquireError, BuildError, Rate};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use uses::{ServerClock, Use};

/// So slow that nothing is minted in a test.
const SLOW: Rate = Rate::per_hour(1);

async fn limiter(server: &Server, rate: Rate, burst: u32, lease: Option<Lease>) -> RedisLimiter {
    let builder = RedisLimiter::builder(server.connection().await, "test", rate).burst(burst);
    let builder = match lease {
        Some(lease) => builder.lease(lease),
        None => builder,
    };
    builder.build().await.unwrap()
}

/// How many scripts the server has run.
async fn scripts(server: &Server) -> u32 {
    let stats = server.info("commandstats").await;
    let lines = stats.lines().filter(|line| line.starts_with("cmdstat_eval"));
    let calls = lines
        .filter_map(|line| line.split("calls=").nth(1)?.split(',').next()?.parse::<u32>().ok());
    calls.sum()
}

#[tokio::test]
async fn many_permits_come_from_few_round_trips() {
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let limiter = limiter(&server, SLOW, 10_000, Some(Lease::new())).await;
    let before = scripts(&server).await;
    for _ in 0..2_000 {
        limiter.acquire().await.unwrap();
    }
    for _ in 0..2_000 {
        limiter.try_acquire().await.unwrap();
    }
    let round_trips = scripts(&server).await - before;
    assert!(round_trips <= 400, "{round_trips} round trips for 4000 permits");
}

#[tokio::test]
async fn exactly_the_burst_is_served_by_several_who_lease() {
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let mut granted = 0;
    let one = limiter(&server, SLOW, 1_000, Some(Lease::new())).await;
    let other = limiter(&server, SLOW, 1_000, Some(Lease::new())).await;
    loop {
        let before = granted;
        granted += u32::from(one.try_acquire().await.is_ok());
        granted += u32::from(other.try_acquire().await.is_ok());
        if granted == before {
            break;
        }
    }
    assert_eq!(granted, 1_000);
}

#[tokio::test]
async fn what_nobody_uses_is_given_back() {
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let leased = limiter(&server, SLOW, 1_000, Some(Lease::new())).await;
    let strict = limiter(&server, SLOW, 1_000, None).await;
    for _ in 0..100 {
        leased.acquire().await.unwrap();
    }
    assert!(strict.tokens().await.unwrap() < 900.0, "something is at hand");
    eventually("the rest is back", || async { strict.tokens().await.unwrap() >= 900.0 }).await;
    assert!(strict.tokens().await.unwrap() < 901.0);
    // And it goes on.
    for _ in 0..100 {
        leased.acquire().await.unwrap();
    }
    drop(leased);
    eventually("the rest is back", || async { strict.tokens().await.unwrap() >= 800.0 }).await;
    assert!(strict.tokens().await.unwrap() < 801.0);
}

#[tokio::test]
async fn those_who_wait_are_served_in_their_order_and_a_dropped_one_leaves_its_turn_to_the_next() {
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let leased = limiter(&server, Rate::per_second(50), 20, Some(Lease::new())).await;
    let strict = limiter(&server, Rate::per_second(50), 20, None).await;
    strict.try_acquire_many(20).await.unwrap();
    let (granted, mut order) = tokio::sync::mpsc::unbounded_channel();
    let mut tasks = Vec::new();
    for number in 0..10 {
        let (leased, granted) = (leased.clone(), granted.clone());
        tasks.push(tokio::spawn(async move {
            leased.acquire().await.unwrap();
            granted.send(number).unwrap();
        }));
        // They come one after the other.
        tokio::task::yield_now().await;
    }
    tasks[3].abort();
    drop(granted);
    let mut numbers = Vec::new();
    while let Some(number) = timeout(PATIENCE, order.recv()).await.unwrap() {
        numbers.push(number);
    }
    assert_eq!(numbers, [0, 1, 2, 4, 5, 6, 7, 8, 9]);
}

#[tokio::test]
async fn who_comes_later_does_not_overtake_one_who_waits() {
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let leased = limiter(&server, Rate::per_second(50), 20, Some(Lease::new())).await;
    let strict = limiter(&server, Rate::per_second(50), 20, None).await;
    strict.try_acquire_many(20).await.unwrap();
    let waiting = tokio::spawn({
        let leased = leased.clone();
        async move { leased.acquire().await }
    });
    eventually("it has booked", || async { strict.tokens().await.unwrap() < 0.0 }).await;
    // Its turn comes, and it can't be polled, since this task keeps the only thread.
    let turn_has_come = Instant::now() + Duration::from_millis(100);
    while Instant::now() < turn_has_come {
        assert_eq!(leased.acquire().into_future().now_or_never(), None);
    }
    timeout(PATIENCE, waiting).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn what_was_booked_for_one_who_went_away_is_given_back() {
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let leased = limiter(&server, SLOW, 1_000, Some(Lease::new())).await;
    let strict = limiter(&server, SLOW, 1_000, None).await;
    strict.try_acquire_many(100).await.unwrap();
    let mut acquire = leased.acquire_many(10).into_future();
    assert_eq!((&mut acquire).now_or_never(), None);
    eventually("it has booked", || async { strict.tokens().await.unwrap() < 899.0 }).await;
    // It may have been told by now, and has not been polled.
    drop(acquire);
    eventually("all is back", || async { strict.tokens().await.unwrap() >= 900.0 }).await;
}

/// What was leased of a full bucket overflows while it is at hand, and others use what is minted instead.
#[tokio::test]
async fn what_has_overflowed_at_hand_is_not_used() {
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let clock = ServerClock::read(&server.client()).await;
    let lease = Lease::new().period(PATIENCE);
    let leased = limiter(&server, Rate::per_second(1_000), 400, Some(lease)).await;
    let strict = limiter(&server, Rate::per_second(1_000), 400, None).await;
    for _ in 0..50 {
        leased.acquire().await.unwrap();
    }
    sleep(Duration::from_millis(600)).await;
    let asked = Instant::now();
    strict.try_acquire_many(400).await.unwrap();
    let burst = clock.used(asked, Instant::now());
    let mut uses: Vec<Use> = (0..400).map(|_| burst).collect();
    for _ in 0..100 {
        let asked = Instant::now();
        if leased.try_acquire().await.is_ok() {
            uses.push(clock.used(asked, Instant::now()));
        }
    }
    let excess = uses::excess(&uses, 1_000, 400);
    assert!(excess <= 0.0, "{excess} too many");
}

#[tokio::test]
async fn nothing_is_lost_by_those_who_give_up() {
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let leased = limiter(&server, SLOW, 1_000, Some(Lease::new())).await;
    let strict = limiter(&server, SLOW, 1_000, None).await;
    // Of a full bucket something overflows.
    strict.try_acquire_many(100).await.unwrap();
    let mut used = 0;
    for round in 0..40_u64 {
        let mut tasks = JoinSet::new();
        for task in 0..20 {
            let leased = leased.clone();
            // Some give up before the answer is there, some at about that time.
            let patience = Duration::from_micros((round * 20 + task) * 7 % 800);
            tasks.spawn(async move {
                let permits = u32::try_from(task % 3).unwrap();
                timeout(patience, leased.acquire_many(permits).into_future())
                    .await
                    .map_or(0, |acquired| acquired.map_or(0, |_| permits))
            });
        }
        used += tasks.join_all().await.into_iter().sum::<u32>();
    }
    assert!(used > 0);
    drop(leased);
    let left = f64::from(900 - used);
    eventually("the rest is back", || async { strict.tokens().await.unwrap() >= left }).await;
    assert!(strict.tokens().await.unwrap() < left + 1.0);
}

#[tokio::test]
async fn requests_beyond_a_lease_are_made_on_the_server() {
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let limiter = limiter(&server, SLOW, 100, Some(Lease::new().most(10))).await;
    limiter.acquire_many(90).await.unwrap();
    limiter.try_acquire_many(10).await.unwrap();
    let refused = limiter.try_acquire_many(101).await.unwrap_err();
    assert!(matches!(refused, Error::Refused(paceline::TryAcquireError::ExceedsBurst { .. })));
}

#[tokio::test]
async fn a_deadline_that_can_not_be_met_takes_nothing() {
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let leased = limiter(&server, SLOW, 100, Some(Lease::new())).await;
    let strict = limiter(&server, SLOW, 100, None).await;
    strict.try_acquire_many(100).await.unwrap();
    let refused = leased.acquire().within(Duration::from_millis(20)).await.unwrap_err();
    assert!(
        matches!(refused, Error::Refused(AcquireError::WouldExceedDeadline { .. })),
        "{refused:?}"
    );
    // What was booked ahead for it goes back.
    eventually("all is back", || async { strict.tokens().await.unwrap() > -0.5 }).await;
}

#[tokio::test]
async fn a_rate_that_is_set_holds_for_what_is_at_hand() {
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let leased = limiter(&server, SLOW, 100, Some(Lease::new())).await;
    let strict = limiter(&server, SLOW, 100, None).await;
    strict.try_acquire_many(100).await.unwrap();
    let waiting = tokio::spawn({
        let leased = leased.clone();
        async move { leased.acquire().await }
    });
    eventually("it has booked", || async { strict.tokens().await.unwrap() < -0.5 }).await;
    // In this process.
    leased.set_rate(Rate::per_second(100)).await.unwrap();
    timeout(PATIENCE, waiting).await.unwrap().unwrap().unwrap();
    drop(leased);
    // And in another.
    let leased = limiter(&server, SLOW, 100, Some(Lease::new())).await;
    strict.set_rate(SLOW).await.unwrap();
    while strict.try_acquire().await.is_ok() {}
    let waiting = tokio::spawn(async move { leased.acquire().await });
    eventually("it has booked", || async { strict.tokens().await.unwrap() < 0.0 }).await;
    strict.set_rate(Rate::per_second(100)).await.unwrap();
    timeout(PATIENCE, waiting).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn leases_are_by_the_servers_time() {
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let builder = RedisLimiter::builder(server.connection().await, "test", SLOW)
        .time(TimeSource::client())
        .lease(Lease::new());
    assert_eq!(
        builder.build().await.unwrap_err(),
        Error::Refused(BuildError::LeaseNeedsServerTime)
    );
}

#[tokio::test]
async fn no_window_has_too_many_uses_of_several_who_lease() {
    for engine in Engine::ALL {
        let Some(server) = Server::start(engine).await else { continue };
        let clock = ServerClock::read(&server.client()).await;
        let end = Instant::now() + Duration::from_secs(2);
        let mut tasks = JoinSet::new();
        for limiter_number in 0..3 {
            let lease = Lease::new().period(Duration::from_millis(20 * limiter_number + 5));
            let limiter = limiter(&server, Rate::per_second(2_000), 100, Some(lease)).await;
            for task in 0..8_u64 {
                let limiter = limiter.clone();
                tasks.spawn(async move {
                    let mut uses: Vec<Use> = Vec::new();
                    while Instant::now() < end {
                        if task % 4 == 3 {
                            // Some give up, and some pause.
                            let _ = timeout(Duration::from_millis(3), limiter.acquire()).await;
                            sleep(Duration::from_millis(10 * limiter_number)).await;
                            continue;
                        }
                        let permits = u32::try_from(task % 3 + 1).unwrap();
                        let asked = Instant::now();
                        limiter.acquire_many(permits).await.unwrap();
                        let at = clock.used(asked, Instant::now());
                        uses.extend((0..permits).map(|_| at));
                    }
                    uses
                });
            }
        }
        let uses = tasks.join_all().await.concat();
        assert!(uses.len() > 1_000, "{} uses", uses.len());
        let excess = uses::excess(&uses, 2_000, 100);
        assert!(excess <= 0.0, "{excess} too many");
    }
}
