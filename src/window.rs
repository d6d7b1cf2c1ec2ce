//! Limits per window of time.

mod fixed;

pub use fixed::{Align, FixedWindow, FixedWindowBuilder};
