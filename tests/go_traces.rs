//! What Go's `time/rate` answered must be what a [`Limiter`] answers, at the same times.
//!
//! The traces are recorded results of Go, cut where the two are meant to differ;
//! `tests/data/README.md` says how they are written, where they are cut, and why.

#[path = "go_traces/trace.rs"]
mod trace;

use std::collections::HashMap;
use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use paceline::{Limiter, Reservation, ReserveError, TryAcquireError};
use tokio::time::Instant;
use trace::{Answer, Call, Delay, Limit, Step, TRACES, Trace, parse};

/// What must have been compared in the end: a trace that is lost, or cut short by mistake, would
/// agree as well.
const EXPECTED: Tally = Tally { compared: 6_833, zero: 131, without_counterpart: 32, whole: 116 };

#[test]
fn a_limiter_with_the_usual_bounds_answers_as_go_did() {
    assert_agreement(Bounds::Usual);
}

/// The bounds decide how finely a limiter divides its tokens, so these answers are worked out on
/// another scale than the usual ones.
#[test]
fn a_limiter_bounded_by_what_it_is_set_to_answers_as_go_did() {
    assert_agreement(Bounds::Tight);
}

#[track_caller]
fn assert_agreement(bounds: Bounds) {
    let mut tally = Tally::default();
    let mut mismatches = Vec::new();
    for trace in parse::traces(TRACES) {
        match compare(&trace, bounds) {
            Ok(of_trace) => tally.add(&of_trace),
            Err(mismatch) => mismatches.push(mismatch.to_string()),
        }
    }
    assert!(mismatches.is_empty(), "with {bounds:?} bounds:\n{}", mismatches.join("\n"));
    assert_eq!(tally, EXPECTED);
}

// ---- What a limiter does -----------------------------------------------------------------------

/// What the limiter is told of the rates and bursts to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bounds {
    /// Nothing, unless they are beyond what every limiter can be set to.
    Usual,
    /// The largest that the trace sets.
    Tight,
}

impl Bounds {
    fn limiter_for(self, trace: &Trace) -> Limiter {
        let rate = trace.limit.rate();
        // Unlimited is in no need of a bound.
        let finite = trace.limits().filter(|limit| limit.per_second.is_finite());
        let fastest = finite.max_by(|a, b| a.per_second.total_cmp(&b.per_second));
        let largest = trace.bursts().max().expect("it starts with one");
        if self == Self::Usual && is_usual(trace, fastest, largest) {
            return Limiter::new(rate, trace.burst);
        }
        let builder = Limiter::builder(rate).burst(trace.burst).max_burst(largest);
        let builder = fastest.iter().fold(builder, |builder, it| builder.max_rate(it.rate()));
        builder.build().unwrap_or_else(|error| panic!("sequence {}: {error}", trace.number))
    }
}

/// Whether any limiter that starts as that of `trace` can be set to this rate and burst.
fn is_usual(trace: &Trace, fastest: Option<Limit>, largest: u32) -> bool {
    let start = trace.limit.per_second;
    let slow = 0.0 < start && start < 1.0 / 60.0;
    let (usual_rate, usual_burst) = if slow { (5e4, 10_000) } else { (1e7, 10_000_000) };
    let rate_fits = fastest.is_none_or(|it| it.per_second <= usual_rate || it.per_second <= start);
    rate_fits && largest <= usual_burst.max(trace.burst)
}

/// A limiter on which a trace is performed.
struct Replay<'a> {
    limiter: &'a Limiter,
    start: Instant,
    turns: HashMap<u32, Turn<'a>>,
}

/// What has become of a request for a reservation.
enum Turn<'a> {
    Refused,
    Booked(Reservation<'a>),
    Cancelled,
}

/// What the limiter says to a call, or an error that nobody expects. `None` if there is nothing to
/// call: Go has a reservation also when it is refused or cancelled.
type Reply = Result<Option<Answer>, String>;

