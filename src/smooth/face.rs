//! What both limiters of this room say and do alike, written once.

/// Gives a type with a `schedule` and `waiters` what [`verbs!`](crate::verbs::verbs) does not.
macro_rules! face {
    ($limiter:ident) => {
        crate::verbs::verbs!($limiter);

        impl $limiter {
            /// Books `n` permits for good, and says how long it is until they may be used: Guava's
            /// `reserve`. It can't be given back; [`acquire_many`](Self::acquire_many) can.
            ///
            /// # Errors
            ///
            /// [`ReserveError::DebtTooLarge`](crate::ReserveError::DebtTooLarge) if its turn would never
            /// come, or [`Closed`](crate::ReserveError::Closed).
            pub fn reserve_many(&self, n: u32) -> Result<std::time::Duration, crate::ReserveError> {
                self.reserve_from(n, self.waiters.time.now())
            }

            /// As [`reserve_many`](Self::reserve_many), at the time `now`, from which the wait counts.
            ///
            /// # Errors
            ///
            /// As for [`reserve_many`](Self::reserve_many).
            pub fn reserve_many_at(
                &self,
                n: u32,
                now: tokio::time::Instant,
            ) -> Result<std::time::Duration, crate::ReserveError> {
                self.reserve_from(n, self.waiters.time.nanos(now))
            }

            fn reserve_from(
                &self,
                requested: u32,
                now: u64,
            ) -> Result<std::time::Duration, crate::ReserveError> {
                match self.schedule.book(now, requested, crate::line::Patience::Forever) {
                    Ok(booking) => Ok(std::time::Duration::from_nanos(booking.wait(now))),
                    Err(crate::line::Refusal::Closed) => Err(crate::ReserveError::Closed),
                    Err(_) => Err(crate::ReserveError::DebtTooLarge { requested }),
                }
            }

            /// Goes by `rate` from now on.
            ///
            /// As in Guava, the debt stays, so the next request still waits until it is paid; what is
            /// stored stays in proportion; and who has a turn keeps it. While the rate is unlimited
            /// everything passes. Closed, nothing changes.
            ///
            /// # Errors
            ///
            /// None: every rate is within its reach. It is a `Result` as that of
            /// [`Limiter::set_rate`](crate::Limiter::set_rate).
            pub fn set_rate(&self, rate: crate::Rate) -> Result<(), crate::RangeError> {
                self.set_rate_from(rate, self.waiters.time.now());
                Ok(())
            }

            /// As [`set_rate`](Self::set_rate), at the time `now`.
            ///
            /// # Errors
            ///
            /// None, as for [`set_rate`](Self::set_rate).
            pub fn set_rate_at(
                &self,
                rate: crate::Rate,
                now: tokio::time::Instant,
            ) -> Result<(), crate::RangeError> {
                self.set_rate_from(rate, self.waiters.time.nanos(now));
                Ok(())
            }

            fn set_rate_from(&self, rate: crate::Rate, now: u64) {
                self.schedule.set_rate(now, rate);
                crate::observe::rate_set(rate);
            }

            /// How fast permits are minted, once it is warm.
            #[must_use]
            pub fn rate(&self) -> crate::Rate {
                self.schedule.rate()
            }

            /// The permits that are stored now. For display: by the time that you look at it, others
            /// have taken some. Infinity while the rate is unlimited.
            #[must_use]
            pub fn stored_permits(&self) -> f64 {
                self.schedule.stored_permits(self.waiters.time.now())
            }

            /// As [`stored_permits`](Self::stored_permits), at the time `now`.
            #[must_use]
            pub fn stored_permits_at(&self, now: tokio::time::Instant) -> f64 {
                self.schedule.stored_permits(self.waiters.time.nanos(now))
            }
        }

        impl crate::turns::Turns for $limiter {
            type Booking = crate::smooth::schedule::Booking;

            fn waiters(&self) -> &crate::turns::Waiters {
                &self.waiters
            }

            #[inline]
            fn take_at_once(&self, permits: u32, before: u64) -> Result<(), u64> {
                let now = self.waiters.time.now();
                let patience = crate::line::Patience::Until(now);
                if now <= before && self.schedule.book(now, permits, patience).is_ok() {
                    return Ok(());
                }
                Err(now)
            }

            #[inline]
            fn try_at(&self, n: u32, now: Option<u64>) -> Result<(), crate::TryAcquireError> {
                let now = now.unwrap_or_else(|| self.waiters.time.now());
                match self.schedule.book(now, n, crate::line::Patience::Until(now)) {
                    Ok(_) => Ok(()),
                    Err(why) => Err(crate::TryAcquireError::of(n, why)),
                }
            }

            fn peek_at(&self, n: u32, now: u64) -> Result<(), crate::TryAcquireError> {
                let peek = self.schedule.peek(now, n);
                peek.map_err(|why| crate::TryAcquireError::of(n, why))
            }

            fn hold_at(&self, n: u32, now: u64) -> Result<Self::Booking, crate::TryAcquireError> {
                let booked = self.schedule.book(now, n, crate::line::Patience::Until(now));
                booked.map_err(|why| crate::TryAcquireError::of(n, why))
            }

            fn close(&self) {
                self.schedule.close();
                crate::observe::closed();
                self.waiters.changed.notify_waiters();
            }

            fn is_closed(&self) -> bool {
                self.schedule.is_closed()
            }

            fn book(
                &self,
                now: u64,
                permits: u32,
                patience: crate::line::Patience,
            ) -> Result<Self::Booking, crate::line::Refusal> {
                self.schedule.book(now, permits, patience)
            }

            fn is_immediate(&self, booking: &Self::Booking) -> bool {
                booking.immediate
            }

            fn permits_of(&self, booking: &Self::Booking) -> u32 {
                booking.permits
            }

            fn due(&self, booking: &Self::Booking) -> Option<u64> {
                Some(booking.turn())
            }

            fn look(&self, now: u64, booking: &Self::Booking) -> crate::line::Outlook {
                self.schedule.look(now, booking)
            }

            /// Lateness needs no forgiveness: a turn that has come waits for its owner.
            fn woke(&self, _now: u64, _late: u64) {}

            fn give_back(&self, now: u64, booking: &Self::Booking) {
                self.schedule.give_back(now, booking);
            }

            fn free(&self, now: u64) -> f64 {
                self.schedule.stored_permits(now)
            }
        }

        impl std::fmt::Debug for $limiter {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($limiter))
                    .field("rate", &self.rate())
                    .field("stored_permits", &self.stored_permits())
                    .field("closed", &self.is_closed())
                    .finish()
            }
        }
    };
}

pub(super) use face;
