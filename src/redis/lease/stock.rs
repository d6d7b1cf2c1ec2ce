//! The tokens that are at hand: what was booked on the server's line, and not used yet. Pure.

use super::seen::Seen;
use crate::redis::reply::Piece;
use std::collections::VecDeque;

/// What is left of a booking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Batch<B> {
    pub(crate) booking: B,
    /// Where it is on the line, in order and apart.
    pub(crate) pieces: Vec<Piece>,
    pub(crate) tokens: u32,
}

impl<B> Batch<B> {
    /// From when on the token with this number may be used.
    fn minted(&self, seen: &Seen, number: u32) -> u64 {
        let end = (i64::from(number) + 1) * seen.token();
        self.position(end - 1).map_or(u64::MAX, |position| seen.minted(position + 1))
    }

    /// Until when it may be used.
    fn alive(&self, seen: &Seen, number: u32) -> u64 {
        self.position(i64::from(number) * seen.token()).map_or(0, |position| seen.alive(position))
    }

    /// Where the grain is that is so many from the beginning.
    fn position(&self, mut grains: i64) -> Option<i64> {
        for Piece { start, end } in &self.pieces {
            if grains < end - start {
                return Some(start + grains);
            }
            grains -= end - start;
        }
        None
    }

    /// Cuts off the first `tokens`.
    fn cut(&mut self, seen: &Seen, tokens: u32) {
        self.tokens -= tokens;
        let mut grains = i64::from(tokens) * seen.token();
        self.pieces.retain_mut(|Piece { start, end }| {
            let part = grains.min(*end - *start);
            *start += part;
            grains -= part;
            start < end
        });
    }

    /// Cuts off the first `tokens`, if they were minted when the server was seen.
    pub(crate) fn split_minted(&mut self, seen: &Seen, tokens: u32) -> Option<Self>
    where
        B: Clone,
    {
        let last = i64::from(tokens.checked_sub(1)?);
        let end = self.position((last + 1) * seen.token() - 1)? + 1;
        let minted = seen.clock.due(end).is_some_and(|due| due <= seen.now);
        minted.then(|| self.split(seen, tokens))
    }

    /// Cuts off the first `tokens`, as a batch of their own.
    fn split(&mut self, seen: &Seen, tokens: u32) -> Self
    where
        B: Clone,
    {
        let mut grains = i64::from(tokens) * seen.token();
        let mut pieces = self.pieces.clone();
        pieces.retain_mut(|Piece { start, end }| {
            *end = (*start + grains).min(*end);
            grains -= *end - *start;
            start < end
        });
        self.cut(seen, tokens);
        Self { booking: self.booking.clone(), pieces, tokens }
    }

    /// How many of the first have overflowed at `now`.
    fn overflowed(&self, seen: &Seen, now: u64) -> u32 {
        if self.tokens == 0 || self.alive(seen, 0) >= now {
            return 0;
        }
        let (mut overflowed, mut alive) = (1, self.tokens);
        // The later of two tokens overflows later.
        while overflowed < alive {
            let middle = overflowed + (alive - overflowed) / 2;
            if self.alive(seen, middle) < now {
                overflowed = middle + 1;
            } else {
                alive = middle;
            }
        }
        overflowed
    }
}

/// What a request for tokens finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// They were there, and are taken.
    Taken,
    /// They will be, then.
    Wait(u64),
    /// They will not be without more from the server.
    Short,
}

/// All that is at hand, in the order in which it is minted.
#[derive(Debug)]
pub(crate) struct Stock<B> {
    seen: Seen,
    batches: VecDeque<Batch<B>>,
}

impl<B: Clone> Stock<B> {
    pub(crate) fn new(seen: Seen) -> Self {
        Self { seen, batches: VecDeque::new() }
    }

    /// What the server showed last.
    pub(crate) fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Goes by a newer view of the server from now on.
    pub(crate) fn see(&mut self, seen: Seen) {
        let older = std::mem::replace(&mut self.seen, seen);
        for batch in std::mem::take(&mut self.batches) {
            self.add_seen(&older, batch);
        }
    }

