//! The token line: the model that the whole crate stands on.
//!
//! Tokens are minted on a line, one after the other, at the configured rate. Every permit is a
//! distinct interval of that line. A permit may be used only once it is minted, and only before
//! it overflows (before the line has been minted more than `burst` tokens past it).
//!
//! All times here are nanoseconds since the limiter was made.

mod clock;
mod config;
mod decide;
mod holes;
#[cfg(all(test, paceline_loom))]
mod ledger;
mod plain;
mod position;
mod scale;
mod state;

pub(crate) use clock::Turn;
pub(crate) use decide::{Patience, Refusal};
pub(crate) use plain::Verdict;
pub(crate) use scale::Bounds;

#[cfg(all(test, paceline_loom))]
pub(crate) use {config::ConfigCell, ledger::Overflow};

use crate::rate::Rate;
use clock::{Clock, Speed};
use config::Config;
use decide::Tail;
use holes::{Free, Holes, earliest_run};
use position::{Grains, Interval, Position};
use state::{State, Step, View};

/// A line, what is spent of it, and what was given back.
pub(crate) struct Line {
    state: State,
    holes: Holes,
    /// The length of a token.
    token: Grains,
    bounds: Bounds,
}

/// What a request was given.
#[derive(Debug)]
pub(crate) struct Booking {
    pieces: Pieces,
    /// Whether it could be used at once.
    pub(crate) immediate: bool,
}

/// The pieces of the line that make up a booking, in their order.
#[derive(Debug)]
enum Pieces {
    None,
    One(Interval),
    Many(Vec<Interval>),
}

impl Pieces {
    fn as_slice(&self) -> &[Interval] {
        match self {
            Self::None => &[],
            Self::One(piece) => std::slice::from_ref(piece),
            Self::Many(pieces) => pieces,
        }
    }
}

impl Booking {
    const NOTHING: Self = Self { pieces: Pieces::None, immediate: true };

    fn of(interval: Interval, immediate: bool) -> Self {
        Self { pieces: Pieces::One(interval), immediate }
    }

    fn end(&self) -> Option<Position> {
        Some(self.pieces.as_slice().last()?.end)
    }
}

/// What the end of the line says of a request.
enum Answer {
    /// It needs nothing.
    Nothing,
    /// It was given this, and whether it could use it at once.
    Booked(Interval, bool),
    Refused(Refusal),
    /// There may be holes that serve it earlier.
    LookAtHoles,
}

impl Line {
    /// A line with `initial` tokens minted and not spent.
    pub(crate) fn new(rate: Rate, burst: u32, initial: u32, bounds: Bounds) -> Self {
        Self::with_token(scale::fit(rate, bounds), rate, burst, initial, bounds)
    }

    fn with_token(token: Grains, rate: Rate, burst: u32, initial: u32, bounds: Bounds) -> Self {
        let capacity = token.times(burst);
        let clock = Clock { start: 0, origin: Position::ORIGIN, speed: Speed::of(rate, token) };
        let config = Config { clock, capacity, floor: Position::ORIGIN - capacity, rate };
        let spent = Position::ORIGIN - token.times(initial);
        Self { state: State::new(config, spent), holes: Holes::new(), token, bounds }
    }

    /// Books the earliest `tokens` that can be had, if their turn comes within `patience`.
    /// A refusal writes nothing.
    pub(crate) fn book(
        &self,
        now: u64,
        tokens: u32,
        patience: Patience,
    ) -> Result<Booking, Refusal> {
        match self.book_tail(now, tokens, patience) {
            Answer::Nothing => Ok(Booking::NOTHING),
            Answer::Booked(interval, immediate) => Ok(Booking::of(interval, immediate)),
            Answer::Refused(refusal) => Err(refusal),
            Answer::LookAtHoles => self.book_run(now, tokens, patience),
        }
    }

    /// Takes `tokens` for good if that is a plain case and they can be had now. If it is not plain
    /// or there may be holes, [`Self::book`] must say.
    #[inline]
    pub(crate) fn take_plain(&self, now: u64, tokens: u32) -> Verdict {
        match self.state.take_plain(now, self.cost(tokens)) {
            Verdict::Wait(_) if self.holes.are_about() => Verdict::Unclear,
            verdict => verdict,
        }
    }

