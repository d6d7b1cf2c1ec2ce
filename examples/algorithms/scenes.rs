//! When requests come: always at the same times, in whole milliseconds, as Tokio's timer needs it.

use std::time::Duration;

/// How long each scene is.
pub(crate) const LENGTH: Duration = Duration::from_secs(6);

pub(crate) struct Scene {
    pub(crate) name: &'static str,
    /// From its beginning, in their order.
    pub(crate) arrivals: Vec<Duration>,
}

pub(crate) fn all() -> [Scene; 4] {
    [
        scene("steady: 8 per second", (0..48).map(|n| 60 + 125 * n).collect()),
        scene("bursts of 24 across a second's end", bursts()),
        scene("overload: 24 per second", at_random(24, 6_000, 7)),
        scene("idle, then 24 per second", (0..48).map(|n| 4_010 + 41 * n).collect()),
    ]
}

fn scene(name: &'static str, arrivals: Vec<u64>) -> Scene {
    Scene { name, arrivals: arrivals.into_iter().map(Duration::from_millis).collect() }
}

/// Twelve in the last 60 ms of a second and twelve in the first 60 ms of the next, every two seconds.
fn bursts() -> Vec<u64> {
    [1_000, 3_000, 5_000]
        .into_iter()
        .flat_map(|end| (0..24).map(move |n| end - 58 + 5 * n))
        .collect()
}

/// So many per second on average, who do not know of each other, until `end` in milliseconds.
fn at_random(per_second: u32, end: u64, seed: u64) -> Vec<u64> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..end).filter(|_| random.u32(..1_000) < per_second).collect()
}
