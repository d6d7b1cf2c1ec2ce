//! The marks: for each sub-window, how many places were used before it began.
//!
//! A mark is decided once, by a compare-and-swap, and all go by it from then on. It is kept in a
//! ring for two windows and more.

use crate::sync::{AtomicU64, Ordering};
use crossbeam_utils::CachePadded;

/// How much of a place fits into a mark. Places are told apart by it within half of that.
const PLACE_BITS: u32 = 36;

/// Places that are compared lie nearer to each other than this.
pub(super) const ROOM: u64 = 1 << (PLACE_BITS - 1);

pub(super) struct Marks {
    /// The last sub-window whose mark is decided.
    latest: CachePadded<AtomicU64>,
    /// The last sub-window whose mark somebody is about to decide.
    turning: AtomicU64,
    /// Each word is the lap of the ring that it is of, and a place.
    ring: Box<[AtomicU64]>,
}

/// What the ring says of a sub-window.
enum Entry {
    Decided(u64),
    /// Not yet: this is the word of an earlier one.
    Before(u64),
    /// Not any more.
    After,
}

impl Marks {
    /// Marks for windows of so many sub-windows, all at the place 0. Time begins in the
    /// sub-window `latest`.
    pub(super) fn new(segments: u64) -> Self {
        let length = (2 * segments + 2).next_power_of_two();
        // The first has the number of the second lap.
        let word = |index: u64| if index == 0 { 1 << PLACE_BITS } else { 0 };
        Self {
            latest: CachePadded::new(AtomicU64::new(length)),
            turning: AtomicU64::new(length),
            ring: (0..length).map(|index| AtomicU64::new(word(index))).collect(),
        }
    }

    #[inline]
    pub(super) fn length(&self) -> u64 {
        self.ring.len() as u64
    }

    #[inline]
    pub(super) fn latest(&self) -> u64 {
        // Acquire: pairs with the Release in `turn_to`. Who sees a sub-window as decided finds its
        // mark and those before it in the ring.
        self.latest.load(Ordering::Acquire)
    }

    /// The last sub-window whose mark may be in the hand of somebody who looked at the head before
    /// the caller changed it.
    pub(super) fn turning(&self) -> u64 {
        // A read-modify-write, as the announcement in `turn_to`: of the two one comes first. If it
        // is this one, its Release pairs with the Acquire of the other, who then sees the head as
        // the caller left it. If it is the other, this one says so. A load could miss both.
        self.turning.fetch_max(0, Ordering::AcqRel)
    }

    /// The mark of `sub`, if it is decided and still in the ring. `near` is a place that is near.
    #[inline]
    pub(super) fn get(&self, sub: u64, near: u64) -> Option<u64> {
        match self.entry(sub, near) {
            Entry::Decided(place) => Some(place),
            _ => None,
        }
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "less than the length of the ring")]
    fn word(&self, sub: u64) -> &AtomicU64 {
        &self.ring[(sub & (self.length() - 1)) as usize]
    }

    fn lap(&self, sub: u64) -> u64 {
        sub / self.length()
    }

    #[inline]
    fn entry(&self, sub: u64, near: u64) -> Entry {
        // Acquire: pairs with the Release in `turn_to`, for one who finds a mark decided before
        // `latest` says so.
        let word = self.word(sub).load(Ordering::Acquire);
        let behind = (self.lap(sub) << PLACE_BITS).wrapping_sub(word >> PLACE_BITS << PLACE_BITS);
        match behind {
            0 => {
                let ahead = word.wrapping_sub(near) << (u64::BITS - PLACE_BITS);
                #[expect(clippy::cast_possible_wrap, reason = "that is the sign")]
                let ahead = ahead as i64 >> (u64::BITS - PLACE_BITS);
                Entry::Decided(near.wrapping_add_signed(ahead))
            }
            behind if behind >> (u64::BITS - 1) == 0 => Entry::Before(word),
            _ => Entry::After,
        }
    }

    /// Decides all marks up to that of `sub`. `place` says what it would be; it is asked after the
    /// present word was read.
    #[cold]
    pub(super) fn turn_to(&self, sub: u64, mut place: impl FnMut(u64) -> u64) {
        // AcqRel: see `turning`.
        self.turning.fetch_max(sub, Ordering::AcqRel);
        let latest = self.latest();
        let Some(mut least) = self.get(latest, place(latest)) else { return };
        for sub in (latest + 1).max((sub + 1).saturating_sub(self.length()))..=sub {
            loop {
                match self.entry(sub, least) {
                    Entry::Decided(place) => least = least.max(place),
                    Entry::After => return,
                    Entry::Before(word) => {
                        let place = place(sub).max(least);
                        let mark =
                            (self.lap(sub) << PLACE_BITS) | (place & ((1 << PLACE_BITS) - 1));
                        // Release: see `latest` and `entry`. On failure it is looked at again.
                        let turned = self.word(sub).compare_exchange(
                            word,
                            mark,
                            Ordering::Release,
                            Ordering::Relaxed,
                        );
                        if turned.is_err() {
                            continue;
                        }
                        least = place;
                    }
                }
                break;
            }
        }
        // Release: see `latest`.
        self.latest.fetch_max(sub, Ordering::Release);
    }

    #[cfg(all(test, not(paceline_loom)))]
    pub(super) fn words(&self) -> Vec<u64> {
        let ring = self.ring.iter().map(|word| word.load(Ordering::SeqCst));
        ring.chain([self.latest(), self.turning.load(Ordering::SeqCst)]).collect()
    }
}
