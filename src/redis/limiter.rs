//! [`RedisLimiter`]: one limit that processes share.

use super::acquire::Acquire;
use super::builder::Builder;
use super::error::{Error, Failure};
use super::fallback::Substitute;
use super::lease::{Leased, Told};
use super::remote::{Line, Outcome, Patience};
use super::reservation::Reservation;
use super::settings::Change;
use crate::error::{Limited, RangeError, ReserveError, TryAcquireError};
use crate::line::{Bounds, Turn};
use crate::rate::Rate;
use ::redis::aio::ConnectionLike;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A rate limiter whose state is on a Redis or Valkey server, for all processes that use the same
/// name.
///
/// The [module's documentation](super) says what it promises, and what it costs.
#[derive(Clone)]
pub struct RedisLimiter {
    line: Arc<Line>,
    bounds: Bounds,
    leased: Option<Arc<Leased>>,
    substitute: Arc<Substitute>,
}

impl RedisLimiter {
    /// A builder of a limiter with the name `name` on the server behind `connection`: a
    /// `MultiplexedConnection`, or by features of the crate `redis` a `ConnectionManager` or a
    /// `ClusterConnection`.
    ///
    /// All who use a name share one limit. The first to come decides on its rate and burst, and the
    /// others follow; [`set_rate`](Self::set_rate) changes it for all.
    pub fn builder<C>(connection: C, name: impl Into<String>, rate: Rate) -> Builder<Self>
    where
        C: ConnectionLike + Clone + Send + Sync + 'static,
    {
        Builder::new(connection, name.into(), rate)
    }

    pub(super) fn new(
        line: Arc<Line>,
        bounds: Bounds,
        leased: Option<Arc<Leased>>,
        substitute: Arc<Substitute>,
    ) -> Self {
        Self { line, bounds, leased, substitute }
    }

    pub(super) fn line(&self) -> &Arc<Line> {
        &self.line
    }

    pub(super) fn leased(&self) -> Option<&Arc<Leased>> {
        self.leased.as_ref()
    }

    pub(super) fn substitute(&self) -> &Substitute {
        &self.substitute
    }

    /// Takes a permit if there is one now.
    ///
    /// # Errors
    ///
    /// Those of [`try_acquire_many`](Self::try_acquire_many).
    pub async fn try_acquire(&self) -> Result<(), Error<TryAcquireError>> {
        self.try_acquire_many(1).await
    }

    /// Takes `n` permits if there are so many now.
    ///
    /// # Errors
    ///
    /// * [`TryAcquireError::Limited`], and when to try again.
    /// * [`TryAcquireError::ExceedsBurst`] if there never are so many.
    /// * [`Error::Failed`] if the server did not answer.
    ///
    /// # Cancel safety
    ///
    /// What it took before it was dropped is given back in the background.
    pub async fn try_acquire_many(&self, n: u32) -> Result<(), Error<TryAcquireError>> {
        match self.try_lease(n).await {
            Err(Error::Failed(failure)) => self.substitute.try_acquire(n, failure),
            outcome => {
                self.substitute.stand_back();
                outcome
            }
        }
    }

    async fn try_lease(&self, n: u32) -> Result<(), Error<TryAcquireError>> {
        let Some(leased) = &self.leased else { return self.try_on_server(n).await };
        match leased.try_acquire(n).await? {
            Told::Taken => Ok(()),
            Told::NotBefore(turn) => {
                let wait = turn.saturating_duration_since(Instant::now());
                let turn = Turn::after(Some(crate::time::nanos(wait)));
                Err(Error::Refused(TryAcquireError::Limited(Limited::new(n, turn))))
            }
            Told::AskTheServer => self.try_on_server(n).await,
        }
    }

