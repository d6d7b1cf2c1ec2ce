//! A page for Prometheus: what becomes of the requests to a limiter, how long they wait, and what the
//! limiter holds.
//!
//! ```sh
//! cargo run --release --features metrics --example metrics
//! ```

use axum::Router;
use axum::routing::get;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
use paceline::{Limiter, Metered, Rate};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // With buckets it is a histogram; without, a summary.
    let waits = Matcher::Full("paceline_wait_seconds".to_owned());
    let builder = PrometheusBuilder::new();
    let prometheus =
        builder.set_buckets_for_metric(waits, &[0.001, 0.01, 0.1, 1.0])?.install_recorder()?;

    // Made when the recorder is there.
    let limiter = Arc::new(Metered::new("search", Limiter::new(Rate::per_second(200), 10)));

    // The gauges are set when the page is asked for.
    let metered = limiter.clone();
    let page = move || async move {
        metered.publish();
        prometheus.render()
    };
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(
        async move { axum::serve(listener, Router::new().route("/metrics", get(page))).await },
    );

    // Twice what is allowed, from callers of whom each gives up after 100 ms.
    let mut callers = JoinSet::new();
    for _ in 0..400 {
        let limiter = limiter.clone();
        callers.spawn(async move { timeout(Duration::from_millis(100), limiter.acquire()).await });
        tokio::time::sleep(Duration::from_micros(2500)).await;
    }

    println!("http://{address}/metrics\n");
    let mut connection = TcpStream::connect(address).await?;
    connection
        .write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .await?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await?;
    println!("{}", answer.split_once("\r\n\r\n").map_or("", |(_, page)| page));
    Ok(())
}
