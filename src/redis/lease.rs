//! Leases: a process takes a batch of tokens in one round trip and serves from it.
//!
//! What is leased is booked on the server's line like any other turn, possibly ahead of time. So each
//! token at hand is an interval of that line that nobody else has, and it is used by the third
//! sentence alone: once it is minted, and before it overflows. Both are judged by the server's clock as
//! far as it is known here, on the safe side ([`seen`]). So the bound is that of the line, whatever
//! is leased by how many processes, and no capacity is held back for it.
//!
//! What changes at once is in [`hand`], under a lock that is held for well under a microsecond and across
//! no await. Around it are a queue, so that those who wait are served in their order, and
//! tasks in the background that ask for more and give back what nobody used.

mod hand;
mod seen;
mod sizing;
mod stock;

use self::hand::{Aside, Hand, Refilled};
use self::sizing::Sizing;
use self::stock::Finding;
use super::error::Failure;
use super::remote::{ASKS_EVERY, FAR_AWAY, Line};
use super::reply::{Booking, Reply};
use crate::time::{Timeline, nanos};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, oneshot, watch};
use tokio::time::{Instant, sleep, timeout_at};

/// How a process leases permits of a limit: [`Builder::lease`](super::Builder::lease).
///
/// # Sizing
///
/// A lease holds what the process uses in a [`period`](Self::period), as it was used lately, and what its
/// tasks wait for; and more is asked for in the background when half of that is left. So a busy
/// process makes some two round trips in a period, however many permits it uses. One that uses fewer than
/// four in a period asks for each.
///
/// Of a full bucket permits overflow as fast as they are minted, those at hand too. So a process has as
/// many more at hand as overflow in a period. Nobody lacks these: they would overflow on the server.
///
/// A longer period saves round trips; but what a process that dies had at hand is lost, and where more is
/// wanted than there is, each waits for its turn for about as long as a period.
///
/// # Examples
///
/// ```no_run
/// use paceline::Rate;
/// use paceline::redis::{Fallback, Lease, RedisLimiter, connect};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let connection = connect(redis::Client::open("redis://127.0.0.1/")?).await?;
/// let limiter = RedisLimiter::builder(connection, "api", Rate::per_second(1_000))
///     .burst(200)
///     .lease(Lease::new())
///     .fallback(Fallback::Local { processes: 4.try_into()? })
///     .build()
///     .await?;
/// limiter.acquire().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    period: Duration,
    most: Option<u32>,
}

impl Default for Lease {
    fn default() -> Self {
        Self::new()
    }
}

impl Lease {
    /// What a process uses in 50 ms, and a quarter of the burst at most.
    #[must_use]
    pub fn new() -> Self {
        Self { period: Duration::from_millis(50), most: None }
    }

    /// For how long a lease is to last.
    #[must_use]
    pub fn period(mut self, period: Duration) -> Self {
        self.period = period;
        self
    }

    /// How many permits a process has at hand at most; unless set a quarter of the burst that there was
    /// when the limiter was built. A request for more is made on the server.
    #[must_use]
    pub fn most(mut self, permits: u32) -> Self {
        self.most = Some(permits);
        self
    }

    fn sizing(self, burst: u32) -> Sizing {
        Sizing { period: nanos(self.period), most: self.most.unwrap_or(burst / 4).max(1) }
    }
}

/// A limit of which permits are leased.
pub(super) struct Leased {
    line: Arc<Line>,
    sizing: Sizing,
    time: Timeline,
    hand: Mutex<Hand>,
    /// Those who wait, in their order.
    queue: Semaphore,
    /// What came of the last request for more.
    refills: watch::Sender<Result<Refilled, Failure>>,
    /// Tells who gives back what nobody uses that there is something at hand.
    filled: Arc<Notify>,
}

/// What one who asks is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Taken,
    /// Not before then.
    NotBefore(Instant),
    /// To ask the server.
    AskTheServer,
}

