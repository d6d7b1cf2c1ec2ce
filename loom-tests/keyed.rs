//! Keys in pages: words that are taken from while their page is replaced, keys that come and are
//! forgotten, and limiters of their own that come and go.
//!
//! One page, and a quota whose settings stay but in the last models. Pages are a stand-in here, whose
//! operations are single steps: see `Swap`.

use super::own::Own;
use super::quota::Quotas;
use super::table::{Table, When};
use crate::limiter::Limiter;
use crate::line::{Bounds, Line, Settings};
use crate::loom_tests::{EACH_NANOSECOND, race_on};
use crate::queue::Queue;
use crate::rate::Rate;
use crate::time::Timeline;
use crate::turns::{Turns, Waiters};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A key is its own hash.
#[derive(Default)]
struct Itself(u64);

impl Hasher for Itself {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are words");
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

const KEY: u64 = 0;

/// Of the same group in its page, but not of those who share a floor.
const OTHER: u64 = 1 << 8;

/// A table of one page, and the beginning of its time.
struct Keys {
    table: Table<u64, BuildHasherDefault<Itself>>,
    start: Instant,
    /// Limiters that keys have of their own, to be left.
    owns: Vec<Arc<Own>>,
}

impl Keys {
    fn new(burst: u32, most: usize) -> Self {
        let bounds = Bounds::usual(EACH_NANOSECOND, burst);
        let line = Line::new(Settings::full(EACH_NANOSECOND, burst, bounds, 0));
        let start = Instant::now();
        let queue = Queue::new(Queue::UNBOUNDED);
        let waiters = Waiters::new(Timeline::Tokio(start), u64::MAX, queue, None);
        let quotas = Quotas::new(Limiter::build(line, waiters).into(), Vec::new());
        let table = Table::new(1, most, BuildHasherDefault::default(), quotas, None);
        Self { table, start, owns: Vec::new() }
    }

    /// Whose bucket holds `burst`, and of whose [`KEY`] so many are taken.
    fn taken(burst: u32, taken: u32) -> Self {
        let keys = Self::new(burst, usize::MAX);
        assert!(keys.take(KEY, taken, 0));
        keys
    }

    /// Where the key has a limiter of its own besides, used so often.
    fn held(burst: u32, taken: u32, uses: usize) -> Self {
        let mut keys = Self::taken(burst, taken);
        keys.owns = (0..uses).map(|_| keys.own()).collect();
        keys
    }

    fn when(&self, now: u64) -> When {
        When::At(self.start + Duration::from_nanos(now))
    }

    fn take(&self, key: u64, n: u32, now: u64) -> bool {
        self.table.take(&key, n, self.when(now)).is_ok()
    }

    fn replace(&self, now: u64) {
        self.table.retain_busy(self.when(now));
    }

    fn own(&self) -> Arc<Own> {
        self.table.own(self.table.hash(&KEY), &KEY, self.when(0))
    }

    fn leave(&self, own: &Own) {
        self.table.leave(self.table.hash(&KEY), own, self.when(0));
    }

    /// As who waits for a turn, which has come.
    fn take_by_own(&self) -> bool {
        let own = self.own();
        let taken = own.limiter().try_at(1, Some(0)).is_ok();
        self.leave(&own);
        taken
    }

