//! A service that takes 200 calls a second, then 50, then 200 again, and the crowd that calls it. On
//! paused time and from a seed, so each run is the same to the nanosecond.

use paceline::Rate;
use paceline::adaptive::{AdaptiveConcurrency, AdaptiveRate};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};

pub(crate) const PHASE: Duration = Duration::from_secs(10);
pub(crate) const CAPACITIES: [u32; 3] = [200, 50, 200];
pub(crate) const BIN: Duration = Duration::from_millis(500);
pub(crate) const BINS: usize = 60;

const CALLERS: u64 = 60;
const WORKERS: u32 = 4;

/// Plays a scene on a clock and a runtime of its own, so that nothing else has a part in it.
pub(crate) fn play<T>(scene: impl Future<Output = T>) -> T {
    let runtime = runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime with nothing but a timer").block_on(scene)
}

/// What happened in a [`BIN`].
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Bin {
    pub(crate) capacity: u32,
    /// The rate or the concurrency at its end.
    pub(crate) limit: f64,
    pub(crate) served: u32,
    pub(crate) refused: u32,
    /// The longest that a call took that ended in it.
    pub(crate) slowest: Duration,
}

impl Bin {
    pub(crate) fn served_per_second(&self) -> f64 {
        f64::from(self.served) / BIN.as_secs_f64()
    }
}

/// The bins of a scene that goes on.
struct Log {
    start: Instant,
    bins: Mutex<Vec<Bin>>,
}

impl Log {
    fn new() -> Arc<Self> {
        let bins = Mutex::new(vec![Bin::default(); BINS]);
        Arc::new(Self { start: Instant::now(), bins })
    }

    fn capacity(&self) -> u32 {
        let phase = self.start.elapsed().as_nanos() / PHASE.as_nanos();
        CAPACITIES[usize::try_from(phase).unwrap().min(2)]
    }

    fn note(&self, note: impl FnOnce(&mut Bin)) {
        let bin = usize::try_from(self.start.elapsed().as_nanos() / BIN.as_nanos()).unwrap();
        if let Some(bin) = self.bins.lock().unwrap().get_mut(bin) {
            note(bin);
        }
    }

    /// Notes the limit until all phases are over.
    async fn watch(&self, limit: impl Fn() -> f64) -> Vec<Bin> {
        while self.start.elapsed() < PHASE * 3 {
            let capacity = self.capacity();
            self.note(|bin| (bin.capacity, bin.limit) = (capacity, limit()));
            sleep(BIN / 10).await;
        }
        self.bins.lock().unwrap().clone()
    }
}

/// Token bucket of ten that refuses what is too much.
struct Bucket {
    /// Tokens times 10^9, and when they were so many.
    state: Mutex<(u64, Instant)>,
}

const TOKEN: u64 = 1_000_000_000;

impl Bucket {
    fn new() -> Self {
        Self { state: Mutex::new((10 * TOKEN, Instant::now())) }
    }

    /// How long to wait for a token, if there is none.
    fn take(&self, rate: u32) -> Result<(), Duration> {
        let (tokens, at) = &mut *self.state.lock().unwrap();
        let passed = u64::try_from(at.elapsed().as_nanos()).unwrap();
        *tokens = (*tokens + passed * u64::from(rate)).min(10 * TOKEN);
        *at = Instant::now();
        match tokens.checked_sub(TOKEN) {
            Some(left) => *tokens = left,
            None => return Err(Duration::from_nanos((TOKEN - *tokens) / u64::from(rate))),
        }
        Ok(())
    }
}

/// A crowd under an [`AdaptiveRate`] that begins at 50/s, at a service that refuses.
pub(crate) async fn of_rate(says_when: bool, seed: u64) -> Vec<Bin> {
    let rate = AdaptiveRate::builder(Rate::per_second(50)).build().unwrap();
    let (log, bucket) = (Log::new(), Arc::new(Bucket::new()));
    for caller in 0..CALLERS {
        let (rate, log, bucket) = (rate.clone(), Arc::clone(&log), Arc::clone(&bucket));
        tokio::spawn(async move {
            let mut random = fastrand::Rng::with_seed(seed + caller);
            loop {
                let call = rate.acquire().await.unwrap();
                sleep(Duration::from_millis(random.u64(5..25))).await;
                let answer = bucket.take(log.capacity());
                sleep(Duration::from_millis(random.u64(5..25))).await;
                match answer {
                    Ok(()) => {
                        log.note(|bin| bin.served += 1);
                        call.succeeded();
                    }
                    Err(wait) => {
                        log.note(|bin| bin.refused += 1);
                        call.overloaded(says_when.then_some(wait));
                    }
                }
            }
        });
    }
    log.watch(|| rate.rate().as_per_second()).await
}

/// A crowd under `limit`, at a service of four workers that gets slower.
///
/// One call in fifty is dropped by its caller after a tenth of a second at most.
pub(crate) async fn of_concurrency(limit: AdaptiveConcurrency, seed: u64) -> Vec<Bin> {
    let (log, workers) = (Log::new(), Arc::new(Semaphore::new(WORKERS as usize)));
    for caller in 0..CALLERS {
        let (limit, log, workers) = (limit.clone(), Arc::clone(&log), Arc::clone(&workers));
        tokio::spawn(async move {
            let mut random = fastrand::Rng::with_seed(seed + caller);
            loop {
                let attempt = limit.acquire().await.unwrap();
                let began = Instant::now();
                let usual = Duration::from_secs(WORKERS.into()) / log.capacity();
                let service = usual * random.u32(80..=120) / 100;
                let patience = if random.u8(..50) == 0 { usual } else { PHASE };
                let work = async {
                    let _worker = workers.acquire().await;
                    sleep(service).await;
                };
                if timeout(patience, work).await.is_err() {
                    continue;
                }
                log.note(|bin| {
                    bin.served += 1;
                    bin.slowest = bin.slowest.max(began.elapsed());
                });
                attempt.succeeded();
            }
        });
    }
    log.watch(|| limit.limit().into()).await
}
