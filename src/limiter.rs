//! [`Limiter`]: the face of the token line.

use crate::acquire::Acquire;
use crate::builder::{Builder, USUAL_SLACK};
use crate::error::{AcquireError, Limited, RangeError, ReserveError, TryAcquireError};
#[cfg(feature = "keyed")]
use crate::line::Position;
use crate::line::{Ask, Booking, Bounds, Line, Outlook, Patience, Refusal, Settings, Verdict};
use crate::observe;
use crate::rate::Rate;
use crate::reservation::Reservation;
use crate::stats::Stats;
use crate::time::nanos;
use crate::turns::{Turns, Waiters};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A rate limiter: permits are minted at a [`Rate`], and up to `burst` of them are kept for when
/// they are wanted.
///
/// It is a token bucket in the style of Go's [`time/rate`](https://pkg.go.dev/golang.org/x/time/rate),
/// with the verbs of [`tokio::sync::Semaphore`], and starts full. It is shared by reference or in
/// an [`Arc`]; there is no task or timer in the background. The [crate's documentation](crate)
/// has the three sentences that explain it.
///
/// In every window `(t1, t2]` of whole nanoseconds at most `burst + rate * (t2 - t1)` permits are
/// used, exactly, by those who try or reserve. Those who [`acquire`](Self::acquire) have a slack for
/// waking late ([`Builder::slack`], 5 ms unless set): they use at most
/// `burst + rate * (t2 - t1 + slack)`, exactly.
///
/// Of those who wait, each has its own turn. Nobody's ever comes later than it was promised, unless
/// the rate is lowered, the limiter is paused, or the waiter is polled so late that its permits have
/// overflowed by more than the slack; then it books again.
///
/// # Order of refusals
///
/// A closed limiter refuses everything. Then a request for no permits succeeds, and takes nothing.
/// Then one for more than the burst is refused, unless the rate is unlimited. Then the rest is
/// looked at. A refusal changes nothing and writes nothing.
///
/// A burst of zero refuses every request for a permit, unless the rate is unlimited. At a rate of
/// zero the burst passes once; then nothing does until the rate is changed.
///
/// # Time
///
/// The methods without `_at` read Tokio's clock once. Those with `_at` go by the time that they
/// are given: in any order, a later or an earlier one than another caller's mints nothing twice.
/// An instant before the limiter was made counts as the one at which it was, and one before the
/// last change of the rate sees all that was minted up to that change. Time ends 584 years after
/// the limiter was made.
///
/// # Rates that round
///
/// If a limiter is slow for the largest burst and rate that it is built for (one built for the
/// usual [`max_burst`](Builder::max_burst) and set to less than one a minute, or built for less
/// than one a day), then a grain, the smallest piece of a token, takes longer than a nanosecond
/// to mint. Turns are then late by up to that, never early: by 1440 ns at one a day in the first
/// case.
///
/// # Memory ordering
///
/// A permit is no lock: taking one orders nothing between the caller and whoever took another.
/// Who sees a change of the settings or a closed limiter sees all that the caller who made it had
/// done before.
///
/// `try`, `reserve`, `cancel` and the booking of an `acquire` are lock-free: they retry only when
/// another thread has got on. Those who change the settings exclude each other, and block nobody
/// else. A task that sleeps uses Tokio's timer, which locks inside for an instant.
pub struct Limiter {
    line: Line,
    waiters: Waiters,
}

impl Limiter {
    /// A limiter of `rate` that keeps up to `burst` permits, and starts with all of them.
    ///
    /// It can be set to at least 10<sup>7</sup> per second and a burst of 10<sup>7</sup> later; one
    /// slower than once a minute to at least 50 000 per second and 10 000. For more, see
    /// [`Builder::max_rate`] and [`Builder::max_burst`].
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::{Limiter, Rate};
    ///
    /// let limiter = Limiter::new(Rate::per_second(100), 10);
    /// assert_eq!(limiter.burst(), 10);
    /// ```
    #[must_use]
    pub fn new(rate: Rate, burst: u32) -> Self {
        let bounds = Bounds::usual(rate, burst);
        let line = Line::new(Settings::full(rate, burst, bounds, nanos(USUAL_SLACK)));
        Self::build(line, Waiters::default())
    }

    /// A limiter of which more is said than its rate and burst.
    ///
    /// # Examples
    ///
    /// ```
    /// # use paceline::{BuildError, Limiter, Rate};
    /// let limiter = Limiter::builder(Rate::per_second(100)).burst(10).initial(0).build()?;
    /// assert!(limiter.try_acquire_many(10).is_err());
    /// # Ok::<(), BuildError>(())
    /// ```
    pub fn builder(rate: Rate) -> Builder {
        Builder::new(rate)
    }