    /// What so many tokens take of the line; as good as infinite if that is more than any burst.
    #[inline]
    fn cost(&self, tokens: u32) -> Grains {
        Grains(self.token.0.saturating_mul(u64::from(tokens)))
    }

    /// Books at the end of the line, unless it would have to wait there and there are holes.
    #[inline]
    fn book_tail(&self, now: u64, tokens: u32, patience: Patience) -> Answer {
        let cost = self.cost(tokens);
        self.state.update(|view| {
            match decide::admit(view.closed, &view.config, cost) {
                Err(refusal) => return Step::Stay(Answer::Refused(refusal)),
                Ok(decide::Demand::Nothing) => return Step::Stay(Answer::Nothing),
                Ok(decide::Demand::Interval) => {}
            }
            let tail = Tail::at(now, &view.config, view.spent);
            let interval = tail.interval(cost);
            let immediate = interval.end <= tail.reach;
            if !immediate || patience.is_over(now) {
                if self.holes.are_about() {
                    return Step::Stay(Answer::LookAtHoles);
                }
                if let Err(refusal) =
                    decide::accept(now, &view.config, &tail, interval.end, patience)
                {
                    return Step::Stay(Answer::Refused(refusal));
                }
            }
            Step::Forward {
                start: interval.start,
                end: interval.end,
                then: Answer::Booked(interval, immediate),
            }
        })
    }

    /// Books the earliest run of free tokens, holes first and then the end of the line.
    #[cold]
    fn book_run(&self, now: u64, tokens: u32, patience: Patience) -> Result<Booking, Refusal> {
        loop {
            // Another thread has changed what was found: so it got on, and we look again.
            if let Some(outcome) = self.try_book_run(now, tokens, patience) {
                return outcome;
            }
        }
    }

    /// As [`Self::book_run`]; gives up, with nothing taken, if what it found is gone.
    fn try_book_run(
        &self,
        now: u64,
        tokens: u32,
        patience: Patience,
    ) -> Option<Result<Booking, Refusal>> {
        let view = self.state.view();
        let config = &view.config;
        let cost = self.cost(tokens);
        match decide::admit(view.closed, config, cost) {
            Err(refusal) => return Some(Err(refusal)),
            Ok(decide::Demand::Nothing) => return Some(Ok(Booking::NOTHING)),
            Ok(decide::Demand::Interval) => {}
        }
        let tail = Tail::at(now, config, view.spent);
        let at_tail = Free { hole: None, interval: tail.interval(cost) };
        let alive = self.holes.alive(config.alive_from(now), self.token);
        // A hole beyond the tail is one that came with a change after this view.
        let alive = alive.take_while(|free| free.interval.end <= tail.start);
        let free = alive.chain(std::iter::once(at_tail));
        let run = earliest_run(free, tokens, self.token, config.capacity);
        let end = run.last()?.interval.end;
        if let Err(refusal) = decide::accept(now, config, &tail, end, patience) {
            return Some(Err(refusal));
        }
        if !self.holes.claim(&run) {
            return None;
        }
        let pieces: Vec<_> = run.iter().map(|free| free.interval).collect();
        if let Some(Free { hole: None, interval }) = run.last() {
            if !self.move_tail(&view, *interval) {
                pieces[..pieces.len() - 1].iter().for_each(|hole| self.holes.put(*hole));
                return None;
            }
        }
        let pieces = match pieces[..] {
            [piece] => Pieces::One(piece),
            _ => Pieces::Many(pieces),
        };
        Some(Ok(Booking { pieces, immediate: end <= tail.reach }))
    }

    /// Books `interval` if the state is still as in `view`.
    fn move_tail(&self, view: &View, interval: Interval) -> bool {
        self.state.update(|present| {
            if present != view {
                return Step::Stay(false);
            }
            Step::Forward { start: interval.start, end: interval.end, then: true }
        })
    }

    /// When the turn of `booking` comes by the present clock; `None` if never. That of one that
    /// could be used at once came when it was booked.
    pub(crate) fn due(&self, booking: &Booking) -> Option<u64> {
        match booking.end() {
            Some(end) if !booking.immediate => self.state.view().config.clock.due(end),
            _ => Some(0),
        }
    }

