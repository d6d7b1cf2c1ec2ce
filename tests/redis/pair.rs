//! A limit on a server beside a limiter of one process: both are asked the same at the same times.

use crate::support::PATIENCE;
use futures::future::join_all;
use paceline::redis::{Builder, Error, RedisLimiter, Reservation, TimeSource};
use paceline::{Limiter, Rate, ReserveError, TryAcquireError};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// When the tests begin, in microseconds since the Unix epoch.
const BEGINNING: u64 = 1_796_000_000_000_000;

/// Both limiters, and the reservations that were made of both.
pub(crate) struct Pair<'a> {
    remote: RedisLimiter,
    local: &'a Limiter,
    /// How many of the limiter's nanoseconds a microsecond of the server is.
    nanos: u64,
    /// How many microseconds later a turn may come there, since more is rounded.
    later: u64,
    began: Instant,
    clock: Arc<AtomicU64>,
    booked: RefCell<BTreeMap<u32, Booked<'a>>>,
}

struct Booked<'a> {
    theirs: Reservation,
    ours: paceline::Reservation<'a>,
    /// Whether the rate was changed since. Then it is only said when it comes as long as it has not
    /// come: nobody tells of a change to whom it does not matter any more.
    retimed: bool,
}

impl<'a> Pair<'a> {
    pub(crate) async fn new(
        remote: Builder<RedisLimiter>,
        local: &'a Limiter,
        nanos: u64,
        later: u64,
    ) -> Self {
        let clock = Arc::new(AtomicU64::new(BEGINNING));
        let told = Arc::clone(&clock);
        let time = TimeSource::from_fn(move || Duration::from_micros(told.load(Ordering::SeqCst)));
        let remote = remote.timeout(PATIENCE).time(time).build().await;
        let remote = remote.expect("the server is up");
        let began = Instant::now();
        Self { remote, local, nanos, later, began, clock, booked: RefCell::default() }
    }

    fn now(&self) -> u64 {
        self.clock.load(Ordering::SeqCst)
    }

    /// The instant of the limiter in this process.
    fn local_now(&self) -> Instant {
        self.began + Duration::from_nanos((self.now() - BEGINNING) * self.nanos)
    }

    /// Sets the time to so many microseconds after the beginning, if it is not later already.
    pub(crate) fn wait_until(&self, micros: u64) {
        self.clock.fetch_max(BEGINNING + micros, Ordering::SeqCst);
    }

    pub(crate) fn wait(&self, micros: u64) {
        self.clock.fetch_add(micros, Ordering::SeqCst);
    }

    /// The reservations that are held.
    pub(crate) fn booked(&self) -> Vec<u32> {
        self.booked.borrow().keys().copied().collect()
    }

    /// When the turn of a reservation comes, in microseconds after the beginning; `None` if never.
    pub(crate) fn turn(&self, id: u32) -> Option<u64> {
        Some(micros(self.booked.borrow().get(&id)?.theirs.due()?) - BEGINNING)
    }

    pub(crate) async fn try_acquire(&self, n: u32) {
        let theirs = self.remote.try_acquire_many(n).await;
        self.compare_try(n, theirs);
    }

    fn compare_try(&self, n: u32, theirs: Result<(), Error<TryAcquireError>>) {
        let ours = self.local.try_acquire_many_at(n, self.local_now());
        assert_eq!(theirs.is_ok(), ours.is_ok(), "{theirs:?} is not {ours:?}");
        let (Err(theirs), Err(ours)) = (theirs, ours) else { return };
        self.assert_times(theirs.retry_after(), ours.retry_after());
        let exceeds =
            |error: &TryAcquireError| matches!(error, TryAcquireError::ExceedsBurst { .. });
        assert_eq!(theirs.refusal().map(exceeds), Some(exceeds(&ours)));
    }

    pub(crate) async fn reserve(&self, id: u32, n: u32) {
        let theirs = self.remote.reserve_many(n).await;
        self.compare_reserve(id, n, theirs);
    }

