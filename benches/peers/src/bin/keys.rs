//! Prints what a limiter per key costs: the time of a try, the memory of a key, and what a flood of
//! keys does to both; ours beside governor's, both by quanta's clock.
//!
//! `--quick` only shows that everything runs; `--only WORD` keeps the lines whose name contains the
//! word; `--runs N` takes more or fewer rounds.

#![expect(clippy::cast_precision_loss, reason = "figures for people")]

use core_affinity::CoreId;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use paceline::{Keyed, Limiter, Rate, keyed};
use paceline_peers::{
    again,
    measure::middle,
    options::Options,
    process,
    table::{Table, ratio, tenths},
    versions,
};
use std::{
    hint::black_box,
    num::NonZeroU32,
    process::ExitCode,
    sync::{Arc, Barrier},
    thread,
    time::Instant,
};

const KEYS: [(&str, usize); 3] =
    [("one hot key", 1), ("1 000 keys", 1_000), ("1 000 000 keys", 1_000_000)];

/// How many permits a key has to start with: more than a run takes.
const STOCK: u32 = 100_000_000;

/// How many it takes first, at one a second: so it is busy for an hour.
const BEGIN: u32 = 3_600;

/// Tries of each thread in a round.
const TRIES: u32 = 400_000;

/// The flood: so many keys that come once, where so many are kept.
const FLOOD: u64 = 10_000_000;
const CAP: usize = 100_000;

/// What is compared.
trait PerKey: Send + Sync {
    fn take(&self, key: u64) -> bool;

    /// Takes so much that the key is busy for long.
    fn begin(&self, key: u64);
}

impl PerKey for Keyed<u64> {
    fn take(&self, key: u64) -> bool {
        self.try_acquire(&key).is_ok()
    }

    fn begin(&self, key: u64) {
        self.try_acquire_many(&key, BEGIN).expect("it is not short");
    }
}

impl PerKey for DefaultKeyedRateLimiter<u64> {
    fn take(&self, key: u64) -> bool {
        self.check_key(&key).is_ok()
    }

    fn begin(&self, key: u64) {
        let many = NonZeroU32::new(BEGIN).expect("it is not zero");
        self.check_key_n(&key, many).expect("it is in stock").expect("it is not short");
    }
}

const OURS: &str = "paceline";
const GOVERNOR: &str = "governor";

/// Of a stock that lasts, which comes back slowly: so each key is busy, and none is short.
fn ours() -> Arc<dyn PerKey> {
    Arc::new(Keyed::<u64>::like(bucket(Rate::per_second(1), STOCK)))
}

fn bucket(rate: Rate, burst: u32) -> Limiter {
    let clock = paceline::Clock::Quanta(quanta::Clock::new());
    let builder = Limiter::builder(rate).burst(burst).clock(clock);
    builder.build().expect("nothing is out of range")
}

fn governor() -> Arc<dyn PerKey> {
    let count = |count| NonZeroU32::new(count).expect("it is not zero");
    let quota = Quota::per_second(count(1)).allow_burst(count(STOCK));
    Arc::new(RateLimiter::keyed(quota))
}

