//! What became of the requests, in numbers: a bar while they run, a table afterwards.

use std::iter;
use std::time::Duration;

use hdrhistogram::Histogram;
use indicatif::{ProgressBar, ProgressStyle};

use crate::clients::{Call, Outcome};
use crate::{Failure, LIMIT, LOAD, PATIENCE};

/// A bar on standard error. It stays hidden where that is no terminal.
pub(crate) fn progress(requests: usize) -> Result<ProgressBar, Failure> {
    let style = ProgressStyle::with_template("{elapsed:>4} [{bar:50}] {pos} of {len} requests")?;
    let bar = ProgressBar::new(u64::try_from(requests)?);
    Ok(bar.with_style(style.progress_chars("=> ")))
}

/// Prints a column for each limiter.
pub(crate) fn print(given_back: &[Call], kept: &[Call]) -> Result<(), Failure> {
    let columns = [given_back, kept];

    row("The turn of a caller who left is", ["given back", "kept"]);
    row("offered", columns.map(<[Call]>::len));
    row("served", columns.map(|calls| count(calls, Outcome::Served)));
    row(
        &format!("gave up after {} ms", PATIENCE.as_millis()),
        columns.map(|calls| count(calls, Outcome::GaveUp)),
    );
    row("refused at once", columns.map(|calls| count(calls, Outcome::Refused)));

    let [left, right] = [waits(given_back)?, waits(kept)?];
    for (name, quantile) in [("wait of the served, p50", 0.5), ("                    p99", 0.99)] {
        let cell = |waits: &Histogram<u64>| match waits.len() {
            0 => "-".to_owned(),
            _ => format!("{} ms", waits.value_at_quantile(quantile)),
        };
        row(name, [cell(&left), cell(&right)]);
    }

    println!("\nServed in each second, against the limit of {LIMIT}/s");
    let [left, right] = columns.map(|calls| per_bin(&served(calls), Duration::from_secs(1)));
    for (second, counts) in (1..).zip(left.into_iter().zip(right)) {
        let note = if second == 1 { ", with the burst" } else { "" };
        row(&format!("{second:>4}{note}"), counts.into());
    }
    let after = |calls: &[Call]| served(calls).iter().filter(|&&at| at >= LOAD).count();
    row("   and just after", columns.map(after));
    Ok(())
}

fn row<T: ToString>(name: &str, [left, right]: [T; 2]) {
    let (left, right) = (left.to_string(), right.to_string());
    println!("{name:<34} {left:>12} {right:>12}");
}

fn count(calls: &[Call], outcome: Outcome) -> usize {
    calls.iter().filter(|call| call.outcome == outcome).count()
}

/// How long those who were served waited for it, in milliseconds.
fn waits(calls: &[Call]) -> Result<Histogram<u64>, Failure> {
    let mut waits = Histogram::new(3)?;
    for call in calls.iter().filter(|call| call.outcome == Outcome::Served) {
        waits.record(u64::try_from(call.took.as_millis())?)?;
    }
    Ok(waits)
}

/// When each request was sent.
pub(crate) fn offered(calls: &[Call]) -> Vec<Duration> {
    calls.iter().map(|call| call.sent).collect()
}

/// When each request that was served had its answer.
pub(crate) fn served(calls: &[Call]) -> Vec<Duration> {
    calls
        .iter()
        .filter(|call| call.outcome == Outcome::Served)
        .map(|call| call.sent + call.took)
        .collect()
}

/// How many of `times` lie in each `bin` of the load.
///
/// The last callers may have their answers just after it: those are in no bin.
pub(crate) fn per_bin(times: &[Duration], bin: Duration) -> Vec<u32> {
    iter::successors(Some(Duration::ZERO), |&from| Some(from + bin).filter(|&next| next < LOAD))
        .map(|from| {
            let inside = |time: &&Duration| (from..from + bin).contains(*time);
            times.iter().filter(inside).map(|_| 1).sum()
        })
        .collect()
}
