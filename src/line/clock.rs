//! When what is minted: pure functions of the time, in exact integers.
//!
//! Times are nanoseconds since the limiter was made. A clock mints `whole + part / over` grains
//! in each of them, from `origin` on at the time `start`. Nothing is accumulated: every reading
//! is computed afresh from those numbers, in 128 bits, so no error can build up.

use super::position::{Grains, Position};
use crate::rate::Rate;
use crate::rate::ratio::reduced;

/// Grains minted in a nanosecond: `whole + part / over`, with `part < over`.
///
/// Or in steps: without a part, `whole` is minted at once each `over` nanoseconds. So steps of one
/// nanosecond are what mints whole grains evenly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Speed {
    pub(crate) whole: u64,
    pub(crate) part: u64,
    /// Zero stands for unlimited: all is minted at once.
    pub(crate) over: u64,
}

impl Speed {
    const UNLIMITED: Self = Self { whole: 0, part: 0, over: 0 };

    /// The speed of `rate` where a token is `token` grains.
    pub(crate) fn of(rate: Rate, token: Grains) -> Self {
        if rate.is_unlimited() {
            return Self::UNLIMITED;
        }
        let (tokens, period) = rate.reduced();
        let grains = u128::from(tokens) * u128::from(token.0);
        let period = u128::from(period);
        let (part, over) = reduced(grains % period, period);
        let fits = |n: u128| {
            u64::try_from(n).expect("a rate of at most 10^12/s in grains of at most 2^47 a token")
        };
        Self { whole: fits(grains / period), part: fits(part), over: fits(over) }
    }

    /// The speed at which all tokens of a period of `rate` are minted at its end. A step beyond the
    /// room of the line serves everybody who is booked, as one of the room does.
    pub(crate) fn in_steps(rate: Rate, token: Grains) -> Self {
        if rate.is_unlimited() {
            return Self::UNLIMITED;
        }
        let step = rate.tokens.saturating_mul(token.0).min(Grains::ROOM.0);
        Self { whole: step, part: 0, over: rate.period }
    }

    #[inline]
    pub(crate) fn is_unlimited(self) -> bool {
        self.over == 0
    }

    /// Whether grains are minted several at once.
    #[inline]
    pub(crate) fn is_in_steps(self) -> bool {
        self.part == 0 && self.over > 1
    }

    /// The grains of the steps in `elapsed`, and the time since the last one.
    #[cold]
    fn steps_in(self, elapsed: u64) -> (u128, u64) {
        (u128::from(elapsed / self.over) * u128::from(self.whole), elapsed % self.over)
    }

    /// The grains minted in `elapsed`, and what of the next one, in parts of `over`, where `rest`
    /// of the first was minted before. In steps, the rest is the time since the last one.
    #[inline]
    fn minted_in(self, elapsed: u64, rest: u64) -> (u128, u64) {
        let whole = u128::from(elapsed) * u128::from(self.whole);
        if self.part == 0 {
            return if self.is_in_steps() { self.steps_in(elapsed) } else { (whole, 0) };
        }
        // Fits: the largest product of two words and another word make up less than 128 bits.
        let parts = u128::from(elapsed) * u128::from(self.part) + u128::from(rest);
        let over = u128::from(self.over);
        #[expect(clippy::cast_possible_truncation, reason = "a remainder is below `over`")]
        (whole + parts / over, (parts % over) as u64)
    }
}

/// How tokens are minted: evenly, or all of a period at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Minting {
    Even,
    /// The periods begin with the line, and again with each new rate.
    InSteps,
    /// One of the periods begins at this time, whatever the rate.
    InStepsFrom(u64),
    /// The periods begin with the first use of the line.
    InStepsFromUse,
}

impl Minting {
    pub(crate) fn speed(self, rate: Rate, token: Grains) -> Speed {
        match self {
            Self::Even => Speed::of(rate, token),
            Self::InSteps | Self::InStepsFrom(_) | Self::InStepsFromUse => {
                Speed::in_steps(rate, token)
            }
        }
    }

    /// When a clock of that speed starts that is to mint from `time` on: then, or when the period
    /// began that goes on at that time.
    pub(crate) fn start(self, time: u64, speed: Speed) -> u64 {
        match self {
            Self::InStepsFrom(begin) if speed.is_in_steps() => {
                let ahead = i128::from(time) - i128::from(begin);
                let since = ahead.rem_euclid(i128::from(speed.over));
                // What would lie before the beginning of all starts there.
                time.saturating_sub(u64::try_from(since).expect("less than a period"))
            }
            _ => time,
        }
    }
}

/// A stretch of minting at one speed: the line stands at `origin` until `start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clock {
    pub(crate) start: u64,
    pub(crate) origin: Position,
    pub(crate) speed: Speed,
    /// When it took over from the clock before it, and how much that one minted in its last
    /// nanosecond (whole grains of it): what that was has been due since then, the rest before.
    pub(crate) since: u64,
    pub(crate) last_step: u64,
}