/// As different as keys are.
fn key(index: u64) -> u64 {
    let mixed = (index ^ (index >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ (mixed >> 27)
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match Options::from_args(args.iter().cloned()).and_then(|options| run(&options, &args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}\nusage: keys {}", Options::USAGE);
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options, args: &[String]) -> Result<(), String> {
    if let [part] = &options.rest[..] {
        println!("{}", measured_alone(part, options.quick)?);
        return Ok(());
    }
    println!(
        "Peer: {}. Both by quanta's clock; medians of alternating rounds. Times are ns of a try.\n",
        versions::list([GOVERNOR])
    );
    let rounds = options.runs.unwrap_or(if options.quick { 1 } else { 15 });
    println!("{}", times(options, rounds));
    println!("{}", memory(args)?);
    if options.wants("flood") {
        println!("{}", again::once_more(&with(args, "flood"))?);
    }
    Ok(())
}

fn with(args: &[String], part: &str) -> Vec<String> {
    args.iter().cloned().chain([part.to_owned()]).collect()
}

fn times(options: &Options, rounds: u32) -> Table {
    let mut table = Table::new(&["try, granted", "threads", OURS, GOVERNOR, "ratio"]);
    for (name, keys) in KEYS {
        if !options.wants(name) {
            continue;
        }
        let both = [ours(), governor()];
        for limiter in &both {
            (0..keys as u64).for_each(|index| limiter.begin(key(index)));
        }
        for threads in [1, 2] {
            let mut samples = [Vec::new(), Vec::new()];
            for round in 0..rounds {
                for turn in 0..2 {
                    let which = (round as usize + turn) % 2;
                    samples[which].push(round_of(&both[which], keys, threads, options.quick));
                }
            }
            let [ours, governor] = samples.map(middle);
            let cells = [tenths(ours), tenths(governor), ratio(Some(ours / governor))];
            let name = [name.to_owned(), threads.to_string()];
            table.row(name.into_iter().chain(cells).collect());
        }
    }
    table
}

/// The nanoseconds of a try, where each of so many threads tries keys at random.
fn round_of(limiter: &Arc<dyn PerKey>, keys: usize, threads: usize, quick: bool) -> f64 {
    let tries = if quick { TRIES / 100 } else { TRIES };
    let gate = Arc::new(Barrier::new(threads));
    let threads: Vec<_> = (0..threads)
        .map(|id| {
            let (limiter, gate) = (Arc::clone(limiter), Arc::clone(&gate));
            thread::spawn(move || {
                core_affinity::set_for_current(CoreId { id });
                let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(id as u64 + 1) | 1;
                gate.wait();
                let start = Instant::now();
                for _ in 0..tries {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    let index = if keys == 1 { 0 } else { (state >> 20) % keys as u64 };
                    black_box(limiter.take(key(index)));
                }
                start.elapsed().as_secs_f64() * 1e9 / f64::from(tries)
            })
        })
        .collect();
    let times: Vec<f64> =
        threads.into_iter().map(|t| t.join().expect("it does not panic")).collect();
    times.iter().sum::<f64>() / times.len() as f64
}

/// The bytes of a key, each measured in a process of its own.
fn memory(args: &[String]) -> Result<Table, String> {
    let mut table = Table::new(&["resident bytes of a u64 key", OURS, GOVERNOR, "ratio"]);
    let bytes = |name| -> Result<f64, String> {
        let text = again::once_more(&with(args, name))?;
        text.trim().parse().map_err(|_| format!("no figure: {text:?}"))
    };
    let (ours, governor) = (bytes(OURS)?, bytes(GOVERNOR)?);
    let cells = [tenths(ours), tenths(governor), ratio(Some(ours / governor))];
    table.row(["1 000 000 keys".to_owned()].into_iter().chain(cells).collect());
    Ok(table)
}

fn measured_alone(part: &str, quick: bool) -> Result<String, String> {
    let limiter = match part {
        OURS => ours(),
        GOVERNOR => governor(),
        "flood" => return flood(quick),
        _ => return Err(format!("unknown argument {part:?}")),
    };
    let keys = if quick { 10_000 } else { 1_000_000 };
    let before = resident()?;
    (0..keys).for_each(|index| limiter.begin(key(index)));
    let used = resident()?.saturating_sub(before);
    Ok((used as f64 / keys as f64).to_string())
}

fn resident() -> Result<usize, String> {
    process::resident().ok_or_else(|| "the system does not tell what is resident".to_owned())
}

/// Keys that come once, and among them two that are tried all the time.
fn flood(quick: bool) -> Result<String, String> {
    let keys = if quick { FLOOD / 100 } else { FLOOD };
    let quota = keyed::Quota::from(bucket(Rate::per_second(1), 10));
    let limiter: Keyed<u64> =
        Keyed::builder(quota).max_keys(CAP).build().map_err(|error| error.to_string())?;
    let attacked = [u64::MAX, u64::MAX - 1];
    let mut granted = [0_u64; 2];
    let (mut newcomers, mut most) = (0_u64, 0);
    let mut residents = Vec::new();
    let start = Instant::now();
    for index in 0..keys {
        newcomers += u64::from(limiter.take(key(index)));
        if index % 16 == 0 {
            for (key, granted) in attacked.iter().zip(&mut granted) {
                *granted += u64::from(limiter.take(*key));
            }
        }
        if index % (keys / 10) == keys / 10 - 1 {
            residents.push(format!("{:.1}", resident()? as f64 / 1e6));
            most = most.max(limiter.len());
        }
    }
    let took = start.elapsed().as_secs_f64();
    let limit = 10.0 + took;
    Ok(format!(
        "A flood of {keys} keys that come once, where {CAP} are kept (1/s and a burst of 10 each):\n\
         {:.0} ns a key; at most {most} kept; MB resident after each tenth: {}\n\
         {newcomers} of the newcomers were granted; two keys that were tried all the while got {} and {} of {limit:.1} permits\n",
        took * 1e9 / keys as f64,
        residents.join(" "),
        granted[0],
        granted[1],
    ))
}
