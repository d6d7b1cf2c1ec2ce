//! Tasks that take permits again and again, and what became of that.

use super::PATIENCE;
use super::uses::{self, ServerClock, Use};
use paceline::redis::{Error, Failure, RedisLimiter};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

/// Nobody waits longer before the next attempt.
const AGAIN: Duration = Duration::from_millis(20);

pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    tasks: JoinSet<Log>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    pub(crate) uses: Vec<Use>,
    /// When which call failed.
    pub(crate) failures: Vec<(Instant, Failure)>,
}

impl Load {
    /// So many tasks for each of the limiters, half of which acquire one permit after the other; the
    /// others try, and try again when they are told to.
    pub(crate) fn start(limiters: &[RedisLimiter], tasks: usize, clock: ServerClock) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut load = JoinSet::new();
        for limiter in limiters {
            for task in 0..tasks {
                let stop = Arc::clone(&stop);
                load.spawn(take(limiter.clone(), task % 2 == 0, clock, stop));
            }
        }
        Self { stop, tasks: load }
    }

    /// Waits until all tasks have ended their last calls.
    pub(crate) async fn stop(self) -> Log {
        self.stop.store(true, Ordering::SeqCst);
        let mut all = Log::default();
        for log in self.tasks.join_all().await {
            all.uses.extend(log.uses);
            all.failures.extend(log.failures);
        }
        all
    }
}

impl Log {
    /// How many were certainly used from `from` to `to` in microseconds of the server.
    pub(crate) fn between(&self, from: u64, to: u64) -> usize {
        self.uses.iter().filter(|used| from <= used.earliest && used.latest < to).count()
    }

    /// By how many the worst window has too many: those who acquire have a slack of 5 ms.
    pub(crate) fn excess(&self, rate: u64, burst: u32) -> f64 {
        uses::excess(&self.uses, rate, u64::from(burst) + rate * 5 / 1_000)
    }
}

async fn take(
    limiter: RedisLimiter,
    waits: bool,
    clock: ServerClock,
    stop: Arc<AtomicBool>,
) -> Log {
    let mut log = Log::default();
    while !stop.load(Ordering::SeqCst) {
        let asked = Instant::now();
        let call = async {
            if !waits {
                return limiter
                    .try_acquire()
                    .await
                    .map_err(|error| (error.retry_after(), failure(error)));
            }
            let acquired = limiter.acquire().await;
            acquired.map(drop).map_err(|error| (None, failure(error)))
        };
        let (retry_after, failure) = match timeout(PATIENCE, call).await.expect("a call that ends")
        {
            Ok(()) => {
                log.uses.push(clock.used(asked, Instant::now()));
                continue;
            }
            Err(error) => error,
        };
        if let Some(failure) = failure {
            log.failures.push((Instant::now(), failure));
        }
        sleep(retry_after.unwrap_or_default().clamp(Duration::from_millis(1), AGAIN)).await;
    }
    log
}

/// Why the server was not asked, if that is why.
fn failure<R>(error: Error<R>) -> Option<Failure> {
    match error {
        Error::Failed(failure) => Some(failure),
        _ => None,
    }
}
