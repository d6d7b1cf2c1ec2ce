//! Tests that go on in other processes: this program, started again for one of its tests.

use std::env;
use std::process::{Child, Command, Stdio};

/// Tells a process that it is a worker, and what for.
const ERRAND: &str = "PACELINE_ERRAND";

/// Processes that end when this is dropped.
pub(crate) struct Workers(Vec<Child>);

impl Workers {
    /// Starts `count` processes that run the test named `test`, each with an errand: what
    /// `errand` says for its number.
    pub(crate) fn start(test: &str, count: usize, errand: impl Fn(usize) -> String) -> Self {
        let start = |number| command(test, &errand(number)).spawn().expect("this very program");
        Self((0..count).map(start).collect())
    }

    /// Kills one of them without a word. The later ones move up.
    pub(crate) fn kill(&mut self, number: usize) {
        let mut worker = self.0.remove(number);
        worker.kill().expect("it is ours");
        worker.wait().expect("it ends");
    }

    /// Waits until all that are left have ended, and what they printed.
    ///
    /// # Panics
    ///
    /// If one of them failed.
    pub(crate) fn join(mut self) -> Vec<String> {
        let finish = |worker: Child| {
            let output = worker.wait_with_output().expect("it ends");
            assert!(output.status.success(), "a worker failed: {output:?}");
            String::from_utf8(output.stdout).expect("what it printed")
        };
        self.0.drain(..).map(finish).collect()
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for worker in &mut self.0 {
            // It may have ended already.
            let _ = worker.kill();
            let _ = worker.wait();
        }
    }
}

/// This program, to run one test with an errand.
pub(crate) fn command(test: &str, errand: &str) -> Command {
    let mut command = Command::new(env::current_exe().expect("this program"));
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(ERRAND, errand);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// What this process was started for, if it is a worker.
pub(crate) fn errand() -> Option<String> {
    env::var(ERRAND).ok()
}
