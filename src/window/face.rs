//! The face of all limiters by window: times in, errors out.

use super::engine::{Engine, Held, NEVER, accept};
use crate::error::{RangeError, TryAcquireError};
use crate::line::{Ask, Outlook, Patience, Refusal};
use crate::observe;
use crate::turns::{Turns, Waiters};

/// A public limiter: an engine, and what those who wait share.
pub(crate) trait Face: Send + Sync {
    type Engine: Engine;
    fn engine(&self) -> &Self::Engine;
    fn waiters(&self) -> &Waiters;
}

impl<F: Face> Turns for F {
    type Booking = Held<<F::Engine as Engine>::Places>;

    #[inline]
    fn waiters(&self) -> &Waiters {
        Face::waiters(self)
    }

    #[inline]
    fn take_at_once(&self, permits: u32, before: u64) -> Result<(), u64> {
        let now = Face::waiters(self).time.now();
        if now <= before && self.engine().take(now, permits) { Ok(()) } else { Err(now) }
    }

    #[inline]
    fn try_at(&self, permits: u32, now: Option<u64>) -> Result<(), TryAcquireError> {
        let now = now.unwrap_or_else(|| Face::waiters(self).time.now());
        if self.engine().take(now, permits) { Ok(()) } else { try_any(self.engine(), permits, now) }
    }

    fn peek_at(&self, permits: u32, now: u64) -> Result<(), TryAcquireError> {
        let engine = self.engine();
        engine.settings().admit(permits).map_err(|why| TryAcquireError::of(permits, why))?;
        if permits == 0 {
            return Ok(());
        }
        let turn = engine.earliest(now, permits).unwrap_or(NEVER);
        accept(now, turn, Patience::Until(now)).map_err(|why| TryAcquireError::of(permits, why))
    }

    /// What it took at once is not given back; see [`Held`].
    fn hold_at(&self, permits: u32, now: u64) -> Result<Self::Booking, TryAcquireError> {
        let booked = self.engine().book(Ask::new(now, permits, Patience::Until(now)));
        booked.map_err(|why| TryAcquireError::of(permits, why))
    }

    fn close(&self) {
        self.engine().settings().close();
        observe::closed();
        Face::waiters(self).changed.notify_waiters();
    }

    fn is_closed(&self) -> bool {
        self.engine().settings().is_closed()
    }

    fn book(&self, now: u64, permits: u32, patience: Patience) -> Result<Self::Booking, Refusal> {
        self.engine().book(Ask::new(now, permits, patience))
    }

    fn is_immediate(&self, booking: &Self::Booking) -> bool {
        booking.turn.is_none()
    }

    fn permits_of(&self, booking: &Self::Booking) -> u32 {
        booking.permits
    }

    fn due(&self, booking: &Self::Booking) -> Option<u64> {
        Some(booking.turn.unwrap_or(0))
    }

    fn look(&self, now: u64, booking: &Self::Booking) -> Outlook {
        look(self.engine(), now, booking)
    }

    /// What counts is when a turn comes, so waking late takes nothing from anybody.
    fn woke(&self, _now: u64, _late: u64) {}

    fn give_back(&self, now: u64, booking: &Self::Booking) {
        self.engine().give_back(now, booking);
    }

    fn free(&self, now: u64) -> f64 {
        self.engine().available(now).into()
    }
}

#[cold]
fn try_any(engine: &impl Engine, permits: u32, now: u64) -> Result<(), TryAcquireError> {
    match engine.book(Ask::new(now, permits, Patience::Until(now))) {
        Ok(_) => Ok(()),
        Err(why) => Err(TryAcquireError::of(permits, why)),
    }
}

