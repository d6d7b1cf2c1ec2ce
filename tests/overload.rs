//! Callers who ask for several times the limit and give up when it takes too long, on paused time.
//!
//! That is what kills a limiter whose cancelled turns are lost: the line runs away from the clock
//! until nobody's turn comes in time any more. Here what is given up must be used by others, in
//! every second. Run with `--nocapture` to see the figures.

#![expect(clippy::unchecked_time_subtraction, reason = "a time that lies before is a failure")]

#[path = "overload/figures.rs"]
mod figures;
#[path = "overload/load.rs"]
mod load;
#[path = "overload/scene.rs"]
mod scene;

use fastrand::Rng;
use figures::{Spent, mean, mean_wait, most_beyond_the_rate, per_second};
use load::{Arrivals, Grid, Load, Request};
use paceline::{Limiter, Rate};
use scene::{Crowd, Limit, Stage, Use, billionths, on_paused_time};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

/// How late who waits may be without losing its turn, unless set.
const SLACK: Duration = Duration::from_millis(5);
const NANOSECOND: Duration = Duration::from_nanos(1);
const GRIDS: [Grid; 2] = [Grid::Milliseconds, Grid::Nanoseconds];
const PATIENCES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(1)];

// ---- In plain words --------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn tasks_that_wait_100_ms_get_the_rate_in_every_second() {
    tasks_that_time_out(Duration::from_millis(100)).await;
}

#[tokio::test(start_paused = true)]
async fn tasks_that_wait_a_second_get_the_rate_in_every_second() {
    tasks_that_time_out(Duration::from_secs(1)).await;
}

/// 400 tasks per second ask a limiter of 100/s, each for one permit. (Of Go's limiter 26 get one
/// in the first second when they wait for 100 ms, and nobody after that.)
async fn tasks_that_time_out(patience: Duration) {
    const SECONDS: usize = 8;
    let start = Instant::now();
    let limiter = Arc::new(Limiter::new(Rate::per_second(100), 10));
    let mut tasks = JoinSet::new();
    for index in 0..400 * u32::try_from(SECONDS).expect("a few") {
        sleep_until(start + Duration::from_micros(2500) * index).await;
        let limiter = Arc::clone(&limiter);
        tasks.spawn(async move {
            let acquired = timeout(patience, limiter.acquire()).await;
            acquired.is_ok_and(|acquired| acquired.is_ok()).then(|| start.elapsed())
        });
    }
    let mut used = [0; SECONDS];
    for went_on in tasks.join_all().await.into_iter().flatten() {
        let second = usize::try_from(went_on.as_secs()).expect("a few");
        used.get_mut(second).into_iter().for_each(|used| *used += 1);
    }
    println!("patience {patience:?}: {used:?}");
    assert!(used[1..].iter().all(|used| (99..=101).contains(used)), "{used:?}");
}

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
        seconds: 4 + 800 / rate,
        grid: *rng.choice(&GRIDS).expect("two"),
        seed,
    };
    play(Limit { rate, burst }, &load).mean() / f64::from(rate)
}

// ---- The end of it ---------------------------------------------------------------------------

/// When nobody gives up any more, the line is used without a gap from then on, in the order in
/// which turns were promised, and the bucket is full a burst later.
#[test]
fn when_the_load_stops_the_backlog_drains_at_the_rate() {
    for_each_backlog(&async |limit, load| drain(limit, load).await);
}

#[test]
fn tokens_are_what_is_minted_less_what_is_spent_and_the_holes() {
    for_each_backlog(&async |limit, load| {
        let stage = Stage::new(limit, load.grid);
        let mut crowd = Crowd::new(&stage);
        offer(load, &mut crowd).await;
        let with_holes = stage.tokens_at(crowd.now());
        let (filled, debt) = fill_the_holes(limit, &stage, &mut crowd).await;
        // From here on what was booked is all there is to it.
        let expected = f64::from(filled) - debt;
        assert!((with_holes - expected).abs() < 1e-6, "{with_holes}, not {expected}: {load:?}");
    });
}

fn for_each_backlog(check: &impl AsyncFn(Limit, &Load)) {
    let five = Limit { rate: 100, burst: 5 };
    for (limit, weights) in [(HUNDRED, vec![1]), (five, vec![1, 2, 3, 4])] {
        for longest in [100, 1298] {
            for grid in GRIDS {
                let load = Load {
                    arrivals: Arrivals::Poisson(400),
                    weights: weights.clone(),
                    patience: Duration::from_millis(100)..=Duration::from_millis(longest),
                    seconds: 4,
                    grid,
                    seed: 0,
                };
                on_paused_time(check(limit, &load));
            }
        }
    }
}

/// Those who gave up have left holes in the backlog. Newcomers who ask for one token each fill
/// the first of them, until the next turn is the one behind all that was ever handed out. Says
/// how many there were, and how many tokens are still to be minted then.
async fn fill_the_holes(limit: Limit, stage: &Stage, crowd: &mut Crowd<'_>) -> (u32, f64) {
    let now = crowd.now();
    for newcomers in 1..10_000 {
        crowd.enter(Request { at: now, tokens: 1, patience: Duration::from_secs(1) }).await;
        let debt = -stage.tokens_at(now);
        let refused = stage.limiter.try_acquire_many_at(1, stage.instant(now));
        let next = refused.expect_err("a backlog").retry_after();
        if next == Some(Duration::from_secs_f64((debt + 1.0) / f64::from(limit.rate))) {
            return (newcomers, debt);
        }
    }
    panic!("the holes are never filled");
}

