//! Requests of a process that come while others are under way are sent together.
//!
//! A call of the script costs the server, and this process, many times what a request in it
//! costs. So a few calls are under way at a time, and each takes all who have asked meanwhile, in their
//! order. One who comes alone is sent at once. The server decides on each request by itself, one after
//! the other, so what can be had is the same.

use super::error::Failure;
use super::remote::{Line, Outcome};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// How many calls are under way at a time, at most.
const MOST_CALLS: usize = 4;

/// How many requests go in one call, at most: the server does nothing else meanwhile.
const MOST_REQUESTS: usize = 64;

/// So many permits, if their turn comes within so many microseconds; below zero is whenever.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) permits: u32,
    pub(super) wait: f64,
}

impl Request {
    pub(super) fn to_numbers(self) -> [f64; 2] {
        [f64::from(self.permits), self.wait]
    }
}

/// A request, and who is to be told what became of it.
pub(super) struct Asked {
    pub(super) request: Request,
    pub(super) answer: oneshot::Sender<Result<Outcome, Failure>>,
}

/// Those who have asked for something and are not sent yet.
pub(super) struct Requests(Mutex<Waiting>);

struct Waiting {
    asked: VecDeque<Asked>,
    calls: usize,
}

impl Requests {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Waiting { asked: VecDeque::new(), calls: 0 }))
    }

    /// What becomes of a request. Dropped before it is sent, it is not sent.
    pub(super) async fn ask(&self, line: &Arc<Line>, request: Request) -> Result<Outcome, Failure> {
        let (answer, outcome) = oneshot::channel();
        let free = {
            let mut waiting = self.lock();
            waiting.asked.push_back(Asked { request, answer });
            let free = waiting.calls < MOST_CALLS;
            waiting.calls += usize::from(free);
            free
        };
        if free {
            line.spawn(send_all(Arc::clone(line)));
        }
        let gone = || Failure::Unreachable { reason: "the runtime has ended".to_owned() };
        outcome.await.unwrap_or_else(|_| Err(gone()))
    }

    /// The next to be sent; if there are none, a call less is under way.
    fn next(&self) -> Option<Vec<Asked>> {
        let mut waiting = self.lock();
        let mut next = Vec::new();
        while let Some(asked) = waiting.asked.pop_front() {
            if !asked.answer.is_closed() {
                next.push(asked);
            }
            if next.len() == MOST_REQUESTS {
                break;
            }
        }
        if next.is_empty() {
            waiting.calls -= 1;
            return None;
        }
        Some(next)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Nothing panics while the lock is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends until there is nobody left. A call whose answer takes too long goes on by itself, so that it
/// is in nobody's way.
async fn send_all(line: Arc<Line>) {
    while let Some(next) = line.requests().next() {
        let mut call = Box::pin(Arc::clone(&line).send(next));
        if timeout(line.timeout(), call.as_mut()).await.is_err() {
            line.spawn(call);
        }
    }
}
