//! The client.

use super::hosts::{Hosts, pause};
use super::retry_after::retry_after;
use super::{Error, PacedClientBuilder};
use crate::rate::Rate;
use crate::sleep::FAR_AWAY;
use crate::time::since_epoch;
use http::StatusCode;
use reqwest::{IntoUrl, Request, RequestBuilder, Response};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use tower_service::Service;

/// A `reqwest::Client` that waits for a permit of the host before each request, and comes back when the
/// host asks it to. Clones share the limits.
///
/// The [module's documentation](super) has an example.
#[derive(Clone, Debug)]
pub struct PacedClient {
    client: reqwest::Client,
    hosts: Arc<Hosts>,
    settings: Settings,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) max_retries: u32,
    pub(super) max_pause: Duration,
}

impl PacedClient {
    /// Sends at `rate` to each host, and keeps up to `burst` permits for it.
    ///
    /// [`Rate::UNLIMITED`] is for hosts that nothing is known of: then it waits only when asked to.
    #[must_use]
    pub fn new(client: reqwest::Client, rate: Rate, burst: u32) -> Self {
        Self::builder(client, rate).burst(burst).build()
    }

    /// A client of which more is said.
    pub fn builder(client: reqwest::Client, rate: Rate) -> PacedClientBuilder {
        PacedClientBuilder::new(client, rate)
    }

    pub(super) fn build(client: reqwest::Client, hosts: Hosts, settings: Settings) -> Self {
        Self { client, hosts: Arc::new(hosts), settings }
    }

    /// A request to be [sent](Self::send): as `reqwest::Client::get`.
    pub fn get(&self, url: impl IntoUrl) -> RequestBuilder {
        self.client.get(url)
    }

    /// A request to be [sent](Self::send): as `reqwest::Client::post`.
    pub fn post(&self, url: impl IntoUrl) -> RequestBuilder {
        self.client.post(url)
    }

    /// The client that is paced, to build other requests with. What is sent by itself takes no permit.
    #[must_use]
    pub fn client(&self) -> &reqwest::Client {
        &self.client
    }

    /// For how many hosts there are limiters.
    #[must_use]
    pub fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// Sends a request when it is its turn, and again if the host asks for that.
    ///
    /// # Errors
    ///
    /// [`Error::Limited`] if it would have to wait too long; [`Error::Request`] if it is not a
    /// request, or is not answered.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime, with Tokio's own message.
    ///
    /// # Cancel safety
    ///
    /// Dropped while it waits, it gives its turn back; while it is answered, the permit is spent.
    pub async fn send(&self, request: RequestBuilder) -> Result<Response, Error> {
        self.execute(request.build()?).await
    }

    /// As [`send`](Self::send).
    ///
    /// # Errors
    ///
    /// As for [`send`](Self::send).
    ///
    /// # Panics
    ///
    /// As for [`send`](Self::send).
    ///
    /// # Cancel safety
    ///
    /// As for [`send`](Self::send).
    pub async fn execute(&self, mut request: Request) -> Result<Response, Error> {
        let Some(limiter) = self.hosts.limiter(request.url()) else {
            return Ok(self.client.execute(request).await?);
        };
        let mut retries = self.settings.max_retries;
        loop {
            limiter.acquire().await?;
            let again = if retries > 0 { request.try_clone() } else { None };
            let response = self.client.execute(request).await?;
            let Some(wait) = retry_after(response.status(), response.headers(), since_epoch) else {
                return Ok(response);
            };
            let until = Instant::now() + wait.min(self.settings.max_pause).min(FAR_AWAY);
            // Redirected, it is another host that asks.
            let asks = self.hosts.limiter(response.url()).unwrap_or_else(|| Arc::clone(&limiter));
            pause(&asks, until);
            let Some(again) = again.filter(|again| self.is_worth_it(again, &response, wait)) else {
                return Ok(response);
            };
            if !Arc::ptr_eq(&asks, &limiter) {
                sleep_until(until).await;
            }
            request = again;
            retries -= 1;
        }
    }

    /// Whether it may be sent again. Who answers 503 may have done something before.
    fn is_worth_it(&self, request: &Request, response: &Response, wait: Duration) -> bool {
        let refused = response.status() == StatusCode::TOO_MANY_REQUESTS;
        (refused || request.method().is_idempotent()) && wait <= self.settings.max_pause
    }
}

impl Service<Request> for PacedClient {
    type Response = Response;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Error>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let client = self.clone();
        Box::pin(async move { client.execute(request).await })
    }
}