/// The line at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    /// What is minted, rounded down to the grain.
    pub(crate) minted: Position,
    /// What counts as minted where a full bucket overflows: rounded up if a grain takes longer
    /// than a nanosecond and the one before `now` has not just finished it.
    ///
    /// Rounding down here would let a permit that has overflowed by a fraction of a grain be
    /// used. Where a grain takes a nanosecond or less, whatever is rounded off was minted after
    /// `now - 1`, and windows `(t1, t2]` do not count that; so both are the same.
    pub(crate) filled: Position,
    /// What is minted of the next grain, in parts of the speed's `over`.
    rest: u64,
}

impl Clock {
    /// The clock of a line that starts.
    pub(crate) fn starting(speed: Speed) -> Self {
        Self { start: 0, origin: Position::ORIGIN, speed, since: 0, last_step: 0 }
    }

    /// When one starts that waits for the first use.
    pub(crate) const NOT_STARTED: u64 = u64::MAX;

    /// The clock that takes over at `now`, when `origin` is minted, and stands still until `start`.
    pub(crate) fn followed_by(&self, now: u64, origin: Position, start: u64, speed: Speed) -> Self {
        if self.speed.is_unlimited() {
            // It begins anew, with a full bucket. What was minted before is nothing to it.
            return Self { start, origin, speed, since: now.max(self.since), last_step: 0 };
        }
        if now <= self.since {
            return Self { start, origin, speed, ..*self };
        }
        let last_step = origin.beyond(self.passed(now));
        let last_step = u64::try_from(last_step).unwrap_or(0);
        Self { start, origin, speed, since: now, last_step }
    }

    /// Whether all is minted at `now`: it is unlimited, and not paused.
    #[inline]
    pub(crate) fn is_unlimited_at(&self, now: u64) -> bool {
        self.speed.is_unlimited() && now >= self.start
    }

    #[inline]
    pub(crate) fn read(&self, now: u64) -> Reading {
        if self.is_unlimited_at(now) {
            return Reading { minted: Position::INFINITE, filled: Position::INFINITE, rest: 0 };
        }
        let (grains, rest) = self.speed.minted_in(now.saturating_sub(self.start), 0);
        let minted = self.origin.ahead(grains);
        let Speed { whole, part, .. } = self.speed;
        // In steps nothing is begun; at a rate of zero neither, whatever its period.
        let unfinished = whole == 0 && part > 0 && rest > part;
        Reading { minted, filled: minted.ahead(u128::from(unfinished)), rest }
    }

    /// What was minted, rounded up, one nanosecond before `now`: whoever is used at `now` counts
    /// in windows that begin there, so what starts below this less the capacity has overflowed.
    #[inline]
    pub(crate) fn passed(&self, now: u64) -> Position {
        if self.is_unlimited_at(now.saturating_sub(1)) {
            return Position::INFINITE;
        }
        if now <= self.since {
            return self.origin.behind(u128::from(self.last_step));
        }
        let elapsed = now.saturating_sub(self.start).saturating_sub(1);
        let (grains, rest) = self.speed.minted_in(elapsed, 0);
        self.origin.ahead(grains + u128::from(rest > 0 && self.speed.part > 0))
    }

    /// The first time at which all up to `position` is minted, the exact inverse of
    /// [`Clock::read`]; zero if it came before this clock, `None` if it never comes.
    pub(crate) fn due(&self, position: Position) -> Option<u64> {
        let ahead = position.beyond(self.origin);
        if ahead == 0 {
            let in_last_step = position + Grains(self.last_step) > self.origin;
            return Some(if in_last_step { self.since } else { 0 });
        }
        self.start.checked_add(self.speed.time_for(ahead, 0)?)
    }
}

/// How far off the turn of an interval was at one instant, to be worked out only if asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    speed: Speed,
    /// How long the line stands still.
    pause: u64,
    /// The grains that are missing, and what of the first of them is minted.
    missing: u64,
    rest: u64,
}

impl Turn {
    /// The turn of what ends at `end`, beyond what is minted, from a reading of `clock` at `now`.
    #[inline]
    pub(crate) fn new(clock: &Clock, now: u64, reading: Reading, end: Position) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "within the room of the line")]
        let missing = end.beyond(reading.minted) as u64;
        let pause = clock.start.saturating_sub(now);
        Self { speed: clock.speed, pause, missing, rest: reading.rest }
    }

    /// The turn of what `missing` whole grains are missing of, so long after the last step.
    #[inline]
    pub(crate) fn of_whole(speed: Speed, missing: u64, since_step: u64) -> Self {
        Self { speed, pause: 0, missing, rest: since_step }
    }

    /// A turn so many nanoseconds from then; `None` is never.
    pub(crate) fn after(wait: Option<u64>) -> Self {
        let whole = u64::from(wait.is_some());
        Self::of_whole(Speed { whole, part: 0, over: 1 }, wait.unwrap_or(1), 0)
    }

    /// Nanoseconds from then; `None` if the turn never comes.
    pub(crate) fn wait(&self) -> Option<u64> {
        self.pause.checked_add(self.speed.time_for(u128::from(self.missing), self.rest)?)
    }
}

