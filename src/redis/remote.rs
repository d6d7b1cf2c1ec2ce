//! The line on the server: what all ways to serve from it stand on.

use super::clock::TimeSource;
use super::connection::Connection;
use super::error::Failure;
use super::reply::{Booking, Clock, Reply, Status};
use super::requests::{Asked, Request, Requests};
use super::script;
use super::settings::{Change, Settings};
use crate::breaker::CircuitBreaker;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

/// What lies between the attempts to give something back: a server is seldom away for longer.
const PAUSES: [Duration; 3] =
    [Duration::from_millis(100), Duration::from_millis(400), Duration::from_millis(1_600)];

/// How often somebody else may change the length of a token while something is set.
const ATTEMPTS: u32 = 4;

/// How a server is asked.
pub(super) struct Remote {
    pub(super) connection: Arc<dyn Connection>,
    pub(super) timeout: Duration,
    pub(super) time: TimeSource,
    /// Spares who asks the wait for a server that does not answer.
    pub(super) breaker: CircuitBreaker,
    /// Gives back what a dropped future had booked.
    pub(super) runtime: Handle,
}

/// One limit on a server.
pub(super) struct Line {
    remote: Arc<Remote>,
    key: String,
    view: Mutex<View>,
    requests: Requests,
    /// One asks for all who wait.
    asking: tokio::sync::Mutex<()>,
    /// Tells those who wait that it is set to something else.
    pub(super) changed: Notify,
}

/// How often those who wait ask whether the limit was set to something else.
pub(super) const ASKS_EVERY: Duration = Duration::from_secs(1);

/// What is known of a limit since the last answer.
#[derive(Clone, Copy)]
struct View {
    settings: Settings,
    reading: Option<Reading>,
    /// The last one before the line began anew.
    before: Option<Reading>,
}

/// A clock, and what it said when.
#[derive(Clone, Copy)]
struct Reading {
    clock: Clock,
    now: i64,
    /// When the answer came: then at the earliest was it `now`, so nobody's turn comes too early.
    at: Instant,
}

/// What the script can do.
#[derive(Clone, Copy)]
enum Operation {
    Book = 0,
    GiveBack = 1,
    Set = 2,
    Look = 3,
}

/// How long a booking may wait for its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    AtMost(Duration),
    Forever,
}

/// When a turn comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    At(Instant),
    Never,
}

/// What was made of a request.
#[derive(Debug)]
pub(super) enum Outcome {
    Booked(Held),
    /// Its turn comes too late, so long after the answer; `None` is never.
    Late(Option<Duration>),
    ExceedsBurst {
        burst: u32,
    },
    NoRoom,
}

impl Line {
    pub(super) fn new(remote: Arc<Remote>, key: String, settings: Settings) -> Arc<Self> {
        let view = Mutex::new(View { settings, reading: None, before: None });
        Arc::new(Self {
            remote,
            key,
            view,
            requests: Requests::new(),
            asking: tokio::sync::Mutex::default(),
            changed: Notify::new(),
        })
    }

    pub(super) fn settings(&self) -> Settings {
        self.view().settings
    }

    /// Books the earliest turn, if it comes in time. A refusal changes nothing.
    pub(super) async fn book(
        self: &Arc<Self>,
        permits: u32,
        patience: Patience,
    ) -> Result<Outcome, Failure> {
        let wait = match patience {
            Patience::AtMost(wait) => micros(wait),
            Patience::Forever => -1.0,
        };
        self.bounded(self.requests.ask(self, Request { permits, wait })).await
    }

    /// What is made of the answer to a request.
    fn outcome(self: &Arc<Self>, permits: u32, reply: &Reply) -> Result<Outcome, Failure> {
        Ok(match reply.status {
            Status::Nothing | Status::Now | Status::Later => {
                let (line, booked) = (Arc::clone(self), Reading::of(reply));
                let booking = reply.booking().ok_or(Failure::Answer)?;
                Outcome::Booked(Held { line, permits, booking, booked, kept: false })
            }
            Status::Late => Outcome::Late(reply.wait().map(Duration::from_micros)),
            Status::ExceedsBurst => Outcome::ExceedsBurst { burst: reply.clock.settings.burst() },
            Status::NoRoom => Outcome::NoRoom,
            Status::Done | Status::Refused => return Err(Failure::Answer),
        })
    }

    /// Sends requests in one call of the script, and tells each who asked what became of it. What was
    /// booked for one who has gone is given back.
    pub(super) async fn send(self: Arc<Self>, asked: Vec<Asked>) {
        let requests = asked.iter().flat_map(|asked| asked.request.to_numbers());
        let replies = Arc::clone(&self).ask(Operation::Book, requests.collect()).await;
        let mut replies = replies.map(Vec::into_iter);
        for Asked { request, answer } in asked {
            let outcome = match &mut replies {
                Ok(replies) => replies
                    .next()
                    .ok_or(Failure::Answer)
                    .and_then(|reply| self.outcome(request.permits, &reply)),
                Err(failure) => Err(failure.clone()),
            };
            let _ = answer.send(outcome);
        }
    }

