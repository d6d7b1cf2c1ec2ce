//! The token line in its simplest form: exact, slow, and with each token that was given back kept
//! apart from all others.
//!
//! Lengths are whole numbers of a unit of which a token has so many that every rate in question
//! mints a whole number of them in each nanosecond.

use paceline::Rate;
use std::collections::BTreeMap;

/// The units in a token such that none of the rates rounds.
pub(crate) fn unit_for(rates: &[Rate]) -> i128 {
    let finite = rates.iter().filter(|rate| !rate.is_zero() && !rate.is_unlimited());
    finite.map(|rate| period(*rate)).fold(1, |unit, period| {
        let (mut divisor, mut rest) = (unit, period);
        while rest != 0 {
            (divisor, rest) = (rest, divisor % rest);
        }
        unit / divisor * period
    })
}

fn period(rate: Rate) -> i128 {
    i128::try_from(rate.period().as_nanos()).unwrap()
}

/// What is minted at one rate: `origin` until `start`, and more from then on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: u64,
    origin: i128,
    speed: i128,
}

impl Clock {
    fn new(start: u64, origin: i128, rate: Rate, unit: i128) -> Self {
        Self { start, origin, speed: unit / period(rate) * i128::from(rate.tokens()) }
    }

    pub(crate) fn minted(&self, now: u64) -> i128 {
        self.origin + i128::from(now.saturating_sub(self.start)) * self.speed
    }
}

/// What was minted by when, while the rate changed.
#[derive(Clone, Debug)]
pub(crate) struct Minting {
    pub(crate) unit: i128,
    /// By their start.
    pub(crate) clocks: Vec<Clock>,
}

impl Minting {
    pub(crate) fn new(start: u64, rate: Rate, unit: i128) -> Self {
        Self { unit, clocks: vec![Clock::new(start, 0, rate, unit)] }
    }

    fn last(&self) -> &Clock {
        &self.clocks[self.clocks.len() - 1]
    }

    pub(crate) fn last_change(&self) -> u64 {
        self.last().start
    }

    pub(crate) fn by(&self, now: u64) -> i128 {
        let later = self.clocks.partition_point(|clock| clock.start <= now);
        self.clocks[later.saturating_sub(1)].minted(now)
    }

    /// The first nanosecond from the last change on at which all up to `end` is minted.
    fn due(&self, end: i128) -> Option<u64> {
        let Clock { start, origin, speed } = *self.last();
        let missing = (end - origin).max(0);
        if missing == 0 {
            return Some(start);
        }
        start.checked_add(u64::try_from((missing - 1).checked_div(speed)? + 1).ok()?)
    }

    /// Mints at `rate` from `now` on, or from the last change if that is later.
    pub(crate) fn change(&mut self, now: u64, rate: Rate) {
        let (start, origin) = (now.max(self.last_change()), self.last().minted(now));
        self.clocks.push(Clock::new(start, origin, rate, self.unit));
    }
}

/// Permits that were handed out.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    /// The pieces of the line that it is made of, from start to end.
    pieces: Vec<(i128, i128)>,
    end: i128,
    /// When they can be used; `None` if never.
    pub(crate) turn: Option<u64>,
}

impl Held {
    /// Whether its turn has passed.
    pub(crate) fn is_past(&self, now: u64) -> bool {
        self.turn.is_some_and(|turn| turn < now)
    }
}

/// A limiter whose callers never go back in time.
pub(crate) struct Model {
    minting: Minting,
    capacity: i128,
    /// What has overflowed stays lost, whatever the capacity.
    floor: i128,
    /// The end of what was handed out.
    spent: i128,
    /// What was given back, from start to end.
    holes: BTreeMap<i128, i128>,
    pub(crate) held: Vec<Option<Held>>,
    initial: i128,
    handed_out: i128,
    overflowed: i128,
}

impl Model {
    pub(crate) fn new(rate: Rate, burst: u32, unit: i128) -> Self {
        let capacity = i128::from(burst) * unit;
        Self {
            minting: Minting::new(0, rate, unit),
            capacity,
            floor: -capacity,
            spent: -capacity,
            holes: BTreeMap::new(),
            held: Vec::new(),
            initial: capacity,
            handed_out: 0,
            overflowed: 0,
        }
    }

    fn unit(&self) -> i128 {
        self.minting.unit
    }

    pub(crate) fn burst(&self) -> u32 {
        u32::try_from(self.capacity / self.unit()).unwrap()
    }

    /// Where the next tokens are that nobody has had.
    fn tail(&self, now: u64) -> i128 {
        self.spent.max(self.minting.by(now) - self.capacity).max(self.floor)
    }

    /// What was given back and had not overflowed a nanosecond ago: it may be used together with
    /// what is minted in this one.
    fn alive(&self, now: u64) -> Vec<(i128, i128)> {
        let passed = self.minting.by(now.saturating_sub(1));
        let from = (passed - self.capacity).max(self.floor);
        let holes = self.holes.iter().map(|(start, end)| ((*start).max(from), *end));
        holes.filter(|(start, end)| start < end).collect()
    }

