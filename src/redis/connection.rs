//! A connection to a server or a cluster, whatever its type.

use ::redis::aio::ConnectionLike;
use ::redis::{Cmd, RedisResult, Value};
use std::pin::Pin;

/// The answer to a command, to be had also when nobody waits for it any more.
pub(super) type Answer = Pin<Box<dyn Future<Output = RedisResult<Value>> + Send>>;

/// What commands are sent over.
pub(super) trait Connection: Send + Sync {
    fn send(&self, command: Cmd) -> Answer;
}

impl<C: ConnectionLike + Clone + Send + Sync + 'static> Connection for C {
    fn send(&self, command: Cmd) -> Answer {
        let mut connection = self.clone();
        Box::pin(async move { connection.req_packed_command(&command).await?.extract_error() })
    }
}
