//! The traces of Go: sequences of operations, and what they did.

use paceline::Rate;
use std::time::Duration;

pub(crate) const TRACES: &str = include_str!("../data/go-rate-traces.txt");

/// A sequence of operations on one limiter, up to where Go and we are meant to differ.
pub(crate) struct Trace {
    pub(crate) number: u32,
    pub(crate) limit: Limit,
    pub(crate) burst: u32,
    /// Whether every limit in the whole sequence is one event in a whole number of nanoseconds.
    pub(crate) exact: bool,
    /// Whether the sequence is here to its end.
    pub(crate) whole: bool,
    pub(crate) steps: Vec<Step>,
}

/// One operation, and what it did in Go.
pub(crate) struct Step {
    /// Nanoseconds since the first operation.
    pub(crate) at: u64,
    pub(crate) call: Call,
    pub(crate) answer: Answer,
    /// The tokens right after it.
    pub(crate) tokens: f64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Call {
    TryAcquire { n: u32 },
    Reserve { id: u32, n: u32 },
    Cancel { id: u32 },
    DelayFrom { id: u32 },
    SetRate(Limit),
    SetBurst(u32),
    Tokens,
}

impl Call {
    /// Whether it asks for no tokens at all.
    pub(crate) fn is_of_nothing(self) -> bool {
        matches!(self, Self::TryAcquire { n: 0 } | Self::Reserve { n: 0, .. })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Granted,
    Refused,
    Delay(Delay),
    /// Nothing but the tokens tell what it did.
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delay {
    Nanos(u64),
    Never,
}

/// Events per second as Go keeps them, and the nanoseconds of one if they are a whole number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub(crate) per_second: f64,
    pub(crate) interval: Option<u64>,
}

impl Limit {
    pub(crate) fn rate(self) -> Rate {
        // Go's number is the nearest to the rate that is meant; where that one is known, it is
        // used.
        let rate = match self.interval {
            Some(nanos) => Rate::new(1, Duration::from_nanos(nanos)),
            None => Rate::from_per_second(self.per_second),
        };
        rate.unwrap_or_else(|error| panic!("{self:?}: {error}"))
    }
}

impl Trace {
    /// All limits that it sets, from the one that it starts with.
    pub(crate) fn limits(&self) -> impl Iterator<Item = Limit> {
        let later = self.steps.iter().filter_map(|step| match step.call {
            Call::SetRate(limit) => Some(limit),
            _ => None,
        });
        std::iter::once(self.limit).chain(later)
    }

    /// All bursts that it sets, from the one that it starts with.
    pub(crate) fn bursts(&self) -> impl Iterator<Item = u32> {
        let later = self.steps.iter().filter_map(|step| match step.call {
            Call::SetBurst(burst) => Some(burst),
            _ => None,
        });
        std::iter::once(self.burst).chain(later)
    }
}

/// From text to traces: the format is described in `tests/data/README.md`.
pub(crate) mod parse {
    use super::{Answer, Call, Delay, Limit, Step, Trace};
    use std::fmt::Debug;
    use std::str::FromStr;

    pub(crate) fn traces(text: &str) -> Vec<Trace> {
        let mut traces: Vec<Trace> = Vec::new();
        for line in text.lines() {
            let words: Vec<_> = line.split(' ').collect();
            if let ["sequence", header @ ..] = &words[..] {
                traces.push(header_of(header, line));
            } else {
                traces.last_mut().expect("a header comes first").steps.push(step(&words, line));
            }
        }
        traces
    }

    fn header_of(words: &[&str], line: &str) -> Trace {
        let &[seq, limit, interval, burst, exact, end] = words else {
            panic!("not a header: {line}")
        };
        Trace {
            number: number(seq),
            limit: self::limit(limit, interval),
            burst: number(burst),
            exact: exact == "exact",
            whole: end == "whole",
            steps: Vec::new(),
        }
    }

    fn step(words: &[&str], line: &str) -> Step {
        let &[at, ref operation @ .., tokens] = words else { panic!("too short: {line}") };
        let (call, answer) = match *operation {
            ["allow", n, ok] => (Call::TryAcquire { n: number(n) }, permission(ok)),
            ["reserve", id, n, answer] => {
                let call = Call::Reserve { id: number(id), n: number(n) };
                let refused = answer == "refused";
                (call, if refused { Answer::Refused } else { Answer::Delay(delay(answer)) })
            }
            ["cancel", id] => (Call::Cancel { id: number(id) }, Answer::Done),
            ["delay", id, answer] => {
                (Call::DelayFrom { id: number(id) }, Answer::Delay(delay(answer)))
            }
            ["set_limit", per_second, interval] => {
                (Call::SetRate(limit(per_second, interval)), Answer::Done)
            }
            ["set_burst", burst] => (Call::SetBurst(number(burst)), Answer::Done),
            ["tokens"] => (Call::Tokens, Answer::Done),
            _ => panic!("not an operation: {line}"),
        };
        Step { at: number(at), call, answer, tokens: number(tokens) }
    }

    fn limit(per_second: &str, interval: &str) -> Limit {
        Limit {
            per_second: number(per_second),
            interval: (interval != "-").then(|| number(interval)),
        }
    }

    fn permission(word: &str) -> Answer {
        match word {
            "yes" => Answer::Granted,
            "no" => Answer::Refused,
            _ => panic!("neither yes nor no: {word}"),
        }
    }

    fn delay(word: &str) -> Delay {
        if word == "never" { Delay::Never } else { Delay::Nanos(number(word)) }
    }

    fn number<T: FromStr<Err: Debug>>(word: &str) -> T {
        word.parse().unwrap_or_else(|error| panic!("{word:?} is no number: {error:?}"))
    }
}
