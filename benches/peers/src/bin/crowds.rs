//! Prints what a crowd of waiters costs: memory, time to come and to go, and processor time.
//!
//! `--quick` only shows that everything runs; `--only WORD` keeps the crates whose name contains
//! the word; `--runs N` measures each crowd so often and prints the medians. Every figure is of a
//! process of its own.

use governor::{DefaultDirectRateLimiter, Quota};
use paceline::{Acquire, Limiter, Rate};
use paceline_peers::{
    again,
    awaited::{Awaited, Peer},
    measure::{middle, runtime},
    options::Options,
    process,
    table::Table,
    versions,
};
use std::{
    future::Future,
    hint::black_box,
    num::NonZeroU32,
    pin::Pin,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Waker},
    time::{Duration, Instant},
};
use tokio::{sync::Semaphore, time::sleep};

/// What a single permit takes to come back where nobody is to be served.
const HOUR: Duration = Duration::from_secs(60 * 60);

const CROWDS: [usize; 3] = [1_000, 100_000, 1_000_000];
const CROWDS_QUICK: [usize; 2] = [1_000, 10_000];

const SUBJECTS: [&str; 4] = ["paceline", "tokio Semaphore", "governor", "leaky-bucket"];

fn main() -> ExitCode {
    let result = Options::from_args(std::env::args().skip(1))
        .map_err(|message| format!("{message}\nusage: crowds {}", Options::USAGE))
        .and_then(|options| {
            let rest: Vec<&str> = options.rest.iter().map(String::as_str).collect();
            match rest[..] {
                [] => report(&options),
                ["crowd", subject, count, order] => one_crowd(subject, count, order),
                ["load", subject] => one_load(subject, options.quick),
                ["drop", count] => drop_at_once(count),
                _ => Err(format!("unknown arguments {rest:?}")),
            }
        });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn report(options: &Options) -> Result<(), String> {
    println!("{}.", versions::list(["paceline", "tokio", "governor", "leaky-bucket"]));
    println!("size_of::<Acquire>() is {} bytes.\n", size_of::<Acquire<'_>>());
    println!("{}", crowds(options)?);
    println!(
        "In order: those who came first go first. At random: in no order, so that the gaps that\n\
         they leave are as many as can be.\n"
    );
    println!("{}", loads(options)?);
    let count = if options.quick { "10000" } else { "100000" };
    println!("{}", again::once_more(&["drop".to_owned(), count.to_owned()])?);
    println!("A limiter without waiters has no task and no timer: nothing runs that could cost.");
    Ok(())
}

fn crowds(options: &Options) -> Result<Table, String> {
    let runs = options.runs.unwrap_or(if options.quick { 1 } else { 3 });
    let counts: &[usize] = if options.quick { &CROWDS_QUICK } else { &CROWDS };
    let mut table = Table::new(&[
        "waiters, each polled once",
        "bytes of the future",
        "resident bytes each",
        "ns to come",
        "ns to go, in order",
        "ns to go, at random",
    ]);
    for &count in counts {
        table.section(&format!("{count} waiters"));
        for subject in SUBJECTS.into_iter().filter(|subject| options.wants(subject)) {
            let measured = |order: &str| {
                let args = ["crowd", subject, &count.to_string(), order].map(str::to_owned);
                let starts = (0..runs).map(|_| numbers(&again::once_more(&args)?));
                let starts = starts.collect::<Result<Vec<_>, String>>()?;
                let column = |place: usize| starts.iter().map(|start| start[place]).collect();
                Ok::<_, String>([0, 1, 2, 3].map(|place| middle(column(place))))
            };
            let [size, resident, came, went] = measured("in-order")?;
            let [.., went_at_random] = measured("at-random")?;
            let whole = |figure: f64| format!("{figure:.0}");
            let mut cells = vec![format!("  {subject}")];
            cells.extend([size, resident, came, went, went_at_random].map(whole));
            table.row(cells);
        }
    }
    Ok(table)
}

fn loads(options: &Options) -> Result<Table, String> {
    let mut table = Table::new(&["10000 tasks that loop, at 1000/s", "permits/s", "cores used"]);
    for peer in [Peer::Paceline, Peer::Governor, Peer::LeakyBucket] {
        if !options.wants(peer.name()) {
            continue;
        }
        let mut args = vec!["load".to_owned(), peer.to_string()];
        args.extend(options.quick.then(|| "--quick".to_owned()));
        let found = numbers(&again::once_more(&args)?)?;
        table.row(vec![
            format!("  {peer}"),
            format!("{:.0}", found[0]),
            format!("{:.3}", found[1]),
        ]);
    }
    Ok(table)
}

/// What a start of this program printed for this program.
fn numbers(text: &str) -> Result<Vec<f64>, String> {
    text.split_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("a start printed {text:?}: {error}"))
}

fn one_crowd(subject: &str, count: &str, order: &str) -> Result<(), String> {
    let count = count.parse().map_err(|_| format!("not a number: {count:?}"))?;
    let at_random = order == "at-random";
    let runtime = runtime();
    // Entered, not blocked on: the waiters find the timer, and no budget of a task stops them.
    let _entered = runtime.enter();
    match subject {
        "paceline" => {
            let limiter = Limiter::new(Rate::every(HOUR), 1);
            limiter.try_acquire().expect("a new limiter is full");
            crowd(count, at_random, || limiter.acquire());
        }
        "tokio Semaphore" => {
            let semaphore = Semaphore::new(0);
            crowd(count, at_random, || semaphore.acquire());
        }
        "governor" => {
            let quota = Quota::with_period(HOUR).expect("an hour is not zero");
            let limiter =
                DefaultDirectRateLimiter::direct(quota.allow_burst(NonZeroU32::new(1).expect("1")));
            limiter.check().expect("a new limiter is full");
            crowd(count, at_random, || limiter.until_ready());
        }
        "leaky-bucket" => {
            let limiter =
                leaky_bucket::RateLimiter::builder().interval(HOUR).refill(1).max(1).build();
            crowd(count, at_random, || limiter.acquire_one());
        }
        _ => return Err(format!("no such subject: {subject:?}")),
    }
    Ok(())
}

/// Lets a crowd come and go, and prints the four figures.
#[expect(clippy::cast_precision_loss, reason = "some hundred megabytes")]
fn crowd<F: Future>(count: usize, at_random: bool, come: impl Fn() -> F) {
    let each = |time: Duration| time.as_secs_f64() * 1e9 / count as f64;
    // What the first one of all sets up is not what one costs.
    drop(wait(&come));
    let mut waiters = Vec::with_capacity(count);
    let before = process::resident();

    let start = Instant::now();
    for _ in 0..count {
        waiters.push(wait(&come));
    }
    let coming = start.elapsed();

    let grown = process::resident().zip(before).map(|(now, then)| now.saturating_sub(then));
    if at_random {
        shuffle(&mut waiters);
    }
    let start = Instant::now();
    for waiter in black_box(waiters) {
        drop(waiter);
    }
    let going = start.elapsed();
    println!(
        "{} {} {} {}",
        size_of::<F>(),
        grown.map_or(f64::NAN, |grown| grown as f64 / count as f64),
        each(coming),
        each(going)
    );
}

fn wait<F: Future>(come: impl Fn() -> F) -> Pin<Box<F>> {
    let mut waiter = Box::pin(come());
    let mut context = Context::from_waker(Waker::noop());
    assert!(waiter.as_mut().poll(&mut context).is_pending(), "there is nothing to be had");
    waiter
}

/// The same order in every run.
fn shuffle<T>(items: &mut [T]) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for end in (1..items.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let other = state % (end as u64 + 1);
        items.swap(end, usize::try_from(other).expect("an index"));
    }
}

