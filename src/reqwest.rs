//! A client that paces itself for each host: feature `reqwest`.
//!
//! ```no_run
//! use paceline::Rate;
//! use paceline::reqwest::PacedClient;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // At most ten requests a second to any one host.
//! let client = PacedClient::new(reqwest::Client::new(), Rate::per_second(10), 1);
//!
//! let answer = client.send(client.get("http://localhost:8080/")).await?;
//! println!("{}", answer.status());
//! # Ok(())
//! # }
//! ```
//!
//! A request waits for a permit of its host. Is it answered with 429 Too Many Requests or 503 Service
//! Unavailable and a `Retry-After`, that host's limiter is paused until then: for this request, which is
//! sent again, and for all others to that host, which would only be told the same.
//!
//! It stands beside `reqwest::Client` and is no layer within it: those that reqwest takes are
//! for connections, and a connection serves many requests. Build requests with reqwest's own builder and
//! [`send`](PacedClient::send) them by this one; or use it as a tower service of
//! `reqwest::Request`, as `reqwest::Client` is, with other layers around it.

mod builder;
mod client;
mod error;
mod hosts;
mod retry_after;

pub use builder::PacedClientBuilder;
pub use client::PacedClient;
pub use error::Error;
