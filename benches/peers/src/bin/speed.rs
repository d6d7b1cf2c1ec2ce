//! Prints what one operation costs, ours and each peer's, beside the floors.
//!
//! `--quick` only shows that everything runs; `--starts N` and `--rounds N` take more or fewer of
//! them; `--only WORD` keeps the lines whose name contains the word, and the floors.

use paceline_peers::{
    measure::{Kind, Plan, Samples, Series, Subject, measure},
    starts,
    subjects::{self, PEERS, floors, governor, kinds, paceline},
    table::{Table, ratio, tenths},
    versions,
};
use std::{
    io::{IsTerminal, Write, stderr},
    process::ExitCode,
    thread,
};

const USAGE: &str = "usage: speed [--quick] [--starts N] [--rounds N] [--only WORD]";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match Options::from_args(args.iter().cloned())
        .map_err(|message| format!("{message}\n{USAGE}"))
        .and_then(|options| run(&options, &args))
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options, args: &[String]) -> Result<(), String> {
    if options.one_start {
        print!("{}", starts::print(&measure(&options.subjects(), options.plan)));
        return Ok(());
    }
    let mut samples: Vec<Samples> = Vec::new();
    for start in 0..options.plan.starts {
        show_progress(start, options.plan.starts);
        starts::pool(&mut samples, starts::once_more(args, ONE_START)?)?;
    }
    show_progress(options.plan.starts, options.plan.starts);
    let results = Results::new(options.subjects(), samples)?;
    println!("{}", conditions(options.plan));
    println!("{}", results.table());
    print!("{}", results.goals());
    Ok(())
}

/// For the program itself: the samples of this start alone, not a table.
const ONE_START: &str = "--one-start";

struct Options {
    plan: Plan,
    only: Option<String>,
    one_start: bool,
}

impl Options {
    fn from_args(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self { plan: Plan::FULL, only: None, one_start: false };
        while let Some(arg) = args.next() {
            match &*arg {
                "--quick" => options.plan = Plan::QUICK,
                "--starts" => options.plan.starts = number(&arg, args.next())?,
                "--rounds" => options.plan.rounds = number(&arg, args.next())?,
                "--only" => options.only = Some(args.next().ok_or("--only needs a word")?),
                ONE_START => options.one_start = true,
                _ => return Err(format!("unknown argument {arg:?}")),
            }
        }
        Ok(options)
    }

    fn subjects(&self) -> Vec<Subject> {
        let mut subjects = subjects::all();
        if let Some(word) = &self.only {
            subjects.retain(|subject| {
                subject.kind() == Kind::Floor || subject.name().contains(&**word)
            });
        }
        subjects
    }
}

fn number(arg: &str, value: Option<String>) -> Result<u32, String> {
    let value = value.ok_or_else(|| format!("{arg} needs a number"))?;
    match value.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("{arg} needs a number above zero, not {value:?}")),
    }
}

/// On a terminal only: a log has no use for it.
fn show_progress(done: u32, of: u32) {
    let mut terminal = stderr();
    if terminal.is_terminal() {
        let end = if done == of { "\r\x1b[K" } else { "" };
        // Progress that cannot be shown is no reason to stop.
        let _ = write!(terminal, "\rstart {done} of {of}{end}");
        let _ = terminal.flush();
    }
}

fn conditions(plan: Plan) -> String {
    let cores = thread::available_parallelism()
        .map_or_else(|_| "unknown".to_owned(), |cores| cores.to_string());
    format!(
        "Medians of {} starts of {} alternating rounds of about {:?} each; {} {}; cores: {cores}.\n\
         Peers: {}.\n\
         One thread: ns per operation. Two threads share the limiter: ns per operation of each, \
         and millions of operations\n\
         a second of both together. +-: how far apart the middle half of the rounds lies.\n",
        plan.starts,
        plan.rounds,
        plan.round,
        std::env::consts::ARCH,
        std::env::consts::OS,
        versions::list(PEERS),
    )
}

/// What was measured of one subject.
struct Figure {
    one: Series,
    two: Option<Series>,
}

impl Figure {
    /// How much longer an operation takes with a second thread about.
    fn slow_down(&self) -> Option<f64> {
        Some(self.two.as_ref()?.median() / self.one.median())
    }
}

struct Results {
    subjects: Vec<Subject>,
    figures: Vec<Figure>,
}

impl Results {
    fn new(subjects: Vec<Subject>, samples: Vec<Samples>) -> Result<Self, String> {
        let figures: Option<Vec<Figure>> = samples
            .into_iter()
            .map(|samples| {
                Some(Figure { one: Series::new(samples.one)?, two: Series::new(samples.two) })
            })
            .collect();
        let figures = figures.filter(|figures| figures.len() == subjects.len());
        let figures = figures.ok_or("the starts did not measure what this program measures")?;
        Ok(Self { subjects, figures })
    }

    fn find(&self, kind: Kind, name: &str) -> Option<&Figure> {
        self.of(kind).find(|(subject, _)| subject.name() == name).map(|(_, figure)| figure)
    }

    fn of(&self, kind: Kind) -> impl Iterator<Item = (&Subject, &Figure)> {
        self.subjects.iter().zip(&self.figures).filter(move |(subject, _)| subject.kind() == kind)
    }

