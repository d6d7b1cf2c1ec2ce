//! Limits that adapt: where they settle, what moves them, and what is refused of their settings.

#[path = "adaptive/scenes.rs"]
mod scenes;

use paceline::adaptive::{
    AdaptiveConcurrency, AdaptiveError, AdaptiveRate, Aimd, Attempt, Gradient,
};
use paceline::{All, Rate};
use scenes::{BIN, Bin, PHASE, play};
use std::time::Duration;
use tokio::time::{Instant, advance};

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

// ---- Where they settle -------------------------------------------------------------------------

/// The bins of each phase from `after` its beginning on.
fn settled(bins: &[Bin], after: Duration) -> impl Iterator<Item = &[Bin]> {
    let bins_in = |time: Duration| usize::try_from(time.as_millis() / BIN.as_millis()).unwrap();
    assert_eq!(bins.len(), 3 * bins_in(PHASE));
    bins.chunks(bins_in(PHASE)).map(move |phase| &phase[bins_in(after)..])
}

fn mean(bins: &[Bin], of: impl Fn(&Bin) -> f64) -> f64 {
    let sum = bins.iter().map(of).sum::<f64>();
    sum / f64::from(u32::try_from(bins.len()).unwrap())
}

fn assert_serves_nearly_all(bins: &[Bin]) {
    let mean = mean(bins, Bin::served_per_second);
    let capacity = f64::from(bins[0].capacity);
    assert!((0.9..=1.1).contains(&(mean / capacity)), "{mean} of {capacity} a second: {bins:#?}");
}

fn assert_follows_what_is_served(bins: &[Bin]) {
    for phase in settled(bins, Duration::from_secs(4)) {
        assert_serves_nearly_all(phase);
        let mean = mean(phase, |bin| bin.limit);
        let capacity = f64::from(phase[0].capacity);
        assert!((0.9..=1.1).contains(&(mean / capacity)), "{mean} of {capacity}: {phase:#?}");
        let count = |of: fn(&Bin) -> u32| phase.iter().map(of).sum::<u32>();
        let (served, refused) = (count(|bin| bin.served), count(|bin| bin.refused));
        assert!(refused * 20 <= served + refused, "{refused} refused, {served} served: {phase:#?}");
    }
}

/// Far enough apart that no two crowds have a caller in common.
const SEEDS: [u64; 3] = [1000, 2000, 3000];

#[test]
fn a_rate_follows_what_the_service_takes() {
    for seed in SEEDS {
        assert_follows_what_is_served(&play(scenes::of_rate(false, seed)));
    }
}

#[test]
fn a_rate_follows_a_service_that_says_when_to_come_back() {
    for seed in SEEDS {
        assert_follows_what_is_served(&play(scenes::of_rate(true, seed)));
    }
}

#[test]
fn a_scene_is_the_same_each_time() {
    let again = || play(scenes::of_rate(true, SEEDS[0]));
    assert_eq!(again(), again());
}

fn assert_follows_the_workers(build: impl Fn() -> AdaptiveConcurrency, bound: Duration) {
    for seed in SEEDS {
        let bins = play(scenes::of_concurrency(build(), seed));
        for phase in settled(&bins, Duration::from_secs(4)) {
            assert_serves_nearly_all(phase);
            let slowest = phase.iter().map(|bin| bin.slowest).max().unwrap();
            assert!(slowest <= bound, "{slowest:?}: {phase:#?}");
        }
    }
}

#[test]
fn a_concurrency_keeps_the_latency_that_it_is_given() {
    let aimd = Aimd::new().latency(millis(300));
    let build = || AdaptiveConcurrency::builder(2).aimd(aimd.clone()).unwrap();
    assert_follows_the_workers(build, millis(400));
}

#[test]
fn a_concurrency_follows_the_gradient() {
    let build = || AdaptiveConcurrency::builder(2).max(40).gradient(Gradient::new()).unwrap();
    assert_follows_the_workers(build, millis(400));
}

// ---- What moves a concurrency limit -------------------------------------------------------------

