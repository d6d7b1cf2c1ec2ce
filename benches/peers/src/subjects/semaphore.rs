//! `tokio::sync::Semaphore`: not a rate limiter, since it knows no time, but what permits cost in
//! tokio without one. Permits are forgotten, as those of a limiter are.

use super::on_its_own_line;
use crate::measure::{Kind, Subject};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Granted, denied and ready.
#[must_use]
pub fn subjects() -> Vec<Subject> {
    let granted = on_its_own_line(Semaphore::new(Semaphore::MAX_PERMITS));
    let ready = on_its_own_line(Semaphore::new(Semaphore::MAX_PERMITS));
    let denied = on_its_own_line(Semaphore::new(0));
    vec![
        Subject::sync(
            Kind::Granted,
            "tokio Semaphore try_acquire, no clock",
            || granted.try_acquire().map(SemaphorePermit::forget),
            Result::is_ok,
        ),
        Subject::sync(
            Kind::Denied,
            "tokio Semaphore try_acquire, no clock",
            || denied.try_acquire().map(SemaphorePermit::forget),
            Result::is_err,
        ),
        Subject::future(
            Kind::Ready,
            "tokio Semaphore acquire().await, no clock",
            || async { ready.acquire().await.map(SemaphorePermit::forget) },
            Result::is_ok,
        ),
    ]
}