    /// Makes free again what was booked and has not been used.
    pub(crate) fn give_back(&self, now: u64, booking: &Booking) {
        for piece in booking.pieces.as_slice().iter().rev() {
            if self.move_back(*piece) {
                self.swallow_last_hole(piece.start);
            } else {
                self.holes.put(*piece);
            }
        }
        // Each that comes lets up to two that have overflowed go, so they cannot pile up.
        self.holes.sweep(self.state.view().config.alive_from(now), 2);
    }

    /// Moves the end of the line back over `piece`, if it is the last one.
    fn move_back(&self, piece: Interval) -> bool {
        self.state.update(|view| {
            if view.spent != piece.end || !view.reaches_back_to(piece.start) {
                return Step::Stay(false);
            }
            Step::Back { start: piece.start, then: true }
        })
    }

    /// Moves the end of the line, which has just come back to `end`, back over the holes there.
    /// One that comes to lie there later is no loss: the next booking that would wait takes it.
    fn swallow_last_hole(&self, mut end: Position) {
        while self.holes.are_about() {
            let Some(hole) = self.holes.remove_last(end) else {
                return;
            };
            if !self.move_back(hole) {
                self.holes.put(hole);
                return;
            }
            end = hole.start;
        }
    }

    /// Mints at `rate` from `now` on. Positions stay; what changes is when they are due.
    pub(crate) fn set_rate(&self, now: u64, rate: Rate) -> Result<(), Bounds> {
        if rate.exceeds(self.bounds.rate) && !rate.is_unlimited() {
            return Err(self.bounds);
        }
        self.state.config().replace(|config| {
            if rate == config.rate {
                return config;
            }
            let clock = config.clock;
            let origin = if clock.is_unlimited() {
                // All had been minted; what is left of that is a full bucket.
                clock.origin.max(self.state.view().spent + config.capacity)
            } else {
                clock.read(now).minted
            };
            // An older `now` mints nothing twice: the clock does not start again before itself.
            let start = clock.start.max(now);
            Config {
                clock: Clock { start, origin, speed: Speed::of(rate, self.token) },
                rate,
                ..config
            }
        });
        Ok(())
    }

    /// Lets the bucket hold `burst` tokens from `now` on. What has overflowed stays lost.
    pub(crate) fn set_burst(&self, now: u64, burst: u32) -> Result<(), Bounds> {
        if burst > self.bounds.burst {
            return Err(self.bounds);
        }
        self.state.config().replace(|config| {
            let floor = if config.clock.is_unlimited() {
                config.floor
            } else {
                config.horizon(config.clock.read(now).filled)
            };
            Config { floor, capacity: self.token.times(burst), ..config }
        });
        Ok(())
    }

    pub(crate) fn close(&self) {
        self.state.config().close();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state.config().is_closed()
    }

    pub(crate) fn rate(&self) -> Rate {
        self.state.view().config.rate
    }

    pub(crate) fn burst(&self) -> u32 {
        self.tokens_of(self.state.view().config.capacity)
    }

    /// The tokens that make up a capacity.
    pub(crate) fn tokens_of(&self, capacity: Grains) -> u32 {
        u32::try_from(capacity.0 / self.token.0).expect("made of a u32 of tokens")
    }

    /// The free tokens: negative while more is booked than is minted, all if unlimited.
    #[expect(clippy::cast_precision_loss, reason = "nothing is decided by it")]
    pub(crate) fn tokens(&self, now: u64) -> f64 {
        let view = self.state.view();
        if view.config.clock.is_unlimited() {
            return f64::from(self.tokens_of(view.config.capacity));
        }
        let tail = Tail::at(now, &view.config, view.spent);
        let minted = view.config.clock.read(now).minted;
        let alive = self.holes.alive(view.config.alive_from(now), self.token);
        let holes: u128 = alive.map(|free| free.interval.end.beyond(free.interval.start)).sum();
        let capacity = u128::from(view.config.capacity.0);
        let free = (minted.beyond(tail.start) + holes).min(capacity) as f64;
        (free - tail.start.beyond(minted) as f64) / self.token.0 as f64
    }
}
