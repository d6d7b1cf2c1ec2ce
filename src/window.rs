//! Limiters that look at a window of time: how many permits were used in the last second, say, and
//! not how fast they come.
//!
//! | | at most `limit` in | memory | choose it |
//! |---|---|---|---|
//! | [`SlidingLog`] | any window, exactly | a word for each permit of the limit | for limits up to some thousands, and where the contract is to the letter |
//! | [`SlidingWindow`] | any window; up to one sub-window stricter | two words for each sub-window | for large limits |
//! | [`FixedWindow`] | each window of a grid; up to twice that across a boundary | two words | to do as an upstream that counts per minute or per hour |
//!
//! If the contract says nothing of windows, take a [`Limiter`](crate::Limiter): it spreads its
//! permits evenly, where a limiter by window serves a burst of `limit` and then nobody until the
//! first of them leave the window.

mod builder;
mod engine;
mod face;
mod fixed;
mod log;
mod set;
mod settings;
mod sliding;
#[cfg(all(test, not(paceline_loom)))]
mod tests;

pub use builder::Builder;
pub use fixed::{Align, FixedWindow, FixedWindowBuilder};
pub use log::SlidingLog;
pub use sliding::SlidingWindow;

#[cfg(all(test, paceline_loom))]
pub(crate) use {
    engine::{Engine, Held},
    log::Log,
    sliding::Line,
};
