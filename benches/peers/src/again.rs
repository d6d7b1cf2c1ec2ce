//! How this program is started once more.

use std::{
    env,
    process::{Command, Stdio},
};

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