    pub(crate) fn build(line: Line, waiters: Waiters) -> Self {
        Self { line, waiters }
    }

    /// One that lets no more than `places` permits be booked beyond what can be had.
    pub(crate) fn with_places(self, places: u32) -> Self {
        Self { line: self.line.with_places(places), ..self }
    }

    /// Takes a permit if there is one now.
    ///
    /// # Errors
    ///
    /// [`TryAcquireError::Limited`] if they are not there, which says when they will be;
    /// [`ExceedsBurst`](TryAcquireError::ExceedsBurst) or [`Closed`](TryAcquireError::Closed).
    ///
    /// # Examples
    ///
    /// ```
    /// # use paceline::{Limiter, Rate};
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let limiter = Limiter::new(Rate::per_second(4), 1);
    /// assert!(limiter.try_acquire().is_ok());
    /// let refused = limiter.try_acquire().unwrap_err();
    /// assert_eq!(refused.retry_after(), Some(Duration::from_millis(250)));
    /// # }
    /// ```
    #[inline]
    pub fn try_acquire(&self) -> Result<(), TryAcquireError> {
        self.try_acquire_many(1)
    }

    /// Takes `n` permits if there are so many now.
    ///
    /// # Errors
    ///
    /// [`TryAcquireError::Limited`] if they are not there, which says when they will be;
    /// [`ExceedsBurst`](TryAcquireError::ExceedsBurst) or [`Closed`](TryAcquireError::Closed).
    #[inline]
    pub fn try_acquire_many(&self, n: u32) -> Result<(), TryAcquireError> {
        self.try_by(n, self.now())
    }

    /// As [`try_acquire_many`](Self::try_acquire_many), at the time `now`.
    ///
    /// # Errors
    ///
    /// [`TryAcquireError::Limited`] if they are not there, which says when they will be;
    /// [`ExceedsBurst`](TryAcquireError::ExceedsBurst) or [`Closed`](TryAcquireError::Closed).
    pub fn try_acquire_many_at(&self, n: u32, now: Instant) -> Result<(), TryAcquireError> {
        self.try_by(n, self.waiters.time.nanos(now))
    }

    #[inline]
    fn try_by(&self, n: u32, now: u64) -> Result<(), TryAcquireError> {
        match self.line.take_plain(now, n) {
            Verdict::Take(_) => Ok(()),
            Verdict::Wait(turn) => Err(TryAcquireError::Limited(Limited::new(n, turn))),
            Verdict::Unclear => self.try_any(n, now),
        }
    }

    #[cold]
    fn try_any(&self, n: u32, now: u64) -> Result<(), TryAcquireError> {
        self.hold(n, now).map(drop)
    }

    #[cold]
    fn hold(&self, n: u32, now: u64) -> Result<Booking, TryAcquireError> {
        self.line
            .book(Ask::new(now, n, Patience::Until(now)))
            .map_err(|why| TryAcquireError::of(n, why))
    }

