//! Windows: the steps of a line each of which is for itself. No interval lies in two of them, and
//! none is used when the next one has begun, not even in its first nanosecond.

use super::Line;
use super::booking::Booking;
use super::config::Config;
use super::decide::Tail;
use super::holes::Free;
use super::position::{Grains, Interval, Position};

/// The windows of a line in steps that mints all that it holds, at one instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Windows {
    /// Where one of them ends.
    boundary: Position,
    length: Grains,
}

impl Windows {
    pub(super) fn of(boundary: Position, config: &Config) -> Self {
        Self { boundary, length: config.capacity }
    }

    /// Where the window ends that `position` lies in.
    pub(super) fn end_of(self, position: Position) -> Position {
        let length = u128::from(self.length.0.max(1));
        match self.boundary.beyond(position) {
            0 => {
                let windows = position.beyond(self.boundary) / length + 1;
                self.boundary.ahead(windows * length)
            }
            behind => self.boundary.behind((behind - 1) / length * length),
        }
    }

    /// Whether what lies between is in one window.
    pub(super) fn hold(self, start: Position, end: Position) -> bool {
        end <= self.end_of(start)
    }

    /// `interval`, or one as long in the next window if it lies in two. It is no longer than a window.
    pub(super) fn fit(self, interval: Interval) -> Interval {
        let end = self.end_of(interval.start);
        if interval.end <= end {
            return interval;
        }
        Interval { start: end, end: end.ahead(interval.end.beyond(interval.start)) }
    }
}

/// The pieces of a hole that lie in different windows, as one can since there is another limit.
pub(super) fn split(windows: Option<Windows>, free: Free) -> impl Iterator<Item = Free> {
    let end = free.interval.end;
    let piece = move |start| {
        let end = windows.map_or(end, |windows| windows.end_of(start).min(end));
        Free { interval: Interval { start, end }, ..free }
    };
    let next = move |last: &Free| Some(last.interval.end).filter(|start| *start < end).map(piece);
    std::iter::successors(Some(piece(free.interval.start)), next)
}

impl Line {
    /// The windows of a line that has some, where so much is minted.
    pub(super) fn windows_at(&self, minted: Position, config: &Config) -> Option<Windows> {
        self.has_windows.then(|| Windows::of(minted, config))
    }

    /// Where one that asks for `cost` would be at the end of the line.
    pub(super) fn at_tail(&self, tail: &Tail, config: &Config, cost: Grains) -> Interval {
        let interval = tail.interval(cost);
        self.windows_at(tail.minted(), config).map_or(interval, |windows| windows.fit(interval))
    }

    /// What is free at the end of the line for one that asks for `cost`: what is left of the window
    /// there, if that is too little, and then as much as it asks.
    pub(super) fn free_at_tail(
        &self,
        tail: &Tail,
        config: &Config,
        cost: Grains,
    ) -> impl Iterator<Item = Free> {
        let interval = self.at_tail(tail, config, cost);
        let left = Interval { start: tail.start, end: interval.start };
        let left = (left.start < left.end).then_some(left);
        left.into_iter().chain([interval]).map(|interval| Free { hole: None, interval })
    }

    /// Leaves to others what lies between the end of the line as it was and a booking there that
    /// went into the next window.
    pub(super) fn leave_gap(&self, tail: Position, start: Position) {
        if tail < start {
            self.holes.put(Interval { start: tail, end: start });
        }
    }

    /// Whether a booking has come to lie in two windows, since there is another limit.
    pub(super) fn is_torn(&self, config: &Config, now: u64, booking: &Booking) -> bool {
        let mut pieces = booking.pieces();
        let Some(first) = pieces.next().filter(|_| self.has_windows) else { return false };
        let windows = Windows::of(config.clock.read(now).minted, config);
        !windows.hold(first.start, pieces.next_back().unwrap_or(first).end)
    }

    /// The first position at which a hole still counts at `now`.
    pub(super) fn alive_from(&self, config: &Config, now: u64) -> Position {
        if self.has_windows {
            config.horizon(config.clock.read(now).filled)
        } else {
            config.alive_from(now)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_in_two_windows_goes_into_the_second() {
        let at = |grains| Position::ORIGIN.ahead(100).ahead(grains);
        let windows = Windows { boundary: at(50), length: Grains(10) };
        for (start, length, fitted) in [
            (50, 10, 50),
            (51, 10, 60),
            (51, 9, 51),
            (49, 1, 49),
            (49, 2, 50),
            (40, 10, 40),
            (41, 10, 50),
            (39, 2, 40),
            (30, 10, 30),
            (78, 3, 80),
        ] {
            let interval = Interval { start: at(start), end: at(start + length) };
            let fitted = Interval { start: at(fitted), end: at(fitted + length) };
            assert_eq!(windows.fit(interval), fitted, "{start} {length}");
            assert!(windows.hold(fitted.start, fitted.end));
        }
    }
}
