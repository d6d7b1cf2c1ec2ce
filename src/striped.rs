//! [`Striped`]: a limiter of which each thread has a few tokens at hand.

mod pool;
mod stripe;

use pool::MOST_STRIPES;
pub(crate) use pool::Pool;
#[cfg(all(test, paceline_loom))]
pub(crate) use stripe::Stripe;

use crate::acquire::Acquire;
use crate::error::{AcquireError, BuildError, RangeError, ReserveError, TryAcquireError};
use crate::limiter::Limiter;
use crate::line::{Booking, Outlook, Patience, Refusal};
use crate::rate::Rate;
use crate::reservation::Reservation;
use crate::turns::{Turns, Waiters};
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;
use std::time::Duration;
use tokio::time::Instant;

/// A [`Limiter`] for very high rates: threads take its permits from stripes that hold a few each, so
/// most grants read no clock and touch nothing that another thread writes.
///
/// The bound is the limiter's, exactly: in every window `(t1, t2]` at most
/// `burst + rate * (t2 - t1)` permits are used (and for `acquire`, the [slack](crate::Builder::slack) is
/// added). What the stripes hold is taken out of the burst.
///
/// # When to choose it
///
/// When a permit must cost less than reading a clock, or many threads take from one limiter. It
/// asks for a burst of some hundred permits. For all else [`Limiter`] is simpler, and refuses
/// no more than it must.
///
/// # What differs from `Limiter`
///
/// * A request may be for [`largest_request`](Self::largest_request) permits at most: the burst less
///   what all stripes hold together. A larger one is refused as `ExceedsBurst` with that number.
/// * Stripes strand nothing: a thread that finds its own stripe and the line empty takes from the
///   other stripes. So one thread can use the whole burst.
/// * While it is idle, the stripes that were emptied fill up again as the line does. What a thread
///   has used of a stripe without emptying it is made good only after other threads have come by
///   twice, since it reads no clock when it takes: until then an idle limiter holds less than
///   its burst, by less than a batch for each such stripe.
/// * A try may be refused although there are tokens, while another thread carries the last of the
///   line to its stripe; a moment later they are there.
/// * Those who wait do so on the line, in their order. Who finds tokens in a stripe goes ahead
///   meanwhile, as they were minted and not used.
///
/// # Memory ordering
///
/// As for [`Limiter`]; `try` and `acquire` are lock-free. A thread has the same stripe
/// of all striped limiters of the process, and moves to the next when it finds another thread there.
///
/// # Examples
///
/// ```
/// use paceline::{BuildError, Rate, Striped};
///
/// let limiter = Striped::new(Rate::per_second(1_000_000), 10_000)?;
/// assert!(limiter.try_acquire().is_ok());
/// # Ok::<(), BuildError>(())
/// ```
pub struct Striped {
    /// Its burst is less by what the stripes hold.
    limiter: Limiter,
    pool: Pool,
}

/// How many tokens a stripe holds unless something else is said.
const USUAL_BATCH: u32 = 128;

impl Striped {
    /// A limiter of `rate` that keeps up to `burst` permits, and starts with all of them.
    ///
    /// It has a stripe for each thread that can run at once (as many as the next power of two),
    /// of 128 permits; or less, so that all of them hold half of the burst at most.
    ///
    /// # Errors
    ///
    /// [`BuildError::BurstTooSmall`] if that leaves less than 2 for a stripe: the burst must be four
    /// times the stripes at least.
    pub fn new(rate: Rate, burst: u32) -> Result<Self, BuildError> {
        let stripes = usual_stripes();
        let batch = (burst / 2 / stripes).min(USUAL_BATCH);
        if batch < 2 {
            return Err(BuildError::BurstTooSmall { burst, least: stripes * 4 });
        }
        Limiter::builder(rate).burst(burst).build_striped(stripes, batch)
    }

    /// A limiter beside an empty pool, which is to hold `initial` permits.
    pub(crate) fn build(limiter: Limiter, pool: Pool, initial: u32) -> Self {
        pool.start(limiter.line(), initial);
        Self { limiter, pool }
    }

    /// Takes a permit if there is one now.
    ///
    /// # Errors
    ///
    /// [`TryAcquireError::Limited`] if there is none, which says when the line will have one, or
    /// [`Closed`](TryAcquireError::Closed).
    #[inline]
    pub fn try_acquire(&self) -> Result<(), TryAcquireError> {
        self.try_acquire_many(1)
    }

    /// Takes `n` permits if there are so many now.
    ///
    /// # Errors
    ///
    /// [`TryAcquireError::Limited`] if they are not there, which says when the line will have them;
    /// [`ExceedsBurst`](TryAcquireError::ExceedsBurst) if `n` is above
    /// [`largest_request`](Self::largest_request), or [`Closed`](TryAcquireError::Closed).
    #[inline]
    pub fn try_acquire_many(&self, n: u32) -> Result<(), TryAcquireError> {
        self.try_at(n, None)
    }

