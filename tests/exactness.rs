//! Exact to the last token and nanosecond: what is used, when to retry, where every token is.
//!
//! All times are explicit, all sums in whole numbers, and nothing is allowed for rounding.

#![expect(clippy::float_cmp, reason = "a whole number of tokens is exact in an f64")]

mod common;
#[path = "common/model.rs"]
mod model;
#[path = "common/steps.rs"]
mod steps;

use common::{SECOND, at, frozen};
use model::{Minting, Model, unit_for};
use paceline::{Limiter, Rate, Reservation, ReserveError};
use proptest::prelude::*;
use std::time::Duration;
use steps::{Act, Answer, Call, DAY, Driver, Setup, Step, YEAR, cases, edgy_rates, setups, steps};
use tokio::time::Instant;

// ---- Windows -----------------------------------------------------------------------------------

/// Permits that were used at once.
#[derive(Clone, Copy, Debug)]
struct Use {
    at: u64,
    permits: u32,
    /// The burst when they were booked.
    burst: u32,
}

/// What was minted and used since the limiter was made or was last unlimited.
///
/// A time before the last change of the rate counts as that of the change, as one before the
/// limiter was made counts as that.
struct Ledger {
    minting: Minting,
    used: Vec<Use>,
    /// By the index of their reservation; until their turn comes it may still move.
    booked: Vec<(usize, Use)>,
}

impl Ledger {
    fn new(start: u64, rate: Rate, unit: i128) -> Self {
        Self { minting: Minting::new(start, rate, unit), used: Vec::new(), booked: Vec::new() }
    }

    fn use_at(&mut self, at: u64, permits: u32, burst: u32) {
        self.used.push(Use { at: at.max(self.minting.last_change()), permits, burst });
    }

    /// Any window with permits in it can be narrowed to one that begins a nanosecond before a use
    /// and ends with one, without a permit less in it. So these are all that matter.
    fn check(mut self) -> Result<(), TestCaseError> {
        let unit = self.minting.unit;
        self.used.sort_by_key(|used| used.at);
        let ends: Vec<i128> = self.used.iter().map(|used| self.minting.by(used.at)).collect();
        for (first, from) in self.used.iter().enumerate() {
            let before = self.minting.by(from.at.saturating_sub(1));
            let (mut permits, mut burst) = (0, 0);
            for (to, end) in self.used.iter().zip(&ends).skip(first) {
                permits += i128::from(to.permits);
                burst = burst.max(to.burst);
                prop_assert!(
                    permits * unit <= i128::from(burst) * unit + end - before,
                    "{permits} permits in ({} - 1, {}]: {:?}",
                    from.at,
                    to.at,
                    self.used,
                );
            }
        }
        Ok(())
    }
}

