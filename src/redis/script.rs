//! The script that is the limit, and how it is called.

use super::connection::Connection;
use super::error::Failure;
use super::numbers;
use ::redis::{Cmd, ErrorKind, Script, ServerErrorKind, Value};
use std::sync::{Arc, LazyLock};

const SOURCE: &str = include_str!("script.lua");

static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::new(SOURCE));

/// Runs the script on `key`, once.
///
/// A server that does not know the script has not run it, so it is sent again in full. Nothing else
/// is: a command whose answer is lost may have run.
pub(super) async fn run(
    connection: Arc<dyn Connection>,
    key: String,
    input: Vec<f64>,
) -> Result<Vec<f64>, Failure> {
    let input = numbers::pack(&input);
    let command = |name, script: &str| {
        let mut command = Cmd::new();
        command.arg(name).arg(script).arg(1).arg(&key).arg(&input);
        command
    };
    let answer = match connection.send(command("EVALSHA", SCRIPT.get_hash())).await {
        Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
            connection.send(command("EVAL", SOURCE)).await
        }
        answer => answer,
    };
    match answer? {
        Value::BulkString(bytes) => numbers::unpack(&bytes).ok_or(Failure::Answer),
        _ => Err(Failure::Answer),
    }
}