    #[inline]
    fn take_at_hand(&self, n: u32) -> bool {
        let (line, clock) = (self.limiter.line(), || self.limiter.now());
        self.pool.take(line, stripe_number(), n, clock, move_on)
    }

    #[cold]
    fn try_elsewhere(&self, n: u32, now: Option<u64>) -> Result<(), TryAcquireError> {
        let now = now.unwrap_or_else(|| self.limiter.now());
        if n > 0 && self.take_elsewhere(n, now, 0) {
            return Ok(());
        }
        self.limiter.try_at(n, Some(now))
    }

    fn take_elsewhere(&self, n: u32, now: u64, allowance: u64) -> bool {
        let (line, clock) = (self.limiter.line(), || self.limiter.now());
        self.pool.take_elsewhere(line, stripe_number(), n, now, allowance, clock)
    }

    /// Waits for a permit; resolves to how long that took. See [`Acquire`].
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time; nothing is lost and nothing is given twice.
    #[inline]
    pub fn acquire(&self) -> Acquire<'_, Self> {
        self.acquire_many(1)
    }

    /// Waits for `n` permits, which come together. See [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time; nothing is lost and nothing is given twice.
    #[inline]
    pub fn acquire_many(&self, n: u32) -> Acquire<'_, Self> {
        Acquire::borrowed(self, n)
    }

    /// As [`acquire`](Self::acquire), with a future that owns the limiter and so is `'static`.
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time; nothing is lost and nothing is given twice.
    pub fn acquire_owned(self: Arc<Self>) -> Acquire<'static, Self> {
        self.acquire_many_owned(1)
    }

    /// As [`acquire_many`](Self::acquire_many), with a future that owns the limiter and so is
    /// `'static`.
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time; nothing is lost and nothing is given twice.
    pub fn acquire_many_owned(self: Arc<Self>, n: u32) -> Acquire<'static, Self> {
        Acquire::owned(self, n)
    }

    /// Waits for a permit by blocking this thread; says how long that took. It needs no runtime.
    /// See [`Acquire::blocking`](crate::Acquire::blocking).
    ///
    /// # Errors
    ///
    /// As for [`acquire`](Self::acquire).
    ///
    /// # Panics
    ///
    /// If it is called where asynchronous tasks run, as Tokio's own blocking functions do.
    #[track_caller]
    pub fn blocking_acquire(&self) -> Result<Duration, AcquireError> {
        self.blocking_acquire_many(1)
    }

    /// Waits for `n` permits by blocking this thread. See [`blocking_acquire`](Self::blocking_acquire);
    /// with a bound, it is `acquire_many(n).within(wait).blocking()`.
    ///
    /// # Errors
    ///
    /// As for [`acquire`](Self::acquire).
    ///
    /// # Panics
    ///
    /// If it is called where asynchronous tasks run, as Tokio's own blocking functions do.
    #[track_caller]
    pub fn blocking_acquire_many(&self, n: u32) -> Result<Duration, AcquireError> {
        self.acquire_many(n).blocking()
    }

    /// Books a permit of the line, to be used when its turn comes.
    ///
    /// # Errors
    ///
    /// As for [`Limiter::reserve`].
    pub fn reserve(&self) -> Result<Reservation<'_>, ReserveError> {
        self.reserve_many(1)
    }

    /// Books `n` permits of the line, to be used together when their turn comes.
    ///
    /// # Errors
    ///
    /// As for [`Limiter::reserve_many`].
    pub fn reserve_many(&self, n: u32) -> Result<Reservation<'_>, ReserveError> {
        let clock = || self.limiter.now();
        self.pool.catch_up(self.limiter.line(), clock(), clock);
        self.limiter.reserve_many(n)
    }

    /// Mints at `rate` from now on. See [`Limiter::set_rate`].
    ///
    /// # Errors
    ///
    /// As for [`Limiter::set_rate`].
    pub fn set_rate(&self, rate: Rate) -> Result<(), RangeError> {
        self.limiter.set_rate(rate)
    }

    /// Keeps up to `burst` permits from now on. See [`Limiter::set_burst`].
    ///
    /// # Errors
    ///
    /// [`RangeError::BurstExceedsMax`] beyond what it was built for, and
    /// [`RangeError::BurstTooSmall`] if it leaves less than a batch beside the stripes. Nothing
    /// changes then.
    pub fn set_burst(&self, burst: u32) -> Result<(), RangeError> {
        let (held, least) = (self.pool.capacity(), self.pool.least_burst());
        if burst < least {
            return Err(RangeError::BurstTooSmall { burst, least });
        }
        self.limiter.set_burst(burst - held).map_err(|error| match error {
            RangeError::BurstExceedsMax { max, .. } => {
                RangeError::BurstExceedsMax { burst, max: max.saturating_add(held) }
            }
            other => other,
        })
    }

    /// Lets nothing be minted from now until `until`; what is stored can still be used. See
    /// [`Limiter::pause_until`].
    pub fn pause_until(&self, until: Instant) {
        self.limiter.pause_until(until);
    }

    /// Ends a pause now. Does nothing if there is none.
    pub fn resume(&self) {
        self.limiter.resume();
    }

    /// Closes the limiter for good: every request is refused, and all who wait are let go with
    /// [`AcquireError::Closed`].
    pub fn close(&self) {
        self.limiter.close();
        self.pool.close();
    }

    /// Whether the limiter is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.limiter.is_closed()
    }

    /// How fast permits are minted.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.limiter.rate()
    }

    /// How many permits are kept at most, in the stripes and beside them.
    #[must_use]
    pub fn burst(&self) -> u32 {
        self.limiter.burst() + self.pool.capacity()
    }

    /// How many permits one request may be for.
    #[must_use]
    pub fn largest_request(&self) -> u32 {
        self.limiter.burst()
    }

    /// The permits that are free now. See [`Limiter::tokens`].
    #[must_use]
    pub fn tokens(&self) -> f64 {
        self.free(self.limiter.now())
    }
}

