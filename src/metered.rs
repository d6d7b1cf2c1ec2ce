//! [`Metered`]: a limiter that is seen from outside.

use crate::error::{AcquireError, TryAcquireError};
use crate::line::{Outlook, Patience, Refusal};
use crate::rate_limit::RateLimit;
use crate::stats::Stats;
use crate::turns::{Turns, Waiters};
use crate::verbs::verbs;
use metrics::{
    Counter, Gauge, Histogram, SharedString, Unit, counter, describe_counter, describe_gauge,
    describe_histogram, gauge, histogram,
};
use std::fmt;
use std::time::Duration;

/// A limiter that counts what becomes of its requests, by the facade [`metrics`]: the feature `metrics`.
///
/// | metric | kind | |
/// |---|---|---|
/// | `paceline_acquires_total` | counter | requests, by their `outcome` |
/// | `paceline_wait_seconds` | histogram | how long those waited that were granted by `acquire`, the ones served at once included |
/// | `paceline_tokens` | gauge | [`Stats::tokens`] |
/// | `paceline_waiters` | gauge | [`Stats::waiters`] |
/// | `paceline_holes` | gauge | [`Stats::holes`] |
///
/// Each has the label `limiter`, the name that you give; no key of a request is ever a label. The
/// outcomes are
///
/// | outcome | |
/// |---|---|
/// | `granted` | by any verb |
/// | `limited` | a `try_acquire` that came too early |
/// | `deadline` | an `acquire` whose turn came too late |
/// | `queue_full` | an `acquire` that found too many waiting |
/// | `cancelled` | an `acquire` that was dropped while it waited |
/// | `exceeds_burst`, `closed`, `other` | any verb; see [`AcquireError`] |
///
/// The gauges are set by [`publish`](Self::publish): call it when the metrics are asked for, or at
/// intervals. The recorder must be installed before this is made.
///
/// A limiter that is not in a `Metered` pays nothing, also where the feature is on.
///
/// # Examples
///
/// ```
/// use paceline::{AcquireError, Limiter, Metered, Rate};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), AcquireError> {
/// let limiter = Metered::new("search", Limiter::new(Rate::per_second(100), 10));
/// limiter.acquire().await?;
/// assert!(limiter.get_ref().set_rate(Rate::per_second(200)).is_ok());
/// limiter.publish();
/// # Ok(())
/// # }
/// ```
pub struct Metered<L> {
    limiter: L,
    outcomes: Outcomes,
    wait: Histogram,
    tokens: Gauge,
    waiters: Gauge,
    holes: Gauge,
}

/// A counter for each.
struct Outcomes {
    granted: Counter,
    limited: Counter,
    deadline: Counter,
    queue_full: Counter,
    cancelled: Counter,
    exceeds_burst: Counter,
    closed: Counter,
    other: Counter,
}

const ACQUIRES: &str = "paceline_acquires_total";
const WAIT: &str = "paceline_wait_seconds";
const TOKENS: &str = "paceline_tokens";
const WAITERS: &str = "paceline_waiters";
const HOLES: &str = "paceline_holes";

impl<L: RateLimit> Metered<L> {
    /// Counts what becomes of the requests to `limiter`, under this name.
    pub fn new(name: impl Into<SharedString>, limiter: L) -> Self {
        describe();
        let name: SharedString = name.into();
        let count = |outcome| counter!(ACQUIRES, "limiter" => name.clone(), "outcome" => outcome);
        let outcomes = Outcomes {
            granted: count("granted"),
            limited: count("limited"),
            deadline: count("deadline"),
            queue_full: count("queue_full"),
            cancelled: count("cancelled"),
            exceeds_burst: count("exceeds_burst"),
            closed: count("closed"),
            other: count("other"),
        };
        Self {
            limiter,
            outcomes,
            wait: histogram!(WAIT, "limiter" => name.clone()),
            tokens: gauge!(TOKENS, "limiter" => name.clone()),
            waiters: gauge!(WAITERS, "limiter" => name.clone()),
            holes: gauge!(HOLES, "limiter" => name),
        }
    }

    /// Sets the gauges to what is now.
    pub fn publish(&self) {
        let Stats { tokens, waiters, holes, .. } = self.stats();
        self.tokens.set(tokens);
        self.waiters.set(waiters);
        #[expect(clippy::cast_precision_loss, reason = "for display")]
        self.holes.set(holes as f64);
    }

