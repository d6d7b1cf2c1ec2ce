//! The client that paces itself, against a real server over loopback.

#![cfg(feature = "reqwest")]

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::any;
use futures::future::join_all;
use paceline::reqwest::{Error, PacedClient, PacedClientBuilder};
use paceline::{AcquireError, Rate};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::{Instant, timeout};
use tower::ServiceExt;

const SECOND: Duration = Duration::from_secs(1);
/// Nothing here takes so long unless it hangs.
const HANGS: Duration = Duration::from_secs(60);

/// What a server answers, one after the other, and then 200; and how often it was asked.
#[derive(Clone, Default)]
struct Script(Arc<Mutex<(Vec<Response>, u32)>>);

impl Script {
    fn new(answers: impl IntoIterator<Item = Response>) -> Self {
        let mut answers: Vec<_> = answers.into_iter().collect();
        answers.reverse();
        Self(Arc::new(Mutex::new((answers, 0))))
    }

    fn next(&self) -> Response {
        let mut script = self.0.lock().unwrap();
        script.1 += 1;
        script.0.pop().unwrap_or_else(|| "Hello".into_response())
    }

    fn asked(&self) -> u32 {
        self.0.lock().unwrap().1
    }

    /// Answers at an address of its own.
    async fn serve(&self) -> SocketAddr {
        let answer = any(|State(script): State<Script>| async move { script.next() });
        let router = Router::new().route("/", answer).with_state(self.clone());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        address
    }
}

fn come_back(status: StatusCode, after: &str) -> Response {
    (status, [("retry-after", after)]).into_response()
}

fn too_many(after: &str) -> Response {
    come_back(StatusCode::TOO_MANY_REQUESTS, after)
}

fn client() -> PacedClient {
    PacedClient::new(reqwest::Client::new(), Rate::UNLIMITED, 1)
}

async fn get(client: &PacedClient, address: SocketAddr) -> Result<u16, Error> {
    let request = client.get(format!("http://{address}/"));
    let answer = timeout(HANGS, client.send(request)).await.expect("it hangs")?;
    Ok(answer.status().as_u16())
}

// ---- Its own pace ------------------------------------------------------------------------------

#[tokio::test]
async fn each_host_has_a_limit_of_its_own() {
    let (one, other) = (Script::default(), Script::default());
    let (first, second) = (one.serve().await, other.serve().await);
    let client = PacedClient::builder(reqwest::Client::new(), Rate::per_day(1)).burst(2);
    let client = client.max_wait(SECOND).build();
    for address in [first, second] {
        assert_eq!(get(&client, address).await.unwrap(), 200);
        assert_eq!(get(&client.clone(), address).await.unwrap(), 200);
        let refused = get(&client, address).await.unwrap_err();
        let Error::Limited(AcquireError::WouldExceedDeadline { .. }) = refused else {
            panic!("{refused}")
        };
    }
    assert_eq!((one.asked(), other.asked(), client.hosts()), (2, 2, 2));
}

#[tokio::test]
async fn requests_go_at_the_rate() {
    let script = Script::default();
    let address = script.serve().await;
    let client = PacedClient::new(reqwest::Client::new(), Rate::per_second(20), 1);
    let began = Instant::now();
    let answers = join_all((0..5).map(|_| get(&client, address))).await;
    assert!(answers.into_iter().all(|answer| answer.unwrap() == 200));
    // Not faster; how much slower is the machine's affair. The last is within the limiter's slack.
    assert!(began.elapsed() >= Duration::from_millis(195));
}