fn aimd(initial: u32) -> AdaptiveConcurrency {
    AdaptiveConcurrency::builder(initial).min(2).max(20).aimd(Aimd::new()).unwrap()
}

fn attempts(limit: &AdaptiveConcurrency, count: usize) -> Vec<Attempt> {
    (0..count).map(|_| limit.try_acquire().unwrap()).collect()
}

#[tokio::test]
async fn calls_of_one_round_decrease_it_once() {
    let limit = aimd(16);
    let calls = attempts(&limit, 16);
    let late = calls.into_iter().map(Attempt::failed).count();
    assert_eq!((late, limit.limit()), (16, 12));
    // A call of the next round does again, and none below the least.
    limit.try_acquire().unwrap().failed();
    assert_eq!(limit.limit(), 9);
    for _ in 0..20 {
        limit.try_acquire().unwrap().failed();
    }
    assert_eq!(limit.limit(), 2);
}

#[tokio::test]
async fn successes_make_it_grow_while_it_is_in_use() {
    let limit = aimd(10);
    let idle = || limit.try_acquire().unwrap().succeeded();
    (0..100).for_each(|_| idle());
    assert_eq!(limit.limit(), 10, "one at a time needs no more");
    let held = attempts(&limit, 9);
    (0..10).for_each(|_| idle());
    assert_eq!(limit.limit(), 10);
    (0..1).for_each(|_| idle());
    assert_eq!(limit.limit(), 11);
    drop(held);
    // To the most and no further.
    let held = attempts(&limit, 10);
    (0..1000).for_each(|_| idle());
    assert_eq!(limit.limit(), 20);
    drop(held);
}

#[tokio::test]
async fn a_call_that_is_dropped_says_nothing_and_gives_its_place_back() {
    let limit = aimd(4);
    for _ in 0..100 {
        drop(attempts(&limit, 4));
    }
    assert_eq!((limit.limit(), limit.concurrency().available()), (4, 4));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_counts_as_failed() {
    let bound = Aimd::new().latency(millis(100)).decrease_to(50);
    let limit = AdaptiveConcurrency::builder(10).aimd(bound).unwrap();
    let call = limit.acquire().await.unwrap();
    advance(millis(100)).await;
    call.succeeded();
    assert_eq!(limit.limit(), 10);
    let call = limit.acquire().await.unwrap();
    advance(millis(101)).await;
    call.succeeded();
    assert_eq!(limit.limit(), 5);
    limit.acquire().await.unwrap().succeeded_after(millis(101));
    assert_eq!(limit.limit(), 2);
}

/// Reports `rounds` full rounds of calls that took so long, all of the limit in use.
fn rounds(limit: &AdaptiveConcurrency, rounds: u32, latency: Duration) {
    for _ in 0..rounds {
        let count = limit.limit().max(10);
        for _ in 0..count {
            let held = attempts(limit, limit.limit() as usize / 2);
            limit.try_acquire().unwrap().succeeded_after(latency);
            drop(held);
        }
    }
}

#[tokio::test]
async fn the_gradient_falls_with_latency_to_twice_the_queue_and_comes_back() {
    let limit = AdaptiveConcurrency::builder(40).max(100).gradient(Gradient::new()).unwrap();
    rounds(&limit, 3, millis(10));
    let before = limit.limit();
    assert!(before > 40, "it grows while nothing is slower: {before}");
    rounds(&limit, 50, millis(1000));
    assert!((8..=12).contains(&limit.limit()), "{}", limit.limit());
    rounds(&limit, 50, millis(10));
    assert!(limit.limit() > 40, "{}", limit.limit());
    limit.try_acquire().unwrap().failed();
    assert!(limit.limit() < 100);
}

#[tokio::test]
async fn the_gradient_forgets_a_slow_time_soon() {
    let limit = AdaptiveConcurrency::builder(10).max(100).gradient(Gradient::new()).unwrap();
    rounds(&limit, 1, millis(1000));
    // It falls by 5 % a round while it is above twice what calls take now: 90 rounds to a hundredth.
    rounds(&limit, 90, millis(10));
    rounds(&limit, 30, millis(100));
    assert!(limit.limit() < 20, "100 ms is slow again: {}", limit.limit());
}

#[tokio::test(start_paused = true)]
async fn who_waits_gets_in_when_it_grows() {
    let limit = aimd(2);
    let held = attempts(&limit, 2);
    let waiting = tokio::spawn({
        let limit = limit.clone();
        async move { limit.acquire().await.is_ok() }
    });
    tokio::task::yield_now().await;
    // Two successes with the places held elsewhere, and then the half that 2 + 1/2 lacks.
    (0..3).for_each(|_| limit.attempt().succeeded());
    assert_eq!(limit.limit(), 3);
    assert!(waiting.await.unwrap());
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn both_work_in_all() {
    let at_a_time = aimd(4);
    let rate = AdaptiveRate::builder(Rate::per_second(10)).build().unwrap();
    let all = All::new((rate.limiter(), at_a_time.concurrency()));
    let permits = all.acquire().await.unwrap();
    let (attempt, call) = (at_a_time.attempt(), rate.call());
    assert_eq!(at_a_time.concurrency().available(), 3);
    attempt.failed();
    call.overloaded(None);
    drop(permits);
    assert_eq!((at_a_time.limit(), rate.rate()), (3, Rate::per_second(9)));
    assert_eq!(at_a_time.concurrency().available(), 3);
}

#[test]
fn reports_of_many_threads_leave_no_place_behind() {
    let limit = aimd(10);
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let limit = limit.clone();
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                for _ in 0..20_000 {
                    let calls: Vec<_> = (0..4).map_while(|_| limit.try_acquire().ok()).collect();
                    for call in calls {
                        match random.u8(..10) {
                            0 => call.failed(),
                            1 => drop(call),
                            _ => call.succeeded_after(millis(1)),
                        }
                    }
                }
            });
        }
    });
    assert!((2..=20).contains(&limit.limit()));
    assert_eq!(limit.concurrency().available(), limit.limit());
}

