//! Whatever is done with keys, each is as a limiter of its own; and a key that was forgotten is as one
//! that was not.

use futures::FutureExt;
use paceline::keyed::Quota;
use paceline::window::{Align, FixedWindow};
use paceline::{
    AcquireError, DynRateLimit, Keyed, LeakyBucket, Limiter, Rate, Refill, Reservation,
};
use proptest::prelude::*;
use std::pin::Pin;
use std::time::Duration;
use tokio::time::{Instant, advance};

const KEYS: [u8; 6] = [0, 1, 2, 3, 4, 5];

const HOUR: u64 = 3_600_000_000_000;
const YEAR: u64 = 365 * 24 * HOUR;

/// A limiter to be had for each key, and once more for each alone.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Bucket(Rate, u32),
    /// In steps from when it is made, or from so many nanoseconds later.
    Steps(Rate, u32, Option<u64>),
    Leaky(Rate, u32, u32),
    /// Of so many nanoseconds, in step with its construction, the wall clock, or a time to come.
    Window(u32, u64, Option<u64>),
}

/// One of them.
enum Alone {
    Limiter(Limiter),
    Leaky(LeakyBucket),
    Window(FixedWindow),
}

impl Kind {
    fn limiter(self) -> Alone {
        let steps = |begin: Option<u64>| match begin {
            None => Refill::Interval,
            Some(later) => Refill::IntervalAligned(Instant::now() + nanos(later)),
        };
        match self {
            Self::Bucket(rate, burst) => Alone::Limiter(Limiter::new(rate, burst)),
            Self::Steps(rate, burst, begin) => Alone::Limiter(
                Limiter::builder(rate).burst(burst).refill(steps(begin)).build().unwrap(),
            ),
            Self::Leaky(rate, capacity, delay) => {
                let bucket = LeakyBucket::builder(rate, capacity).delay(delay.min(capacity));
                Alone::Leaky(bucket.build().unwrap())
            }
            Self::Window(limit, window, begin) => {
                let align = match begin {
                    None => Align::Construction,
                    Some(later) => Align::At(Instant::now() + nanos(later)),
                };
                let window = FixedWindow::builder(limit, nanos(window)).align(align);
                Alone::Window(window.build().unwrap())
            }
        }
    }

    fn quota(self) -> Quota {
        match self.limiter() {
            Alone::Limiter(limiter) => limiter.into(),
            Alone::Leaky(bucket) => bucket.into(),
            Alone::Window(window) => window.into(),
        }
    }

    /// What a key is set to, if it may be set apart: not in steps, which begin when that is done.
    fn settings(self) -> Option<(Rate, u32)> {
        match self {
            Self::Bucket(rate, burst) => Some((rate, burst)),
            _ => None,
        }
    }
}

impl Alone {
    fn any(&self) -> &dyn DynRateLimit {
        match self {
            Self::Limiter(limiter) => limiter,
            Self::Leaky(bucket) => bucket,
            Self::Window(window) => window,
        }
    }

