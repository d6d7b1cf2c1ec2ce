//! What Guava's `RateLimiter` answered must be what the smooth limiters answer, at the same times.
//!
//! The traces are recorded results of Guava; `tests/data/README.md` says how they are written. Where
//! Guava is wrong, or we differ on purpose, a sequence ends for us; each reason has a name here.

#[allow(dead_code, reason = "each test takes what it needs")]
mod common;

use common::{at, frozen};
use paceline::smooth::{Builder, SmoothBursty, SmoothWarmingUp};
use paceline::{Rate, TryAcquireError};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

const RANDOM: &str = include_str!("data/guava-traces.jsonl");
const NAMED: &str = include_str!("data/guava-named-traces.jsonl");

/// Beyond it Guava, which drops the fraction of a microsecond at each grant, is too fast by more than
/// 8 %, and at last without any limit.
const FASTEST_THAT_GUAVA_KEEPS: f64 = 80_000.0;

/// Why a sequence is not compared to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    /// It is.
    Whole,
    /// Guava cannot keep the rate.
    TooFastForGuava,
    /// Guava waits for a debt although the rate has become unlimited.
    DebtWithoutLimit,
    /// Guava's clock has stepped back, and it refuses what is in store.
    ClockBack,
    /// Guava reckons with NaN and grants everything.
    NoWarmup,
    /// A try comes so near to its turn that Guava's rounding decides.
    Edge,
}

#[test]
fn the_random_sequences_agree() {
    let tally = replay_all(RANDOM);
    println!("{tally:?}");
    assert_eq!(tally.compared, RANDOM_COMPARED);
    assert_eq!(
        tally.ends,
        BTreeMap::from([(End::Whole, 224), (End::TooFastForGuava, 73), (End::Edge, 3)])
    );
}

#[test]
fn the_named_situations_agree() {
    let tally = replay_all(NAMED);
    println!("{tally:?}");
    assert_eq!(tally.compared, NAMED_COMPARED);
    assert_eq!(
        tally.ends,
        BTreeMap::from([
            (End::Whole, 21),
            (End::TooFastForGuava, 2),
            (End::DebtWithoutLimit, 2),
            (End::ClockBack, 1),
            (End::NoWarmup, 1),
        ])
    );
}

/// So that a trace that is lost is missed.
const RANDOM_COMPARED: u32 = 4_837;
const NAMED_COMPARED: u32 = 230;

#[derive(Debug, Default)]
struct Tally {
    compared: u32,
    ends: BTreeMap<End, u32>,
}

fn replay_all(traces: &str) -> Tally {
    let mut tally = Tally::default();
    for line in traces.lines() {
        let trace: Value = serde_json::from_str(line).expect("a JSON object a line");
        let end = frozen(|base| replay(&trace, base, &mut tally.compared));
        *tally.ends.entry(end).or_default() += 1;
    }
    tally
}

enum Limiter {
    Bursty(SmoothBursty),
    WarmingUp(SmoothWarmingUp),
}

/// Calls a method of either.
macro_rules! either {
    ($limiter:expr, $it:ident => $call:expr) => {
        match $limiter {
            Limiter::Bursty($it) => $call,
            Limiter::WarmingUp($it) => $call,
        }
    };
}

impl Limiter {
    fn of(trace: &Value) -> Self {
        let builder = Builder::new(rate(&trace["rate"]));
        if trace["kind"] == "bursty" {
            let seconds = trace["max_burst_seconds"].as_f64().expect("a number");
            return Self::Bursty(
                builder.max_burst(Duration::from_secs_f64(seconds)).build_bursty(),
            );
        }
        let factor = trace["cold_factor"].as_f64().expect("a number");
        let warmup = Duration::from_micros(trace["warmup_us"].as_u64().expect("whole"));
        Self::WarmingUp(builder.cold_factor(factor).build_warming_up(warmup))
    }

    fn reserve(&self, n: u32, now: Instant) -> Wait {
        match either!(self, it => it.reserve_many_at(n, now)) {
            Ok(wait) => Wait::Nanos(nanos(wait)),
            Err(_) => Wait::Never,
        }
    }