fn check_windows(base: Instant, setup: &Setup, steps: &[Step]) -> Result<(), TestCaseError> {
    let unit = unit_for(&setup.rates);
    let limiter = setup.limiter();
    let mut driver = Driver::new(base, &limiter);
    // While the rate is unlimited, nothing is counted.
    let mut ledger =
        Some(Ledger::new(0, setup.rates[0], unit)).filter(|_| !setup.rates[0].is_unlimited());
    let mut latest = 0;
    for step in steps {
        let Some(mut call) = driver.decide(*step, setup) else { continue };
        if let Act::SetRate(_) = call.what {
            // What has been used already was minted at the rate of then.
            call.at = call.at.max(latest);
        }
        latest = latest.max(call.at);
        let burst = limiter.burst();
        match (call.what, &mut ledger) {
            (Act::Try(permits), Some(ledger)) => {
                if driver.take(call) == Answer::Granted {
                    ledger.use_at(call.at, permits, burst);
                }
            }
            (Act::Reserve(permits), Some(ledger)) => {
                if let Answer::Booked(_) = driver.take(call) {
                    let at = ledger.minting.last_change();
                    ledger.booked.push((driver.reservations.len() - 1, Use { at, permits, burst }));
                }
            }
            (Act::Cancel(one), Some(ledger)) => {
                let in_time = driver.turn(one).is_none_or(|turn| turn >= call.at);
                let booked = ledger.booked.iter().position(|(index, _)| *index == one);
                match (in_time, booked) {
                    (true, Some(booked)) => {
                        driver.take(call);
                        ledger.booked.swap_remove(booked);
                    }
                    // Its turn came before the rate was changed, so it was used then.
                    (true, None) => {}
                    (false, _) => {
                        let turn = driver.turn(one);
                        driver.take(call);
                        if let (Some(turn), Some(booked)) = (turn, booked) {
                            let (_, Use { at, permits, burst }) = ledger.booked.swap_remove(booked);
                            ledger.use_at(turn.max(at), permits, burst);
                        }
                    }
                }
            }
            (Act::SetRate(rate), ledger) if rate != limiter.rate() => {
                settle(&driver, ledger.as_mut(), call.at);
                let was_unlimited = ledger.is_none();
                if driver.take(call) == Answer::Done {
                    if rate.is_unlimited() {
                        if let Some(ledger) = ledger.take() {
                            ledger.check()?;
                        }
                    } else if let Some(ledger) = ledger {
                        ledger.minting.change(call.at, rate);
                    } else {
                        *ledger = Some(Ledger::new(call.at, rate, unit));
                    }
                }
                if was_unlimited && !rate.is_unlimited() {
                    let tokens = limiter.tokens_at(at(base, call.at));
                    prop_assert_eq!(tokens, f64::from(burst), "not full after it was unlimited");
                }
            }
            _ => {
                driver.take(call);
            }
        }
    }
    let Some(mut ledger) = ledger else { return Ok(()) };
    settle(&driver, Some(&mut ledger), u64::MAX);
    ledger.check()
}

/// Uses those reservations whose turn comes until `now`.
fn settle(driver: &Driver, ledger: Option<&mut Ledger>, now: u64) {
    let Some(ledger) = ledger else { return };
    let turn = |index| driver.turn(index).filter(|turn| *turn <= now);
    let (due, later): (Vec<_>, Vec<_>) =
        ledger.booked.drain(..).partition(|(index, _)| turn(*index).is_some());
    ledger.booked = later;
    for (index, Use { at, permits, burst }) in due {
        ledger.used.push(Use { at: at.max(turn(index).unwrap_or(at)), permits, burst });
    }
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn no_window_holds_more_than_the_burst_and_what_is_minted_in_it(
        setup in setups(),
        steps in steps(2_000_000, 50, 80),
    ) {
        frozen(|base| check_windows(base, &setup, &steps))?;
    }

    #[test]
    fn the_bound_holds_again_when_the_rate_was_unlimited_for_a_while(
        mut setup in setups(),
        steps in steps(2_000_000, 50, 80),
    ) {
        setup.rates.push(Rate::UNLIMITED);
        frozen(|base| check_windows(base, &setup, &steps))?;
    }
}

#[test]
fn a_limiter_is_full_after_it_was_unlimited_although_its_burst_was_raised() {
    frozen(|base| {
        let limiter = Limiter::new(Rate::per_second(3), 1);
        let now = at(base, YEAR);
        limiter.set_burst_at(3, now).unwrap();
        limiter.set_rate_at(Rate::UNLIMITED, now).unwrap();
        limiter.set_rate_at(Rate::per_second(3), now).unwrap();
        assert_eq!(limiter.tokens_at(now), 3.0);
    });
}

#[test]
fn nothing_from_before_is_left_when_it_was_unlimited() {
    let fast = |tokens| Rate::new(tokens, Duration::from_nanos(1)).unwrap();
    frozen(|base| {
        let limiter = Limiter::new(fast(3), 2);
        let now = at(base, 5);
        let turns = [(); 3].map(|()| limiter.reserve_many_at(2, now).unwrap());
        limiter.set_rate_at(fast(1), now).unwrap();
        let [first, second, _last] = turns;
        first.cancel_at(now);
        second.cancel_at(now);
        limiter.set_rate_at(Rate::UNLIMITED, now).unwrap();
        limiter.set_rate_at(fast(3), now).unwrap();
        assert_eq!(limiter.tokens_at(now), 2.0);
        let granted = [(); 4].map(|()| limiter.try_acquire_many_at(1, now).is_ok());
        assert_eq!(granted, [true, true, false, false]);
    });
}

