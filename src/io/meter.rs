//! Permits for bytes.

use crate::acquire::Acquire;
use crate::error::AcquireError;
use crate::handle::Handle;
use crate::limiter::Limiter;
use crate::line::{Booking, Line, Supply};
use crate::rate_limit::RateLimit;
use crate::turns::Turns;
use crate::window::FixedWindow;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

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
                self.bytes = in_one_go(most, self.limiter.line().supply(now));
                self.turn.set(Some(Acquire::new(self.limiter.clone(), self.bytes)));
            }
            let Some(turn) = self.turn.as_mut().as_pin_mut() else { unreachable!("set above") };
            let outcome = ready!(turn.poll_booking(cx));
            self.turn.set(None);
            match outcome {
                Ok(booking) => {
                    let bytes = self.bytes as usize;
                    return Poll::Ready(Ok(Pass { booking, bytes }));
                }
                // The burst was lowered meanwhile.
                Err(AcquireError::ExceedsBurst { burst: 1.., .. }) => {}
                Err(error) => return Poll::Ready(Err(into_io(error))),
            }
        }
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

/// Where this many bytes take longer than a millisecond, as many pass in one go, if that takes no longer
/// than a tenth of a second.
const HANDY: u128 = 1024;

/// How many of the bytes that are wanted pass in one go. At least one, also where none may pass: then
/// the limiter says so.
///
/// What is stored passes at once, since nobody waits then. Else it is so little that nobody holds up
/// the others for long, and so much that it is worth a timer.
fn in_one_go(wanted: usize, supply: Supply) -> u32 {
    let Supply { rate, burst, stored } = supply;
    let wanted = u32::try_from(wanted).unwrap_or(u32::MAX);
    if rate.is_unlimited() {
        return wanted;
    }
    let minted_in = |time: u128| u128::from(rate.tokens) * time / u128::from(rate.period);
    let even = minted_in(1_000_000).max(minted_in(100_000_000).min(HANDY));
    let even = u32::try_from(even).unwrap_or(u32::MAX);
    wanted.min(even.max(stored)).min(burst).max(1)
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
    use crate::rate::Rate;

    fn of(rate: Rate, burst: u32, stored: u32, wanted: usize) -> u32 {
        in_one_go(wanted, Supply { rate, burst, stored })
    }

    #[test]
    fn a_millisecond_of_the_rate_passes_in_one_go_or_what_is_stored() {
        let rate = Rate::per_second(16 << 20);
        assert_eq!(of(rate, 1 << 20, 0, 1 << 20), 16_777);
        assert_eq!(of(rate, 1 << 20, 16_000, 1 << 20), 16_777);
        assert_eq!(of(rate, 1 << 20, 20_000, 1 << 20), 20_000);
        assert_eq!(of(rate, 1 << 20, 20_000, 100), 100);
        assert_eq!(of(rate, 500, 0, 1 << 20), 500);
    }

    #[test]
    fn at_a_low_rate_a_kibibyte_passes_in_one_go_or_a_tenth_of_a_second() {
        let slow = |rate| of(Rate::per_second(rate), 1 << 20, 0, 1 << 20);
        assert_eq!([1 << 20, 100_000, 10_240, 1000, 100].map(slow), [1048, 1024, 1024, 100, 10]);
        assert_eq!(of(Rate::per_day(1), 1 << 20, 0, 1 << 20), 1);
    }

    #[test]
    fn at_the_limits_of_the_limits_it_is_at_least_one() {
        assert_eq!(of(Rate::UNLIMITED, 0, 0, 1 << 20), 1 << 20);
        assert_eq!(of(Rate::per_second(1000), 0, 0, 1 << 20), 1);
        assert_eq!(of(Rate::ZERO, 9, 0, 1 << 20), 1);
        let fastest = Rate::per_second(1_000_000_000_000);
        assert_eq!(of(fastest, u32::MAX, 0, usize::MAX), 1_000_000_000);
    }
}
