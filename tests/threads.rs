//! Real threads on one limiter, at explicit times: whatever they do at once, every token of the
//! line is granted once, or free once, and never both.
//!
//! The models in `loom-tests/` try every interleaving of a few steps, over a stand-in for the set
//! of holes. Here are many steps and the real set. Nothing sleeps, and nothing depends on how
//! fast the machine is or on how it schedules the threads.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use futures::future::poll_immediate;
use paceline::{Limiter, Rate, Reservation};
use tokio::runtime;
use tokio::time::Instant;

const THREADS: usize = 4;

const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3_600 * SECOND;
const DAY: u64 = 24 * HOUR;

/// A token each nanosecond: turns that differ are turns at different times.
const EACH_NANOSECOND: Rate = Rate::per_second(SECOND);
const TEN_BILLION: Rate = Rate::per_second(10_000_000_000);
const TRILLION: Rate = Rate::per_second(1_000_000_000_000);

// ---- What is minted ----------------------------------------------------------------------------

/// A step mints so little that what a refusal has left does not overflow, so in the end all that
/// was minted must have been granted.
#[test]
fn threads_are_granted_exactly_what_is_minted() {
    // The last two go round the 64 bits of a position every ten seconds or so.
    #[rustfmt::skip]
    let cases = [
        Demand { rate: Rate::per_second(1_000_000), burst: 100, step: 50_000, steps: 2_000, weights: [1, 1, 1, 1] },
        Demand { rate: Rate::per_second(7_777_777), burst: 1_000, step: 100_003, steps: 500, weights: [1, 2, 3, 5] },
        Demand { rate: Rate::per_second(3), burst: 10, step: SECOND + 1, steps: 10_000, weights: [1, 1, 2, 5] },
        Demand { rate: per(7, 13), burst: 100, step: 99, steps: 2_000, weights: [1, 2, 4, 8] },
        Demand { rate: Rate::per_day(1), burst: 4, step: DAY - 1, steps: 10_000, weights: [1, 1, 2, 3] },
        Demand { rate: TEN_BILLION, burst: 1_000_000_000, step: SECOND / 20, steps: 2_000, weights: [50_000_000, 77_777_777, 99_999_999, 1 << 27] },
        Demand { rate: TRILLION, burst: 4_000_000_000, step: SECOND / 500, steps: 20_000, weights: [1 << 28, 1 << 29, 777_777_777, 999_999_999] },
    ];
    for case in cases {
        let Demand { rate, burst, step, steps, weights } = case;
        let left = weights.into_iter().max().unwrap() - 1;
        assert!(minted(rate, step) + u64::from(left) < u64::from(burst), "it may overflow");

        let (limiter, start) = limiter(rate, burst);
        let granted = case.grants(&limiter, start);
        let end = start + nanos(step * steps);
        let swept = sweep(&limiter, end);
        let expected = u64::from(burst) + minted(rate, step * steps);
        assert_eq!(granted + swept, expected, "at {rate}");
        let tokens = limiter.tokens_at(end);
        assert!((0.0..1.0).contains(&tokens), "{tokens} are left at {rate}");
    }
}

/// A step mints a burst or more: then a burst and nothing else is there each time, for all of
/// them together. One of them lifts the end of the line over what has overflowed.
#[test]
fn a_bucket_that_overflowed_holds_one_burst_for_all_threads() {
    let weights = [1; THREADS];
    #[rustfmt::skip]
    let cases = [
        Demand { rate: Rate::per_second(1_000_000), burst: 20, step: SECOND, steps: 5_000, weights },
        Demand { rate: Rate::per_second(7_777_777), burst: 3, step: HOUR + 1, steps: 5_000, weights },
        Demand { rate: Rate::per_day(1), burst: 1, step: 2 * DAY, steps: 10_000, weights },
        // One lap of the line at a time, or many, which the threads must turn together.
        Demand { rate: TEN_BILLION, burst: 2, step: 2 * SECOND, steps: 10_000, weights },
        Demand { rate: TRILLION, burst: 1, step: 3 * SECOND, steps: 20_000, weights },
        Demand { rate: TRILLION, burst: 1, step: HOUR, steps: 100_000, weights },
    ];
    for case in cases {
        let Demand { rate, burst, step, steps, .. } = case;
        assert!(minted(rate, step) >= u64::from(burst), "something may be left");
        let (limiter, start) = limiter(rate, burst);
        let granted = case.grants(&limiter, start);
        assert_eq!(granted, u64::from(burst) * (steps + 1), "at {rate}");
    }
}

