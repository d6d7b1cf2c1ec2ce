//! The tokens that are at hand: intervals of the server's line, each token with the time from which it
//! may be used and the time from which it may not. Pure.
//!
//! Times are nanoseconds of the process's own clock. All that is known of the server's is that it
//! showed a certain time between when a request was sent and when its reply was received. So a token
//! counts as minted when it is by the earliest that the server's clock can show, and as overflowed when it
//! may be by the latest. The two clocks may go apart by 1/1024, twice what an NTP daemon makes of them.

use crate::rate::Rate;
use std::collections::VecDeque;

/// One in so many nanoseconds is what two clocks may go apart.
const DRIFT: i128 = 1_024;

/// How tokens are minted, and how many there are before they overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    pub(crate) rate: Rate,
    pub(crate) burst: u32,
}

impl Pace {
    /// In which time so many tokens are minted, rounded down.
    ///
    /// # Panics
    ///
    /// At a rate of zero: there are no leases then.
    fn time_of(self, tokens: i128) -> i128 {
        (tokens * i128::from(self.rate.period)).div_euclid(i128::from(self.rate.tokens))
    }
}

/// When the server was seen, by the clock of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sighting {
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

impl Sighting {
    /// From when on the server's clock is certainly `ahead` of what it showed.
    fn certainly(self, ahead: i128) -> u64 {
        let ahead = ahead.max(0);
        clamp(i128::from(self.received) + ahead + (ahead + DRIFT - 1) / DRIFT)
    }

    /// Until when the server's clock is certainly not yet further than `ahead`.
    fn not_beyond(self, ahead: i128) -> u64 {
        clamp(i128::from(self.sent) + ahead - (ahead.max(0) + DRIFT - 1) / DRIFT)
    }
}

fn clamp(time: i128) -> u64 {
    u64::try_from(time.max(0)).unwrap_or(u64::MAX)
}

/// An interval of the server's line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Batch<P> {
    /// Where it begins on the line.
    pub(crate) position: P,
    /// When its beginning was minted, in nanoseconds after what the server showed then. Rounded up.
    pub(crate) start: i64,
    pub(crate) seen: Sighting,
    pub(crate) tokens: u32,
    /// So many of them are gone: used, or overflowed.
    pub(crate) gone: u32,
}

impl<P> Batch<P> {
    /// From when on this token may be used.
    fn due(&self, pace: Pace, token: u32) -> u64 {
        let rounded_down = pace.time_of(i128::from(token) + 1);
        self.seen.certainly(i128::from(self.start) + rounded_down + 1)
    }

    /// Until when this token may be used.
    fn overflow(&self, pace: Pace, token: u32) -> u64 {
        // What was rounded up on the way here is at most a microsecond.
        let from_start = pace.time_of(i128::from(token) + i128::from(pace.burst));
        self.seen.not_beyond(i128::from(self.start) - 1_000 + from_start)
    }

    fn left(&self) -> u32 {
        self.tokens - self.gone
    }

