//! A turn that is booked on a server.

use super::acquire::wait_for_turn;
use super::error::Failure;
use super::remote::{Held, Turn};
use std::time::Duration;
use tokio::time::Instant;

/// A turn that is booked on a server: what
/// [`RedisLimiter::reserve`](super::RedisLimiter::reserve) returns.
///
/// As with a [`Reservation`](crate::Reservation) of one process, dropping it keeps its permits spent.
#[derive(Debug)]
#[must_use = "a reservation that is dropped keeps its permits spent; `cancel` gives them back"]
pub struct Reservation {
    // None once it was given back.
    held: Option<Held>,
}

impl Reservation {
    pub(super) fn new(held: Held) -> Self {
        Self { held: Some(held) }
    }

    fn turn(&self) -> Turn {
        self.held.as_ref().map_or_else(|| Turn::At(Instant::now()), Held::turn)
    }

    /// How long from now until its turn: zero when it has come, [`Duration::MAX`] when it never
    /// comes. It is by the rate as this process last heard of it.
    #[must_use]
    pub fn delay(&self) -> Duration {
        match self.turn() {
            Turn::At(turn) => turn.saturating_duration_since(Instant::now()),
            Turn::Never => Duration::MAX,
        }
    }

    /// When its turn comes, by the clock of this process: as late as the server's answer was
    /// under way, and never too early. `None` if it never comes.
    #[must_use]
    pub fn ready_at(&self) -> Option<Instant> {
        match self.turn() {
            Turn::At(turn) => Some(turn),
            Turn::Never => None,
        }
    }

    /// When its turn comes by the clock of the limit, as the time since the Unix epoch in whole
    /// microseconds. `None` if it never comes.
    #[must_use]
    pub fn due(&self) -> Option<Duration> {
        self.held.as_ref().and_then(Held::due)
    }

    /// How many permits it holds.
    #[must_use]
    pub fn permits(&self) -> u32 {
        self.held.as_ref().map_or(0, Held::permits)
    }

    /// Gives the permits back, to be used by others; says whether they are free again.
    ///
    /// After the turn has come, by the server's clock, it gives nothing back, as in Go. At the very
    /// microsecond of the turn it still does.
    ///
    /// # Errors
    ///
    /// If the server could not be told, after several attempts. It was given back then once or not
    /// at all.
    ///
    /// # Cancel safety
    ///
    /// Polled once, it goes on in the background when it is dropped.
    pub async fn cancel(self) -> Result<bool, Failure> {
        self.give_back(false).await
    }

    /// Gives back the permits of a turn that has come and was not used after all: they are free
    /// again as far as they have not overflowed. Says whether it was given back.
    ///
    /// # Errors
    ///
    /// As [`cancel`](Self::cancel).
    ///
    /// # Cancel safety
    ///
    /// Polled once, it goes on in the background when it is dropped.
    pub async fn refund(self) -> Result<bool, Failure> {
        self.give_back(true).await
    }

    async fn give_back(mut self, refund: bool) -> Result<bool, Failure> {
        match self.held.take() {
            Some(held) => held.give_back(refund).await,
            None => Ok(false),
        }
    }

    /// Waits for the turn.
    ///
    /// # Cancel safety
    ///
    /// The future may be dropped at any time: the reservation stays as it is.
    pub async fn ready(&self) {
        if let Some(held) = &self.held {
            let _ = wait_for_turn(held, |_| false).await;
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            held.keep();
        }
    }
}