#[tokio::test]
async fn it_is_a_tower_service_too() {
    let script = Script::default();
    let address = script.serve().await;
    let request = client().get(format!("http://{address}/")).build().unwrap();
    assert_eq!(client().oneshot(request).await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn what_is_no_request_is_reqwests_error() {
    let client = client();
    for url in ["http://", "data:,x", "http://127.0.0.1:1/"] {
        let answer = timeout(HANGS, client.send(client.get(url))).await.unwrap();
        assert!(matches!(answer, Err(Error::Request(_))), "{url}");
    }
}

// ---- When asked to come back -------------------------------------------------------------------

#[tokio::test]
async fn asked_to_come_back_it_does_and_not_before() {
    let script = Script::new([too_many("1"), come_back(StatusCode::SERVICE_UNAVAILABLE, "1")]);
    let address = script.serve().await;
    let began = Instant::now();
    assert_eq!(get(&client(), address).await.unwrap(), 200);
    assert!(began.elapsed() >= SECOND * 2);
    assert_eq!(script.asked(), 3);
}

#[tokio::test]
async fn while_a_host_is_paused_nothing_goes_to_it_and_all_to_others() {
    let (busy, free) = (Script::new([too_many("2")]), Script::default());
    let (first, second) = (busy.serve().await, free.serve().await);
    let client = client();
    let asks = tokio::spawn({
        let client = client.clone();
        async move { get(&client, first).await }
    });
    while busy.asked() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // Its answer has come when it is paused.
    let paused = Instant::now();
    assert_eq!(get(&client, second).await.unwrap(), 200);
    tokio::time::sleep(SECOND / 2).await;
    assert_eq!(get(&client, first).await.unwrap(), 200);
    assert!(paused.elapsed() >= SECOND * 3 / 2);
    assert_eq!(asks.await.unwrap().unwrap(), 200);
    assert_eq!((busy.asked(), free.asked()), (3, 1));
}

#[tokio::test]
async fn it_comes_back_so_many_times_and_then_hands_the_answer_on() {
    let script = Script::new((0..10).map(|_| too_many("0")));
    let address = script.serve().await;
    assert_eq!(get(&client(), address).await.unwrap(), 429);
    assert_eq!(script.asked(), 3);
    let stubborn = PacedClient::builder(reqwest::Client::new(), Rate::UNLIMITED).max_retries(0);
    assert_eq!(get(&stubborn.build(), address).await.unwrap(), 429);
    assert_eq!(script.asked(), 4);
}

#[tokio::test]
async fn who_asks_for_too_long_is_not_waited_for() {
    let script = Script::new([too_many("18446744073709551615"), too_many("99999999999999999999")]);
    let address = script.serve().await;
    for max_pause in [Duration::ZERO, SECOND] {
        let client = PacedClient::builder(reqwest::Client::new(), Rate::UNLIMITED);
        let client = client.max_pause(max_pause).build();
        assert_eq!(get(&client, address).await.unwrap(), 429);
    }
    let patient = PacedClient::builder(reqwest::Client::new(), Rate::UNLIMITED);
    let patient = patient.max_pause(Duration::MAX).max_wait(SECOND).build();
    let script = Script::new([too_many("18446744073709551615")]);
    let refused = get(&patient, script.serve().await).await.unwrap_err();
    assert!(matches!(refused, Error::Limited(AcquireError::WouldExceedDeadline { .. })));
}

#[tokio::test]
async fn without_a_retry_after_the_answer_is_handed_on() {
    let script = Script::new([StatusCode::TOO_MANY_REQUESTS.into_response(), too_many("soon")]);
    let address = script.serve().await;
    let client = client();
    assert_eq!(get(&client, address).await.unwrap(), 429);
    assert_eq!(get(&client, address).await.unwrap(), 429);
    assert_eq!(script.asked(), 2);
}

#[tokio::test]
async fn what_may_have_been_done_is_not_done_again() {
    let unavailable = || come_back(StatusCode::SERVICE_UNAVAILABLE, "0");
    let script = Script::new([unavailable(), too_many("0"), unavailable()]);
    let client = client();
    let url = format!("http://{}/", script.serve().await);
    let post = || client.post(&url).body("once");
    assert_eq!(client.send(post()).await.unwrap().status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(script.asked(), 1);
    // One that was refused was not done.
    assert_eq!(client.send(post()).await.unwrap().status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(script.asked(), 3);
}

#[tokio::test]
async fn redirected_it_is_the_last_host_that_is_paused() {
    let last = Script::new([too_many("1")]);
    let target = format!("http://{}/", last.serve().await);
    let first = Script::new([(); 2].map(|()| Redirect::temporary(&target).into_response()));
    let address = first.serve().await;
    let began = Instant::now();
    let client = client();
    assert_eq!(get(&client, address).await.unwrap(), 200);
    assert!(began.elapsed() >= SECOND);
    assert_eq!((first.asked(), last.asked()), (2, 2));
}

// ---- Types -------------------------------------------------------------------------------------

fn shared<T: Send + Sync + Unpin + 'static>() {}

#[test]
fn all_can_be_shared() {
    shared::<PacedClient>();
    shared::<PacedClientBuilder>();
    shared::<Error>();
    let error: &dyn std::error::Error = &Error::from(AcquireError::Closed);
    assert_eq!(error.to_string(), "no permit for the host: the limiter is closed");
}