#[test]
fn no_permit_is_used_that_has_overflowed_by_a_fraction_of_a_grain() {
    // Grains of half a microsecond.
    let setup = Setup { rates: vec![Rate::per_second(1)], burst: 2, wide: true };
    frozen(|base| {
        let mut granted = 0;
        for wait in 0..2_000 {
            let limiter = setup.limiter();
            let booked = SECOND + 150;
            let [first, second, third] =
                [(); 3].map(|()| limiter.reserve_many_at(1, at(base, booked)).unwrap());
            first.cancel_at(at(base, booked));
            second.cancel_at(at(base, booked));
            let now = at(base, booked + wait);
            if limiter.try_acquire_many_at(2, now).is_ok() {
                granted += 1;
                // All three are used in a window that begins a nanosecond before now.
                let window = third.ready_at().unwrap() - now + Duration::from_nanos(1);
                assert!(window >= Duration::from_nanos(SECOND), "after {wait} ns: {window:?}");
            }
        }
        assert!(granted > 0);
    });
}

// ---- Hints -------------------------------------------------------------------------------------

/// Does to a new limiter all that `calls` did to another one that was made at the same instant.
fn replayed<T>(
    base: Instant,
    setup: &Setup,
    calls: &[Call],
    then: impl FnOnce(&mut Driver) -> T,
) -> T {
    let limiter = setup.limiter();
    let mut driver = Driver::new(base, &limiter);
    for call in calls {
        driver.take(*call);
    }
    then(&mut driver)
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn a_retry_succeeds_exactly_after_the_hint_and_not_a_nanosecond_earlier(
        setup in setups(),
        steps in steps(0, 50, 40),
    ) {
        frozen(|base| {
            let limiter = setup.limiter();
            let mut driver = Driver::new(base, &limiter);
            let mut calls = Vec::new();
            let mut latest = 0;
            for step in steps {
                let Some(mut call) = driver.decide(step, &setup) else { continue };
                call.at = call.at.max(latest);
                latest = call.at;
                if let (Act::Try(n), Answer::Denied(wait)) = (call.what, driver.take(call)) {
                    let Some(wait) = wait else {
                        prop_assert!(limiter.rate().is_zero(), "{call:?} after {calls:?}");
                        continue;
                    };
                    let retry = |wait| Call { at: call.at + wait, what: Act::Try(n) };
                    replayed(base, &setup, &calls, |driver| {
                        let early = driver.take(retry(wait - 1));
                        prop_assert_eq!(early, Answer::Denied(Some(1)), "{:?}: {:?}", call, calls);
                        let exact = driver.take(retry(wait));
                        prop_assert_eq!(exact, Answer::Granted, "{:?} + {}: {:?}", call, wait, calls);
                        Ok(())
                    })?;
                    replayed(base, &setup, &calls, |driver| {
                        let booked = driver.take(Call { what: Act::Reserve(n), ..call });
                        prop_assert_eq!(booked, Answer::Booked(Some(call.at + wait)));
                        Ok(())
                    })?;
                }
                calls.push(call);
            }
            Ok(())
        })?;
    }
}

#[test]
fn a_hint_is_right_when_the_burst_was_raised_and_grains_are_long() {
    frozen(|base| {
        // A week in grains of 7 ns.
        let limiter = Limiter::new(Rate::every(Duration::from_nanos(7 * DAY)), 1);
        let raised = at(base, 10 * SECOND + 3);
        limiter.set_burst_at(2, raised).unwrap();
        let denied = limiter.try_acquire_many_at(2, raised).unwrap_err();
        let then = raised + denied.retry_after().unwrap();
        let early = limiter.try_acquire_many_at(2, then - Duration::from_nanos(1));
        assert_eq!(early.unwrap_err().retry_after(), Some(Duration::from_nanos(1)));
        limiter.try_acquire_many_at(2, then).unwrap();
    });
}

// ---- Every token is somewhere ------------------------------------------------------------------

