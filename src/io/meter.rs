//! Permits for bytes.

use crate::acquire::Acquire;
use crate::error::AcquireError;
use crate::handle::Handle;
use crate::limiter::Limiter;
use crate::line::{Booking, Line, Patience};
use crate::rate::Rate;
use crate::rate_limit::RateLimit;
use crate::turns::Turns;
use crate::window::FixedWindow;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// The limiters that can count bytes: those on the token line, which take back what was not read or
/// written.
#[expect(private_bounds, reason = "it is implemented for limiters of this crate alone")]
pub trait ByteLimit: RateLimit + OnLine {}

impl<L: OnLine> ByteLimit for L {}

pub(crate) trait OnLine: Turns<Booking = Booking> {
    fn line(&self) -> &Line;
}

impl OnLine for Limiter {
    fn line(&self) -> &Line {
        self.line()
    }
}

#[cfg(feature = "metrics")]
impl<L: ByteLimit> OnLine for crate::Metered<L> {
    fn line(&self) -> &Line {
        OnLine::line(self.get_ref())
    }
}

impl OnLine for FixedWindow {
    fn line(&self) -> &Line {
        self.limiter().line()
    }
}

/// Takes permits for one direction of a connection.
pub(super) struct Meter<'a, L: ByteLimit> {
    limiter: Handle<'a, L>,
    /// The turn that it waits for, and for how many bytes. In a box, so that who holds this can be
    /// moved.
    turn: Pin<Box<Option<Acquire<'a, L>>>>,
    bytes: u32,
}

/// Bytes that may pass now.
pub(super) struct Pass {
    booking: Booking,
    pub(super) bytes: usize,
}

impl<'a, L: ByteLimit> Meter<'a, L> {
    pub(super) fn new(limiter: Handle<'a, L>) -> Self {
        Self { limiter, turn: Box::pin(None), bytes: 0 }
    }

    pub(super) fn limiter(&self) -> &L {
        &self.limiter
    }

    /// Waits until some bytes may pass, at most so many if nothing waits already. What does not pass
    /// in the same poll must be given back.
    pub(super) fn poll_pass(
        &mut self,
        cx: &mut Context<'_>,
        most: usize,
    ) -> Poll<io::Result<Pass>> {
        loop {
            if self.turn.is_none() {
                let now = self.limiter.waiters().time.now();
                self.bytes = self.in_one_go(most, now);
                if let Ok(booking) = self.limiter.book(now, self.bytes, Patience::Until(now)) {
                    self.limiter.served(Duration::ZERO);
                    return Poll::Ready(Ok(self.pass(booking)));
                }
                self.turn.set(Some(Acquire::new(self.limiter.clone(), self.bytes)));
            }
            let Some(turn) = self.turn.as_mut().as_pin_mut() else { unreachable!("set above") };
            let outcome = ready!(turn.poll_booking(cx));
            self.turn.set(None);
            match outcome {
                Ok(booking) => return Poll::Ready(Ok(self.pass(booking))),
                // The burst was lowered meanwhile.
                Err(AcquireError::ExceedsBurst { burst: 1.., .. }) => {}
                Err(error) => return Poll::Ready(Err(into_io(error))),
            }
        }
    }

    fn pass(&self, booking: Booking) -> Pass {
        Pass { booking, bytes: self.bytes as usize }
    }

    /// How many of the bytes that are wanted pass in one go.
    fn in_one_go(&self, wanted: usize, now: u64) -> u32 {
        let line = self.limiter.line();
        let (rate, burst) = line.rate_and_burst();
        let even = || even(rate, || line.stored(now)).min(burst).max(1);
        let wanted = u32::try_from(wanted).unwrap_or(u32::MAX);
        if rate.is_unlimited() { wanted } else { wanted.min(even()) }
    }

    /// Gives back what was not used of `pass`.
    pub(super) fn used(&self, pass: &Pass, bytes: usize) {
        if bytes < pass.bytes {
            #[expect(clippy::cast_possible_truncation, reason = "less than `Meter::bytes`")]
            let used = bytes as u32;
            let now = self.limiter.waiters().time.now();
            self.limiter.line().give_back_beyond(now, &pass.booking, used);
        }
    }

    /// Gives back the turn that it waits for.
    pub(super) fn cancel(&mut self) {
        self.turn.set(None);
    }
}

/// A page: what is less is hardly worth a call of the system, or a packet.
const HANDY: u32 = 4096;

/// How many bytes pass in one go: what the rate mints in a millisecond, which is as often as a timer
/// can wake somebody. At a low rate it is a page, but no more than is stored or is minted in a tenth
/// of a second.
fn even(rate: Rate, stored: impl FnOnce() -> u32) -> u32 {
    let minted_in = |time: u64| {
        let minted = u128::from(rate.tokens) * u128::from(time) / u128::from(rate.period);
        u32::try_from(minted).unwrap_or(u32::MAX)
    };
    let even = minted_in(1_000_000);
    if even >= HANDY { even } else { even.max(HANDY.min(minted_in(100_000_000).max(stored()))) }
}

fn into_io(error: AcquireError) -> io::Error {
    let kind = match error {
        AcquireError::Closed => io::ErrorKind::ConnectionAborted,
        AcquireError::WouldExceedDeadline { .. } => io::ErrorKind::TimedOut,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

impl<L: ByteLimit> std::fmt::Debug for Meter<'_, L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Meter").field("waits", &self.turn.is_some()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_millisecond_of_the_rate_passes_in_one_go() {
        let of = |rate| even(Rate::per_second(rate), || 1_000_000);
        assert_eq!([16 << 20, 1 << 30, 5_000_000].map(of), [16_777, 1_073_741, 5000]);
        assert_eq!(of(1_000_000_000_000), 1_000_000_000);
        let long = Rate::new(u64::MAX, Duration::from_nanos(u64::MAX)).unwrap();
        assert_eq!(even(long, || 0), 1_000_000);
    }

    #[test]
    fn at_a_low_rate_a_page_passes_in_one_go_if_it_is_stored_or_soon_minted() {
        let of = |rate, stored| even(Rate::per_second(rate), || stored);
        assert_eq!(
            [1 << 20, 40_960, 10_000, 99, 9, 0].map(|rate| of(rate, 0)),
            [4096, 4096, 1000, 9, 0, 0]
        );
        assert_eq!([0, 50, 4096, 9999].map(|stored| of(99, stored)), [9, 50, 4096, 4096]);
    }
}
