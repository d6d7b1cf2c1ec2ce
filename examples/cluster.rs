//! Three processes share a limit on a server. One of them is killed, then the server is killed and comes
//! back; and how many permits they use together is printed and drawn.
//!
//! ```text
//! cargo run --release --features redis --example cluster
//! ```
//!
//! takes nine seconds and needs `redis-server`. The server is its own, at a port of its own, and writes
//! what it does to a directory that is removed in the end. `-- 3` does the same in three seconds; a path
//! after that says where to draw.

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::fmt::Display;
use std::io::{BufRead, BufReader, Write, stdout};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use paceline::Rate;
use paceline::redis::{Lease, RedisLimiter, connect};
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use tokio::time::{Instant, sleep, sleep_until};

#[expect(dead_code, unused_imports, reason = "the tests do more to their servers")]
#[path = "../tests/redis/support/mod.rs"]
mod support;

use support::uses::ServerClock;
use support::{Engine, Server};

type Failure = Box<dyn Error + Send + Sync>;

const RATE: u32 = 1_000;
const BURST: u32 = 100;
const WORKERS: usize = 3;
/// In each worker; together they would use many times the limit.
const TASKS: usize = 16;
/// Uses are counted over so many microseconds of the server's clock.
const BIN: u64 = 100_000;
const BINS_PER_SECOND: u32 = 10;

/// Permits by bin, of each worker.
type Counts = [BTreeMap<u64, u32>; WORKERS];

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["worker", url] => work(url).await,
        [] => play(9, &picture()).await,
        [seconds] => play(seconds.parse()?, &picture()).await,
        [seconds, path] => play(seconds.parse()?, Path::new(path)).await,
        _ => Err("usage: cluster [SECONDS [PICTURE]]".into()),
    }
}

fn picture() -> PathBuf {
    env::temp_dir().join("paceline-cluster.svg")
}

/// What one process of a service does.
async fn work(url: &str) -> Result<(), Failure> {
    let client = redis::Client::open(url)?;
    let clock = ServerClock::read(&client).await;
    let limiter =
        RedisLimiter::builder(connect(client).await?, "service", Rate::per_second(RATE.into()))
            .burst(BURST)
            .lease(Lease::new())
            .build()
            .await?;
    let counts: Arc<Mutex<BTreeMap<u64, u32>>> = Arc::default();
    for _ in 0..TASKS {
        let (limiter, counts) = (limiter.clone(), Arc::clone(&counts));
        tokio::spawn(async move {
            loop {
                match limiter.acquire().await {
                    Ok(_) => {
                        let now = Instant::now();
                        let bin = clock.used(now, now).earliest / BIN;
                        *counts.lock().expect("nobody panics").entry(bin).or_default() += 1;
                    }
                    // The server is away.
                    Err(_) => sleep(Duration::from_millis(10)).await,
                }
            }
        });
    }
    loop {
        sleep(Duration::from_micros(BIN / 2)).await;
        let now = Instant::now();
        let bin = clock.used(now, now).earliest / BIN;
        let mut counts = counts.lock().expect("nobody panics");
        let unfinished = counts.split_off(&bin);
        for (bin, count) in std::mem::replace(&mut *counts, unfinished) {
            writeln!(stdout(), "{bin} {count}")?;
        }
    }
}

/// A process, and the permits that it has used.
struct Worker {
    process: Child,
    reader: thread::JoinHandle<BTreeMap<u64, u32>>,
}

impl Worker {
    fn start(url: &str) -> Result<Self, Failure> {
        let mut process = Command::new(env::current_exe()?)
            .args(["worker", url])
            .stdout(Stdio::piped())
            .spawn()?;
        let lines = BufReader::new(process.stdout.take().ok_or("it has no output")?).lines();
        let reader = thread::spawn(move || {
            let read = |line: String| {
                let (bin, count) = line.split_once(' ')?;
                Some((bin.parse().ok()?, count.parse().ok()?))
            };
            lines.map_while(Result::ok).filter_map(read).collect()
        });
        Ok(Self { process, reader })
    }

    fn kill(&mut self) {
        // It may be dead already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    fn counts(mut self) -> BTreeMap<u64, u32> {
        self.kill();
        self.reader.join().expect("it only reads")
    }
}

/// Ninths of the time: what happens when.
const KILL_WORKER: u32 = 2;
const KILL_SERVER: u32 = 4;
const SERVER_BACK: u32 = 5;