impl<'a> Replay<'a> {
    /// The limiter is there before the trace starts: what is earlier would count as its start.
    fn on(limiter: &'a Limiter) -> Self {
        Self { limiter, start: Instant::now(), turns: HashMap::new() }
    }

    fn time(&self, at: u64) -> Instant {
        self.start + Duration::from_nanos(at)
    }

    fn tokens(&self, at: u64) -> f64 {
        self.limiter.tokens_at(self.time(at))
    }

    fn perform(&mut self, call: Call, at: u64) -> Reply {
        let now = self.time(at);
        match call {
            Call::TryAcquire { n } => self.try_acquire(n, now),
            Call::Reserve { id, n } => self.reserve(id, n, now),
            Call::Cancel { id } => self.cancel(id, now),
            Call::DelayFrom { id } => self.delay_from(id, now),
            Call::SetRate(limit) => done(self.limiter.set_rate_at(limit.rate(), now)),
            Call::SetBurst(burst) => done(self.limiter.set_burst_at(burst, now)),
            // They are compared after every step.
            Call::Tokens => Ok(Some(Answer::Done)),
        }
    }

    fn try_acquire(&self, n: u32, now: Instant) -> Reply {
        match self.limiter.try_acquire_many_at(n, now) {
            Ok(()) => Ok(Some(Answer::Granted)),
            Err(TryAcquireError::Limited(_) | TryAcquireError::ExceedsBurst { .. }) => {
                Ok(Some(Answer::Refused))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    fn reserve(&mut self, id: u32, n: u32, now: Instant) -> Reply {
        let (turn, reply) = match self.limiter.reserve_many_at(n, now) {
            Ok(reservation) => {
                let delay = delay_from(&reservation, now);
                (Turn::Booked(reservation), Ok(Some(Answer::Delay(delay))))
            }
            Err(ReserveError::ExceedsBurst { .. }) => (Turn::Refused, Ok(Some(Answer::Refused))),
            Err(error) => return Err(error.to_string()),
        };
        self.turns.insert(id, turn);
        reply
    }

    fn cancel(&mut self, id: u32, now: Instant) -> Reply {
        match self.turns.get_mut(&id) {
            Some(Turn::Refused) => Ok(None),
            Some(turn) => {
                // The second cancel of a reservation does nothing, since the first consumed it.
                if let Turn::Booked(reservation) = std::mem::replace(turn, Turn::Cancelled) {
                    reservation.cancel_at(now);
                }
                Ok(Some(Answer::Done))
            }
            None => Err(format!("there is no reservation {id}")),
        }
    }

    fn delay_from(&self, id: u32, now: Instant) -> Reply {
        match self.turns.get(&id) {
            Some(Turn::Booked(reservation)) => {
                Ok(Some(Answer::Delay(delay_from(reservation, now))))
            }
            Some(Turn::Cancelled | Turn::Refused) => Ok(None),
            None => Err(format!("there is no reservation {id}")),
        }
    }
}

fn done<E: Display>(result: Result<(), E>) -> Reply {
    result.map(|()| Some(Answer::Done)).map_err(|error| error.to_string())
}

fn delay_from(reservation: &Reservation<'_>, now: Instant) -> Delay {
    match reservation.delay_from(now) {
        Duration::MAX => Delay::Never,
        delay => Delay::Nanos(u64::try_from(delay.as_nanos()).expect("the line is no longer")),
    }
}

// ---- Whether the two agree ---------------------------------------------------------------------

/// How much of a trace was compared.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    compared: usize,
    /// Of `n = 0`, which is ours to define. They must leave the tokens as they left Go's.
    zero: usize,
    /// Cancels of what was refused, and delays of what was cancelled. Nothing is called for these.
    without_counterpart: usize,
    /// Sequences compared to their end.
    whole: usize,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.compared += other.compared;
        self.zero += other.zero;
        self.without_counterpart += other.without_counterpart;
        self.whole += other.whole;
    }
}

/// The first step at which a limiter and Go differ.
struct Mismatch<'a> {
    trace: &'a Trace,
    index: usize,
    what: String,
}

