//! The layer.

use super::{IntoError, RateLimitService, Shared};
use crate::rate_limit::DynRateLimit;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tower_layer::Layer;

/// Puts a limit in front of a service. The [module's documentation](super) has an example.
///
/// Unless told otherwise by [`wait`](Self::wait) or [`wait_within`](Self::wait_within), it refuses
/// what can't be served at once.
pub struct RateLimitLayer<L, A = IntoError> {
    limit: Arc<L>,
    answer: Arc<A>,
    patience: Patience,
}

/// How long a request may wait.
#[derive(Clone, Copy, Debug)]
pub(super) enum Patience {
    None,
    Within(Duration),
    Unbounded,
}

impl<L: DynRateLimit + ?Sized + 'static> RateLimitLayer<Shared<L>> {
    /// One limiter for all requests; also an `Arc<dyn DynRateLimit>`.
    ///
    /// A refusal is an error of the service, which must be `From<Refused>`; see
    /// [`answer`](Self::answer) for services whose errors are not.
    #[must_use]
    pub fn new(limiter: Arc<L>) -> Self {
        Self::by(Shared::new(limiter))
    }
}

impl<L> RateLimitLayer<L> {
    /// A limit of your own.
    pub fn by(limit: L) -> Self {
        let (limit, answer) = (Arc::new(limit), Arc::new(IntoError));
        Self { limit, answer, patience: Patience::None }
    }
}

impl<L, A> RateLimitLayer<L, A> {
    /// Requests wait for their turn, however long that takes. Bound the queue
    /// ([`Builder::max_waiters`](crate::Builder::max_waiters)) or the wait if callers are not yours.
    #[must_use]
    pub fn wait(self) -> Self {
        Self { patience: Patience::Unbounded, ..self }
    }

    /// Requests wait for their turn, if it comes within so long. If not, they are refused at once.
    #[must_use]
    pub fn wait_within(self, wait: Duration) -> Self {
        Self { patience: Patience::Within(wait), ..self }
    }

    /// What is refused is answered so: by an [`Answer`](super::Answer), such as a closure
    /// `Fn(Refused) -> Result<Response, Error>`.
    #[must_use]
    pub fn answer<B>(self, answer: B) -> RateLimitLayer<L, B> {
        let Self { limit, patience, .. } = self;
        RateLimitLayer { limit, answer: Arc::new(answer), patience }
    }

    /// The limit.
    #[must_use]
    pub fn limit(&self) -> &L {
        &self.limit
    }
}

impl<S, L, A> Layer<S> for RateLimitLayer<L, A> {
    type Service = RateLimitService<S, L, A>;

    fn layer(&self, inner: S) -> Self::Service {
        let Self { limit, answer, patience } = self.clone();
        RateLimitService::new(inner, limit, answer, patience)
    }
}

impl<L, A> Clone for RateLimitLayer<L, A> {
    fn clone(&self) -> Self {
        let (limit, answer) = (Arc::clone(&self.limit), Arc::clone(&self.answer));
        Self { limit, answer, patience: self.patience }
    }
}

impl<L: fmt::Debug, A> fmt::Debug for RateLimitLayer<L, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitLayer")
            .field("limit", &self.limit)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}