    async fn try_on_server(&self, n: u32) -> Result<(), Error<TryAcquireError>> {
        let refused = |turn| Err(Error::Refused(TryAcquireError::Limited(Limited::new(n, turn))));
        match self.line.book(n, Patience::AtMost(Duration::ZERO)).await? {
            Outcome::Booked(held) => {
                held.keep();
                Ok(())
            }
            Outcome::Late(wait) => refused(Turn::after(wait.map(crate::time::nanos))),
            Outcome::ExceedsBurst { burst } => {
                Err(Error::Refused(TryAcquireError::ExceedsBurst { requested: n, burst }))
            }
            Outcome::NoRoom => refused(Turn::after(None)),
        }
    }

    /// Waits for a permit; resolves to how long that took.
    pub fn acquire(&self) -> Acquire<'_> {
        self.acquire_many(1)
    }

    /// Waits for `n` permits, which come together.
    pub fn acquire_many(&self, n: u32) -> Acquire<'_> {
        Acquire::new(self.clone(), n)
    }

    /// Books the next turn.
    ///
    /// # Errors
    ///
    /// Those of [`reserve_many`](Self::reserve_many).
    pub async fn reserve(&self) -> Result<Reservation, Error<ReserveError>> {
        self.reserve_many(1).await
    }

    /// Books the next turn of `n` permits, however far ahead it is.
    ///
    /// # Errors
    ///
    /// * [`ReserveError::ExceedsBurst`] if there never are so many.
    /// * [`ReserveError::DebtTooLarge`] if the line has no room for so much.
    /// * [`Error::Failed`] if the server did not answer.
    ///
    /// # Cancel safety
    ///
    /// What it booked before it was dropped is given back in the background.
    pub async fn reserve_many(&self, n: u32) -> Result<Reservation, Error<ReserveError>> {
        match self.line.book(n, Patience::Forever).await? {
            Outcome::Booked(held) => Ok(Reservation::new(held)),
            Outcome::ExceedsBurst { burst } => {
                Err(Error::Refused(ReserveError::ExceedsBurst { requested: n, burst }))
            }
            Outcome::NoRoom | Outcome::Late(_) => {
                Err(Error::Refused(ReserveError::DebtTooLarge { requested: n }))
            }
        }
    }

    /// Sets the rate, for all who share the limit.
    ///
    /// Who waits in this process is re-timed at once; who waits in another, with that process's next
    /// call or within a second.
    ///
    /// # Errors
    ///
    /// [`RangeError::RateExceedsMax`] beyond what the limiter was built for; [`Error::Failed`] if
    /// the server did not answer.
    pub async fn set_rate(&self, rate: Rate) -> Result<(), Error<RangeError>> {
        if rate.exceeds(self.bounds.rate) && !rate.is_unlimited() {
            return Err(RangeError::RateExceedsMax { rate, max: self.bounds.rate }.into());
        }
        Ok(self.line.set(Change::Rate(rate)).await?)
    }

    /// Sets the burst, for all who share the limit.
    ///
    /// # Errors
    ///
    /// [`RangeError::BurstExceedsMax`] beyond what the limiter was built for; [`Error::Failed`] if
    /// the server did not answer.
    pub async fn set_burst(&self, burst: u32) -> Result<(), Error<RangeError>> {
        if burst > self.bounds.burst {
            return Err(RangeError::BurstExceedsMax { burst, max: self.bounds.burst }.into());
        }
        Ok(self.line.set(Change::Burst(burst)).await?)
    }

    /// The rate, as this process last heard of it.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.line.settings().rate()
    }

    /// The burst, as this process last heard of it.
    #[must_use]
    pub fn burst(&self) -> u32 {
        self.line.settings().burst()
    }

    /// The free permits: negative while more are booked than are minted.
    ///
    /// # Errors
    ///
    /// If the server did not answer.
    pub async fn tokens(&self) -> Result<f64, Failure> {
        self.line.tokens().await
    }
}

impl fmt::Debug for RedisLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisLimiter")
            .field("rate", &self.rate())
            .field("burst", &self.burst())
            .finish_non_exhaustive()
    }
}