/// Threads that take what they can, while time goes on in steps.
struct Demand {
    rate: Rate,
    burst: u32,
    step: u64,
    steps: u64,
    /// What each thread asks for at once.
    weights: [u32; THREADS],
}

impl Demand {
    /// All that is granted by the end. Who is refused moves the time on.
    fn grants(&self, limiter: &Limiter, start: Instant) -> u64 {
        let (clock, end) = (AtomicU64::new(0), self.step * self.steps);
        total(at_once(self.weights, |weight| {
            let mut granted = 0;
            loop {
                let now = clock.load(Ordering::Relaxed);
                if limiter.try_acquire_many_at(weight, start + nanos(now)).is_ok() {
                    granted += u64::from(weight);
                } else if now == end {
                    return granted;
                } else {
                    // Loses to another thread that moved it on from here, and then goes there.
                    let (same, next) = (Ordering::Relaxed, now + self.step);
                    let _ = clock.compare_exchange(now, next, same, same);
                }
            }
        }))
    }
}

// ---- Holes -------------------------------------------------------------------------------------

/// Many hands in the set at once: each hole comes out of it once.
#[test]
fn threads_share_the_holes_among_them() {
    const ROUNDS: u64 = 60;
    const PAIRS: u32 = 300;
    for weights in [[1, 1, 1, 1], [1, 1, 2, 3]] {
        for seed in 0..ROUNDS {
            let (limiter, start) = limiter(Rate::ZERO, 4 * PAIRS);
            let (mut freed, mut kept) = (Vec::new(), Vec::new());
            for _ in 0..PAIRS {
                freed.push(limiter.reserve_many_at(2, start).unwrap());
                kept.push(limiter.reserve_many_at(2, start).unwrap());
            }
            Rng::with_seed(seed).shuffle(&mut freed);
            cancel(freed, start);

            let taken = total(at_once(weights, |weight| drain(&limiter, weight, start)));
            let taken = taken + sweep(&limiter, start);
            assert_eq!(taken, u64::from(2 * PAIRS), "weights {weights:?}, seed {seed}");
        }
    }
}

#[test]
fn bookings_of_many_threads_get_exactly_the_turns_that_were_given_back() {
    const ROUNDS: u64 = 60;
    const EACH: usize = 150;
    for seed in 0..ROUNDS {
        let (limiter, start) = limiter(EACH_NANOSECOND, 1);
        assert_eq!(sweep(&limiter, start), 1);
        let mut kept = book(&limiter, start, 3 * THREADS * EACH);
        // The last one stays, so that none of the others goes back to the end of the line.
        let last = kept.pop();
        Rng::with_seed(seed).shuffle(&mut kept);
        let freed = kept.split_off(kept.len() - THREADS * EACH);
        let free: BTreeSet<Instant> = freed.iter().map(turn).collect();
        cancel(freed, start);

        let booked = at_once([EACH; THREADS], |count| book(&limiter, start, count));
        let turns: BTreeSet<Instant> = booked.iter().flatten().map(turn).collect();
        assert_eq!(turns, free, "seed {seed}");
        drop(last);
    }
}

