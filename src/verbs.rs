//! The verbs of a limiter, written once for all kinds but [`Limiter`](crate::Limiter), which says
//! more about each, and [`Striped`](crate::Striped), which has no explicit times.

/// Gives a type that is `Turns` the methods that all limiters have.
macro_rules! verbs {
    ({ $($generics:tt)* } $limiter:ty) => {
        impl $($generics)* $limiter {
            /// Takes a permit if there is one now.
            ///
            /// # Errors
            ///
            /// [`TryAcquireError::Limited`](crate::TryAcquireError::Limited) if there is none, which says
            /// when to try again, or [`Closed`](crate::TryAcquireError::Closed).
            #[inline]
            pub fn try_acquire(&self) -> Result<(), crate::TryAcquireError> {
                self.try_acquire_many(1)
            }

            /// Takes `n` permits if there are so many now.
            ///
            /// # Errors
            ///
            /// [`TryAcquireError::Limited`](crate::TryAcquireError::Limited) if there are not, which says
            /// when to try again;
            /// [`ExceedsBurst`](crate::TryAcquireError::ExceedsBurst) if there never will be, or
            /// [`Closed`](crate::TryAcquireError::Closed).
            #[inline]
            pub fn try_acquire_many(&self, n: u32) -> Result<(), crate::TryAcquireError> {
                crate::turns::Turns::try_at(self, n, None)
            }

            /// As [`try_acquire_many`](Self::try_acquire_many), at the time `now`.
            ///
            /// # Errors
            ///
            /// As for [`try_acquire_many`](Self::try_acquire_many).
            pub fn try_acquire_many_at(
                &self,
                n: u32,
                now: tokio::time::Instant,
            ) -> Result<(), crate::TryAcquireError> {
                let now = crate::turns::Turns::waiters(self).time.nanos(now);
                crate::turns::Turns::try_at(self, n, Some(now))
            }

            /// Waits for a permit; resolves to how long that took. See [`Acquire`](crate::Acquire).
            ///
            /// # Cancel safety
            ///
            /// It may be dropped at any time; nothing is lost and nothing is given twice.
            #[inline]
            pub fn acquire(&self) -> crate::Acquire<'_, Self> {
                self.acquire_many(1)
            }

            /// Waits for `n` permits, which come together. See [`acquire`](Self::acquire).
            ///
            /// # Cancel safety
            ///
            /// It may be dropped at any time; nothing is lost and nothing is given twice.
            #[inline]
            pub fn acquire_many(&self, n: u32) -> crate::Acquire<'_, Self> {
                crate::Acquire::borrowed(self, n)
            }

            /// As [`acquire`](Self::acquire), with a future that owns the limiter and so is
            /// `'static`.
            ///
            /// # Cancel safety
            ///
            /// It may be dropped at any time; nothing is lost and nothing is given twice.
            pub fn acquire_owned(self: std::sync::Arc<Self>) -> crate::Acquire<'static, Self> {
                self.acquire_many_owned(1)
            }

            /// As [`acquire_many`](Self::acquire_many), with a future that owns the limiter and so is
            /// `'static`.
            ///
            /// # Cancel safety
            ///
            /// It may be dropped at any time; nothing is lost and nothing is given twice.
            pub fn acquire_many_owned(
                self: std::sync::Arc<Self>,
                n: u32,
            ) -> crate::Acquire<'static, Self> {
                crate::Acquire::owned(self, n)
            }

            /// Waits for a permit by blocking this thread; says how long that took. It needs no runtime.
            /// See [`Acquire::blocking`](crate::Acquire::blocking).
            ///
            /// # Errors
            ///
            /// As for [`acquire`](Self::acquire).
            ///
            /// # Panics
            ///
            /// If it is called where asynchronous tasks run, as Tokio's own blocking functions do.
            #[track_caller]
            pub fn blocking_acquire(&self) -> Result<std::time::Duration, crate::AcquireError> {
                self.blocking_acquire_many(1)
            }

            /// Waits for `n` permits by blocking this thread. See [`blocking_acquire`](Self::blocking_acquire);
            /// with a bound, it is `acquire_many(n).within(wait).blocking()`.
            ///
            /// # Errors
            ///
            /// As for [`acquire`](Self::acquire).
            ///
            /// # Panics
            ///
            /// If it is called where asynchronous tasks run, as Tokio's own blocking functions do.
            #[track_caller]
            pub fn blocking_acquire_many(
                &self,
                n: u32,
            ) -> Result<std::time::Duration, crate::AcquireError> {
                self.acquire_many(n).blocking()
            }

            /// Closes the limiter for good: every request is refused, and all who wait are let go
            /// with [`AcquireError::Closed`](crate::AcquireError::Closed).
            pub fn close(&self) {
                crate::turns::Turns::close(self);
            }

            /// Whether the limiter is closed.
            #[must_use]
            pub fn is_closed(&self) -> bool {
                crate::turns::Turns::is_closed(self)
            }
        }
    };
    ($limiter:ty) => {
        crate::verbs::verbs!({} $limiter);
    };
}

/// Makes a type `Turns` by those of the `Limiter` in its field `limiter`.
macro_rules! turns_of_its_limiter {
    ($limiter:ty) => {
        impl crate::turns::Turns for $limiter {
            type Booking = crate::line::Booking;

            fn waiters(&self) -> &crate::turns::Waiters {
                self.limiter.waiters()
            }

            #[inline]
            fn take_at_once(&self, permits: u32, before: u64) -> Result<(), u64> {
                self.limiter.take_at_once(permits, before)
            }

            #[inline]
            fn try_at(&self, permits: u32, now: Option<u64>) -> Result<(), crate::TryAcquireError> {
                self.limiter.try_at(permits, now)
            }

            fn peek_at(&self, permits: u32, now: u64) -> Result<(), crate::TryAcquireError> {
                self.limiter.peek_at(permits, now)
            }

            fn hold_at(
                &self,
                permits: u32,
                now: u64,
            ) -> Result<Self::Booking, crate::TryAcquireError> {
                self.limiter.hold_at(permits, now)
            }

            fn close(&self) {
                self.limiter.close();
            }

            fn is_closed(&self) -> bool {
                self.limiter.is_closed()
            }

            fn book(
                &self,
                now: u64,
                permits: u32,
                patience: crate::line::Patience,
            ) -> Result<Self::Booking, crate::line::Refusal> {
                self.limiter.book(now, permits, patience)
            }

            fn is_immediate(&self, booking: &Self::Booking) -> bool {
                self.limiter.is_immediate(booking)
            }

            fn permits_of(&self, booking: &Self::Booking) -> u32 {
                self.limiter.permits_of(booking)
            }

            fn due(&self, booking: &Self::Booking) -> Option<u64> {
                self.limiter.due(booking)
            }

            fn look(&self, now: u64, booking: &Self::Booking) -> crate::line::Outlook {
                self.limiter.look(now, booking)
            }

            fn woke(&self, now: u64, late: u64) {
                self.limiter.woke(now, late);
            }

            fn give_back(&self, now: u64, booking: &Self::Booking) {
                self.limiter.give_back(now, booking);
            }

            fn free(&self, now: u64) -> f64 {
                self.limiter.free(now)
            }

            fn holes(&self, now: u64) -> usize {
                self.limiter.holes(now)
            }
        }
    };
}

pub(crate) use {turns_of_its_limiter, verbs};
