//! Prints how much of its limit each limiter lets through when four times as many come, and
//! everybody gives up after a while; and draws it.
//!
//! `--quick` only shows that everything runs; `--only WORD` keeps the crates whose name contains
//! the word; `--runs N` repeats each scene and keeps the one whose total is the median.

mod chart;

use paceline_peers::{
    awaited::{Awaited, Peer},
    measure::runtime,
    options::Options,
    table::Table,
    versions,
};
use std::{
    cell::RefCell,
    path::PathBuf,
    process::ExitCode,
    rc::Rc,
    thread,
    time::{Duration, Instant},
};
use tokio::{
    task::LocalSet,
    time::{MissedTickBehavior, interval, timeout},
};

const LIMIT: u32 = 100;
const BURST: u32 = 10;
/// A second, evenly spaced.
const ARRIVALS: u32 = 400;
const PATIENCE: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(1)];
const SECONDS: u32 = 8;
const SECONDS_QUICK: u32 = 1;

const GO: &str = "Go x/time/rate, recorded";
/// What golang.org/x/time/rate let through in each second with the shorter patience, recorded
/// elsewhere. What is cancelled there comes back only if nothing was booked behind it; and here,
/// something always was.
const GO_SERVED: [u32; 8] = [26, 0, 0, 0, 0, 0, 0, 0];

/// What one limiter did in one scene.
struct Line {
    name: &'static str,
    /// How many were served in each second.
    served: Vec<u32>,
    /// How long those waited, on average. `None` where nobody knows.
    wait: Option<Duration>,
}

fn main() -> ExitCode {
    let result = Options::from_args(std::env::args().skip(1))
        .and_then(|options| match &*options.rest {
            [] => Ok(options),
            rest => Err(format!("unknown arguments {rest:?}")),
        })
        .map_err(|message| format!("{message}\nusage: overload {}", Options::USAGE))
        .and_then(|options| run(&options));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), String> {
    let seconds = if options.quick { SECONDS_QUICK } else { SECONDS };
    println!("{}.", versions::list(Peer::ALL.map(Peer::name)));
    println!(
        "Limit {LIMIT}/s, burst {BURST}, {ARRIVALS} arrivals/s, evenly spaced: served in each second"
    );
    let mut scenes = Vec::new();
    for patience in PATIENCE {
        let mut lines = Vec::new();
        let peers = Peer::ALL.into_iter().filter(|peer| options.wants(peer.name()));
        if options.quick {
            // All at once: what they do to each other does not matter here.
            lines.extend(thread::scope(|scope| {
                let scene = |peer| scope.spawn(move || scene(peer, patience, seconds));
                let scenes: Vec<_> = peers.map(scene).collect();
                let lines = scenes.into_iter().map(|line| line.join().expect("a scene"));
                lines.collect::<Vec<_>>()
            }));
        } else {
            let runs = options.runs.unwrap_or(1);
            lines.extend(peers.map(|peer| median_scene(peer, patience, seconds, runs)));
        }
        if patience == PATIENCE[0] {
            let served = GO_SERVED.iter().copied().take(seconds as usize).collect();
            lines.push(Line { name: GO, served, wait: None });
        }
        println!("\n{}", table(patience, seconds, &lines));
        scenes.push((format!("everybody gives up after {patience:?}"), lines));
    }
    println!("A permit is used when somebody got it in time. Mean wait: of those.");
    let path = chart_path()?;
    let title =
        format!("{ARRIVALS} arrivals/s where {LIMIT}/s are allowed (burst {BURST}), in real time");
    chart::draw(&path, &title, &scenes, seconds).map_err(|error| format!("the chart: {error}"))?;
    println!("The chart is overload.svg in the target directory.");
    Ok(())
}

fn table(patience: Duration, seconds: u32, lines: &[Line]) -> Table {
    let names: Vec<String> = (1..=seconds).map(|second| second.to_string()).collect();
    let title = format!("patience {patience:?}");
    let mut head = vec![&*title];
    head.extend(names.iter().map(String::as_str));
    head.push("mean wait, ms");
    let mut table = Table::new(&head);
    for line in lines {
        let mut cells = vec![format!("  {}", line.name)];
        cells.extend(line.served.iter().map(ToString::to_string));
        cells.push(line.wait.map_or_else(|| "-".to_owned(), |wait| wait.as_millis().to_string()));
        table.row(cells);
    }
    table
}

/// `target`, in which this program lies two levels deep.
fn chart_path() -> Result<PathBuf, String> {
    let program =
        std::env::current_exe().map_err(|error| format!("where is this program? {error}"))?;
    let target = program.ancestors().nth(2).ok_or("this program lies in no target directory")?;
    Ok(target.join("overload.svg"))
}

fn median_scene(peer: Peer, patience: Duration, seconds: u32, runs: u32) -> Line {
    let mut lines: Vec<Line> = (0..runs).map(|_| scene(peer, patience, seconds)).collect();
    lines.sort_by_key(|line| line.served.iter().sum::<u32>());
    lines.swap_remove(lines.len() / 2)
}

fn scene(peer: Peer, patience: Duration, seconds: u32) -> Line {
    runtime().block_on(overload(peer, patience, seconds))
}

async fn overload(peer: Peer, patience: Duration, seconds: u32) -> Line {
    let served = Rc::new(RefCell::new(vec![0; seconds as usize]));
    let waits = Rc::new(RefCell::new(Duration::ZERO));
    let everybody = LocalSet::new();
    everybody
        .run_until(async {
            let limiter = Rc::new(Awaited::new(peer, LIMIT, BURST));
            let start = Instant::now();
            let mut arrival = interval(Duration::from_secs(1) / ARRIVALS);
            // One who comes late for want of a finer timer still comes.
            arrival.set_missed_tick_behavior(MissedTickBehavior::Burst);
            for _ in 0..ARRIVALS * seconds {
                arrival.tick().await;
                let (limiter, served, waits) =
                    (Rc::clone(&limiter), Rc::clone(&served), Rc::clone(&waits));
                tokio::task::spawn_local(async move {
                    let came = Instant::now();
                    if timeout(patience, limiter.acquire()).await.is_ok() {
                        let now = Instant::now();
                        let second = now.duration_since(start).as_secs();
                        let second = usize::try_from(second).expect("some seconds");
                        // Those who are served after the last second are in no line.
                        if let Some(count) = served.borrow_mut().get_mut(second) {
                            *count += 1;
                            *waits.borrow_mut() += now.duration_since(came);
                        }
                    }
                });
            }
            let left = Duration::from_secs(seconds.into()).saturating_sub(start.elapsed());
            tokio::time::sleep(left).await;
        })
        .await;
    // Those who still wait hold on to it otherwise.
    drop(everybody);
    let served = served.take();
    let wait = waits.take().checked_div(served.iter().sum());
    Line { name: peer.name(), served, wait }
}
