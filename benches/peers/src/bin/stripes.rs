//! Prints which part of its rate `Striped` lets through when it is asked for more, how many permits
//! it gives when its rate is no limit, and both beside the plain limiter and governor.
//!
//! `--quick` only shows that everything runs; `--only WORD` keeps the lines whose name contains the
//! word; `--runs N` measures each figure so often and prints the median.

use governor::{DefaultDirectRateLimiter, Quota};
use paceline::{Limiter, Rate, Striped};
use paceline_peers::{
    measure::{middle, workers},
    options::Options,
    process,
    subjects::{FLOOD, FLOOD_BURST, RATE, STOCK, on_its_own_line},
    table::{Table, tenths},
    versions,
};
use std::{
    future::Future,
    num::NonZeroU32,
    process::ExitCode,
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use tokio::{task::JoinSet, time::sleep};

const THREADS: [usize; 3] = [1, 2, 16];
const BURST: u32 = 4_096;

const TASKS: usize = 16;
const WORKERS: usize = 2;

/// A limit.
#[derive(Clone, Copy)]
struct Limit {
    rate: u32,
    burst: u32,
    /// Whether the burst is spent before the time begins, so that the rate alone is what counts.
    spent: bool,
}

const LIMITS: [(&str, Limit); 3] = [
    ("100k/s", Limit { rate: 100_000, burst: BURST, spent: true }),
    ("1M/s", Limit { rate: 1_000_000, burst: BURST, spent: true }),
    ("10M/s", Limit { rate: 10_000_000, burst: BURST, spent: true }),
];

/// More than anybody can take: minted so fast that the bucket stays full, or in store.
const ENOUGH: [(&str, Limit); 2] = [
    ("a full bucket", Limit { rate: FLOOD, burst: FLOOD_BURST, spent: false }),
    ("a stock", Limit { rate: RATE, burst: STOCK, spent: false }),
];

/// What is compared.
trait Asked: Send + Sync + Sized + 'static {
    fn new(rate: u32, burst: u32) -> Self;

    /// Whether there was a permit.
    fn ask(&self) -> bool;

    fn acquire(&self) -> impl Future<Output = ()> + Send;
}

impl Asked for Striped {
    fn new(rate: u32, burst: u32) -> Self {
        Self::new(Rate::per_second(rate.into()), burst).expect("the burst is large")
    }

    fn ask(&self) -> bool {
        self.try_acquire().is_ok()
    }

    async fn acquire(&self) {
        self.acquire().await.expect("it is open");
    }
}

impl Asked for Limiter {
    fn new(rate: u32, burst: u32) -> Self {
        Self::new(Rate::per_second(rate.into()), burst)
    }

    fn ask(&self) -> bool {
        self.try_acquire().is_ok()
    }

    async fn acquire(&self) {
        self.acquire().await.expect("it is open");
    }
}

impl Asked for DefaultDirectRateLimiter {
    fn new(rate: u32, burst: u32) -> Self {
        let count = |count| NonZeroU32::new(count).expect("not zero");
        Self::direct(Quota::per_second(count(rate)).allow_burst(count(burst)))
    }

    fn ask(&self) -> bool {
        self.check().is_ok()
    }

    async fn acquire(&self) {
        self.until_ready().await;
    }
}

/// A limiter of the table.
struct Subject {
    name: &'static str,
    by_threads: fn(Limit, usize, Duration) -> Given,
    by_tasks: fn(Limit, Duration) -> Given,
}

impl Subject {
    const fn of<L: Asked>(name: &'static str) -> Self {
        Self { name, by_threads: by_threads::<L>, by_tasks: by_tasks::<L> }
    }
}

const SUBJECTS: [Subject; 3] = [
    Subject::of::<Striped>("paceline Striped"),
    Subject::of::<Limiter>("paceline Limiter"),
    Subject::of::<DefaultDirectRateLimiter>("governor"),
];

