//! The token line: the model that the whole crate stands on.
//!
//! Tokens are minted on a line, one after the other, at the configured rate. Every permit is a
//! distinct interval of that line. A permit may be used only once it is minted, and only before
//! it overflows (before the line has been minted more than `burst` tokens past it).
//!
//! All times here are nanoseconds since the limiter was made.

mod batch;
mod booking;
mod clock;
mod config;
mod decide;
mod holes;
#[cfg(all(test, paceline_loom))]
mod ledger;
mod plain;
mod position;
mod scale;
mod slack;
mod state;
mod windows;
#[cfg(feature = "keyed")]
mod words;

pub(crate) use batch::Overflow;
pub(crate) use booking::Booking;
pub(crate) use clock::{Minting, Turn};
pub(crate) use decide::{Patience, Refusal};
pub(crate) use holes::{Free, Holes};
pub(crate) use plain::Verdict;
pub(crate) use position::{Interval, Position};
pub(crate) use scale::Bounds;
#[cfg(feature = "http")]
pub(crate) use words::Standing;
#[cfg(feature = "keyed")]
pub(crate) use words::{Base, Untaken, Word, freeze, look_at, mark_own};

#[cfg(feature = "redis")]
pub(crate) use scale::{Grid, fit};

#[cfg(all(test, paceline_loom))]
pub(crate) use {config::ConfigCell, ledger::Loss};

use crate::rate::Rate;
use clock::Clock;
use config::{Config, Pause};
use decide::{Ahead, Tail};
use holes::earliest_run;
use position::Grains;
use slack::Slack;
use state::{State, Step, View};

/// A line, what is spent of it, and what was given back.
pub(crate) struct Line {
    state: State,
    holes: Holes,
    /// The length of a token.
    token: Grains,
    minting: Minting,
    /// Whether each step is for itself; see [`windows`].
    has_windows: bool,
    /// How many tokens may be booked beyond what can be had; as many as there can be for no limit.
    places: u32,
    bounds: Bounds,
    slack: Slack,
    /// Whether it only says how the lines of many keys are minted; see [`words`].
    has_keys: bool,
}

/// What a line is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) rate: Rate,
    pub(crate) minting: Minting,
    /// Whether each step is a window: for a line in steps that mints all that it holds.
    pub(crate) has_windows: bool,
    pub(crate) burst: u32,
    pub(crate) initial: u32,
    pub(crate) bounds: Bounds,
    /// In nanoseconds.
    pub(crate) slack: u64,
    /// When it is made.
    pub(crate) now: u64,
}

impl Settings {
    /// Of a line that mints evenly and starts full, at the beginning of its time.
    pub(crate) fn full(rate: Rate, burst: u32, bounds: Bounds, slack: u64) -> Self {
        Self {
            rate,
            minting: Minting::Even,
            has_windows: false,
            burst,
            initial: burst,
            bounds,
            slack,
            now: 0,
        }
    }
}

/// What is asked of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub(crate) now: u64,
    pub(crate) tokens: u32,
    pub(crate) patience: Patience,
    /// How far back overflow is judged; see [`slack`].
    allowance: u64,
}

impl Ask {
    /// By one who is judged by the present.
    #[inline]
    pub(crate) fn new(now: u64, tokens: u32, patience: Patience) -> Self {
        Self { now, tokens, patience, allowance: 0 }
    }
}

/// What one who has slept finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outlook {
    /// Its turn came `late` nanoseconds ago. It may use it, unless too much of it has overflowed.
    Turn {
        late: u64,
        overflown: bool,
    },
    /// Its turn comes then; `None` if never.
    Wait(Option<u64>),
    /// The bucket has become too small for it.
    ExceedsBurst {
        burst: u32,
    },
    Closed,
}

/// What the end of the line says of a request.
enum Answer {
    /// It needs nothing.
    Nothing,
    /// The end of the line was here, it was given this, and whether it could use it at once.
    Booked(Position, Interval, bool),
    Refused(Refusal),
    /// There may be holes that serve it earlier.
    LookAtHoles,
}

/// What a booking would take.
struct Plan {
    run: Vec<Free>,
    /// Whether it can be used at once.
    immediate: bool,
    /// The end of the line when it was made, and the first position at which a hole counted.
    tail: Position,
    alive_from: Position,
}

