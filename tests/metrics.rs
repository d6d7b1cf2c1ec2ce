//! What becomes of requests, as counted by the facade `metrics`.
#![cfg(feature = "metrics")]

use metrics::with_local_recorder;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use paceline::window::SlidingLog;
use paceline::{AcquireError, Limiter, Metered, Rate, RateLimit};
use std::future::poll_fn;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::time::timeout;

const SECOND: Duration = Duration::from_secs(1);

/// A limiter whose metrics are looked at.
fn metered<L: RateLimit>(limiter: L) -> (Metered<L>, PrometheusHandle) {
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    (with_local_recorder(&recorder, || Metered::new("test", limiter)), handle)
}

/// The value of the line that begins with `name` and has `label`.
fn value(handle: &PrometheusHandle, name: &str, label: &str) -> f64 {
    let page = handle.render();
    let line = page.lines().find(|line| line.starts_with(name) && line.contains(label));
    let line = line.unwrap_or_else(|| panic!("no {name} with {label} in\n{page}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

fn whole(handle: &PrometheusHandle, name: &str) -> i64 {
    format!("{}", value(handle, name, "")).parse().expect("a whole number")
}

#[track_caller]
fn assert_outcomes(handle: &PrometheusHandle, expected: &[(&str, u32)]) {
    let outcomes = [
        "granted",
        "limited",
        "deadline",
        "queue_full",
        "cancelled",
        "exceeds_burst",
        "closed",
        "other",
    ];
    for outcome in outcomes {
        let count = value(handle, "paceline_acquires_total", &format!("outcome=\"{outcome}\""));
        let wanted = expected.iter().find(|(name, _)| *name == outcome).map_or(0, |(_, n)| *n);
        assert!((count - f64::from(wanted)).abs() < 1e-9, "{outcome}: {count}, not {wanted}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_request_is_counted_once_by_its_outcome() {
    let limiter = Limiter::builder(Rate::per_second(1)).burst(2).max_waiters(1).build().unwrap();
    let (limiter, handle) = metered(limiter);
    assert_outcomes(&handle, &[]);
    limiter.try_acquire().unwrap();
    limiter.acquire().await.unwrap();
    assert!(limiter.try_acquire().is_err());
    assert!(limiter.try_acquire_many(3).is_err());
    assert!(limiter.acquire_many(3).await.is_err());
    assert!(limiter.acquire().within(SECOND / 2).await.is_err());
    assert_outcomes(
        &handle,
        &[("granted", 2), ("limited", 1), ("exceeds_burst", 2), ("deadline", 1)],
    );
    // One waits, one finds no place, and the one gives up; then one waits to its turn.
    let mut waits = Box::pin(limiter.acquire());
    assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    let full = limiter.acquire().await;
    assert_eq!(full, Err(AcquireError::QueueFull { max_waiters: 1 }));
    drop(waits);
    limiter.acquire().await.unwrap();
    assert_outcomes(
        &handle,
        &[
            ("granted", 3),
            ("limited", 1),
            ("exceeds_burst", 2),
            ("deadline", 1),
            ("queue_full", 1),
            ("cancelled", 1),
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn those_who_are_let_go_are_counted_as_closed() {
    let (limiter, handle) = metered(Limiter::new(Rate::ZERO, 0));
    let _ = limiter.get_ref().set_burst(1);
    limiter.get_ref().set_rate(Rate::per_day(1)).unwrap();
    let (refused, ()) = tokio::join!(limiter.acquire(), async { limiter.close() });
    assert!(refused.is_err());
    assert!(limiter.try_acquire().is_err());
    assert!(limiter.acquire().await.is_err());
    assert_outcomes(&handle, &[("closed", 3)]);
}

#[tokio::test(start_paused = true)]
async fn waits_are_told_in_seconds_with_those_that_were_none() {
    let (limiter, handle) = metered(Limiter::new(Rate::per_second(2), 1));
    for _ in 0..3 {
        limiter.acquire().await.unwrap();
    }
    limiter.try_acquire().unwrap_err();
    assert!((value(&handle, "paceline_wait_seconds_sum", "") - 1.0).abs() < 1e-9);
    assert!((value(&handle, "paceline_wait_seconds_count", "") - 3.0).abs() < 1e-9);
}

#[tokio::test(start_paused = true)]
async fn a_thread_that_blocks_is_counted_too() {
    let (limiter, handle) = metered(Limiter::new(Rate::per_second(1), 2));
    std::thread::scope(|scope| scope.spawn(|| limiter.blocking_acquire().unwrap()).join().unwrap());
    assert_outcomes(&handle, &[("granted", 1)]);
}

#[tokio::test(start_paused = true)]
async fn gauges_show_what_is_there_when_they_are_published() {
    let (limiter, handle) = metered(Limiter::new(Rate::per_second(1), 3));
    let gauges =
        || ["tokens", "waiters", "holes"].map(|name| whole(&handle, &format!("paceline_{name}{{")));
    limiter.publish();
    assert_eq!(gauges(), [3, 0, 0]);
    limiter.try_acquire_many(3).unwrap();
    let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(limiter.acquire())).collect();
    poll_fn(|cx| {
        assert!(waiting.iter_mut().all(|waits| waits.as_mut().poll(cx).is_pending()));
        Poll::Ready(())
    })
    .await;
    drop(waiting.remove(1));
    assert_eq!(gauges(), [3, 0, 0], "as they were published");
    limiter.publish();
    assert_eq!(gauges(), [-2, 2, 1]);
}

#[tokio::test(start_paused = true)]
async fn the_name_is_the_label_and_there_is_no_other() {
    let (limiter, handle) = metered(SlidingLog::new(5, SECOND));
    limiter.acquire_many(2).await.unwrap();
    limiter.publish();
    let page = handle.render();
    for line in page.lines().filter(|line| line.starts_with("paceline") && line.contains('{')) {
        let labels = &line[line.find('{').unwrap() + 1..line.find('}').unwrap()];
        let names: Vec<_> =
            labels.split(',').map(|label| label.split('=').next().unwrap()).collect();
        assert!(
            names.iter().all(|name| ["limiter", "outcome", "quantile"].contains(name)),
            "{line}"
        );
        assert!(labels.contains("limiter=\"test\""), "{line}");
    }
    assert!(page.contains("# TYPE paceline_wait_seconds summary"), "{page}");
    assert!((value(&handle, "paceline_tokens", "") - 3.0).abs() < 1e-9);
}

#[tokio::test(start_paused = true)]
async fn a_future_that_is_never_polled_is_no_request() {
    let (limiter, handle) = metered(Limiter::new(Rate::per_second(1), 1));
    drop(limiter.acquire());
    assert_outcomes(&handle, &[]);
    limiter.acquire().await.unwrap();
    assert!(timeout(SECOND / 2, limiter.acquire()).await.is_err());
    assert_outcomes(&handle, &[("granted", 1), ("cancelled", 1)]);
}

#[tokio::test(start_paused = true)]
async fn it_does_what_the_limiter_does() {
    let (limiter, _) = metered(Limiter::new(Rate::per_second(1), 1));
    assert_eq!(limiter.acquire().await, Ok(Duration::ZERO));
    assert_eq!(limiter.try_acquire().unwrap_err().retry_after(), Some(SECOND));
    assert_eq!(RateLimit::acquire(&limiter).await, Ok(SECOND));
    let mut waits = Box::pin(limiter.acquire());
    assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    limiter.get_ref().set_rate(Rate::per_second(10)).unwrap();
    assert_eq!(waits.await, Ok(SECOND / 10));
    assert!(limiter.into_inner().try_acquire().is_err());
}

fn shared_and_movable<T: Send + Sync + Unpin + 'static>() {}

#[test]
fn it_can_be_shared_and_sent_and_moved() {
    shared_and_movable::<Metered<Limiter>>();
}
