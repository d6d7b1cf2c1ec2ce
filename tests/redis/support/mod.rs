//! Servers of the tests' own: started, hurt and removed by them.

pub(crate) mod cluster;
pub(crate) mod engine;
pub(crate) mod load;
pub(crate) mod network;
pub(crate) mod server;
pub(crate) mod uses;
pub(crate) mod workers;

pub(crate) use cluster::Cluster;
pub(crate) use engine::Engine;
pub(crate) use server::Server;

use std::env;
use std::future::Future;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// After so long a test that hangs fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Says that a test can't run for lack of `what`. In CI it must: there it fails.
pub(crate) fn skipped(what: &str) {
    assert!(env::var_os("CI").is_none(), "in CI there must be {what}");
    eprintln!("skipped: there is no {what}");
}

/// Waits until `reached` says so.
pub(crate) async fn eventually<F: Future<Output = bool>>(
    what: &str,
    mut reached: impl FnMut() -> F,
) {
    let reached = async {
        while !reached().await {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, reached).await.unwrap_or_else(|_| panic!("it took too long until {what}"));
}