impl Line {
    /// A line with `initial` tokens minted and not spent.
    pub(crate) fn new(settings: Settings) -> Self {
        Self::with_token(scale::fit(settings.rate, settings.bounds, scale::Grid::NANOS), settings)
    }

    fn with_token(token: Grains, settings: Settings) -> Self {
        let Settings { rate, minting, has_windows, burst, initial, bounds, slack, now } = settings;
        let capacity = token.times(burst);
        let speed = minting.speed(rate, token);
        let start = match minting {
            Minting::InStepsFromUse => Clock::NOT_STARTED,
            _ => minting.start(now, speed),
        };
        let clock = Clock { start, ..Clock::starting(speed) };
        let floor = Position::ORIGIN - capacity;
        let config = Config { clock, capacity, floor, rate, paused: None, overdrawn: Grains(0) };
        let spent = Position::ORIGIN - token.times(initial);
        let (state, holes, slack) = (State::new(config, spent), Holes::new(), Slack::new(slack));
        let (places, has_keys) = (u32::MAX, false);
        Self { state, holes, token, minting, has_windows, places, bounds, slack, has_keys }
    }

    /// One on which no more than `places` tokens may be booked beyond what can be had.
    pub(crate) fn with_places(self, places: u32) -> Self {
        Self { places, ..self }
    }

    /// How many tokens may be booked beyond what can be had.
    pub(crate) fn places(&self) -> u32 {
        self.places
    }

    /// Books the earliest tokens that can be had, if their turn comes in time. A refusal writes
    /// nothing.
    pub(crate) fn book(&self, ask: Ask) -> Result<Booking, Refusal> {
        if self.minting == Minting::InStepsFromUse {
            self.start_with_use(ask);
        }
        match self.book_tail(ask) {
            Answer::Nothing => Ok(Booking::NOTHING),
            Answer::Booked(tail, interval, immediate) => {
                if self.has_windows {
                    self.leave_gap(tail, interval.start);
                }
                Ok(Booking::of(interval, immediate))
            }
            Answer::Refused(refusal) => Err(refusal),
            Answer::LookAtHoles => self.book_run(ask),
        }
    }

    /// Starts the clock of a line that waits for its first use, if this is one. The line is full then,
    /// so it is refused only if it fits nowhere or comes after its own deadline.
    fn start_with_use(&self, ask: Ask) {
        let waits = |config: &Config| config.clock.start == Clock::NOT_STARTED;
        let View { closed, config, .. } = self.state.view();
        let granted = (1..=self.burst()).contains(&ask.tokens) && !ask.patience.is_over(ask.now);
        if waits(&config) && !closed && granted {
            self.state.config().replace(|config| {
                let start = if waits(&config) { ask.now } else { config.clock.start };
                Config { clock: Clock { start, ..config.clock }, ..config }
            });
        }
    }

    /// As [`Self::book`], for one who will wait for its turn and has a slack.
    pub(crate) fn book_to_wait(
        &self,
        now: u64,
        tokens: u32,
        patience: Patience,
    ) -> Result<Booking, Refusal> {
        self.book(Ask { allowance: self.allowance(now), ..Ask::new(now, tokens, patience) })
    }

    /// How much lateness is forgiven at `now`, to those who wait.
    pub(crate) fn allowance(&self, now: u64) -> u64 {
        self.slack.allowance(now)
    }

    /// As [`Self::take_plain`], for one who would wait for its turn and has a slack.
    #[inline]
    pub(crate) fn take_plain_or_wait(&self, now: u64, tokens: u32) -> Verdict {
        match self.slack.allowance(now) {
            0 => self.take_plain(now, tokens),
            _ => Verdict::Unclear,
        }
    }

    /// Takes `tokens` for good if that is a plain case and they can be had now. If it is not plain
    /// or there may be holes, [`Self::book`] must say.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "measured: see benches/README.md")]
    pub(crate) fn take_plain(&self, now: u64, tokens: u32) -> Verdict {
        match self.state.take_plain(now, self.cost(tokens)) {
            Verdict::Wait(_) if self.holes.are_about() => Verdict::Unclear,
            verdict => verdict,
        }
    }

    /// What `take_plain` took when it said that it ends there.
    #[inline]
    pub(crate) fn booking_before(&self, end: Position, tokens: u32) -> Booking {
        Booking::of(Interval { start: end - self.token.times(tokens), end }, true)
    }

    fn ahead(&self) -> Ahead {
        Ahead { tokens: self.places, token: self.token }
    }

