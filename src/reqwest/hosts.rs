//! A limiter for each host, of which there are so many at most.

use crate::limiter::Limiter;
use crate::rate::Rate;
use reqwest::Url;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// In place of no limit, which could not be paused: a permit each nanosecond.
const UNLIMITED: (Rate, u32) = (Rate::per_second(1_000_000_000), u32::MAX);

#[derive(Debug)]
pub(super) struct Hosts {
    rate: Rate,
    burst: u32,
    max_wait: Duration,
    room: usize,
    /// By name and port.
    limiters: Mutex<HashMap<String, Arc<Limiter>>>,
    /// Shared by the hosts for which there is no room.
    rest: Arc<Limiter>,
}

impl Hosts {
    pub(super) fn new(rate: Rate, burst: u32, max_wait: Duration, room: usize) -> Self {
        let (rate, burst) = if rate.is_unlimited() { UNLIMITED } else { (rate, burst) };
        let rest = limiter(rate, burst, max_wait);
        Self { rate, burst, max_wait, room, limiters: Mutex::default(), rest }
    }

    /// The limiter of the host of `url`; `None` if it has none.
    pub(super) fn limiter(&self, url: &Url) -> Option<Arc<Limiter>> {
        let host = format!("{}:{}", url.host_str()?, url.port_or_known_default()?);
        let mut limiters = self.limiters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(limiter) = limiters.get(&host) {
            return Some(Arc::clone(limiter));
        }
        if limiters.len() >= self.room {
            // Who has all of its burst and is in nobody's hands is as good as new.
            limiters.retain(|_, limiter| {
                limiter.tokens() < f64::from(self.burst) || Arc::strong_count(limiter) > 1
            });
        }
        if limiters.len() >= self.room {
            return Some(Arc::clone(&self.rest));
        }
        let limiter = limiter(self.rate, self.burst, self.max_wait);
        limiters.insert(host, Arc::clone(&limiter));
        Some(limiter)
    }

    pub(super) fn len(&self) -> usize {
        self.limiters.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

fn limiter(rate: Rate, burst: u32, max_wait: Duration) -> Arc<Limiter> {
    let built = Limiter::builder(rate).burst(burst).max_wait(max_wait).build();
    // Nothing of that can be refused.
    Arc::new(built.unwrap_or_else(|_| Limiter::new(rate, burst)))
}

/// Lets nothing through until then. What is stored could still be used while it is paused, so that is
/// taken.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
pub(super) fn pause(limiter: &Limiter, until: Instant) {
    if until <= Instant::now() {
        return;
    }
    limiter.pause_until(until);
    // Again if others have taken some meanwhile, but not for ever.
    for _ in 0..10 {
        let stored = (limiter.tokens() as u32).min(limiter.burst());
        if limiter.try_acquire_many(stored).is_ok() {
            return;
        }
    }
}

#[cfg(all(test, not(paceline_loom)))]
mod tests {
    use super::*;

    fn hosts(room: usize) -> Hosts {
        Hosts::new(Rate::per_second(1), 2, Duration::MAX, room)
    }

    fn of(hosts: &Hosts, url: &str) -> Arc<Limiter> {
        hosts.limiter(&url.parse().unwrap()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn each_name_and_port_has_its_own() {
        let hosts = hosts(10);
        let one = of(&hosts, "http://one.example/a");
        for same in ["http://one.example:80/b", "http://ONE.example/?c", "http://u:p@one.example"] {
            assert!(Arc::ptr_eq(&one, &of(&hosts, same)), "{same}");
        }
        for other in ["http://one.example:81", "https://one.example", "http://two.example"] {
            assert!(!Arc::ptr_eq(&one, &of(&hosts, other)), "{other}");
        }
        assert!(hosts.limiter(&"data:,x".parse().unwrap()).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn there_are_never_more_than_so_many_and_those_beyond_share_one() {
        let hosts = hosts(3);
        for number in 0..1000 {
            let limiter = of(&hosts, &format!("http://{number}.example"));
            let _ = limiter.try_acquire();
            assert!(hosts.len() <= 3);
        }
        assert!(Arc::ptr_eq(&of(&hosts, "http://8.example"), &of(&hosts, "http://9.example")));
        // Those that are as good as new make room.
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(!Arc::ptr_eq(&of(&hosts, "http://8.example"), &of(&hosts, "http://9.example")));
    }

    #[tokio::test(start_paused = true)]
    async fn a_paused_one_lets_nothing_through_also_of_what_it_had_stored() {
        for rate in [Rate::per_second(1), Rate::UNLIMITED] {
            let hosts = Hosts::new(rate, 2, Duration::MAX, 3);
            let limiter = of(&hosts, "http://one.example");
            let until = Instant::now() + Duration::from_secs(10);
            pause(&limiter, until);
            assert!(limiter.try_acquire().is_err());
            limiter.acquire().await.unwrap();
            assert!(Instant::now() > until);
        }
    }
}
