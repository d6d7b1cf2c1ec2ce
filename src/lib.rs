//! A rate limiter for Tokio that is lock-free, fair and exact, and loses nothing when callers
//! give up.
//!
//! ```
//! use paceline::{Limiter, Rate};
//! use std::time::Duration;
//! use tokio::time::timeout;
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // 100 permits per second, of which up to 10 are kept for when they are wanted.
//! let limiter = Limiter::new(Rate::per_second(100), 10);
//!
//! limiter.acquire().await?;
//!
//! // Giving up gives the turn back, and the next caller has it.
//! let waited = timeout(Duration::from_millis(50), limiter.acquire()).await;
//! # assert!(waited.is_ok());
//!
//! // Or ask first: this one is refused at once if it can't be served in time.
//! let served = limiter.acquire_many(5).within(Duration::from_millis(50)).await;
//! # assert!(served.is_ok());
//! # Ok(())
//! # }
//! ```
//!
//! # The token line
//!
//! Three sentences explain all that it does.
//!
//! > Tokens are minted on a line, one after the other, at the configured rate.
//! >
//! > Every permit is a distinct interval of that line.
//! >
//! > A permit may be used only once it is minted, and only before it overflows: before the line
//! > has been minted more than `burst` tokens past it.
//!
//! From them it follows that in every window `(t1, t2]` of whole nanoseconds at most
//! `burst + rate * (t2 - t1)` permits are used, exactly: the permits used in it are distinct, and
//! all lie between what had overflowed at `t1` and what is minted at `t2`.
//!
//! A turn that is given back ([`Reservation::cancel`], or an [`Acquire`] that is dropped) leaves a
//! *hole* in the line, and the next who would have to wait takes the earliest hole that serves it.
//! So a crowd of callers that time out costs nothing, where other limiters let the line run away
//! from the clock and then serve nobody.
//!
//! # What to use
//!
//! | | |
//! |---|---|
//! | [`try_acquire`](Limiter::try_acquire) | take it now or be told when to come back |
//! | [`acquire`](Limiter::acquire) | wait for a turn; drop the future to give it back |
//! | [`within`](Acquire::within), [`before`](Acquire::before) | wait, but be refused at once if that takes too long |
//! | [`reserve`](Limiter::reserve) | book a turn and see when it comes; [`cancel`](Reservation::cancel) gives it back |
//! | [`blocking_acquire`](Limiter::blocking_acquire) | wait on a thread, without a runtime |
//! | `…_at` | any of these at a time of your own, for replays, simulations and one reading of the clock for many |
//!
//! # Which limiter
//!
//! All of them have these verbs, and [`RateLimit`] as what they share.
//!
//! | | choose it |
//! |---|---|
//! | [`Limiter`] | unless you know better: a token bucket, even or [refilled in steps](Refill) |
//! | [`Striped`] | at very high rates: most grants read no clock |
//! | [`LeakyBucket`] | for an even stream from a queue of bounded length, as nginx has it |
//! | [`window::FixedWindow`] | to count per minute or hour, as an upstream does |
//! | [`window::SlidingWindow`], [`window::SlidingLog`] | for at most so many in *any* window |
//! | [`smooth::SmoothBursty`], [`smooth::SmoothWarmingUp`] | if you come from Guava, or what is behind must warm up |
//! | `Keyed` | for each user, address or tenant: the feature `keyed` |
//! | `tower`, `http`, `tonic` | in front of a service: the features of those names |
//! | `reqwest` | behind a client: the feature of that name |
//! | [`All`] | when several of them must hold together |
//! | [`Concurrency`] | for how many at a time, not how often |
//! | [`adaptive`] | when nobody knows what the downstream can bear |
//! | [`CircuitBreaker`] | to fail fast while the downstream is broken |
//! | [`Sometimes`] | for log lines: the first few, every so many, once in a while |
//!
//! # Time
//!
//! Time is Tokio's, unless [`Builder::clock`] says otherwise: under `tokio::time::pause` and
//! `advance` (feature `test-util` of Tokio) all of it follows the paused clock. The machine's wall
//! clock is read once, and only for a window that is aligned to it (and by the client of the feature
//! `reqwest`, for a `Retry-After` that is a date). All arithmetic that decides is
//! in whole numbers; there is no drift, and no limit on uptime.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `config` | no | limiters' settings and routes in configuration files: [`config`](https://docs.rs/paceline/latest/paceline/config/) |
//! | `http` | no | the tower layer for HTTP, with keys, header fields and 429 |
//! | `io` | no | readers and writers that keep a byte rate: [`io`](https://docs.rs/paceline/latest/paceline/io/) |
//! | `keyed` | no | `Keyed`: a limiter per key |
//! | `metrics` | no | what becomes of requests, on the facade of that name: [`Metered`](https://docs.rs/paceline/latest/paceline/struct.Metered.html) |
//! | `quanta` | no | a clock that is read in less than half the time: [`Clock`] |
//! | `redis` | no | limits that processes share, on a Redis or Valkey server: [`redis`](https://docs.rs/paceline/latest/paceline/redis/) |
//! | `reqwest` | no | a client that paces itself for each host and honours `Retry-After` |
//! | `serde` | no | `Serialize` and `Deserialize` for [`Rate`], as the text that it prints |
//! | `stream` | no | streams and sinks that let their items through at a rate: [`stream`](https://docs.rs/paceline/latest/paceline/stream/) |
//! | `tonic` | no | the tower layer for gRPC, with `ResourceExhausted` |
//! | `tower` | no | a tower layer over any limiter |
//! | `tracing` | no | events of those who wait, and of changes of the settings; nothing of a request that is served at once |
//!
//! Each pulls in its own dependencies and no others.
//!
//! # Seen from outside
//!
//! [`Limiter::stats`] says what there is now: tokens, waiters and holes. The feature `metrics` counts what
//! becomes of requests. The feature `tracing` tells of those who wait and of changes; its events have
//! the target `paceline`, and these names and fields stay as they are within a major version:
//!
//! | level | event | fields | told when |
//! |---|---|---|---|
//! | `TRACE` | `wait.began` | `permits` | an `acquire` has booked a turn that has not come |
//! | `TRACE` | `wait.ended` | `permits`, `waited` | its turn has come |
//! | `TRACE` | `wait.refused` | `error` | it is refused while it waits |
//! | `TRACE` | `wait.cancelled` | `permits` | it is dropped while it waits |
//! | `DEBUG` | `rate.set` | `rate` | a rate is set |
//! | `DEBUG` | `burst.set` | `burst` | a burst or a limit is set |
//! | `DEBUG` | `paused` | `pause` | a limiter is paused, for so long |
//! | `DEBUG` | `resumed` | | a pause is ended |
//! | `DEBUG` | `closed` | | a limiter is closed |
//! | `DEBUG` | `breaker.state` | `state` | a [`CircuitBreaker`] changes its state |

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod acquire;
pub mod adaptive;
mod all;
mod breaker;
mod builder;
mod concurrency;
#[cfg(feature = "config")]
pub mod config;
mod error;
mod handle;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "io")]
pub mod io;
#[cfg(feature = "keyed")]
pub mod keyed;
mod leaky;
mod limiter;
mod line;
#[cfg(feature = "metrics")]
mod metered;
mod observe;
mod queue;
mod rate;
mod rate_limit;
#[cfg(feature = "redis")]
pub mod redis;
mod refill;
#[cfg(feature = "reqwest")]
pub mod reqwest;
mod reservation;
mod sleep;
pub mod smooth;
mod sometimes;
mod stats;
#[cfg(feature = "stream")]
pub mod stream;
mod striped;
mod sync;
mod threads;
mod time;
#[cfg(feature = "tonic")]
pub mod tonic;
#[cfg(feature = "tower")]
pub mod tower;
mod turns;
mod verbs;
pub mod window;

#[cfg(all(test, paceline_loom))]
#[path = "../loom-tests/mod.rs"]
mod loom_tests;

pub use acquire::Acquire;
pub use all::{All, Permits};
pub use breaker::{BreakerError, BreakerOpen, BreakerState, Call, CallError, CircuitBreaker};
pub use builder::Builder;
pub use concurrency::{Concurrency, Place};
pub use error::{
    AcquireError, BuildError, Limited, RangeError, RateError, ReserveError, TryAcquireError,
};
pub use handle::Handle;
#[cfg(feature = "keyed")]
pub use keyed::Keyed;
pub use leaky::{LeakyBucket, LeakyBucketBuilder};
pub use limiter::Limiter;
#[cfg(feature = "metrics")]
pub use metered::Metered;
pub use rate::Rate;
pub use rate_limit::{BoxAcquire, DynRateLimit, RateLimit};
pub use refill::Refill;
pub use reservation::Reservation;
pub use sometimes::Sometimes;
pub use stats::Stats;
pub use striped::Striped;
pub use time::Clock;