    fn quota(&self) -> &Limiter {
        self.table.quotas().get(0).limiter()
    }
}

#[test]
fn two_takes_of_the_last_token() {
    race_on(
        || Keys::taken(2, 1),
        |keys| keys.take(KEY, 1, 0),
        |keys| keys.take(KEY, 1, 0),
        |keys, left, right| {
            assert!(left != right, "one of them has it");
            assert!(!keys.take(KEY, 1, 0));
        },
    );
}

#[test]
fn a_take_beside_a_replacement() {
    race_on(
        || Keys::taken(2, 1),
        |keys| keys.take(KEY, 1, 0),
        |keys| keys.replace(0),
        |keys, taken, ()| {
            assert!(taken, "nothing is lost");
            assert!(!keys.take(KEY, 1, 0), "nothing is given twice");
            assert_eq!(keys.table.len(), 1);
        },
    );
}

#[test]
fn two_replacements_at_once() {
    race_on(
        || {
            let keys = Keys::taken(3, 2);
            assert!(keys.take(OTHER, 1, 0));
            keys
        },
        |keys| keys.replace(1),
        |keys| keys.replace(1),
        |keys, (), ()| {
            assert_eq!(keys.table.len(), 1, "one is full");
            assert!(keys.take(KEY, 2, 1) && !keys.take(KEY, 1, 1));
        },
    );
}

#[test]
fn two_who_bring_the_same_key() {
    race_on(
        || Keys::new(1, usize::MAX),
        |keys| keys.take(KEY, 1, 0),
        |keys| keys.take(KEY, 1, 0),
        |keys, left, right| {
            assert!(left != right, "there is one token");
            assert_eq!(keys.table.len(), 1);
        },
    );
}

#[test]
fn a_key_that_comes_beside_a_replacement() {
    race_on(
        || Keys::taken(1, 1),
        |keys| keys.take(OTHER, 1, 0),
        |keys| keys.replace(0),
        |keys, taken, ()| {
            assert!(taken && !keys.take(OTHER, 1, 0) && !keys.take(KEY, 1, 0));
            assert_eq!(keys.table.len(), 2);
        },
    );
}

#[test]
fn a_take_beside_who_forgets_the_key_since_it_is_full() {
    race_on(
        || Keys::taken(1, 1),
        |keys| keys.take(KEY, 1, 1),
        |keys| keys.replace(1),
        |keys, taken, ()| {
            assert!(taken && !keys.take(KEY, 1, 1));
            assert_eq!(keys.table.len(), 1);
        },
    );
}

#[test]
fn a_take_beside_who_forgets_the_key_to_make_room() {
    race_on(
        || {
            let keys = Keys::new(2, 1);
            assert!(keys.take(KEY, 2, 0));
            keys
        },
        |keys| keys.take(KEY, 1, 1),
        |keys| keys.take(OTHER, 1, 1),
        |keys, taken, other| {
            assert!(other, "none of a hash alike was forgotten");
            assert!(keys.table.len() <= 1);
            assert!(taken && !keys.take(KEY, 1, 1), "it is as spent as it was");
        },
    );
}

#[test]
fn a_promotion_beside_a_take() {
    race_on(
        || Keys::taken(2, 1),
        |keys| keys.take(KEY, 1, 0),
        Keys::take_by_own,
        |keys, by_word, by_own| {
            assert!(by_word != by_own, "one of them has it");
            assert!(!keys.take(KEY, 1, 0));
        },
    );
}

#[test]
fn a_promotion_beside_a_replacement() {
    race_on(
        || Keys::taken(2, 1),
        |keys| keys.replace(0),
        Keys::take_by_own,
        |keys, (), taken| {
            assert!(taken && !keys.take(KEY, 1, 0));
            assert_eq!(keys.table.len(), 1);
        },
    );
}

#[test]
fn a_promotion_beside_another() {
    race_on(
        || Keys::taken(2, 1),
        Keys::take_by_own,
        Keys::take_by_own,
        |keys, left, right| {
            assert!(left != right, "one of them has it");
            assert!(!keys.take(KEY, 1, 0));
        },
    );
}

#[test]
fn a_promotion_beside_who_forgets_the_key_to_make_room() {
    race_on(
        || {
            let keys = Keys::new(2, 1);
            assert!(keys.take(KEY, 1, 0));
            keys
        },
        Keys::own,
        |keys| keys.take(OTHER, 1, 0),
        |keys, own, other| {
            assert!(other, "none of a hash alike was forgotten");
            assert!(own.limiter().try_at(1, Some(0)).is_ok());
            assert!(!keys.take(KEY, 1, 0), "it is as spent as it was");
        },
    );
}

#[test]
fn the_last_user_leaves_beside_a_take() {
    race_on(
        || Keys::held(2, 1, 1),
        |keys| keys.leave(&keys.owns[0]),
        |keys| keys.take(KEY, 1, 0),
        |keys, (), taken| {
            assert!(taken && !keys.take(KEY, 1, 0));
            assert_eq!(keys.table.len(), 1);
        },
    );
}

/// What one has taken of the limiter is known to the word that the other takes from.
#[test]
fn two_users_leave_and_one_goes_on_by_the_word() {
    race_on(
        || Keys::held(2, 1, 2),
        |keys| {
            let taken = keys.owns[0].limiter().try_at(1, Some(0)).is_ok();
            keys.leave(&keys.owns[0]);
            taken
        },
        |keys| {
            keys.leave(&keys.owns[1]);
            keys.take(KEY, 1, 0)
        },
        |keys, left, right| {
            assert!(left != right, "one of them has it");
            assert!(!keys.take(KEY, 1, 0));
        },
    );
}

#[test]
fn a_promotion_beside_a_change_of_the_rate() {
    race_on(
        || Keys::taken(2, 1),
        Keys::own,
        |keys| {
            keys.quota().line().set_rate(0, Rate::ZERO).unwrap();
            keys.table.settings_changed();
        },
        |_, own, ()| assert_eq!(own.limiter().rate(), Rate::ZERO),
    );
}

#[test]
fn a_promotion_beside_a_close() {
    race_on(
        || Keys::taken(2, 1),
        Keys::own,
        |keys| {
            keys.quota().line().close();
            keys.table.settings_changed();
        },
        |_, own, ()| assert!(own.limiter().is_closed()),
    );
}
