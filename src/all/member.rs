//! What takes part in an [`All`](super::All).

use crate::acquire::{Terms, patience};
use crate::concurrency::Concurrency;
use crate::error::{AcquireError, TryAcquireError};
use crate::leaky::LeakyBucket;
use crate::limiter::Limiter;
use crate::line::Outlook;
use crate::smooth::{SmoothBursty, SmoothWarmingUp};
use crate::striped::Striped;
use crate::turns::Turns;
use crate::window::{FixedWindow, SlidingLog, SlidingWindow};
use std::fmt::Debug;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::time::Instant;

/// One limit.
pub(crate) trait Member: Send + Sync {
    /// A turn that is held with it.
    type Turn: Debug + Send + Sync;

    /// That instant in the limiter's own time.
    fn time(&self, now: Instant) -> u64;

    /// Whether `n` could be had at `now`, in its own time. Writes nothing.
    fn peek(&self, n: u32, now: u64) -> Result<(), TryAcquireError>;

    /// Takes `n` if they can be had at `now`, in its own time.
    fn hold(&self, n: u32, now: u64) -> Result<Self::Turn, TryAcquireError>;

    /// Books `n`, if their turn comes before `deadline`.
    fn book(
        &self,
        n: u32,
        now: Instant,
        deadline: Option<Instant>,
    ) -> Result<Self::Turn, AcquireError>;

    fn look(&self, now: Instant, turn: &Self::Turn) -> Seen;

    /// Remembers that somebody who slept has woken so many nanoseconds late.
    fn woke(&self, now: Instant, late: u64);

    fn give_back(&self, now: Instant, turn: &Self::Turn);

    /// Whether what was had at once can be given back. If not, it is taken last.
    const RETURNS: bool = true;

    /// Takes what it only looked at when it was booked. All others have come then.
    fn settle(
        &self,
        _n: u32,
        _now: Instant,
        _turn: &mut Self::Turn,
        _deadline: Option<Instant>,
    ) -> Seen {
        Seen::Turn { late: u64::MAX }
    }

    /// What tells of changes of its settings.
    fn changed(&self) -> Option<Arc<Notify>>;

    /// What it counts the places of, if it does.
    fn concurrency(&self) -> Option<&Concurrency> {
        None
    }
}

/// What one who holds a turn finds.
pub(crate) enum Seen {
    /// It came so many nanoseconds ago.
    Turn {
        late: u64,
    },
    Overflown,
    /// It comes then; `None` if never.
    Wait(Option<Instant>),
    Refused(AcquireError),
}

macro_rules! member_by_turns {
    ($($limiter:ty),+) => {$(
        impl Member for $limiter {
            type Turn = <Self as Turns>::Booking;

            #[inline]
            fn time(&self, now: Instant) -> u64 {
                self.waiters().time.nanos(now)
            }

            #[inline]
            fn peek(&self, n: u32, now: u64) -> Result<(), TryAcquireError> {
                self.peek_at(n, now)
            }

            #[inline]
            fn hold(&self, n: u32, now: u64) -> Result<<Self as Turns>::Booking, TryAcquireError> {
                self.hold_at(n, now)
            }

            fn book(
                &self,
                n: u32,
                now: Instant,
                deadline: Option<Instant>,
            ) -> Result<<Self as Turns>::Booking, AcquireError> {
                book(self, n, now, deadline)
            }

            fn look(&self, now: Instant, turn: &<Self as Turns>::Booking) -> Seen {
                look(self, now, turn)
            }

            fn woke(&self, now: Instant, late: u64) {
                Turns::woke(self, self.waiters().time.nanos(now), late);
            }

            fn give_back(&self, now: Instant, turn: &<Self as Turns>::Booking) {
                Turns::give_back(self, self.waiters().time.nanos(now), turn);
            }

            fn changed(&self) -> Option<Arc<Notify>> {
                Some(Arc::clone(&self.waiters().changed))
            }
        }
    )+};
}

// Not for all that has turns: then the compiler could not tell them from references.
member_by_turns!(Limiter, Striped, FixedWindow, LeakyBucket, SmoothBursty, SmoothWarmingUp);

