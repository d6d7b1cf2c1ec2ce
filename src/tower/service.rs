//! The service, and the future of its answer.

use super::layer::Patience;
use super::{Admission, Admit, Answer};
use pin_project_lite::pin_project;
use std::fmt;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tower_service::Service;

/// A service with a limit in front of it: what [`RateLimitLayer`](super::RateLimitLayer) makes.
/// Clones share the limit.
pub struct RateLimitService<S, L, A> {
    inner: S,
    /// In one piece, since routers clone the service for each request.
    rules: Arc<Rules<L, A>>,
}

struct Rules<L, A> {
    limit: Arc<L>,
    answer: Arc<A>,
    patience: Patience,
}

impl<S, L, A> RateLimitService<S, L, A> {
    pub(super) fn new(inner: S, limit: Arc<L>, answer: Arc<A>, patience: Patience) -> Self {
        Self { inner, rules: Arc::new(Rules { limit, answer, patience }) }
    }

    /// The service behind the limit.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }
}

impl<S, L, A, Request> Service<Request> for RateLimitService<S, L, A>
where
    S: Service<Request> + Clone + Send + 'static,
    S::Future: Send,
    Request: Send + 'static,
    L: Admit<Request>,
    A: Answer<L::Permit, L::Refusal, S::Response, S::Error>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future, L::Permit, L::Refusal, L, A>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let rules = &*self.rules;
        let within = match (rules.limit.try_admit(&request), rules.patience) {
            (Ok(permit), _) => {
                let stage =
                    Stage::Served { future: self.inner.call(request), permit: Some(permit) };
                return self.respond(stage);
            }
            (Err(refusal), Patience::None) => {
                return self.respond(Stage::Refused { refusal: Some(refusal) });
            }
            (Err(_), Patience::Within(within)) => Some(within),
            (Err(_), Patience::Unbounded) => None,
        };
        let admission = rules.limit.admit(&request, within);
        // The one that was polled ready is the one to call; whoever polls this service next finds a
        // clone that has yet to become ready.
        let clone = self.inner.clone();
        let mut ready = mem::replace(&mut self.inner, clone);
        let called = async move {
            let permit = admission.await?;
            Ok((ready.call(request), permit))
        };
        self.respond(Stage::Waiting { called: Box::pin(called) })
    }
}

impl<S, L, A> RateLimitService<S, L, A> {
    fn respond<F, P, R>(&self, stage: Stage<F, P, R>) -> ResponseFuture<F, P, R, L, A> {
        ResponseFuture { stage, rules: Arc::clone(&self.rules) }
    }
}

impl<S: Clone, L, A> Clone for RateLimitService<S, L, A> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), rules: Arc::clone(&self.rules) }
    }
}

impl<S: fmt::Debug, L: fmt::Debug, A> fmt::Debug for RateLimitService<S, L, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitService")
            .field("inner", &self.inner)
            .field("limit", &self.rules.limit)
            .field("patience", &self.rules.patience)
            .finish_non_exhaustive()
    }
}

pin_project! {
    /// The answer of a service with a limit in front of it.
    ///
    /// # Panics
    ///
    /// If it must wait and is polled outside of a Tokio runtime with its timer enabled, with Tokio's
    /// own message; or if it is polled again after it has completed.
    ///
    /// # Cancel safety
    ///
    /// Dropped while it waits for a permit, it gives its turn back, and the service is not called.
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct ResponseFuture<F, P, R, L, A> {
        #[pin]
        stage: Stage<F, P, R>,
        rules: Arc<Rules<L, A>>,
    }
}

pin_project! {
    #[project = StageProjection]
    enum Stage<F, P, R> {
        /// It has its permit, until it is answered.
        Served { #[pin] future: F, permit: Option<P> },
        Refused { refusal: Option<R> },
        /// Until the service is called.
        Waiting { called: Admission<(F, P), R> },
    }
}

impl<F, P, R, L, A, Response, Error> Future for ResponseFuture<F, P, R, L, A>
where
    F: Future<Output = Result<Response, Error>>,
    A: Answer<P, R, Response, Error>,
{
    type Output = Result<Response, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let next = match this.stage.as_mut().project() {
                StageProjection::Served { future, permit } => {
                    let mut outcome = ready!(future.poll(cx));
                    let permit = permit.take();
                    if let (Ok(response), Some(permit)) = (&mut outcome, permit) {
                        this.rules.answer.admitted(permit, response);
                    }
                    return Poll::Ready(outcome);
                }
                StageProjection::Refused { refusal } => {
                    let refusal = refusal.take().expect("polled after completion");
                    return Poll::Ready(this.rules.answer.refused(refusal));
                }
                StageProjection::Waiting { called } => match ready!(called.as_mut().poll(cx)) {
                    Ok((future, permit)) => Stage::Served { future, permit: Some(permit) },
                    Err(refusal) => Stage::Refused { refusal: Some(refusal) },
                },
            };
            this.stage.set(next);
        }
    }
}

impl<F, P, R, L, A> fmt::Debug for ResponseFuture<F, P, R, L, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match self.stage {
            Stage::Served { .. } => "served",
            Stage::Refused { .. } => "refused",
            Stage::Waiting { .. } => "waiting",
        };
        f.debug_struct("ResponseFuture").field("stage", &stage).finish_non_exhaustive()
    }
}
