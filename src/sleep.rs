//! Waiting for a turn: the one way in which any task here waits. ([`threads`](crate::threads) is for threads.)
//!
//! Each who waits sleeps on a timer of its own, so one that is not polled again delays nobody. All of
//! them listen to the limiter's one [`Notify`](tokio::sync::Notify), which tells of every change
//! of the settings: then each looks again when its turn comes by the present clock.

use crate::turns::Waiters;
use pin_project_lite::pin_project;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::futures::OwnedNotified;
use tokio::task::yield_now;
use tokio::time::{Instant, Sleep, sleep_until};

/// As good as never, and within what every platform's clock can tell.
pub(crate) const FAR_AWAY: Duration = Duration::from_secs(30 * 365 * 86_400);

/// What one who waits makes of the state of things.
pub(crate) enum Look<T> {
    Done(T),
    /// To be asked again at this time of the limiter, or if anything changes; `None` is never.
    Wait(Option<u64>),
}

/// How one who waits passes the time.
pub(crate) enum Nap {
    /// By the timer until then; `None` is never.
    Until(Option<u64>),
    /// By letting others run.
    Yield,
}

impl Waiters {
    /// What to do at `now` when the turn comes then.
    ///
    /// A clock that stands still is paused, and does not move before everybody sleeps.
    pub(crate) fn nap(&self, now: u64, turn: Option<u64>) -> Nap {
        match (turn, self.precise) {
            (Some(turn), Some(margin)) if now < turn.saturating_sub(margin) => {
                Nap::Until(Some(turn - margin))
            }
            (Some(_), Some(_)) if !self.time.stands_still_at(now) => Nap::Yield,
            _ => Nap::Until(turn),
        }
    }
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
    pub(crate) fn new(waiters: &Waiters) -> Self {
        let changed = Arc::clone(&waiters.changed).notified_owned();
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
        waiters: &Waiters,
        mut look: impl FnMut(u64) -> Look<T>,
    ) -> Poll<T> {
        let mut this = self.project();
        loop {
            while this.changed.as_mut().poll(cx).is_ready() {
                this.changed.set(Arc::clone(&waiters.changed).notified_owned());
            }
            let now = waiters.time.now();
            let turn = match look(now) {
                Look::Done(outcome) => return Poll::Ready(outcome),
                Look::Wait(turn) => turn,
            };
            let wake = match waiters.nap(now, turn) {
                Nap::Until(wake) => wake,
                // Polled once, it asks for this task to be polled again after all that is ready.
                Nap::Yield => {
                    return pin!(yield_now()).poll(cx).map(|()| unreachable!("it yields"));
                }
            };
            let wake = wake.and_then(|wake| waiters.time.instant(wake));
            let wake = wake.unwrap_or_else(|| Instant::now() + FAR_AWAY);
            if this.timer.deadline() != wake {
                this.timer.as_mut().reset(wake);
            }
            ready!(this.timer.as_mut().poll(cx));
        }
    }
}
