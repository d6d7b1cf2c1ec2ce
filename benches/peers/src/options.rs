//! The arguments of the programs that run in real time.

/// What they all understand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Only to see that everything runs.
    pub quick: bool,
    /// Whose name contains this word, and nobody else.
    pub only: Option<String>,
    /// How often to measure what is measured several times.
    pub runs: Option<u32>,
    /// What is left: for a program that starts itself.
    pub rest: Vec<String>,
}

impl Options {
    /// How to write them.
    pub const USAGE: &str = "[--quick] [--only WORD] [--runs N]";

    /// Reads them.
    ///
    /// # Errors
    ///
    /// When an argument is unknown or lacks its value.
    pub fn from_args(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self::default();
        while let Some(arg) = args.next() {
            match &*arg {
                "--quick" => options.quick = true,
                "--only" => options.only = Some(args.next().ok_or("--only needs a word")?),
                "--runs" => {
                    let runs = args.next().and_then(|runs| runs.parse().ok());
                    options.runs =
                        Some(runs.filter(|&runs| runs > 0).ok_or("--runs needs a number")?);
                }
                _ if arg.starts_with("--") => return Err(format!("unknown argument {arg:?}")),
                _ => options.rest.push(arg),
            }
        }
        Ok(options)
    }

    /// Whether this one is wanted.
    #[must_use]
    pub fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|word| name.contains(&**word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str]) -> Result<Options, String> {
        Options::from_args(args.iter().map(ToString::to_string))
    }

    #[test]
    fn arguments_are_read_in_any_order() {
        let options = read(&["--only", "tower", "memory", "--quick", "--runs", "3"]).unwrap();
        assert!(options.quick && options.wants("tower") && !options.wants("governor"));
        assert_eq!((options.runs, options.rest), (Some(3), vec!["memory".to_owned()]));
    }

    #[test]
    fn what_is_unknown_is_an_error() {
        assert!(read(&["--fast"]).is_err());
        assert!(read(&["--runs", "0"]).is_err());
        assert!(read(&["--only"]).is_err());
    }
}