/// A stripe for each thread that can run at once.
fn usual_stripes() -> u32 {
    let threads = available_parallelism().map_or(4, usize::from);
    u32::try_from(threads).unwrap_or(MOST_STRIPES).clamp(2, MOST_STRIPES).next_power_of_two()
}

thread_local! {
    /// The number of this thread's stripe, or none yet.
    static STRIPE: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Which stripe this thread uses. Threads get them one after the other.
#[inline]
fn stripe_number() -> usize {
    match STRIPE.get() {
        usize::MAX => first_stripe(),
        number => number,
    }
}

#[cold]
fn first_stripe() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // Relaxed: only the number counts. It is no state of a limiter, so loom need not know it.
    STRIPE.set(NEXT.fetch_add(1, Ordering::Relaxed));
    STRIPE.get()
}

/// Lets this thread use the next stripe, since another uses this one.
#[cold]
fn move_on() {
    STRIPE.set(stripe_number().wrapping_add(1) % usize::MAX);
}

impl Turns for Striped {
    type Booking = Booking;

    fn waiters(&self) -> &Waiters {
        self.limiter.waiters()
    }

    #[inline]
    fn take_at_once(&self, permits: u32, before: u64) -> Result<(), u64> {
        // A deadline asks for the clock.
        if before == u64::MAX && permits > 0 && self.take_at_hand(permits) {
            return Ok(());
        }
        let now = self.limiter.now();
        let allowance = self.limiter.line().allowance(now);
        if before >= now && permits > 0 && self.take_elsewhere(permits, now, allowance) {
            return Ok(());
        }
        Err(now)
    }

    #[inline]
    fn try_at(&self, permits: u32, now: Option<u64>) -> Result<(), TryAcquireError> {
        if now.is_none() && permits > 0 && self.take_at_hand(permits) {
            return Ok(());
        }
        self.try_elsewhere(permits, now)
    }

    fn peek_at(&self, permits: u32, now: u64) -> Result<(), TryAcquireError> {
        self.limiter.peek_at(permits, now)
    }

    fn hold_at(&self, permits: u32, now: u64) -> Result<Booking, TryAcquireError> {
        self.pool.catch_up(self.limiter.line(), now, || self.limiter.now());
        self.limiter.hold_at(permits, now)
    }

    fn close(&self) {
        self.close();
    }

    fn is_closed(&self) -> bool {
        self.is_closed()
    }

    fn book(&self, now: u64, permits: u32, patience: Patience) -> Result<Booking, Refusal> {
        self.limiter.book(now, permits, patience)
    }

    fn is_immediate(&self, booking: &Booking) -> bool {
        self.limiter.is_immediate(booking)
    }

    fn permits_of(&self, booking: &Booking) -> u32 {
        self.limiter.permits_of(booking)
    }

    fn due(&self, booking: &Booking) -> Option<u64> {
        self.limiter.due(booking)
    }

    fn look(&self, now: u64, booking: &Booking) -> Outlook {
        self.limiter.look(now, booking)
    }

    fn woke(&self, now: u64, late: u64) {
        self.limiter.woke(now, late);
    }

    fn give_back(&self, now: u64, booking: &Booking) {
        self.limiter.give_back(now, booking);
    }

    fn free(&self, now: u64) -> f64 {
        self.limiter.free(now) + f64::from(self.pool.tokens())
    }

    fn holes(&self, now: u64) -> usize {
        self.limiter.holes(now)
    }
}

impl fmt::Debug for Striped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Striped")
            .field("rate", &self.rate())
            .field("burst", &self.burst())
            .field("tokens", &self.tokens())
            .field("closed", &self.is_closed())
            .finish()
    }
}