    /// The line of governor, as it comes, that a group is compared with.
    fn rival(&self, kind: Kind) -> Option<&Figure> {
        self.find(
            kind,
            match kind {
                Kind::Granted | Kind::Denied => governor::CHECK,
                Kind::Ready => governor::UNTIL_READY,
                Kind::Floor | Kind::Reserve => return None,
            },
        )
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&[
            "",
            "1 thread",
            "+-",
            "/now+CAS",
            "/governor",
            "2 threads",
            "+-",
            "M/s",
            "/now+CAS",
            "/governor",
            "2 thr / 1",
        ]);
        let floor = self.find(Kind::Floor, floors::NOW_AND_CAS);
        for kind in Kind::ALL {
            if self.of(kind).next().is_none() {
                continue;
            }
            table.section(&kind);
            let rival = self.rival(kind);
            for (subject, figure) in self.of(kind) {
                table.row(cells(subject.name(), figure, floor, rival));
            }
        }
        table
    }

    /// What the library sets out to reach, and what this run says. For people to read: a figure
    /// of one run on one machine fails nothing.
    fn goals(&self) -> Table {
        let floor = self.find(Kind::Floor, floors::NOW_AND_CAS);
        let granted = self.find(Kind::Granted, paceline::TRY);
        let full = self.find(Kind::Granted, paceline::TRY_FULL);
        let denied = self.find(Kind::Denied, paceline::TRY);
        let ready = self.find(Kind::Ready, paceline::ACQUIRE);
        let unconstrained = self.find(Kind::Ready, paceline::ACQUIRE_UNCONSTRAINED);
        let now = self.find(Kind::Floor, floors::NOW);
        let rival = self.rival(Kind::Granted);
        let rival_denied = self.rival(Kind::Denied);
        let striped = self.find(Kind::Granted, paceline::TRY_STRIPED);
        let quanta = self.find(Kind::Granted, paceline::TRY_QUANTA);
        let denied_quanta = self.find(Kind::Denied, paceline::TRY_QUANTA);
        let slow_down = || Some(denied?.slow_down()? / now?.slow_down()?);

        let mut table = Table::new(&["goal", "at most", "this run"]);
        for (goal, most, reached) in [
            ("striped try granted / governor's", 0.65, compared(striped, rival)),
            ("the same on two threads", 0.25, compared_on_two(striped, rival)),
            ("try granted by quanta's clock / governor's", 1.10, compared(quanta, rival)),
            (
                "try denied by quanta's clock / governor's",
                1.15,
                compared(denied_quanta, rival_denied),
            ),
            ("try granted / (Instant::now() + CAS)", 1.15, compared(granted, floor)),
            ("the same on a full bucket", 1.15, compared(full, floor)),
            ("try denied / (Instant::now() + CAS)", 1.15, compared(denied, floor)),
            ("ready acquire / try granted", 1.25, compared(ready, granted)),
            ("the same without tokio's budget", 1.25, compared(unconstrained, granted)),
            ("slow-down of refusals on two threads / Instant::now()'s", 1.25, slow_down()),
        ] {
            if reached.is_some() {
                table.row(vec![goal.to_owned(), format!("{most:.2}"), ratio(reached)]);
            }
        }
        let kinds = kinds::PACKED.into_iter().map(|kind| (kind, 1.50));
        for (kind, most) in kinds.chain([(kinds::BOTH, 2.20)]) {
            if let Some(figure) = self.find(Kind::Granted, kind) {
                let reached = ratio(compared(Some(figure), full));
                table.row(vec![format!("{kind} / try granted"), format!("{most:.2}"), reached]);
            }
        }
        if let (Some(guarded), Some(full)) = (self.find(Kind::Granted, kinds::GUARDED), full) {
            let more = guarded.one.median() - full.one.median();
            let goal = "ns of a closed breaker on top of a try".to_owned();
            table.row(vec![goal, "5.0".to_owned(), tenths(more)]);
        }
        table
    }
}

/// One thread's figure against another's.
fn compared(figure: Option<&Figure>, with: Option<&Figure>) -> Option<f64> {
    Some(figure?.one.median() / with?.one.median())
}

/// The same on two threads.
fn compared_on_two(figure: Option<&Figure>, with: Option<&Figure>) -> Option<f64> {
    Some(figure?.two.as_ref()?.median() / with?.two.as_ref()?.median())
}

fn cells(
    name: &str,
    figure: &Figure,
    floor: Option<&Figure>,
    rival: Option<&Figure>,
) -> Vec<String> {
    let dash = || "-".to_owned();
    let percent = |part: f64| format!("{:.0}%", part * 100.0);
    let two = figure.two.as_ref();
    vec![
        format!("  {name}"),
        tenths(figure.one.median()),
        percent(figure.one.spread()),
        ratio(compared(Some(figure), floor)),
        ratio(compared(Some(figure), rival)),
        two.map_or_else(dash, |two| tenths(two.median())),
        two.map_or_else(dash, |two| percent(two.spread())),
        // Two threads, each one operation in so many ns: thousandths of a ns are millions a second.
        two.map_or_else(dash, |two| tenths(2_000.0 / two.median())),
        ratio(compared_on_two(Some(figure), floor)),
        ratio(compared_on_two(Some(figure), rival)),
        ratio(figure.slow_down()),
    ]
}
