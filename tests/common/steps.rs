//! Random operations on a limiter, at times chosen to meet the edges.

use crate::common::{SECOND, at};
use paceline::{Limiter, Rate, Reservation};
use proptest::prelude::*;
use std::time::Duration;
use tokio::time::Instant;

const HOUR: u64 = 3_600 * SECOND;
pub(crate) const DAY: u64 = 24 * HOUR;
pub(crate) const YEAR: u64 = 365 * DAY;

/// No step goes beyond this; a limiter's nanoseconds end 84 years later.
const END: u64 = 500 * YEAR;

/// So many cases, unless `PROPTEST_CASES` asks for more or fewer.
pub(crate) fn cases(usual: u32) -> ProptestConfig {
    let default = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => default,
        None => ProptestConfig { cases: usual, ..default },
    }
}

/// How a limiter is made, and what rates it is set to.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) rates: Vec<Rate>,
    pub(crate) burst: u32,
    /// Whether it is built for any rate and burst, which leaves the coarsest grains.
    pub(crate) wide: bool,
}

impl Setup {
    pub(crate) fn limiter(&self) -> Limiter {
        let builder = Limiter::builder(self.rates[0]).burst(self.burst);
        let builder = if self.wide {
            builder.max_rate(Rate::per_second(1_000_000_000_000)).max_burst(u32::MAX)
        } else {
            builder
        };
        builder.build().unwrap()
    }
}

/// Those on which limiters are likely to stumble: fractions of nanoseconds, many tokens in one,
/// and very long periods.
pub(crate) fn edgy_rates() -> Vec<Rate> {
    let per = |tokens, period| Rate::new(tokens, Duration::from_nanos(period)).unwrap();
    vec![
        Rate::per_second(3),
        Rate::per_second(7),
        Rate::per_second(100),
        Rate::per_second(7_777_777),
        Rate::per_day(1),
        Rate::per_minute(1),
        per(1, 7_000_000),
        per(10, 13 * SECOND),
        Rate::per_second(1_000_000_000),
        Rate::per_second(10_000_000_000),
        Rate::ZERO,
    ]
}

/// Up to three of the edgy rates, or any one rate whatever (and none).
pub(crate) fn setups() -> impl Strategy<Value = Setup> {
    let edgy = prop::collection::vec(prop::sample::select(edgy_rates()), 1..=3);
    let ratio = (0_u32..57).prop_flat_map(|bits| (1_u64 << bits..2 << bits, 0..10_u64 << bits));
    let one = ratio.prop_map(|(period, tokens)| {
        vec![Rate::new(tokens, Duration::from_nanos(period)).unwrap(), Rate::ZERO]
    });
    let burst = prop_oneof![3 => 1_u32..=4, 2 => 5_u32..=40, 1 => 1_000_u32..=2_000];
    (prop_oneof![5 => edgy, 2 => one], burst, any::<bool>())
        .prop_map(|(rates, burst, wide)| Setup { rates, burst, wide })
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    Same,
    Later(u64),
    Earlier(u64),
    /// Later by so many eighths of the time that a token takes.
    Eighths(u64),
    /// When the last `retry_after` was to end, or so much later.
    Retry(i64),
    /// When the turn of one of the reservations comes, or so much later.
    Turn(usize, i64),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Amount {
    Few(u32),
    /// So many eighths of the burst.
    Eighths(u32),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    Try(Amount),
    Reserve(Amount),
    Cancel(usize),
    SetRate(usize),
    SetBurst(u32),
    Tokens,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) when: When,
    pub(crate) what: What,
}

/// Steps that go back in time by up to `earlier` nanoseconds, and set bursts up to `burst`.
pub(crate) fn steps(earlier: u64, burst: u32, count: usize) -> impl Strategy<Value = Vec<Step>> {
    let later = prop_oneof![
        1_u64..=3,
        (0_u32..43).prop_map(|bits| 1 << bits),
        prop::sample::select(vec![12 * HOUR, YEAR, 50 * YEAR]),
    ];
    let back = u32::from(earlier > 0);
    let index = || 0_usize..1_000;
    let when = prop_oneof![
        4 => Just(When::Same),
        2 => later.prop_map(When::Later),
        back => (1..=earlier.max(1)).prop_map(When::Earlier),
        4 => (1_u64..=40).prop_map(When::Eighths),
        3 => (-1_i64..=0).prop_map(When::Retry),
        3 => (index(), -1_i64..=1).prop_map(|(one, offset)| When::Turn(one, offset)),
    ];
    let amount = || {
        prop_oneof![
            3 => (0_u32..=4).prop_map(Amount::Few),
            2 => (1_u32..=8).prop_map(Amount::Eighths),
        ]
    };
    let what = prop_oneof![
        6 => amount().prop_map(What::Try),
        5 => amount().prop_map(What::Reserve),
        4 => index().prop_map(What::Cancel),
        1 => index().prop_map(What::SetRate),
        1 => (0..=burst).prop_map(What::SetBurst),
        1 => Just(What::Tokens),
    ];
    prop::collection::vec((when, what).prop_map(|(when, what)| Step { when, what }), 1..=count)
}

