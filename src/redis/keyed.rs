//! [`KeyedRedisLimiter`]: a limit for each key.

use super::acquire::Acquire;
use super::builder::Builder;
use super::error::{Error, Failure};
use super::fallback::Substitute;
use super::limiter::RedisLimiter;
use super::name;
use super::remote::{Line, Remote};
use super::reservation::Reservation;
use super::settings::Settings;
use crate::error::{RangeError, ReserveError, TryAcquireError};
use crate::line::Bounds;
use crate::rate::Rate;
use ::redis::aio::ConnectionLike;
use std::fmt;
use std::sync::Arc;

/// A rate limiter for each key, on a Redis or Valkey server.
///
/// Nothing is kept here: what there is of a key is on the server, and gone from it when its bucket is
/// full again.
#[derive(Clone)]
pub struct KeyedRedisLimiter {
    remote: Arc<Remote>,
    name: String,
    settings: Settings,
    bounds: Bounds,
    /// Fails closed: what else to do, the caller knows.
    substitute: Arc<Substitute>,
}

impl KeyedRedisLimiter {
    /// A builder: as [`RedisLimiter::builder`], for a limit of that rate for each key.
    pub fn builder<C>(connection: C, name: impl Into<String>, rate: Rate) -> Builder<Self>
    where
        C: ConnectionLike + Clone + Send + Sync + 'static,
    {
        Builder::new(connection, name.into(), rate)
    }

    pub(super) fn new(
        remote: Arc<Remote>,
        name: String,
        settings: Settings,
        bounds: Bounds,
    ) -> Self {
        Self { remote, name, settings, bounds, substitute: Arc::new(Substitute::Closed) }
    }

    /// The limiter of one key: for several calls in a row, and for all that is not here by itself.
    #[must_use]
    pub fn of(&self, key: impl AsRef<str>) -> RedisLimiter {
        RedisLimiter::new(self.line(key.as_ref()), self.bounds, None, Arc::clone(&self.substitute))
    }

    fn line(&self, key: &str) -> Arc<Line> {
        let key = name::of_key(&self.name, key);
        Line::new(Arc::clone(&self.remote), key, self.settings)
    }

    /// As [`RedisLimiter::try_acquire`], of `key`.
    ///
    /// # Errors
    ///
    /// Those of [`RedisLimiter::try_acquire_many`].
    pub async fn try_acquire(&self, key: impl AsRef<str>) -> Result<(), Error<TryAcquireError>> {
        self.try_acquire_many(key, 1).await
    }

    /// As [`RedisLimiter::try_acquire_many`], of `key`.
    ///
    /// # Errors
    ///
    /// Those of [`RedisLimiter::try_acquire_many`].
    pub async fn try_acquire_many(
        &self,
        key: impl AsRef<str>,
        n: u32,
    ) -> Result<(), Error<TryAcquireError>> {
        self.of(key).try_acquire_many(n).await
    }

    /// As [`RedisLimiter::acquire`], of `key`.
    pub fn acquire(&self, key: impl AsRef<str>) -> Acquire<'_> {
        self.acquire_many(key, 1)
    }

    /// As [`RedisLimiter::acquire_many`], of `key`.
    pub fn acquire_many(&self, key: impl AsRef<str>, n: u32) -> Acquire<'_> {
        Acquire::new(self.of(key), n)
    }

    /// As [`RedisLimiter::reserve`], of `key`.
    ///
    /// # Errors
    ///
    /// Those of [`RedisLimiter::reserve_many`].
    pub async fn reserve(&self, key: impl AsRef<str>) -> Result<Reservation, Error<ReserveError>> {
        self.reserve_many(key, 1).await
    }

    /// As [`RedisLimiter::reserve_many`], of `key`.
    ///
    /// # Errors
    ///
    /// Those of [`RedisLimiter::reserve_many`].
    pub async fn reserve_many(
        &self,
        key: impl AsRef<str>,
        n: u32,
    ) -> Result<Reservation, Error<ReserveError>> {
        self.of(key).reserve_many(n).await
    }

    /// As [`RedisLimiter::set_rate`], of `key` alone.
    ///
    /// # Errors
    ///
    /// Those of [`RedisLimiter::set_rate`].
    pub async fn set_rate(
        &self,
        key: impl AsRef<str>,
        rate: Rate,
    ) -> Result<(), Error<RangeError>> {
        self.of(key).set_rate(rate).await
    }

    /// As [`RedisLimiter::set_burst`], of `key` alone.
    ///
    /// # Errors
    ///
    /// Those of [`RedisLimiter::set_burst`].
    pub async fn set_burst(
        &self,
        key: impl AsRef<str>,
        burst: u32,
    ) -> Result<(), Error<RangeError>> {
        self.of(key).set_burst(burst).await
    }

    /// As [`RedisLimiter::tokens`], of `key`.
    ///
    /// # Errors
    ///
    /// If the server did not answer.
    pub async fn tokens(&self, key: impl AsRef<str>) -> Result<f64, Failure> {
        self.of(key).tokens().await
    }
}

impl fmt::Debug for KeyedRedisLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedRedisLimiter")
            .field("rate", &self.settings.rate())
            .field("burst", &self.settings.burst())
            .finish_non_exhaustive()
    }
}
