//! What is done while the server can't be asked.

use super::error::{Error, Failure};
use crate::error::{AcquireError, TryAcquireError};
use crate::limiter::Limiter;
use crate::rate::Rate;
use crate::sync::{AtomicBool, Ordering};
use std::num::NonZeroU32;
use std::time::Duration;
use tokio::time::Instant;

/// What a limiter does with requests while its server can't be asked:
/// [`Builder::fallback`](super::Builder::fallback).
///
/// It is for `try_acquire` and `acquire` and their kin. A reservation is of the server's line, and fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fallback {
    /// Fails closed: they fail with [`Error::Failed`]. No more is used than the limit allows.
    #[default]
    Closed,
    /// Fails open: they pass. Nothing is limited meanwhile.
    Open,
    /// They are served by a limiter of the process's own, with its share of the limit.
    ///
    /// If there are no more processes than that, they use no more than the limit together while all of them
    /// are cut off. A process that is cut off alone uses its share beside what the others
    /// use. When the server is back, and full, its burst may follow on what the shares had stored: at
    /// most a second burst.
    Local {
        /// How many processes share the limit. Each has the rate that the limiter was built with divided
        /// by that, and of its burst the whole permits of its part, but one at least. What a process had stored for itself before the
        /// server went, it does not use.
        processes: NonZeroU32,
    },
}

/// A limiter's fallback.
#[derive(Debug)]
pub(super) enum Substitute {
    Closed,
    Open,
    Local(Box<Local>),
}

#[derive(Debug)]
pub(super) struct Local {
    limiter: Limiter,
    /// Whether it serves.
    serves: AtomicBool,
}

impl Substitute {
    pub(super) fn new(fallback: Fallback, rate: Rate, burst: u32) -> Self {
        match fallback {
            Fallback::Closed => Self::Closed,
            Fallback::Open => Self::Open,
            Fallback::Local { processes } => {
                let burst = (burst / processes).max(1);
                let limiter = Limiter::new(share(rate, processes), burst);
                Self::Local(Box::new(Local { limiter, serves: AtomicBool::new(false) }))
            }
        }
    }

    /// The server has answered.
    pub(super) fn stand_back(&self) {
        if let Self::Local(local) = self {
            // Relaxed, here and below: it orders nothing. Who sees it late empties the bucket once
            // more, or serves from what was minted while it served.
            if local.serves.load(Ordering::Relaxed) {
                local.serves.store(false, Ordering::Relaxed);
            }
        }
    }

    pub(super) fn try_acquire(
        &self,
        permits: u32,
        failure: Failure,
    ) -> Result<(), Error<TryAcquireError>> {
        match self.stand_in() {
            None if matches!(self, Self::Open) => Ok(()),
            None => Err(Error::Failed(failure)),
            Some(limiter) => match limiter.try_acquire_many(permits) {
                // More than its share: it is the server that is missing.
                Err(TryAcquireError::ExceedsBurst { .. }) => Err(Error::Failed(failure)),
                outcome => outcome.map_err(Error::Refused),
            },
        }
    }

    /// How long that took, from `began`.
    pub(super) async fn acquire(
        &self,
        permits: u32,
        began: Instant,
        until: Option<Instant>,
        failure: Failure,
    ) -> Result<Duration, Error<AcquireError>> {
        let served = match self.stand_in() {
            None if matches!(self, Self::Open) => Ok(Duration::ZERO),
            None => return Err(Error::Failed(failure)),
            Some(limiter) => match until {
                None => limiter.acquire_many(permits).await,
                Some(until) => limiter.acquire_many(permits).before(until).await,
            },
        };
        match served {
            Ok(_) => Ok(began.elapsed()),
            Err(AcquireError::ExceedsBurst { .. }) => Err(Error::Failed(failure)),
            Err(error) => Err(Error::Refused(error)),
        }
    }

    /// The limiter that serves from now on, if there is one.
    fn stand_in(&self) -> Option<&Limiter> {
        let Self::Local(local) = self else { return None };
        let Local { limiter, serves } = &**local;
        if !serves.swap(true, Ordering::Relaxed) {
            // The server has served until now: what is stored here would come on top of that.
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "at most the burst"
            )]
            let stored = limiter.tokens() as u32;
            let _ = limiter.try_acquire_many(stored);
        }
        Some(limiter)
    }
}

/// The rate divided by so many, or as slow as a rate can be.
fn share(rate: Rate, processes: NonZeroU32) -> Rate {
    if rate.is_unlimited() || rate.is_zero() {
        return rate;
    }
    let period = rate.period().checked_mul(processes.get());
    period.and_then(|period| Rate::new(rate.tokens(), period).ok()).unwrap_or(Rate::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> NonZeroU32 {
        NonZeroU32::new(3).unwrap()
    }

    fn failure() -> Failure {
        Failure::Answer
    }

    #[test]
    fn a_share_is_exact() {
        assert_eq!(share(Rate::per_second(100), three()).to_string(), "100/3s");
        assert_eq!(share(Rate::UNLIMITED, three()), Rate::UNLIMITED);
        assert_eq!(share(Rate::every(Duration::MAX), three()), Rate::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_local_limiter_begins_with_nothing_each_time() {
        let fallback = Fallback::Local { processes: three() };
        let substitute = Substitute::new(fallback, Rate::per_second(30), 30);
        for _ in 0..2 {
            assert!(substitute.try_acquire(1, failure()).is_err());
            tokio::time::advance(Duration::from_millis(200)).await;
            assert_eq!(substitute.try_acquire(2, failure()), Ok(()));
            assert!(substitute.try_acquire(1, failure()).is_err());
            substitute.stand_back();
            tokio::time::advance(Duration::from_secs(60)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_more_than_a_share_fails() {
        let fallback = Fallback::Local { processes: three() };
        let substitute = Substitute::new(fallback, Rate::per_second(30), 30);
        assert_eq!(substitute.try_acquire(11, failure()), Err(Error::Failed(failure())));
        let began = Instant::now();
        let acquired = substitute.acquire(11, began, None, failure()).await;
        assert_eq!(acquired, Err(Error::Failed(failure())));
        let acquired = substitute.acquire(10, began, None, failure()).await;
        assert_eq!(acquired, Ok(Duration::from_secs(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn closed_fails_and_open_passes() {
        let closed = Substitute::new(Fallback::Closed, Rate::per_second(1), 1);
        assert_eq!(closed.try_acquire(1, failure()), Err(Error::Failed(failure())));
        let open = Substitute::new(Fallback::Open, Rate::per_second(1), 1);
        assert_eq!(open.try_acquire(1_000, failure()), Ok(()));
        let acquired = open.acquire(1_000, Instant::now(), None, failure()).await;
        assert_eq!(acquired, Ok(Duration::ZERO));
    }
}