/// Rates that are exact in one another's grains, so that a limiter which is set from one to
/// another must agree with a model that never rounds.
fn exact_together() -> impl Strategy<Value = Vec<Rate>> {
    let usual = vec![
        Rate::per_second(3),
        Rate::per_second(7),
        Rate::per_second(144),
        Rate::per_second(7_777_777),
        Rate::per_minute(1),
        Rate::per_minute(90),
        Rate::every(Duration::from_millis(250)),
        Rate::ZERO,
    ];
    let slow = vec![Rate::per_hour(5), Rate::per_day(3), Rate::per_day(1), Rate::ZERO];
    let slow = prop::collection::vec(prop::sample::select(slow), 0..3);
    prop_oneof![
        prop::collection::vec(prop::sample::select(usual), 1..=3),
        slow.prop_map(|others| [vec![Rate::per_day(1)], others].concat()),
        prop::sample::select(edgy_rates()).prop_map(|rate| vec![rate, Rate::ZERO]),
    ]
}

proptest! {
    #![proptest_config(cases(1_500))]

    #[test]
    fn every_token_is_used_or_free_or_booked_or_has_overflowed_at_every_step(
        rates in exact_together(),
        burst in 1_u32..=30,
        steps in steps(0, 30, 80),
    ) {
        let setup = Setup { rates, burst, wide: false };
        frozen(|base| {
            let limiter = setup.limiter();
            let mut driver = Driver::new(base, &limiter);
            let mut model = Model::new(setup.rates[0], burst, unit_for(&setup.rates));
            let mut latest = 0;
            for step in steps {
                let Some(mut call) = driver.decide(step, &setup) else { continue };
                call.at = call.at.max(latest);
                latest = call.at;
                match (driver.take(call), expected(&mut model, call)) {
                    // Compared below, after every call.
                    (Answer::Tokens(_), Answer::Tokens(_)) => {}
                    (answer, expected) => prop_assert_eq!(answer, expected, "{:?}", call),
                }
                model.assert_conserved(latest);
                let (tokens, exact) = (limiter.tokens_at(at(base, latest)), model.tokens(latest));
                prop_assert!((tokens - exact).abs() <= 1e-6, "{tokens}, not {exact}, {call:?}");
                for (index, held) in model.held.iter().enumerate() {
                    // Of a turn that has passed nothing is asked any more.
                    let Some(held) = held.as_ref().filter(|held| !held.is_past(latest)) else {
                        continue;
                    };
                    prop_assert_eq!(driver.turn(index), held.turn, "{:?} after {:?}", held, call);
                }
            }
            // Where the free tokens are is seen in the turns of those who book them.
            for _ in 0..limiter.burst().min(1) * 40 {
                let call = Call { at: latest, what: Act::Reserve(1) };
                prop_assert_eq!(driver.take(call), expected(&mut model, call));
            }
            Ok(())
        })?;
    }
}

/// What the model says to a call.
fn expected(model: &mut Model, Call { at, what }: Call) -> Answer {
    match what {
        Act::Try(n) | Act::Reserve(n) if n > model.burst() => return Answer::Refused,
        Act::Try(n) => match model.try_acquire(n, at) {
            Ok(()) => return Answer::Granted,
            Err(turn) => return Answer::Denied(turn.map(|turn| turn - at)),
        },
        Act::Reserve(n) => return Answer::Booked(model.reserve(n, at)),
        Act::Cancel(one) => model.cancel(one, at),
        Act::SetRate(rate) => model.set_rate(rate, at),
        Act::SetBurst(burst) => model.set_burst(burst, at),
        Act::Tokens => return Answer::Tokens(model.tokens(at)),
    }
    Answer::Done
}

