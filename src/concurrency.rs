//! [`Concurrency`]: so many at a time, on Tokio's semaphore.

use crate::error::{AcquireError, TryAcquireError};
use crate::sync::{AtomicU32, Ordering};
use crate::threads;
use std::sync::Arc;
use tokio::sync::{AcquireError as SemaphoreClosed, OwnedSemaphorePermit, Semaphore};

/// At most `limit` at a time: who has a [`Place`] keeps it until it is dropped.
///
/// It is [`tokio::sync::Semaphore`], first come first served, with a limit that can be changed while it
/// is in use, and it takes part in [`All`](crate::All).
///
/// # When to choose it
///
/// To protect what is slow rather than what counts: a rate says how often, a concurrency limit how many
/// at once. Behind a service that slows down, a rate alone lets work pile up.
///
/// # Examples
///
/// ```
/// use paceline::Concurrency;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), paceline::AcquireError> {
/// let concurrency = Concurrency::new(5);
/// let place = concurrency.acquire().await?;
/// assert_eq!(concurrency.available(), 4);
/// drop(place);
/// assert_eq!(concurrency.available(), 5);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Concurrency {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    semaphore: Arc<Semaphore>,
    limit: AtomicU32,
    /// By how many places more are out than the limit allows, since it was lowered: so many are not
    /// given to the next when they come back.
    surplus: AtomicU32,
}

/// Places that are taken: given back when this is dropped.
#[derive(Debug)]
#[must_use = "the places are given back when this is dropped"]
pub struct Place {
    shared: Arc<Shared>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Concurrency {
    /// At most `limit` at a time.
    #[must_use]
    pub fn new(limit: u32) -> Self {
        let semaphore = Arc::new(Semaphore::new(places(limit)));
        let shared = Shared { semaphore, limit: AtomicU32::new(limit), surplus: AtomicU32::new(0) };
        Self { shared: Arc::new(shared) }
    }

    /// Takes a place if there is one now.
    ///
    /// # Errors
    ///
    /// [`TryAcquireError::AtCapacity`] if there is none, or [`Closed`](TryAcquireError::Closed).
    pub fn try_acquire(&self) -> Result<Place, TryAcquireError> {
        self.try_acquire_many(1)
    }

    /// Takes `n` places if there are so many now.
    ///
    /// # Errors
    ///
    /// [`TryAcquireError::AtCapacity`] if there are not;
    /// [`ExceedsBurst`](TryAcquireError::ExceedsBurst) if `n` is above the limit, or
    /// [`Closed`](TryAcquireError::Closed).
    pub fn try_acquire_many(&self, n: u32) -> Result<Place, TryAcquireError> {
        self.check(n)?;
        let permit = Arc::clone(&self.shared.semaphore).try_acquire_many_owned(n);
        let permit = permit.map_err(|_| self.check(n).err().unwrap_or(self.full(n)))?;
        Ok(self.place(permit))
    }

    /// Waits for a place.
    ///
    /// # Errors
    ///
    /// [`AcquireError::Closed`].
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time: its place in the queue is lost, and no place is.
    pub async fn acquire(&self) -> Result<Place, AcquireError> {
        self.acquire_many(1).await
    }

    /// Waits for `n` places, which come together.
    ///
    /// # Errors
    ///
    /// [`AcquireError::ExceedsBurst`] at once if `n` is above the limit, or
    /// [`Closed`](AcquireError::Closed). One who waits for more than a limit that is lowered goes on
    /// waiting, until it is raised.
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time: its place in the queue is lost, and no place is.
    pub async fn acquire_many(&self, n: u32) -> Result<Place, AcquireError> {
        let limit = self.limit();
        if self.is_closed() {
            return Err(AcquireError::Closed);
        }
        if n > limit {
            return Err(AcquireError::ExceedsBurst { requested: n, burst: limit });
        }
        let permit = Arc::clone(&self.shared.semaphore).acquire_many_owned(n).await;
        Ok(self.place(permit.map_err(|SemaphoreClosed { .. }| AcquireError::Closed)?))
    }

    /// Waits for a place by blocking this thread, without a runtime.
    ///
    /// # Errors
    ///
    /// As for [`acquire`](Self::acquire).
    ///
    /// # Panics
    ///
    /// If it is called where asynchronous tasks run, as Tokio's own blocking functions do.
    #[track_caller]
    pub fn blocking_acquire(&self) -> Result<Place, AcquireError> {
        self.blocking_acquire_many(1)
    }

    /// Waits for `n` places by blocking this thread. See [`blocking_acquire`](Self::blocking_acquire).
    ///
    /// # Errors
    ///
    /// As for [`acquire_many`](Self::acquire_many).
    ///
    /// # Panics
    ///
    /// If it is called where asynchronous tasks run, as Tokio's own blocking functions do.
    #[track_caller]
    pub fn blocking_acquire_many(&self, n: u32) -> Result<Place, AcquireError> {
        threads::assert_may_block();
        threads::block_on(self.acquire_many(n))
    }

    /// Allows `limit` at a time from now on. Those who are in stay in: a lower limit lets the next in
    /// when enough of them have left.
    pub fn set_limit(&self, limit: u32) {
        self.shared.set_limit(limit);
    }

    /// How many are allowed at a time.
    #[must_use]
    pub fn limit(&self) -> u32 {
        // Relaxed: a number, which publishes nothing.
        self.shared.limit.load(Ordering::Relaxed)
    }

    /// How many more could come in now.
    #[must_use]
    pub fn available(&self) -> u32 {
        u32::try_from(self.shared.semaphore.available_permits()).unwrap_or(u32::MAX)
    }

    /// Lets nobody in from now on, and all go who wait, with [`AcquireError::Closed`].
    pub fn close(&self) {
        self.shared.semaphore.close();
    }

    /// Whether it is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.semaphore.is_closed()
    }