    pub(super) fn requests(&self) -> &Requests {
        &self.requests
    }

    pub(super) fn timeout(&self) -> Duration {
        self.remote.timeout
    }

    /// Books the earliest turn, however late, for one who keeps his own books of it.
    pub(super) async fn lease(self: &Arc<Self>, permits: u32) -> Result<Reply, Failure> {
        self.call(Operation::Book, vec![f64::from(permits), -1.0]).await
    }

    /// Gives a booking back in the background, used or not.
    pub(super) fn give_back_later(self: &Arc<Self>, booking: Booking) {
        let line = Arc::clone(self);
        self.spawn(async move {
            // There is nobody to tell of a failure.
            let _ = line.give_back(booking, true).await;
        });
    }

    /// Goes on in the background.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.remote.runtime.spawn(work);
    }

    /// Sets the limit for all who share it.
    pub(super) async fn set(self: &Arc<Self>, change: Change) -> Result<(), Failure> {
        for _ in 0..ATTEMPTS {
            let input = self.settings().changed_by(change);
            let reply = self.call(Operation::Set, input.to_vec()).await?;
            // Refused is what is meant for a token of another length. Now that is known.
            if reply.status == Status::Done {
                return Ok(());
            }
        }
        Err(Failure::Answer)
    }

    /// The free tokens: negative while more is booked than is minted.
    pub(super) async fn tokens(self: &Arc<Self>) -> Result<f64, Failure> {
        let reply = self.call(Operation::Look, vec![0.0, 0.0]).await?;
        Ok(reply.clock.settings.in_tokens(reply.free()))
    }

    /// Asks whether the limit was set to something else, unless that is known or being asked.
    /// Where it fails, what was known before holds.
    pub(super) async fn refresh(self: &Arc<Self>) {
        let Ok(_asking) = self.asking.try_lock() else { return };
        let known = self.view().reading.is_some_and(|last| last.at.elapsed() < ASKS_EVERY / 2);
        if !known {
            let _ = self.tokens().await;
        }
    }

    /// Makes a booking free again: at once if it is not yet used, even after its turn, for a
    /// `refund`. Whether it was; it is so once at most, however often this is tried.
    async fn give_back(self: Arc<Self>, booking: Booking, refund: bool) -> Result<bool, Failure> {
        if booking.is_empty() {
            return Ok(false);
        }
        let input = booking.to_numbers(refund);
        let mut pauses = PAUSES.into_iter();
        loop {
            match (self.call(Operation::GiveBack, input.clone()).await, pauses.next()) {
                (Ok(reply), _) => return Ok(reply.status == Status::Done),
                (Err(failure), None) => return Err(failure),
                (Err(_), Some(pause)) => sleep(pause).await,
            }
        }
    }

    /// Calls the script, and waits for its answer no longer than may be. What it booked for nobody,
    /// because the answer came too late or this was dropped, is given back.
    async fn call(
        self: &Arc<Self>,
        operation: Operation,
        more: Vec<f64>,
    ) -> Result<Reply, Failure> {
        let line = Arc::clone(self);
        self.bounded(async {
            let call: Call = Box::pin(async move {
                let replies = Arc::clone(&line).ask(operation, more).await?;
                replies.into_iter().next().ok_or(Failure::Answer)
            });
            InFlight { line: Arc::clone(self), call: Some(call) }.await
        })
        .await
    }

    /// Waits for an answer no longer than may be, and not at all while the breaker is open.
    async fn bounded<T>(
        &self,
        answer: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let attempt = self.remote.breaker.enter().map_err(Failure::Open)?;
        let limit = self.remote.timeout;
        let answer = timeout(limit, answer).await.unwrap_or(Err(Failure::Timeout { limit }));
        match &answer {
            Ok(_) => attempt.succeeded(),
            // It has answered all the same.
            Err(Failure::Answer) => drop(attempt),
            Err(_) => attempt.failed(),
        }
        answer
    }

    /// Calls the script: an answer to each request.
    async fn ask(
        self: Arc<Self>,
        operation: Operation,
        more: Vec<f64>,
    ) -> Result<Vec<Reply>, Failure> {
        let remote = &self.remote;
        let settings = self.settings();
        #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
        let [now, keeps] = [remote.time.micros(), remote.time.keeps()].map(|number| number as f64);
        let mut input = vec![f64::from(operation as u8), now, keeps];
        input.extend(settings.to_numbers());
        input.extend(more);
        let connection = Arc::clone(&remote.connection);
        let answer = script::run(connection, self.key.clone(), input).await?;
        let replies = Reply::read(&answer, settings)?;
        // They have the clock in common.
        if let Some(reply) = replies.first() {
            self.learn(reply);
        }
        Ok(replies)
    }

    fn view(&self) -> View {
        // Nothing panics while the lock is held.
        *self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers what an answer says of the limit.
    fn learn(&self, reply: &Reply) {
        let settings = reply.clock.settings;
        let mut view = self.view.lock().unwrap_or_else(PoisonError::into_inner);
        // An answer from before the last change says nothing new.
        if settings.is_before(view.settings) {
            return;
        }
        let changed = settings != view.settings;
        let reading = Some(Reading::of(reply));
        let goes_on = view.reading.is_none_or(|last| last.clock.goes_on_as(reply.clock));
        let before = if goes_on { view.before } else { view.reading };
        *view = View { settings, reading, before };
        drop(view);
        if changed {
            self.changed.notify_waiters();
        }
    }
}