// ---- Callers in any order, and clocks that jump ------------------------------------------------

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn callers_with_older_and_newer_times_in_any_order_mint_nothing(
        setup in setups(),
        steps in steps(2 * YEAR, 50, 80),
    ) {
        let unit = unit_for(&setup.rates);
        frozen(|base| {
            let limiter = setup.limiter();
            let mut driver = Driver::new(base, &limiter);
            let mut minting = Minting::new(0, setup.rates[0], unit);
            let (mut used, mut latest) = (0, 0);
            let mut booked = Vec::new();
            for step in steps {
                let Some(call) = driver.decide(step, &setup) else { continue };
                latest = latest.max(call.at);
                if let Act::Cancel(one) = call.what {
                    if driver.turn(one).is_some_and(|turn| turn < call.at) {
                        used += booked[one];
                    }
                }
                let rate = limiter.rate();
                match (call.what, driver.take(call)) {
                    (Act::Try(n), Answer::Granted) => used += i128::from(n),
                    (Act::Reserve(n), Answer::Booked(_)) => booked.push(i128::from(n)),
                    (Act::SetRate(to), Answer::Done) if to != rate => minting.change(call.at, to),
                    _ => {}
                }
            }
            for (index, permits) in booked.into_iter().enumerate() {
                if let Some(turn) = driver.turn(index) {
                    latest = latest.max(turn);
                    used += permits;
                }
            }
            // A change in the past leaves what was minted before it; so the most counts.
            let minted = minting.clocks.iter().map(|clock| clock.minted(latest)).max().unwrap();
            prop_assert!(used * unit <= i128::from(setup.burst) * unit + minted);
            Ok(())
        })?;
    }
}

#[test]
fn changes_of_the_rate_at_older_and_newer_times_mint_nothing_twice() {
    let rates = [100, 101].map(Rate::per_second);
    frozen(|base| {
        for seed in 0..20 {
            let mut random = fastrand::Rng::with_seed(seed);
            let limiter = Limiter::new(rates[0], 2_000);
            limiter.try_acquire_many_at(2_000, base).unwrap();
            let mut granted = 0;
            for _ in 0..50 {
                let change = at(base, random.u64(0..=10 * SECOND));
                limiter.set_rate_at(rates[random.usize(..2)], change).unwrap();
                let last = at(base, 10 * SECOND);
                while limiter.try_acquire_many_at(1, last).is_ok() {
                    granted += 1;
                }
            }
            assert!((1_000..=1_010).contains(&granted), "{granted} granted with seed {seed}");
        }
    });
}

/// How long so many tokens take, to the nanosecond.
fn time_for(tokens: u64, rate: Rate) -> u64 {
    let wait = u128::from(tokens) * rate.period().as_nanos();
    u64::try_from(wait.div_ceil(u128::from(rate.tokens()))).unwrap()
}

#[test]
fn a_limiter_that_was_idle_for_any_time_is_full_and_no_more() {
    frozen(|base| {
        for rate in edgy_rates().into_iter().filter(|rate| !rate.is_zero()) {
            for idle in [7 * DAY * 30, YEAR, 50 * YEAR, 500 * YEAR] {
                let limiter = Limiter::new(rate, 20);
                limiter.try_acquire_many_at(13, base).unwrap();
                let now = at(base, idle);
                assert_eq!(limiter.tokens_at(now), 20.0, "{rate}");
                for _ in 0..20 {
                    limiter.try_acquire_many_at(1, now).unwrap();
                }
                let denied = limiter.try_acquire_many_at(1, now).unwrap_err();
                assert!(denied.retry_after().is_some(), "{rate}: {denied:?}");
                assert_eq!(limiter.tokens_at(now), 0.0, "{rate}");
            }
        }
    });
}

#[test]
fn exactly_the_burst_goes_at_once_after_a_second_of_idleness() {
    frozen(|base| {
        for burst in [1, 10, 1_000] {
            let limiter = Limiter::new(Rate::per_second(1_000), burst);
            for second in 0..5 {
                let now = at(base, second * SECOND);
                let granted =
                    (0..2 * burst).filter(|_| limiter.try_acquire_many_at(1, now).is_ok()).count();
                assert_eq!(granted, burst as usize, "in second {second}");
            }
        }
    });
}