// ---- What moves a rate --------------------------------------------------------------------------

fn rate(initial: u64) -> AdaptiveRate {
    AdaptiveRate::builder(Rate::per_second(initial)).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn it_falls_once_a_round_and_by_calls_that_began_after_the_last_time() {
    let rate = rate(100);
    let [first, second, third] = [(); 3].map(|()| rate.call());
    first.overloaded(None);
    second.overloaded(None);
    assert_eq!(rate.rate(), Rate::per_second(90));
    advance(millis(250)).await;
    third.overloaded(None);
    assert_eq!(rate.rate(), Rate::per_second(90), "it began before");
    rate.call().overloaded(None);
    assert_eq!(rate.rate(), Rate::per_second(81));
    advance(millis(249)).await;
    rate.call().overloaded(None);
    assert_eq!(rate.rate(), Rate::per_second(81), "the same round");
}

#[tokio::test(start_paused = true)]
async fn it_grows_once_a_calm_round_while_it_is_in_use() {
    let rate = rate(100);
    advance(millis(250)).await;
    let call = rate.call();
    call.succeeded();
    assert_eq!(rate.rate(), Rate::per_second(100), "its permit is there");
    let call = rate.acquire().await.unwrap();
    rate.call().succeeded();
    call.succeeded();
    assert_eq!(rate.rate(), Rate::from_per_second(100.5).unwrap());
    // A refusal begins the round anew.
    advance(millis(200)).await;
    let call = rate.acquire().await.unwrap();
    rate.call().overloaded(None);
    let fallen = rate.rate();
    advance(millis(200)).await;
    call.succeeded();
    rate.acquire().await.unwrap().succeeded();
    assert_eq!(rate.rate(), fallen);
    advance(millis(50)).await;
    rate.acquire().await.unwrap().succeeded();
    assert!(rate.rate().as_per_second() > fallen.as_per_second());
}

#[tokio::test(start_paused = true)]
async fn a_pause_is_for_all_who_wait_and_never_made_shorter() {
    let rate = rate(10);
    let start = Instant::now();
    let (late, early) = (rate.acquire().await.unwrap(), rate.call());
    let waiting = tokio::spawn({
        let rate = rate.clone();
        async move { rate.acquire().await.map(|call| (call, Instant::now())) }
    });
    tokio::task::yield_now().await;
    late.overloaded(Some(Duration::from_secs(3)));
    early.overloaded(Some(Duration::from_secs(1)));
    let (call, woken) = waiting.await.unwrap().unwrap();
    assert!((woken - start) >= Duration::from_secs(3), "{:?}", woken - start);
    call.overloaded(Some(Duration::MAX));
    rate.acquire().await.unwrap().succeeded();
    let waited = start.elapsed();
    assert!((603..605).contains(&waited.as_secs()), "no longer than the longest: {waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_says_nothing_of_the_rate() {
    let rate = rate(10);
    for _ in 0..100 {
        drop(rate.acquire().await.unwrap());
    }
    assert_eq!(rate.rate(), Rate::per_second(10));
    rate.limiter().close();
    assert!(rate.acquire().await.is_err() && rate.try_acquire().is_err());
}

// ---- What is refused ----------------------------------------------------------------------------

#[test]
fn settings_out_of_range_are_named() {
    let limits = |min, initial, max| {
        AdaptiveConcurrency::builder(initial).min(min).max(max).aimd(Aimd::new()).unwrap_err()
    };
    for (min, initial, max) in [(0, 1, 1), (2, 1, 3), (1, 4, 3), (1, 1, 1 << 20)] {
        assert_eq!(
            limits(min, initial, max),
            AdaptiveError::LimitsOutOfRange { min, initial, max }
        );
    }
    assert_eq!(
        limits(2, 1, 3).to_string(),
        "the limits 2 (least), 1 (first) and 3 (most) are not in this order from 1 to 1048575"
    );
    let aimd = |aimd| AdaptiveConcurrency::builder(1).aimd(aimd).unwrap_err().to_string();
    assert_eq!(aimd(Aimd::new().decrease_to(100)), "a decrease to 100 % is not one to 1 to 99 %");
    let zero = Aimd::new().latency(Duration::ZERO);
    assert_eq!(aimd(zero), "the latency of 0ns is not 1 ns to 584 years");
    let gradient = |gradient| AdaptiveConcurrency::builder(1).gradient(gradient).unwrap_err();
    let percent = 99;
    let low = AdaptiveError::ToleranceOutOfRange { percent };
    assert_eq!(gradient(Gradient::new().tolerance(percent)), low);
    assert_eq!(gradient(Gradient::new().queue(0)), AdaptiveError::QueueOutOfRange { queue: 0 });
}

#[tokio::test]
async fn rates_out_of_range_are_named() {
    let of = |rate| AdaptiveRate::builder(rate);
    let ten = Rate::per_second(10);
    let error = of(ten).min(Rate::per_second(11)).build().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the rates 11/s (least), 10/s (first) and 10/s (most) are not in this order from 1/1000s to \
         1000000000/s"
    );
    for rate in [Rate::ZERO, Rate::UNLIMITED, Rate::per_day(1)] {
        assert!(matches!(of(rate).build(), Err(AdaptiveError::RatesOutOfRange { .. })));
        assert!(matches!(of(ten).max(rate).build(), Err(AdaptiveError::RatesOutOfRange { .. })));
        let increase = of(ten).increase(rate).build().unwrap_err();
        assert_eq!(increase, AdaptiveError::IncreaseOutOfRange { increase: rate });
    }
    assert_eq!(of(ten).burst(0).build().unwrap_err(), AdaptiveError::ZeroBurst);
    let round = Duration::ZERO;
    assert_eq!(of(ten).round(round).build().unwrap_err(), AdaptiveError::RoundOutOfRange { round });
    // The widest that there is, and one that no whole number of thousandths is.
    let widest = of(ten).min(Rate::new(1, Duration::from_secs(1000)).unwrap());
    assert!(widest.max(Rate::per_second(1_000_000_000)).build().is_ok());
    let third = Rate::every(Duration::from_secs(3));
    assert!(of(third).max(third).build().is_ok());
}
