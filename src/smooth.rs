//! Guava's `RateLimiter` on Tokio: [`SmoothBursty`] and [`SmoothWarmingUp`].
//!
//! In both of them a request pays for the one before it: any number of permits passes as soon as the
//! debt is paid, and makes the next request wait.
//!
//! | in Guava | here |
//! |---|---|
//! | `RateLimiter.create(rate)` | [`SmoothBursty::new`] |
//! | `RateLimiter.create(rate, warmup)` | [`SmoothWarmingUp::new`] |
//! | `acquire(n)` | `acquire_many(n).await`, which may be dropped |
//! | `tryAcquire(n)` | `try_acquire_many(n)`, whose refusal says when to come back |
//! | `tryAcquire(n, timeout)` | `acquire_many(n).within(timeout).await` |
//! | `setRate`, `getRate` | `set_rate`, `rate` |
//!
//! # How they keep to it
//!
//! Each request is a stretch of a schedule of its own: from when the debt before it is paid to when its
//! own is. Its turn comes where the stretch begins. All stretches are distinct, and none begins before
//! what is stored begins; so in a window of time there are used no more permits than are minted in it
//! and were stored before it, and one request that reaches beyond the window. A stretch that is given
//! back at the end of the schedule moves the end back; one in the middle is taken by the next request
//! that would have to wait and fits into it.
//!
//! What is stored is kept as a time and not as a number of permits. So a change of the rate moves
//! nothing of the state.

mod builder;
mod burst;
mod bursty;
mod face;
mod pace;
mod rule;
mod schedule;
mod span;
mod warming_up;
mod warmup;

pub use builder::Builder;
pub use bursty::SmoothBursty;
pub use warming_up::SmoothWarmingUp;

#[cfg(all(test, paceline_loom))]
pub(crate) use {burst::Burst, rule::Rule, schedule::Booking, schedule::Schedule, warmup::Warmup};
