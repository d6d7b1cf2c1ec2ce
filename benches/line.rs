//! Prints what each operation of paceline costs, beside the floors.
//!
//! ```text
//! cargo bench --bench line
//! ```
//!
//! `-- --quick` only shows that everything runs, and so does a start by `cargo test`. The peers
//! are measured in `benches/peers`, whose harness this shares: short rounds in turn, several
//! starts, medians. No figure fails anything; every operation is made sure of outside of the timed
//! loops.

#[path = "line/holes.rs"]
mod holes;
#[path = "line/plain.rs"]
mod plain;
#[path = "line/report.rs"]
mod report;
#[path = "line/sizes.rs"]
mod sizes;

#[path = "peers/src/again.rs"]
#[allow(dead_code, unreachable_pub, unused_imports, reason = "a room of the peers' package")]
mod again;
#[path = "peers/src/measure.rs"]
#[allow(dead_code, unreachable_pub, unused_imports, reason = "a room of the peers' package")]
mod measure;
#[path = "peers/src/starts.rs"]
#[allow(dead_code, unreachable_pub, unused_imports, reason = "a room of the peers' package")]
mod starts;
#[path = "peers/src/table.rs"]
#[allow(dead_code, unreachable_pub, unused_imports, reason = "a room of the peers' package")]
mod table;

use measure::{Plan, Samples, measure};
use report::Report;
use std::{env, fmt, process::ExitCode};

const USAGE: &str = "usage: cargo bench --bench line [-- --quick]";

/// For the program itself: the samples of this start alone, not a table.
const ONE_START: &str = "--one-start";

/// The operations, as one figure each.
type Subject = measure::Subject<Group>;

/// Groups of the table. Only like is compared with like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    /// What a limiter cannot do without, alone.
    Floor,
    Granted,
    Denied,
    Ready,
    Reserve,
    BookFirstHole,
    BookAnyHole,
    CancelFirst,
    CancelAny,
}

impl Group {
    /// In the order of the table.
    const ALL: [Self; 9] = [
        Self::Floor,
        Self::Granted,
        Self::Denied,
        Self::Ready,
        Self::Reserve,
        Self::BookFirstHole,
        Self::BookAnyHole,
        Self::CancelFirst,
        Self::CancelAny,
    ];
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Floor => "floors",
            Self::Granted => "try, granted",
            Self::Denied => "try, denied",
            Self::Ready => "await, ready at once (in block_on of a current_thread runtime)",
            Self::Reserve => "book a turn, and give it back",
            Self::BookFirstHole => "book a hole, the first of the map",
            Self::BookAnyHole => "book a hole, anywhere in the map",
            Self::CancelFirst => "cancel, which leaves a hole before all others",
            Self::CancelAny => "cancel, which leaves a hole anywhere among the others",
        })
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    match start(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn start(args: &[String]) -> Result<(), String> {
    let given = |flag: &str| args.iter().any(|arg| arg == flag);
    // `cargo bench` says so. Whoever else starts this (`cargo test --all-targets`) does it to see
    // that it runs, and its arguments are meant for the tests.
    let wanted = given("--bench") && !given("--test");
    if wanted {
        let known = ["--bench", "--quick", ONE_START];
        if let Some(unknown) = args.iter().find(|arg| !known.contains(&arg.as_str())) {
            return Err(format!("unknown argument {unknown:?}\n{USAGE}"));
        }
    } else if given("--list") {
        // There are no tests in here.
        return Ok(());
    }
    let plan = if wanted && !given("--quick") { Plan::FULL } else { Plan::QUICK };
    run(plan, args, given(ONE_START))
}

fn run(plan: Plan, args: &[String], one_start: bool) -> Result<(), String> {
    let subjects = subjects();
    if one_start {
        print!("{}", starts::print(&measure(&subjects, plan)));
        return Ok(());
    }
    let mut samples: Vec<Samples> = Vec::new();
    for _ in 0..plan.starts {
        starts::pool(&mut samples, starts::once_more(args, ONE_START)?)?;
    }
    let report = Report::new(&subjects, samples)?;
    println!("{}", report::conditions(plan));
    println!("{}", report.table());
    println!("{}\n{}\n", report.growth(), report::GROWTH_NOTE);
    println!("{}", report.goals());
    print!("{}", sizes::table());
    Ok(())
}

fn subjects() -> Vec<Subject> {
    [plain::subjects(), holes::subjects()].into_iter().flatten().collect()
}