    /// Guava's tryAcquire(n, timeout).
    fn try_within(&self, n: u32, timeout: u64, now: Instant) -> Result<Wait, Wait> {
        match either!(self, it => it.try_acquire_many_at(n, now)) {
            Ok(()) => Ok(Wait::Nanos(0)),
            Err(refused @ TryAcquireError::Limited(_)) => match refused.retry_after().map(nanos) {
                Some(wait) if wait <= timeout => {
                    assert_eq!(self.reserve(n, now), Wait::Nanos(wait), "as it was told");
                    Ok(Wait::Nanos(wait))
                }
                wait => Err(wait.map_or(Wait::Never, Wait::Nanos)),
            },
            Err(other) => panic!("{other}"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    Nanos(u64),
    Never,
}

impl Wait {
    /// Of Guava, for which the end of 64 bits is never.
    fn recorded(op: &Value) -> Self {
        let micros = op["wait_us"].as_u64().expect("whole");
        micros.checked_mul(1_000).map_or(Self::Never, Self::Nanos)
    }

    fn is_within(self, other: Self, tolerance: u64) -> bool {
        match (self, other) {
            (Self::Nanos(ours), Self::Nanos(theirs)) => ours.abs_diff(theirs) <= tolerance,
            _ => self == other,
        }
    }
}

/// Performs a trace and compares, up to where it ends for us.
fn replay(trace: &Value, base: Instant, compared: &mut u32) -> End {
    if trace["warmup_us"] == 0 {
        return End::NoWarmup;
    }
    let limiter = Limiter::of(trace);
    let mut now: u64 = 0;
    let mut per_second = number(&trace["rate"]);
    let mut operations = 0;
    for (index, op) in trace["ops"].as_array().expect("a list").iter().enumerate() {
        let context = || format!("{} {} {index}: {op}", trace["tag"], trace["id"]);
        if per_second > FASTEST_THAT_GUAVA_KEEPS && per_second.is_finite() {
            return End::TooFastForGuava;
        }
        if op["op"] == "adv" {
            let step = op["ns"].as_i64().expect("whole");
            if step < 0 {
                return End::ClockBack;
            }
            now += step.unsigned_abs();
            continue;
        }
        operations += 1;
        // Guava drops up to a microsecond with each.
        let tolerance = (2_000 * operations).min(20_000);
        let n = op["n"].as_u64().map_or(0, |n| u32::try_from(n).expect("an int in Java"));
        let time = at(base, now);
        let agreed = match op["op"].as_str().expect("a name") {
            "rate" => {
                per_second = number(&op["rate"]);
                either!(&limiter, it => it.set_rate_at(rate(&op["rate"]), time)).unwrap();
                true
            }
            "acq" | "res" => {
                let (ours, theirs) = (limiter.reserve(n, time), Wait::recorded(op));
                if per_second.is_infinite() && theirs != Wait::Nanos(0) {
                    assert_eq!(ours, Wait::Nanos(0), "{}", context());
                    return End::DebtWithoutLimit;
                }
                ours.is_within(theirs, tolerance)
            }
            "try" => {
                let timeout = op["timeout_ns"].as_i64().expect("whole").max(0).unsigned_abs();
                let ours = limiter.try_within(n, timeout, time);
                match (ours, op["ok"] == true) {
                    (Ok(ours), true) => ours.is_within(Wait::recorded(op), tolerance),
                    (Err(_), false) => true,
                    (Ok(wait) | Err(wait), _)
                        if wait.is_within(Wait::Nanos(timeout), tolerance) =>
                    {
                        return End::Edge;
                    }
                    _ => false,
                }
            }
            other => panic!("unknown: {other}"),
        };
        assert!(agreed, "{}", context());
        if op["op"] != "try" || op["ok"] == true {
            let stored = either!(&limiter, it => it.stored_permits_at(time));
            let theirs = number(&op["s"]);
            #[expect(clippy::cast_precision_loss, reason = "some microseconds")]
            let allowed = 1e-6 + 1.5e-9 * tolerance as f64 * per_second;
            let same = (stored - theirs).abs() <= allowed || !theirs.is_finite();
            assert!(same || per_second.is_infinite(), "{stored} stored, {}", context());
        }
        if op["op"] != "res" && op["op"] != "rate" {
            if let Wait::Nanos(wait) = Wait::recorded(op) {
                now += wait;
            }
        }
        *compared += 1;
    }
    End::Whole
}

/// Slower than the slowest that we can tell is the slowest.
fn rate(value: &Value) -> Rate {
    Rate::from_per_second(number(value)).unwrap_or(Rate::every(Duration::MAX))
}

/// A number, or one of the words that JSON has no number for.
fn number(value: &Value) -> f64 {
    match value.as_str() {
        Some(word) => word.parse().expect("inf or nan"),
        None => value.as_f64().expect("a number"),
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).expect("584 years at most")
}