    /// What there is to see of it now.
    pub fn stats(&self) -> Stats {
        Stats::of(&self.limiter)
    }

    /// The limiter. What is asked of it directly is not counted.
    pub fn get_ref(&self) -> &L {
        &self.limiter
    }

    /// The limiter. What was counted stays counted.
    pub fn into_inner(self) -> L {
        self.limiter
    }

    fn count_try<T>(&self, outcome: Result<T, TryAcquireError>) -> Result<T, TryAcquireError> {
        match &outcome {
            Ok(_) => &self.outcomes.granted,
            Err(TryAcquireError::Limited(_)) => &self.outcomes.limited,
            Err(TryAcquireError::ExceedsBurst { .. }) => &self.outcomes.exceeds_burst,
            Err(TryAcquireError::Closed) => &self.outcomes.closed,
            Err(_) => &self.outcomes.other,
        }
        .increment(1);
        outcome
    }
}

fn describe() {
    describe_counter!(ACQUIRES, Unit::Count, "Requests for permits, by what became of them.");
    describe_histogram!(WAIT, Unit::Seconds, "How long those waited that were granted.");
    describe_gauge!(TOKENS, Unit::Count, "Permits that are free; negative while more is booked.");
    describe_gauge!(WAITERS, Unit::Count, "Requests that wait for their turns.");
    describe_gauge!(HOLES, Unit::Count, "Turns that were given back and are free for others.");
}

verbs!({ <L: RateLimit> } Metered<L>);

impl<L: RateLimit> Turns for Metered<L> {
    type Booking = L::Booking;

    fn waiters(&self) -> &Waiters {
        self.limiter.waiters()
    }

    #[inline]
    fn take_at_once(&self, permits: u32, before: u64) -> Result<(), u64> {
        self.limiter.take_at_once(permits, before)?;
        self.served(Duration::ZERO);
        Ok(())
    }

    #[inline]
    fn try_at(&self, permits: u32, now: Option<u64>) -> Result<(), TryAcquireError> {
        self.count_try(self.limiter.try_at(permits, now))
    }

    fn peek_at(&self, permits: u32, now: u64) -> Result<(), TryAcquireError> {
        self.limiter.peek_at(permits, now)
    }

    fn hold_at(&self, permits: u32, now: u64) -> Result<L::Booking, TryAcquireError> {
        self.count_try(self.limiter.hold_at(permits, now))
    }

    fn close(&self) {
        Turns::close(&self.limiter);
    }

    fn is_closed(&self) -> bool {
        Turns::is_closed(&self.limiter)
    }

    fn book(&self, now: u64, permits: u32, patience: Patience) -> Result<L::Booking, Refusal> {
        self.limiter.book(now, permits, patience)
    }

    fn is_immediate(&self, booking: &L::Booking) -> bool {
        self.limiter.is_immediate(booking)
    }

    fn permits_of(&self, booking: &L::Booking) -> u32 {
        self.limiter.permits_of(booking)
    }

    fn due(&self, booking: &L::Booking) -> Option<u64> {
        self.limiter.due(booking)
    }

    fn look(&self, now: u64, booking: &L::Booking) -> Outlook {
        self.limiter.look(now, booking)
    }

    fn woke(&self, now: u64, late: u64) {
        self.limiter.woke(now, late);
    }

    fn give_back(&self, now: u64, booking: &L::Booking) {
        self.limiter.give_back(now, booking);
    }

    fn free(&self, now: u64) -> f64 {
        self.limiter.free(now)
    }

    fn holes(&self, now: u64) -> usize {
        self.limiter.holes(now)
    }

    fn served(&self, waited: Duration) {
        self.outcomes.granted.increment(1);
        self.wait.record(waited);
    }

    fn refused(&self, error: &AcquireError) {
        match error {
            AcquireError::WouldExceedDeadline { .. } => &self.outcomes.deadline,
            AcquireError::QueueFull { .. } => &self.outcomes.queue_full,
            AcquireError::ExceedsBurst { .. } => &self.outcomes.exceeds_burst,
            AcquireError::Closed => &self.outcomes.closed,
            AcquireError::DebtTooLarge { .. } => &self.outcomes.other,
        }
        .increment(1);
    }

    fn cancelled(&self) {
        self.outcomes.cancelled.increment(1);
    }
}

impl<L: fmt::Debug> fmt::Debug for Metered<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Metered").field(&self.limiter).finish()
    }
}
