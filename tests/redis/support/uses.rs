//! When permits were used, by the server's clock, and whether they were too many in any window.

use super::Server;
use std::fmt::Write;
use std::time::Duration;
use tokio::time::Instant;

/// What is known of the server's clock: it showed `shown` at some time between two of ours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerClock {
    shown: u64,
    sent: Instant,
    received: Instant,
}

impl ServerClock {
    pub(crate) async fn read(server: &redis::Client) -> Self {
        let mut connection = server.get_multiplexed_async_connection().await.expect("it is up");
        let sent = Instant::now();
        let shown = Server::time(&mut connection).await;
        Self { shown, sent, received: Instant::now() }
    }

    /// A permit that was used after `asked` and not after `answered`.
    pub(crate) fn used(&self, asked: Instant, answered: Instant) -> Use {
        let earliest = self.shown + micros(asked.saturating_duration_since(self.received));
        let latest = self.shown + micros(answered.saturating_duration_since(self.sent)) + 1;
        Use { earliest, latest }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).expect("a test is short")
}

/// The use of a permit, between two times of the server in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) earliest: u64,
    pub(crate) latest: u64,
}

/// By how many permits the worst window is above `burst + rate * w`, the rate per second: below zero if
/// none is. A use counts where it certainly was within the window.
pub(crate) fn excess(uses: &[Use], rate: u64, burst: u64) -> f64 {
    let mut uses = uses.to_vec();
    uses.sort_unstable_by_key(|used| used.earliest);
    let mut worst = i128::MIN;
    let mut ends: Vec<u64> = Vec::new();
    for used in uses.iter().rev() {
        ends.insert(ends.partition_point(|end| *end <= used.latest), used.latest);
        for (before, end) in ends.iter().enumerate() {
            // It begins a microsecond before the first use.
            let window = i128::from(end - used.earliest.min(*end)) + 1;
            let count = i128::try_from(before).expect("a count") + 1;
            let allowed = i128::from(burst) * 1_000_000 + i128::from(rate) * window;
            worst = worst.max(count * 1_000_000 - allowed);
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "to be printed")]
    let permits = worst as f64 / 1e6;
    permits
}

/// For another process to [`read`].
pub(crate) fn written(uses: &[Use]) -> String {
    uses.iter().fold(String::new(), |mut text, used| {
        writeln!(text, "use {} {}", used.earliest, used.latest).expect("a string has room");
        text
    })
}

/// The uses among the lines of `text`.
pub(crate) fn read(text: &str) -> Vec<Use> {
    let number = |word: Option<&str>| word.and_then(|word| word.parse().ok());
    let line = |line: &str| {
        let mut words = line.split_whitespace().skip_while(|word| *word != "use").skip(1);
        Some(Use { earliest: number(words.next())?, latest: number(words.next())? })
    };
    text.lines().filter_map(line).collect()
}