impl Leased {
    pub(super) fn new(line: Arc<Line>, lease: Lease) -> Arc<Self> {
        let sizing = lease.sizing(line.settings().burst());
        let leased = Arc::new(Self {
            line,
            sizing,
            time: Timeline::default(),
            hand: Mutex::new(Hand::new(sizing)),
            queue: Semaphore::new(1),
            refills: watch::Sender::new(Ok(Refilled::Nothing)),
            filled: Arc::new(Notify::new()),
        });
        let filled = Arc::clone(&leased.filled);
        leased.line.spawn(give_back_what_is_idle(Arc::downgrade(&leased), filled, lease.period));
        leased
    }

    /// Takes permits that are there now.
    pub(super) async fn try_acquire(self: &Arc<Self>, permits: u32) -> Result<Told, Failure> {
        // Who waits has a turn, and what is at hand is for that.
        if !self.has_room_for(permits) || self.hand().anybody_waits() {
            return Ok(Told::AskTheServer);
        }
        let mut found = self.take(permits);
        if found == Finding::Short {
            match self.refill(permits).await? {
                Refilled::Served => return Ok(Told::Taken),
                Refilled::Nothing => return Ok(Told::AskTheServer),
                Refilled::More => found = self.take(permits),
            }
        }
        Ok(match found {
            Finding::Taken => Told::Taken,
            Finding::Wait(turn) => Told::NotBefore(self.instant(turn)),
            // Others were faster.
            Finding::Short => Told::AskTheServer,
        })
    }

    /// Waits for permits, until then at most. Those who wait get them in their order.
    pub(super) async fn acquire(
        self: &Arc<Self>,
        permits: u32,
        until: Option<Instant>,
    ) -> Result<Told, Failure> {
        if !self.has_room_for(permits) {
            return Ok(Told::AskTheServer);
        }
        if !self.hand().anybody_waits() && self.take(permits) == Finding::Taken {
            return Ok(Told::Taken);
        }
        let _waiting = Waiting::new(self);
        match until {
            None => self.acquire_in_turn(permits, None).await,
            Some(end) => {
                let told = timeout_at(end, self.acquire_in_turn(permits, until)).await;
                told.unwrap_or(Ok(Told::NotBefore(end)))
            }
        }
    }

    async fn acquire_in_turn(
        self: &Arc<Self>,
        permits: u32,
        until: Option<Instant>,
    ) -> Result<Told, Failure> {
        let Ok(_first) = self.queue.acquire().await else { unreachable!("it is never closed") };
        loop {
            // It listens before it looks, so that nothing is missed.
            let mut refills = self.refills.subscribe();
            let turn = match self.take(permits) {
                Finding::Taken => return Ok(Told::Taken),
                Finding::Wait(turn) => self.instant(turn),
                Finding::Short => match self.refill(permits).await? {
                    Refilled::Served => return Ok(Told::Taken),
                    Refilled::Nothing => return Ok(Told::AskTheServer),
                    Refilled::More => continue,
                },
            };
            if until.is_some_and(|until| until < turn) {
                return Ok(Told::NotBefore(turn));
            }
            let asks = Instant::now() + ASKS_EVERY;
            // What comes meanwhile may have been minted earlier.
            let _ = timeout_at(turn.min(asks), refills.changed()).await;
            if asks <= Instant::now() {
                self.line.refresh().await;
            }
        }
    }

    /// Whether so many permits are ever at hand. None are of what has no limit.
    fn has_room_for(&self, permits: u32) -> bool {
        (1..=self.sizing.most).contains(&permits) && !self.line.settings().is_unlimited()
    }

    /// Takes permits that are at hand, and asks for more in the background where few are left.
    fn take(self: &Arc<Self>, permits: u32) -> Finding {
        let settings = self.line.settings();
        let now = self.time.now();
        let mut hand = self.hand();
        let found = hand.take(permits, settings, now);
        let more = if found == Finding::Taken { hand.refill_early(now) } else { None };
        drop(hand);
        if let Some(more) = more {
            drop(self.ask_for(more, 0));
        }
        found
    }

