//! Waiting on a thread, without a runtime.

use crate::sleep::{Look, Nap};
use crate::turns::Waiters;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;
use tokio::sync::Mutex;

/// Unparks a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits until `look` is done with what it sees, as [`Sleeper::poll`](crate::sleep::Sleeper::poll)
/// does, and like it listens before it looks.
pub(crate) fn park<T>(waiters: &Waiters, mut look: impl FnMut(u64) -> Look<T>) -> T {
    let waker = unpark_this_thread();
    let cx = &mut Context::from_waker(&waker);
    let mut changed = pin!(waiters.changed.notified());
    loop {
        while changed.as_mut().poll(cx).is_ready() {
            changed.set(waiters.changed.notified());
        }
        let now = waiters.time.now();
        let turn = match look(now) {
            Look::Done(outcome) => return outcome,
            Look::Wait(turn) => turn,
        };
        match waiters.nap(now, turn) {
            Nap::Until(Some(wake)) => {
                thread::park_timeout(Duration::from_nanos(wake.saturating_sub(now)));
            }
            Nap::Until(None) => thread::park(),
            Nap::Yield => thread::yield_now(),
        }
    }
}

/// Waits for a future that needs no timer.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let waker = unpark_this_thread();
    let cx = &mut Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(cx) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

fn unpark_this_thread() -> Waker {
    Waker::from(Arc::new(Unpark(thread::current())))
}

/// # Panics
///
/// Where asynchronous tasks run, with Tokio's own message, which only Tokio's blocking functions have.
#[track_caller]
pub(crate) fn assert_may_block() {
    drop(Mutex::new(()).blocking_lock());
}
