//! Who asks for what, and when.

use fastrand::Rng;
use std::iter;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Where on the time axis things happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grid {
    /// On whole milliseconds, as for callers that sleep on Tokio's timer before they ask. Nobody
    /// is ever woken late.
    Milliseconds,
    /// On any nanosecond. Who waits is woken up to a millisecond after its turn.
    Nanoseconds,
}

impl Grid {
    /// The first point at or after `time`.
    fn ceil(self, time: Duration) -> Duration {
        match self {
            Self::Milliseconds => ceil_to_millisecond(time),
            Self::Nanoseconds => time,
        }
    }
}

pub(crate) fn ceil_to_millisecond(time: Duration) -> Duration {
    let part = time.subsec_nanos() % 1_000_000;
    time + Duration::from_nanos(u64::from((1_000_000 - part) % 1_000_000))
}

/// Requests per second.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arrivals {
    Even(u32),
    Poisson(u32),
}

impl Arrivals {
    fn per_second(self) -> u32 {
        let (Self::Even(per_second) | Self::Poisson(per_second)) = self;
        per_second
    }
}

/// What callers ask of a limiter for some seconds.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) arrivals: Arrivals,
    /// What a request asks for is drawn from these.
    pub(crate) weights: Vec<u32>,
    /// How long a caller waits is drawn from here.
    pub(crate) patience: RangeInclusive<Duration>,
    pub(crate) seconds: u32,
    pub(crate) grid: Grid,
    pub(crate) seed: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    /// Since the limiter was made.
    pub(crate) at: Duration,
    pub(crate) tokens: u32,
    pub(crate) patience: Duration,
}

impl Load {
    /// When the last request has been made.
    pub(crate) fn end(&self) -> Duration {
        Duration::from_secs(u64::from(self.seconds))
    }

    /// All requests, in the order of their times.
    pub(crate) fn requests(&self) -> impl Iterator<Item = Request> {
        let mut rng = Rng::with_seed(self.seed);
        // The bucket is drawn on between two milliseconds, so turns come between two as well.
        let mut at = Duration::from_nanos(rng.u64(0..1_000_000));
        iter::from_fn(move || {
            let gap = match self.arrivals {
                Arrivals::Even(_) => 1.0,
                Arrivals::Poisson(_) => -(1.0 - rng.f64()).ln(),
            };
            at += Duration::from_secs_f64(gap / f64::from(self.arrivals.per_second()));
            let tokens = *rng.choice(&self.weights).expect("there are weights");
            let patience = self.grid.ceil(between(&mut rng, &self.patience));
            Some(Request { at: self.grid.ceil(at), tokens, patience })
        })
        .take_while(|request| request.at < self.end())
    }
}

fn between(rng: &mut Rng, range: &RangeInclusive<Duration>) -> Duration {
    let width = u64::try_from((*range.end() - *range.start()).as_nanos()).expect("seconds");
    *range.start() + Duration::from_nanos(rng.u64(0..=width))
}
