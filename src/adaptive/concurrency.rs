//! [`AdaptiveConcurrency`]: so many at a time as the service can take.

use super::aimd::Aimd;
use super::attempt::Attempt;
use super::core::{Core, Method, Outcome};
use super::error::AdaptiveError;
use super::gradient::Gradient;
use super::level::MOST;
use crate::concurrency::Concurrency;
use crate::error::{AcquireError, TryAcquireError};
use std::sync::Arc;

/// A [`Concurrency`] whose limit follows the latency and the failures that callers report.
///
/// It follows them by [`Aimd`] or by [`Gradient`]. The limit is in whole calls at a time, 1 to
/// 1 048 575; fractions are kept beside it, so a limit of 10 needs ten successes to become 11.
///
/// Clones share the limit. A report is lock-free; where it changes the limit, Tokio's semaphore locks
/// inside for an instant.
///
/// # When to choose it
///
/// For a service that gets slower when it has more to do: one with workers, a database, a queue. Where
/// it refuses instead by a rate of its own, take [`AdaptiveRate`](super::AdaptiveRate); both work
/// together in [`All`](crate::All). If calls differ in length by what they ask for and not by how much
/// there is to do, latency says little: use [`Aimd`] without a latency, or a limit for each kind.
///
/// # With other limits
///
/// [`concurrency`](Self::concurrency) takes part in [`All`](crate::All), and
/// [`attempt`](Self::attempt) begins the call once all of them have let it through. `All` takes the
/// places first, and who waits for a turn has one: where the rate is what holds callers back, the limit
/// looks used and grows. To keep it close, wait for the turn and then [`acquire`](Self::acquire).
///
/// # Examples
///
/// ```
/// use paceline::adaptive::{AdaptiveConcurrency, Aimd};
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let aimd = Aimd::new().latency(Duration::from_millis(200));
/// let limit = AdaptiveConcurrency::builder(10).max(100).aimd(aimd)?;
///
/// let attempt = limit.acquire().await?;
/// // The call is made here.
/// attempt.succeeded();
///
/// limit.acquire().await?.failed();
/// assert_eq!(limit.limit(), 7);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct AdaptiveConcurrency {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    core: Core,
    concurrency: Concurrency,
}

impl AdaptiveConcurrency {
    /// A limit that starts at `initial`.
    pub fn builder(initial: u32) -> AdaptiveConcurrencyBuilder {
        AdaptiveConcurrencyBuilder { min: 1, initial, max: MOST }
    }

    /// Waits for a place, and begins a call.
    ///
    /// # Errors
    ///
    /// [`AcquireError::Closed`].
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time: its place in the queue is lost, and no place is. Nothing is
    /// reported then.
    pub async fn acquire(&self) -> Result<Attempt, AcquireError> {
        let place = self.shared.concurrency.acquire().await?;
        Ok(Attempt::new(Arc::clone(&self.shared), Some(place)))
    }

    /// Takes a place if there is one now, and begins a call.
    ///
    /// # Errors
    ///
    /// [`TryAcquireError::AtCapacity`] if there is none, or [`Closed`](TryAcquireError::Closed).
    pub fn try_acquire(&self) -> Result<Attempt, TryAcquireError> {
        let place = self.shared.concurrency.try_acquire()?;
        Ok(Attempt::new(Arc::clone(&self.shared), Some(place)))
    }

    /// Begins a call that has its place already, from [`All`](crate::All) or of
    /// [`concurrency`](Self::concurrency). Report it before the place goes back, or the limit looks
    /// less used than it is.
    pub fn attempt(&self) -> Attempt {
        Attempt::new(Arc::clone(&self.shared), None)
    }

    /// The limit itself, to take part in [`All`](crate::All), to be asked, or to be closed. A limit that
    /// is set there holds until the next report that changes it.
    #[must_use]
    pub fn concurrency(&self) -> &Concurrency {
        &self.shared.concurrency
    }

    /// How many are allowed at a time now.
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.shared.concurrency.limit()
    }
}

impl Shared {
    pub(super) fn round(&self) -> u64 {
        self.core.level().round
    }

    pub(super) fn report(&self, round: u64, outcome: Outcome) {
        let limit = self.concurrency.limit();
        let in_use = limit.saturating_sub(self.concurrency.available());
        let busy = in_use >= limit.div_ceil(2);
        if self.core.report(round, outcome, busy) {
            self.core.govern(&self.concurrency);
        }
    }
}

/// What more can be said of an [`AdaptiveConcurrency`]: what [`AdaptiveConcurrency::builder`] returns.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `aimd` or `gradient`"]
pub struct AdaptiveConcurrencyBuilder {
    min: u32,
    initial: u32,
    max: u32,
}

impl AdaptiveConcurrencyBuilder {
    /// The smallest limit: 1 unless set.
    pub fn min(self, min: u32) -> Self {
        Self { min, ..self }
    }

    /// The largest limit: 1 048 575 unless set, which is also the largest that there is.
    pub fn max(self, max: u32) -> Self {
        Self { max, ..self }
    }

    /// Builds one that follows failures and a bound of the latency.
    ///
    /// # Errors
    ///
    /// [`AdaptiveError`] for a value out of range, which it names.
    pub fn aimd(self, aimd: Aimd) -> Result<AdaptiveConcurrency, AdaptiveError> {
        self.build(Method::Aimd(aimd.checked()?))
    }

    /// Builds one that follows how much slower calls get.
    ///
    /// # Errors
    ///
    /// [`AdaptiveError`] for a value out of range, which it names.
    pub fn gradient(self, gradient: Gradient) -> Result<AdaptiveConcurrency, AdaptiveError> {
        self.build(Method::gradient(gradient.checked()?))
    }

    fn build(self, method: Method) -> Result<AdaptiveConcurrency, AdaptiveError> {
        let Self { min, initial, max } = self;
        if !(1 <= min && min <= initial && initial <= max && max <= MOST) {
            return Err(AdaptiveError::LimitsOutOfRange { min, initial, max });
        }
        let core = Core::new(method, [min, initial, max]);
        let shared = Shared { core, concurrency: Concurrency::new(initial) };
        Ok(AdaptiveConcurrency { shared: Arc::new(shared) })
    }
}
