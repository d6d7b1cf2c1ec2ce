//! Which limit a request is under.

use super::Refused;
use crate::rate_limit::DynRateLimit;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// A limit that is asked about requests.
///
/// [`Shared`] asks one limiter about all of them; implement it for a limit of your own.
pub trait Admit<Request>: Send + Sync + 'static {
    /// What an admitted request has, until it is answered. Then the [`Answer`](super::Answer) sees it.
    type Permit: Send + 'static;
    /// Why a request is refused.
    type Refusal: Send + 'static;

    /// Lets the request through now, or not.
    ///
    /// # Errors
    ///
    /// Why not.
    fn try_admit(&self, request: &Request) -> Result<Self::Permit, Self::Refusal>;

    /// Lets the request through when its turn comes, if that comes within so long; at any time if
    /// that is `None`. Dropped before it completed, the future must give the turn back.
    fn admit(
        &self,
        request: &Request,
        within: Option<Duration>,
    ) -> Admission<Self::Permit, Self::Refusal>;
}

/// The future of [`Admit::admit`].
pub type Admission<P, R> = Pin<Box<dyn Future<Output = Result<P, R>> + Send>>;

/// One limiter for all requests.
pub struct Shared<L: ?Sized>(Arc<L>);

impl<L: DynRateLimit + ?Sized + 'static> Shared<L> {
    /// This limiter, for all requests.
    #[must_use]
    pub fn new(limiter: Arc<L>) -> Self {
        Self(limiter)
    }
}

impl<L: DynRateLimit + ?Sized + 'static, Request> Admit<Request> for Shared<L> {
    type Permit = ();
    type Refusal = Refused;

    fn try_admit(&self, _request: &Request) -> Result<(), Refused> {
        Ok(self.0.try_acquire()?)
    }

    fn admit(&self, _request: &Request, within: Option<Duration>) -> Admission<(), Refused> {
        let limiter = Arc::clone(&self.0);
        Box::pin(async move {
            match within {
                Some(within) => limiter.acquire_many_within(1, within).await?,
                None => limiter.acquire().await?,
            };
            Ok(())
        })
    }
}

impl<L: ?Sized> fmt::Debug for Shared<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}
