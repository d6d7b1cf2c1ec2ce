//! What is printed.

use crate::{
    Group, Subject,
    holes::ABOUT,
    measure::{Plan, Samples, Series},
    plain,
    table::{Table, ratio, tenths},
};
use std::{env::consts, thread};

pub(crate) fn conditions(plan: Plan) -> String {
    let cores = thread::available_parallelism()
        .map_or_else(|_| "unknown".to_owned(), |cores| cores.to_string());
    let worth = if plan.starts < Plan::FULL.starts || cfg!(debug_assertions) {
        "A short run, to see that everything runs: its figures mean nothing.\n"
    } else {
        ""
    };
    format!(
        "{worth}Medians of {} starts of {} alternating rounds of about {:?} each; {} {}; cores: {cores}.\n\
         Tokio is built with test-util here, as for every test of this package.\n\
         One thread: ns per operation. Two threads share the limiter: ns per operation of each, \
         and millions of operations\n\
         a second of both together. +-: how far apart the middle half of the rounds lies.\n",
        plan.starts,
        plan.rounds,
        plan.round,
        consts::ARCH,
        consts::OS,
    )
}

/// What to know when reading [`Report::growth`].
pub(crate) const GROWTH_NOTE: &str =
    "A single hole is measured on eight limiters in turn, so on two threads they meet less often.";

/// What was measured of one subject.
struct Figure {
    group: Group,
    name: &'static str,
    one: Series,
    two: Series,
}

impl Figure {
    /// How much longer an operation takes with a second thread about.
    fn slow_down(&self) -> f64 {
        self.two.median() / self.one.median()
    }
}

pub(crate) struct Report {
    figures: Vec<Figure>,
}

impl Report {
    pub(crate) fn new(subjects: &[Subject], samples: Vec<Samples>) -> Result<Self, String> {
        if samples.len() != subjects.len() {
            return Err("the starts did not measure what this program measures".to_owned());
        }
        let figure = |(subject, samples): (&Subject, Samples)| {
            let (one, two) = Series::new(samples.one).zip(Series::new(samples.two))?;
            Some(Figure { group: subject.kind(), name: subject.name(), one, two })
        };
        let figures: Option<Vec<_>> = subjects.iter().zip(samples).map(figure).collect();
        Ok(Self { figures: figures.ok_or("a start measured nothing")? })
    }

    /// # Panics
    ///
    /// If there is no such line: all that this program asks for, it has measured.
    fn find(&self, group: Group, name: &str) -> &Figure {
        self.figures
            .iter()
            .find(|figure| figure.group == group && figure.name == name)
            .expect("a line of the table")
    }

    fn floor(&self) -> &Figure {
        self.find(Group::Floor, plain::NOW_AND_CAS)
    }

    pub(crate) fn table(&self) -> Table {
        let mut table = Table::new(&[
            "",
            "1 thread",
            "+-",
            "/now+CAS",
            "2 threads",
            "+-",
            "M/s",
            "/now+CAS",
            "2 thr / 1",
        ]);
        let floor = self.floor();
        let percent = |part: f64| format!("{:.0}%", part * 100.0);
        for group in Group::ALL {
            table.section(&group);
            for figure in self.figures.iter().filter(|figure| figure.group == group) {
                let Figure { name, one, two, .. } = figure;
                table.row(vec![
                    format!("  {name}"),
                    tenths(one.median()),
                    percent(one.spread()),
                    ratio(Some(one.median() / floor.one.median())),
                    tenths(two.median()),
                    percent(two.spread()),
                    // Two threads, each one operation in so many ns: thousandths of a ns are
                    // millions a second.
                    tenths(2_000.0 / two.median()),
                    ratio(Some(two.median() / floor.two.median())),
                    ratio(Some(figure.slow_down())),
                ]);
            }
        }
        table
    }

    /// How the cost grows with the holes about. What a doubling of them adds is the same all along
    /// if it grows with their logarithm, and a hundred times as much in the end if with their
    /// number.
    pub(crate) fn growth(&self) -> Table {
        let mut table = Table::new(&[
            "ns with so many holes about",
            "1",
            "100",
            "10 000",
            "100 / 1",
            "10 000 / 1",
            "a doubling: to 100",
            "to 10 000",
        ]);
        for group in
            [Group::BookFirstHole, Group::BookAnyHole, Group::CancelFirst, Group::CancelAny]
        {
            table.section(&group);
            let figures = ABOUT.map(|(_, name)| self.find(group, name));
            for (threads, [few, some, many]) in [
                ("  1 thread", figures.map(|figure| figure.one.median())),
                ("  2 threads", figures.map(|figure| figure.two.median())),
            ] {
                let doublings = 100_f64.log2();
                let mut row = vec![threads.to_owned()];
                row.extend([few, some, many].map(tenths));
                row.extend([some / few, many / few].map(|part| ratio(Some(part))));
                row.extend([(some - few) / doublings, (many - some) / doublings].map(tenths));
                table.row(row);
            }
        }
        table
    }

    /// What the library sets out to reach, and what this run says. For people to read: a figure
    /// of one run on one machine fails nothing.
    pub(crate) fn goals(&self) -> Table {
        let one = |figure: &Figure| figure.one.median();
        let floor = one(self.floor());
        let tokio = one(self.find(Group::Floor, plain::TOKIO_NOW_AND_CAS));
        let granted = one(self.find(Group::Granted, plain::TRY));
        let full = one(self.find(Group::Granted, plain::TRY_FULL));
        let denied = self.find(Group::Denied, plain::TRY);
        let ready = one(self.find(Group::Ready, plain::ACQUIRE));
        let unconstrained = one(self.find(Group::Ready, plain::ACQUIRE_UNCONSTRAINED));
        let now = self.find(Group::Floor, plain::NOW);
        let mut table = Table::new(&["goal", "at most", "this run", "by tokio's clock"]);
        for (goal, most, reached, by_tokio) in [
            ("try granted / (now + CAS)", 1.20, granted / floor, Some(granted / tokio)),
            ("the same on a full bucket", 1.20, full / floor, Some(full / tokio)),
            ("try denied / (now + CAS)", 1.15, one(denied) / floor, Some(one(denied) / tokio)),
            ("ready acquire / try granted", 1.25, ready / granted, None),
            ("the same without tokio's budget", 1.25, unconstrained / granted, None),
            (
                "slow-down of refusals on two threads / Instant::now()'s",
                1.25,
                denied.slow_down() / now.slow_down(),
                None,
            ),
        ] {
            table.row(vec![
                goal.to_owned(),
                format!("{most:.2}"),
                ratio(Some(reached)),
                ratio(by_tokio),
            ]);
        }
        table
    }
}