    /// Waits until more was asked for, by this caller or another.
    async fn refill(self: &Arc<Self>, needs: u32) -> Result<Refilled, Failure> {
        let mut refills = self.refills.subscribe();
        let more = self.hand().refill(needs, self.time.now());
        if let Some(more) = more {
            if let Ok(served) = self.ask_for(more, needs).await {
                served.used();
                return Ok(Refilled::Served);
            }
        }
        let Ok(()) = refills.changed().await else { unreachable!("the sender is in here") };
        let refilled = refills.borrow();
        refilled.clone()
    }

    /// In the background: whoever waits for it may go, and what comes is at hand all the same. It serves
    /// who `needs` so many, if the server has them.
    fn ask_for(self: &Arc<Self>, more: u32, needs: u32) -> oneshot::Receiver<Served> {
        let (sender, served) = oneshot::channel();
        let request =
            Request { leased: Arc::clone(self), answer: None, needs, serves: Some(sender) };
        self.line.spawn(request.ask_for(more));
        served
    }

    fn hand(&self) -> MutexGuard<'_, Hand> {
        // Nothing panics while the lock is held.
        self.hand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_back(&self, bookings: Vec<Booking>) {
        for booking in bookings {
            self.line.give_back_later(booking);
        }
    }

    fn instant(&self, time: u64) -> Instant {
        self.time.instant(time).unwrap_or_else(|| Instant::now() + FAR_AWAY)
    }
}

impl Drop for Leased {
    fn drop(&mut self) {
        let bookings = self.hand().drain(self.time.now());
        self.give_back(bookings);
        self.filled.notify_one();
    }
}

/// A request for more. Dropped it is over, also if the runtime has ended before: all who wait for it
/// are told.
struct Request {
    leased: Arc<Leased>,
    /// The reply, when the request was sent and when that was received.
    answer: Option<Result<(Reply, u64, u64), Failure>>,
    needs: u32,
    serves: Option<oneshot::Sender<Served>>,
}

impl Request {
    async fn ask_for(mut self, more: u32) {
        let sent = self.leased.time.now();
        let reply = self.leased.line.lease(more).await;
        let received = self.leased.time.now();
        self.answer = Some(reply.map(|reply| (reply, sent, received)));
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        let (reply, failure) = match self.answer.take() {
            Some(Ok(reply)) => (Some(reply), None),
            Some(Err(failure)) => (None, Some(failure)),
            None => (None, None),
        };
        let (refilled, aside) = self.leased.hand().refilled(reply, self.needs);
        if refilled == Refilled::More {
            self.leased.filled.notify_one();
        }
        if let (Some(aside), Some(serves)) = (aside, self.serves.take()) {
            let leased = Arc::clone(&self.leased);
            // Where nobody waits any more, it goes back as it is dropped.
            let _ = serves.send(Served { leased, aside: Some(aside) });
        }
        drop(self.leased.refills.send_replace(failure.map_or(Ok(refilled), Err)));
    }
}

/// What one who waited is served with. It is back at hand if this is dropped unused.
struct Served {
    leased: Arc<Leased>,
    aside: Option<Aside>,
}

impl Served {
    fn used(mut self) {
        if let Some(aside) = self.aside.take() {
            self.leased.hand().used_aside(&aside);
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(aside) = self.aside.take() {
            self.leased.hand().put_back(aside);
        }
    }
}

/// One who waits, from when it came until it goes.
struct Waiting<'a>(&'a Leased);

impl<'a> Waiting<'a> {
    fn new(leased: &'a Leased) -> Self {
        leased.hand().begin_waiting();
        Self(leased)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.hand().end_waiting();
    }
}

/// Gives back what nobody has used for one or two periods. What is at hand when the limiter goes, it gives
/// back itself.
async fn give_back_what_is_idle(leased: Weak<Leased>, filled: Arc<Notify>, period: Duration) {
    loop {
        filled.notified().await;
        loop {
            sleep(period).await;
            let Some(leased) = leased.upgrade() else { return };
            let idle = leased.hand().drain_if_idle(leased.time.now());
            if let Some(bookings) = idle {
                leased.give_back(bookings);
                break;
            }
        }
    }
}

impl fmt::Debug for Leased {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leased").field("sizing", &self.sizing).finish_non_exhaustive()
    }
}
