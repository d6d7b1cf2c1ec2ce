//! The callers: real requests over TCP, sent at times that do not depend on the answers.

use std::time::Duration;

use axum::body::Body;
use axum::http::{StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use indicatif::ProgressBar;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use crate::{Failure, PATIENCE};

/// When a caller comes, counted from the start, and the path that is asked for.
#[derive(Clone, Copy)]
pub(crate) struct Arrival {
    at: Duration,
    path: &'static str,
}

/// What became of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Served,
    /// Answered 429, without waiting.
    Refused,
    /// The caller hung up before there was an answer.
    GaveUp,
}

/// A request that is over.
pub(crate) struct Call {
    /// Counted from the start.
    pub(crate) sent: Duration,
    pub(crate) took: Duration,
    pub(crate) outcome: Outcome,
}

/// Random times at which callers come, `per_second` of them on average, for as long as `load`.
///
/// The gaps are exponential: callers do not know of each other, so they come in clumps.
pub(crate) fn arrivals(per_second: u32, load: Duration, seed: u64) -> Vec<Arrival> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut arrivals = Vec::new();
    let mut at = Duration::ZERO;
    loop {
        // `1 - f64()` is never zero, whose logarithm would be infinite.
        let gap = -(1.0 - random.f64()).ln() / f64::from(per_second);
        at += Duration::from_secs_f64(gap);
        if at >= load {
            return arrivals;
        }
        // One in four would rather be told at once that waiting is no use.
        let path = if random.u8(..4) == 0 { "/in-time" } else { "/wait" };
        arrivals.push(Arrival { at, path });
    }
}

/// Sends a request to `base` for every arrival, and returns when all are over.
///
/// The load is open: callers come at their times, however many still wait. A loop that sends, waits
/// and sends again would slow down together with the service, and never overload it.
///
/// # Errors
///
/// The first request that ended in any way but those of [`Outcome`].
pub(crate) async fn offer(
    base: String,
    arrivals: &[Arrival],
    progress: &ProgressBar,
) -> Result<Vec<Call>, Failure> {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let (over, mut calls) = mpsc::unbounded_channel();
    let start = Instant::now();

    tokio::spawn({
        let arrivals = arrivals.to_vec();
        async move {
            for Arrival { at, path } in arrivals {
                sleep_until(start + at).await;
                let (client, uri, over) = (client.clone(), format!("{base}{path}"), over.clone());
                tokio::spawn(async move {
                    // Nobody listens any more once another request has failed.
                    let _ = over.send(call(&client, &uri, start).await);
                });
            }
        }
    });

    // Ends when the last call is over, and has dropped its sender.
    let mut all = Vec::with_capacity(arrivals.len());
    while let Some(call) = calls.recv().await {
        all.push(call?);
        progress.inc(1);
    }
    Ok(all)
}

async fn call(
    client: &Client<HttpConnector, Body>,
    uri: &str,
    start: Instant,
) -> Result<Call, Failure> {
    let uri: Uri = uri.parse()?;
    let sent = start.elapsed();
    // At the timeout the request is dropped unanswered. Its connection is of no more use to the
    // client, which closes it; the server sees that, and drops the handler.
    let outcome = match timeout(PATIENCE, client.get(uri)).await {
        Err(_elapsed) => Outcome::GaveUp,
        Ok(answer) => match answer?.status() {
            StatusCode::OK => Outcome::Served,
            StatusCode::TOO_MANY_REQUESTS => Outcome::Refused,
            status => return Err(format!("the service answered {status}").into()),
        },
    };
    Ok(Call { sent, took: start.elapsed().saturating_sub(sent), outcome })
}
