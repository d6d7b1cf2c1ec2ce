//! What more can be said of a limiter on a server.

use super::clock::TimeSource;
use super::connection::Connection;
use super::error::Error;
use super::fallback::{Fallback, Substitute};
use super::keyed::KeyedRedisLimiter;
use super::lease::{Lease, Leased};
use super::limiter::RedisLimiter;
use super::name;
use super::remote::{Line, Remote};
use super::settings::Settings;
use crate::breaker::CircuitBreaker;
use crate::error::BuildError;
use crate::line::Bounds;
use crate::rate::Rate;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// How long a call waits for its answer unless something else is said.
const USUAL_TIMEOUT: Duration = Duration::from_millis(250);

/// Builds a [`RedisLimiter`] or a [`KeyedRedisLimiter`].
#[must_use = "a builder does nothing until `build`"]
pub struct Builder<L> {
    connection: Arc<dyn Connection>,
    name: String,
    rate: Rate,
    burst: u32,
    max_rate: Option<Rate>,
    max_burst: Option<u32>,
    timeout: Duration,
    time: TimeSource,
    breaker: Option<CircuitBreaker>,
    lease: Option<Lease>,
    fallback: Fallback,
    limiter: PhantomData<fn() -> L>,
}

impl<L> Builder<L> {
    pub(super) fn new(connection: impl Connection + 'static, name: String, rate: Rate) -> Self {
        Self {
            connection: Arc::new(connection),
            name,
            rate,
            burst: 1,
            max_rate: None,
            max_burst: None,
            timeout: USUAL_TIMEOUT,
            time: TimeSource::default(),
            breaker: None,
            lease: None,
            fallback: Fallback::default(),
            limiter: PhantomData,
        }
    }

    /// How many permits are kept for when they are wanted; 1 unless set.
    pub fn burst(mut self, burst: u32) -> Self {
        self.burst = burst;
        self
    }

    /// The fastest that the limit may be set to; as for a limiter of one process unless set:
    /// see [`crate::Builder::max_rate`].
    pub fn max_rate(mut self, rate: Rate) -> Self {
        self.max_rate = Some(rate);
        self
    }

    /// The largest burst that the limit may be set to; as for a limiter of one process unless set:
    /// see [`crate::Builder::max_burst`].
    pub fn max_burst(mut self, burst: u32) -> Self {
        self.max_burst = Some(burst);
        self
    }

    /// How long each call waits for its answer, whatever the client does meanwhile: 250 ms unless
    /// set. A call that takes longer fails with [`Failure::Timeout`](super::Failure::Timeout).
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Whose clock tells the time: the server's unless set.
    pub fn time(mut self, time: TimeSource) -> Self {
        self.time = time;
        self
    }

    /// What spares callers the wait for a server that does not answer: one that opens for 300 ms after
    /// 5 failures in a row unless set. While it is open, calls fail at once with
    /// [`Failure::Open`](super::Failure::Open), and the fallback is all that there is.
    pub fn breaker(mut self, breaker: CircuitBreaker) -> Self {
        self.breaker = Some(breaker);
        self
    }

    fn settings(&self) -> Result<(Settings, Bounds), BuildError> {
        let (rate, burst) = (self.rate, self.burst);
        if let Some(max) = self.max_rate.filter(|max| rate.exceeds(*max) && !rate.is_unlimited()) {
            return Err(BuildError::RateExceedsMax { rate, max });
        }
        if let Some(max) = self.max_burst.filter(|max| burst > *max) {
            return Err(BuildError::BurstExceedsMax { burst, max });
        }
        let usual = Bounds::usual(rate, burst);
        let bounds = Bounds {
            rate: self.max_rate.unwrap_or(usual.rate),
            burst: self.max_burst.unwrap_or(usual.burst),
        };
        Ok((Settings::new(rate, burst, bounds), bounds))
    }

    fn remote(self) -> Arc<Remote> {
        let Self { connection, timeout, time, breaker, .. } = self;
        let breaker = breaker.unwrap_or_else(usual_breaker);
        Arc::new(Remote { connection, timeout, time, breaker, runtime: Handle::current() })
    }
}

fn usual_breaker() -> CircuitBreaker {
    CircuitBreaker::new(5, 5, Duration::from_millis(300)).expect("numbers that it takes")
}

impl Builder<RedisLimiter> {
    /// Leases permits, instead of asking the server for each request.
    pub fn lease(mut self, lease: Lease) -> Self {
        self.lease = Some(lease);
        self
    }

    /// What becomes of requests while the server can't be asked: they fail unless this is set.
    pub fn fallback(mut self, fallback: Fallback) -> Self {
        self.fallback = fallback;
        self
    }

    /// The limiter. The server is asked once: so it is known to be there, and to run the script.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if the settings don't go together; [`Error::Failed`] if the server did not
    /// answer.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub async fn build(self) -> Result<RedisLimiter, Error<BuildError>> {
        let (settings, bounds) = self.settings()?;
        if self.lease.is_some() && !self.time.is_server() {
            return Err(BuildError::LeaseNeedsServerTime.into());
        }
        let key = name::of_limit(&self.name);
        let substitute = Arc::new(Substitute::new(self.fallback, self.rate, self.burst));
        let lease = self.lease;
        let line = Line::new(self.remote(), key, settings);
        line.tokens().await?;
        let leased = lease.map(|lease| Leased::new(Arc::clone(&line), lease));
        Ok(RedisLimiter::new(line, bounds, leased, substitute))
    }
}

impl Builder<KeyedRedisLimiter> {
    /// The limiter. The server is asked once: so it is known to be there, and to run the script.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if the settings don't go together; [`Error::Failed`] if the server did not
    /// answer.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub async fn build(self) -> Result<KeyedRedisLimiter, Error<BuildError>> {
        let (settings, bounds) = self.settings()?;
        let name = self.name.clone();
        let limiter = KeyedRedisLimiter::new(self.remote(), name, settings, bounds);
        limiter.tokens("").await?;
        Ok(limiter)
    }
}

impl<L> fmt::Debug for Builder<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("name", &self.name)
            .field("rate", &self.rate)
            .field("burst", &self.burst)
            .field("timeout", &self.timeout)
            .field("time", &self.time)
            .finish_non_exhaustive()
    }
}
