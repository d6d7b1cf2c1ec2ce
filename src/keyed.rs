//! A limiter per key, for any number of keys: [`Keyed`].

mod acquire;
mod builder;
mod hold;
#[cfg(all(test, paceline_loom))]
#[path = "../loom-tests/keyed.rs"]
mod loom_tests;
mod own;
mod page;
mod quota;
mod random_state;
mod replace;
mod table;
#[cfg(feature = "http")]
mod together;

pub use acquire::KeyedAcquire;
pub use builder::KeyedBuilder;
pub use quota::Quota;
pub use random_state::RandomState;

use crate::error::{AcquireError, RangeError, ReserveError, TryAcquireError};
use crate::limiter::Limiter;
use crate::rate::Rate;
use crate::reservation::Reservation;
use hold::Hold;
use std::borrow::Borrow;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use std::time::Duration;
use table::{Table, When};
use tokio::time::Instant;

/// A limiter per key: per user, per address, per tenant.
///
/// Each key has a [token line](crate#the-token-line) of its own, and all lines are minted alike, so a
/// key takes one word beside itself. A key that was never seen is full, and so a key that is full need
/// not be remembered: it is left out when its page is next rewritten, without a task in the
/// background and without a pause.
///
/// It is shared by reference, and cloned at no cost: all clones are the same limiters.
///
/// # Keys
///
/// What borrows as a key can be used to look one up, as in a [`HashMap`](std::collections::HashMap):
/// a `&str` for `String`s. A request for a key that is there allocates nothing, and one that is refused
/// adds no key. Keys are copied when their page is rewritten; where that is dear, take `Arc<str>`.
///
/// # How many keys
///
/// Without [`max_keys`](KeyedBuilder::max_keys) as many as are busy: as many as have used something
/// that has not been minted again. With it, no more than that; and who is forgotten before being full is
/// counted all the same, so nobody gets more than the quota, however many keys an attacker has.
///
/// # Waiting for a turn
///
/// Somebody who [acquires](Self::acquire) or [reserves](Self::reserve) a turn that has not come gives the
/// key a [`Limiter`] of its own for as long as anybody holds one: with all that it has, from
/// fairness to the reuse of turns that are given back. When nobody holds one any more, the key is a word
/// again; the turns that were given back in the middle keep the limiter for as long as they are good.
///
/// # Settings
///
/// [`set_rate`](Self::set_rate) and [`set_burst`](Self::set_burst) are for all keys, at one
/// instant. A key with settings of its own ([`set_rate_of`](Self::set_rate_of)) keeps them, and is not
/// forgotten, until it is [`reset`](Self::reset). Quotas for kinds of keys are
/// [`KeyedBuilder::quotas`].
///
/// # Memory ordering
///
/// As for [`Limiter`]. Requests are lock-free, also when a page is rewritten: who meets one that is
/// being rewritten does so too, and does not wait.
///
/// # Examples
///
/// ```
/// use paceline::{Keyed, Rate};
///
/// let per_user: Keyed<String> = Keyed::new(Rate::per_second(10), 20);
/// assert!(per_user.try_acquire("alice").is_ok());
/// assert!(per_user.try_acquire_many("bob", 20).is_ok());
/// assert!(per_user.try_acquire("bob").is_err());
/// assert_eq!(per_user.len(), 2);
/// ```
pub struct Keyed<K, S = RandomState> {
    table: Arc<Table<K, S>>,
}

impl<K: Clone + Eq + Hash> Keyed<K> {
    /// A token bucket of `rate` and `burst` for each key. See [`Limiter::new`].
    #[must_use]
    pub fn new(rate: Rate, burst: u32) -> Self {
        Self::like(Quota::new(rate, burst))
    }

    /// A limiter like this one for each key. See [`Quota`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use paceline::{Keyed, LeakyBucket, Rate};
    /// let keyed: Keyed<u64> = Keyed::like(LeakyBucket::new(Rate::per_second(10), 20));
    /// ```
    #[must_use]
    pub fn like(quota: impl Into<Quota>) -> Self {
        Self::builder(quota).keyed()
    }