    /// The earliest `n` tokens within a burst of each other, if they are minted by `until`.
    fn book(&mut self, n: u32, now: u64, until: Option<u64>) -> Result<Held, Option<u64>> {
        let (need, minted) = (i128::from(n) * self.unit(), self.minting.by(now));
        let tail = self.tail(now);
        let at_tail = (tail, tail + need);
        let pieces = match n {
            0 => Vec::new(),
            _ if at_tail.1 <= minted => vec![at_tail],
            _ => {
                let mut free = self.alive(now);
                free.push(at_tail);
                let mut runs = (0..free.len()).map(|first| first_of(&free[first..], need));
                let fits =
                    |run: &Vec<(i128, i128)>| run[run.len() - 1].1 - run[0].0 <= self.capacity;
                runs.find(fits).unwrap()
            }
        };
        let end = pieces.last().map_or(minted, |(_, end)| *end);
        let turn = if end <= minted { Some(now) } else { self.minting.due(end) };
        if until.is_some_and(|until| turn.is_none_or(|turn| turn > until)) {
            return Err(turn);
        }
        for (start, end) in &pieces {
            self.take(*start, *end);
        }
        self.handed_out += need;
        Ok(Held { pieces, end, turn })
    }

    /// Takes what is free from `start` to `end`, of a hole or of the tail.
    fn take(&mut self, start: i128, end: i128) {
        let hole = self.holes.range(..=start).next_back().map(|(start, end)| (*start, *end));
        if let Some((hole_start, hole_end)) = hole.filter(|(_, hole_end)| *hole_end > start) {
            self.holes.remove(&hole_start);
            self.overflowed += start - hole_start;
            if hole_end > end {
                self.holes.insert(end, hole_end);
            }
        } else {
            self.overflowed += start - self.spent;
            self.spent = end;
        }
    }

    /// Whether it is granted; if not, when to retry.
    pub(crate) fn try_acquire(&mut self, n: u32, now: u64) -> Result<(), Option<u64>> {
        self.book(n, now, Some(now)).map(|_| ())
    }

    /// When the turn comes.
    pub(crate) fn reserve(&mut self, n: u32, now: u64) -> Option<u64> {
        let held = self.book(n, now, None).unwrap();
        let turn = held.turn;
        self.held.push(Some(held));
        turn
    }

    pub(crate) fn cancel(&mut self, one: usize, now: u64) {
        let held = self.held[one].take().unwrap();
        if held.is_past(now) {
            return;
        }
        for (start, end) in held.pieces.into_iter().rev() {
            self.handed_out -= end - start;
            if end != self.spent {
                self.holes.insert(start, end);
                continue;
            }
            self.spent = start;
            while let Some((start, end)) = self.alive(now).pop() {
                if end != self.spent {
                    break;
                }
                let whole =
                    self.holes.range(..=start).next_back().map(|(whole, _)| *whole).unwrap();
                self.holes.remove(&whole);
                self.overflowed += start - whole;
                self.spent = start;
            }
        }
    }

    pub(crate) fn set_rate(&mut self, rate: Rate, now: u64) {
        self.minting.change(now, rate);
        for held in self.held.iter_mut().flatten() {
            if held.turn.is_none_or(|turn| turn > now) {
                held.turn = self.minting.due(held.end);
            }
        }
    }

    pub(crate) fn set_burst(&mut self, burst: u32, now: u64) {
        let capacity = i128::from(burst) * self.unit();
        if capacity != self.capacity {
            self.floor = self.floor.max(self.minting.by(now) - self.capacity);
            self.capacity = capacity;
        }
    }

    /// The free tokens, less those that are booked and not minted.
    pub(crate) fn tokens(&self, now: u64) -> f64 {
        let given_back: i128 = self.alive(now).iter().map(|(start, end)| end - start).sum();
        let free = self.minting.by(now) - self.tail(now) + given_back;
        ratio(free.min(self.capacity), self.unit())
    }

    /// Checks that each token of the line is in one place: handed out, given back, overflowed, or
    /// beyond the end of what was ever handed out.
    pub(crate) fn assert_conserved(&mut self, now: u64) {
        let before: i128 = self.holes.iter().map(|(start, end)| end - start).sum();
        self.holes = self.alive(now).into_iter().collect();
        let given_back: i128 = self.holes.iter().map(|(start, end)| end - start).sum();
        self.overflowed += before - given_back;
        assert_eq!(self.handed_out + given_back + self.overflowed, self.initial + self.spent);
    }
}

/// So much of the first of some pieces.
fn first_of(pieces: &[(i128, i128)], mut need: i128) -> Vec<(i128, i128)> {
    let mut run = Vec::new();
    for (start, end) in pieces {
        let taken = need.min(end - start);
        run.push((*start, start + taken));
        need -= taken;
        if need == 0 {
            break;
        }
    }
    run
}

#[expect(clippy::cast_precision_loss, reason = "nothing is decided by it")]
fn ratio(numerator: i128, denominator: i128) -> f64 {
    // The whole part apart, so that it costs the rest no digits.
    (numerator / denominator) as f64 + (numerator % denominator) as f64 / denominator as f64
}
