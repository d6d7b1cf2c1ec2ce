//! A limiter per key.
#![cfg(feature = "keyed")]

#[path = "keyed/alike.rs"]
mod alike;
#[path = "keyed/cap.rs"]
mod cap;
#[path = "keyed/keys.rs"]
mod keys;
#[path = "keyed/waiting.rs"]
mod waiting;
