//! Waiting for a turn: the one way in which anything here sleeps.
//!
//! Each who waits has a timer of its own, so one that is not polled again delays nobody. All of
//! them listen to the limiter's one [`Notify`](tokio::sync::Notify), which tells of every change
//! of the settings: then each looks again when its turn comes by the present clock.

use crate::limiter::Limiter;
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::futures::OwnedNotified;
use tokio::time::{Instant, Sleep, sleep_until};

/// As good as never, and within what every platform's clock can tell.
const FAR_AWAY: Duration = Duration::from_secs(30 * 365 * 86_400);

/// What one who waits makes of the state of things.
pub(crate) enum Look<T> {
    Done(T),
    /// To be asked again at this time of the limiter, or if anything changes; `None` is never.
    Wait(Option<u64>),
}

pin_project! {
    /// Sleeps, and looks when it wakes.
    #[derive(Debug)]
    pub(crate) struct Sleeper {
        #[pin]
        timer: Sleep,
        #[pin]
        changed: OwnedNotified,
    }
}

impl Sleeper {
    /// # Panics
    ///
    /// Outside of a Tokio runtime with its timer enabled, with Tokio's own message.
    pub(crate) fn new(limiter: &Limiter) -> Self {
        let changed = Arc::clone(limiter.changed()).notified_owned();
        Self { timer: sleep_until(Instant::now()), changed }
    }

    /// Waits until `look` is done with what it sees. It is given the time.
    ///
    /// It listens before it looks: a change that comes before the look is seen by it, and one
    /// that comes after has been listened for. (The other way around, a change in between would be
    /// missed by both.) A `Notified` hears `notify_waiters` from when it was made.
    pub(crate) fn poll<T>(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        limiter: &Limiter,
        mut look: impl FnMut(u64) -> Look<T>,
    ) -> Poll<T> {
        let mut this = self.project();
        loop {
            while this.changed.as_mut().poll(cx).is_ready() {
                this.changed.set(Arc::clone(limiter.changed()).notified_owned());
            }
            let turn = match look(limiter.now()) {
                Look::Done(outcome) => return Poll::Ready(outcome),
                Look::Wait(turn) => turn.and_then(|turn| limiter.time().instant(turn)),
            };
            let wake = turn.unwrap_or_else(|| limiter.time().beginning() + FAR_AWAY);
            if this.timer.deadline() != wake {
                this.timer.as_mut().reset(wake);
            }
            ready!(this.timer.as_mut().poll(cx));
        }
    }
}
