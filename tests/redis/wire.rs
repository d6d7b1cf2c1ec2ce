//! A connection between a limiter and its server that keeps what was sent, and loses answers.

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{Cmd, Pipeline, RedisFuture, Value};
use std::io;
use std::sync::{Arc, Mutex};
use tokio::sync::OwnedMutexGuard;

#[derive(Clone)]
pub(crate) struct Wire {
    connection: MultiplexedConnection,
    state: Arc<Mutex<State>>,
    /// Answers go by while nobody has it.
    gate: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct State {
    sent: Vec<Cmd>,
    to_lose: usize,
}

impl Wire {
    pub(crate) fn new(connection: MultiplexedConnection) -> Self {
        Self { connection, state: Arc::default(), gate: Arc::default() }
    }

    /// Loses so many of the next answers: the server has done what it was told.
    pub(crate) fn lose(&self, answers: usize) {
        self.state.lock().unwrap().to_lose = answers;
    }

    /// Keeps all answers back for as long as this is held.
    pub(crate) async fn hold(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.gate).lock_owned().await
    }

    /// What was sent, and forgets it.
    pub(crate) fn take_sent(&self) -> Vec<Cmd> {
        std::mem::take(&mut self.state.lock().unwrap().sent)
    }

    /// Sends commands again, as one who has not heard their answers.
    pub(crate) async fn repeat(&self, commands: &[Cmd]) {
        for command in commands {
            let mut connection = self.connection.clone();
            connection.req_packed_command(command).await.expect("the server is up");
        }
    }
}

impl ConnectionLike for Wire {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move {
            self.state.lock().unwrap().sent.push(command.clone());
            let answer = self.connection.req_packed_command(command).await;
            drop(self.gate.lock().await);
            let mut state = self.state.lock().unwrap();
            if state.to_lose == 0 {
                return answer;
            }
            state.to_lose -= 1;
            Err(io::Error::from(io::ErrorKind::ConnectionReset).into())
        })
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        self.connection.req_packed_commands(pipeline, offset, count)
    }

    fn get_db(&self) -> i64 {
        self.connection.get_db()
    }
}
