//! Callers who ask for several times the limit and give up when it takes too long, on paused time.
//!
//! That is what kills a limiter whose cancelled turns are lost: the line runs away from the clock
//! until nobody's turn comes in time any more. Here what is given up must be used by others, in
//! every second. Run with `--nocapture` to see the figures.

#[path = "overload/figures.rs"]
mod figures;
#[path = "overload/load.rs"]
mod load;
#[path = "overload/scene.rs"]
mod scene;

use fastrand::Rng;
use figures::{Spent, mean, mean_wait, most_beyond_the_rate, per_second};
use load::{Arrivals, Grid, Load, Request};
use scene::{Crowd, Limit, Stage, Use, on_paused_time};
use std::ops::RangeInclusive;
use std::thread;
use std::time::Duration;

/// How late who waits may be without losing its turn, unless set.
const SLACK: Duration = Duration::from_millis(5);
const NANOSECOND: Duration = Duration::from_nanos(1);
const GRIDS: [Grid; 2] = [Grid::Milliseconds, Grid::Nanoseconds];
const PATIENCES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(1)];

// ---- The table -------------------------------------------------------------------------------

const HUNDRED: Limit = Limit { rate: 100, burst: 10 };

#[test]
fn an_even_load_of_unit_requests_gets_the_rate_in_every_second() {
    for per_second in [110, 150, 200, 400] {
        for_each_patience_and_grid(|patience, grid| {
            let load = Load {
                arrivals: Arrivals::Even(per_second),
                weights: vec![1],
                patience,
                seconds: 10,
                grid,
                seed: 0,
            };
            every_second_within(&play(HUNDRED, &load), 99..=101);
        });
    }
}

#[test]
fn a_poisson_load_of_unit_requests_gets_the_rate() {
    for per_second in [150, 200, 400] {
        poisson(per_second, &[1], 99.5);
    }
}

#[test]
fn a_poisson_load_of_requests_for_1_2_and_5_gets_the_rate() {
    poisson(400, &[1, 2, 5], 99.0);
}

#[test]
fn a_poisson_load_of_requests_for_1_and_10_gets_the_rate() {
    poisson(400, &[1, 10], 98.5);
}

#[test]
fn a_poisson_load_of_requests_for_3_and_7_gets_the_rate() {
    poisson(400, &[3, 7], 98.5);
}

#[test]
fn twenty_thousand_requests_per_second_get_the_rate_in_every_second() {
    crush(20_000);
}

#[test]
fn fifty_thousand_requests_per_second_get_the_rate_in_every_second() {
    crush(50_000);
}

/// 1000/s, and twenty times that and more.
fn crush(per_second: u32) {
    let limit = Limit { rate: 1000, burst: 10 };
    for grid in GRIDS {
        let patience = PATIENCES[1]..=PATIENCES[1];
        let arrivals = Arrivals::Even(per_second);
        let load = Load { arrivals, weights: vec![1], patience, seconds: 5, grid, seed: 0 };
        every_second_within(&play(limit, &load), 990..=1010);
    }
}

fn poisson(per_second: u32, weights: &[u32], at_least: f64) {
    for seed in 0..3 {
        for_each_patience_and_grid(|patience, grid| {
            let load = Load {
                arrivals: Arrivals::Poisson(per_second),
                weights: weights.to_vec(),
                patience,
                seconds: 20,
                grid,
                seed,
            };
            let outcome = play(HUNDRED, &load);
            assert!(outcome.mean() >= at_least, "{outcome:?}");
        });
    }
}

fn for_each_patience_and_grid(mut row: impl FnMut(RangeInclusive<Duration>, Grid)) {
    for patience in PATIENCES {
        for grid in GRIDS {
            row(patience..=patience, grid);
        }
    }
}

#[track_caller]
fn every_second_within(outcome: &Outcome, tokens: RangeInclusive<u32>) {
    assert!(outcome.per_second[1..].iter().all(|sum| tokens.contains(sum)), "{outcome:?}");
}