    fn compare_reserve(&self, id: u32, n: u32, theirs: Result<Reservation, Error<ReserveError>>) {
        match (theirs, self.local.reserve_many_at(n, self.local_now())) {
            (Ok(theirs), Ok(ours)) => {
                let booked = Booked { theirs, ours, retimed: false };
                self.booked.borrow_mut().insert(id, booked);
            }
            (Err(theirs), Err(ours)) => assert_eq!(theirs.refusal(), Some(&ours)),
            (theirs, ours) => panic!("{theirs:?} is not {ours:?}"),
        }
    }

    /// Tries and reserves in turn, so many permits each, all sent together: in a runtime of one thread.
    pub(crate) async fn together(&self, id: u32, permits: &[u32]) {
        let theirs = permits.iter().map(|n| async {
            tokio::join!(self.remote.try_acquire_many(*n), self.remote.reserve_many(*n))
        });
        let theirs = join_all(theirs).await;
        for ((id, n), (tried, reserved)) in (id..).zip(permits).zip(theirs) {
            self.compare_try(*n, tried);
            self.compare_reserve(id, *n, reserved);
        }
    }

    /// Lets a reservation go, spent.
    pub(crate) fn forget(&self, id: u32) {
        self.booked.borrow_mut().remove(&id);
    }

    /// Does nothing if there is no such reservation, as the next.
    pub(crate) async fn cancel(&self, id: u32) {
        let Some(Booked { theirs, ours, .. }) = self.booked.borrow_mut().remove(&id) else {
            return;
        };
        ours.cancel_at(self.local_now());
        theirs.cancel().await.expect("the server is up");
    }

    pub(crate) async fn refund(&self, id: u32) {
        let Some(Booked { theirs, ours, .. }) = self.booked.borrow_mut().remove(&id) else {
            return;
        };
        ours.refund_at(self.local_now());
        theirs.refund().await.expect("the server is up");
    }

    pub(crate) async fn set_rate(&self, theirs: Rate, ours: Rate) {
        self.booked.borrow_mut().values_mut().for_each(|one| one.retimed = true);
        self.remote.set_rate(theirs).await.expect("within the bounds");
        self.local.set_rate_at(ours, self.local_now()).expect("within the bounds");
    }

    pub(crate) async fn set_burst(&self, burst: u32) {
        self.remote.set_burst(burst).await.expect("within the bounds");
        self.local.set_burst_at(burst, self.local_now()).expect("within the bounds");
    }

    /// Checks that both have the same tokens, and that all turns come at the same time.
    pub(crate) async fn assert_same(&self) {
        let theirs = self.remote.tokens().await.expect("the server is up");
        let ours = self.local.tokens_at(self.local_now());
        assert!((theirs - ours).abs() < 1e-6, "{theirs} tokens there and {ours} here");
        for Booked { theirs, ours, retimed } in self.booked.borrow().values() {
            let ours =
                Some(ours.delay_from(self.local_now())).filter(|ours| *ours != Duration::MAX);
            if *retimed && ours == Some(Duration::ZERO) {
                continue;
            }
            let now = Duration::from_micros(self.now());
            self.assert_times(theirs.due().map(|due| due.saturating_sub(now)), ours);
        }
    }

    /// Checks that both come at the same time; `None` is never.
    #[track_caller]
    fn assert_times(&self, theirs: Option<Duration>, ours: Option<Duration>) {
        let ours = ours.map(|ours| nanos(ours).div_ceil(self.nanos));
        let theirs = theirs.map(micros);
        let agree = match (theirs, ours) {
            (Some(theirs), Some(ours)) => (ours..=ours + self.later).contains(&theirs),
            (theirs, ours) => theirs == ours,
        };
        assert!(agree, "{theirs:?} there and {ours:?} here");
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).expect("within the time of the tests")
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).expect("within the time of the tests")
}
