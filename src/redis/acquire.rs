//! The future that awaits permits from a server.

use super::error::Error;
use super::lease::Told;
use super::limiter::RedisLimiter;
use super::remote::{ASKS_EVERY, FAR_AWAY, Held, Line, Outcome, Patience, Turn};
use crate::builder::USUAL_SLACK;
use crate::error::AcquireError;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Awaits permits from a server: what [`RedisLimiter::acquire`](super::RedisLimiter::acquire) and its
/// kin return. Awaited, it resolves to how long it waited.
///
/// # Cancel safety
///
/// It may be dropped at any time. Dropped before it completed, it gives its permits back in
/// the background, on the runtime that the limiter was built on; completed, it holds nothing.
#[must_use = "it does nothing unless you `.await` it"]
pub struct Acquire<'a> {
    limiter: RedisLimiter,
    permits: u32,
    within: Option<Duration>,
    before: Option<Instant>,
    lifetime: PhantomData<&'a ()>,
}

/// What [`Acquire`] is when it is awaited.
pub type AcquireFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Duration, Error<AcquireError>>> + Send + 'a>>;

impl Acquire<'_> {
    pub(super) fn new(limiter: RedisLimiter, permits: u32) -> Self {
        Self { limiter, permits, within: None, before: None, lifetime: PhantomData }
    }

    /// Waits for at most `wait`, counted from when it is awaited. If its turn comes later, it is
    /// refused at once with [`AcquireError::WouldExceedDeadline`] and takes nothing.
    ///
    /// Of several bounds the tightest holds.
    pub fn within(mut self, wait: Duration) -> Self {
        self.within = Some(self.within.map_or(wait, |within| within.min(wait)));
        self
    }

    /// Waits until `deadline` at the latest. If its turn comes later, it is refused at once with
    /// [`AcquireError::WouldExceedDeadline`] and takes nothing.
    ///
    /// Of several bounds the tightest holds.
    pub fn before(mut self, deadline: Instant) -> Self {
        self.before = Some(self.before.map_or(deadline, |before| before.min(deadline)));
        self
    }
}

impl<'a> IntoFuture for Acquire<'a> {
    type Output = Result<Duration, Error<AcquireError>>;
    type IntoFuture = AcquireFuture<'a>;

    fn into_future(self) -> Self::IntoFuture {
        let began = Instant::now();
        let within = self.within.and_then(|wait| began.checked_add(wait));
        let until = within.into_iter().chain(self.before).min();
        let Self { limiter, permits, .. } = self;
        Box::pin(Terms { permits, began, until }.acquire(limiter))
    }
}

/// What one who waits has asked for, since when, and until when at most.
#[derive(Clone, Copy)]
struct Terms {
    permits: u32,
    began: Instant,
    until: Option<Instant>,
}

impl Terms {
    async fn acquire(self, limiter: RedisLimiter) -> Result<Duration, Error<AcquireError>> {
        let Self { permits, began, until } = self;
        match self.acquire_leased(&limiter).await {
            Err(Error::Failed(failure)) => {
                limiter.substitute().acquire(permits, began, until, failure).await
            }
            outcome => {
                limiter.substitute().stand_back();
                outcome
            }
        }
    }

    async fn acquire_leased(self, limiter: &RedisLimiter) -> Result<Duration, Error<AcquireError>> {
        let Some(leased) = limiter.leased() else {
            return self.acquire_on_server(limiter.line()).await;
        };
        match leased.acquire(self.permits, self.until).await? {
            Told::Taken => Ok(self.began.elapsed()),
            Told::NotBefore(turn) => Err(Error::Refused(self.too_late(Some(turn)))),
            Told::AskTheServer => self.acquire_on_server(limiter.line()).await,
        }
    }

    async fn acquire_on_server(self, line: &Arc<Line>) -> Result<Duration, Error<AcquireError>> {
        loop {
            let patience = match self.until {
                None => Patience::Forever,
                Some(until) => match until.checked_duration_since(Instant::now()) {
                    Some(wait) => Patience::AtMost(wait),
                    None => return Err(Error::Refused(self.too_late(Some(Instant::now())))),
                },
            };
            let requested = self.permits;
            let held = match line.book(requested, patience).await? {
                Outcome::Booked(held) => held,
                Outcome::Late(wait) => {
                    let turn = wait.and_then(|wait| Instant::now().checked_add(wait));
                    return Err(Error::Refused(self.too_late(turn)));
                }
                Outcome::ExceedsBurst { burst } => {
                    return Err(Error::Refused(AcquireError::ExceedsBurst { requested, burst }));
                }
                Outcome::NoRoom => {
                    return Err(Error::Refused(AcquireError::DebtTooLarge { requested }));
                }
            };
            let waited = self.wait(&held).await.map_err(Error::Refused)?;
            // Who wakes so late that its turn has overflowed, gives it back and books again.
            if held.overflow().is_none_or(|overflow| Instant::now() <= overflow + USUAL_SLACK) {
                held.keep();
                return Ok(waited);
            }
        }
    }

    /// Waits for the turn; how long that was since the beginning.
    async fn wait(self, held: &Held) -> Result<Duration, AcquireError> {
        let until = self.until;
        let late = move |turn| match turn {
            Turn::At(turn) => until.is_some_and(|until| turn > until),
            Turn::Never => until.is_some(),
        };
        match wait_for_turn(held, late).await {
            Ok(()) => Ok(self.began.elapsed()),
            Err(Turn::At(turn)) => Err(self.too_late(Some(turn))),
            Err(Turn::Never) => Err(self.too_late(None)),
        }
    }

    fn too_late(self, turn: Option<Instant>) -> AcquireError {
        let since_began = |time: Instant| time.saturating_duration_since(self.began);
        AcquireError::WouldExceedDeadline {
            requested: self.permits,
            wait: turn.map(since_began),
            limit: self.until.map_or(Duration::MAX, since_began),
        }
    }
}

/// Waits until the turn has come by what is known of the limit, also if that changes meanwhile;
/// or until the turn is `late`.
pub(super) async fn wait_for_turn(held: &Held, late: impl Fn(Turn) -> bool) -> Result<(), Turn> {
    loop {
        // It listens before it looks, so that no change is missed.
        let changed = held.line().changed.notified();
        let turn = held.turn();
        if late(turn) {
            return Err(turn);
        }
        let now = Instant::now();
        let turn = match turn {
            Turn::At(turn) if turn <= now => return Ok(()),
            Turn::At(turn) => turn,
            Turn::Never => now + FAR_AWAY,
        };
        let asks = now + ASKS_EVERY;
        if timeout_at(turn.min(asks), changed).await.is_err() && asks < turn {
            let _ = timeout_at(turn, held.line().refresh()).await;
        }
    }
}
