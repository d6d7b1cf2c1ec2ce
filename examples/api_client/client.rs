//! The client: many tasks, and what they are let do together.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, Uri};
use futures::future::try_join_all;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use paceline::Rate;
use paceline::adaptive::{AdaptiveConcurrency, AdaptiveRate, Aimd, Attempt, Call};
use tokio::time::{Instant, sleep, timeout};

use crate::{Bin, Failure, capacity, outcome};

const TASKS: usize = 100;
/// How long an answer may take before there are too many calls at a time.
const BOUND: Duration = Duration::from_millis(150);
/// How long it may take at all.
const PATIENCE: Duration = Duration::from_secs(2);

/// What became of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Served,
    /// Answered 429.
    Refused,
}

struct Caller {
    client: Client<HttpConnector, Body>,
    uri: Uri,
    rate: AdaptiveRate,
    at_a_time: AdaptiveConcurrency,
    start: Instant,
    end: Instant,
    bins: Mutex<Vec<Bin>>,
}

/// Calls the API at `server` for so long, and tells what happened.
///
/// # Errors
///
/// The first call that was not answered by 200 or 429.
pub(crate) async fn run(server: SocketAddr, length: Duration) -> Result<Vec<Bin>, Failure> {
    let count = length.as_millis().div_ceil(Bin::LENGTH.as_millis());
    let start = Instant::now();
    let caller = Caller {
        client: Client::builder(TokioExecutor::new()).build_http(),
        uri: format!("http://{server}/").parse()?,
        rate: AdaptiveRate::builder(Rate::per_second(100)).build()?,
        at_a_time: AdaptiveConcurrency::builder(10).max(200).aimd(Aimd::new().latency(BOUND))?,
        start,
        end: start + length,
        bins: Mutex::new(vec![Bin::default(); usize::try_from(count)?]),
    };
    let tasks = try_join_all((0..TASKS).map(|_| caller.work()));
    let watch = async {
        caller.watch(length / 2).await;
        Ok(())
    };
    tokio::try_join!(tasks, watch)?;
    Ok(caller.bins.into_inner().unwrap_or_default())
}

impl Caller {
    async fn work(&self) -> Result<(), Failure> {
        while Instant::now() < self.end {
            // The turn first, and then the place: so nobody has a place who waits for a turn, and the
            // places in use are the calls at a time. (`All` takes the places first.)
            let call = self.rate.acquire().await?;
            let attempt = self.at_a_time.acquire().await?;
            self.call(call, attempt).await?;
        }
        Ok(())
    }

    async fn call(&self, call: Call, attempt: Attempt) -> Result<(), Failure> {
        let began = Instant::now();
        let Ok(answer) = timeout(PATIENCE, self.client.get(self.uri.clone())).await else {
            attempt.failed();
            return Ok(());
        };
        let answer = answer?;
        let outcome = outcome(answer.status())?;
        match outcome {
            Outcome::Served => {
                call.succeeded();
                attempt.succeeded();
            }
            // Of the rate that it was too much. How long a refusal takes says nothing of how busy the
            // API is, so the attempt is dropped.
            Outcome::Refused => call.overloaded(retry_after(answer.headers())),
        }
        self.note(|bin| match outcome {
            Outcome::Served => {
                bin.served += 1;
                bin.latencies.push(began.elapsed().as_secs_f64() * 1000.0);
            }
            Outcome::Refused => bin.refused += 1,
        });
        Ok(())
    }

    /// Notes what is allowed, until the end.
    async fn watch(&self, midway: Duration) {
        while Instant::now() < self.end {
            let (rate, at_a_time) = (self.rate.rate().as_per_second(), self.at_a_time.limit());
            let (capacity, _) = capacity(self.start.elapsed(), midway);
            self.note(|bin| {
                (bin.rate, bin.at_a_time, bin.capacity) = (rate, at_a_time, capacity);
            });
            sleep(Bin::LENGTH / 10).await;
        }
    }

    /// What ends after the end is in no bin.
    fn note(&self, note: impl FnOnce(&mut Bin)) {
        let bin = self.start.elapsed().as_millis() / Bin::LENGTH.as_millis();
        let Ok(mut bins) = self.bins.lock() else { return };
        if let Some(bin) = usize::try_from(bin).ok().and_then(|bin| bins.get_mut(bin)) {
            note(bin);
        }
    }
}

/// In milliseconds if it is said so, else in seconds.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.parse().ok();
    number("retry-after-ms")
        .map(Duration::from_millis)
        .or_else(|| number("retry-after").map(Duration::from_secs))
}