    /// What so many tokens take of the line; as good as infinite if that is more than any burst.
    #[inline]
    fn cost(&self, tokens: u32) -> Grains {
        Grains(self.token.0.saturating_mul(u64::from(tokens)))
    }

    /// Books at the end of the line, unless it would have to wait there and there are holes.
    #[inline]
    fn book_tail(&self, ask: Ask) -> Answer {
        self.state.update(|view| {
            let about = || self.holes.are_about();
            match self.answer(view.closed, &view.config, view.spent, ask, about) {
                Answer::Booked(tail, interval, immediate) => Step::Forward {
                    start: interval.start,
                    end: interval.end,
                    then: Answer::Booked(tail, interval, immediate),
                },
                answer => Step::Stay(answer),
            }
        })
    }

    /// What the end of a line that is `spent` so far says of a request, where there may be holes as
    /// `holes_are_about` says.
    #[inline]
    fn answer(
        &self,
        closed: bool,
        config: &Config,
        spent: Position,
        ask: Ask,
        holes_are_about: impl FnOnce() -> bool,
    ) -> Answer {
        let Ask { now, tokens, patience, allowance } = ask;
        let cost = self.cost(tokens);
        match decide::admit(closed, config, now, cost, self.token) {
            Err(refusal) => return Answer::Refused(refusal),
            Ok(decide::Demand::Nothing) => return Answer::Nothing,
            Ok(decide::Demand::Interval) => {}
        }
        let tail = Tail::at(now, config, spent, allowance);
        let interval = self.at_tail(&tail, config, cost);
        let immediate = interval.end <= tail.reach;
        if !immediate || patience.is_over(now) {
            if holes_are_about() {
                return Answer::LookAtHoles;
            }
            let ahead = self.ahead();
            if let Err(refusal) = decide::accept(now, config, &tail, interval.end, patience, ahead)
            {
                return Answer::Refused(refusal);
            }
        }
        Answer::Booked(tail.start, interval, immediate)
    }

    /// Books the earliest run of free tokens, holes first and then the end of the line.
    #[cold]
    fn book_run(&self, ask: Ask) -> Result<Booking, Refusal> {
        loop {
            // Another thread has changed what was found: so it got on, and we look again.
            if let Some(outcome) = self.try_book_run(ask) {
                return outcome;
            }
        }
    }

    /// As [`Self::book_run`]; gives up, with nothing taken, if what it found is gone.
    fn try_book_run(&self, ask: Ask) -> Option<Result<Booking, Refusal>> {
        let view = self.state.view();
        let plan = match self.plan(&view, ask) {
            Ok(Some(plan)) => plan,
            Ok(None) => return Some(Ok(Booking::NOTHING)),
            Err(refusal) => return Some(Err(refusal)),
        };
        if !self.holes.claim(&plan.run, plan.alive_from) {
            return None;
        }
        let pieces: Vec<_> = plan.run.iter().map(|free| free.interval).collect();
        if let Some(Free { hole: None, interval }) = plan.run.last() {
            if !self.move_tail(&view, *interval) {
                pieces[..pieces.len() - 1].iter().for_each(|hole| self.holes.put(*hole));
                return None;
            }
            self.leave_gap(plan.tail, interval.start);
        }
        Some(Ok(Booking::of_many(pieces, plan.immediate)))
    }

    /// The earliest run of free tokens that serves `ask`; none if it needs nothing.
    fn plan(&self, view: &View, ask: Ask) -> Result<Option<Plan>, Refusal> {
        let Ask { now, tokens, patience, allowance } = ask;
        let config = &view.config;
        let cost = self.cost(tokens);
        match decide::admit(view.closed, config, now, cost, self.token)? {
            decide::Demand::Nothing => return Ok(None),
            decide::Demand::Interval => {}
        }
        let tail = Tail::at(now, config, view.spent, allowance);
        let alive_from = self.alive_from(config, now.saturating_sub(allowance));
        let alive = self.holes.alive(alive_from);
        // A hole beyond the tail is one that came with a change after this view.
        let alive = alive.take_while(|free| free.interval.end <= tail.start);
        let windows = self.windows_at(tail.minted(), config);
        let alive = alive.flat_map(|free| windows::split(windows, free));
        let free = alive.chain(self.free_at_tail(&tail, config, cost));
        let run = earliest_run(free, cost, |start, end| match windows {
            Some(windows) => windows.hold(start, end),
            None => end.beyond(start) <= u128::from(config.capacity.0),
        });
        let end = run.last().expect("it has what was asked for").interval.end;
        decide::accept(now, config, &tail, end, patience, self.ahead())?;
        let (tail, immediate) = (tail.start, end <= tail.reach);
        Ok(Some(Plan { run, immediate, tail, alive_from }))
    }

