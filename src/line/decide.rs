//! What becomes of a request: pure functions of a view of the state and the time.

use super::clock::{Reading, Turn};
use super::config::Config;
use super::position::{Grains, Interval, Position};

/// How long a request may wait for its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Its turn must have come by this time; for a try, now.
    Until(u64),
    Forever,
}

impl Patience {
    /// Whether even what can be had now is too late.
    #[inline]
    pub(crate) fn is_over(self, now: u64) -> bool {
        matches!(self, Self::Until(time) if time < now)
    }
}

/// How much may be booked beyond what can be had now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ahead {
    /// As many as there can be stands for no limit.
    pub(crate) tokens: u32,
    pub(crate) token: Grains,
}

impl Ahead {
    /// Whether so much would be too much.
    fn is_exceeded_by(self, grains: u128) -> bool {
        self.tokens != u32::MAX && grains > u128::from(self.token.0) * u128::from(self.tokens)
    }
}

/// The free end of the line as it is at one instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tail {
    /// Where the next interval starts: behind all that is spent and all that has overflowed.
    pub(crate) start: Position,
    /// Intervals that end up to here can be used now.
    pub(crate) reach: Position,
    /// Intervals must end before this, to be told apart from the past.
    room: Position,
    reading: Reading,
}

impl Tail {
    /// As it is at `now`, when what overflowed in the last `allowance` of time is still good.
    #[inline]
    pub(crate) fn at(now: u64, config: &Config, spent: Position, allowance: u64) -> Self {
        let reading = config.clock.read(now);
        let overflown = match allowance {
            0 => reading.filled,
            _ => config.clock.read(now.saturating_sub(allowance)).filled,
        };
        // A bucket that has been full for a grain has let that grain overflow unused; it may be
        // drawn empty at once although the newest grain is not quite finished.
        let idle = spent.max(config.floor) + config.capacity <= reading.minted;
        Self {
            start: spent.max(config.horizon(overflown)),
            reach: if idle { reading.filled } else { reading.minted },
            room: (reading.minted - config.capacity) + Grains::ROOM,
            reading,
        }
    }

    /// What is minted.
    pub(crate) fn minted(&self) -> Position {
        self.reading.minted
    }

    #[inline]
    pub(crate) fn interval(&self, length: Grains) -> Interval {
        Interval { start: self.start, end: self.start + length }
    }
}

/// Why a request gets nothing. It has changed nothing then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Closed,
    /// More than the limiter ever holds, which is so many tokens.
    ExceedsBurst {
        burst: u32,
    },
    /// Its turn comes later than it can wait.
    Late(Turn),
    /// More would be booked ahead than may be.
    QueueFull {
        places: u32,
    },
    /// The line has no room so far ahead.
    NoRoom,
}

/// Whether a request may be turned away before the line is looked at, or needs nothing of it.
#[inline]
pub(crate) fn admit(
    closed: bool,
    config: &Config,
    now: u64,
    cost: Grains,
    token: Grains,
) -> Result<Demand, Refusal> {
    if closed {
        Err(Refusal::Closed)
    } else if cost.0 == 0 || config.clock.is_unlimited_at(now) {
        Ok(Demand::Nothing)
    } else if cost > config.capacity {
        Err(Refusal::ExceedsBurst { burst: config.capacity.in_tokens(token) })
    } else {
        Ok(Demand::Interval)
    }
}

/// What a request needs of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Demand {
    Nothing,
    Interval,
}

/// Whether who is so patient may have a turn that comes when `end` is minted, if no more than
/// `ahead` may be booked beyond what can be had now.
#[inline]
pub(crate) fn accept(
    now: u64,
    config: &Config,
    tail: &Tail,
    end: Position,
    patience: Patience,
    ahead: Ahead,
) -> Result<(), Refusal> {
    let in_time = match patience {
        Patience::Forever => true,
        Patience::Until(time) if time > now => end <= config.clock.read(time).minted,
        Patience::Until(time) => time == now && end <= tail.reach,
    };
    if !in_time {
        Err(Refusal::Late(Turn::new(&config.clock, now, tail.reading, end)))
    } else if ahead.is_exceeded_by(end.beyond(tail.reach)) {
        Err(Refusal::QueueFull { places: ahead.tokens })
    } else if end >= tail.room {
        Err(Refusal::NoRoom)
    } else {
        Ok(())
    }
}