async fn drain(limit: Limit, load: &Load) {
    let stage = Stage::new(limit, load.grid);
    let mut crowd = Crowd::new(&stage);
    offer(load, &mut crowd).await;
    stage.let_all_stay();
    let stop = crowd.now();
    let (_, debt) = fill_the_holes(limit, &stage, &mut crowd).await;

    let served_before = crowd.uses.len();
    crowd.wait_for_all().await;
    let mut backlog = crowd.uses.split_off(served_before);
    backlog.sort_by_key(|used| used.promised);
    let last = backlog.last().expect("there was a backlog");
    assert_eq!(last.promised - stop, Duration::from_secs_f64(debt / f64::from(limit.rate)));
    // A turn comes when the last token of a booking is minted; the others, which may lie up to a
    // burst before it, count with it here.
    let heaviest = load.weights.iter().max().copied().expect("there are weights");
    let lag = if heaviest == 1 { 0 } else { billionths(limit.burst) };
    let mut used_up = 0;
    for used in &backlog {
        goes_on_as_promised(used, load.grid);
        used_up += billionths(used.tokens);
        let ahead = used_up - limit.minted_in(used.promised - stop);
        assert!((-lag..billionths(heaviest)).contains(&ahead), "{ahead} with {used:?}");
    }
    crowd.uses.append(&mut backlog);
    it_is_full_when_it_should_be(limit, &stage, &mut crowd).await;
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

    fn print(&self, crowd: &Crowd<'_>, by_turn: i128, by_call: i128) {
        let Load { arrivals, weights, patience, grid, seed, .. } = &self.load;
        let uses = crowd.uses.iter().filter(|used| used.booked < self.load.end());
        let of_the_load: Vec<_> = uses.copied().collect();
        println!(
            "{}/s burst {}, {arrivals:?} for {} with {patience:?}, {grid:?}, seed {seed}: \
             {} per second, mean {:.2}; {} served after {:.1?}, {} gave up; \
             at most {} and the rate by turn, {} by call",
            self.limit.rate,
            self.limit.burst,
            from_to(weights),
            from_to(&self.per_second[1..]),
            self.mean(),
            of_the_load.len(),
            mean_wait(&of_the_load),
            crowd.gave_up,
            in_tokens(by_turn),
            in_tokens(by_call),
        );
    }
}

fn from_to(values: &[u32]) -> String {
    let [least, most] = [values.iter().min(), values.iter().max()].map(|value| value.unwrap_or(&0));
    format!("{least}..={most}")
}

fn in_tokens(billionths: i128) -> String {
    format!("{}.{:09}", billionths / 1_000_000_000, billionths % 1_000_000_000)
}

fn play(limit: Limit, load: &Load) -> Outcome {
    on_paused_time(async {
        let stage = Stage::new(limit, load.grid);
        let mut crowd = Crowd::new(&stage);
        offer(load, &mut crowd).await;
        // There are fewer free tokens than these ask for, so it is not one who need not wait that
        // uses the last of the line.
        for _ in 0..=limit.burst {
            let patience = Duration::from_secs(30);
            crowd.enter(Request { at: crowd.now(), tokens: 1, patience }).await;
        }
        crowd.wait_for_all().await;

        let per_second = per_second(&crowd.uses, load.seconds);
        let outcome = Outcome { limit, load: load.clone(), per_second };
        let (by_turn, by_call) = (by_turn(limit, &crowd.uses), by_call(limit, &crowd.uses));
        outcome.print(&crowd, by_turn, by_call);
        let (burst, in_slack) = (billionths(limit.burst), limit.minted_in(SLACK));
        assert!(by_turn <= burst, "{by_turn} > {burst}");
        assert!(by_call <= burst + in_slack, "{by_call} > {burst} + {in_slack}");
        crowd.uses.iter().for_each(|used| goes_on_as_promised(used, load.grid));
        it_is_full_when_it_should_be(limit, &stage, &mut crowd).await;
        outcome
    })
}

fn goes_on_as_promised(used: &Use, grid: Grid) {
    match grid {
        // What overflows in a nanosecond still counts in it, so a turn that was given back may be
        // had as much earlier.
        Grid::Milliseconds => assert!(
            used.promised <= used.went_on && used.went_on <= used.promised + NANOSECOND,
            "{used:?}"
        ),
        Grid::Nanoseconds => assert!(used.went_on <= used.latest(), "{used:?}"),
    }
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
#[expect(clippy::float_cmp, reason = "a full bucket is a whole number")]
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

/// The most used in a window beyond what was minted in it, by when the turns came.
fn by_turn(limit: Limit, uses: &[Use]) -> i128 {
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
fn by_call(limit: Limit, uses: &[Use]) -> i128 {
    let spent: Vec<_> = uses.iter().map(|used| Spent::at(used.went_on, used.tokens)).collect();
    most_beyond_the_rate(limit, &spent)
}

// ---- The measure itself ----------------------------------------------------------------------

#[test]
fn a_window_that_is_a_nanosecond_too_short_is_seen() {
    let beyond = |until: Duration| {
        let spent = [(Duration::ZERO, 10), (until, 1)].map(|(time, n)| Spent::at(time, n));
        most_beyond_the_rate(HUNDRED, &spent)
    };
    // With the nanosecond in which the first ten were used, that makes ten milliseconds.
    let shortest = Duration::from_millis(10) - NANOSECOND;
    assert_eq!(beyond(shortest), billionths(10));
    assert_eq!(beyond(shortest - NANOSECOND), billionths(10) + 100);
    assert_eq!(beyond(Duration::from_secs(1)), billionths(10) - 100);
}

#[test]
fn a_window_counts_what_cannot_have_been_used_outside() {
    let ms = Duration::from_millis;
    let spent = [Spent::at(ms(3), 10), Spent::between(ms(2), ms(4), 10)];
    assert_eq!(
        most_beyond_the_rate(HUNDRED, &spent),
        billionths(20) - HUNDRED.minted_in(ms(2)) - 100
    );
}