#[test]
fn one_a_week_passes_at_any_instant_when_full_and_a_week_later_at_the_latest() {
    let week = 7 * DAY;
    let rate = Rate::every(Duration::from_nanos(week));
    frozen(|base| {
        for first in [0, 1, 7, SECOND / 3, DAY + 1, week - 1, week, week + 1, 3 * YEAR + 11] {
            let limiter = Limiter::new(rate, 1);
            limiter.try_acquire_many_at(1, at(base, first)).unwrap();
            let denied = limiter.try_acquire_many_at(1, at(base, first)).unwrap_err();
            let wait = denied.retry_after().unwrap();
            // A limiter that is built for 50 000/s counts a week in grains of 7 ns, and what came
            // within the nanosecond of the first counts for the next.
            let nanos = u64::try_from(wait.as_nanos()).unwrap();
            assert!((week - 1..=week + 7).contains(&nanos), "{wait:?} after {first} ns");
            limiter.try_acquire_many_at(1, at(base, first) + wait).unwrap();
        }
    });
}

#[test]
fn full_reserves_wait_for_nothing_and_one_and_two_periods() {
    let per_second = Rate::per_second;
    frozen(|base| {
        for rate in
            [per_second(1), per_second(3), per_second(7_777_777), per_second(10_000_000_000)]
        {
            for burst in [1, 10, 9_999, u32::MAX] {
                let limiter = Limiter::new(rate, burst);
                let waits = [0, 1, 2].map(|_| {
                    let reservation = limiter.reserve_many_at(burst, base).unwrap();
                    assert_eq!(reservation.permits(), burst);
                    reservation.delay_from(base)
                });
                let periods = [0, 1, 2].map(|n| time_for(n * u64::from(burst), rate));
                assert_eq!(waits, periods.map(Duration::from_nanos), "{rate}, burst {burst}");
            }
        }
    });
}

#[test]
fn a_day_is_waited_for_to_the_nanosecond() {
    frozen(|base| {
        let limiter = Limiter::new(Rate::per_day(1), 2);
        let now = at(base, 5 * DAY + 1);
        for days in [0, 0].into_iter().chain(1..=30_000) {
            let delay = limiter.reserve_many_at(1, now).unwrap().delay_from(now);
            assert_eq!(delay, Duration::from_nanos(days * DAY));
        }
    });
}

#[test]
fn a_hundred_years_are_waited_for() {
    let century = Duration::from_nanos(100 * YEAR);
    frozen(|base| {
        let limiter = Limiter::new(Rate::every(century), 1);
        for centuries in 0..=5 {
            let delay = limiter.reserve_many_at(1, base).unwrap().delay_from(base);
            assert_eq!(delay, century * centuries);
        }
        // Beyond what 64 bits of nanoseconds can tell.
        let never = limiter.reserve_many_at(1, base).unwrap();
        assert_eq!((never.ready_at(), never.delay_from(base)), (None, Duration::MAX));
    });
}

/// Books as much as there is room for, `burst` at a time, and tells how much that was.
fn most_debt(limiter: &Limiter, now: Instant) -> u64 {
    let mut tokens = 0;
    for _ in 0..1_000_000 {
        let before = limiter.tokens_at(now);
        match limiter.reserve_many_at(limiter.burst(), now) {
            Ok(_) => tokens += u64::from(limiter.burst()),
            Err(error) => {
                let requested = limiter.burst();
                assert_eq!(error, ReserveError::DebtTooLarge { requested });
                assert_eq!(limiter.tokens_at(now), before);
                return tokens;
            }
        }
    }
    panic!("there is no end to it")
}

#[test]
fn a_debt_of_many_tokens_or_thirty_years_fits_and_more_is_an_error_that_takes_nothing() {
    let per = |tokens, seconds| Rate::new(tokens, Duration::from_secs(seconds)).unwrap();
    let second = Rate::per_second;
    let rates = [
        second(1),
        second(100),
        second(7_777_777),
        second(10_000_000_000),
        per(10, 13),
        Rate::ZERO,
        Rate::per_minute(1),
        Rate::per_hour(5),
        Rate::per_day(1),
    ];
    // Odd and slow: less debt, and no rounding. It is still more than two years of it.
    let odd = (per(7, 10_000), 2);
    let rates = rates.map(|rate| (rate, 30)).into_iter().chain([odd]);
    frozen(|base| {
        for (rate, years) in rates {
            let in_years = u128::from(years * YEAR) * u128::from(rate.tokens());
            let in_years = u64::try_from(in_years / rate.period().as_nanos()).unwrap();
            let least = if rate.is_zero() { 1 << 26 } else { in_years.min(1 << 26) };
            let limiter = Limiter::new(rate, u32::try_from(least / 1_000).unwrap());
            let debt = most_debt(&limiter, at(base, SECOND));
            assert!(debt >= least, "{debt} tokens at {rate}, not {least}");
            // Time makes room again.
            if !rate.is_zero() {
                let _ = limiter.reserve_many_at(1, at(base, 50 * YEAR)).unwrap();
            }
        }
    });
}

