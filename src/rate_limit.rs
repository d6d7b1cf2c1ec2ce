//! What all limiters have in common, for code that takes any of them.

use crate::acquire::Acquire;
use crate::error::{AcquireError, TryAcquireError};
use crate::stats::Stats;
use crate::turns::Turns;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The verbs that all limiters of this crate share. It is for use as a bound, and is not
/// implemented elsewhere; [`DynRateLimit`] is its form for `dyn`.
///
/// # Examples
///
/// ```
/// use paceline::{AcquireError, RateLimit};
///
/// /// Sends `requests`, each when its turn comes.
/// async fn send(requests: Vec<String>, limiter: &impl RateLimit) -> Result<(), AcquireError> {
///     for request in requests {
///         limiter.acquire().await?;
///         println!("{request}");
///     }
///     Ok(())
/// }
/// ```
#[expect(private_bounds, reason = "it is implemented for the limiters of this crate alone")]
pub trait RateLimit: Turns {
    /// The future of [`acquire`](Self::acquire): an [`Acquire`].
    type Acquire<'a>: Future<Output = Result<Duration, AcquireError>> + Send
    where
        Self: 'a;

    /// Takes a permit if there is one now.
    ///
    /// # Errors
    ///
    /// Those of the limiter's own `try_acquire`.
    fn try_acquire(&self) -> Result<(), TryAcquireError> {
        self.try_acquire_many(1)
    }

    /// Takes `n` permits if there are so many now.
    ///
    /// # Errors
    ///
    /// Those of the limiter's own `try_acquire_many`.
    fn try_acquire_many(&self, n: u32) -> Result<(), TryAcquireError>;

    /// Waits for a permit; resolves to how long that took.
    fn acquire(&self) -> Self::Acquire<'_> {
        self.acquire_many(1)
    }

    /// Waits for `n` permits, which come together.
    fn acquire_many(&self, n: u32) -> Self::Acquire<'_>;

    /// As [`acquire_many`](Self::acquire_many); refused at once, and nothing taken, if it can't be
    /// served within `wait`.
    fn acquire_many_within(&self, n: u32, wait: Duration) -> Self::Acquire<'_>;

    /// As [`acquire_many`](Self::acquire_many); refused at once, and nothing taken, if it can't be
    /// served before `deadline`.
    fn acquire_many_before(&self, n: u32, deadline: Instant) -> Self::Acquire<'_>;

    /// As [`acquire_many`](Self::acquire_many), with a future that owns the limiter and so is
    /// `'static`.
    fn acquire_many_owned(self: Arc<Self>, n: u32) -> Self::Acquire<'static>
    where
        Self: 'static;

    /// Waits for a permit by blocking this thread. See [`Acquire::blocking`].
    ///
    /// # Errors
    ///
    /// As for [`acquire`](Self::acquire).
    ///
    /// # Panics
    ///
    /// If it is called where asynchronous tasks run, as Tokio's own blocking functions do.
    #[track_caller]
    fn blocking_acquire(&self) -> Result<Duration, AcquireError> {
        self.blocking_acquire_many(1)
    }

    /// Waits for `n` permits by blocking this thread. See [`Acquire::blocking`].
    ///
    /// # Errors
    ///
    /// As for [`acquire_many`](Self::acquire_many).
    ///
    /// # Panics
    ///
    /// If it is called where asynchronous tasks run, as Tokio's own blocking functions do.
    #[track_caller]
    fn blocking_acquire_many(&self, n: u32) -> Result<Duration, AcquireError>;

    /// Waits for `n` permits by blocking this thread; refused at once, and nothing taken, if they can't
    /// be had within `wait`. See [`Acquire::blocking`].
    ///
    /// # Errors
    ///
    /// As for [`acquire_many_within`](Self::acquire_many_within).
    ///
    /// # Panics
    ///
    /// If it is called where asynchronous tasks run, as Tokio's own blocking functions do.
    #[track_caller]
    fn blocking_acquire_many_within(
        &self,
        n: u32,
        wait: Duration,
    ) -> Result<Duration, AcquireError>;

    /// Closes the limiter for good: every request is refused, and all who wait are let go.
    fn close(&self);

    /// Whether the limiter is closed.
    fn is_closed(&self) -> bool;

    /// What there is to see of it now. It is computed of the state: what nobody asks costs nothing.
    fn stats(&self) -> Stats;
}

/// [`RateLimit`] for `dyn`: its futures are boxed.
///
/// # Examples
///
/// ```
/// use paceline::{DynRateLimit, Limiter, Rate};
///
/// let limiters: Vec<Box<dyn DynRateLimit>> = vec![Box::new(Limiter::new(Rate::per_second(1), 1))];
/// assert!(limiters[0].try_acquire().is_ok());
/// ```
pub trait DynRateLimit: Send + Sync {
    /// As [`RateLimit::try_acquire`].
    ///
    /// # Errors
    ///
    /// Those of the limiter's own `try_acquire`.
    fn try_acquire(&self) -> Result<(), TryAcquireError>;

    /// As [`RateLimit::try_acquire_many`].
    ///
    /// # Errors
    ///
    /// Those of the limiter's own `try_acquire_many`.
    fn try_acquire_many(&self, n: u32) -> Result<(), TryAcquireError>;