#[test]
fn random_patience_and_weights_get_the_rate() {
    let limit = Limit { rate: 100, burst: 5 };
    for seed in 0..6 {
        for grid in GRIDS {
            let load = Load {
                arrivals: Arrivals::Even(400),
                weights: vec![1, 2, 3, 4],
                patience: Duration::from_millis(173)..=Duration::from_millis(1298),
                seconds: 20,
                grid,
                seed,
            };
            let outcome = play(limit, &load);
            assert!(outcome.mean() >= 98.5, "{outcome:?}");
            assert!(outcome.per_second[1..].iter().all(|sum| *sum >= 95), "{outcome:?}");
        }
    }
}

#[test]
fn of_sixty_random_overloads_fifty_seven_get_95_percent_of_the_rate() {
    let play_some = |remainder| {
        let seeds = (0..60).filter(move |seed| seed % 2 == remainder);
        move || -> Vec<f64> { seeds.map(play_random).collect() }
    };
    let shares = thread::scope(|scope| {
        let threads = [0, 1].map(|remainder| scope.spawn(play_some(remainder)));
        threads.map(|thread| thread.join().expect("every overload keeps the rules")).concat()
    });
    let reached = shares.iter().filter(|share| **share >= 0.95).count();
    println!("{reached} of {} reach 95 % of the rate", shares.len());
    assert!(shares.len() == 60 && reached >= 57, "{shares:?}");
}

/// The share of the rate that is used.
fn play_random(seed: u64) -> f64 {
    let mut rng = Rng::with_seed(seed);
    let rate = *rng.choice(&[50, 100, 500]).expect("three");
    let burst = *rng.choice(&[5, 10, 30, 100]).expect("four");
    let per_second = rng.u32(2 * rate..=20 * rate);
    let process = *rng.choice(&[Arrivals::Even, Arrivals::Poisson]).expect("two");
    let ends = [(); 2].map(|()| Duration::from_millis(rng.u64(1..=1500)));
    let load = Load {
        arrivals: process(per_second),
        weights: (1..=rng.u32(1..=burst)).collect(),
        patience: ends[0].min(ends[1])..=ends[0].max(ends[1]),
        seconds: 3 + 500 / rate,
        grid: *rng.choice(&GRIDS).expect("two"),
        seed,
    };
    play(Limit { rate, burst }, &load).mean() / f64::from(rate)
}

// ---- What holds in all of them ---------------------------------------------------------------

#[derive(Debug)]
struct Outcome {
    limit: Limit,
    load: Load,
    /// Tokens used, in each second of the load.
    per_second: Vec<u32>,
}

impl Outcome {
    /// Tokens used per second, from the second one on.
    fn mean(&self) -> f64 {
        mean(&self.per_second[1..])
    }
}

fn play(limit: Limit, load: &Load) -> Outcome {
    let (uses, gave_up) = on_paused_time(async {
        let stage = Stage::new(limit, load.grid);
        let mut crowd = Crowd::new(&stage);
        offer(load, &mut crowd).await;
        // There are fewer free tokens than these ask for, so it is not one who need not wait that
        // uses the last of the line.
        for _ in 0..=limit.burst {
            let patience = Duration::from_secs(3600);
            crowd.enter(Request { at: crowd.now(), tokens: 1, patience }).await;
        }
        crowd.wait_for_all().await;
        it_is_full_when_it_should_be(limit, &stage, &mut crowd).await;
        (crowd.uses, crowd.gave_up)
    });
    let per_second = per_second(&uses, load.seconds);
    let (by_turn, by_call) = (beyond_by_turn(limit, &uses), beyond_by_call(limit, &uses));
    let outcome = Outcome { limit, load: load.clone(), per_second };
    print(&outcome, &uses, gave_up, by_turn, by_call);

    for used in &uses {
        assert!(used.went_on <= used.latest(), "{used:?}");
    }
    let burst = i128::from(limit.burst) * 1_000_000_000;
    let in_slack = i128::from(limit.rate) * i128::try_from(SLACK.as_nanos()).expect("short");
    assert!(by_turn <= burst, "{by_turn} > {burst}");
    assert!(by_call <= burst + in_slack, "{by_call} > {burst} + {in_slack}");
    outcome
}

