//! Every error of the crate.

mod rate;
mod requests;
mod settings;

pub use rate::RateError;
pub use requests::{AcquireError, Limited, ReserveError, TryAcquireError};
pub use settings::{BuildError, RangeError};