    /// As [`RateLimit::acquire`].
    fn acquire(&self) -> BoxAcquire<'_>;

    /// As [`RateLimit::acquire_many`].
    fn acquire_many(&self, n: u32) -> BoxAcquire<'_>;

    /// As [`RateLimit::acquire_many_within`].
    fn acquire_many_within(&self, n: u32, wait: Duration) -> BoxAcquire<'_>;

    /// As [`RateLimit::acquire_many_before`].
    fn acquire_many_before(&self, n: u32, deadline: Instant) -> BoxAcquire<'_>;

    /// As [`RateLimit::blocking_acquire`].
    ///
    /// # Errors
    ///
    /// As for [`RateLimit::acquire`].
    #[track_caller]
    fn blocking_acquire(&self) -> Result<Duration, AcquireError>;

    /// As [`RateLimit::blocking_acquire_many`].
    ///
    /// # Errors
    ///
    /// As for [`RateLimit::acquire_many`].
    #[track_caller]
    fn blocking_acquire_many(&self, n: u32) -> Result<Duration, AcquireError>;

    /// As [`RateLimit::blocking_acquire_many_within`].
    ///
    /// # Errors
    ///
    /// As for [`RateLimit::acquire_many_within`].
    #[track_caller]
    fn blocking_acquire_many_within(
        &self,
        n: u32,
        wait: Duration,
    ) -> Result<Duration, AcquireError>;

    /// As [`RateLimit::close`].
    fn close(&self);

    /// As [`RateLimit::is_closed`].
    fn is_closed(&self) -> bool;

    /// As [`RateLimit::stats`].
    fn stats(&self) -> Stats;
}

/// The future of a [`DynRateLimit`]. Dropped before it completed, it gives its permits back.
pub type BoxAcquire<'a> = Pin<Box<dyn Future<Output = Result<Duration, AcquireError>> + Send + 'a>>;

impl<L: Turns> RateLimit for L {
    type Acquire<'a>
        = Acquire<'a, L>
    where
        L: 'a;

    fn try_acquire_many(&self, n: u32) -> Result<(), TryAcquireError> {
        self.try_at(n, None)
    }

    fn acquire_many(&self, n: u32) -> Acquire<'_, L> {
        Acquire::borrowed(self, n)
    }

    fn acquire_many_within(&self, n: u32, wait: Duration) -> Acquire<'_, L> {
        Acquire::borrowed(self, n).within(wait)
    }

    fn acquire_many_before(&self, n: u32, deadline: Instant) -> Acquire<'_, L> {
        Acquire::borrowed(self, n).before(deadline)
    }

    fn acquire_many_owned(self: Arc<Self>, n: u32) -> Acquire<'static, L>
    where
        L: 'static,
    {
        Acquire::owned(self, n)
    }

    fn blocking_acquire_many(&self, n: u32) -> Result<Duration, AcquireError> {
        Acquire::borrowed(self, n).blocking()
    }

    fn blocking_acquire_many_within(
        &self,
        n: u32,
        wait: Duration,
    ) -> Result<Duration, AcquireError> {
        Acquire::borrowed(self, n).within(wait).blocking()
    }

    fn close(&self) {
        Turns::close(self);
    }

    fn is_closed(&self) -> bool {
        Turns::is_closed(self)
    }

    fn stats(&self) -> Stats {
        Stats::of(self)
    }
}

impl<L: RateLimit> DynRateLimit for L {
    fn try_acquire(&self) -> Result<(), TryAcquireError> {
        RateLimit::try_acquire(self)
    }

    fn try_acquire_many(&self, n: u32) -> Result<(), TryAcquireError> {
        RateLimit::try_acquire_many(self, n)
    }

    fn acquire(&self) -> BoxAcquire<'_> {
        Box::pin(RateLimit::acquire(self))
    }

    fn acquire_many(&self, n: u32) -> BoxAcquire<'_> {
        Box::pin(RateLimit::acquire_many(self, n))
    }

    fn acquire_many_within(&self, n: u32, wait: Duration) -> BoxAcquire<'_> {
        Box::pin(RateLimit::acquire_many_within(self, n, wait))
    }

    fn acquire_many_before(&self, n: u32, deadline: Instant) -> BoxAcquire<'_> {
        Box::pin(RateLimit::acquire_many_before(self, n, deadline))
    }

    fn blocking_acquire(&self) -> Result<Duration, AcquireError> {
        RateLimit::blocking_acquire(self)
    }

    fn blocking_acquire_many(&self, n: u32) -> Result<Duration, AcquireError> {
        RateLimit::blocking_acquire_many(self, n)
    }

    fn blocking_acquire_many_within(
        &self,
        n: u32,
        wait: Duration,
    ) -> Result<Duration, AcquireError> {
        RateLimit::blocking_acquire_many_within(self, n, wait)
    }

    fn close(&self) {
        RateLimit::close(self);
    }

    fn is_closed(&self) -> bool {
        RateLimit::is_closed(self)
    }

    fn stats(&self) -> Stats {
        RateLimit::stats(self)
    }
}