async fn offer(load: &Load, crowd: &mut Crowd<'_>) {
    for request in load.requests() {
        crowd.wait_until(request.at).await;
        crowd.enter(request).await;
    }
    crowd.wait_until(load.end()).await;
}

/// With nobody left, the bucket is full as soon as a burst is minted beyond the last permit that
/// was used: not a nanosecond earlier, and never fuller.
async fn it_is_full_when_it_should_be(limit: Limit, stage: &Stage, crowd: &mut Crowd<'_>) {
    let last = crowd.uses.iter().max_by_key(|used| used.promised).expect("somebody was served");
    assert!(last.promised > last.booked, "the last one did not wait: {last:?}");
    let full = last.promised + limit.minting(limit.burst);
    let burst = f64::from(limit.burst);

    // Else those who gave up last had booked what would have made it full.
    if crowd.now() < full {
        let just_before = full - NANOSECOND;
        assert!(stage.tokens_at(just_before) < burst);
        let refused = stage.limiter.try_acquire_many_at(limit.burst, stage.instant(just_before));
        assert_eq!(refused.expect_err("not yet").retry_after(), Some(NANOSECOND));
        crowd.wait_until(full).await;
    }
    assert_eq!(stage.tokens_at(crowd.now()), burst);

    crowd.wait_until(crowd.now() + Duration::from_secs(1)).await;
    assert_eq!(stage.limiter.tokens(), burst);
    assert_eq!(stage.limiter.acquire_many(limit.burst).await, Ok(Duration::ZERO));
    let refused = stage.limiter.try_acquire().expect_err("all are gone");
    assert_eq!(refused.retry_after(), Some(limit.minting(1)));
}

/// The most used in a window beyond the rate, by when the turns came.
fn beyond_by_turn(limit: Limit, uses: &[Use]) -> i128 {
    let spent: Vec<_> = uses
        .iter()
        .map(|used| {
            if used.promised <= used.went_on {
                Spent::at(used.promised, used.tokens)
            } else {
                // Slack has let it have what a reservation is not given.
                Spent::between(used.went_on.saturating_sub(SLACK), used.went_on, used.tokens)
            }
        })
        .collect();
    most_beyond_the_rate(limit, &spent)
}

/// The same by when callers went on.
fn beyond_by_call(limit: Limit, uses: &[Use]) -> i128 {
    let spent: Vec<_> = uses.iter().map(|used| Spent::at(used.went_on, used.tokens)).collect();
    most_beyond_the_rate(limit, &spent)
}

fn print(outcome: &Outcome, uses: &[Use], gave_up: u32, by_turn: i128, by_call: i128) {
    let Outcome { limit, load, per_second } = outcome;
    let from_second = &per_second[1..];
    println!(
        "{:>4}/s burst {:<3} | {:?} {} ms..{} ms, up to {} each, {:?}, seed {} | served {}, gave up {gave_up} | \
         per second {}..{}, mean {:.2} | mean wait {:.1?} | beyond the rate {:.4} by turn, {:.4} by call, {} early",
        limit.rate,
        limit.burst,
        load.arrivals,
        load.patience.start().as_millis(),
        load.patience.end().as_millis(),
        load.weights.iter().max().unwrap(),
        load.grid,
        load.seed,
        uses.len(),
        from_second.iter().min().unwrap(),
        from_second.iter().max().unwrap(),
        outcome.mean(),
        mean_wait(uses),
        by_turn as f64 / 1e9,
        by_call as f64 / 1e9,
        uses.iter().filter(|used| used.went_on < used.promised).count(),
    );
}
