//! Limits that find their own number: they follow what callers report of the service behind them.
//!
//! | | |
//! |---|---|
//! | [`AdaptiveRate`] | the service says that it was too much: HTTP's 429 and 503, `Retry-After` |
//! | [`AdaptiveConcurrency`] by [`Aimd`] | the service times out, fails, or takes longer than it may |
//! | [`AdaptiveConcurrency`] by [`Gradient`] | the service gets slower than it was, and nobody knows how fast it should be |
//!
//! Take a fixed [`Limiter`](crate::Limiter) or [`Concurrency`](crate::Concurrency) where the number is
//! known: it is calmer, and nobody is refused to find it out.
//!
//! Callers report each call once. One that is dropped without a report says nothing, so a caller may
//! give up at any time and nothing is learned that isn't so.
//!
//! # What it looks like
//!
//! A service that takes 200 calls a second, for ten seconds only 50, and then 200 again. It answers 429
//! at once to what is more; or it has four workers and a queue. (`examples/adaptive.rs` draws this on
//! paused time, the same in each run.)
//!
#![doc = include_str!("../docs/adaptive.svg")]
//!
//! # Where it is from
//!
//! Additive increase and multiplicative decrease is what TCP does; Chiu and Jain (*Analysis of the
//! increase and decrease algorithms for congestion avoidance in computer networks*, 1989) show that
//! clients which do so come to equal shares. The gradient is Gradient2 of Netflix's
//! [concurrency-limits](https://github.com/Netflix/concurrency-limits).
//!
//! All that is decided is decided in whole numbers.

mod aimd;
mod attempt;
mod call;
mod concurrency;
mod core;
mod error;
mod gradient;
mod level;
mod pace;
mod rate;

#[cfg(all(test, paceline_loom))]
pub(crate) use self::core::{Core, Method, Outcome};
#[cfg(all(test, paceline_loom))]
pub(crate) use pace::{Pace, Terms};

pub use aimd::Aimd;
pub use attempt::Attempt;
pub use call::Call;
pub use concurrency::{AdaptiveConcurrency, AdaptiveConcurrencyBuilder};
pub use error::AdaptiveError;
pub use gradient::Gradient;
pub use rate::{AdaptiveRate, AdaptiveRateBuilder};
