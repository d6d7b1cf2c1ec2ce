//! The script that is the limit, and how it is called.
//!
//! # Once at most
//!
//! A command may run although its answer is lost, and a client may send it again. So each
//! must be harmless when it comes twice, early or late.
//!
//! *A booking* that comes twice books twice, and who asked hears of one. The other stays spent. So it is
//! never sent again by us.
//!
//! *Giving back* is known by the booking: its epoch and its number. Positions would not do: what was given
//! back is booked by others, at the same positions. Each booking takes the next number of its line,
//! and a line that starts anew takes an epoch that no line under this name has had: the time, or the
//! old epoch and eight if that is more. (Each lap of a line takes one from there; after six nothing is
//! alive of a booking.) The server remembers what was given back by a bit for each number, and a mark: all
//! numbers up to the mark count as given back. Then
//!
//! * a booking that was not given back and is above the mark: it is given back, and its bit set;
//! * the same once more: the bit is set, so it is refused, whoever has the positions now;
//! * one at or below the mark is refused. The mark moves up to a booking only when all that was
//!   booked up to it and is held has overflowed, so nothing is lost; or when there are more bits than there
//!   is room for, and then what would have been given back stays spent;
//! * one of another line is refused: if that line was full when this one started, it has overflowed; if it
//!   was lost with the server's memory, so was the debt;
//! * one that the server has not given out is refused. (A server with an older state gives the number out
//!   again. Then the first of the two to give back has it.)
//!
//! So a retry can only make a give-back that was lost come true, and the interval of a booking becomes free
//! once at most.
//!
//! *A setting* that comes twice sets the same. Each change counts up a version, and who knows a higher one
//! than the server tells it: the server has forgotten.

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
