//! What a limiter by window is behind its face, and what its bookings have in common.

use super::settings::Settings;
use crate::line::{Ask, Patience, Refusal, Turn};
use std::fmt::Debug;

/// Decides who may use permits when. Times are nanoseconds since the limiter was made.
pub(crate) trait Engine: Send + Sync {
    /// The places that a booking has, to be given back.
    type Places: Debug + Send + Sync;

    fn settings(&self) -> &Settings;

    /// Takes `permits` for good if they can be had at `now`, and that is a simple case.
    fn take(&self, now: u64, permits: u32) -> bool;

    /// Books one or more permits, or refuses and writes nothing. None if another thread got in
    /// between, in which case nothing is booked.
    fn try_book(&self, ask: Ask) -> Option<Result<Held<Self::Places>, Refusal>>;

    /// When so many permits could be had by who asks now; `None` if never.
    fn earliest(&self, now: u64, permits: u32) -> Option<u64>;

    fn give_back(&self, now: u64, held: &Held<Self::Places>);

    /// Changes the limit to one that it is built for.
    fn set_limit(&self, limit: u32);

    /// The largest request that could be served at `now`.
    fn available(&self, now: u64) -> u32;

    /// Books the earliest turn, if it comes in time. A refusal writes nothing.
    fn book(&self, ask: Ask) -> Result<Held<Self::Places>, Refusal> {
        loop {
            let limit = self.settings().admit(ask.tokens)?;
            if ask.tokens == 0 {
                return Ok(Held::at_once(0, limit));
            }
            // Of all who are in each other's way one has got on, so this ends.
            if let Some(outcome) = self.try_book(ask) {
                return outcome;
            }
        }
    }
}

/// A turn that was booked.
#[derive(Debug)]
pub(crate) struct Held<P> {
    /// When it comes; `None` if it could be used when it was booked.
    pub(crate) turn: Option<u64>,
    pub(crate) permits: u32,
    /// The limit by which it was booked.
    pub(crate) limit: u32,
    /// None if it could be used when it was booked: it is not given back then.
    pub(crate) places: Option<P>,
}

impl<P> Held<P> {
    pub(super) fn at_once(permits: u32, limit: u32) -> Self {
        Self { turn: None, permits, limit, places: None }
    }
}

/// Times from here on never come.
pub(super) const NEVER: u64 = (1 << 62) - 1;

/// Whether who is so patient may have a turn that comes then.
pub(super) fn accept(now: u64, turn: u64, patience: Patience) -> Result<(), Refusal> {
    match patience {
        Patience::Until(time) if turn > time || now > time => {
            Err(Refusal::Late(Turn::after((turn < NEVER).then(|| turn.saturating_sub(now)))))
        }
        _ if turn >= NEVER => Err(Refusal::NoRoom),
        _ => Ok(()),
    }
}
