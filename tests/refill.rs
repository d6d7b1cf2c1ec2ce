//! `Builder::refill`: permits that come evenly, or all of a period at its end.

#![expect(clippy::float_cmp, reason = "a whole number of tokens is exact in an f64")]

mod common;

use common::{SECOND, at, frozen};
use paceline::{AcquireError, BuildError, Limiter, Rate, Refill};
use proptest::prelude::*;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::time::{Instant, advance};

const PERIOD: Duration = Duration::from_secs(1);
const NANO: Duration = Duration::from_nanos(1);

fn per(tokens: u64, period: Duration) -> Rate {
    Rate::new(tokens, period).unwrap()
}

fn limiter(rate: Rate, burst: u32, refill: Refill) -> Limiter {
    Limiter::builder(rate).burst(burst).refill(refill).build().unwrap()
}

/// How many can be had one by one at `now`, up to 1000.
fn drain(limiter: &Limiter, now: Instant) -> u32 {
    (0..1_000).find(|_| limiter.try_acquire_many_at(1, now).is_err()).unwrap_or(1_000)
}

#[track_caller]
fn retry_after(limiter: &Limiter, n: u32, now: Instant) -> Option<Duration> {
    limiter.try_acquire_many_at(n, now).unwrap_err().retry_after()
}

fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

// ---- In steps ----------------------------------------------------------------------------------

#[test]
fn all_of_a_period_come_at_its_end_and_none_before() {
    frozen(|base| {
        let limiter = limiter(per(5, PERIOD), 8, Refill::Interval);
        assert_eq!(drain(&limiter, base), 8);
        for period in 1..5 {
            let end = base + PERIOD * period;
            assert_eq!(drain(&limiter, end - NANO), 0);
            assert_eq!(limiter.tokens_at(end - NANO), 0.0);
            assert_eq!(limiter.tokens_at(end), 5.0);
            assert_eq!(drain(&limiter, end), 5);
        }
        assert_eq!(drain(&limiter, base + PERIOD * 60), 8);
    });
}

/// There is nothing to wait for, but it comes after its own deadline.
#[tokio::test(start_paused = true)]
async fn one_whose_deadline_has_passed_is_refused_in_the_middle_of_a_period() {
    let limiter = limiter(per(5, PERIOD), 5, Refill::Interval);
    advance(PERIOD / 3).await;
    assert_eq!(
        limiter.acquire().before(Instant::now() - NANO).await,
        Err(AcquireError::WouldExceedDeadline {
            requested: 1,
            wait: Some(Duration::ZERO),
            limit: Duration::ZERO,
        })
    );
}

#[test]
fn evenly_they_come_one_by_one() {
    frozen(|base| {
        for even in [limiter(per(5, PERIOD), 8, Refill::Even), Limiter::new(per(5, PERIOD), 8)] {
            assert_eq!(drain(&even, base), 8);
            assert_eq!(drain(&even, base + PERIOD / 5 - NANO), 0);
            assert_eq!(drain(&even, base + PERIOD / 5), 1);
            assert_eq!(drain(&even, base + PERIOD), 4);
        }
    });
}

#[test]
fn the_period_is_that_of_the_rate_as_it_is_written() {
    frozen(|base| {
        let (each_minute, each_second) = (Rate::per_minute(60), Rate::per_second(1));
        assert_eq!(each_minute.as_per_second(), each_second.as_per_second());
        let minute = limiter(each_minute, 60, Refill::Interval);
        let second = limiter(each_second, 60, Refill::Interval);
        assert_eq!((drain(&minute, base), drain(&second, base)), (60, 60));
        assert_eq!(drain(&minute, base + PERIOD * 59), 0);
        assert_eq!(drain(&second, base + PERIOD * 59), 59);
        assert_eq!(drain(&minute, base + PERIOD * 60), 60);
        assert_eq!(drain(&second, base + PERIOD * 60), 1);
        // From one to the other that is another rate.
        second.set_rate_at(each_minute, base + PERIOD * 60).unwrap();
        assert_eq!(drain(&second, base + PERIOD * 119), 0);
        assert_eq!(drain(&second, base + PERIOD * 120), 60);
    });
}

#[test]
fn a_burst_below_what_a_period_brings_keeps_no_more() {
    frozen(|base| {
        let limiter = limiter(per(10, PERIOD), 3, Refill::Interval);
        for period in 0..4 {
            assert_eq!(drain(&limiter, base + PERIOD * period), 3);
            assert_eq!(drain(&limiter, base + PERIOD * period + PERIOD / 2), 0);
        }
    });
}