    /// Waits for a permit; resolves to how long that took.
    ///
    /// The future books a turn when it is first polled, and gives it back when it is dropped
    /// before it completed. See [`Acquire`].
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time; nothing is lost and nothing is given twice.
    #[inline]
    pub fn acquire(&self) -> Acquire<'_> {
        self.acquire_many(1)
    }

    /// Waits for `n` permits, which come together. See [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time; nothing is lost and nothing is given twice.
    #[inline]
    pub fn acquire_many(&self, n: u32) -> Acquire<'_> {
        Acquire::borrowed(self, n)
    }

    /// As [`acquire`](Self::acquire), with a future that owns the limiter and so is `'static`.
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time; nothing is lost and nothing is given twice.
    pub fn acquire_owned(self: Arc<Self>) -> Acquire<'static> {
        self.acquire_many_owned(1)
    }

    /// As [`acquire_many`](Self::acquire_many), with a future that owns the limiter and so is
    /// `'static`.
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time; nothing is lost and nothing is given twice.
    pub fn acquire_many_owned(self: Arc<Self>, n: u32) -> Acquire<'static> {
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

    /// Books a permit, to be used when its turn comes.
    ///
    /// # Errors
    ///
    /// [`ReserveError::ExceedsBurst`], [`DebtTooLarge`](ReserveError::DebtTooLarge) or
    /// [`Closed`](ReserveError::Closed).
    ///
    /// # Examples
    ///
    /// ```
    /// # use paceline::{Limiter, Rate};
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Limiter::new(Rate::per_second(4), 1);
    /// limiter.acquire().await?;
    /// let turn = limiter.reserve()?;
    /// assert_eq!(turn.delay(), Duration::from_millis(250));
    /// turn.cancel();
    /// assert_eq!(limiter.reserve()?.delay(), Duration::from_millis(250), "the same turn");
    /// # Ok(())
    /// # }
    /// ```
    pub fn reserve(&self) -> Result<Reservation<'_>, ReserveError> {
        self.reserve_many(1)
    }

    /// Books `n` permits, to be used together when their turn comes.
    ///
    /// # Errors
    ///
    /// [`ReserveError::ExceedsBurst`], [`DebtTooLarge`](ReserveError::DebtTooLarge) or
    /// [`Closed`](ReserveError::Closed).
    pub fn reserve_many(&self, n: u32) -> Result<Reservation<'_>, ReserveError> {
        self.reserve_at(n, self.now())
    }

    /// As [`reserve_many`](Self::reserve_many), at the time `now`.
    ///
    /// # Errors
    ///
    /// [`ReserveError::ExceedsBurst`], [`DebtTooLarge`](ReserveError::DebtTooLarge) or
    /// [`Closed`](ReserveError::Closed).
    pub fn reserve_many_at(&self, n: u32, now: Instant) -> Result<Reservation<'_>, ReserveError> {
        self.reserve_at(n, self.waiters.time.nanos(now))
    }

    fn reserve_at(&self, n: u32, now: u64) -> Result<Reservation<'_>, ReserveError> {
        Ok(Reservation::new(self, self.book_ahead(n, now)?, n, now))
    }

    /// Books `n` permits for a reservation.
    pub(crate) fn book_ahead(&self, n: u32, now: u64) -> Result<Booking, ReserveError> {
        match self.line.book(Ask::new(now, n, Patience::Forever)) {
            Ok(booking) => Ok(booking),
            Err(Refusal::ExceedsBurst { burst }) => {
                Err(ReserveError::ExceedsBurst { requested: n, burst })
            }
            Err(Refusal::NoRoom) => Err(ReserveError::DebtTooLarge { requested: n }),
            Err(Refusal::Closed) => Err(ReserveError::Closed),
            Err(Refusal::QueueFull { places }) => {
                Err(ReserveError::QueueFull { max_waiters: places })
            }
            Err(Refusal::Late(_)) => unreachable!("it waits for ever"),
        }
    }

    /// Mints at `rate` from now on.
    ///
    /// What is stored and what is booked stays; the turns of those who wait come by the new rate,
    /// at once. One whose turn so comes beyond its deadline is refused.
    /// While it is unlimited everybody passes; when it has a rate again, the bucket is full.
    ///
    /// # Errors
    ///
    /// [`RangeError::RateExceedsMax`], and nothing changes, beyond what it was built for:
    /// [`Builder::max_rate`]. [`Rate::UNLIMITED`] is within every limiter's reach.
    pub fn set_rate(&self, rate: Rate) -> Result<(), RangeError> {
        self.set_rate_from(rate, self.now())
    }

    /// As [`set_rate`](Self::set_rate), at the time `now`.
    ///
    /// # Errors
    ///
    /// [`RangeError::RateExceedsMax`], and nothing changes, beyond what it was built for:
    /// [`Builder::max_rate`]. [`Rate::UNLIMITED`] is within every limiter's reach.
    pub fn set_rate_at(&self, rate: Rate, now: Instant) -> Result<(), RangeError> {
        self.set_rate_from(rate, self.waiters.time.nanos(now))
    }

    fn set_rate_from(&self, rate: Rate, now: u64) -> Result<(), RangeError> {
        self.line
            .set_rate(now, rate)
            .map_err(|Bounds { rate: max, .. }| RangeError::RateExceedsMax { rate, max })?;
        observe::rate_set(rate);
        self.waiters.changed.notify_waiters();
        Ok(())
    }

    /// Keeps up to `burst` permits from now on.
    ///
    /// A larger burst has room for what is minted from now on, and revives nothing; a smaller one
    /// lets what does not fit overflow at once. What is booked keeps its turn, but those who wait
    /// for more than a smaller burst are refused and give back.
    ///
    /// # Errors
    ///
    /// [`RangeError::BurstExceedsMax`], and nothing changes, beyond what it was built for:
    /// [`Builder::max_burst`].
    pub fn set_burst(&self, burst: u32) -> Result<(), RangeError> {
        self.set_burst_from(burst, self.now())
    }

    /// As [`set_burst`](Self::set_burst), at the time `now`.
    ///
    /// # Errors
    ///
    /// [`RangeError::BurstExceedsMax`], and nothing changes, beyond what it was built for:
    /// [`Builder::max_burst`].
    pub fn set_burst_at(&self, burst: u32, now: Instant) -> Result<(), RangeError> {
        self.set_burst_from(burst, self.waiters.time.nanos(now))
    }

    fn set_burst_from(&self, burst: u32, now: u64) -> Result<(), RangeError> {
        self.line
            .set_burst(now, burst)
            .map_err(|Bounds { burst: max, .. }| RangeError::BurstExceedsMax { burst, max })?;
        observe::burst_set(burst);
        self.waiters.changed.notify_waiters();
        Ok(())
    }

    /// Whether it could be set to `rate`.
    #[cfg(feature = "keyed")]
    pub(crate) fn allows_rate(&self, rate: Rate) -> Result<(), RangeError> {
        let max = self.line.bounds().rate;
        if rate.exceeds(max) && !rate.is_unlimited() {
            Err(RangeError::RateExceedsMax { rate, max })
        } else {
            Ok(())
        }
    }

    /// Whether it could be set to `burst`.
    #[cfg(feature = "keyed")]
    pub(crate) fn allows_burst(&self, burst: u32) -> Result<(), RangeError> {
        let max = self.line.bounds().burst;
        if burst > max { Err(RangeError::BurstExceedsMax { burst, max }) } else { Ok(()) }
    }

    /// What one of this rate and burst can be set to when nothing else is said.
    pub(crate) fn usual_max_burst(rate: Rate, burst: u32) -> u32 {
        Bounds::usual(rate, burst).burst
    }

    /// For a limiter in steps that keeps what a step brings: brings `limit` at each step, and keeps as
    /// many; see [`Line::set_limit`].
    pub(crate) fn set_limit(&self, limit: u32, rate: Rate, now: u64) -> Result<(), RangeError> {
        self.line.set_limit(now, limit, rate).map_err(|Bounds { burst: max, .. }| {
            RangeError::BurstExceedsMax { burst: limit, max }
        })?;
        observe::burst_set(limit);
        self.waiters.changed.notify_waiters();
        Ok(())
    }

    /// Lets nothing be minted from now until `until`: what a client does when it is told to come
    /// back later (HTTP's 429 with `Retry-After`). What is stored can still be used; the turns of
    /// all who wait are pushed back, those of who booked already too.
    ///
    /// Paused again, the later end holds. An end that has passed does nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// # use paceline::{Limiter, Rate};
    /// # use std::time::Duration;
    /// # use tokio::time::Instant;
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Limiter::new(Rate::per_second(10), 1);
    /// limiter.acquire().await?;
    /// limiter.pause_until(Instant::now() + Duration::from_secs(2));
    /// assert_eq!(limiter.acquire().await?, Duration::from_millis(2100));
    /// # Ok(())
    /// # }
    /// ```
    pub fn pause_until(&self, until: Instant) {
        self.pause_from(until, self.now());
    }

    /// As [`pause_until`](Self::pause_until), at the time `now`.
    pub fn pause_until_at(&self, until: Instant, now: Instant) {
        self.pause_from(until, self.waiters.time.nanos(now));
    }

    fn pause_from(&self, until: Instant, now: u64) {
        let until = self.waiters.time.nanos(until);
        self.line.pause_until(now, until);
        observe::paused(Duration::from_nanos(until.saturating_sub(now)));
        self.waiters.changed.notify_waiters();
    }

    /// Ends a pause now. Does nothing if there is none.
    pub fn resume(&self) {
        self.resume_from(self.now());
    }

    /// As [`resume`](Self::resume), at the time `now`; if that lies before the pause, at its
    /// beginning.
    pub fn resume_at(&self, now: Instant) {
        self.resume_from(self.waiters.time.nanos(now));
    }

    fn resume_from(&self, now: u64) {
        self.line.resume(now);
        observe::resumed();
        self.waiters.changed.notify_waiters();
    }

    /// Closes the limiter for good: every request is refused, and all who wait are let go with
    /// [`AcquireError::Closed`].
    pub fn close(&self) {
        self.line.close();
        observe::closed();
        self.waiters.changed.notify_waiters();
    }

    /// Whether the limiter is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.line.is_closed()
    }

    /// How fast permits are minted.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.line.rate()
    }

    /// How many permits are kept at most.
    #[must_use]
    pub fn burst(&self) -> u32 {
        self.line.burst()
    }

    /// The permits that are free now, as Go's `Tokens`: those in the bucket and those given back,
    /// less what is booked and not yet minted; so it may be negative. For display: by the time
    /// that you look at it, others have taken some.
    #[must_use]
    pub fn tokens(&self) -> f64 {
        self.line.tokens(self.now())
    }

    /// As [`tokens`](Self::tokens), at the time `now`.
    #[must_use]
    pub fn tokens_at(&self, now: Instant) -> f64 {
        self.line.tokens(self.waiters.time.nanos(now))
    }

    /// What there is to see of it now. It is computed of the state: what nobody asks costs nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// # use paceline::{Limiter, Rate};
    /// let limiter = Limiter::new(Rate::per_second(100), 10);
    /// let stats = limiter.stats();
    /// assert_eq!((stats.tokens, stats.waiters, stats.holes), (10.0, 0, 0));
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats::of(self)
    }

    /// Makes this the limiter that the keys of many have ones like.
    #[cfg(feature = "keyed")]
    pub(crate) fn for_keys(self) -> Self {
        let now = self.now();
        Self { line: self.line.for_keys(now), ..self }
    }

    /// A limiter like this one of which so much is spent, which goes by the same clock.
    #[cfg(feature = "keyed")]
    pub(crate) fn like(&self, spent: Position) -> Self {
        Self { line: self.line.own_line(spent), waiters: self.waiters.like() }
    }

    /// Goes on as `other` does, if `follows` still holds; those who wait hear of it.
    #[cfg(feature = "keyed")]
    pub(crate) fn follow(&self, other: &Self, follows: impl Fn() -> bool) {
        self.line.follow(&other.line, follows);
        self.waiters.changed.notify_waiters();
        if other.is_closed() {
            self.close();
        }
    }

    pub(crate) fn line(&self) -> &Line {
        &self.line
    }

    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.waiters.time.now()
    }
}

