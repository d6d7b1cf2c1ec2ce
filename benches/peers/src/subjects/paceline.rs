//! Ours.

use super::{FLOOD, FLOOD_BURST, RATE, STOCK, on_its_own_line};
use crate::measure::{Kind, Subject};
use paceline::{Builder, Limiter, Rate, Striped};
use std::time::Duration;
use tokio::task::unconstrained;

/// A try granted from stock.
pub const TRY: &str = "paceline try_acquire";
/// A try granted by a full bucket.
pub const TRY_FULL: &str = "paceline try_acquire, full bucket";
/// A try with the clock that governor reads.
pub const TRY_QUANTA: &str = "paceline try_acquire, quanta";
/// A try granted from a stripe.
pub const TRY_STRIPED: &str = "paceline try_acquire, Striped";
/// A ready acquire.
pub const ACQUIRE: &str = "paceline acquire().await";
/// A ready acquire that is not asked to let others run.
pub const ACQUIRE_UNCONSTRAINED: &str = "paceline acquire().await, unconstrained";

/// How many permits a stripe holds: as many as `Striped::new` gives it.
const BATCH: u32 = 128;

/// The plain limiter with its default clock and with quanta's, and the striped one.
#[must_use]
pub fn subjects() -> Vec<Subject> {
    let stocked = || on_its_own_line(built(stock()));
    let full = on_its_own_line(built(flood()));
    let granted = stocked();
    let ready = stocked();
    let denied = on_its_own_line(spent(tomorrow()));
    let booked = on_its_own_line(spent(tomorrow()));
    let granted_quanta = on_its_own_line(built(by_quanta(stock())));
    let full_quanta = on_its_own_line(built(by_quanta(flood())));
    let denied_quanta = on_its_own_line(spent(by_quanta(tomorrow())));
    let ready_quanta = on_its_own_line(built(by_quanta(stock())));
    let striped = || on_its_own_line(striped(stock()));
    let (granted_striped, ready_striped) = (striped(), striped());
    let full_striped = on_its_own_line(self::striped(flood()));
    vec![
        Subject::sync(Kind::Granted, TRY, || granted.try_acquire(), Result::is_ok),
        Subject::sync(Kind::Granted, TRY_FULL, || full.try_acquire(), Result::is_ok),
        Subject::sync(Kind::Granted, TRY_QUANTA, || granted_quanta.try_acquire(), Result::is_ok),
        Subject::sync(
            Kind::Granted,
            "paceline try_acquire, quanta, full bucket",
            || full_quanta.try_acquire(),
            Result::is_ok,
        ),
        Subject::sync(Kind::Granted, TRY_STRIPED, || granted_striped.try_acquire(), Result::is_ok),
        Subject::sync(
            Kind::Granted,
            "paceline try_acquire, Striped, full bucket",
            || full_striped.try_acquire(),
            Result::is_ok,
        ),
        Subject::sync(Kind::Denied, TRY_QUANTA, || denied_quanta.try_acquire(), Result::is_err),
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
        Subject::future(
            Kind::Ready,
            "paceline acquire().await, quanta",
            || ready_quanta.acquire(),
            |waited| matches!(waited, Ok(Duration::ZERO)),
        ),
        Subject::future(
            Kind::Ready,
            "paceline acquire().await, Striped",
            || ready_striped.acquire(),
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

fn stock() -> Builder {
    Limiter::builder(Rate::per_second(RATE.into())).burst(STOCK)
}

fn flood() -> Builder {
    Limiter::builder(Rate::per_second(FLOOD.into())).burst(FLOOD_BURST)
}

/// One permit a day.
fn tomorrow() -> Builder {
    Limiter::builder(Rate::per_day(1))
}

fn by_quanta(builder: Builder) -> Builder {
    builder.clock(quanta::Clock::new())
}

fn built(builder: Builder) -> Limiter {
    builder.build().expect("within what a limiter can be")
}

fn striped(builder: Builder) -> Striped {
    builder.build_striped(2, BATCH).expect("the burst is large")
}

/// A limiter whose only permit is gone.
fn spent(builder: Builder) -> Limiter {
    let limiter = built(builder);
    assert!(limiter.try_acquire().is_ok(), "a new limiter is full");
    limiter
}