    /// Adds what was placed by an older view of the server.
    pub(crate) fn add_seen(&mut self, older: &Seen, mut batch: Batch<B>) {
        // What the server has forgotten, it hands out again.
        if self.seen.clock.goes_on_as(older.clock) && self.seen.token() == older.token() {
            let shift = self.seen.clock.shift(older.clock.epoch);
            for piece in &mut batch.pieces {
                piece.start += shift;
                piece.end += shift;
            }
            self.add(batch);
        }
    }

    pub(crate) fn add(&mut self, batch: Batch<B>) {
        let begin = |batch: &Batch<B>| batch.pieces.first().map_or(i64::MAX, |piece| piece.start);
        let at = self.batches.partition_point(|other| begin(other) <= begin(&batch));
        self.batches.insert(at, batch);
    }

    /// Forgets what has overflowed, and says how many tokens are left: those that are not minted yet
    /// too.
    pub(crate) fn left(&mut self, now: u64) -> u32 {
        let seen = &self.seen;
        for batch in &mut self.batches {
            let overflowed = batch.overflowed(seen, now);
            if overflowed > 0 {
                batch.cut(seen, overflowed);
            }
        }
        self.batches.retain(|batch| batch.tokens > 0);
        self.batches.iter().fold(0, |sum, batch| sum.saturating_add(batch.tokens))
    }

    /// Takes `tokens`, the earliest that may all be used at `now`, if there are so many.
    pub(crate) fn take(&mut self, tokens: u32, now: u64) -> Finding {
        if tokens > self.left(now) {
            return Finding::Short;
        }
        let Some((first, number, minted)) = self.turn(tokens) else { return Finding::Short };
        if minted > now {
            return Finding::Wait(minted);
        }
        // What lies before them is for those who ask for less.
        let before = (number > 0).then(|| self.batches[first].split(&self.seen, number));
        let mut missing = tokens;
        for batch in self.batches.iter_mut().skip(first) {
            let part = missing.min(batch.tokens);
            batch.cut(&self.seen, part);
            missing -= part;
        }
        if let Some(before) = before {
            self.batches.insert(first, before);
        }
        Finding::Taken
    }

    /// From where on `tokens` may all be used at once, as a batch and a number in it, and when.
    fn turn(&self, tokens: u32) -> Option<(usize, u32, u64)> {
        let firsts = self.batches.iter().enumerate();
        firsts.flat_map(|(at, batch)| (0..batch.tokens).map(move |number| (at, number))).find_map(
            |(at, number)| {
                let mut last = number + tokens.max(1) - 1;
                let batch = self.batches.iter().skip(at).find(|batch| {
                    let beyond = last >= batch.tokens;
                    if beyond {
                        last -= batch.tokens;
                    }
                    !beyond
                })?;
                let minted = batch.minted(&self.seen, last);
                let together = minted <= self.batches[at].alive(&self.seen, number);
                together.then_some((at, number, minted))
            },
        )
    }

    /// Gives away all that is left.
    pub(crate) fn drain(&mut self, now: u64) -> impl Iterator<Item = Batch<B>> + '_ {
        self.left(now);
        self.batches.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::reply::Clock;
    use crate::redis::settings::Settings;
    use proptest::prelude::*;

    const MILLI: u64 = 1_000_000;
    /// What the server's clock shows when it is seen, in microseconds.
    const SHOWN: i64 = 7_000_000;

    /// A token of a thousand grains each millisecond, and ten before they overflow. Positions are the
    /// server's time since it was `SHOWN`.
    fn seen(now: i64, sent: u64, received: u64) -> Seen {
        let settings = Settings { version: 0, token: 1_000, grains: 1, over: 1, capacity: 10_000 };
        let clock = Clock { settings, epoch: 0, start: SHOWN, origin: 0 };
        Seen { sent, received, now, clock }
    }

    fn batch(pieces: &[(i64, i64)]) -> Batch<()> {
        let grains: i64 = pieces.iter().map(|(start, end)| end - start).sum();
        let tokens = u32::try_from(grains / 1_000).unwrap();
        let pieces = pieces.iter().map(|&(start, end)| Piece { start, end }).collect();
        Batch { booking: (), pieces, tokens }
    }