/// When all that was booked is cancelled, the bucket is as it was but for what was granted, and
/// the next turns are the first ones again.
#[test]
fn a_storm_of_bookings_and_cancels_neither_loses_nor_mints() {
    const ROUNDS: u64 = 60;
    const OPERATIONS: usize = 400;
    const BURST: u32 = 24;
    for seed in 0..ROUNDS {
        // In every other round all weigh one, and then no two turns may be the same.
        let heaviest = if seed % 2 == 0 { 1 } else { 5 };
        let (limiter, start) = limiter(EACH_NANOSECOND, BURST);
        let outcomes = at_once(0..THREADS as u64, |thread| {
            let mut rng = Rng::with_seed(seed << 8 | thread);
            let mut storm = Storm::default();
            for _ in 0..OPERATIONS {
                storm.step(&limiter, start, rng.u32(1..=heaviest), &mut rng);
            }
            storm
        });

        let granted: u32 = outcomes.iter().map(|storm| storm.granted).sum();
        let booked = outcomes.iter().flat_map(|storm| &storm.booked);
        let (usable, waiting): (Vec<_>, Vec<_>) = booked.partition(|one| turn(one) <= start);
        let usable: u32 = usable.iter().map(|one| one.permits()).sum();
        assert!(granted + usable <= BURST, "seed {seed}: {granted} and {usable} of {BURST}");
        let turns: BTreeSet<Instant> = waiting.iter().map(|one| turn(one)).collect();
        assert!(heaviest > 1 || turns.len() == waiting.len(), "seed {seed}: the same turn twice");

        at_once(outcomes, |storm| cancel(storm.booked, start));
        let free = BURST - granted;
        assert_tokens(&limiter, start, f64::from(free));
        assert_eq!(sweep(&limiter, start), u64::from(free), "seed {seed}");
        let next = book(&limiter, start, 50);
        let first = (1..=50).map(|nth| start + nanos(nth));
        assert!(next.iter().map(turn).eq(first), "seed {seed}: {next:?}");
    }
}

/// What one thread has done, and has not finished.
#[derive(Default)]
struct Storm<'a> {
    granted: u32,
    booked: Vec<Reservation<'a>>,
}

impl<'a> Storm<'a> {
    /// Books, cancels one of its bookings, or tries.
    fn step(&mut self, limiter: &'a Limiter, now: Instant, weight: u32, rng: &mut Rng) {
        match rng.u32(0..100) {
            0..48 => self.booked.push(limiter.reserve_many_at(weight, now).unwrap()),
            48..96 if !self.booked.is_empty() => {
                self.booked.swap_remove(rng.usize(..self.booked.len())).cancel_at(now);
            }
            96.. if limiter.try_acquire_many_at(weight, now).is_ok() => self.granted += weight,
            _ => {}
        }
    }

    /// Uses the bookings whose turn has come. Later, a cancel would give nothing back.
    fn use_up(&mut self, now: Instant) {
        let ready = |reservation: &Reservation<'_>| reservation.delay_from(now).is_zero();
        let used = self.booked.iter().filter(|booked| ready(booked));
        self.granted += used.map(Reservation::permits).sum::<u32>();
        self.booked.retain(|booked| !ready(booked));
    }
}

/// Time goes on, rates change, and bookings are kept from one instant to the next. What is used
/// by then, and what one thread alone finds left, is all that was minted.
#[test]
fn bookings_and_cancels_under_changing_rates_use_exactly_what_is_minted() {
    const ROUNDS: u64 = 200;
    const OPERATIONS: usize = 60;
    const BURST: u32 = 40;
    const STEP: u64 = SECOND / 1_000;
    /// A step mints a token less than a burst: one that was half minted before it survives.
    const FASTEST: u64 = 39_000;
    for (seed, heaviest) in [(1, 1), (2, 1), (3, 4), (4, 4)] {
        let (limiter, start) = limiter(Rate::per_second(FASTEST), BURST);
        let mut storms: Vec<Storm<'_>> = (0..THREADS).map(|_| Storm::default()).collect();
        let mut swept = 0;
        // A billion parts of a token each, so that nothing is rounded.
        let mut line = u64::from(BURST) * SECOND;
        let rate = AtomicU64::new(FASTEST);
        for round in 0..ROUNDS {
            let now = start + nanos(STEP * round);
            for storm in &mut storms {
                storm.use_up(now);
            }
            storms = at_once(storms.into_iter().zip(0_u64..), |(mut storm, thread)| {
                let mut rng = Rng::with_seed(seed << 32 | round << 8 | thread);
                for operation in 0..OPERATIONS {
                    // Positions stay, so at this instant a change takes and gives nothing.
                    if thread == 0 && operation % 8 == 0 {
                        let next = rng.u64(0..=FASTEST);
                        limiter.set_rate_at(Rate::per_second(next), now).unwrap();
                        rate.store(next, Ordering::Relaxed);
                    }
                    storm.step(&limiter, now, rng.u32(1..=heaviest), &mut rng);
                }
                storm
            });
            for storm in &mut storms {
                storm.use_up(now);
            }
            let last = round + 1 == ROUNDS;
            if last {
                cancel(storms.iter_mut().flat_map(|storm| std::mem::take(&mut storm.booked)), now);
            }
            swept += sweep(&limiter, now);
            let used = swept + storms.iter().map(|storm| u64::from(storm.granted)).sum::<u64>();
            let minted = line / SECOND;
            // Until the end, a booking of several tokens may hold some that are minted already.
            if heaviest == 1 || last {
                assert_eq!(used, minted, "seed {seed}, round {round}");
            } else {
                assert!(used <= minted, "seed {seed}, round {round}: {used} of {minted}");
            }
            line += rate.load(Ordering::Relaxed) * STEP;
        }
    }
}