type Call = Pin<Box<dyn Future<Output = Result<Reply, Failure>> + Send>>;

/// A call that goes on when it is dropped, as the server goes on with it.
struct InFlight {
    line: Arc<Line>,
    call: Option<Call>,
}

impl Future for InFlight {
    type Output = Result<Reply, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let call = self.call.as_mut().expect("not polled after completion");
        let answer = std::task::ready!(call.as_mut().poll(cx));
        self.call = None;
        Poll::Ready(answer)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let Some(call) = self.call.take() else { return };
        let line = Arc::clone(&self.line);
        self.line.remote.runtime.spawn(async move {
            if let Some(booking) = call.await.ok().and_then(|reply| reply.booking()) {
                // There is nobody to tell of a failure.
                let _ = line.give_back(booking, true).await;
            }
        });
    }
}

/// A booking that is given back when dropped, unless it is kept.
pub(super) struct Held {
    line: Arc<Line>,
    permits: u32,
    booking: Booking,
    booked: Reading,
    /// Whether it is used, stays spent, or is being given back.
    kept: bool,
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Held").field("booking", &self.booking).finish_non_exhaustive()
    }
}

impl Held {
    pub(super) fn permits(&self) -> u32 {
        self.permits
    }

    /// When its turn comes, by what is known now.
    pub(super) fn turn(&self) -> Turn {
        let reading = self.reading();
        reading
            .clock
            .turn(&self.booking)
            .map_or(Turn::Never, |turn| Turn::At(reading.instant(turn)))
    }

    /// When its turn comes by the clock of the limit; `None` if never.
    pub(super) fn due(&self) -> Option<Duration> {
        let turn = self.reading().clock.turn(&self.booking)?;
        u64::try_from(turn).ok().map(Duration::from_micros)
    }

    /// When it begins to overflow, if ever.
    pub(super) fn overflow(&self) -> Option<Instant> {
        let reading = self.reading();
        Some(reading.instant(reading.clock.overflow(&self.booking)?))
    }

    /// The latest reading; or that of when it was booked, where the server has begun anew since.
    fn reading(&self) -> Reading {
        let View { reading, before, .. } = self.line.view();
        let mut readings = reading.into_iter().chain(before);
        readings.find(|reading| reading.clock.knows(&self.booking)).unwrap_or(self.booked)
    }

    pub(super) fn line(&self) -> &Arc<Line> {
        &self.line
    }

    /// It is used, or stays spent.
    pub(super) fn keep(mut self) {
        self.kept = true;
    }

    /// Gives it back, and goes on with that if it is dropped. Whether it is free again.
    pub(super) async fn give_back(mut self, refund: bool) -> Result<bool, Failure> {
        self.kept = true;
        self.spawn_give_back(refund).await.unwrap_or(Ok(false))
    }

    fn spawn_give_back(&self, refund: bool) -> JoinHandle<Result<bool, Failure>> {
        let line = Arc::clone(&self.line);
        self.line.remote.runtime.spawn(line.give_back(self.booking.clone(), refund))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.kept {
            self.spawn_give_back(true);
        }
    }
}

impl Reading {
    fn of(reply: &Reply) -> Self {
        Self { clock: reply.clock, now: reply.now, at: Instant::now() }
    }

    /// When it is `time` by the clock of the limit, or a little later.
    fn instant(&self, time: i64) -> Instant {
        let ahead = Duration::from_micros(u64::try_from(time - self.now).unwrap_or(0));
        let behind = Duration::from_micros(u64::try_from(self.now - time).unwrap_or(0));
        let instant = self.at.checked_add(ahead).unwrap_or(self.at + FAR_AWAY);
        instant.checked_sub(behind).unwrap_or(self.at)
    }
}

/// As good as never, and within what every platform's clock can tell.
pub(super) const FAR_AWAY: Duration = Duration::from_secs(30 * 365 * 86_400);

/// Whole microseconds, at most those of 30 years.
fn micros(wait: Duration) -> f64 {
    let micros = wait.min(FAR_AWAY).as_micros();
    #[expect(clippy::cast_precision_loss, reason = "below 2^50")]
    let micros = micros as f64;
    micros
}
