//! The word of a concurrency limit that adapts.

use crate::sync::{AtomicU64, Ordering};

/// Bits below the point of a limit.
const FRACTION: u32 = 20;
/// A limit of one.
pub(crate) const ONE: u64 = 1 << FRACTION;
/// The largest limit: 20 bits before the point.
pub(crate) const MOST: u32 = (1 << 20) - 1;

const LIMIT_BITS: u32 = 40;
const LIMIT: u64 = (1 << LIMIT_BITS) - 1;
/// Rounds are counted in the 24 bits that are left.
const ROUND: u64 = (1 << (64 - LIMIT_BITS)) - 1;

/// How many are allowed, and since how many decreases.
///
/// | bits | |
/// |---|---|
/// | 0 to 39 | the limit, in 2<sup>-20</sup> |
/// | 40 to 63 | the round: how often it was decreased, modulo 2<sup>24</sup> |
///
/// A call that lasts for exactly 2<sup>24</sup> decreases is taken for one of this round. Nothing worse
/// comes of it than that its report counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Level {
    pub(crate) limit: u64,
    pub(crate) round: u64,
}

impl Level {
    /// As a word.
    fn pack(self) -> u64 {
        (self.round & ROUND) << LIMIT_BITS | self.limit & LIMIT
    }

    fn unpack(word: u64) -> Self {
        Self { limit: word & LIMIT, round: word >> LIMIT_BITS }
    }

    /// How many that are.
    pub(crate) fn whole(self) -> u32 {
        u32::try_from(self.limit / ONE).unwrap_or(MOST)
    }

    /// The first level of the next round.
    pub(crate) fn cut(self, limit: u64) -> Self {
        Self { limit, round: (self.round + 1) & ROUND }
    }
}

#[derive(Debug)]
pub(crate) struct AtomicLevel(AtomicU64);

impl AtomicLevel {
    pub(crate) fn new(limit: u32) -> Self {
        let level = Level { limit: u64::from(limit) * ONE, round: 0 };
        Self(AtomicU64::new(level.pack()))
    }

    pub(crate) fn load(&self) -> Level {
        // Relaxed: the level is all in this word, and publishes nothing.
        Level::unpack(self.0.load(Ordering::Relaxed))
    }

    /// Moves to what `next` makes of the level; says from where to where, if `next` has an answer.
    ///
    /// It goes again only if another report has moved it, so of two reports neither is lost, and the
    /// second is judged by what the first has made of it.
    pub(crate) fn advance(&self, next: impl Fn(Level) -> Option<Level>) -> Option<(Level, Level)> {
        let mut before = self.load();
        loop {
            let after = next(before)?;
            // Relaxed: as above. What keeps an update from being lost is that it is an exchange.
            let exchanged = self.0.compare_exchange_weak(
                before.pack(),
                after.pack(),
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            match exchanged {
                Ok(_) => return Some((before, after)),
                Err(word) => before = Level::unpack(word),
            }
        }
    }
}

#[cfg(all(test, not(paceline_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_read_back_from_its_word() {
        for limit in [ONE, 5 * ONE + 3, u64::from(MOST) * ONE] {
            for round in [0, 1, ROUND] {
                let level = Level { limit, round };
                assert_eq!(Level::unpack(level.pack()), level);
            }
        }
        assert_eq!(Level { limit: ONE, round: ROUND }.cut(ONE).round, 0);
    }
}