impl Turns for Limiter {
    type Booking = Booking;

    fn waiters(&self) -> &Waiters {
        &self.waiters
    }

    #[inline]
    fn take_at_once(&self, permits: u32, before: u64) -> Result<(), u64> {
        let now = self.now();
        if before < now {
            return Err(now);
        }
        match self.line.take_plain_or_wait(now, permits) {
            Verdict::Take(_) => Ok(()),
            _ => Err(now),
        }
    }

    #[inline]
    fn peek_at(&self, permits: u32, now: u64) -> Result<(), TryAcquireError> {
        let ask = Ask::new(now, permits, Patience::Until(now));
        self.line.peek(ask).map_err(|why| TryAcquireError::of(permits, why))
    }

    #[inline]
    fn hold_at(&self, permits: u32, now: u64) -> Result<Booking, TryAcquireError> {
        match self.line.take_plain(now, permits) {
            Verdict::Take(end) => Ok(self.line.booking_before(end, permits)),
            Verdict::Wait(turn) => Err(TryAcquireError::Limited(Limited::new(permits, turn))),
            Verdict::Unclear => self.hold(permits, now),
        }
    }

    #[inline]
    fn try_at(&self, permits: u32, now: Option<u64>) -> Result<(), TryAcquireError> {
        self.try_by(permits, now.unwrap_or_else(|| self.now()))
    }

