//! Several starts of the program, pooled: what depends on where the system put its pages is then
//! in the spread, and no longer in the median of an unlucky start.
//!
//! A start prints its samples as text, a line for each subject: those on one thread, a bar, those
//! on two.

use crate::{again, measure::Samples};
use std::fmt::Write;

/// Starts this program again with the same arguments and `flag`, which tells it to print
/// its samples, and reads them. Its errors go where ours go.
///
/// # Errors
///
/// When it cannot be started, fails, or prints something else.
pub fn once_more(args: &[String], flag: &str) -> Result<Vec<Samples>, String> {
    let args: Vec<String> = args.iter().cloned().chain([flag.to_owned()]).collect();
    read(&again::once_more(&args)?)
}

/// Adds the rounds of one more start to those before.
///
/// # Errors
///
/// When it measured another number of subjects.
pub fn pool(all: &mut Vec<Samples>, start: Vec<Samples>) -> Result<(), String> {
    if all.is_empty() {
        all.resize_with(start.len(), Samples::default);
    }
    if all.len() != start.len() {
        return Err("two starts measured different things".to_owned());
    }
    for (all, start) in all.iter_mut().zip(start) {
        all.pool(start);
    }
    Ok(())
}

/// The samples as text.
#[must_use]
pub fn print(samples: &[Samples]) -> String {
    let mut text = String::new();
    for Samples { one, two } in samples {
        for sample in one {
            write!(text, "{sample} ").expect("a string takes all");
        }
        text.push('|');
        for sample in two {
            write!(text, " {sample}").expect("a string takes all");
        }
        text.push('\n');
    }
    text
}

fn read(text: &str) -> Result<Vec<Samples>, String> {
    let numbers =
        |text: &str| -> Result<Vec<f64>, _> { text.split_whitespace().map(str::parse).collect() };
    text.lines()
        .map(|line| {
            let (one, two) = line.split_once('|')?;
            Some(Samples { one: numbers(one).ok()?, two: numbers(two).ok()? })
        })
        .collect::<Option<_>>()
        .ok_or_else(|| format!("a start printed no samples but {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Samples> {
        vec![
            Samples { one: vec![1.5, 0.1 + 0.2], two: vec![3.0] },
            Samples { one: vec![7.0], two: Vec::new() },
        ]
    }

    #[test]
    fn what_is_printed_is_read() {
        assert_eq!(read(&print(&samples())), Ok(samples()));
    }

    #[test]
    fn anything_else_is_an_error() {
        assert!(read("hello\n").is_err());
        assert!(read("1 two |\n").is_err());
    }

    #[test]
    fn starts_are_pooled_by_subject() {
        let mut all = Vec::new();
        pool(&mut all, samples()).unwrap();
        pool(&mut all, samples()).unwrap();
        assert_eq!(all[1].one, [7.0, 7.0]);
        assert!(pool(&mut all, Vec::new()).is_err());
    }
}
