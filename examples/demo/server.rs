//! The service: an axum router whose handlers take a permit before they answer.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use paceline::{AcquireError, Limiter};
use tokio::net::TcpListener;

use crate::PATIENCE;

/// Serves on a free port of this machine until the program ends.
pub(crate) async fn start(given_back: Limiter, kept: Limiter) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;

    let given_back = Router::new()
        .route("/wait", get(wait))
        .route("/in-time", get(in_time))
        .with_state(Arc::new(given_back));
    let kept = Router::new()
        .route("/wait", get(wait_with_turn_kept))
        .route("/in-time", get(in_time))
        .with_state(Arc::new(kept));
    let service = Router::new().nest("/given-back", given_back).nest("/kept", kept);

    // Should it ever stop, the callers notice, and the demo ends with their error.
    tokio::spawn(async move { axum::serve(listener, service).await });
    Ok(address)
}

/// Answers when it is the caller's turn.
///
/// Of a caller who hangs up the connection is closed, and the server drops this future where it
/// sleeps. That is all there is to do: the turn goes to whoever asks next.
async fn wait(State(limiter): State<Arc<Limiter>>) -> StatusCode {
    match limiter.acquire().await {
        Ok(_waited) => StatusCode::OK,
        Err(error) => refusal(&error),
    }
}

/// Answers before the caller would hang up, or says at once that it cannot.
async fn in_time(State(limiter): State<Arc<Limiter>>) -> StatusCode {
    match limiter.acquire().within(PATIENCE).await {
        Ok(_waited) => StatusCode::OK,
        Err(error) => refusal(&error),
    }
}

/// Answers when it is the caller's turn, as [`wait`] does, but books that turn for good: a
/// [`Reservation`](paceline::Reservation) that is dropped stays spent.
///
/// So are the turns of a limiter that tells its callers how long to sleep, and leaves it at that.
/// One that takes a turn back only while nobody has booked behind it ends the same way: those who
/// give up are those who came first.
async fn wait_with_turn_kept(State(limiter): State<Arc<Limiter>>) -> StatusCode {
    let Ok(turn) = limiter.reserve() else {
        return StatusCode::SERVICE_UNAVAILABLE;
    };
    match turn.ready().await {
        Ok(()) => StatusCode::OK,
        Err(error) => refusal(&error),
    }
}

fn refusal(error: &AcquireError) -> StatusCode {
    match error {
        AcquireError::WouldExceedDeadline { .. } => StatusCode::TOO_MANY_REQUESTS,
        // Nothing here closes a limiter or asks for more than the burst.
        _ => StatusCode::SERVICE_UNAVAILABLE,
    }
}