    /// Why `n` would be refused now, if that can be told without taking them.
    pub(crate) fn peek(&self, n: u32) -> Result<(), TryAcquireError> {
        self.check(n)?;
        if n > self.available() { Err(self.full(n)) } else { Ok(()) }
    }

    fn check(&self, n: u32) -> Result<(), TryAcquireError> {
        let limit = self.limit();
        if self.is_closed() {
            Err(TryAcquireError::Closed)
        } else if n > limit {
            Err(TryAcquireError::ExceedsBurst { requested: n, burst: limit })
        } else {
            Ok(())
        }
    }

    fn full(&self, requested: u32) -> TryAcquireError {
        TryAcquireError::AtCapacity { requested, limit: self.limit() }
    }

    fn place(&self, permit: OwnedSemaphorePermit) -> Place {
        Place { shared: Arc::clone(&self.shared), permit: Some(permit) }
    }

    /// The same for all clones of it, and for no other.
    pub(crate) fn identity(&self) -> *const Shared {
        Arc::as_ptr(&self.shared)
    }
}

impl Shared {
    fn set_limit(&self, limit: u32) {
        // Each change is applied as the difference to the one before, which the exchange sees to; so
        // they may interleave. AcqRel: who sets it after another sees what that one had seen, which
        // `adaptive` stands on; with less it could leave an old limit in force. Elsewhere Relaxed does,
        // for the numbers publish nothing.
        let before = self.limit.swap(limit, Ordering::AcqRel);
        if limit >= before {
            let more = limit - before;
            let cancelled = self.take_surplus(more);
            self.semaphore.add_permits(places(more - cancelled));
        } else {
            // First said, then taken back: one who raises it in between finds the surplus, and adds no
            // places to those that are about to go. Acquire, with a `Place` that comes back: its place
            // is seen here if the surplus is not seen there.
            self.surplus.fetch_add(before - limit, Ordering::AcqRel);
            self.settle();
        }
    }

    /// Takes the surplus out of the places that are free.
    fn settle(&self) {
        // Relaxed: if it is too old, `take_surplus` finds that out below.
        let surplus = self.surplus.load(Ordering::Relaxed);
        let forgotten = self.semaphore.forget_permits(places(surplus));
        let forgotten = u32::try_from(forgotten).unwrap_or(surplus);
        // Others have taken of it meanwhile: so many places were forgotten twice.
        let twice = forgotten - self.take_surplus(forgotten);
        self.semaphore.add_permits(places(twice));
    }

    /// Takes up to `most` off the surplus, and says how many.
    fn take_surplus(&self, most: u32) -> u32 {
        // Relaxed: the number is all that is told, and the exchange lets each of it be taken once.
        let less = |surplus: u32| Some(surplus - surplus.min(most));
        let surplus = self.surplus.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        surplus.unwrap_or(0).min(most)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(mut permit) = self.permit.take() else { return };
        let out = u32::try_from(permit.num_permits()).unwrap_or(u32::MAX);
        let surplus = self.shared.take_surplus(out);
        if let Some(gone) = permit.split(places(surplus)) {
            gone.forget();
        }
        drop(permit);
        // A limit that was lowered since the surplus was looked at has not found this place. Release,
        // and an exchange though it changes nothing: the lowering sees this place if this does not see
        // its surplus; a load could miss both.
        if self.shared.surplus.fetch_add(0, Ordering::AcqRel) != 0 {
            self.shared.settle();
        }
    }
}

/// Tokio counts in `usize`, up to a number that is less on a machine of 32 bits.
fn places(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS)
}