    /// How many are gone at `now`, with those that have overflowed.
    fn gone_at(&self, pace: Pace, now: u64) -> u32 {
        let (mut alive, mut gone) = (self.tokens, self.gone);
        // The later of two tokens overflows later.
        while gone < alive {
            let middle = gone + (alive - gone) / 2;
            if self.overflow(pace, middle) < now {
                gone = middle + 1;
            } else {
                alive = middle;
            }
        }
        gone
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

/// All that is at hand, in the order in which it was minted.
#[derive(Debug)]
pub(crate) struct Stock<P> {
    pace: Pace,
    batches: VecDeque<Batch<P>>,
}

impl<P> Stock<P> {
    pub(crate) fn new(pace: Pace) -> Self {
        Self { pace, batches: VecDeque::new() }
    }

    pub(crate) fn add(&mut self, batch: Batch<P>) {
        let due = |batch: &Batch<P>| batch.due(self.pace, 0);
        let at = self.batches.partition_point(|other| due(other) <= due(&batch));
        self.batches.insert(at, batch);
    }

    /// Forgets what has overflowed, and says how many tokens are left: those that are not minted yet
    /// too.
    pub(crate) fn left(&mut self, now: u64) -> u32 {
        for batch in &mut self.batches {
            batch.gone = batch.gone_at(self.pace, now);
        }
        self.batches.retain(|batch| batch.left() > 0);
        self.batches.iter().fold(0, |sum, batch| sum.saturating_add(batch.left()))
    }

    /// Takes `tokens` that may all be used at `now`, the earliest, if there are so many.
    pub(crate) fn take(&mut self, tokens: u32, now: u64) -> Finding {
        self.left(now);
        let Some((first, due)) = self.turn(tokens) else { return Finding::Short };
        if due > now {
            return Finding::Wait(due);
        }
        let mut missing = tokens;
        for batch in self.batches.iter_mut().skip(first) {
            let part = missing.min(batch.left());
            batch.gone += part;
            missing -= part;
        }
        Finding::Taken
    }

    /// The batch from which on `tokens` may all be used at the same time, and that time.
    ///
    /// Within a batch the first tokens are as good as any: all that overflow before the last one is
    /// minted do so by as much.
    fn turn(&self, tokens: u32) -> Option<(usize, u64)> {
        (0..self.batches.len()).find_map(|first| {
            let begin = &self.batches[first];
            let mut missing = tokens;
            let mut rest = self.batches.iter().skip(first);
            let due = rest.find_map(|batch| {
                if missing <= batch.left() {
                    return Some(batch.due(self.pace, batch.gone + missing.max(1) - 1));
                }
                missing -= batch.left();
                None
            })?;
            (due <= begin.overflow(self.pace, begin.gone)).then_some((first, due))
        })
    }

    /// When the last token at hand may be used: from then on, more is certain to be wanted.
    #[cfg(test)]
    fn batches(&self) -> impl Iterator<Item = &Batch<P>> {
        self.batches.iter()
    }

    /// Gives away all that is left.
    pub(crate) fn drain(&mut self, now: u64) -> impl Iterator<Item = Batch<P>> + '_ {
        self.left(now);
        self.batches.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MILLI: u64 = 1_000_000;
    /// A token each millisecond, and ten before they overflow.
    const PACE: Pace = Pace { rate: Rate::per_second(1_000), burst: 10 };

    fn batch(start: i64, tokens: u32) -> Batch<()> {
        let seen = Sighting { sent: 100 * MILLI, received: 101 * MILLI };
        Batch { position: (), start, seen, tokens, gone: 0 }
    }

    fn stock(batches: impl IntoIterator<Item = Batch<()>>) -> Stock<()> {
        let mut stock = Stock::new(PACE);
        batches.into_iter().for_each(|batch| stock.add(batch));
        stock
    }

    #[test]
    fn what_was_minted_long_ago_may_be_used_at_once() {
        let mut stock = stock([batch(-5_000_000, 3)]);
        assert_eq!(stock.take(2, 101 * MILLI), Finding::Taken);
        assert_eq!(stock.take(2, 101 * MILLI), Finding::Short);
        assert_eq!(stock.left(101 * MILLI), 1);
    }

    #[test]
    fn what_is_not_minted_yet_may_be_used_when_it_certainly_is() {
        let mut stock = stock([batch(0, 3)]);
        let Finding::Wait(first) = stock.take(1, 101 * MILLI) else { panic!("it is not minted") };
        // A millisecond after the reply, and what the clocks may go apart in a millisecond.
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
        let mut stock = stock([batch(-6_000_000, 3)]);
        assert_eq!(stock.left(103 * MILLI), 3);
        assert_eq!(stock.left(104 * MILLI), 2);
        assert_eq!(stock.left(106 * MILLI), 0);
    }

    #[test]
    fn tokens_too_far_apart_are_not_used_together_and_the_next_ones_are() {
        let mut stock = stock([batch(-8_000_000, 1), batch(0, 3)]);
        // The first overflows two milliseconds from now, before the third of the others is minted.
        let found = stock.take(4, 101 * MILLI);
        assert_eq!(found, Finding::Short);
        let found = stock.take(3, 101 * MILLI);
        assert!(matches!(found, Finding::Wait(due) if due > 104 * MILLI), "{found:?}");
        assert_eq!(stock.take(1, 101 * MILLI), Finding::Taken, "others use it");
    }

    #[test]
    fn a_batch_that_was_minted_earlier_is_used_first() {
        let mut stock = stock([batch(0, 1), batch(-3_000_000, 1)]);
        assert_eq!(stock.take(1, 101 * MILLI), Finding::Taken);
        assert!(matches!(stock.take(1, 101 * MILLI), Finding::Wait(_)));
    }

    #[test]
    fn what_is_left_is_given_away_once() {
        let mut stock = stock([batch(-4_000_000, 4)]);
        assert_eq!(stock.take(1, 101 * MILLI), Finding::Taken);
        let rest: Vec<_> = stock.drain(101 * MILLI).collect();
        assert_eq!((rest.len(), rest[0].gone, rest[0].tokens), (1, 1, 4));
        assert_eq!(stock.left(101 * MILLI), 0);
    }

    #[derive(Clone, Debug)]
    enum Step {
        /// The server is asked for so many, and answers so many microseconds later; so many passed at
        /// the server meanwhile.
        Refill {
            tokens: u32,
            before: u64,
            after: u64,
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
            // The server's time in nanoseconds; it is as good as 1 + drift / 10^6 times ours.
            let server = |now: u64| {
                let now = i64::try_from(now).unwrap();
                7_000_000_000 + now + now / 1_000_000 * drift
            };
            let (mut now, mut spent) = (0_u64, 7_000_000_000_i64 - 10_000_000);
            let mut stock = Stock::new(PACE);
            let mut uses: Vec<i64> = Vec::new();
            for step in steps {
                match step {
                    Step::Refill { tokens, before, after } => {
                        let sent = now;
                        now += before * 1_000;
                        // On this line a token is a millisecond: minted is the time itself.
                        let seen = server(now) / 1_000 * 1_000;
                        let start = spent.max(seen - 10_000_000);
                        spent = start + i64::from(tokens) * 1_000_000;
                        now += after * 1_000;
                        stock.add(Batch {
                            position: (),
                            start: start - seen,
                            seen: Sighting { sent, received: now },
                            tokens,
                            gone: 0,
                        });
                    }
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
                    // The window begins just before the first of them. The server's clock goes in
                    // microseconds.
                    prop_assert!(used * 1_000_000 <= 10_000_000 + last - first + 1_000);
                }
            }
            let left: u32 = stock.batches().map(Batch::left).sum();
            prop_assert!(left >= stock.left(now));
        }
    }
}
