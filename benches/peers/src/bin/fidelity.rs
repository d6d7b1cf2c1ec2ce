//! Prints which part of its rate each limiter reaches in real time, and how evenly it serves.
//!
//! `--quick` only shows that everything runs; `--only WORD` keeps the crates whose name contains
//! the word; `--runs N` measures each figure so often and prints the median.

use paceline_peers::{
    awaited::{Awaited, Peer},
    measure::{middle, runtime},
    options::Options,
    table::Table,
    versions,
};
use std::{
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::time::sleep_until;

const RATES: [(u32, &str); 5] =
    [(100, "100/s"), (1_000, "1k/s"), (10_000, "10k/s"), (100_000, "100k/s"), (1_000_000, "1M/s")];

/// `async-speed-limit` is for bytes, and meant to be coarse.
const PEERS: [Peer; 5] =
    [Peer::Paceline, Peer::Governor, Peer::LeakyBucket, Peer::Ratelimit, Peer::Tower];

/// Our default.
const SLACK: Duration = Duration::from_millis(5);

fn main() -> ExitCode {
    match Options::from_args(std::env::args().skip(1)) {
        Ok(options) if options.rest.is_empty() => {
            run(&options);
            ExitCode::SUCCESS
        }
        Ok(_) | Err(_) => {
            eprintln!("usage: fidelity {}", Options::USAGE);
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) {
    let runs = options.runs.unwrap_or(if options.quick { 1 } else { 3 });
    let short = |time: Duration| if options.quick { time / 40 } else { time };
    let peers = PEERS.iter().copied().filter(|peer| options.wants(peer.name()));
    let peers: Vec<Peer> = peers.collect();
    println!(
        "Medians; runs: {runs}, each in a current_thread runtime of its own.\n{}.\n",
        versions::list(PEERS.map(Peer::name))
    );

    let time = short(Duration::from_secs(2));
    println!("Achieved / asked, from when the burst is spent, {time:?} each");
    let mut table = Table::new(&["", "100/s", "1k/s", "10k/s", "100k/s", "1M/s"]);
    for (title, tasks, burst) in [
        ("one looping task, burst 1", 1, 1),
        ("100 looping tasks, burst 1", 100, 1),
        ("one looping task, burst 10", 1, 10),
    ] {
        table.section(&title);
        for &peer in &peers {
            let mut cells = vec![format!("  {peer}")];
            let mut with_stalls = vec!["    and what stalls took".to_owned()];
            for (rate, _) in RATES {
                let mut stalled = Vec::new();
                let reached = median(runs, || {
                    let served = Loops { tasks, heavy: None, rate, burst }.run(peer, time);
                    let reached = served.per_second() / f64::from(rate);
                    stalled.push(reached + served.stalled());
                    reached
                });
                cells.push(format!("{reached:.3}"));
                with_stalls.push(format!("{:.3}", middle(stalled)));
            }
            table.row(cells);
            if peer == Peer::Paceline {
                table.row(with_stalls);
            }
        }
        if title.ends_with("task, burst 1") {
            // Recorded elsewhere, with golang.org/x/time/rate.
            let go = ["  Go x/time/rate, recorded", "1.000", "0.977", "0.181", "0.028", "0.015"];
            table.row(go.map(str::to_owned).to_vec());
        }
    }
    println!("{table}");
    println!(
        "Stalls: when no task was given anything for longer than the burst takes to fill and the\n\
         slack of {SLACK:?}, what was minted beyond that is lost, as the bound demands. On a\n\
         busy machine that is the system's doing, and then the sum says what the limiter reached.\n"
    );

    let time = short(Duration::from_secs(5));
    println!("How evenly permits are shared out, {time:?} each");
    let mut table = Table::new(&[
        "",
        "50 tasks, 1000/s: Jain's index",
        "fewest",
        "most",
        "acquire_many(10) beside ten acquire(), 100/s: its share",
    ]);
    for &peer in &peers {
        let mut fewest = Vec::new();
        let mut most = Vec::new();
        let even = median(runs, || {
            let served = Loops { tasks: 50, heavy: None, rate: 1_000, burst: 1 }.run(peer, time);
            fewest.push(served.extreme(Iterator::min));
            most.push(served.extreme(Iterator::max));
            served.evenness()
        });
        let share = peer.takes_many().then(|| {
            median(runs, || {
                let heavy = Some(10);
                Loops { tasks: 11, heavy, rate: 100, burst: 10 }.run(peer, time).share_of_last()
            })
        });
        table.row(vec![
            peer.to_string(),
            format!("{even:.4}"),
            format!("{:.0}", middle(fewest)),
            format!("{:.0}", middle(most)),
            share.map_or_else(|| "-".to_owned(), |share| format!("{share:.3}")),
        ]);
    }
    print!("{table}");
    println!(
        "An even share of the one that takes ten at a time is 0.5: ten for every ten of theirs."
    );
}

fn median(runs: u32, mut run: impl FnMut() -> f64) -> f64 {
    middle((0..runs).map(|_| run()).collect())
}

/// Tasks that do nothing but acquire, again and again.
#[derive(Clone, Copy)]
struct Loops {
    tasks: u32,
    /// How many the last of them takes at a time, if not one like the others.
    heavy: Option<u32>,
    rate: u32,
    burst: u32,
}

impl Loops {
    fn run(self, peer: Peer, time: Duration) -> Served {
        runtime().block_on(async move {
            let limiter = Arc::new(Awaited::new(peer, self.rate, self.burst));
            for _ in 0..self.burst {
                limiter.acquire().await;
            }
            let start = Instant::now();
            let end = start + time;
            let fills_in = Duration::from_secs(1) / self.rate * self.burst;
            let stalls = Arc::new(Stalls { patience: fills_in + SLACK, ..Stalls::default() });
            let tasks: Vec<_> = (0..self.tasks)
                .map(|task| {
                    let limiter = Arc::clone(&limiter);
                    let permits = self.heavy.filter(|_| task + 1 == self.tasks).unwrap_or(1);
                    let tally = Arc::new(AtomicU64::new(0));
                    let (mine, stalls) = (Arc::clone(&tally), Arc::clone(&stalls));
                    let task = async move {
                        let mut now = start;
                        while now < end {
                            match permits {
                                1 => limiter.acquire().await,
                                _ => limiter.acquire_many(permits).await,
                            }
                            now = Instant::now();
                            mine.fetch_add(permits.into(), Ordering::Relaxed);
                            stalls.given_at(now - start);
                        }
                    };
                    (tally, tokio::spawn(task))
                })
                .collect();
            sleep_until(end.into()).await;
            let mut permits = Vec::new();
            for (tally, task) in tasks {
                task.abort();
                permits.push(tally.load(Ordering::Relaxed));
            }
            let time = |nanos: &AtomicU64| Duration::from_nanos(nanos.load(Ordering::Relaxed));
            Served { permits, time: time(&stalls.last), stalls: time(&stalls.sum) }
        })
    }
}

/// When any task was last given something, and for how long none was that should have been.
///
/// In nanoseconds, and written in the one thread that there is.
#[derive(Default)]
struct Stalls {
    patience: Duration,
    last: AtomicU64,
    sum: AtomicU64,
}

impl Stalls {
    fn given_at(&self, time: Duration) {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).expect("not centuries");
        let gap = nanos(time) - self.last.swap(nanos(time), Ordering::Relaxed);
        self.sum.fetch_add(gap.saturating_sub(nanos(self.patience)), Ordering::Relaxed);
    }
}

/// What all tasks were given, until the last of it.
struct Served {
    permits: Vec<u64>,
    time: Duration,
    stalls: Duration,
}

#[expect(clippy::cast_precision_loss, reason = "some millions")]
impl Served {
    fn total(&self) -> f64 {
        self.permits.iter().sum::<u64>() as f64
    }

    /// From the spent burst to the last permit: at that moment, how many there were is exact.
    fn per_second(&self) -> f64 {
        match self.time {
            Duration::ZERO => 0.0,
            time => self.total() / time.as_secs_f64(),
        }
    }

    /// The part of the time that was lost in stalls.
    fn stalled(&self) -> f64 {
        match self.time {
            Duration::ZERO => 0.0,
            time => self.stalls.as_secs_f64() / time.as_secs_f64(),
        }
    }

    /// Jain's index: 1 when everybody got the same, 1 / n when one got it all.
    fn evenness(&self) -> f64 {
        let squares: f64 = self.permits.iter().map(|&permits| (permits as f64).powi(2)).sum();
        self.total().powi(2) / (squares.max(1.0) * self.permits.len() as f64)
    }

    fn share_of_last(&self) -> f64 {
        self.permits.last().copied().unwrap_or(0) as f64 / self.total().max(1.0)
    }

    fn extreme<'a>(
        &'a self,
        which: impl FnOnce(std::slice::Iter<'a, u64>) -> Option<&'a u64>,
    ) -> f64 {
        which(self.permits.iter()).map_or(0.0, |&permits| permits as f64)
    }
}