// ---- Settings ----------------------------------------------------------------------------------

/// One thread sets rates and moves the time on when another one has been refused, so that nothing
/// overflows; one sets bursts; the others try. At each time the last rate that was set counts.
#[test]
fn settings_that_never_rest_mint_exactly_what_they_say() {
    const STEPS: u64 = 10_000;
    const STEP: u64 = SECOND / 1_000;
    const FASTEST: u64 = 40_000;
    /// Any of them holds what a step mints at most, and what a refusal leaves.
    const BURSTS: RangeInclusive<u32> = 43..=400;

    let (limiter, start) = limiter(Rate::per_second(FASTEST), *BURSTS.start());
    let (clock, refused_at) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
    let (granted, finished) = (AtomicU64::new(0), AtomicBool::new(false));
    // A billion parts of a token each, so that nothing is rounded.
    let line = AtomicU64::new(u64::from(*BURSTS.start()) * SECOND);
    let set_rates = || {
        let _finish = OnDrop(&finished);
        let mut rng = Rng::with_seed(1);
        for step in 0..STEPS {
            let now = clock.load(Ordering::Acquire);
            wait_until(|| refused_at.load(Ordering::Acquire) == now);
            let minted = line.load(Ordering::Relaxed) / SECOND;
            let granted = granted.load(Ordering::Relaxed);
            assert!(granted <= minted, "{granted} of {minted} in step {step}");
            let rates: [u64; 4] = std::array::from_fn(|_| rng.u64(0..=FASTEST) * rng.u64(0..2));
            for rate in rates {
                limiter.set_rate_at(Rate::per_second(rate), start + nanos(now)).unwrap();
            }
            line.fetch_add(rates[3] * STEP, Ordering::Relaxed);
            // A new rate that is taken with the old time would mint for as long as it stood still.
            let stood_still = rates[3] == 0;
            clock.store(now + if stood_still { HOUR } else { STEP }, Ordering::Release);
        }
    };
    let set_bursts = || {
        let mut rng = Rng::with_seed(2);
        while !finished.load(Ordering::Relaxed) {
            let now = clock.load(Ordering::Acquire);
            for _ in 0..50 {
                limiter.set_burst_at(rng.u32(BURSTS), start + nanos(now)).unwrap();
            }
            thread::yield_now();
        }
    };
    let take = |weight: u32| {
        let mut refusals = 0_u64;
        while !finished.load(Ordering::Relaxed) {
            let now = clock.load(Ordering::Acquire);
            if limiter.try_acquire_many_at(weight, start + nanos(now)).is_ok() {
                granted.fetch_add(u64::from(weight), Ordering::Relaxed);
                continue;
            }
            refused_at.store(now, Ordering::Release);
            // Goes on while settings change, and then lets the setters have the core.
            refusals += 1;
            if refusals % 200 == 0 {
                thread::yield_now();
            }
        }
    };
    let roles: [&(dyn Fn() + Sync); 4] = [&set_rates, &set_bursts, &|| take(1), &|| take(3)];
    at_once(roles, |act| act());
    let left = sweep(&limiter, start + nanos(clock.into_inner()));
    assert_eq!(granted.into_inner() + left, line.into_inner() / SECOND);
}