async fn play(seconds: u32, path: &Path) -> Result<(), Failure> {
    let Some(mut server) = Server::start_durable(Engine::Redis).await else { return Ok(()) };
    let ninth = Duration::from_secs(seconds.into()) / 9;
    let began = Instant::now();
    let first = server.now().await / BIN;
    let starts = (0..WORKERS).map(|_| Worker::start(&server.url()));
    let mut workers: Vec<Worker> = starts.collect::<Result<_, _>>()?;
    sleep_until(began + ninth * KILL_WORKER).await;
    workers[0].kill();
    sleep_until(began + ninth * KILL_SERVER).await;
    server.kill();
    sleep_until(began + ninth * SERVER_BACK).await;
    server.start_again().await;
    sleep_until(began + ninth * 9).await;
    let counts: Vec<_> = workers.into_iter().map(Worker::counts).collect();
    let counts: Counts = counts.try_into().map_err(|_| "as many as were started")?;

    let bins = u64::from(seconds * BINS_PER_SECOND);
    let when = |ninths: u32| f64::from(seconds * ninths) / 9.0;
    let events = [
        (when(KILL_WORKER), "a worker is killed"),
        (when(KILL_SERVER), "the server is killed"),
        (when(SERVER_BACK), "it comes back"),
    ];
    let total = |bin: u64| counts.iter().filter_map(|of| of.get(&(first + bin))).sum::<u32>();
    let totals: Vec<u32> = (0..bins).map(total).collect();
    print(&counts, first, &totals, &events);
    draw(path, &totals, &events)?;
    println!("Drawn: {}", path.display());
    Ok(())
}

fn print(counts: &Counts, first: u64, totals: &[u32], events: &[(f64, &str)]) {
    let limit = RATE / BINS_PER_SECOND;
    println!("permits in each 100 ms; the limit is {limit}, and a burst of {BURST}\n");
    let row = |cells: [&dyn Display; 5]| {
        let [time, one, two, three, all] = cells;
        println!("{time:>6}{one:>10}{two:>10}{three:>10}{all:>10}");
    };
    row([&"s", &"worker 1", &"worker 2", &"worker 3", &"all"]);
    let mut events = events.iter().peekable();
    let mut time = 0.0;
    for (bin, total) in (first..).zip(totals) {
        while let Some((_, event)) = events.next_if(|(when, _)| *when <= time) {
            println!("        -- {event}");
        }
        let [one, two, three] =
            [0, 1, 2].map(|worker: usize| counts[worker].get(&bin).unwrap_or(&0));
        row([&format!("{time:.1}"), one, two, three, total]);
        time += 1.0 / f64::from(BINS_PER_SECOND);
    }
    let most = totals.iter().max().unwrap_or(&0);
    println!("\nmost in any of them: {most}; the limit allows {}\n", limit + BURST);
}

fn draw(path: &Path, totals: &[u32], events: &[(f64, &str)]) -> Result<(), Failure> {
    let bin = 1.0 / f64::from(BINS_PER_SECOND);
    let end = bin * f64::from(u32::try_from(totals.len())?);
    let top = f64::from(RATE) * 2.2;
    let area = SVGBackend::new(path, (900, 480)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(
            format!("{WORKERS} processes that share {RATE}/s on a server, with leases"),
            ("sans-serif", 22),
        )
        .margin(15)
        .x_label_area_size(45)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..end, 0.0..top)?;
    chart
        .configure_mesh()
        .x_desc("time (s)")
        .y_desc("permits per second")
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| format!("{y:.0}"))
        .label_style(("sans-serif", 16))
        .axis_desc_style(("sans-serif", 17))
        .light_line_style(TRANSPARENT)
        .bold_line_style(RGBColor(225, 225, 225))
        .draw()?;

    // Level over each bin: a count belongs to a stretch of time, not to a point.
    let mut line = Vec::new();
    let mut start = 0.0;
    for total in totals {
        let rate = f64::from(*total) * f64::from(BINS_PER_SECOND);
        line.extend([(start, rate), (start + bin, rate)]);
        start += bin;
    }
    let style = RGBColor(0, 110, 200).stroke_width(3);
    chart
        .draw_series(LineSeries::new(line, style))?
        .label("used by all, over 100 ms")
        .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], style));
    let limit = f64::from(RATE);
    let style = BLACK.stroke_width(1);
    chart
        .draw_series(DashedLineSeries::new([(0.0, limit), (end, limit)], 6, 4, style))?
        .label(format!("limit, {RATE}/s"))
        .legend(move |(x, y)| DashedPathElement::new([(x, y), (x + 24, y)], 6, 4, style));
    let red = RGBColor(200, 20, 50);
    // Each lower than the one before, so that they have room.
    let mut height = top * 0.85;
    for (at, event) in events {
        chart.draw_series(LineSeries::new([(*at, 0.0), (*at, height)], red.stroke_width(1)))?;
        let font = ("sans-serif", 15).into_font().color(&red);
        let text = Text::new((*event).to_owned(), (*at + 0.005 * end, height), font);
        chart.draw_series([text])?;
        height -= top * 0.06;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .legend_area_size(34)
        .label_font(("sans-serif", 16))
        .background_style(WHITE)
        .border_style(RGBColor(200, 200, 200))
        .draw()?;
    area.present()?;
    Ok(())
}