    /// A request was sent at 100 ms of our time, and answered at 101 ms.
    fn stock(batches: &[&[(i64, i64)]]) -> Stock<()> {
        let mut stock = Stock::new(seen(SHOWN, 100 * MILLI, 101 * MILLI));
        for pieces in batches {
            stock.add(batch(pieces));
        }
        stock
    }

    #[test]
    fn what_was_minted_long_ago_may_be_used_at_once() {
        let mut stock = stock(&[&[(-5_000, -2_000)]]);
        assert_eq!(stock.take(2, 101 * MILLI), Finding::Taken);
        assert_eq!(stock.take(2, 101 * MILLI), Finding::Short);
        assert_eq!(stock.left(101 * MILLI), 1);
    }

    #[test]
    fn what_is_not_minted_yet_may_be_used_when_it_certainly_is() {
        let mut stock = stock(&[&[(0, 3_000)]]);
        let Finding::Wait(first) = stock.take(1, 101 * MILLI) else { panic!("it is not minted") };
        // A millisecond after the answer, and what the clocks may go apart in a millisecond.
        assert!((102 * MILLI..102 * MILLI + 2_000).contains(&first), "{first}");
        let Finding::Wait(third) = stock.take(3, 101 * MILLI) else { panic!("it is not minted") };
        assert!((104 * MILLI..104 * MILLI + 4_000).contains(&third), "{third}");
        assert_eq!(stock.take(1, first - 1), Finding::Wait(first));
        assert_eq!(stock.take(1, first), Finding::Taken);
        assert_eq!(stock.take(2, third), Finding::Taken);
    }

    #[test]
    fn what_may_have_overflowed_is_gone() {
        // The first overflows four milliseconds after the request was sent, at the earliest.
        let mut stock = stock(&[&[(-6_000, -3_000)]]);
        assert_eq!(stock.left(103 * MILLI), 3);
        assert_eq!(stock.left(104 * MILLI), 2);
        assert_eq!(stock.left(106 * MILLI), 0);
    }

    #[test]
    fn tokens_too_far_apart_are_not_used_together_and_are_left_for_others() {
        let mut stock = stock(&[&[(-8_000, -7_000)], &[(0, 3_000)]]);
        // The first overflows two milliseconds from now, before the third of the others is minted.
        assert_eq!(stock.take(4, 101 * MILLI), Finding::Short);
        let found = stock.take(3, 101 * MILLI);
        assert!(matches!(found, Finding::Wait(due) if due > 104 * MILLI), "{found:?}");
        assert_eq!(stock.take(1, 101 * MILLI), Finding::Taken);
    }

    #[test]
    fn a_token_in_two_pieces_lives_from_the_end_of_the_last_to_the_overflow_of_the_first() {
        let mut stock = stock(&[&[(-7_500, -7_000), (500, 2_000)]]);
        let found = stock.take(1, 101 * MILLI);
        assert!(matches!(found, Finding::Wait(due) if due < 102 * MILLI + 2_000), "{found:?}");
        assert_eq!(stock.left(102 * MILLI), 2);
        assert_eq!(stock.left(103 * MILLI), 1);
        let found = stock.take(1, 103 * MILLI);
        assert!(matches!(found, Finding::Wait(due) if due < 103 * MILLI + 4_000), "{found:?}");
    }

    #[test]
    fn a_batch_that_was_minted_earlier_is_used_first() {
        let mut stock = stock(&[&[(0, 1_000)], &[(-3_000, -2_000)]]);
        assert_eq!(stock.take(1, 101 * MILLI), Finding::Taken);
        assert!(matches!(stock.take(1, 101 * MILLI), Finding::Wait(_)));
    }

    #[test]
    fn what_is_left_is_given_away_once() {
        let mut stock = stock(&[&[(-4_000, 0)]]);
        assert_eq!(stock.take(1, 101 * MILLI), Finding::Taken);
        let rest: Vec<_> = stock.drain(101 * MILLI).collect();
        assert_eq!(rest, [batch(&[(-3_000, 0)])]);
        assert_eq!(stock.left(101 * MILLI), 0);
    }

