//! The tower layer: decides in `call`, shares its limit with all clones, and loses nothing.

#![cfg(feature = "tower")]

use futures::future::join_all;
use paceline::tower::{IntoError, RateLimitLayer, RateLimitService, Refused, Shared};
use paceline::window::FixedWindow;
use paceline::{AcquireError, DynRateLimit, Limiter, Rate, TryAcquireError};
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tower::{BoxError, Layer, Service, ServiceBuilder, ServiceExt, service_fn};

const SECOND: Duration = Duration::from_secs(1);

fn per_second(rate: u64, burst: u32) -> Arc<Limiter> {
    Arc::new(Limiter::new(Rate::per_second(rate), burst))
}

/// Answers each request with itself, and has no error that a refusal could be.
fn echo() -> Echo {
    Echo::default()
}

/// Ready only when it was polled so, and for one call; counts those calls.
#[derive(Debug, Default)]
struct Echo {
    ready: bool,
    calls: Arc<AtomicU32>,
}

/// A clone is as new: whether it is ready is for it to say.
impl Clone for Echo {
    fn clone(&self) -> Self {
        Self { ready: false, calls: Arc::clone(&self.calls) }
    }
}

impl Service<u32> for Echo {
    type Response = u32;
    type Error = BoxError;
    type Future = Ready<Result<u32, BoxError>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: u32) -> Self::Future {
        assert!(std::mem::take(&mut self.ready), "called without having been ready");
        self.calls.fetch_add(1, Ordering::Relaxed);
        ready(Ok(request))
    }
}

fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn refused(outcome: Result<u32, BoxError>) -> Refused {
    *outcome.unwrap_err().downcast().unwrap()
}

// ---- Where it decides --------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn to_be_ready_takes_no_permit() {
    let limiter = per_second(1, 1);
    let mut service = RateLimitLayer::new(Arc::clone(&limiter)).layer(echo());
    for _ in 0..3 {
        service.ready().await.unwrap();
        service.clone().ready().await.unwrap();
    }
    assert!((limiter.tokens() - 1.0).abs() < 1e-9);
    assert_eq!(service.call(7).await.unwrap(), 7);
    assert!(limiter.tokens() < 1e-9);
}

/// Where the limit is asked in `poll_ready`, all that are ready at once are let in.
#[tokio::test(start_paused = true)]
async fn of_1500_ready_at_once_five_are_let_in() {
    let layer = RateLimitLayer::new(per_second(5, 5));
    let service = layer.layer(echo());
    let mut all = vec![service; 1500];
    for service in &mut all {
        service.ready().await.unwrap();
    }
    let outcomes = join_all(all.iter_mut().map(|service| service.call(0))).await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 5);
}

