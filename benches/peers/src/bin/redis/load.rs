//! Many tasks that ask as fast as they can, for a while.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{task::JoinSet, time::sleep};

pub(crate) const TASKS: usize = 64;

/// How many calls a second so many tasks make together, each one after the other.
pub(crate) async fn per_second<F>(
    time: Duration,
    tasks: usize,
    call: impl Fn() -> F + Clone + Send + 'static,
) -> f64
where
    F: Future<Output = ()> + Send,
{
    let stop = Arc::new(AtomicBool::new(false));
    let start = Instant::now();
    let mut running = JoinSet::new();
    for _ in 0..tasks {
        let (call, stop) = (call.clone(), Arc::clone(&stop));
        running.spawn(async move {
            let mut calls = 0_u32;
            // Relaxed: it tells nothing but that it is over.
            while !stop.load(Ordering::Relaxed) {
                call().await;
                calls += 1;
            }
            calls
        });
    }
    sleep(time).await;
    stop.store(true, Ordering::Relaxed);
    let calls: u32 = running.join_all().await.into_iter().sum();
    f64::from(calls) / start.elapsed().as_secs_f64()
}