    #[test]
    fn a_newer_view_moves_what_is_at_hand() {
        let mut stock = stock(&[&[(-4_000, -2_000)]]);
        let older = *stock.seen();
        let lap = -older.clock.shift(-1);
        let clock = Clock { epoch: 1, origin: older.clock.origin - lap, ..older.clock };
        stock.see(Seen { clock, ..older });
        assert_eq!(stock.left(101 * MILLI), 2);
        assert_eq!(stock.take(2, 101 * MILLI), Finding::Taken);
    }

    #[test]
    fn what_the_server_has_forgotten_is_not_used() {
        let mut stock = stock(&[&[(-4_000, -2_000)]]);
        let older = *stock.seen();
        let clock = Clock { epoch: 1_000_000, ..older.clock };
        stock.see(Seen { clock, ..older });
        assert_eq!(stock.left(101 * MILLI), 0);
    }

    #[derive(Clone, Debug)]
    enum Step {
        /// The server is asked for so many, and answers so many microseconds later, in the middle
        /// of which it does.
        Refill {
            tokens: u32,
            before: u64,
            after: u64,
        },
        /// Others leave a hole in front of the next refill.
        Skip {
            micros: i64,
        },
        Take {
            tokens: u32,
            pause: u64,
        },
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (1..8_u32, 0..2_000_u64, 0..2_000_u64)
                .prop_map(|(tokens, before, after)| Step::Refill { tokens, before, after }),
            (0..2_500_i64).prop_map(|micros| Step::Skip { micros }),
            (1..6_u32, 0..3_000_u64).prop_map(|(tokens, pause)| Step::Take { tokens, pause }),
        ]
    }

    proptest! {
        /// A server whose clock drifts, and a process that uses what it leased whenever it may: by the
        /// server's clock, no window has more than the burst and what was minted in it.
        #[test]
        fn by_the_servers_clock_no_window_has_too_many(
            steps in prop::collection::vec(step(), 1..80),
            drift in -900_i64..900,
            patient in any::<bool>(),
        ) {
            // What the server's clock shows, which goes 1 + drift / 10^6 times as fast as ours.
            let server = |now: u64| {
                let nanos = i128::from(now);
                let shown = (nanos + nanos * i128::from(drift) / 1_000_000) / 1_000;
                SHOWN + i64::try_from(shown).unwrap()
            };
            let (mut now, mut spent) = (0_u64, -10_000_i64);
            let mut stock = Stock::new(seen(SHOWN, 0, 0));
            let mut uses: Vec<i64> = Vec::new();
            for step in steps {
                match step {
                    Step::Refill { tokens, before, after } => {
                        let sent = now;
                        now += before * 1_000;
                        let shown = server(now);
                        let start = spent.max(shown - SHOWN - 10_000);
                        spent = start + i64::from(tokens) * 1_000;
                        now += after * 1_000;
                        stock.see(seen(shown, sent, now));
                        stock.add(batch(&[(start, spent)]));
                    }
                    Step::Skip { micros } => spent += micros,
                    Step::Take { tokens, pause } => {
                        let mut found = stock.take(tokens, now);
                        if let (Finding::Wait(due), true) = (found, patient) {
                            prop_assert!(due > now);
                            now = due;
                            found = stock.take(tokens, now);
                            prop_assert_eq!(found, Finding::Taken);
                        }
                        if found == Finding::Taken {
                            uses.extend((0..tokens).map(|_| server(now)));
                        }
                        now += pause * 1_000;
                    }
                }
            }
            for (i, first) in uses.iter().enumerate() {
                for (j, last) in uses.iter().enumerate().skip(i) {
                    let used = i64::try_from(j - i + 1).unwrap();
                    // The window begins a microsecond before the first of them.
                    prop_assert!(used * 1_000 <= 10_000 + last - first + 1);
                }
            }
        }
    }
}