    /// Whether `ask` would be served. Writes nothing.
    #[inline]
    pub(crate) fn peek(&self, ask: Ask) -> Result<(), Refusal> {
        match self.state.peek_plain(ask.now, self.cost(ask.tokens)) {
            Verdict::Take(_) => Ok(()),
            Verdict::Wait(turn) if !self.holes.are_about() => Err(Refusal::Late(turn)),
            _ => self.plan(&self.state.view(), ask).map(drop),
        }
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
        match booking.pieces().next_back() {
            Some(last) if !booking.is_immediate() => self.state.view().config.clock.due(last.end),
            _ => Some(0),
        }
    }

    /// Makes free again what was booked and has not been used.
    pub(crate) fn give_back(&self, now: u64, booking: &Booking) {
        let alive_from = self.alive_from(&self.state.view().config, now);
        for piece in booking.pieces().rev() {
            if self.move_back(piece) {
                self.swallow_last_holes(piece.start, alive_from);
            } else {
                self.holes.put(piece);
            }
        }
        // Each that comes lets up to two that have overflowed go, so they cannot pile up.
        self.holes.sweep(alive_from, 2);
    }

    /// Makes free again what was booked beyond the first `used` tokens.
    #[cfg(feature = "io")]
    pub(crate) fn give_back_beyond(&self, now: u64, booking: &Booking, used: u32) {
        self.give_back(now, &booking.beyond(self.cost(used)));
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
    /// What has overflowed of them is left out.
    fn swallow_last_holes(&self, mut end: Position, alive_from: Position) {
        while self.holes.are_about() {
            let Some(hole) = self.holes.remove_last(end) else {
                return;
            };
            let start = hole.start.max(alive_from);
            if start >= end {
                return;
            }
            let alive = Interval { start, end };
            if !self.move_back(alive) {
                self.holes.put(alive);
                return;
            }
            end = start;
        }
    }

    /// What to do with the interval of one who has slept and looks at `now`.
    pub(crate) fn look(&self, now: u64, booking: &Booking) -> Outlook {
        let view = self.state.view();
        let config = &view.config;
        let mut ends = booking.pieces().map(|piece| (piece.start, piece.end));
        let Some((start, end)) = ends.next() else {
            return Outlook::Turn { late: 0, overflown: false };
        };
        let end = ends.next_back().map_or(end, |(_, last)| last);
        if view.closed {
            return Outlook::Closed;
        }
        if booking.length() > u128::from(config.capacity.0) && !config.clock.is_unlimited_at(now) {
            return Outlook::ExceedsBurst { burst: config.capacity.in_tokens(self.token) };
        }
        if self.is_torn(config, now, booking) {
            return Outlook::Turn { late: 0, overflown: true };
        }
        match config.clock.due(end) {
            Some(turn) if turn <= now => Outlook::Turn {
                late: now - turn,
                overflown: start < self.alive_from(config, now.saturating_sub(self.slack.most()))
                    && !config.clock.is_unlimited_at(now),
            },
            turn => Outlook::Wait(turn),
        }
    }

    /// Remembers that somebody who slept has woken `late`.
    pub(crate) fn woke(&self, now: u64, late: u64) {
        self.slack.woke(now, late);
    }

    /// Mints at `rate` from `now` on. Positions stay; what changes is when they are due.
    pub(crate) fn set_rate(&self, now: u64, rate: Rate) -> Result<(), Bounds> {
        if rate.exceeds(self.bounds.rate) && !rate.is_unlimited() {
            return Err(self.bounds);
        }
        self.state.config().replace(|config| {
            let speed = self.minting.speed(rate, self.token);
            if speed == config.clock.speed && rate == config.rate {
                return config;
            }
            // An older `now` mints nothing twice: the clock does not start again before itself.
            let start = self.minting.start(config.goes_on(now), speed);
            let origin = self.minted(&config, now);
            Config { clock: config.clock.followed_by(now, origin, start, speed), rate, ..config }
        });
        Ok(())
    }

    /// What is minted at `now`, for a clock that goes on from there. If all of it was, what is
    /// left of that is a full bucket.
    fn minted(&self, config: &Config, now: u64) -> Position {
        if config.clock.is_unlimited_at(now) {
            // No key has booked beyond the room of the line as it was before all was minted.
            let spent = if self.has_keys {
                config.clock.origin + Grains::ROOM
            } else {
                self.state.view().spent.max(config.floor)
            };
            config.clock.origin.max(spent + config.capacity)
        } else {
            config.clock.read(now).minted
        }
    }

    /// Lets the line stand still from `now` until `until`, or until a later time that it stands
    /// still until already.
    pub(crate) fn pause_until(&self, now: u64, until: u64) {
        self.state.config().replace(|config| {
            if until <= config.goes_on(now) {
                return config;
            }
            let from = config.pause_at(now).unwrap_or(now);
            let paused = Some(Pause { from, until });
            let origin = self.minted(&config, now);
            let start = self.minting.start(until, config.clock.speed);
            let clock = config.clock.followed_by(now, origin, start, config.clock.speed);
            Config { clock, paused, ..config }
        });
    }

    /// Lets a line that stands still go on at `now`.
    pub(crate) fn resume(&self, now: u64) {
        self.state.config().replace(|config| {
            let Some(paused) = config.pause_at(now) else { return config };
            let start = self.minting.start(now.max(paused), config.clock.speed);
            let clock = Clock { start, ..config.clock };
            Config { clock, paused: None, ..config }
        });
    }

    /// Lets the bucket hold `burst` tokens from `now` on. What has overflowed stays lost.
    pub(crate) fn set_burst(&self, now: u64, burst: u32) -> Result<(), Bounds> {
        if burst > self.bounds.burst {
            return Err(self.bounds);
        }
        self.state.config().replace(|config| {
            let capacity = self.token.times(burst);
            if capacity == config.capacity {
                return config;
            }
            let floor = if config.clock.is_unlimited_at(now) {
                config.floor
            } else {
                config.horizon(config.clock.read(now).filled)
            };
            Config { capacity, floor, ..config }
        });
        Ok(())
    }

    /// Mints `limit` tokens at each step from `now` on and holds as many, for a line in steps that
    /// mints all that it holds. What was used since the last step counts: as much more is there at
    /// once as the limit is higher, or as much less.
    pub(crate) fn set_limit(&self, now: u64, limit: u32, rate: Rate) -> Result<(), Bounds> {
        if limit > self.bounds.burst {
            return Err(self.bounds);
        }
        self.state.config().replace(|config| {
            let (capacity, old) = (self.token.times(limit), config.capacity);
            if capacity == old {
                return config;
            }
            let Clock { start, speed, .. } = config.clock;
            let minted = config.clock.read(now).minted;
            let overdrawn =
                if now.saturating_sub(start) < speed.over { config.overdrawn } else { Grains(0) };
            let wanted = (minted - overdrawn - old) + capacity;
            // Who has used more than the new limit already does not owe it to the next step. But what
            // it is in this step is remembered, until the limit is higher again.
            let used = self.holes.free_back_from(self.state.view().spent.min(minted));
            let origin = wanted.max(used);
            // Nor has it any more of this step, wherever something was given back.
            let floor = if wanted < used { config.floor.max(origin) } else { config.floor };
            let overdrawn = Grains(u64::try_from(origin.beyond(wanted)).unwrap_or(u64::MAX));
            let start = now.checked_sub(start).map_or(start, |elapsed| now - elapsed % speed.over);
            let speed = self.minting.speed(rate, self.token);
            let clock = config.clock.followed_by(now, origin, start, speed);
            Config { clock, capacity, floor, rate, overdrawn, ..config }
        });
        Ok(())
    }

    pub(crate) fn close(&self) {
        self.state.config().close();
    }

    /// Each word of it, and what was given back.
    #[cfg(all(test, not(paceline_loom)))]
    pub(crate) fn words(&self) -> impl PartialEq + std::fmt::Debug + use<> {
        (self.state.words(), self.holes.words())
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state.config().is_closed()
    }

    pub(crate) fn rate(&self) -> Rate {
        self.state.view().config.rate
    }

    pub(crate) fn burst(&self) -> u32 {
        self.state.view().config.capacity.in_tokens(self.token)
    }

    /// How fast it mints, and how much it keeps.
    #[cfg(feature = "io")]
    pub(crate) fn rate_and_burst(&self) -> (Rate, u32) {
        let config = self.state.view().config;
        (config.rate, config.capacity.in_tokens(self.token))
    }

    /// How many tokens can be had now at the end of the line.
    #[cfg(feature = "io")]
    pub(crate) fn stored(&self, now: u64) -> u32 {
        let View { spent, config, .. } = self.state.view();
        let tail = Tail::at(now, &config, spent, 0);
        let stored = tail.reach.beyond(tail.start).min(u128::from(config.capacity.0));
        #[expect(clippy::cast_possible_truncation, reason = "at most the capacity")]
        Grains(stored as u64).in_tokens(self.token)
    }

    /// How many holes have not overflowed.
    pub(crate) fn holes(&self, now: u64) -> usize {
        if !self.holes.are_about() {
            return 0;
        }
        self.holes.alive(self.alive_from(&self.state.view().config, now)).count()
    }

    /// How many tokens a booking is.
    pub(crate) fn tokens_in(&self, booking: &Booking) -> u32 {
        let tokens = booking.length() / u128::from(self.token.0);
        u32::try_from(tokens).expect("made of a u32 of tokens")
    }

    /// The free tokens: negative while more is booked than is minted, all if unlimited.
    pub(crate) fn tokens(&self, now: u64) -> f64 {
        let view = self.state.view();
        let alive = self.holes.alive(self.alive_from(&view.config, now));
        let holes = alive.map(|free| free.interval.end.beyond(free.interval.start)).sum();
        self.tokens_of(&view.config, now, view.spent, holes)
    }

    /// The free tokens of a line that is spent up to `spent`, and has so many grains in holes.
    #[expect(clippy::cast_precision_loss, reason = "nothing is decided by it")]
    fn tokens_of(&self, config: &Config, now: u64, spent: Position, holes: u128) -> f64 {
        if config.clock.is_unlimited_at(now) {
            return f64::from(config.capacity.in_tokens(self.token));
        }
        let tail = Tail::at(now, config, spent, 0);
        let minted = config.clock.read(now).minted;
        let free = (minted.beyond(tail.start) + holes) as f64;
        let booked = tail.start.beyond(minted) as f64;
        (free - booked).min(config.capacity.0 as f64) / self.token.0 as f64
    }
}

#[cfg(all(test, not(paceline_loom)))]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn line(burst: u32) -> Line {
        let rate = Rate::per_second(1);
        Line::new(Settings::full(rate, burst, Bounds::usual(rate, burst), 0))
    }

    /// Checks that `refuse` is refused and leaves each word as it was.
    fn assert_writes_nothing(line: &Line, refuse: impl Fn(&Line) -> Result<Booking, Refusal>) {
        let before = line.words();
        refuse(line).expect_err("a refusal");
        assert_eq!(line.words(), before);
    }

    #[test]
    fn a_refusal_writes_nothing() {
        let now = |tokens, now| Ask::new(now, tokens, Patience::Until(now));
        let line = line(3);
        assert_writes_nothing(&line, |line| line.book(now(4, 0)));
        line.book(now(3, 0)).unwrap();
        assert!(matches!(line.take_plain(0, 1), Verdict::Wait(_)));
        assert_writes_nothing(&line, |line| line.book(now(1, 0)));
        assert_writes_nothing(&line, |line| line.book(Ask::new(0, 1, Patience::Until(SECOND - 1))));
        // With a hole about that has not been minted, and one that has overflowed.
        let bookings = [(); 3].map(|()| line.book(Ask::new(0, 1, Patience::Forever)).unwrap());
        line.give_back(0, &bookings[1]);
        assert_writes_nothing(&line, |line| line.book(now(1, 0)));
        assert_writes_nothing(&line, |line| line.book(now(2, SECOND)));
        // Long after the last lap that anybody has seen.
        let year = 365 * 86_400 * SECOND;
        assert_writes_nothing(&line, |line| line.book(now(4, 100 * year)));
        line.close();
        assert_writes_nothing(&line, |line| line.book(now(1, year)));
    }

    #[test]
    fn nobody_looks_at_the_holes_while_the_bucket_has_tokens() {
        let line = line(2);
        let bookings = [(); 2].map(|()| line.book(Ask::new(0, 1, Patience::Forever)).unwrap());
        line.give_back(0, &bookings[0]);
        let holes = line.holes.words();
        assert!(matches!(line.take_plain(SECOND, 1), Verdict::Take(_)));
        assert_eq!(line.holes.words(), holes);
    }
}