#[tokio::test(start_paused = true)]
async fn services_of_one_layer_share_its_limit() {
    let layer = RateLimitLayer::new(per_second(1, 1));
    let (one, other) = (layer.layer(echo()), layer.clone().layer(echo()));
    assert!(one.oneshot(0).await.is_ok());
    assert!(other.oneshot(0).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn the_service_that_was_ready_is_the_one_that_is_called() {
    let inner = echo();
    let calls = Arc::clone(&inner.calls);
    let mut service = RateLimitLayer::new(per_second(1, 1)).wait().layer(inner);
    let mut answers = Vec::new();
    // The first at once and the others after a wait; `Echo` sees to it that each was ready.
    for request in 0..5 {
        answers.push(service.ready().await.unwrap().call(request));
    }
    for (request, answer) in (0..).zip(answers) {
        assert_eq!(answer.await.unwrap(), request);
    }
    assert_eq!(calls.load(Ordering::Relaxed), 5);
}

/// Of an inner service that lets in one at a time, one that waits holds its place.
#[tokio::test(start_paused = true)]
async fn while_a_request_waits_the_inner_services_place_is_its_own() {
    let mut service = ServiceBuilder::new()
        .layer(RateLimitLayer::new(per_second(1, 1)).wait())
        .concurrency_limit(1)
        .service(echo());
    service.ready().await.unwrap().call(0).await.unwrap();
    let waits = service.ready().await.unwrap().call(1);
    assert!(poll(pin!(service.ready())).is_pending());
    assert_eq!(waits.await.unwrap(), 1);
    assert!(service.ready().await.is_ok());
}

// ---- Modes -------------------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn unless_told_to_wait_it_refuses_at_once() {
    let mut service = RateLimitLayer::new(per_second(1, 1)).layer(echo());
    service.ready().await.unwrap().call(0).await.unwrap();
    let began = Instant::now();
    let refusal = refused(service.ready().await.unwrap().call(0).await);
    assert!(matches!(refusal, Refused::Try(TryAcquireError::Limited(_))));
    assert_eq!(refusal.retry_after(), Some(SECOND));
    assert_eq!(began.elapsed(), Duration::ZERO);
    sleep(SECOND).await;
    assert!(service.ready().await.unwrap().call(0).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn told_to_wait_it_lets_them_in_at_the_rate() {
    let service = RateLimitLayer::new(per_second(10, 1)).wait().layer(echo());
    let began = Instant::now();
    let outcomes = join_all((0..21).map(|request| service.clone().oneshot(request))).await;
    assert!(outcomes.iter().all(Result::is_ok));
    assert_eq!(began.elapsed(), SECOND * 2);
}

#[tokio::test(start_paused = true)]
async fn within_a_bound_it_waits_and_beyond_it_refuses_at_once() {
    let service = RateLimitLayer::new(per_second(1, 1)).wait_within(SECOND * 2).layer(echo());
    assert!(service.clone().oneshot(0).await.is_ok());
    let mut waits = [(); 2].map(|()| Box::pin(service.clone().oneshot(0)));
    assert!(waits.iter_mut().all(|call| poll(call.as_mut()).is_pending()));
    let Poll::Ready(outcome) = poll(pin!(service.clone().oneshot(0))) else {
        panic!("it can't be served in time")
    };
    let refusal = refused(outcome);
    let limit = SECOND * 2;
    let late = AcquireError::WouldExceedDeadline { requested: 1, wait: Some(SECOND * 3), limit };
    assert_eq!(refusal, Refused::Acquire(late));
    // Then there is a place for it, in which it waits.
    assert_eq!(refusal.retry_after(), Some(SECOND));
    assert!(join_all(waits).await.iter().all(Result::is_ok));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_dropped_while_it_waits_gives_its_turn_back() {
    let inner = echo();
    let calls = Arc::clone(&inner.calls);
    let service = RateLimitLayer::new(per_second(1, 1)).wait().layer(inner);
    service.clone().oneshot(0).await.unwrap();
    for _ in 0..20 {
        let mut gives_up = pin!(service.clone().oneshot(0));
        assert!(poll(gives_up.as_mut()).is_pending());
    }
    let mut first = Box::pin(service.clone().oneshot(0));
    assert!(poll(first.as_mut()).is_pending());
    let mut second = Box::pin(service.clone().oneshot(0));
    assert!(poll(second.as_mut()).is_pending());
    drop(first);
    let began = Instant::now();
    service.oneshot(0).await.unwrap();
    assert_eq!(began.elapsed(), SECOND);
    second.await.unwrap();
    assert_eq!(began.elapsed(), SECOND * 2);
    assert_eq!(calls.load(Ordering::Relaxed), 3);
}

#[tokio::test(start_paused = true)]
async fn who_waits_hears_of_a_change() {
    let limiter = Arc::new(Limiter::new(Rate::per_hour(1), 1));
    let service = RateLimitLayer::new(Arc::clone(&limiter)).wait().layer(echo());
    service.clone().oneshot(0).await.unwrap();
    let mut waits = Box::pin(service.clone().oneshot(0));
    assert!(poll(waits.as_mut()).is_pending());
    limiter.set_rate(Rate::per_second(1000)).unwrap();
    assert!(waits.await.is_ok());
    let mut waits = Box::pin(service.oneshot(0));
    assert!(poll(waits.as_mut()).is_pending());
    limiter.close();
    let refusal = refused(waits.await);
    assert!(refusal.is_closed());
    assert_eq!(refusal.retry_after(), None);
}

/// Without a bound nobody is refused because his turn is not in sight.
#[cfg(feature = "keyed")]
#[tokio::test(start_paused = true)]
async fn without_a_bound_it_waits_for_what_does_not_come_by_itself() {
    let limiter = paceline::Keyed::new(Rate::ZERO, 1);
    let layer = RateLimitLayer::keyed(limiter.clone(), |request: &u32| Some(*request));
    let service = layer.wait().layer(echo());
    service.clone().oneshot(1).await.unwrap();
    let mut waits = Box::pin(service.oneshot(1));
    assert!(poll(waits.as_mut()).is_pending());
    limiter.set_rate(Rate::per_second(1)).unwrap();
    assert_eq!(waits.await.unwrap(), 1);
}

// ---- What is answered --------------------------------------------------------------------------

#[derive(Debug, PartialEq)]
enum Failure {
    Limited(Refused),
    Broken,
}

impl From<Refused> for Failure {
    fn from(refusal: Refused) -> Self {
        Self::Limited(refusal)
    }
}

#[tokio::test(start_paused = true)]
async fn the_errors_of_the_service_stay_what_they_are() {
    let broken = service_fn(|(): ()| ready(Err::<(), _>(Failure::Broken)));
    let service = RateLimitLayer::new(per_second(1, 1)).layer(broken);
    assert_eq!(service.clone().oneshot(()).await, Err(Failure::Broken));
    let Err(Failure::Limited(refusal)) = service.oneshot(()).await else { panic!("not limited") };
    assert_eq!(refusal.retry_after(), Some(SECOND));
}

#[tokio::test(start_paused = true)]
async fn a_service_that_never_fails_answers_what_a_closure_makes_of_the_refusal() {
    let service = service_fn(|name: &'static str| ready(Ok::<_, Infallible>(name)));
    let layer = RateLimitLayer::new(per_second(1, 1));
    let service = layer.answer(|_: Refused| Ok("come back later")).layer(service);
    let answers = [(); 2].map(|()| service.clone().oneshot("served"));
    let [served, limited] = join_all(answers).await.try_into().unwrap();
    assert_eq!((served, limited), (Ok("served"), Ok("come back later")));
}

#[tokio::test(start_paused = true)]
async fn any_limiter_will_do() {
    let limiters: [Arc<dyn DynRateLimit>; 2] =
        [per_second(1, 1), Arc::new(FixedWindow::new(1, SECOND))];
    for limiter in limiters {
        let service = RateLimitLayer::new(limiter).wait().layer(echo());
        let began = Instant::now();
        for request in 0..3 {
            assert_eq!(service.clone().oneshot(request).await.unwrap(), request);
        }
        assert_eq!(began.elapsed(), SECOND * 2);
    }
}

// ---- By key ------------------------------------------------------------------------------------

/// Odd requests are of one key and even ones of another, and 0 has none.
#[cfg(feature = "keyed")]
#[tokio::test(start_paused = true)]
async fn each_key_has_a_limit_of_its_own_and_what_has_none_is_refused() {
    let layer = || {
        let limiter = paceline::Keyed::new(Rate::per_second(1), 1);
        RateLimitLayer::keyed(limiter, |request: &u32| (*request > 0).then_some(request % 2))
    };
    let service = layer().layer(echo());
    let mut outcomes = Vec::new();
    for request in [1, 2, 3, 4] {
        outcomes.push(service.clone().oneshot(request).await.is_ok());
    }
    assert_eq!(outcomes, [true, true, false, false]);
    assert_eq!(refused(service.oneshot(0).await), Refused::NoKey);

    let service = layer().wait_within(SECOND).layer(echo());
    assert_eq!(refused(service.clone().oneshot(0).await), Refused::NoKey);
    let began = Instant::now();
    let calls = [1, 2, 3, 4].map(|request| service.clone().oneshot(request));
    assert!(join_all(calls).await.iter().all(Result::is_ok));
    assert_eq!(began.elapsed(), SECOND);
    // The turn of one that is dropped goes to the next of its key.
    let mut gives_up = Box::pin(service.clone().oneshot(1));
    assert!(poll(gives_up.as_mut()).is_pending());
    assert!(poll(pin!(service.clone().oneshot(1))).is_ready(), "there is no room for another");
    drop(gives_up);
    service.oneshot(1).await.unwrap();
    assert_eq!(began.elapsed(), SECOND * 2);
}

// ---- Types -------------------------------------------------------------------------------------

fn shared<T: Send + Sync + Unpin + 'static>() {}
fn sent<T: Send + 'static>(_: &T) {}

#[tokio::test(start_paused = true)]
async fn all_can_be_shared_and_its_futures_sent() {
    shared::<RateLimitLayer<Shared<Limiter>>>();
    shared::<RateLimitService<Echo, Shared<dyn DynRateLimit>, IntoError>>();
    shared::<Shared<Limiter>>();
    shared::<IntoError>();
    shared::<Refused>();
    let error: &dyn std::error::Error = &Refused::NoKey;
    assert_eq!(error.to_string(), "the request has no key to be limited by");
    let service = RateLimitLayer::new(per_second(1, 1)).wait().layer(echo());
    sent(&service.clone().oneshot(0));
}