impl Speed {
    /// The shortest time in which `grains` are minted, where `rest` of the first was minted
    /// before; `None` if that is longer than `u64`.
    fn time_for(self, grains: u128, rest: u64) -> Option<u64> {
        let whole = u128::from(self.whole);
        if grains == 0 || self.is_unlimited() {
            return Some(0);
        }
        if self.part == 0 {
            let steps = grains.checked_div(whole)?;
            let steps = steps + u128::from(steps * whole < grains);
            return u64::try_from(steps * u128::from(self.over) - u128::from(rest)).ok();
        }
        // A division would need a product of up to 192 bits, so the time is searched for: it lies
        // between those at the next higher and the next lower whole speed.
        let slowest = if whole == 0 { u128::MAX } else { grains.div_ceil(whole) };
        let mut high = u64::try_from(slowest).unwrap_or(u64::MAX);
        let mut low = u64::try_from(grains.saturating_sub(1) / (whole + 1)).ok()?;
        if self.minted_in(high, rest).0 < grains {
            return None;
        }
        while low < high {
            let middle = low.midpoint(high);
            if self.minted_in(middle, rest).0 < grains {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Some(high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn speed() -> impl Strategy<Value = Speed> {
        let over = prop_oneof![Just(1), 2..100_u64, any::<u64>().prop_map(|n| n.max(1))];
        let whole = prop_oneof![0..3_u64, 0..1_u64 << 57];
        let even = (whole, any::<u64>(), over).prop_map(|(whole, part, over)| {
            let (part, over) = reduced(part % over, over);
            Speed { whole, part, over }
        });
        let each = prop_oneof![2..100_u64, 2..1_u64 << 40];
        let steps = (1..1_u64 << 57, each).prop_map(|(whole, over)| Speed { whole, part: 0, over });
        prop_oneof![even, steps]
    }

    fn clock() -> impl Strategy<Value = Clock> {
        (speed(), 0..1_u64 << 62)
            .prop_map(|(speed, start)| Clock { start, ..Clock::starting(speed) })
    }

    /// The exact number of grains minted at `now`, in parts of `over`, in 192 bits and more.
    fn is_minted(clock: &Clock, now: u64, position: Position) -> bool {
        let elapsed = now.saturating_sub(clock.start);
        let steps = if clock.speed.is_in_steps() { elapsed / clock.speed.over } else { elapsed };
        let elapsed = u128::from(steps);
        let wanted = position.beyond(clock.origin);
        let whole = elapsed * u128::from(clock.speed.whole);
        let Some(rest) = wanted.checked_sub(whole) else { return true };
        // rest <= elapsed * part / over
        let Some(rest) = rest.checked_mul(u128::from(clock.speed.over)) else { return false };
        rest <= elapsed * u128::from(clock.speed.part)
    }

    proptest! {
        #[test]
        fn minted_is_the_last_grain_that_is_done(clock in clock(), now: u64) {
            let minted = clock.read(now).minted;
            prop_assert!(is_minted(&clock, now, minted));
            prop_assert!(!is_minted(&clock, now, minted.ahead(1)));
        }

        #[test]
        fn due_is_the_first_nanosecond_at_which_it_is_minted(clock in clock(), ahead in 0..1_u128 << 64) {
            let position = clock.origin.ahead(ahead);
            match clock.due(position) {
                Some(due) => {
                    prop_assert!(is_minted(&clock, due, position));
                    prop_assert!(ahead == 0 || !is_minted(&clock, due - 1, position));
                }
                None => prop_assert!(!is_minted(&clock, u64::MAX, position)),
            }
        }

        #[test]
        fn a_turn_comes_when_it_is_due(clock in clock(), now: u64, missing in 1..1_u64 << 62) {
            let reading = clock.read(now);
            let end = reading.minted.ahead(u128::from(missing));
            let wait = Turn::new(&clock, now, reading, end).wait();
            // A turn beyond the clock's end is never; the wait for it may still fit.
            if let Some(due) = clock.due(end) {
                prop_assert_eq!(wait, Some(due - now));
            } else {
                prop_assert!(wait.is_none_or(|wait| now.checked_add(wait).is_none()));
            }
        }

        #[test]
        fn what_has_passed_was_minted_a_nanosecond_ago(clock in clock(), now in 1_u64..) {
            let passed = clock.passed(now);
            let before = clock.read(now - 1).minted;
            // Rounded up.
            prop_assert!(passed == before || (passed == before.ahead(1) && clock.speed.part > 0));
            let Reading { minted, filled, .. } = clock.read(now);
            prop_assert_eq!(filled, minted.max(passed), "it overflows where it must and no more");
        }
    }

    #[test]
    fn a_paused_clock_stands_at_its_origin() {
        let speed = Speed { whole: 3, part: 1, over: 2 };
        let clock = Clock { start: 100, ..Clock::starting(speed) };
        assert_eq!([0, 99, 100].map(|now| clock.read(now).minted), [Position::ORIGIN; 3]);
        assert_eq!(clock.read(102).minted, Position::ORIGIN.ahead(7));
        assert_eq!(clock.due(Position::ORIGIN.ahead(7)), Some(102));
    }
}
