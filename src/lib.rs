//! paceline
#![forbid(unsafe_code)]

mod acquire;
mod builder;
mod error;
mod limiter;
mod line;
mod rate;
mod reservation;
mod sleep;
mod sync;
mod time;

#[cfg(all(test, paceline_loom))]
#[path = "../loom-tests/mod.rs"]
mod loom_tests;

pub use acquire::Acquire;
pub use builder::Builder;
pub use error::{
    AcquireError, BuildError, Limited, RangeError, RateError, ReserveError, TryAcquireError,
};
pub use limiter::Limiter;
pub use rate::Rate;
pub use reservation::Reservation;