#[test]
fn a_refusal_says_in_which_step_they_will_be_there() {
    frozen(|base| {
        let limiter = limiter(per(3, PERIOD), 10, Refill::Interval);
        assert_eq!(drain(&limiter, base), 10);
        let now = base + PERIOD / 4;
        for (n, steps) in [(1, 1), (3, 1), (4, 2), (6, 2), (7, 3), (10, 4)] {
            let wait = retry_after(&limiter, n, now).unwrap();
            assert_eq!(now + wait, base + PERIOD * steps);
            assert_eq!(retry_after(&limiter, n, now + wait - NANO), Some(NANO));
        }
        assert!(limiter.try_acquire_many_at(10, base + PERIOD * 4).is_ok());
        assert_eq!(retry_after(&limiter, 3, base + PERIOD * 4), Some(PERIOD));
    });
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_step_goes_with_all_others_of_it() {
    let limiter = limiter(per(2, PERIOD), 2, Refill::Interval);
    assert!(limiter.try_acquire_many(2).is_ok());
    advance(PERIOD / 4).await;
    let waits = futures::future::join_all((0..5).map(|_| limiter.acquire())).await;
    let waits: Vec<_> = waits.into_iter().map(Result::unwrap).collect();
    let steps = [1, 1, 2, 2, 3].map(|step| PERIOD * (step - 1) + PERIOD * 3 / 4);
    assert_eq!(waits, steps);
}

#[test]
fn at_no_rate_nothing_comes_and_at_no_limit_all_is_there() {
    frozen(|base| {
        let limiter = limiter(Rate::ZERO, 2, Refill::Interval);
        assert_eq!(drain(&limiter, base), 2);
        assert_eq!(retry_after(&limiter, 1, base), None);
        limiter.set_rate_at(per(1, PERIOD), base + PERIOD / 2).unwrap();
        assert_eq!(retry_after(&limiter, 1, base + PERIOD / 2), Some(PERIOD));
        limiter.set_rate_at(Rate::UNLIMITED, base + PERIOD).unwrap();
        assert_eq!(drain(&limiter, base + PERIOD), 1_000);
        limiter.set_rate_at(per(1, PERIOD), base + PERIOD * 2).unwrap();
        assert_eq!(drain(&limiter, base + PERIOD * 2), 2);
        assert_eq!(retry_after(&limiter, 1, base + PERIOD * 2), Some(PERIOD));
    });
}

#[test]
fn it_starts_with_what_it_is_told_to_and_refuses_what_it_cannot_hold() {
    frozen(|base| {
        let builder = || Limiter::builder(per(5, PERIOD)).burst(8).refill(Refill::Interval);
        let limiter = builder().initial(2).build().unwrap();
        assert_eq!(drain(&limiter, base), 2);
        assert_eq!(drain(&limiter, base + PERIOD), 5);
        let error = builder().initial(9).build().unwrap_err();
        assert_eq!(error, BuildError::InitialExceedsBurst { initial: 9, burst: 8 });
        let max = per(4, PERIOD);
        let error = builder().max_rate(max).build().unwrap_err();
        assert_eq!(error, BuildError::RateExceedsMax { rate: per(5, PERIOD), max });
    });
}

// ---- Aligned -----------------------------------------------------------------------------------

#[test]
fn periods_begin_at_the_instant_they_are_aligned_to_in_the_past_or_to_come() {
    frozen(|base| {
        let third = PERIOD / 3;
        let rest = PERIOD.checked_sub(third).unwrap();
        for (begin, first) in [
            (base, PERIOD),
            (base + third, third),
            (base + third + PERIOD * 1_000, third),
            (base - third, rest),
            (base - third - PERIOD * 1_000, rest),
            (base - PERIOD, PERIOD),
        ] {
            let limiter = limiter(per(5, PERIOD), 5, Refill::IntervalAligned(begin));
            assert_eq!(drain(&limiter, base), 5);
            assert_eq!(retry_after(&limiter, 1, base), Some(first));
            assert_eq!(drain(&limiter, base + first), 5);
            assert_eq!(retry_after(&limiter, 1, base + first), Some(PERIOD));
        }
    });
}

// ---- Another rate, and pauses ------------------------------------------------------------------

#[test]
fn with_a_new_rate_the_periods_begin_anew() {
    frozen(|base| {
        let limiter = limiter(per(5, PERIOD), 5, Refill::Interval);
        assert_eq!(drain(&limiter, base), 5);
        limiter.set_rate_at(per(2, PERIOD / 2), base + PERIOD * 3 / 4).unwrap();
        assert_eq!(retry_after(&limiter, 1, base + PERIOD * 3 / 4), Some(PERIOD / 2));
        assert_eq!(drain(&limiter, base + PERIOD * 5 / 4), 2);
    });
}

#[test]
fn with_a_new_rate_aligned_periods_stay_on_their_grid() {
    frozen(|base| {
        let limiter = limiter(per(5, PERIOD), 5, Refill::IntervalAligned(base));
        assert_eq!(drain(&limiter, base), 5);
        limiter.set_rate_at(per(2, PERIOD / 2), base + PERIOD * 3 / 4).unwrap();
        assert_eq!(retry_after(&limiter, 1, base + PERIOD * 3 / 4), Some(PERIOD / 4));
        assert_eq!(drain(&limiter, base + PERIOD), 2);
        assert_eq!(drain(&limiter, base + PERIOD * 3 / 2), 2);
    });
}

#[test]
fn a_longer_period_is_aligned_to_an_instant_to_come_as_well() {
    frozen(|base| {
        let hour = PERIOD * 3_600;
        let limiter = limiter(per(5, PERIOD), 5, Refill::IntervalAligned(base + hour / 4));
        assert_eq!(drain(&limiter, base), 5);
        limiter.set_rate_at(per(5, hour), base).unwrap();
        assert_eq!(retry_after(&limiter, 1, base), Some(hour / 4));
        assert_eq!(drain(&limiter, base + hour / 4), 5);
        assert_eq!(retry_after(&limiter, 1, base + hour / 4), Some(hour));
    });
}

#[tokio::test(start_paused = true)]
async fn who_waits_goes_by_the_periods_of_a_new_rate() {
    let limiter = limiter(per(1, PERIOD), 1, Refill::Interval);
    assert!(limiter.try_acquire().is_ok());
    let mut waits = Box::pin(limiter.acquire());
    assert!(poll_once(waits.as_mut()).is_pending());
    advance(PERIOD / 2).await;
    limiter.set_rate(per(1, PERIOD * 2)).unwrap();
    assert_eq!(waits.await, Ok(PERIOD * 5 / 2));
}

#[test]
fn nothing_comes_in_a_pause_and_periods_begin_anew_after_it() {
    frozen(|base| {
        let limiter = limiter(per(5, PERIOD), 5, Refill::Interval);
        assert_eq!(drain(&limiter, base), 5);
        limiter.pause_until_at(base + PERIOD * 5 / 2, base + PERIOD / 2);
        assert_eq!(retry_after(&limiter, 1, base + PERIOD), Some(PERIOD * 5 / 2));
        assert_eq!(drain(&limiter, base + PERIOD * 7 / 2), 5);
        limiter.pause_until_at(base + PERIOD * 9, base + PERIOD * 4);
        limiter.resume_at(base + PERIOD * 5);
        assert_eq!(retry_after(&limiter, 1, base + PERIOD * 5), Some(PERIOD));
    });
}

#[test]
fn after_a_pause_aligned_periods_are_on_their_grid() {
    frozen(|base| {
        let limiter = limiter(per(5, PERIOD), 5, Refill::IntervalAligned(base));
        assert_eq!(drain(&limiter, base), 5);
        limiter.pause_until_at(base + PERIOD * 5 / 2, base + PERIOD / 2);
        assert_eq!(drain(&limiter, base + PERIOD * 3 - NANO), 0);
        assert_eq!(drain(&limiter, base + PERIOD * 3), 5);
    });
}

#[test]
fn a_new_rate_does_not_end_a_pause() {
    frozen(|base| {
        for refill in [Refill::Interval, Refill::IntervalAligned(base)] {
            let limiter = limiter(per(5, PERIOD), 5, refill);
            assert_eq!(drain(&limiter, base), 5);
            limiter.pause_until_at(base + PERIOD * 3 / 2, base + PERIOD / 10);
            limiter.set_rate_at(per(1, PERIOD / 10), base + PERIOD * 6 / 5).unwrap();
            assert_eq!(drain(&limiter, base + PERIOD * 3 / 2), 0, "{refill:?}");
            assert_eq!(drain(&limiter, base + PERIOD * 8 / 5), 1, "{refill:?}");
        }
    });
}

// ---- At random ---------------------------------------------------------------------------------

/// A number of permits, and a grid of steps.
struct Model {
    aligned: bool,
    /// In nanoseconds, as all times here.
    period: i128,
    tokens: i128,
    burst: i128,
    available: i128,
    /// A point of the grid, and the time up to which no step counts.
    grid: i128,
    from: i128,
    seen: i128,
    paused: bool,
}

impl Model {
    fn points_by(&self, time: i128) -> i128 {
        (time - self.grid).div_euclid(self.period)
    }

    fn turn_to(&mut self, now: i128) {
        let seen = self.seen.max(self.from);
        if now > seen {
            let points = self.points_by(now) - self.points_by(seen);
            self.available = self.burst.min(self.available + points * self.tokens);
        }
        self.seen = self.seen.max(now);
    }

    fn start_from(&mut self, time: i128) {
        self.from = time;
        if !self.aligned {
            self.grid = time;
        }
    }

    /// How long to wait; zero if they were there.
    fn try_acquire(&mut self, n: i128, now: i128) -> Option<i128> {
        self.turn_to(now);
        let missing = n - self.available;
        if missing <= 0 {
            self.available -= n;
            return Some(0);
        }
        let steps = (missing + self.tokens - 1).checked_div(self.tokens)?;
        let first = self.points_by(now.max(self.from));
        Some(self.grid + (first + steps) * self.period - now)
    }

    fn set_rate(&mut self, tokens: i128, period: i128, now: i128) {
        self.turn_to(now);
        if (self.tokens, self.period) != (tokens, period) {
            (self.tokens, self.period) = (tokens, period);
            self.start_from(self.from.max(now));
        }
    }

    fn set_burst(&mut self, burst: i128, now: i128) {
        self.turn_to(now);
        self.burst = burst;
        self.available = self.available.min(burst);
    }

    fn pause_until(&mut self, until: i128, now: i128) {
        self.turn_to(now);
        if until > self.from.max(now) {
            self.paused = true;
            self.start_from(until);
        }
    }

    fn resume(&mut self, now: i128) {
        self.turn_to(now);
        if std::mem::take(&mut self.paused) && now < self.from {
            self.start_from(now);
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Try(u32),
    SetRate(u64, u64),
    SetBurst(u32),
    Pause(u64),
    Resume,
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let pause = prop_oneof![2 => Just(0), 2 => 1..30_u64, 2 => 30..300_u64, 1 => 0..100_000_u64];
    let step = prop_oneof![
        8 => (1..8_u32).prop_map(Step::Try),
        1 => (1..9_u64, prop_oneof![1..40_u64, Just(100)]).prop_map(|(n, p)| Step::SetRate(n, p)),
        1 => (7..20_u32).prop_map(Step::SetBurst),
        1 => (0..400_u64).prop_map(Step::Pause),
        1 => Just(Step::Resume),
    ];
    prop::collection::vec((pause, step), 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_is_a_number_of_permits_and_a_grid_of_steps(
        steps in steps(),
        tokens in 1..9_u64,
        period in 1..100_u64,
        burst in 7..20_u32,
        begin in prop_oneof![2 => Just(None), 3 => (-5_000_000..5_000_000_i64).prop_map(Some)],
    ) {
        frozen(|base| {
            let refill = match begin {
                None => Refill::Interval,
                Some(begin) if begin < 0 => {
                    Refill::IntervalAligned(base - Duration::from_nanos(begin.unsigned_abs()))
                }
                Some(begin) => Refill::IntervalAligned(at(base, begin.unsigned_abs())),
            };
            let rate = |tokens, period| per(tokens, Duration::from_nanos(period));
            let builder = Limiter::builder(rate(tokens, period)).burst(burst).refill(refill);
            let limiter = builder.max_rate(Rate::UNLIMITED).build().unwrap();
            let mut model = Model {
                aligned: begin.is_some(),
                period: period.into(),
                tokens: tokens.into(),
                burst: burst.into(),
                available: burst.into(),
                grid: begin.unwrap_or(0).into(),
                from: 0,
                seen: 0,
                paused: false,
            };
            let mut nanos = 0;
            for (pause, step) in steps {
                nanos += pause;
                let (now, time) = (at(base, nanos), i128::from(nanos));
                match step {
                    Step::Try(n) => {
                        let wait = match limiter.try_acquire_many_at(n, now) {
                            Ok(()) => Some(0),
                            Err(refused) => refused.retry_after().map(|wait| wait.as_nanos()),
                        };
                        let expected = model.try_acquire(n.into(), time);
                        prop_assert_eq!(wait.map(|wait| i128::try_from(wait).unwrap()), expected);
                    }
                    Step::SetRate(tokens, period) => {
                        limiter.set_rate_at(rate(tokens, period), now).unwrap();
                        model.set_rate(tokens.into(), period.into(), time);
                    }
                    Step::SetBurst(burst) => {
                        limiter.set_burst_at(burst, now).unwrap();
                        model.set_burst(burst.into(), time);
                    }
                    Step::Pause(length) => {
                        limiter.pause_until_at(at(base, nanos + length), now);
                        model.pause_until(i128::from(nanos + length), time);
                    }
                    Step::Resume => {
                        limiter.resume_at(now);
                        model.resume(time);
                    }
                }
            }
            Ok(())
        })?;
    }
}

#[test]
fn over_years_no_step_is_early_or_late() {
    frozen(|base| {
        let limiter = limiter(per(7, PERIOD), 7, Refill::Interval);
        for year in [1, 10, 100] {
            let seconds = year * 365 * 86_400;
            let now = at(base, seconds * SECOND);
            assert_eq!(drain(&limiter, now), 7);
            assert_eq!(drain(&limiter, now + PERIOD - NANO), 0);
            assert_eq!(drain(&limiter, now + PERIOD), 7);
        }
    });
}
