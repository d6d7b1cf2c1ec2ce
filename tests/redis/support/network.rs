//! A network of a test's own, to be cut.

use super::engine::on_path;
use super::{skipped, workers};
use std::env;
use std::process::{Command, Stdio};

/// Runs the test named `test` in a network namespace, where [`loopback`] is its to cut.
///
/// The test begins with `if !network::is_own("its name") { return; }`.
pub(crate) fn is_own(test: &str) -> bool {
    if workers::errand().is_some() {
        loopback(true);
        return true;
    }
    if !has_namespaces() {
        skipped("way to make a network namespace (`unshare` and `ip`)");
        return false;
    }
    let mut command = Command::new("unshare");
    let program = env::current_exe().expect("this program");
    let inside = workers::command(test, "in a network of its own");
    command.args(["--map-root-user", "--net", "--"]).arg(program).args(inside.get_args());
    for (name, value) in inside.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    let output = command.stdin(Stdio::null()).output().expect("unshare");
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "in its own network: {}", String::from_utf8_lossy(&said));
    false
}

/// Switches the interface of this namespace on or off.
pub(crate) fn loopback(on: bool) {
    let state = if on { "up" } else { "down" };
    let set = Command::new("ip").args(["link", "set", "lo", state]).status().expect("ip");
    assert!(set.success(), "ip link set lo {state}");
}

fn has_namespaces() -> bool {
    let try_it = ["--map-root-user", "--net", "--", "ip", "link", "set", "lo", "up"];
    on_path("ip").is_some()
        && on_path("unshare").is_some()
        && Command::new("unshare").args(try_it).output().is_ok_and(|run| run.status.success())
}
