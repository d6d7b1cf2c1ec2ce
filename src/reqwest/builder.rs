//! What can be said of a client.

use super::PacedClient;
use super::client::Settings;
use super::hosts::Hosts;
use crate::rate::Rate;
use std::time::Duration;

/// Builds a [`PacedClient`].
#[derive(Clone, Debug)]
#[must_use = "it does nothing unless built"]
pub struct PacedClientBuilder {
    client: reqwest::Client,
    rate: Rate,
    burst: u32,
    max_wait: Duration,
    max_hosts: usize,
    settings: Settings,
}

impl PacedClientBuilder {
    pub(super) fn new(client: reqwest::Client, rate: Rate) -> Self {
        let settings = Settings { max_retries: 2, max_pause: Duration::from_secs(60) };
        let (burst, max_wait, max_hosts) = (1, Duration::MAX, 1000);
        Self { client, rate, burst, max_wait, max_hosts, settings }
    }

    /// Up to so many permits are kept for when they are wanted, for each host: 1 unless set.
    pub fn burst(self, burst: u32) -> Self {
        Self { burst, ..self }
    }

    /// A request that would have to wait longer for its permit is refused at once. Unbounded unless set.
    pub fn max_wait(self, max_wait: Duration) -> Self {
        Self { max_wait, ..self }
    }

    /// Has limiters for so many hosts at a time: 1000 unless set. When there are more, a host that
    /// could send its whole burst is forgotten; where all have sent something just now, new ones share
    /// a limiter.
    pub fn max_hosts(self, max_hosts: usize) -> Self {
        Self { max_hosts, ..self }
    }

    /// Sends a request so many times more at most, if the server asks it to come back: 2 unless set.
    ///
    /// Only a request whose body can be cloned is sent again (a stream can't), and after a 503 only
    /// one whose method is idempotent.
    pub fn max_retries(self, max_retries: u32) -> Self {
        Self { settings: Settings { max_retries, ..self.settings }, ..self }
    }

    /// Pauses a host for no longer than so, whatever it asks: a minute unless set. If it asks for
    /// more, its answer is returned.
    pub fn max_pause(self, max_pause: Duration) -> Self {
        Self { settings: Settings { max_pause, ..self.settings }, ..self }
    }

    /// Builds it.
    #[must_use]
    pub fn build(self) -> PacedClient {
        let hosts = Hosts::new(self.rate, self.burst, self.max_wait, self.max_hosts);
        PacedClient::build(self.client, hosts, self.settings)
    }
}
