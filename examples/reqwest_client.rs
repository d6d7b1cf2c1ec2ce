//! Clients of a server that allows less than they think: they are paced, and come back when they are
//! told to, all of them together.
//!
//!     cargo run --release --features http,reqwest --example reqwest_client

use axum::Router;
use axum::routing::get;
use futures::future::try_join_all;
use paceline::Rate;
use paceline::http::Policy;
use paceline::reqwest::PacedClient;
use paceline::tower::RateLimitLayer;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::net::TcpListener;
use tokio::time::Instant;

/// Ten at once, and ten a second; the client sends 20 a second.
const SERVER: (Rate, u32) = (Rate::per_second(10), 10);
const CLIENT: Rate = Rate::per_second(20);
const REQUESTS: u32 = 24;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let asked = Arc::new(AtomicU32::new(0));
    let url = serve(Arc::clone(&asked)).await?;

    // Who is refused comes back as often as it takes.
    let client = PacedClient::builder(reqwest::Client::new(), CLIENT).max_retries(10).build();
    let began = Instant::now();
    let requests = (1..=REQUESTS).map(|number| {
        let (client, url) = (&client, &url);
        async move {
            let answer = client.send(client.get(url)).await?;
            println!("{:>8.1?}  request {number:>2}: {}", began.elapsed(), answer.status());
            Ok::<_, paceline::reqwest::Error>(answer.status().is_success())
        }
    });
    let served = try_join_all(requests).await?.into_iter().filter(|served| *served).count();

    let asked = asked.load(Ordering::Relaxed);
    println!("\n{served} of {REQUESTS} served; the server was asked {asked} times");
    Ok(())
}

/// Counts what it is asked, and lets through what it allows.
async fn serve(asked: Arc<AtomicU32>) -> Result<String, Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let count = axum::middleware::map_request(move |request: axum::extract::Request| {
        asked.fetch_add(1, Ordering::Relaxed);
        std::future::ready(request)
    });
    let limit = RateLimitLayer::http(Policy::new("all", SERVER.0, SERVER.1));
    let router = Router::new().route("/", get(|| async { "Hello" })).layer(limit).layer(count);
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(format!("http://{address}/"))
}
