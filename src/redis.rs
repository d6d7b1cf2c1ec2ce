//! Limits that processes share, on a Redis or Valkey server.

mod acquire;
mod builder;
mod clock;
mod connect;
mod connection;
mod error;
mod fallback;
mod keyed;
mod lease;
mod limiter;
mod name;
mod numbers;
mod remote;
mod reply;
mod requests;
mod reservation;
mod script;
mod settings;

pub use acquire::{Acquire, AcquireFuture};
pub use builder::Builder;
pub use clock::TimeSource;
pub use connect::connect;
pub use error::{Error, Failure};
pub use fallback::Fallback;
pub use keyed::KeyedRedisLimiter;
pub use lease::Lease;
pub use limiter::RedisLimiter;
pub use reservation::Reservation;
