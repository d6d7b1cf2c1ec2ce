//! An API that limits each client, and all of them together where it is dear, and tells them so.
//!
//!     cargo run --release --features http --example axum_api
//!
//! It starts on a free port, asks itself a few questions and shows the answers. To serve until it is
//! stopped, with or without limits, give it an address:
//!
//!     cargo run --release --features http --example axum_api -- 127.0.0.1:8080 [bare|limited|told]

use axum::Router;
use axum::extract::ConnectInfo;
use axum::routing::{get, post};
use paceline::Rate;
use paceline::http::{ClientAddr, Policy, TooManyRequests};
use paceline::tower::RateLimitLayer;
use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;

fn routes() -> Router {
    Router::new()
        .route("/", get(|| async { "Hello\n" }))
        .route("/reports", post(|| async { "It will take a while\n" }))
}

/// Behind no proxy, so a client is a peer.
fn client() -> ClientAddr {
    ClientAddr::peer(|info: &ConnectInfo<SocketAddr>| info.0.ip())
}

fn api() -> Router {
    // Five a second from each client, ten at once after a quiet time, and 10 000 a day.
    let burst = Policy::new("client", Rate::per_second(5), 10).per(client());
    let daily = Policy::new("daily", Rate::per_day(10_000), 10_000).per(client());
    // Two reports a minute, whoever asks for them.
    let reports = Policy::new("reports", Rate::per_minute(2), 2).under("/reports");
    let answer = TooManyRequests::new().problem_details();
    routes().layer(RateLimitLayer::http([burst, daily, reports]).answer(answer))
}

/// One limit that nobody reaches, to see what the layer costs; and what to tell of it does.
fn generous(answer: TooManyRequests) -> Router {
    let policy = Policy::new("client", Rate::per_second(1_000_000), 1_000_000);
    routes().layer(RateLimitLayer::http(policy.per(client())).answer(answer))
}

async fn serve(listener: TcpListener, router: Router) -> std::io::Result<()> {
    axum::serve(listener, router.into_make_service_with_connect_info::<SocketAddr>()).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    if let Some(address) = arguments.next() {
        let router = match arguments.next().as_deref() {
            None => api(),
            Some("bare") => routes(),
            Some("limited") => generous(TooManyRequests::new().without_draft_fields()),
            Some("told") => generous(TooManyRequests::new()),
            Some(other) => return Err(format!("{other}: not bare, limited or told").into()),
        };
        return Ok(serve(TcpListener::bind(address).await?, router).await?);
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(serve(listener, api()));
    ask(address).await
}

/// What a client sees.
async fn ask(address: SocketAddr) -> Result<(), Box<dyn Error>> {
    let client = reqwest::Client::new();
    let url = |path: &str| format!("http://{address}{path}");
    println!("three reports:");
    for _ in 0..3 {
        show(client.post(url("/reports")).send().await?).await?;
    }
    println!("\ntwelve requests at once, and one a second later:");
    for number in 0..12 {
        let answer = client.get(url("/")).send().await?;
        if number % 5 == 0 || answer.status() != 200 {
            show(answer).await?;
        }
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    show(client.get(url("/")).send().await?).await
}

async fn show(answer: reqwest::Response) -> Result<(), Box<dyn Error>> {
    println!("{}", answer.status());
    for (name, value) in answer.headers() {
        if name.as_str().contains("ratelimit") || name == "retry-after" {
            println!("    {name}: {}", value.to_str()?);
        }
    }
    println!("    {}", answer.text().await?.trim_end());
    Ok(())
}