/// What a sliding window gives at once is not given back. So while another limit is waited for it is
/// only looked at, and taken when all others have come.
macro_rules! member_taken_last {
    ($($limiter:ty),+) => {$(
        impl Member for $limiter {
            /// None while it is only looked at.
            type Turn = Option<<Self as Turns>::Booking>;

            const RETURNS: bool = false;

            fn time(&self, now: Instant) -> u64 {
                self.waiters().time.nanos(now)
            }

            fn peek(&self, n: u32, now: u64) -> Result<(), TryAcquireError> {
                self.peek_at(n, now)
            }

            fn hold(&self, n: u32, now: u64) -> Result<Self::Turn, TryAcquireError> {
                self.hold_at(n, now).map(Some)
            }

            fn book(
                &self,
                n: u32,
                now: Instant,
                deadline: Option<Instant>,
            ) -> Result<Self::Turn, AcquireError> {
                if self.peek_at(n, self.time(now)).is_ok() {
                    return Ok(None);
                }
                book(self, n, now, deadline).map(Some)
            }

            fn look(&self, now: Instant, turn: &Self::Turn) -> Seen {
                match turn {
                    Some(turn) => look(self, now, turn),
                    None => Seen::Turn { late: u64::MAX },
                }
            }

            fn settle(
                &self,
                n: u32,
                now: Instant,
                turn: &mut Self::Turn,
                deadline: Option<Instant>,
            ) -> Seen {
                if turn.is_none() {
                    match book(self, n, now, deadline) {
                        Ok(booked) => *turn = Some(booked),
                        Err(error) => return Seen::Refused(error),
                    }
                }
                Member::look(self, now, turn)
            }

            fn woke(&self, now: Instant, late: u64) {
                Turns::woke(self, self.waiters().time.nanos(now), late);
            }

            fn give_back(&self, now: Instant, turn: &Self::Turn) {
                if let Some(turn) = turn {
                    Turns::give_back(self, self.waiters().time.nanos(now), turn);
                }
            }

            fn changed(&self) -> Option<Arc<Notify>> {
                Some(Arc::clone(&self.waiters().changed))
            }
        }
    )+};
}

member_taken_last!(SlidingWindow, SlidingLog);

fn book<L: Turns>(
    limiter: &L,
    n: u32,
    now: Instant,
    deadline: Option<Instant>,
) -> Result<L::Booking, AcquireError> {
    let waiters = limiter.waiters();
    let began = waiters.time.nanos(now);
    let deadline = deadline.map_or(u64::MAX, |deadline| waiters.time.nanos(deadline));
    let until = began.saturating_add(waiters.max_wait).min(deadline);
    let booked = limiter.book(began, n, patience(until));
    booked.map_err(|refusal| Terms { began, until }.refused(n, began, refusal))
}

fn look<L: Turns>(limiter: &L, now: Instant, turn: &L::Booking) -> Seen {
    let time = &limiter.waiters().time;
    match limiter.look(time.nanos(now), turn) {
        Outlook::Turn { overflown: true, .. } => Seen::Overflown,
        Outlook::Turn { late, overflown: false } => Seen::Turn { late },
        Outlook::Wait(turn) => Seen::Wait(turn.and_then(|turn| time.instant(turn))),
        Outlook::ExceedsBurst { burst } => {
            let requested = limiter.permits_of(turn);
            Seen::Refused(AcquireError::ExceedsBurst { requested, burst })
        }
        Outlook::Closed => Seen::Refused(AcquireError::Closed),
    }
}

/// Its places are taken apart from the turns; see [`in_order`](super::members::in_order).
impl Member for Concurrency {
    type Turn = ();

    fn time(&self, _now: Instant) -> u64 {
        0
    }

    fn peek(&self, n: u32, _now: u64) -> Result<(), TryAcquireError> {
        self.peek(n)
    }

    fn hold(&self, _n: u32, _now: u64) -> Result<(), TryAcquireError> {
        Ok(())
    }

    fn book(&self, _n: u32, _now: Instant, _deadline: Option<Instant>) -> Result<(), AcquireError> {
        Ok(())
    }

    fn look(&self, _now: Instant, _turn: &()) -> Seen {
        Seen::Turn { late: u64::MAX }
    }

    fn woke(&self, _now: Instant, _late: u64) {}

    fn give_back(&self, _now: Instant, _turn: &()) {}

    fn changed(&self) -> Option<Arc<Notify>> {
        None
    }

    fn concurrency(&self) -> Option<&Concurrency> {
        Some(self)
    }
}

macro_rules! member_by_reference {
    ($($reference:ty),+) => {$(
        impl<M: Member> Member for $reference {
            type Turn = M::Turn;

            const RETURNS: bool = M::RETURNS;

            fn settle(
                &self,
                n: u32,
                now: Instant,
                turn: &mut M::Turn,
                deadline: Option<Instant>,
            ) -> Seen {
                M::settle(self, n, now, turn, deadline)
            }

            #[inline]
            fn time(&self, now: Instant) -> u64 {
                M::time(self, now)
            }

            #[inline]
            fn peek(&self, n: u32, now: u64) -> Result<(), TryAcquireError> {
                M::peek(self, n, now)
            }

            #[inline]
            fn hold(&self, n: u32, now: u64) -> Result<M::Turn, TryAcquireError> {
                M::hold(self, n, now)
            }

            fn book(
                &self,
                n: u32,
                now: Instant,
                deadline: Option<Instant>,
            ) -> Result<M::Turn, AcquireError> {
                M::book(self, n, now, deadline)
            }

            fn look(&self, now: Instant, turn: &M::Turn) -> Seen {
                M::look(self, now, turn)
            }

            fn woke(&self, now: Instant, late: u64) {
                M::woke(self, now, late);
            }

            fn give_back(&self, now: Instant, turn: &M::Turn) {
                M::give_back(self, now, turn);
            }

            fn changed(&self) -> Option<Arc<Notify>> {
                M::changed(self)
            }

            fn concurrency(&self) -> Option<&Concurrency> {
                M::concurrency(self)
            }
        }
    )+};
}

member_by_reference!(&M, Arc<M>);
