//! Prints how near to its turn a task is served that paces by a limiter, with `Builder::precise`
//! and without, and what that costs in processor time.
//!
//! `--quick` only shows that everything runs; `--only WORD` keeps the lines whose name contains the
//! word; `--runs N` paces so often, and what is printed is of all grants of all runs.

use paceline::{Limiter, Rate};
use paceline_peers::{
    awaited::{Awaited, Peer},
    measure::{Series, workers},
    options::Options,
    process,
    table::{Table, tenths},
    versions,
};
use std::{
    mem,
    process::ExitCode,
    time::{Duration, Instant},
};

const RATES: [(u32, &str); 3] = [(100, "100/s"), (1_000, "1k/s"), (10_000, "10k/s")];

/// What the documentation of `Builder::precise` speaks of: about as late as Tokio's timer is.
const MARGIN: Duration = Duration::from_millis(2);

/// What paces.
#[derive(Clone, Copy)]
enum Pacer {
    /// `reserve`, and `ready` of it: it says exactly when its turn is.
    Reserve { margin: Option<Duration> },
    /// `acquire`. It has the slack that it has unless something else is said, so turn `k` stays
    /// where it was however late the others were served, up to that.
    Acquire { margin: Option<Duration> },
    /// What a peer has to await.
    Peer(Peer),
}

const PACERS: [(&str, Pacer); 6] = [
    ("paceline reserve, precise", Pacer::Reserve { margin: Some(MARGIN) }),
    ("paceline acquire, precise", Pacer::Acquire { margin: Some(MARGIN) }),
    ("paceline reserve", Pacer::Reserve { margin: None }),
    ("paceline acquire", Pacer::Acquire { margin: None }),
    ("governor until_ready", Pacer::Peer(Peer::Governor)),
    ("leaky-bucket acquire", Pacer::Peer(Peer::LeakyBucket)),
];

fn main() -> ExitCode {
    match Options::from_args(std::env::args().skip(1)) {
        Ok(options) if options.rest.is_empty() => {
            run(&options);
            ExitCode::SUCCESS
        }
        Ok(_) | Err(_) => {
            eprintln!("usage: precise {}", Options::USAGE);
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) {
    let runs = options.runs.unwrap_or(if options.quick { 1 } else { 3 });
    let time = Duration::from_millis(if options.quick { 50 } else { 1_000 });
    println!(
        "One task that paces, burst 1, in a multi_thread runtime with one worker; runs: {runs}, {time:?} \
         each.\nPrecise: with a margin of {MARGIN:?}.\n{}.\n",
        versions::list(["tokio", "governor", "leaky-bucket"])
    );
    let mut table = Table::new(&[
        "",
        "after turn: median",
        "p99",
        "most",
        "off period: median",
        "p99",
        "most",
        "permits/s",
        "cores used",
    ]);
    for (rate, title) in RATES {
        table.section(&title);
        for (name, pacer) in PACERS.into_iter().filter(|(name, _)| options.wants(name)) {
            let mut all = Paced::default();
            for _ in 0..runs {
                all.add(pace(pacer, rate, time));
            }
            table.row(all.cells(name));
        }
    }
    print!("{table}");
    println!(
        "\nIn microseconds. After turn: of a reservation, after what `ready_at` said; of the grant `k` \
         of acquire,\nafter `k` periods from just before the limiter was made. (If the task stands \
         still for longer than the\nslack, all turns move, and that counts as late from then on.) The \
         peers tell no turn.\nOff period: how far the time since the last grant is from a period."
    );
}

/// When each grant came.
#[derive(Default)]
struct Paced {
    /// Microseconds after its turn, if that is known.
    after_turn: Vec<f64>,
    /// Microseconds between two grants, more or less than a period.
    off_period: Vec<f64>,
    time: Duration,
    cpu: Duration,
}

impl Paced {
    fn grant(&mut self, turn: Option<Instant>, last: Instant, now: Instant, period: Duration) {
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        self.after_turn.extend(turn.map(|turn| micros(now.saturating_duration_since(turn))));
        self.off_period.push(micros((now - last).abs_diff(period)));
    }

    fn add(&mut self, run: Self) {
        self.after_turn.extend(run.after_turn);
        self.off_period.extend(run.off_period);
        self.time += run.time;
        self.cpu += run.cpu;
    }

    #[expect(clippy::cast_precision_loss, reason = "some ten thousands")]
    fn cells(self, name: &str) -> Vec<String> {
        let time = self.time.as_secs_f64();
        let rate = self.off_period.len() as f64 / time;
        let mut cells = vec![format!("  {name}")];
        for micros in [self.after_turn, self.off_period] {
            let found = Series::new(micros);
            for (part, of) in [(1, 2), (99, 100), (1, 1)] {
                let cell = found.as_ref().map(|found| tenths(found.quantile(part, of)));
                cells.push(cell.unwrap_or_else(|| "-".to_owned()));
            }
        }
        cells.extend([format!("{rate:.0}"), format!("{:.3}", self.cpu.as_secs_f64() / time)]);
        cells
    }
}

fn pace(pacer: Pacer, rate: u32, time: Duration) -> Paced {
    let runtime = workers(1);
    // In a task, so that the worker runs it. `block_on` alone would run it on this thread.
    let task = runtime.spawn(async move {
        let period = Duration::from_secs(1) / rate;
        let mut line = Line::new(pacer, rate).await;
        let (mut grants, cpu, start) = (Paced::default(), process::cpu(), Instant::now());
        let mut now = start;
        while now < start + time {
            let turn = line.grant(period).await;
            let last = mem::replace(&mut now, Instant::now());
            grants.grant(turn, last, now, period);
        }
        Paced { time: now - start, cpu: process::cpu().saturating_sub(cpu), ..grants }
    });
    runtime.block_on(task).expect("no task fails")
}

/// A limiter that has nothing yet.
enum Line {
    Reserve(Limiter),
    /// With the turn of the last grant.
    Acquire(Limiter, Instant),
    Peer(Awaited),
}

impl Line {
    async fn new(pacer: Pacer, rate: u32) -> Self {
        match pacer {
            Pacer::Reserve { margin } => Self::Reserve(limiter(rate, margin)),
            Pacer::Acquire { margin } => {
                let start = Instant::now();
                Self::Acquire(limiter(rate, margin), start)
            }
            Pacer::Peer(peer) => {
                let limiter = Awaited::new(peer, rate, 1);
                limiter.acquire().await;
                Self::Peer(limiter)
            }
        }
    }

    /// Returns when the next permit is there, and says when that should have been.
    async fn grant(&mut self, period: Duration) -> Option<Instant> {
        match self {
            Self::Reserve(limiter) => {
                let turn = limiter.reserve().expect("the line has room");
                let at = turn.ready_at().expect("it comes").into_std();
                turn.ready().await.expect("it is open");
                Some(at)
            }
            Self::Acquire(limiter, turn) => {
                limiter.acquire().await.expect("it is open");
                *turn += period;
                Some(*turn)
            }
            Self::Peer(limiter) => {
                limiter.acquire().await;
                None
            }
        }
    }
}

fn limiter(rate: u32, margin: Option<Duration>) -> Limiter {
    let builder = Limiter::builder(Rate::per_second(rate.into())).initial(0);
    let builder = match margin {
        Some(margin) => builder.precise(margin),
        None => builder,
    };
    builder.build().expect("within what a limiter can be")
}
