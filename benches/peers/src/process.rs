//! This process: what it uses, and how to start it once more.

use std::{
    env,
    process::{Command, Stdio},
    time::Duration,
};

/// The memory that is resident, in bytes, where the system tells.
#[must_use]
pub fn resident() -> Option<usize> {
    memory_stats::memory_stats().map(|stats| stats.physical_mem)
}

/// The processor time that all threads have used so far.
///
/// # Panics
///
/// When the system does not tell.
#[must_use]
pub fn cpu() -> Duration {
    cpu_time::ProcessTime::now().as_duration()
}

/// Starts this program with these arguments and returns what it prints. Its errors go where ours
/// go.
///
/// # Errors
///
/// When it cannot be started, or fails.
pub fn once_more(args: &[String]) -> Result<String, String> {
    let program = env::current_exe().map_err(|error| format!("where is this program? {error}"))?;
    let output = Command::new(program)
        .args(args)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("starting the program once more: {error}"))?;
    if !output.status.success() {
        return Err(format!("a start failed: {}", output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
