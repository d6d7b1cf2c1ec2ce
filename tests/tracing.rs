//! The events of the feature `tracing`, whose names and fields are part of the interface.
#![cfg(feature = "tracing")]

use paceline::{Limiter, Rate};
use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, timeout};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry;

/// Writes down the events of paceline.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() != "message" {
            write!(self.0, " {}={value:?}", field.name()).unwrap();
        }
    }
}

impl<S: Subscriber> Layer<S> for Log {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        if metadata.target() == "paceline" {
            let mut line = Line(format!("{} {}", metadata.level(), metadata.name()));
            event.record(&mut line);
            self.0.lock().unwrap().push(line.0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn waits_and_changes_are_told_and_what_is_served_at_once_is_not() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(registry().with(log.clone()));
    let limiter = Limiter::new(Rate::per_second(10), 2);
    limiter.acquire_many(2).await.unwrap();
    limiter.acquire().await.unwrap();
    assert!(timeout(Duration::from_millis(5), limiter.acquire()).await.is_err());
    limiter.set_rate(Rate::per_second(5)).unwrap();
    limiter.set_burst(1).unwrap();
    limiter.pause_until(Instant::now() + Duration::from_secs(1));
    limiter.resume();
    let (closed, ()) = tokio::join!(limiter.acquire(), async { limiter.close() });
    assert!(closed.is_err());
    let expected = [
        "TRACE wait.began permits=1",
        "TRACE wait.ended permits=1 waited=100ms",
        "TRACE wait.began permits=1",
        "TRACE wait.cancelled permits=1",
        "DEBUG rate.set rate=5/s",
        "DEBUG burst.set burst=1",
        "DEBUG paused pause=1s",
        "DEBUG resumed",
        "TRACE wait.began permits=1",
        "DEBUG closed",
        "TRACE wait.refused error=the limiter is closed",
    ];
    assert_eq!(*log.0.lock().unwrap(), expected);
}