    /// If it can book ahead, and be set to another rate and burst.
    fn limiter(&self) -> Option<&Limiter> {
        match self {
            Self::Limiter(limiter) => Some(limiter),
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Try(u8, u32),
    Acquire(u8, u32, Option<u64>, Option<u64>),
    Drop(usize),
    Reserve(u8, u32),
    Cancel(usize),
    Refund(usize),
    Wait(u64),
    Rate(Rate),
    Burst(u32),
    RateOf(u8, Rate),
    BurstOf(u8, u32),
    Reset(u8),
    Tidy,
}

/// How fast it may be set to be.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rates {
    Any,
    /// Such as mint a grain or more in each nanosecond. Only then is a key that has been set apart and
    /// is again as others the same to the nanosecond.
    Fast,
}

fn finite_rate(rates: Rates) -> impl Strategy<Value = Rate> {
    let or = |slow, fast| Just(if rates == Rates::Any { slow } else { fast });
    prop_oneof![
        4 => (1..30_u64).prop_map(Rate::per_second),
        1 => Just(Rate::per_second(333)),
        1 => Just(Rate::per_second(999_983)),
        1 => or(Rate::per_minute(7), Rate::per_second(7)),
        1 => or(Rate::per_day(1), Rate::per_second(1)),
    ]
}

fn rate(rates: Rates) -> impl Strategy<Value = Rate> {
    prop_oneof![8 => finite_rate(rates), 1 => Just(Rate::ZERO), 1 => Just(Rate::UNLIMITED)]
}

fn burst() -> impl Strategy<Value = u32> {
    prop_oneof![6 => 0..6_u32, 1 => Just(1_000_000)]
}

fn tokens() -> impl Strategy<Value = u32> {
    prop_oneof![8 => 0..5_u32, 1 => Just(1_000_000)]
}

fn wait() -> impl Strategy<Value = u64> {
    prop_oneof![
        2 => 0..3_u64,
        4 => 0..200_000_000_u64,
        4 => 0..5_000_000_000_u64,
        1 => 0..3 * HOUR,
        1 => 0..3 * YEAR,
    ]
}

fn kind(rates: Rates) -> impl Strategy<Value = Kind> {
    let begin = || prop::option::of(0..10_000_000_000_u64);
    let window = prop_oneof![Just(1_000_000_000_u64), 1..9_999_999_999_u64];
    prop_oneof![
        3 => (rate(rates), burst()).prop_map(|(rate, burst)| Kind::Bucket(rate, burst)),
        1 => (rate(rates), burst(), begin())
            .prop_map(|(rate, burst, begin)| Kind::Steps(rate, burst, begin)),
        1 => (finite_rate(rates), 1..5_u32, 1..5_u32)
            .prop_map(|(rate, capacity, delay)| Kind::Leaky(rate, capacity, delay)),
        1 => (1..6_u32, window, begin())
            .prop_map(|(limit, window, begin)| Kind::Window(limit, window, begin)),
    ]
}

fn key() -> impl Strategy<Value = u8> {
    prop::sample::select(&KEYS[..])
}

fn step(rates: Rates) -> impl Strategy<Value = Step> {
    let reset = move |key| if rates == Rates::Fast { Step::Reset(key) } else { Step::Tidy };
    let bound = || prop::option::weighted(0.3, 0..2_000_000_000_u64);
    prop_oneof![
        6 => (key(), tokens()).prop_map(|(key, n)| Step::Try(key, n)),
        4 => (key(), tokens(), bound(), bound())
            .prop_map(|(key, n, within, before)| Step::Acquire(key, n, within, before)),
        2 => any::<usize>().prop_map(Step::Drop),
        2 => (key(), tokens()).prop_map(|(key, n)| Step::Reserve(key, n)),
        1 => any::<usize>().prop_map(Step::Cancel),
        1 => any::<usize>().prop_map(Step::Refund),
        4 => wait().prop_map(Step::Wait),
        1 => rate(rates).prop_map(Step::Rate),
        1 => burst().prop_map(Step::Burst),
        1 => (key(), rate(rates)).prop_map(|(key, rate)| Step::RateOf(key, rate)),
        1 => (key(), burst()).prop_map(|(key, burst)| Step::BurstOf(key, burst)),
        1 => key().prop_map(reset),
        1 => Just(Step::Tidy),
    ]
}

type Waiting<'a> = Pin<Box<dyn Future<Output = Result<Duration, AcquireError>> + 'a>>;

/// A key's limiter beside the one that it must be like.
struct Both<'a> {
    keyed: &'a Keyed<u8>,
    alone: &'a [Alone],
    waiting: Vec<(Waiting<'a>, Waiting<'a>)>,
    turns: Vec<(Reservation<'a>, Reservation<'a>)>,
    /// What each quota is set to whose keys may be set apart, and which of them are.
    settings: Vec<Option<(Rate, u32)>>,
    apart: [bool; KEYS.len()],
}