fn look<E: Engine>(engine: &E, now: u64, held: &Held<E::Places>) -> Outlook {
    let limit = match engine.settings().admit(held.permits) {
        Ok(limit) => limit,
        Err(Refusal::ExceedsBurst { burst }) => return Outlook::ExceedsBurst { burst },
        Err(_) => return Outlook::Closed,
    };
    match held.turn {
        Some(turn) if turn > now => {
            // A larger limit may let it in sooner: then it gives its turn back and books again.
            let sooner = limit > held.limit
                && engine.earliest(now, held.permits).is_some_and(|sooner| sooner < turn);
            if sooner {
                Outlook::Turn { late: 0, overflown: true }
            } else {
                Outlook::Wait(Some(turn))
            }
        }
        turn => Outlook::Turn { late: turn.map_or(0, |turn| now - turn), overflown: false },
    }
}

/// Changes the limit and tells those who wait.
pub(super) fn set_limit(limiter: &impl Face, limit: u32) -> Result<(), RangeError> {
    let max = limiter.engine().settings().max_limit();
    if limit > max {
        return Err(RangeError::BurstExceedsMax { burst: limit, max });
    }
    limiter.engine().set_limit(limit);
    observe::burst_set(limit);
    Face::waiters(limiter).changed.notify_waiters();
    Ok(())
}

/// Gives a limiter by window all of its methods but those that make one.
macro_rules! face {
    ($limiter:ident, $engine:ty) => {
        impl crate::window::face::Face for $limiter {
            type Engine = $engine;

            #[inline]
            fn engine(&self) -> &$engine {
                &self.engine
            }

            #[inline]
            fn waiters(&self) -> &crate::turns::Waiters {
                &self.waiters
            }
        }

        crate::verbs::verbs!($limiter);

        impl $limiter {
            /// Lets up to `limit` permits be used in a window from now on.
            ///
            /// What was used counts, and so does what is booked: those who wait keep their turns, or
            /// get earlier ones if the limit is raised, so windows that begin before the last of
            /// them go by what the limit was when they booked. One who waits for more than a lowered
            /// limit is refused.
            ///
            /// # Errors
            ///
            /// [`RangeError::BurstExceedsMax`](crate::RangeError::BurstExceedsMax), and nothing changes,
            /// beyond what it was built for: [`Builder::max_limit`](crate::window::Builder::max_limit).
            pub fn set_limit(&self, limit: u32) -> Result<(), crate::RangeError> {
                crate::window::face::set_limit(self, limit)
            }

            /// As [`set_limit`](Self::set_limit), at the time `now`: which makes no difference, since
            /// what was used counts by the times at which it was.
            ///
            /// # Errors
            ///
            /// As for [`set_limit`](Self::set_limit).
            pub fn set_limit_at(
                &self,
                limit: u32,
                now: tokio::time::Instant,
            ) -> Result<(), crate::RangeError> {
                let _ = now;
                self.set_limit(limit)
            }

            /// How many permits may be used in a window.
            #[must_use]
            pub fn limit(&self) -> u32 {
                crate::window::engine::Engine::settings(&self.engine).limit()
            }

            /// How long a window is.
            #[must_use]
            pub fn window(&self) -> std::time::Duration {
                std::time::Duration::from_nanos(self.engine.window())
            }

            /// The permits that can be used now: the largest `n` for which
            /// [`try_acquire_many`](Self::try_acquire_many) would succeed. It is for display: by the
            /// time that you look at it, others have taken some.
            #[must_use]
            pub fn available(&self) -> u32 {
                let now = crate::turns::Turns::waiters(self).time.now();
                crate::window::engine::Engine::available(&self.engine, now)
            }

            /// As [`available`](Self::available), at the time `now`.
            #[must_use]
            pub fn available_at(&self, now: tokio::time::Instant) -> u32 {
                let now = crate::turns::Turns::waiters(self).time.nanos(now);
                crate::window::engine::Engine::available(&self.engine, now)
            }
        }

        impl std::fmt::Debug for $limiter {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($limiter))
                    .field("limit", &self.limit())
                    .field("window", &self.window())
                    .field("available", &self.available())
                    .field("closed", &self.is_closed())
                    .finish()
            }
        }
    };
}

pub(super) use face;
