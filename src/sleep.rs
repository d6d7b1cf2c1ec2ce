//! Waiting for a turn: the one way in which anything here sleeps.

use crate::limiter::Limiter;
use crate::line::Booking;
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::futures::OwnedNotified;
use tokio::time::{Instant, Sleep, sleep_until};

/// As good as never, and within what every platform's clock can tell.
const FAR_AWAY: Duration = Duration::from_secs(30 * 365 * 86_400);

/// The limiter was closed while a turn was awaited.
pub(crate) struct Closed;

pin_project! {
    /// Sleeps until the turn of a booking, which may move while it sleeps.
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
    pub(crate) fn new(limiter: &Limiter, booking: &Booking) -> Self {
        // Listens before it looks: a change that comes in between is heard.
        let changed = Arc::clone(limiter.changed()).notified_owned();
        Self { timer: sleep_until(wake_at(limiter, booking)), changed }
    }

    /// Waits until the turn of `booking` has come.
    pub(crate) fn poll_turn(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        limiter: &Limiter,
        booking: &Booking,
    ) -> Poll<Result<(), Closed>> {
        let mut this = self.project();
        loop {
            if limiter.is_closed() {
                return Poll::Ready(Err(Closed));
            }
            if this.changed.as_mut().poll(cx).is_ready() {
                // Listens again before it looks again.
                this.changed.set(Arc::clone(limiter.changed()).notified_owned());
                this.timer.as_mut().reset(wake_at(limiter, booking));
                continue;
            }
            ready!(this.timer.as_mut().poll(cx));
            let turn = limiter.due(booking);
            if turn.is_some_and(|turn| turn <= limiter.now()) {
                return Poll::Ready(Ok(()));
            }
            this.timer.as_mut().reset(wake_at(limiter, booking));
        }
    }
}

/// When to look whether the turn has come. A turn that is too far away for the clock, or never
/// comes, is looked at now and then.
fn wake_at(limiter: &Limiter, booking: &Booking) -> Instant {
    let turn = limiter.due(booking).and_then(|turn| limiter.time().instant(turn));
    turn.unwrap_or_else(|| Instant::now() + FAR_AWAY)
}