    /// A limiter per key of which more is said than the quota.
    ///
    /// # Examples
    ///
    /// ```
    /// # use paceline::{BuildError, Keyed, Limiter, Rate};
    /// # use std::time::Duration;
    /// let quota = Limiter::builder(Rate::per_second(10)).burst(20).max_wait(Duration::from_secs(1));
    /// let keyed: Keyed<u64> = Keyed::builder(quota.build()?).max_keys(1_000_000).build()?;
    /// # Ok::<(), BuildError>(())
    /// ```
    pub fn builder(quota: impl Into<Quota>) -> KeyedBuilder<K> {
        KeyedBuilder::new(quota.into())
    }
}

impl<K, S> Keyed<K, S>
where
    K: Clone + Eq + Hash,
    S: BuildHasher,
{
    fn of(table: Table<K, S>) -> Self {
        Self { table: Arc::new(table) }
    }

    /// Takes a permit of `key` if there is one now.
    ///
    /// # Errors
    ///
    /// As for [`Limiter::try_acquire`].
    #[inline]
    pub fn try_acquire<Q>(&self, key: &Q) -> Result<(), TryAcquireError>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.try_acquire_many(key, 1)
    }

    /// Takes `n` permits of `key` if there are so many now.
    ///
    /// # Errors
    ///
    /// As for [`Limiter::try_acquire_many`].
    #[inline]
    pub fn try_acquire_many<Q>(&self, key: &Q, n: u32) -> Result<(), TryAcquireError>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.table.take(key, n, When::Now)
    }

    /// As [`try_acquire_many`](Self::try_acquire_many), at the time `now`.
    ///
    /// # Errors
    ///
    /// As for [`Limiter::try_acquire_many`].
    pub fn try_acquire_many_at<Q>(
        &self,
        key: &Q,
        n: u32,
        now: Instant,
    ) -> Result<(), TryAcquireError>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.table.take(key, n, When::At(now))
    }

    /// Waits for a permit of `key`; resolves to how long that took. See [`KeyedAcquire`].
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time; nothing is lost and nothing is given twice.
    ///
    /// # Examples
    ///
    /// ```
    /// # use paceline::{Keyed, Rate};
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let keyed: Keyed<u64> = Keyed::new(Rate::per_second(10), 1);
    /// assert_eq!(keyed.acquire(&1).await?, Duration::ZERO);
    /// assert_eq!(keyed.acquire(&1).await?, Duration::from_millis(100));
    /// assert_eq!(keyed.acquire(&2).await?, Duration::ZERO);
    /// # Ok(())
    /// # }
    /// ```
    pub fn acquire<'a, Q>(&'a self, key: &'a Q) -> KeyedAcquire<'a, Q, S>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.acquire_many(key, 1)
    }

    /// Waits for `n` permits of `key`, which come together. See [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time; nothing is lost and nothing is given twice.
    pub fn acquire_many<'a, Q>(&'a self, key: &'a Q, n: u32) -> KeyedAcquire<'a, Q, S>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        KeyedAcquire::borrowed(self, key, n)
    }

    /// Waits for a permit of `key` by blocking this thread. See [`Limiter::blocking_acquire`].
    ///
    /// # Errors
    ///
    /// As for [`acquire`](Self::acquire).
    ///
    /// # Panics
    ///
    /// If it is called where asynchronous tasks run, as Tokio's own blocking functions do.
    #[track_caller]
    pub fn blocking_acquire<Q>(&self, key: &Q) -> Result<Duration, AcquireError>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.acquire(key).blocking()
    }

    /// Waits for `n` permits of `key` by blocking this thread. See [`Limiter::blocking_acquire_many`].
    ///
    /// # Errors
    ///
    /// As for [`acquire`](Self::acquire).
    ///
    /// # Panics
    ///
    /// If it is called where asynchronous tasks run, as Tokio's own blocking functions do.
    #[track_caller]
    pub fn blocking_acquire_many<Q>(&self, key: &Q, n: u32) -> Result<Duration, AcquireError>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.acquire_many(key, n).blocking()
    }

    /// As [`acquire`](Self::acquire), with a future that is `'static`.
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time; nothing is lost and nothing is given twice.
    pub fn acquire_owned(&self, key: K) -> KeyedAcquire<'static, K, S> {
        self.acquire_many_owned(key, 1)
    }

    /// As [`acquire_many`](Self::acquire_many), with a future that is `'static`.
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time; nothing is lost and nothing is given twice.
    pub fn acquire_many_owned(&self, key: K, n: u32) -> KeyedAcquire<'static, K, S> {
        KeyedAcquire::owned(Arc::clone(&self.table), key, n)
    }

    /// Books a permit of `key`, to be used when its turn comes. See [`Limiter::reserve`].
    ///
    /// # Errors
    ///
    /// As for [`Limiter::reserve`]; and [`ReserveError::QueueFull`] if each key has a
    /// [`LeakyBucket`](crate::LeakyBucket).
    pub fn reserve<Q>(&self, key: &Q) -> Result<Reservation<'_>, ReserveError>
    where
        K: Borrow<Q> + Send + Sync,
        S: Send + Sync,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.reserve_many(key, 1)
    }

    /// Books `n` permits of `key`, to be used together when their turn comes.
    ///
    /// # Errors
    ///
    /// As for [`reserve`](Self::reserve).
    pub fn reserve_many<Q>(&self, key: &Q, n: u32) -> Result<Reservation<'_>, ReserveError>
    where
        K: Borrow<Q> + Send + Sync,
        S: Send + Sync,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.book(key, n, When::Now)
    }

    /// As [`reserve_many`](Self::reserve_many), at the time `now`.
    ///
    /// # Errors
    ///
    /// As for [`reserve`](Self::reserve).
    pub fn reserve_many_at<Q>(
        &self,
        key: &Q,
        n: u32,
        now: Instant,
    ) -> Result<Reservation<'_>, ReserveError>
    where
        K: Borrow<Q> + Send + Sync,
        S: Send + Sync,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.book(key, n, When::At(now))
    }

    fn book<Q>(&self, key: &Q, n: u32, when: When) -> Result<Reservation<'_>, ReserveError>
    where
        K: Borrow<Q> + Send + Sync,
        S: Send + Sync,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let hold = Hold::of(&self.table, key, when);
        let now = when.by(&hold);
        let booking = hold.book_ahead(n, now)?;
        Ok(Reservation::held(hold, booking, n, now))
    }

    /// Whether [`try_acquire`](Self::try_acquire) would take a permit of `key` now. Takes nothing and
    /// changes nothing.
    ///
    /// # Errors
    ///
    /// As for [`Limiter::try_acquire`].
    pub fn peek<Q>(&self, key: &Q) -> Result<(), TryAcquireError>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.peek_many(key, 1)
    }

    /// As [`peek`](Self::peek), for `n` permits.
    ///
    /// # Errors
    ///
    /// As for [`Limiter::try_acquire_many`].
    pub fn peek_many<Q>(&self, key: &Q, n: u32) -> Result<(), TryAcquireError>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.table.peek(key, n, When::Now)
    }

    /// The permits of `key` that are free now. See [`Limiter::tokens`].
    pub fn tokens<Q>(&self, key: &Q) -> f64
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.table.tokens(key, When::Now)
    }

    /// As [`tokens`](Self::tokens), at the time `now`.
    pub fn tokens_at<Q>(&self, key: &Q, now: Instant) -> f64
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.table.tokens(key, When::At(now))
    }

    /// How many keys are remembered: all that are busy, and those that are full again and have not
    /// been left out so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether no key is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many keys there may be; `None` without a limit.
    #[must_use]
    pub fn max_keys(&self) -> Option<usize> {
        Some(self.table.most()).filter(|most| *most != usize::MAX)
    }

    /// Forgets all keys that are full. There is no need for it: keys are left out as others come. It
    /// goes through all of them, page by page, and nobody waits for it.
    pub fn retain_busy(&self) {
        self.table.retain_busy(When::Now);
    }

    /// Calls `then` with each key that is remembered and its free permits. Keys that come or go
    /// meanwhile may be among them or not.
    ///
    /// # Examples
    ///
    /// ```
    /// # use paceline::{Keyed, Rate};
    /// let keyed: Keyed<u64> = Keyed::new(Rate::per_minute(1), 5);
    /// assert!(keyed.try_acquire_many(&7, 5).is_ok());
    /// let mut spent = Vec::new();
    /// keyed.for_each(|key, tokens| if tokens < 1.0 { spent.push(*key) });
    /// assert_eq!(spent, [7]);
    /// ```
    pub fn for_each(&self, then: impl FnMut(&K, f64)) {
        self.table.for_each(then);
    }

    /// Mints at `rate` for all keys from now on, whatever their quota, but for those with settings of
    /// their own. See [`Limiter::set_rate`].
    ///
    /// # Errors
    ///
    /// [`RangeError::RateExceedsMax`], and nothing changes, beyond what a quota was built for, or if
    /// one is a [`FixedWindow`](crate::window::FixedWindow).
    pub fn set_rate(&self, rate: Rate) -> Result<(), RangeError> {
        for quota in self.table.quotas().iter() {
            quota.allows_rate(rate)?;
        }
        for quota in self.table.quotas().iter() {
            quota.limiter().set_rate(rate)?;
        }
        self.table.settings_changed();
        Ok(())
    }

    /// Keeps up to `burst` permits for each key from now on, whatever its quota, but for those with
    /// settings of their own. See [`Limiter::set_burst`].
    ///
    /// # Errors
    ///
    /// [`RangeError::BurstExceedsMax`], and nothing changes, beyond what a quota was built for, or if
    /// one is a [`FixedWindow`](crate::window::FixedWindow).
    pub fn set_burst(&self, burst: u32) -> Result<(), RangeError> {
        for quota in self.table.quotas().iter() {
            quota.allows_burst(burst)?;
        }
        for quota in self.table.quotas().iter() {
            quota.limiter().set_burst(burst)?;
        }
        self.table.settings_changed();
        Ok(())
    }

    /// Mints at `rate` for `key` alone from now on. It has a [`Limiter`] of its own from then on, some
    /// 1.5 kB, until it is [`reset`](Self::reset).
    ///
    /// # Errors
    ///
    /// As for [`set_rate`](Self::set_rate).
    pub fn set_rate_of<Q>(&self, key: &Q, rate: Rate) -> Result<(), RangeError>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.table.quota_for(key).allows_rate(rate)?;
        let hold = Hold::of(&self.table, key, When::Now);
        hold.own().set_apart();
        hold.set_rate(rate)
    }

    /// Keeps up to `burst` permits for `key` alone from now on. See [`set_rate_of`](Self::set_rate_of).
    ///
    /// # Errors
    ///
    /// As for [`set_burst`](Self::set_burst).
    pub fn set_burst_of<Q>(&self, key: &Q, burst: u32) -> Result<(), RangeError>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.table.quota_for(key).allows_burst(burst)?;
        let hold = Hold::of(&self.table, key, When::Now);
        hold.own().set_apart();
        hold.set_burst(burst)
    }

    /// Gives `key` the settings of its quota again. What it has used stays used; once it is full it is
    /// as any other key.
    pub fn reset<Q>(&self, key: &Q)
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.table.reset(key);
    }

    /// How fast permits are minted for keys of the first quota.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.first().rate()
    }

    /// How many permits are kept at most for keys of the first quota.
    #[must_use]
    pub fn burst(&self) -> u32 {
        self.first().burst()
    }

    fn first(&self) -> &Limiter {
        self.table.quotas().get(0).limiter()
    }

    /// Closes the limiters of all keys for good: every request is refused, and all who wait are let go
    /// with [`AcquireError::Closed`].
    pub fn close(&self) {
        for quota in self.table.quotas().iter() {
            quota.limiter().close();
        }
        self.table.settings_changed();
    }

    /// Whether it is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.first().is_closed()
    }
}

impl<K, S> Clone for Keyed<K, S> {
    fn clone(&self) -> Self {
        Self { table: Arc::clone(&self.table) }
    }
}

impl<K, S> fmt::Debug for Keyed<K, S>
where
    K: Clone + Eq + Hash,
    S: BuildHasher,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyed")
            .field("rate", &self.rate())
            .field("burst", &self.burst())
            .field("keys", &self.len())
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}
