//! The layer for HTTP around an axum router, over loopback.

#![cfg(feature = "http")]

use axum::Router;
use axum::extract::ConnectInfo;
use axum::routing::{get, post};
use futures::future::join_all;
use http::StatusCode;
use http::header::HeaderValue;
use paceline::http::{ClientAddr, Policy, TooManyRequests};
use paceline::tower::RateLimitLayer;
use paceline::{Limiter, Rate};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

/// Nothing here takes so long unless it hangs.
const HANGS: Duration = Duration::from_secs(60);

async fn serve(router: Router) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });
    address
}

fn hello() -> Router {
    Router::new().route("/", get(|| async { "Hello" }))
}

/// So many requests, and no more while a test runs.
fn only(name: &str, requests: u32) -> Policy {
    Policy::new(name, Rate::per_day(1), requests)
}

fn peer() -> ClientAddr {
    ClientAddr::peer(|info: &ConnectInfo<SocketAddr>| info.0.ip())
}

async fn status(request: reqwest::RequestBuilder) -> u16 {
    timeout(HANGS, request.send()).await.unwrap().unwrap().status().as_u16()
}

/// What the server answers to these bytes, until it closes.
async fn answer_to(address: SocketAddr, bytes: &[u8]) -> String {
    let mut connection = TcpStream::connect(address).await.unwrap();
    // It may answer and close before it has read all.
    let _ = connection.write_all(bytes).await;
    let mut answer = Vec::new();
    let _ = timeout(HANGS, connection.read_to_end(&mut answer)).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_1500_concurrent_requests_five_are_let_in() {
    let address = serve(hello().layer(RateLimitLayer::http(only("all", 5)))).await;
    let client = reqwest::Client::new();
    let url = format!("http://{address}/");
    let mut statuses = Vec::new();
    // Not all 1500 connections at once: a process may have too few file descriptors for that.
    for _ in 0..5 {
        let requests = (0..300).map(|_| status(client.get(&url)));
        statuses.extend(join_all(requests).await);
    }
    let count = |wanted: u16| statuses.iter().filter(|&&status| status == wanted).count();
    assert_eq!((count(200), count(429)), (5, 1495));
}

#[tokio::test]
async fn clients_are_told_over_the_wire() {
    let address = serve(hello().layer(RateLimitLayer::http(only("client", 1).per(peer())))).await;
    let client = reqwest::Client::new();
    let send = || client.get(format!("http://{address}/")).send();
    let served = send().await.unwrap();
    assert_eq!(served.status(), StatusCode::OK);
    assert_eq!(served.headers()["ratelimit"], "\"client\";r=0;t=86400");
    let refused = send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.headers()["ratelimit-policy"], "\"client\";q=1;w=86400");
    assert_eq!(refused.headers()["retry-after"], "86400");
    assert_eq!(refused.headers()["content-type"], "text/plain; charset=utf-8");
    assert!(refused.text().await.unwrap().contains("retry after"));
}

#[tokio::test]
async fn routes_and_methods_have_limits_of_their_own() {
    let layer = |name, requests| RateLimitLayer::http(only(name, requests));
    let writes = only("writes", 1).methods([http::Method::POST]);
    let router = Router::new()
        .route("/read", get(|| async {}).post(|| async {}))
        .route_layer(RateLimitLayer::http(writes))
        .route("/login", post(|| async {}).layer(layer("login", 2)))
        .route("/free", get(|| async {}));
    let address = serve(router.layer(layer("all", 20))).await;
    let client = reqwest::Client::new();
    let url = |path| format!("http://{address}/{path}");
    let mut statuses = Vec::new();
    for request in [
        client.post(url("read")),
        client.post(url("read")),
        client.get(url("read")),
        client.get(url("read")),
        client.post(url("login")),
        client.post(url("login")),
        client.post(url("login")),
        client.get(url("free")),
    ] {
        statuses.push(status(request).await);
    }
    assert_eq!(statuses, [200, 429, 200, 200, 200, 200, 429, 200]);
}

#[tokio::test]
async fn a_client_that_hangs_up_while_it_waits_gives_its_turn_back() {
    let limiter = Arc::new(Limiter::new(Rate::per_day(1), 1));
    let layer = RateLimitLayer::new(Arc::clone(&limiter)).wait().answer(TooManyRequests::new());
    let address = serve(hello().layer(layer)).await;
    limiter.try_acquire().unwrap();
    let debt_is = async |debt: f64| {
        let until = async {
            while (limiter.tokens() - debt).abs() > 0.1 {
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(HANGS, until).await.unwrap();
    };
    let mut connections = Vec::new();
    for _ in 0..10 {
        let mut connection = TcpStream::connect(address).await.unwrap();
        connection.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        connections.push(connection);
    }
    debt_is(-10.0).await;
    drop(connections);
    debt_is(0.0).await;
}

#[tokio::test]
async fn whatever_is_in_the_headers_the_server_answers_and_its_limit_is_the_peers() {
    let address = serve(hello().layer(RateLimitLayer::http(only("client", 1).per(peer())))).await;
    let forged = [
        b"X-Forwarded-For: 1.1.1.1".to_vec(),
        b"X-Forwarded-For: \xff\xfe\xc3\xa4, ,\",;".to_vec(),
        b"Forwarded: for=\"[::1;;;,,\\\"".to_vec(),
        [&b"X-Forwarded-For: "[..], &b"1.1.1.1, ".repeat(5000)].concat(),
        [&b"X-Api-Key: "[..], &b"k".repeat(2_000_000)].concat(),
    ];
    let request = |field: &[u8]| {
        [b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n", field, b"\r\n\r\n"].concat()
    };
    assert!(answer_to(address, &request(b"a: b")).await.starts_with("HTTP/1.1 200"));
    for field in forged {
        let answer = answer_to(address, &request(&field)).await;
        let status = answer.get(9..12).unwrap_or("reset");
        // Hyper itself refuses a head that is too long.
        assert!(["429", "431", "reset"].contains(&status), "{answer}");
    }
    assert!(answer_to(address, &request(b"a: b")).await.starts_with("HTTP/1.1 429"));
}

#[tokio::test]
async fn behind_a_proxy_each_client_has_its_own_limit_over_the_wire() {
    let behind = peer().behind(["127.0.0.0/8".parse().unwrap()]);
    let address = serve(hello().layer(RateLimitLayer::http(only("client", 1).per(behind)))).await;
    let client = reqwest::Client::new();
    let from = |hops: &[u8]| {
        let hops = HeaderValue::from_bytes(hops).unwrap();
        status(client.get(format!("http://{address}/")).header("x-forwarded-for", hops))
    };
    assert_eq!(from(b"1.1.1.1").await, 200);
    assert_eq!(from(b"\xff\xfe, 1.1.1.1").await, 429);
    assert_eq!(from(b"2.2.2.2, 127.0.0.2").await, 200);
    assert_eq!(from(b"2.2.2.2, \xff\xfe").await, 400);
}
