//! A limit for each key that requests have.

use super::{Admission, Admit, RateLimitLayer, Refused};
use crate::keyed::Keyed;
use std::fmt;
use std::hash::Hash;
use std::time::Duration;

/// A limiter per key, and which key a request has.
pub struct ByKey<K, F> {
    limiter: Keyed<K>,
    key: F,
}

impl<K, F> RateLimitLayer<ByKey<K, F>> {
    /// A limiter per key. A request of which `key` is `None` is refused with [`Refused::NoKey`].
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::tower::RateLimitLayer;
    /// use paceline::{Keyed, Rate};
    ///
    /// struct Job {
    ///     tenant: String,
    /// }
    ///
    /// let limiter = Keyed::new(Rate::per_second(10), 20);
    /// let layer = RateLimitLayer::keyed(limiter, |job: &Job| Some(job.tenant.clone()));
    /// # drop(layer);
    /// ```
    pub fn keyed<Request>(limiter: Keyed<K>, key: F) -> Self
    where
        F: Fn(&Request) -> Option<K>,
    {
        Self::by(ByKey { limiter, key })
    }
}

impl<K, F, Request> Admit<Request> for ByKey<K, F>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    F: Fn(&Request) -> Option<K> + Send + Sync + 'static,
{
    type Permit = ();
    type Refusal = Refused;

    fn try_admit(&self, request: &Request) -> Result<(), Refused> {
        let key = (self.key)(request).ok_or(Refused::NoKey)?;
        Ok(self.limiter.try_acquire(&key)?)
    }

    fn admit(&self, request: &Request, within: Option<Duration>) -> Admission<(), Refused> {
        let Some(key) = (self.key)(request) else {
            return Box::pin(async { Err(Refused::NoKey) });
        };
        let mut acquire = self.limiter.acquire_owned(key);
        if let Some(within) = within {
            acquire = acquire.within(within);
        }
        Box::pin(async { Ok(acquire.await.map(drop)?) })
    }
}

impl<K, F> fmt::Debug for ByKey<K, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByKey").finish_non_exhaustive()
    }
}