/// All threads set, book, cancel and try at times that are older or newer than the others'. The
/// largest rate and burst bound what is used.
#[test]
fn settings_in_any_order_of_times_grant_no_more_than_the_largest() {
    const ROUNDS: u64 = 12;
    const OPERATIONS: usize = 5_000;
    const FASTEST: u64 = 1_000_000;
    const LARGEST: u32 = 50;
    for seed in 0..ROUNDS {
        // In every other round what is set is nearly the largest, and the bound is tight.
        let (slowest, smallest) = if seed % 2 == 0 { (0, 0) } else { (FASTEST - 1, LARGEST) };
        let (limiter, start) = limiter(Rate::per_second(FASTEST), LARGEST);
        let clock = AtomicU64::new(0);
        let granted = total(at_once(0..THREADS as u64, |thread| {
            let mut rng = Rng::with_seed(seed << 8 | thread);
            let mut granted = 0;
            for _ in 0..OPERATIONS {
                let newest = clock.fetch_add(rng.u64(0..1_000), Ordering::Relaxed);
                let now = start + nanos(newest.saturating_sub(rng.u64(0..20_000)));
                let weight = rng.u32(1..4);
                match rng.u32(0..10) {
                    0 => {
                        let rate = Rate::per_second(rng.u64(slowest..=FASTEST));
                        limiter.set_rate_at(rate, now).unwrap();
                    }
                    1 => limiter.set_burst_at(rng.u32(smallest..=LARGEST), now).unwrap(),
                    2 => limiter.set_burst_at(LARGEST, now).unwrap(),
                    3 => {
                        // Refused where the burst has just become too small.
                        if let Ok(booked) = limiter.reserve_many_at(weight, now) {
                            booked.cancel_at(now);
                        }
                    }
                    _ if limiter.try_acquire_many_at(weight, now).is_ok() => {
                        granted += u64::from(weight);
                    }
                    _ => {}
                }
            }
            granted
        }));
        let end = clock.into_inner();
        let most = u64::from(LARGEST) + minted(Rate::per_second(FASTEST), end);
        assert!(granted <= most, "seed {seed}: {granted} of {most}");

        // It has come to no harm: an hour later it does what it is set to.
        let now = start + nanos(end + HOUR);
        limiter.set_burst_at(LARGEST, now).unwrap();
        limiter.set_rate_at(Rate::per_second(FASTEST), now).unwrap();
        let later = now + nanos(SECOND);
        assert_eq!(sweep(&limiter, later), u64::from(LARGEST), "seed {seed}");
        assert_eq!(sweep(&limiter, later + Duration::from_micros(7)), 7, "seed {seed}");
    }
}

// ---- Futures -----------------------------------------------------------------------------------

/// At a rate of zero, where no turn ever comes and the machine's clock plays no part.
#[test]
fn ten_thousand_acquires_that_are_dropped_leave_the_limiter_as_it_was() {
    const WAITING: usize = 10_000;
    const BURST: usize = 200;
    let runtime = runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build();
    let runtime = runtime.unwrap();
    let limiter = Arc::new(Limiter::new(Rate::ZERO, 200));
    let now = Instant::now();
    let held = book(&limiter, now, BURST);
    let waiting: Vec<_> =
        (0..WAITING).map(|_| runtime.spawn(Arc::clone(&limiter).acquire_owned())).collect();
    wait_until(|| is_about(limiter.tokens_at(now), -10_000.0));

    // Each thread drops its part of them. Halfway through it cancels some of what is held, and
    // passes by to fetch it, as do the others.
    let mut held = held.into_iter();
    let shares = waiting.chunks(WAITING / THREADS);
    let shares = shares.map(|mine| (mine, held.by_ref().take(BURST / THREADS).collect::<Vec<_>>()));
    let shares: Vec<_> = shares.collect();
    let granted = total(at_once(shares, |(mine, held)| {
        let (first, second) = mine.split_at(mine.len() / 2);
        first.iter().for_each(tokio::task::JoinHandle::abort);
        cancel(held, now);
        let granted = runtime.block_on(pass_by(&limiter, 2 * BURST));
        second.iter().for_each(tokio::task::JoinHandle::abort);
        granted
    }));
    for task in waiting {
        let outcome = runtime.block_on(task);
        assert!(outcome.is_err_and(|error| error.is_cancelled()), "one of them had a turn");
    }
    assert_eq!(granted, 200);
    assert_tokens(&limiter, now, 0.0);
    limiter.set_rate_at(Rate::per_second(1_000_000), now).unwrap();
    let next = limiter.reserve_many_at(1, now).unwrap();
    assert_eq!(next.delay_from(now), Duration::from_micros(1));
}

