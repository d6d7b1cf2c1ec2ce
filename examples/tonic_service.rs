//! A gRPC service that answers so many calls a second, and a client that goes by what it is told.
//!
//!     cargo run --release --features tonic --example tonic_service
//!
//! The service is gRPC's own health check, so nothing has to be generated here.

use paceline::tonic::ResourceExhausted;
use paceline::tower::RateLimitLayer;
use paceline::{Limiter, Rate};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep};
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Server};
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt;
use tower::Layer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let limiter = Arc::new(Limiter::new(Rate::per_second(5), 3));
    let layer = RateLimitLayer::new(limiter).answer(ResourceExhausted);
    let (_, health) = tonic_health::server::health_reporter();

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = format!("http://{}", listener.local_addr()?);
    let server = Server::builder().add_service(layer.layer(health));
    tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));

    let mut client = HealthClient::new(Channel::from_shared(address)?.connect().await?);
    let began = Instant::now();
    for call in 1..=8 {
        loop {
            let check = HealthCheckRequest { service: String::new() };
            match client.check(check).await {
                Ok(_) => break println!("{:>8.1?}  call {call} is served", began.elapsed()),
                Err(refused) => {
                    let wait = retry_delay(&refused).ok_or(refused)?;
                    println!("{:>8.1?}  call {call} is told to wait {wait:.1?}", began.elapsed());
                    sleep(wait).await;
                }
            }
        }
    }
    Ok(())
}

/// When a refused call may be made again.
fn retry_delay(status: &Status) -> Option<Duration> {
    let info =
        status.get_details_retry_info().filter(|_| status.code() == Code::ResourceExhausted)?;
    info.retry_delay
}
