//! A limiter, and callers who give up, on paused time.

use crate::load::{Grid, Request, ceil_to_millisecond};
use futures::future::LocalBoxFuture;
use futures::stream::{FuturesUnordered, StreamExt as _};
use paceline::{Limiter, Rate};
use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::task::unconstrained;
use tokio::time::{Instant, advance, timeout};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    /// Tokens per second.
    pub(crate) rate: u32,
    pub(crate) burst: u32,
}

impl Limit {
    pub(crate) fn limiter(self) -> Limiter {
        Limiter::new(Rate::per_second(u64::from(self.rate)), self.burst)
    }

    /// What is minted in `time`, in billionths of a token.
    pub(crate) fn minted_in(self, time: Duration) -> i128 {
        i128::from(self.rate) * i128::try_from(time.as_nanos()).expect("not for ever")
    }

    /// How long it takes to mint `tokens`: a whole number of nanoseconds for the rates used here.
    pub(crate) fn minting(self, tokens: u32) -> Duration {
        let nanos = u64::from(tokens) * 1_000_000_000;
        assert_eq!(nanos % u64::from(self.rate), 0);
        Duration::from_nanos(nanos / u64::from(self.rate))
    }
}

/// Tokens are counted in billionths, of which a whole number is minted in every nanosecond.
pub(crate) fn billionths(tokens: u32) -> i128 {
    i128::from(tokens) * 1_000_000_000
}

/// A request that was served. Times are since the limiter was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Use {
    pub(crate) tokens: u32,
    pub(crate) booked: Duration,
    /// When its turn was to come, as a reservation made in its place was told.
    pub(crate) promised: Duration,
    pub(crate) went_on: Duration,
}

impl Use {
    /// The latest that the caller may go on: Tokio wakes sleepers on whole milliseconds.
    pub(crate) fn latest(&self) -> Duration {
        if self.promised == self.booked { self.booked } else { ceil_to_millisecond(self.promised) }
    }
}

/// What the callers share.
pub(crate) struct Stage {
    grid: Grid,
    start: Instant,
    pub(crate) limiter: Limiter,
    /// On whole milliseconds nobody is late, so a limiter on which the same is reserved and
    /// cancelled at the same times tells when each turn is, and leaves the other one alone.
    twin: Limiter,
    /// Whether callers have stopped giving up.
    all_stay: Cell<bool>,
}

impl Stage {
    pub(crate) fn new(limit: Limit, grid: Grid) -> Self {
        Self {
            grid,
            start: Instant::now(),
            limiter: limit.limiter(),
            twin: limit.limiter(),
            all_stay: Cell::new(false),
        }
    }

    pub(crate) fn instant(&self, at: Duration) -> Instant {
        self.start + at
    }

    pub(crate) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// From now on nobody gives up.
    pub(crate) fn let_all_stay(&self) {
        self.all_stay.set(true);
    }

    /// Asks, and waits as long as it is willing to.
    async fn call(&self, request: Request) -> Option<Use> {
        let Request { tokens, patience, .. } = request;
        let booked = Instant::now();
        let oracle = match self.grid {
            Grid::Milliseconds => &self.twin,
            Grid::Nanoseconds => &self.limiter,
        };
        let reservation = oracle.reserve_many_at(tokens, booked).expect("within the burst");
        let promised = reservation.ready_at().expect("the rate is not zero");
        let twin = match self.grid {
            Grid::Milliseconds => Some(reservation),
            Grid::Nanoseconds => {
                reservation.cancel_at(booked);
                None
            }
        };

        let mut acquire = pin!(self.limiter.acquire_many(tokens));
        let waited = match timeout(patience, acquire.as_mut()).await {
            Ok(waited) => waited,
            Err(_) if self.all_stay.get() => acquire.await,
            Err(_) => {
                if let Some(twin) = twin {
                    twin.cancel_at(Instant::now());
                }
                return None;
            }
        };
        let went_on = Instant::now();
        assert_eq!(waited, Ok(went_on - booked));
        let [booked, promised, went_on] = [booked, promised, went_on].map(|at| at - self.start);
        Some(Use { tokens, booked, promised, went_on })
    }

    /// The free tokens, at a time that must not lie before the last call.
    pub(crate) fn tokens_at(&self, at: Duration) -> f64 {
        let tokens = self.limiter.tokens_at(self.instant(at));
        if self.grid == Grid::Milliseconds {
            assert_eq!(tokens.to_bits(), self.twin.tokens_at(self.instant(at)).to_bits());
        }
        tokens
    }
}

/// Those who are on the stage.
pub(crate) struct Crowd<'a> {
    stage: &'a Stage,
    now: Duration,
    waiting: FuturesUnordered<LocalBoxFuture<'a, Option<Use>>>,
    pub(crate) uses: Vec<Use>,
    pub(crate) gave_up: u32,
}

impl<'a> Crowd<'a> {
    pub(crate) fn new(stage: &'a Stage) -> Self {
        Self { stage, now: stage.now(), waiting: FuturesUnordered::new(), uses: vec![], gave_up: 0 }
    }

    /// Makes `request`, which is for now.
    pub(crate) async fn enter(&mut self, request: Request) {
        assert_eq!(request.at, self.now);
        self.waiting.push(Box::pin(self.stage.call(request)));
        self.poll().await;
    }

    /// Lets time pass; on every whole millisecond those whose time has come are woken.
    pub(crate) async fn wait_until(&mut self, time: Duration) {
        while self.now < time {
            let tick = ceil_to_millisecond(self.now + Duration::from_nanos(1));
            let next = tick.min(time);
            advance(next - self.now).await;
            self.now = next;
            self.poll().await;
        }
    }

    /// Lets time pass until nobody waits.
    pub(crate) async fn wait_for_all(&mut self) {
        while !self.waiting.is_empty() {
            self.wait_until(self.now + Duration::from_nanos(1)).await;
            self.wait_until(ceil_to_millisecond(self.now)).await;
        }
    }

    pub(crate) fn now(&self) -> Duration {
        self.now
    }

    async fn poll(&mut self) {
        assert_eq!(self.now, self.stage.now());
        let waiting = &mut self.waiting;
        while let Poll::Ready(Some(outcome)) =
            poll_fn(|cx| Poll::Ready(waiting.poll_next_unpin(cx))).await
        {
            match outcome {
                Some(used) => self.uses.push(used),
                None => self.gave_up += 1,
            }
        }
    }
}

/// Runs `scene` with a clock of its own, which stands still but for `advance`, and begins on a
/// whole millisecond.
pub(crate) fn on_paused_time<T>(scene: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
    // One task polls everybody, which takes more than a task's share.
    runtime.expect("a runtime").block_on(unconstrained(scene))
}
