//! The API: so many calls a second, and 429 for more.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use paceline::{Limiter, Rate};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, sleep_until};

use crate::{BEFORE, capacity};

/// What the API lets in at once after a quiet time, and what it works on at a time.
const BURST: u32 = 10;
const WORKERS: usize = 8;

struct Api {
    limiter: Limiter,
    workers: Semaphore,
    start: Instant,
    midway: Duration,
}

/// Serves on a free port of this machine until the program ends, and slows down `midway` from now.
pub(crate) async fn start(midway: Duration) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let api = Arc::new(Api {
        limiter: Limiter::new(Rate::per_second(BEFORE.0.into()), BURST),
        workers: Semaphore::new(WORKERS),
        start: Instant::now(),
        midway,
    });
    let service = Router::new().route("/", get(answer)).with_state(Arc::clone(&api));
    tokio::spawn(async move { axum::serve(listener, service).await });
    tokio::spawn(async move {
        sleep_until(api.start + midway).await;
        let (rate, _) = capacity(midway, midway);
        api.limiter.set_rate(Rate::per_second(rate.into()))
    });
    Ok(address)
}

async fn answer(State(api): State<Arc<Api>>) -> Response {
    if let Err(refused) = api.limiter.try_acquire() {
        return too_many(refused.retry_after().unwrap_or_default());
    }
    let Ok(_worker) = api.workers.acquire().await else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let (_, takes) = capacity(api.start.elapsed(), api.midway);
    sleep(takes).await;
    StatusCode::OK.into_response()
}

/// `Retry-After` is in whole seconds; some APIs say it in milliseconds besides, and so does this one.
fn too_many(wait: Duration) -> Response {
    let seconds = wait.as_millis().div_ceil(1000);
    let headers =
        [("retry-after", seconds.to_string()), ("retry-after-ms", wait.as_millis().to_string())];
    (StatusCode::TOO_MANY_REQUESTS, headers).into_response()
}
