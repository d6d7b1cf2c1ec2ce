//! Ours.

use super::{FLOOD, FLOOD_BURST, RATE, STOCK, on_its_own_line};
use crate::measure::{Kind, Subject};
use paceline::{Limiter, Rate};
use std::time::Duration;
use tokio::task::unconstrained;

/// A try granted from stock.
pub const TRY: &str = "paceline try_acquire";
/// A try granted by a full bucket.
pub const TRY_FULL: &str = "paceline try_acquire, full bucket";
/// A ready acquire.
pub const ACQUIRE: &str = "paceline acquire().await";
/// A ready acquire that is not asked to let others run.
pub const ACQUIRE_UNCONSTRAINED: &str = "paceline acquire().await, unconstrained";

/// The plain limiter with its default clock.
#[must_use]
pub fn subjects() -> Vec<Subject> {
    let stocked = || on_its_own_line(Limiter::new(Rate::per_second(RATE.into()), STOCK));
    let full = on_its_own_line(Limiter::new(Rate::per_second(FLOOD.into()), FLOOD_BURST));
    let granted = stocked();
    let ready = stocked();
    let denied = spent();
    let booked = spent();
    vec![
        Subject::sync(Kind::Granted, TRY, || granted.try_acquire(), Result::is_ok),
        Subject::sync(Kind::Granted, TRY_FULL, || full.try_acquire(), Result::is_ok),
        Subject::sync(Kind::Denied, TRY, || denied.try_acquire(), Result::is_err),
        Subject::future(
            Kind::Ready,
            ACQUIRE,
            || ready.acquire(),
            |waited| matches!(waited, Ok(Duration::ZERO)),
        ),
        // Outside tokio's cooperative budget, as the peers are that don't know of it.
        Subject::future(
            Kind::Ready,
            ACQUIRE_UNCONSTRAINED,
            || unconstrained(ready.acquire()),
            |waited| matches!(waited, Ok(Duration::ZERO)),
        ),
        // A turn that has come is not given back, so the one booked here lies in the future: a
        // whole booking, and a whole cancel.
        Subject::sync(
            Kind::Reserve,
            "paceline reserve + cancel",
            || booked.reserve().map(paceline::Reservation::cancel),
            // Nobody holds more than one turn, so whatever the line owes beyond two was not given
            // back.
            |booking| booking.is_ok() && booked.tokens() > -2.5,
        ),
    ]
}

/// A limiter whose only permit is gone until tomorrow.
fn spent() -> &'static Limiter {
    let limiter = Limiter::new(Rate::per_day(1), 1);
    assert!(limiter.try_acquire().is_ok(), "a new limiter is full");
    on_its_own_line(limiter)
}
