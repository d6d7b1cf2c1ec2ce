//! [`KeyedBuilder`]: what more can be said of a limiter per key.

use super::quota::{Quota, Quotas};
use super::table::{Classify, Table};
use super::{Keyed, RandomState};
use crate::error::BuildError;
use std::fmt;
use std::hash::{BuildHasher, Hash};

/// Builds a [`Keyed`]: what [`Keyed::builder`] returns.
///
/// # Examples
///
/// ```
/// use paceline::{BuildError, Keyed, Rate};
/// use paceline::keyed::Quota;
///
/// let keyed: Keyed<String> = Keyed::builder(Quota::new(Rate::per_second(10), 20))
///     .max_keys(100_000)
///     .build()?;
/// # Ok::<(), BuildError>(())
/// ```
#[must_use = "a builder does nothing until `build`"]
pub struct KeyedBuilder<K, S = RandomState> {
    first: Quota,
    others: Vec<Quota>,
    classify: Option<Box<Classify<K>>>,
    max_keys: usize,
    hasher: S,
}

/// As many keys as a page is meant for.
const KEYS_OF_A_PAGE: usize = 128;

/// The pages where nothing is said of how many keys there may be: enough for a million.
const USUAL_PAGES: usize = 4_096;

/// More pages than that are of no use to any machine.
const MOST_PAGES: usize = 1 << 20;

impl<K> KeyedBuilder<K> {
    pub(super) fn new(quota: Quota) -> Self {
        let hasher = RandomState::default();
        Self { first: quota, others: Vec::new(), classify: None, max_keys: usize::MAX, hasher }
    }
}

impl<K, S> KeyedBuilder<K, S> {
    /// The most keys that are kept; no limit unless set. Zero counts as one.
    ///
    /// It holds whatever comes, but for keys that somebody waits for, that are booked ahead or have turns
    /// that were given back, or that have settings of their own: those stay. Where one more comes, keys that are full go first, and then those that would
    /// be full the soonest of the page that is looked at (one in some hundreds of all keys). What such
    /// a key has used is not forgotten: it counts for the keys of its page with a hash alike (one in 64
    /// of them) that come later, so **no flood of keys mints a token for anybody**. It is the
    /// newcomers who then have less than their burst. Give it room for all who are busy at a time.
    pub fn max_keys(self, max_keys: usize) -> Self {
        Self { max_keys: max_keys.max(1), ..self }
    }

    /// Other quotas, and which of them a key has: 0 for the one that the builder began with, 1 for
    /// the first of these, and so on; what is beyond the last counts as that.
    ///
    /// It is asked once for each key that comes, and again when a key comes again that was full and so
    /// forgotten. For a single key there is [`Keyed::set_rate_of`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use paceline::{BuildError, Keyed, Rate};
    /// # use paceline::keyed::Quota;
    /// let keyed: Keyed<String> = Keyed::builder(Quota::new(Rate::per_second(1), 5))
    ///     .quotas([Quota::new(Rate::per_second(100), 500)], |key: &String| {
    ///         usize::from(key.starts_with("paid-"))
    ///     })
    ///     .build()?;
    /// assert!(keyed.try_acquire_many("paid-7", 500).is_ok());
    /// assert!(keyed.try_acquire_many("7", 500).is_err());
    /// # Ok::<(), BuildError>(())
    /// ```
    pub fn quotas(
        self,
        others: impl IntoIterator<Item = Quota>,
        which: impl Fn(&K) -> usize + Send + Sync + 'static,
    ) -> Self {
        let others = others.into_iter().collect();
        Self { others, classify: Some(Box::new(which)), ..self }
    }

    /// How keys are hashed; by [`RandomState`] unless set.
    pub fn hasher<T>(self, hasher: T) -> KeyedBuilder<K, T> {
        let Self { first, others, classify, max_keys, .. } = self;
        KeyedBuilder { first, others, classify, max_keys, hasher }
    }

    /// Builds it.
    ///
    /// # Errors
    ///
    /// [`BuildError::TooManyQuotas`] if there are more than 65 536.
    pub fn build(self) -> Result<Keyed<K, S>, BuildError>
    where
        K: Clone + Eq + Hash,
        S: BuildHasher,
    {
        if u16::try_from(self.others.len()).is_err() {
            return Err(BuildError::TooManyQuotas { quotas: self.others.len() + 1 });
        }
        Ok(self.keyed())
    }

    pub(crate) fn keyed(self) -> Keyed<K, S>
    where
        K: Clone + Eq + Hash,
        S: BuildHasher,
    {
        let Self { first, others, classify, max_keys, hasher } = self;
        let pages = match max_keys {
            usize::MAX => USUAL_PAGES,
            keys => keys.div_ceil(KEYS_OF_A_PAGE).next_power_of_two().min(MOST_PAGES),
        };
        let quotas = Quotas::new(first, others);
        Keyed::of(Table::new(pages, max_keys, hasher, quotas, classify))
    }
}

impl<K, S> fmt::Debug for KeyedBuilder<K, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedBuilder")
            .field("quota", &self.first)
            .field("others", &self.others)
            .field("max_keys", &Some(self.max_keys).filter(|most| *most != usize::MAX))
            .finish_non_exhaustive()
    }
}