fn main() -> ExitCode {
    match Options::from_args(std::env::args().skip(1)) {
        Ok(options) if options.rest.is_empty() => {
            run(&options);
            ExitCode::SUCCESS
        }
        Ok(_) | Err(_) => {
            eprintln!("usage: stripes {}", Options::USAGE);
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) {
    let runs = options.runs.unwrap_or(if options.quick { 1 } else { 3 });
    let time = Duration::from_millis(if options.quick { 20 } else { 500 });
    let subjects = || SUBJECTS.into_iter().filter(|subject| options.wants(subject.name));
    println!(
        "Medians; runs: {runs}, {time:?} each. Cores: {}.\n{}.\n",
        thread::available_parallelism().map_or(0, usize::from),
        versions::list(["tokio", "governor"])
    );

    println!("Threads that try again and again; who is refused lets others run");
    let mut table = Table::new(&["", "1 thread", "2 threads", "16 threads"]);
    for (title, limit) in LIMITS {
        table.section(&format!("achieved / asked, {title}, burst {BURST}, from when it is spent"));
        for subject in subjects() {
            let mut cells = vec![format!("  {}", subject.name)];
            cells.extend(THREADS.map(|threads| {
                let run = |_| (subject.by_threads)(limit, threads, time).part_of(limit);
                format!("{:.4}", middle((0..runs).map(run).collect()))
            }));
            table.row(cells);
        }
    }
    for (title, limit) in ENOUGH {
        table.section(&format!("millions of permits a second in all, from {title}"));
        for subject in subjects() {
            let mut cells = vec![format!("  {}", subject.name)];
            cells.extend(THREADS.map(|threads| {
                let run = |_| (subject.by_threads)(limit, threads, time).per_second() / 1e6;
                tenths(middle((0..runs).map(run).collect()))
            }));
            table.row(cells);
        }
    }
    println!("{table}");

    println!("{TASKS} tasks that acquire again and again, on {WORKERS} workers; burst {BURST}");
    let mut table = Table::new(&["", "achieved / asked", "cores used"]);
    for (title, limit) in LIMITS {
        table.section(&title);
        for subject in subjects() {
            let runs: Vec<Given> = (0..runs).map(|_| (subject.by_tasks)(limit, time)).collect();
            table.row(vec![
                format!("  {}", subject.name),
                format!("{:.4}", middle(runs.iter().map(|run| run.part_of(limit)).collect())),
                format!("{:.2}", middle(runs.iter().map(Given::cores).collect())),
            ]);
        }
    }
    print!("{table}");
}

/// What all of them were given.
struct Given {
    permits: u64,
    time: Duration,
    cpu: Duration,
}

#[expect(clippy::cast_precision_loss, reason = "some hundred millions")]
impl Given {
    fn per_second(&self) -> f64 {
        self.permits as f64 / self.time.as_secs_f64()
    }

    fn part_of(&self, limit: Limit) -> f64 {
        self.per_second() / f64::from(limit.rate)
    }

    fn cores(&self) -> f64 {
        self.cpu.as_secs_f64() / self.time.as_secs_f64()
    }
}

fn made<L: Asked>(limit: Limit) -> &'static L {
    on_its_own_line(L::new(limit.rate, limit.burst))
}

/// Empties it, if it is to be empty.
fn spend(limiter: &impl Asked, limit: Limit) {
    while limit.spent && limiter.ask() {}
}

fn by_threads<L: Asked>(limit: Limit, threads: usize, time: Duration) -> Given {
    let limiter: &L = made(limit);
    let stop = AtomicBool::new(false);
    let all_here = Barrier::new(threads + 1);
    let ask = || {
        all_here.wait();
        let mut permits = 0;
        // Relaxed, here and below: it tells nothing but that it is over.
        while !stop.load(Ordering::Relaxed) {
            if limiter.ask() {
                permits += 1;
            } else {
                thread::yield_now();
            }
        }
        permits
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(ask)).collect();
        // They are there already: what is minted while they start would overflow.
        spend(limiter, limit);
        let (cpu, start) = (process::cpu(), Instant::now());
        all_here.wait();
        thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
        let (time, cpu) = (start.elapsed(), process::cpu().saturating_sub(cpu));
        let permits = threads.into_iter().map(|thread| thread.join().expect("it only asks")).sum();
        Given { permits, time, cpu }
    })
}

fn by_tasks<L: Asked>(limit: Limit, time: Duration) -> Given {
    let limiter: &L = made(limit);
    let stop = Arc::new(AtomicBool::new(false));
    workers(WORKERS).block_on(async {
        spend(limiter, limit);
        let (cpu, start) = (process::cpu(), Instant::now());
        let mut tasks = JoinSet::new();
        for _ in 0..TASKS {
            let stop = Arc::clone(&stop);
            tasks.spawn(async move {
                let mut permits = 0;
                loop {
                    limiter.acquire().await;
                    if stop.load(Ordering::Relaxed) {
                        break permits;
                    }
                    permits += 1;
                }
            });
        }
        sleep(time).await;
        stop.store(true, Ordering::Relaxed);
        let (time, cpu) = (start.elapsed(), process::cpu().saturating_sub(cpu));
        let permits = tasks.join_all().await.into_iter().sum();
        Given { permits, time, cpu }
    })
}
