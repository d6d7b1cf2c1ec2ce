//! The plain case, decided in one word: what nearly every request meets.
//!
//! It is plain if the limiter has a rate that mints whole grains, its burst was not raised of
//! late, and the line is in the lap that its state says or in the next. Then a position is as good
//! as the state word that it makes, and a few words of the configuration are enough. Whatever is
//! not plain is [`Verdict::Unclear`] and left to [`super::decide`], with which this agrees.

use super::clock::{Speed, Turn};
use super::config::Config;
use super::position::{Grains, Lap, Position};

/// What the plain case needs of a [`Config`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plain {
    /// When it begins.
    pub(crate) from: u64,
    pub(crate) start: u64,
    pub(crate) origin: Position,
    pub(crate) speed: Speed,
    /// Zero, which no request fits into, if the configuration is never plain.
    pub(crate) capacity: Grains,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It can have what ends here, now.
    Take(Position),
    /// It would have to wait.
    Wait(Turn),
    Unclear,
}

impl Plain {
    pub(crate) fn of(config: &Config) -> Self {
        let clock = &config.clock;
        let exact = clock.speed.part == 0 && !clock.is_unlimited();
        // From then on the floor is below what has overflowed anyway.
        let from = clock.due(config.floor + config.capacity).filter(|_| exact);
        Self {
            from: from.unwrap_or(u64::MAX).max(clock.start),
            start: clock.start,
            origin: clock.origin,
            speed: clock.speed,
            capacity: if from.is_some() { config.capacity } else { Grains(0) },
        }
    }

    #[inline]
    pub(crate) fn decide(&self, now: u64, cost: Grains, lap: Lap, spent: u64) -> Verdict {
        // Below zero it wraps: a request for nothing is not plain either.
        let fits = cost.0.wrapping_sub(1) < self.capacity.0;
        if !fits || now < self.from {
            return Verdict::Unclear;
        }
        let elapsed = u128::from(now - self.start);
        let minted = self.origin.ahead(elapsed * u128::from(self.speed.whole));
        let Some(free) = lap.distance(minted, spent) else { return Verdict::Unclear };
        #[expect(clippy::cast_possible_wrap, reason = "both are at most a quarter of a lap")]
        let (capacity, cost) = (self.capacity.0 as i64, cost.0 as i64);
        let left = free.min(capacity) - cost;
        if left >= 0 {
            Verdict::Take(minted.behind(u128::from(left.unsigned_abs())))
        } else if free > Lap::FARTHEST_DEBT {
            Verdict::Wait(Turn::of_whole(self.speed, left.unsigned_abs()))
        } else {
            Verdict::Unclear
        }
    }
}