impl<'a> Both<'a> {
    fn alone(&self, key: u8) -> &'a Alone {
        &self.alone[usize::from(key)]
    }

    /// The limiters of keys that go by their quotas, if all can be set.
    fn alike(&self) -> Option<Vec<&'a Limiter>> {
        let limiters: Option<Vec<_>> = self.alone.iter().map(Alone::limiter).collect();
        let apart = self.apart.into_iter();
        Some(
            limiters?
                .into_iter()
                .zip(apart)
                .filter(|(_, apart)| !apart)
                .map(|(of, _)| of)
                .collect(),
        )
    }

    /// The limiter of `key`, and what those of its quota are set to, if it may be set apart.
    fn settable(&self, key: u8) -> Option<(&'a Limiter, (Rate, u32))> {
        let settings = self.settings[usize::from(key) % self.settings.len()]?;
        Some((self.alone(key).limiter()?, settings))
    }

    async fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Try(key, n) => {
                let peek = self.keyed.peek_many(&key, n).map_err(|e| e.retry_after());
                let one = self.keyed.try_acquire_many(&key, n).map_err(|e| e.retry_after());
                let other = self.alone(key).any().try_acquire_many(n).map_err(|e| e.retry_after());
                prop_assert_eq!(one, other, "{}", key);
                prop_assert_eq!(peek, one, "{}", key);
            }
            Step::Acquire(key, n, within, before) => {
                let key = &KEYS[usize::from(key)];
                let mut one = self.keyed.acquire_many(key, n);
                if let Some(within) = within {
                    one = one.within(nanos(within));
                }
                if let Some(before) = before {
                    // In a third of the cases it has passed.
                    one = one.before(Instant::now() + nanos(before) - nanos(600_000_000));
                }
                let other = self.other(*key, n, within, before);
                self.waiting.push((Box::pin(one), other));
            }
            Step::Drop(index) if !self.waiting.is_empty() => {
                drop(self.waiting.swap_remove(index % self.waiting.len()));
            }
            Step::Reserve(key, n) => {
                if let Some(other) = self.alone(key).limiter() {
                    let (one, other) = (self.keyed.reserve_many(&key, n), other.reserve_many(n));
                    let delay = |turn: &Reservation<'_>| turn.delay();
                    prop_assert_eq!(one.as_ref().map(delay), other.as_ref().map(delay), "{}", key);
                    self.turns.extend(one.ok().zip(other.ok()));
                }
            }
            Step::Cancel(index) if !self.turns.is_empty() => {
                let (one, other) = self.turns.swap_remove(index % self.turns.len());
                one.cancel();
                other.cancel();
            }
            Step::Refund(index) if !self.turns.is_empty() => {
                let (one, other) = self.turns.swap_remove(index % self.turns.len());
                one.refund();
                other.refund();
            }
            Step::Wait(nanoseconds) => advance(nanos(nanoseconds)).await,
            Step::Rate(rate) => {
                if let Some(limiters) = self.alike() {
                    if self.keyed.set_rate(rate).is_ok() {
                        for of in limiters {
                            of.set_rate(rate).unwrap();
                        }
                        self.settings.iter_mut().flatten().for_each(|(present, _)| *present = rate);
                    }
                }
            }
            Step::Burst(burst) => {
                if let Some(limiters) = self.alike() {
                    if self.keyed.set_burst(burst).is_ok() {
                        for of in limiters {
                            of.set_burst(burst).unwrap();
                        }
                        self.settings
                            .iter_mut()
                            .flatten()
                            .for_each(|(_, present)| *present = burst);
                    }
                }
            }
            Step::RateOf(key, rate) => {
                if let Some((other, _)) = self.settable(key) {
                    let set = other.set_rate(rate);
                    self.apart[usize::from(key)] |= set.is_ok();
                    prop_assert_eq!(self.keyed.set_rate_of(&key, rate), set);
                }
            }
            Step::BurstOf(key, burst) => {
                if let Some((other, _)) = self.settable(key) {
                    let set = other.set_burst(burst);
                    self.apart[usize::from(key)] |= set.is_ok();
                    prop_assert_eq!(self.keyed.set_burst_of(&key, burst), set);
                }
            }
            Step::Reset(key) => {
                self.keyed.reset(&key);
                if let Some((other, (rate, burst))) = self.settable(key) {
                    other.set_rate(rate).unwrap();
                    other.set_burst(burst).unwrap();
                    self.apart[usize::from(key)] = false;
                }
            }
            Step::Tidy => self.keyed.retain_busy(),
            Step::Drop(_) | Step::Cancel(_) | Step::Refund(_) => {}
        }
        Ok(())
    }

    fn other(&self, key: u8, n: u32, within: Option<u64>, before: Option<u64>) -> Waiting<'a> {
        let limiter = self.alone(key).any();
        let deadline = before.map(|before| Instant::now() + nanos(before) - nanos(600_000_000));
        match (within, deadline) {
            (None, None) => limiter.acquire_many(n),
            (Some(within), None) => limiter.acquire_many_within(n, nanos(within)),
            (None, Some(deadline)) => limiter.acquire_many_before(n, deadline),
            // It is polled at once, so that is the same.
            (Some(within), Some(deadline)) => {
                limiter.acquire_many_before(n, deadline.min(Instant::now() + nanos(within)))
            }
        }
    }

    /// Polls all who wait, and looks at all keys.
    fn look(&mut self) -> Result<(), TestCaseError> {
        let mut index = 0;
        while let Some((one, other)) = self.waiting.get_mut(index) {
            let (one, other) = (one.now_or_never(), other.now_or_never());
            prop_assert_eq!(&one, &other);
            if one.is_some() {
                drop(self.waiting.remove(index));
            } else {
                index += 1;
            }
        }
        for (key, alone) in KEYS.iter().zip(self.alone) {
            let Some(other) = alone.limiter() else { continue };
            let (one, other) = (self.keyed.tokens(key), other.tokens());
            let about = (one - other).abs() <= 1e-9 * other.abs().max(1.0);
            prop_assert!(about, "{}: {} {}", key, one, other);
        }
        Ok(())
    }
}