// ---- A line that goes round --------------------------------------------------------------------

/// Rates at which 2^62 grains are minted every few seconds, with a burst of many milliseconds.
const FAST: [Rate; 2] = [Rate::per_second(10_000_000_000), Rate::per_second(1_000_000_000_000)];

#[test]
fn all_that_is_minted_and_no_more_is_granted_over_many_turns() {
    frozen(|base| {
        for rate in FAST {
            let limiter = Limiter::new(rate, u32::MAX);
            let per_nano = rate.tokens() / SECOND;
            let to_fill = u64::from(u32::MAX) / per_nano;
            let mut random = fastrand::Rng::with_seed(rate.tokens());
            let mut now = 0;
            limiter.try_acquire_many_at(u32::MAX, base).unwrap();
            for _ in 0..20_000 {
                let idle = [to_fill, to_fill + 1, SECOND, 60 * SECOND, DAY, YEAR / 50];
                let wait = match random.u32(0..50) {
                    0 => idle[random.usize(..idle.len())],
                    _ => random.u64(0..=to_fill),
                };
                now += wait;
                let minted = (wait * per_nano).min(u64::from(u32::MAX));
                let minted = u32::try_from(minted).unwrap();
                let then = at(base, now);
                assert_eq!(limiter.tokens_at(then), f64::from(minted), "{rate} at {now}");
                limiter.try_acquire_many_at(minted, then).unwrap();
                let denied = limiter.try_acquire_many_at(1, then).unwrap_err();
                assert_eq!(denied.retry_after(), Some(Duration::from_nanos(1)), "{rate} at {now}");
            }
        }
    });
}

#[test]
fn turns_stay_and_come_back_when_cancelled_however_often_the_line_goes_round() {
    frozen(|base| {
        for rate in FAST {
            let limiter = Limiter::new(rate, u32::MAX);
            let period = time_for(u64::from(u32::MAX), rate);
            let mut random = fastrand::Rng::with_seed(rate.tokens());
            let mut held: Vec<(Reservation<'_>, Instant)> = Vec::new();
            let mut last = base;
            for step in 0..2_000 {
                // A debt of more than a second is always about.
                let now = at(base, step * SECOND / 20);
                while last < now + Duration::from_millis(1_300) {
                    let booked = limiter.reserve_many_at(u32::MAX, now).unwrap();
                    last = booked.ready_at().unwrap();
                    held.push((booked, last));
                }
                for _ in 0..2 {
                    let (booked, turn) = held.swap_remove(random.usize(..held.len()));
                    if turn > now {
                        booked.cancel_at(now);
                        let again = limiter.reserve_many_at(u32::MAX, now).unwrap();
                        assert_eq!(again.ready_at(), Some(turn), "{rate} at step {step}");
                        held.push((again, turn));
                    } else {
                        assert_eq!(booked.ready_at(), Some(turn), "{rate} at step {step}");
                    }
                }
            }
            let turns: Vec<_> = held.iter().map(|(booked, _)| booked.ready_at().unwrap()).collect();
            assert!(turns.iter().eq(held.iter().map(|(_, turn)| turn)), "{rate}");
            // None was given twice: every turn is one of all that are a burst apart.
            let mut turns: Vec<_> = turns.into_iter().filter(|turn| *turn > base).collect();
            turns.sort_unstable();
            assert!(
                turns
                    .windows(2)
                    .all(|pair| { pair[1] - pair[0] >= Duration::from_nanos(period - 1) })
            );
        }
    });
}