/// Ten thousand tasks that wait most of the time, in the runtime that services use.
#[expect(clippy::cast_precision_loss, reason = "some thousands")]
fn one_load(subject: &str, quick: bool) -> Result<(), String> {
    const TASKS: u32 = 10_000;
    let peer = Peer::ALL.into_iter().find(|peer| peer.name() == subject);
    let peer = peer.ok_or_else(|| format!("no such subject: {subject:?}"))?;
    let time = if quick { Duration::from_millis(300) } else { Duration::from_secs(3) };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_time()
        .build()
        .map_err(|error| format!("a multi_thread runtime: {error}"))?;
    let limiter = runtime.block_on(async { Arc::new(Awaited::new(peer, 1_000, 1)) });
    let served = Arc::new(AtomicU64::new(0));
    for _ in 0..TASKS {
        let (limiter, served) = (Arc::clone(&limiter), Arc::clone(&served));
        runtime.spawn(async move {
            loop {
                limiter.acquire().await;
                // Relaxed: a count, and nothing else.
                served.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    runtime.block_on(async {
        // Until all of them wait.
        sleep(Duration::from_millis(500)).await;
        let (cpu, then, start) = (process::cpu(), served.load(Ordering::Relaxed), Instant::now());
        sleep(time).await;
        let (served, took) = (served.load(Ordering::Relaxed) - then, start.elapsed());
        let cores = process::cpu().saturating_sub(cpu).as_secs_f64() / took.as_secs_f64();
        println!("{} {cores}", served as f64 / took.as_secs_f64());
    });
    runtime.shutdown_background();
    Ok(())
}

/// Lets a crowd vanish, and makes sure that nothing is left of it.
///
/// # Panics
///
/// When tokens are.
fn drop_at_once(count: &str) -> Result<(), String> {
    let count: usize = count.parse().map_err(|_| format!("not a number: {count:?}"))?;
    let runtime = runtime();
    let _entered = runtime.enter();
    let limiter = Limiter::new(Rate::every(HOUR), 1);
    limiter.try_acquire().expect("a new limiter is full");
    // One time for all readings, so that nothing is minted in between.
    let now = tokio::time::Instant::now();
    let before = limiter.tokens_at(now);
    let memory = process::resident();
    let crowd = || (0..count).map(|_| wait(|| limiter.acquire())).collect::<Vec<_>>();
    let waiters = crowd();
    let (meanwhile, memory_meanwhile) = (limiter.tokens_at(now), process::resident());
    let start = Instant::now();
    drop(waiters);
    let took = start.elapsed();
    let after = limiter.tokens_at(now);
    // What was freed the allocator may keep. What was not freed shows when more come.
    for _ in 0..4 {
        drop(crowd());
    }
    let (at_last, memory_after) = (limiter.tokens_at(now), process::resident());
    #[expect(clippy::cast_precision_loss, reason = "some hundred thousand")]
    let owed = count as f64;
    assert!((before - meanwhile - owed).abs() < 1e-3, "{count} wait: {before} to {meanwhile}");
    assert!((before - after).abs() < 1e-3, "tokens were lost or made: {before} to {after}");
    assert!((before - at_last).abs() < 1e-3, "and later: {before} to {at_last}");
    limiter.set_rate(Rate::per_second(1_000)).expect("a rate that fits");
    let waited = runtime.block_on(limiter.acquire()).map_err(|error| error.to_string())?;
    let mib = |bytes: Option<usize>| {
        bytes.map_or_else(|| "-".to_owned(), |bytes| format!("{}", bytes >> 20))
    };
    println!(
        "{count} waiters dropped at once, in {took:.0?}: tokens {before:.3}, then {meanwhile:.3}, \
         then {after:.3};\nresident MiB {}, with them {}, after four more such crowds {}; \
         the next one, at 1000/s, waited {waited:.2?}.",
        mib(memory),
        mib(memory_meanwhile),
        mib(memory_after)
    );
    Ok(())
}