/// Polls so many acquires, once each. Says how many were granted.
async fn pass_by(limiter: &Limiter, count: usize) -> u64 {
    let mut granted = 0;
    for _ in 0..count {
        // Not counted by the budget of this task, which would have some of them do nothing.
        let polled = tokio::task::unconstrained(poll_immediate(limiter.acquire()));
        if let Some(outcome) = polled.await {
            assert_eq!(outcome, Ok(Duration::ZERO));
            granted += 1;
        }
    }
    granted
}

// ---- The threads, and what they do -------------------------------------------------------------

/// Does `work` for all of `items` at once, on a thread each.
fn at_once<T: Send, R: Send>(
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let items: Vec<T> = items.into_iter().collect();
    let to_come = AtomicUsize::new(items.len());
    let start_and_work = |item| {
        // All of them have come before any of them begins.
        to_come.fetch_sub(1, Ordering::Relaxed);
        wait_until(|| to_come.load(Ordering::Relaxed) == 0);
        work(item)
    };
    thread::scope(|scope| {
        let start_and_work = &start_and_work;
        let spawn = |item| scope.spawn(move || start_and_work(item));
        let threads: Vec<_> = items.into_iter().map(spawn).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn wait_until(condition: impl Fn() -> bool) {
    let mut looks = 0_u64;
    while !condition() {
        looks += 1;
        assert!(looks < 100_000_000, "it waits in vain");
        thread::yield_now();
    }
}

/// Sets the flag however the scope is left.
struct OnDrop<'a>(&'a AtomicBool);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A full limiter, and the beginning of its time.
fn limiter(rate: Rate, burst: u32) -> (Limiter, Instant) {
    // A clock that stands still is the same for both.
    let paused = runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    paused.unwrap().block_on(async { (build(rate, burst), Instant::now()) })
}

fn build(rate: Rate, burst: u32) -> Limiter {
    if rate != TRILLION {
        return Limiter::new(rate, burst);
    }
    // Set to the fastest that there is, with the clock at the beginning.
    let limiter = Limiter::builder(Rate::per_second(1)).max_rate(rate).burst(burst).build();
    let limiter = limiter.unwrap();
    limiter.set_rate(rate).unwrap();
    limiter
}

/// `tokens` in so many nanoseconds.
fn per(tokens: u64, period: u64) -> Rate {
    Rate::new(tokens, nanos(period)).unwrap()
}

/// The tokens that `rate` mints in so many nanoseconds, the last one whole.
fn minted(rate: Rate, elapsed: u64) -> u64 {
    let tokens = u128::from(rate.tokens()) * u128::from(elapsed) / rate.period().as_nanos();
    u64::try_from(tokens).unwrap()
}

/// Takes `weight` at a time until it is refused. Says how much it got.
fn drain(limiter: &Limiter, weight: u32, now: Instant) -> u64 {
    let mut granted = 0;
    while limiter.try_acquire_many_at(weight, now).is_ok() {
        granted += u64::from(weight);
    }
    granted
}

/// Takes all that is there. Says how much it was.
fn sweep(limiter: &Limiter, now: Instant) -> u64 {
    (0..u32::BITS).rev().map(|bit| drain(limiter, 1 << bit, now)).sum()
}

fn book(limiter: &Limiter, now: Instant, count: usize) -> Vec<Reservation<'_>> {
    (0..count).map(|_| limiter.reserve_many_at(1, now).unwrap()).collect()
}

fn cancel<'a>(reservations: impl IntoIterator<Item = Reservation<'a>>, now: Instant) {
    for reservation in reservations {
        reservation.cancel_at(now);
    }
}

fn turn(reservation: &Reservation<'_>) -> Instant {
    reservation.ready_at().unwrap()
}

#[track_caller]
fn assert_tokens(limiter: &Limiter, now: Instant, expected: f64) {
    let tokens = limiter.tokens_at(now);
    assert!(is_about(tokens, expected), "there are {tokens} tokens, not {expected}");
}

fn is_about(tokens: f64, expected: f64) -> bool {
    (tokens - expected).abs() < 1e-6
}

fn nanos(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}

fn total(parts: Vec<u64>) -> u64 {
    parts.into_iter().sum()
}