    fn close(&self) {
        self.close();
    }

    fn is_closed(&self) -> bool {
        self.is_closed()
    }

    fn book(&self, now: u64, permits: u32, patience: Patience) -> Result<Booking, Refusal> {
        self.line.book_to_wait(now, permits, patience)
    }

    fn is_immediate(&self, booking: &Booking) -> bool {
        booking.is_immediate()
    }

    fn permits_of(&self, booking: &Booking) -> u32 {
        self.line.tokens_in(booking)
    }

    fn due(&self, booking: &Booking) -> Option<u64> {
        self.line.due(booking)
    }

    fn look(&self, now: u64, booking: &Booking) -> Outlook {
        self.line.look(now, booking)
    }

    fn woke(&self, now: u64, late: u64) {
        self.line.woke(now, late);
    }

    fn give_back(&self, now: u64, booking: &Booking) {
        self.line.give_back(now, booking);
    }

    fn free(&self, now: u64) -> f64 {
        self.line.tokens(now)
    }

    fn holes(&self, now: u64) -> usize {
        self.line.holes(now)
    }
}

impl fmt::Debug for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter")
            .field("rate", &self.rate())
            .field("burst", &self.burst())
            .field("tokens", &self.tokens())
            .field("closed", &self.is_closed())
            .finish()
    }
}