fn check(kinds: &[Kind], start: u64, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    // All polls are made by hand, so none is to be put off.
    runtime.block_on(tokio::task::unconstrained(async {
        advance(nanos(start)).await;
        let [first, others @ ..] = kinds else { unreachable!("there is one") };
        let count = kinds.len();
        let keyed = Keyed::builder(first.quota());
        let others: Vec<_> = others.iter().map(|kind| kind.quota()).collect();
        let keyed = keyed.quotas(others, move |key| usize::from(*key) % count).build().unwrap();
        let of = |key: &u8| kinds[usize::from(*key) % count].limiter();
        let alone: Vec<_> = KEYS.iter().map(of).collect();
        let mut both = Both {
            keyed: &keyed,
            alone: &alone,
            waiting: Vec::new(),
            turns: Vec::new(),
            settings: kinds.iter().map(|kind| kind.settings()).collect(),
            apart: [false; KEYS.len()],
        };
        for step in steps {
            both.step(step).await?;
            both.look()?;
        }
        // What is left when all have gone is what nobody has forgotten or waits for.
        both.waiting.clear();
        both.turns.clear();
        both.look()?;
        keyed.retain_busy();
        prop_assert!(keyed.len() <= KEYS.len());
        both.look()
    }))
}

fn case(
    kinds: std::ops::Range<usize>,
    steps: usize,
) -> impl Strategy<Value = (Vec<Kind>, Vec<Step>)> {
    prop_oneof![Just(Rates::Any), Just(Rates::Fast)].prop_flat_map(move |rates| {
        let kinds = prop::collection::vec(kind(rates), kinds.clone());
        (kinds, prop::collection::vec(step(rates), 1..steps))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn each_key_is_as_a_limiter_of_its_own(
        (kinds, steps) in case(1..2, 120),
        start in 0..3_000_000_000_u64,
    ) {
        check(&kinds, start, steps)?;
    }

    #[test]
    fn each_key_is_as_a_limiter_of_the_kind_that_it_is_said_to_have(
        (kinds, steps) in case(2..4, 80),
        start in 0..3_000_000_000_u64,
    ) {
        check(&kinds, start, steps)?;
    }
}

fn nanos(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}
