//! The plain case, decided in one word: what nearly every request meets.
//!
//! It is plain if the limiter has a rate that mints whole grains, evenly or in steps, its burst was not raised of
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
        let exact = clock.speed.part == 0 && !clock.speed.is_unlimited();
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

    /// What becomes of a request for `cost`, where `free` says how far a position lies beyond what is
    /// spent, if it can.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "measured: see benches/README.md")]
    pub(crate) fn decide(
        &self,
        now: u64,
        cost: Grains,
        free: impl FnOnce(Position) -> Option<i64>,
    ) -> Verdict {
        // Below zero it wraps: a request for nothing is not plain either.
        let fits = cost.0.wrapping_sub(1) < self.capacity.0;
        if !fits || now < self.from {
            return Verdict::Unclear;
        }
        let elapsed = now - self.start;
        let each = self.speed.over;
        let (steps, since) =
            if each == 1 { (elapsed, 0) } else { (elapsed / each, elapsed % each) };
        let minted = self.origin.ahead(u128::from(steps) * u128::from(self.speed.whole));
        let Some(free) = free(minted) else { return Verdict::Unclear };
        #[expect(clippy::cast_possible_wrap, reason = "both are at most a quarter of a lap")]
        let (capacity, cost) = (self.capacity.0 as i64, cost.0 as i64);
        let left = free.min(capacity) - cost;
        if left >= 0 {
            Verdict::Take(minted.behind(u128::from(left.unsigned_abs())))
        } else if free > Lap::FARTHEST_DEBT {
            Verdict::Wait(Turn::of_whole(self.speed, left.unsigned_abs(), since))
        } else {
            Verdict::Unclear
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::clock::Clock;
    use super::super::decide::Tail;
    use super::*;
    use crate::rate::Rate;
    use proptest::prelude::*;

    const TOKEN: Grains = Grains(60_000_000_000);

    fn config() -> impl Strategy<Value = Config> {
        let rate = prop_oneof![
            (1..10_000_000_u64).prop_map(Rate::per_second),
            (1..100_u64).prop_map(Rate::per_minute),
            (0..100_u64).prop_map(Rate::per_day),
            Just(Rate::UNLIMITED),
        ];
        let burst = prop_oneof![0..20_u32, 0..10_000_000_u32];
        (rate, burst, 0..1_u64 << 40, 0..1_u128 << 66, 0..1_u128 << 60).prop_map(
            |(rate, burst, start, origin, below)| {
                let origin = Position::ORIGIN.ahead(origin);
                let in_steps = origin.whole_tokens(TOKEN) % 2 == 0;
                let speed = if in_steps { Speed::in_steps } else { Speed::of };
                let clock = Clock { start, origin, ..Clock::starting(speed(rate, TOKEN)) };
                let floor = origin.behind(below);
                Config {
                    clock,
                    capacity: TOKEN.times(burst),
                    floor,
                    rate,
                    paused: None,
                    overdrawn: Grains(0),
                }
            },
        )
    }

    proptest! {
        /// Wherever `spent` may be, a verdict is what the decision in full would be.
        #[test]
        fn the_plain_case_agrees_with_the_whole(
            config in config(),
            since_start in prop_oneof![0..1_000_u64, 0..1_u64 << 34, 0..1_u64 << 50],
            tokens in prop_oneof![0..20_u32, any::<u32>()],
            lap_behind in 0..3_u128,
            place in prop_oneof![0..1_u128 << 37, 0..3_u128 << 62],
            turned in 0..4_u64,
        ) {
            let now = config.clock.start + since_start;
            let minted = config.clock.read(now).minted;
            let lap_start = Position::ORIGIN.ahead((minted.beyond(Position::ORIGIN) >> 62 << 62).saturating_sub(lap_behind << 62));
            let lap = Lap::of(lap_start).turned_by(turned);
            // Anywhere from the lap before to the end of the lap after.
            let spent = lap_start.behind(1 << 62).ahead(place);
            let cost = Grains(TOKEN.0.saturating_mul(u64::from(tokens)));
            let tail = Tail::at(now, &config, spent, 0);
            let end = tail.interval(cost).end;
            match Plain::of(&config).decide(now, cost, |minted| lap.distance(minted, lap.write(spent))) {
                Verdict::Take(taken) => {
                    prop_assert!(tokens > 0 && cost <= config.capacity);
                    prop_assert_eq!(taken, end);
                    prop_assert!(end <= tail.reach && end < lap.end());
                }
                Verdict::Wait(turn) => {
                    prop_assert!(tokens > 0 && cost <= config.capacity && end > tail.reach);
                    prop_assert_eq!(turn, Turn::new(&config.clock, now, config.clock.read(now), end));
                }
                Verdict::Unclear => {}
            }
        }
    }

    #[test]
    fn the_usual_case_is_plain() {
        let rate = Rate::per_second(100);
        let clock = Clock::starting(Speed::of(rate, TOKEN));
        let capacity = TOKEN.times(10);
        let floor = Position::ORIGIN - capacity;
        let config = Config { clock, capacity, floor, rate, paused: None, overdrawn: Grains(0) };
        let lap = Lap::of(Position::ORIGIN);
        let decide = |tokens, spent: Position| {
            let free = |minted| lap.distance(minted, lap.write(spent));
            Plain::of(&config).decide(0, TOKEN.times(tokens), free)
        };
        let full = Position::ORIGIN - capacity;
        assert_eq!(decide(10, full), Verdict::Take(Position::ORIGIN));
        assert_eq!(decide(1, full), Verdict::Take(full + TOKEN));
        assert!(
            matches!(decide(1, Position::ORIGIN), Verdict::Wait(turn) if turn.wait() == Some(10_000_000))
        );
        assert_eq!(decide(11, full), Verdict::Unclear);
        assert_eq!(decide(0, full), Verdict::Unclear);
    }
}