/// A step with everything in it decided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    /// Nanoseconds since the beginning.
    pub(crate) at: u64,
    pub(crate) what: Act,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    Try(u32),
    Reserve(u32),
    /// Of a reservation that is there.
    Cancel(usize),
    SetRate(Rate),
    SetBurst(u32),
    Tokens,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Answer {
    Granted,
    /// With the nanoseconds after which to retry.
    Denied(Option<u64>),
    /// With the time of the turn.
    Booked(Option<u64>),
    Refused,
    Tokens(f64),
    Done,
}

/// Decides steps and takes them.
pub(crate) struct Driver<'a> {
    pub(crate) base: Instant,
    pub(crate) limiter: &'a Limiter,
    /// All that were made, in this order, unless they were cancelled.
    pub(crate) reservations: Vec<Option<Reservation<'a>>>,
    now: u64,
    retry: Option<u64>,
}

impl<'a> Driver<'a> {
    pub(crate) fn new(base: Instant, limiter: &'a Limiter) -> Self {
        Self { base, limiter, reservations: Vec::new(), now: 0, retry: None }
    }

    /// What the step comes to as things stand; a cancel without a reservation to nothing.
    pub(crate) fn decide(&self, step: Step, setup: &Setup) -> Option<Call> {
        let rate = self.limiter.rate();
        let at = match step.when {
            When::Same => Some(self.now),
            When::Later(nanos) => Some(self.now.saturating_add(nanos)),
            When::Earlier(nanos) => Some(self.now.saturating_sub(nanos)),
            When::Eighths(eighths) => u64::try_from(rate.period().as_nanos())
                .ok()
                .and_then(|period| (eighths * (period / 8)).checked_div(rate.tokens()))
                .map(|time| self.now.saturating_add(time)),
            When::Retry(offset) => self.retry.map(|time| time.saturating_add_signed(offset)),
            When::Turn(one, offset) => self
                .pick(one)
                .and_then(|one| self.turn(one))
                .map(|turn| turn.saturating_add_signed(offset)),
        };
        let amount = |amount| match amount {
            Amount::Few(n) => n,
            Amount::Eighths(eighths) => (self.limiter.burst() * eighths).div_ceil(8),
        };
        let what = match step.what {
            What::Try(n) => Act::Try(amount(n)),
            What::Reserve(n) => Act::Reserve(amount(n)),
            What::Cancel(one) => Act::Cancel(self.pick(one)?),
            What::SetRate(one) => Act::SetRate(setup.rates[one % setup.rates.len()]),
            What::SetBurst(burst) => Act::SetBurst(burst),
            What::Tokens => Act::Tokens,
        };
        Some(Call { at: at.unwrap_or(self.now).min(END), what })
    }

    /// One of the reservations that are there.
    fn pick(&self, one: usize) -> Option<usize> {
        let there = self.reservations.iter().enumerate().filter(|(_, there)| there.is_some());
        let there: Vec<usize> = there.map(|(index, _)| index).collect();
        there.get(one.checked_rem(there.len())?).copied()
    }

    /// When the turn of a reservation comes.
    pub(crate) fn turn(&self, reservation: usize) -> Option<u64> {
        Some(self.nanos(self.reservations[reservation].as_ref()?.ready_at()?))
    }

    fn nanos(&self, instant: Instant) -> u64 {
        u64::try_from((instant - self.base).as_nanos()).unwrap()
    }

    pub(crate) fn take(&mut self, call: Call) -> Answer {
        let now = at(self.base, call.at);
        self.now = call.at;
        match call.what {
            Act::Try(n) => match self.limiter.try_acquire_many_at(n, now) {
                Ok(()) => Answer::Granted,
                Err(paceline::TryAcquireError::Limited(limited)) => {
                    let wait = limited.retry_after();
                    let wait = wait.map(|wait| u64::try_from(wait.as_nanos()).unwrap());
                    self.retry = wait.map(|wait| call.at.saturating_add(wait));
                    Answer::Denied(wait)
                }
                Err(_) => Answer::Refused,
            },
            Act::Reserve(n) => match self.limiter.reserve_many_at(n, now) {
                Ok(reservation) => {
                    self.reservations.push(Some(reservation));
                    Answer::Booked(self.turn(self.reservations.len() - 1))
                }
                Err(_) => Answer::Refused,
            },
            Act::Cancel(one) => {
                self.reservations[one].take().unwrap().cancel_at(now);
                Answer::Done
            }
            Act::SetRate(rate) => match self.limiter.set_rate_at(rate, now) {
                Ok(()) => Answer::Done,
                Err(_) => Answer::Refused,
            },
            Act::SetBurst(burst) => match self.limiter.set_burst_at(burst, now) {
                Ok(()) => Answer::Done,
                Err(_) => Answer::Refused,
            },
            Act::Tokens => Answer::Tokens(self.limiter.tokens_at(now)),
        }
    }
}
