//! [`All`]: several limits in one call, all or nothing.

pub(crate) mod member;
pub(crate) mod members;
mod waiting;

use crate::concurrency::Place;
use crate::error::{AcquireError, TryAcquireError};
use members::{Members, in_order};
use std::fmt;
use std::time::Duration;
use tokio::time::Instant;

/// Several limits that hold together: a request is served by all of them or by none.
///
/// Members are limiters of this crate, by value, by reference or in an [`Arc`](std::sync::Arc), and
/// [`Concurrency`](crate::Concurrency); in a tuple of up to eight, an array, a slice or a `Vec`.
///
/// * A try that one of them refuses takes nothing from the others. It looks at all of them before
///   it takes of the first; only where another thread comes in between is something taken and given
///   back.
/// * A refused try tells when to come back: when the last of those that refused has what was asked
///   for.
/// * Who waits has a turn with each of the limiters at once, so it waits as long as the slowest asks; and
///   dropped meanwhile, it gives back all of them. A turn that has overflowed before the
///   last one came is booked anew.
/// * What a [`SlidingWindow`](crate::window::SlidingWindow) or [`SlidingLog`](crate::window::SlidingLog)
///   gives at once is not given back, so it is taken last, when all others have come. Of two of them the
///   first may lose a permit where another thread comes in between.
/// * A member's `max_waiters` is not counted here.
/// * Places of [`Concurrency`](crate::Concurrency) are taken before the turns, in the same order by
///   everybody, so two who name the same limits in different orders do not wait for each other. They are
///   held in the [`Permits`] that it returns.
///
/// # Examples
///
/// Ten a second and a thousand an hour, and at most five at a time:
///
/// ```
/// use paceline::{AcquireError, All, Concurrency, Limiter, Rate};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), AcquireError> {
/// let per_second = Limiter::new(Rate::per_second(10), 10);
/// let per_hour = Limiter::new(Rate::per_hour(1000), 100);
/// let at_a_time = Concurrency::new(5);
///
/// let limits = All::new((&per_second, &per_hour, &at_a_time));
/// let permits = limits.acquire().await?;
/// // The work is done here.
/// drop(permits);
/// # Ok(())
/// # }
/// ```
pub struct All<M> {
    members: M,
}

/// What [`All`] gave: the places that are held, until this is dropped.
#[derive(Debug)]
#[must_use = "places are given back when this is dropped"]
pub struct Permits {
    #[expect(dead_code, reason = "held")]
    places: Vec<Place>,
    waited: Duration,
}

impl Permits {
    /// How long it waited for them.
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.waited
    }
}

#[expect(private_bounds, reason = "only this crate's limits can be members")]
impl<M: Members> All<M> {
    /// These limits, together.
    pub fn new(members: M) -> Self {
        Self { members }
    }

    /// Takes a permit of each if all have one now.
    ///
    /// # Errors
    ///
    /// [`TryAcquireError::Closed`] or [`ExceedsBurst`](TryAcquireError::ExceedsBurst) if one of them
    /// says so; then [`AtCapacity`](TryAcquireError::AtCapacity); then
    /// [`Limited`](TryAcquireError::Limited), by the one that has it last.
    pub fn try_acquire(&self) -> Result<Permits, TryAcquireError> {
        self.try_acquire_many(1)
    }

    /// Takes `n` permits of each if all have so many now.
    ///
    /// # Errors
    ///
    /// As for [`try_acquire`](Self::try_acquire).
    pub fn try_acquire_many(&self, n: u32) -> Result<Permits, TryAcquireError> {
        self.try_acquire_many_at(n, Instant::now())
    }

    /// As [`try_acquire_many`](Self::try_acquire_many), at the time `now`.
    ///
    /// # Errors
    ///
    /// As for [`try_acquire`](Self::try_acquire).
    pub fn try_acquire_many_at(&self, n: u32, now: Instant) -> Result<Permits, TryAcquireError> {
        let mut places = Vec::new();
        for (place, count) in in_order(self.members.places()) {
            let place = place.try_acquire_many(n.saturating_mul(count));
            places.push(place.map_err(|refusal| self.refusal(n, now, refusal))?);
        }
        match self.members.hold(n, now) {
            Ok(()) => Ok(Permits { places, waited: Duration::ZERO }),
            Err(refusal) => Err(self.refusal(n, now, refusal)),
        }
    }

    /// Why `n` can't be had, where one of the limits said this.
    #[cold]
    fn refusal(&self, n: u32, now: Instant, refusal: TryAcquireError) -> TryAcquireError {
        self.members.refusal(n, now).unwrap_or(refusal)
    }

    /// Waits for a permit of each.
    ///
    /// # Errors
    ///
    /// What one of them refuses with; the others have then what they had before.
    ///
    /// # Panics
    ///
    /// If it must wait outside of a Tokio runtime with its timer enabled, with Tokio's own message.
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time: all turns and places go back.
    pub async fn acquire(&self) -> Result<Permits, AcquireError> {
        self.acquire_many(1).await
    }

    /// Waits for `n` permits of each, which come together.
    ///
    /// # Errors
    ///
    /// As for [`acquire`](Self::acquire).
    ///
    /// # Panics
    ///
    /// As for [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time: all turns and places go back.
    pub async fn acquire_many(&self, n: u32) -> Result<Permits, AcquireError> {
        waiting::acquire(&self.members, n, None).await
    }

    /// As [`acquire_many`](Self::acquire_many), if that takes no longer than `wait`. Refused at once if
    /// a turn comes later; a wait for places ends then.
    ///
    /// # Errors
    ///
    /// [`AcquireError::WouldExceedDeadline`], and as for [`acquire`](Self::acquire).
    ///
    /// # Panics
    ///
    /// As for [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time: all turns and places go back.
    pub async fn acquire_many_within(
        &self,
        n: u32,
        wait: Duration,
    ) -> Result<Permits, AcquireError> {
        let deadline = Instant::now().checked_add(wait);
        waiting::acquire(&self.members, n, deadline).await
    }

    /// As [`acquire_many`](Self::acquire_many), if that is done before `deadline`. Refused at once if a
    /// turn comes later; a wait for places ends then.
    ///
    /// # Errors
    ///
    /// [`AcquireError::WouldExceedDeadline`], and as for [`acquire`](Self::acquire).
    ///
    /// # Panics
    ///
    /// As for [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time: all turns and places go back.
    pub async fn acquire_many_before(
        &self,
        n: u32,
        deadline: Instant,
    ) -> Result<Permits, AcquireError> {
        waiting::acquire(&self.members, n, Some(deadline)).await
    }

    /// The limits.
    pub fn members(&self) -> &M {
        &self.members
    }
}

impl<M: fmt::Debug> fmt::Debug for All<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("All").field(&self.members).finish()
    }
}