impl Display for Mismatch<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { trace, index, what } = self;
        let Step { at, call, .. } = &trace.steps[*index];
        write!(f, "sequence {}, index {index}, {call:?} at {at} ns: {what}", trace.number)
    }
}

fn compare(trace: &Trace, bounds: Bounds) -> Result<Tally, Mismatch<'_>> {
    let limiter = bounds.limiter_for(trace);
    let mut replay = Replay::on(&limiter);
    let mut tolerance = Tolerance::at_the_start_of(trace);
    let mut tally = Tally { whole: usize::from(trace.whole), ..Tally::default() };
    for (index, step) in trace.steps.iter().enumerate() {
        let mismatch = |what| Mismatch { trace, index, what };
        let answer = replay.perform(step.call, step.at).map_err(mismatch)?;
        tolerance.widen(step.call);
        match answer {
            _ if step.call.is_of_nothing() => tally.zero += 1,
            None => tally.without_counterpart += 1,
            Some(ours) if tolerance.allows_answer(ours, step.answer) => tally.compared += 1,
            Some(ours) => {
                return Err(mismatch(format!("Go says {:?}, we say {ours:?}", step.answer)));
            }
        }
        let tokens = replay.tokens(step.at);
        if !tolerance.allows_tokens(tokens, step.tokens) {
            return Err(mismatch(format!("Go has {:?} tokens, we have {tokens:?}", step.tokens)));
        }
    }
    Ok(tally)
}

/// How far apart the two may be, since Go reckons in `f64` seconds and rounds to nanoseconds.
enum Tolerance {
    /// While each limit is a whole number of nanoseconds an event, it is known by how many
    /// nanoseconds Go's times may have drifted.
    Exact {
        drift: f64,
        interval: f64,
    },
    Rounded {
        per_second: f64,
    },
}

impl Tolerance {
    fn at_the_start_of(trace: &Trace) -> Self {
        if trace.exact {
            Self::Exact { drift: 1.0, interval: interval(trace.limit) }
        } else {
            Self::Rounded { per_second: trace.limit.per_second }
        }
    }

    /// Takes in by how much `call` adds to it.
    fn widen(&mut self, call: Call) {
        match (self, call) {
            (Self::Exact { drift, .. }, Call::Cancel { .. }) => *drift += 1.0,
            (Self::Exact { drift, interval: old }, Call::SetRate(limit)) => {
                let new = interval(limit);
                *drift = *drift * f64::max(1.0, new / *old) + 1.0;
                *old = new;
            }
            (Self::Rounded { per_second }, Call::SetRate(limit)) => *per_second = limit.per_second,
            _ => {}
        }
    }

    fn allows_answer(&self, ours: Answer, theirs: Answer) -> bool {
        let (Answer::Delay(Delay::Nanos(ours)), Answer::Delay(Delay::Nanos(theirs))) =
            (ours, theirs)
        else {
            return ours == theirs;
        };
        let allowed = match self {
            Self::Exact { drift, .. } => *drift,
            Self::Rounded { .. } => f64::max(2.0, 8e-15 * float(theirs)),
        };
        float(ours.abs_diff(theirs)) <= allowed
    }

    fn allows_tokens(&self, ours: f64, theirs: f64) -> bool {
        // Without a limit everything is allowed: Go then has a full bucket, and we have no end.
        let allowed = match self {
            Self::Exact { drift, interval } => 1e-6 + (drift + 1.0) / interval,
            Self::Rounded { per_second } => 1e-6 + 3e-9 * per_second,
        };
        (ours - theirs).abs() <= allowed
    }
}

fn interval(limit: Limit) -> f64 {
    float(limit.interval.expect("an exact trace has whole intervals"))
}

#[expect(clippy::cast_precision_loss, reason = "Go's own times have this precision")]
fn float(nanos: u64) -> f64 {
    nanos as f64
}
