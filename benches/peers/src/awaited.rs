//! Limiters that are awaited in real time, all with the same rate and the same burst.

use async_speed_limit::clock::StandardClock;
use governor::{DefaultDirectRateLimiter, Quota};
use paceline::{Limiter, Rate};
use ratelimit::{Ratelimiter, TryWaitError};
use std::{
    convert::Infallible,
    fmt,
    future::{Ready, ready},
    num::NonZeroU32,
    time::Duration,
};
use tokio::{sync::Mutex, time::sleep};
use tower::{Service, ServiceExt, limit::RateLimit, service_fn};

/// The crates that can be awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Ours, with its default settings.
    Paceline,
    /// `until_ready`.
    Governor,
    /// Fair, as it comes, with the interval of one token at the rate. It takes no interval below
    /// a millisecond; at higher rates it is refilled by several tokens, with room for them.
    LeakyBucket,
    /// It has nothing to await: who is refused sleeps for as long as it hints, and tries again.
    Ratelimit,
    /// Its `RateLimit` behind a [`Mutex`], since it is used through `&mut self`: its `burst` in
    /// the time in which they are minted.
    Tower,
    /// With a bucket that is refilled in one burst.
    SpeedLimit,
}

impl Peer {
    /// All of them, ours first.
    pub const ALL: [Self; 6] = [
        Self::Paceline,
        Self::Governor,
        Self::LeakyBucket,
        Self::Ratelimit,
        Self::Tower,
        Self::SpeedLimit,
    ];

    /// The name of the package.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Paceline => "paceline",
            Self::Governor => "governor",
            Self::LeakyBucket => "leaky-bucket",
            Self::Ratelimit => "ratelimit",
            Self::Tower => "tower",
            Self::SpeedLimit => "async-speed-limit",
        }
    }

    /// Whether one can ask for several permits at once.
    #[must_use]
    pub fn takes_many(self) -> bool {
        self != Self::Tower
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

type Answer = Ready<Result<(), Infallible>>;
type Served = RateLimit<tower::util::ServiceFn<fn(()) -> Answer>>;

/// A full limiter.
#[derive(Debug)]
pub struct Awaited(Kind);

#[derive(Debug)]
enum Kind {
    Paceline(Box<Limiter>),
    Governor(DefaultDirectRateLimiter),
    LeakyBucket(leaky_bucket::RateLimiter),
    Ratelimit(Box<Ratelimiter>),
    Tower(Mutex<Served>),
    SpeedLimit(async_speed_limit::Limiter<StandardClock>),
}

impl Awaited {
    /// A full limiter at so many permits a second. Some have to be built inside of a runtime.
    ///
    /// # Panics
    ///
    /// When the crate does not accept the rate or the burst, or one of them is zero.
    #[must_use]
    pub fn new(peer: Peer, rate: u32, burst: u32) -> Self {
        let each = Duration::from_secs(1) / rate;
        let size = |count: u32| usize::try_from(count).expect("usize holds a u32");
        let count = |count| NonZeroU32::new(count).expect("not zero");
        Self(match peer {
            Peer::Paceline => {
                Kind::Paceline(Box::new(Limiter::new(Rate::per_second(rate.into()), burst)))
            }
            Peer::Governor => Kind::Governor(DefaultDirectRateLimiter::direct(
                Quota::per_second(count(rate)).allow_burst(count(burst)),
            )),
            Peer::LeakyBucket => {
                let refill = rate.div_ceil(1_000);
                Kind::LeakyBucket(
                    leaky_bucket::RateLimiter::builder()
                        .interval(each * refill)
                        .refill(size(refill))
                        .max(size(burst.max(refill)))
                        .initial(size(burst))
                        .build(),
                )
            }
            Peer::Ratelimit => Kind::Ratelimit(Box::new(
                Ratelimiter::builder(rate.into())
                    .max_tokens(burst.into())
                    .initial_available(burst.into())
                    .build()
                    .expect("a rate that it accepts"),
            )),
            Peer::Tower => {
                let service = service_fn((|()| ready(Ok(()))) as fn(()) -> Answer);
                let rate = tower::limit::rate::Rate::new(burst.into(), each * burst);
                Kind::Tower(Mutex::new(RateLimit::new(service, rate)))
            }
            Peer::SpeedLimit => Kind::SpeedLimit(
                async_speed_limit::Limiter::builder(rate.into()).refill(each * burst).build(),
            ),
        })
    }

    /// Resolves when a permit is there.
    pub async fn acquire(&self) {
        match &self.0 {
            // The future of one permit, as of many.
            Kind::Governor(limiter) => limiter.until_ready().await,
            _ => self.acquire_many(1).await,
        }
    }

    /// Resolves when so many permits are there.
    ///
    /// # Panics
    ///
    /// When they are more than the burst, or more than one where the crate does not know of that.
    pub async fn acquire_many(&self, permits: u32) {
        let size = || usize::try_from(permits).expect("usize holds a u32");
        match &self.0 {
            Kind::Paceline(limiter) => {
                limiter.acquire_many(permits).await.expect("within the burst");
            }
            Kind::Governor(limiter) => {
                let permits = NonZeroU32::new(permits).expect("not zero");
                limiter.until_n_ready(permits).await.expect("within the burst");
            }
            Kind::LeakyBucket(limiter) => limiter.acquire(size()).await,
            Kind::Ratelimit(limiter) => loop {
                match limiter.try_wait_n(permits.into()) {
                    Ok(()) => return,
                    Err(TryWaitError::Insufficient(wait)) => sleep(wait).await,
                    Err(error) => panic!("within the burst, but: {error}"),
                }
            },
            Kind::Tower(limiter) => {
                assert_eq!(permits, 1, "tower takes one at a time");
                let mut limiter = limiter.lock().await;
                let Ok(()) = match limiter.ready().await {
                    Ok(ready) => ready.call(()).await,
                    Err(never) => match never {},
                };
            }
            Kind::SpeedLimit(limiter) => limiter.consume(size()).await,
        }
    }
}
