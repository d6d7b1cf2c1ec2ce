//! How many tokens to lease at a time. Pure.

use super::seen::Seen;
use crate::redis::settings::Settings;

/// By what a lease is sized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizing {
    /// For how long a lease is to last, in nanoseconds.
    pub(crate) period: u64,
    /// It is never larger than this.
    pub(crate) most: u32,
}

/// What is known of the demand, and of what others want.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Demand {
    /// What was used since the last lease was asked for, in so many nanoseconds.
    pub(crate) used: u32,
    pub(crate) time: u64,
    /// How many wait.
    pub(crate) waiting: u32,
    /// How long it was until the turn of the last token, when they were leased the last time.
    pub(crate) ahead: u64,
}

/// A lease is at most so many times as large as the one before.
const GROWTH: u64 = 4;
/// Smaller leases are asked for only when somebody wants them: they would be given back as often as
/// they are used.
const WORTHWHILE: u32 = 4;

/// Whether to ask for more when so many are `left` of a lease of this `size`: early enough that half a
/// period is left for the way to the server.
pub(crate) fn is_low(left: u32, size: u32) -> bool {
    size >= WORTHWHILE && left < size.div_ceil(2)
}

impl Sizing {
    /// The size of the next lease: what is used in a period and what is waited for, approached from the
    /// `last` size, and enough for one who `needs` so many.
    ///
    /// When the server's line is booked for more than a period ahead, it is half of the last. So processes
    /// that want more than there is come to equal shares: all of them grow by what they wait for, and
    /// who has more gives up more.
    pub(crate) fn next(self, last: u32, demand: Demand, needs: u32) -> u32 {
        let Demand { used, time, waiting, ahead } = demand;
        let last = u64::from(last);
        let wanted = if ahead > self.period {
            last / 2
        } else {
            let used = u128::from(used) * u128::from(self.period);
            let wanted = used.div_ceil(u128::from(time.max(1))) + u128::from(waiting);
            u64::try_from(wanted).unwrap_or(u64::MAX).clamp(last / 2, (last * GROWTH).max(1))
        };
        self.at_most(u32::try_from(wanted).unwrap_or(u32::MAX).max(needs))
    }

    pub(crate) fn at_most(self, size: u32) -> u32 {
        size.clamp(1, self.most.max(1))
    }

    /// How many more to ask for since they overflow before a period is over, of a bucket that keeps
    /// `stored` tokens. They are none that others could use: as many overflow of a bucket that is
    /// left alone.
    pub(crate) fn overflowing(self, seen: &Seen, stored: u32) -> u32 {
        let Settings { grains, over, token, capacity, .. } = seen.clock.settings;
        let grains = u128::from(self.period / 1_000) * u128::from(grains);
        let minted = grains / u128::from(over.max(1)) / u128::from(token);
        let room = (capacity / token).saturating_sub(stored.into());
        u32::try_from(minted.saturating_sub(room.into())).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::reply::Clock;
    use proptest::prelude::*;

    const MILLI: u64 = 1_000_000;
    const SIZING: Sizing = Sizing { period: 20 * MILLI, most: 250 };

    fn demand(used: u32, time: u64) -> Demand {
        Demand { used, time, waiting: 0, ahead: 0 }
    }

    #[test]
    fn a_lease_grows_until_it_lasts_a_period() {
        // 10 000 a second are wanted, which is 200 in a period.
        let mut size = 0;
        let mut sizes = Vec::new();
        for _ in 0..6 {
            size = SIZING.next(size, demand(10, MILLI), 1);
            sizes.push(size);
        }
        assert_eq!(sizes, [1, 4, 16, 64, 200, 200]);
    }

    #[test]
    fn a_lease_shrinks_by_half_when_less_is_wanted() {
        let next = |size| SIZING.next(size, demand(1, 20 * MILLI), 1);
        assert_eq!([next(200), next(100), next(3), next(1)], [100, 50, 1, 1]);
    }

    #[test]
    fn processes_that_want_more_than_there_is_come_to_equal_shares() {
        // 1000 a second are shared, 20 in a period; each has ten who wait, always.
        let mut sizes = [40, 1, 1];
        let mut totals = [0; 3];
        for round in 0..400 {
            let all: u32 = sizes.iter().sum();
            let time = u64::from(all) * MILLI;
            let ahead = time;
            for (size, total) in sizes.iter_mut().zip(&mut totals) {
                if round >= 200 {
                    *total += *size;
                }
                *size = SIZING.next(*size, Demand { used: *size, time, waiting: 10, ahead }, 1);
            }
        }
        let all: u32 = totals.iter().sum();
        assert!(totals.iter().all(|total| (all / 4..all / 2).contains(total)), "{totals:?}");
    }

    #[test]
    fn what_overflows_meanwhile_is_leased_too() {
        // A token each millisecond, and a hundred before they overflow.
        let settings = Settings { version: 0, token: 1_000, grains: 1, over: 1, capacity: 100_000 };
        let clock = Clock { settings, epoch: 0, start: 0, origin: 0 };
        let seen = &Seen { sent: 0, received: 0, now: 0, clock };
        // 20 are minted in a period. A bucket with room for them loses none.
        assert_eq!(SIZING.overflowing(seen, 0), 0);
        assert_eq!(SIZING.overflowing(seen, 80), 0);
        assert_eq!(SIZING.overflowing(seen, 90), 10);
        assert_eq!(SIZING.overflowing(seen, 100), 20);
    }

    #[test]
    fn small_leases_are_not_asked_for_before_they_are_wanted() {
        assert!(!is_low(0, 3));
        assert!(is_low(1, 4));
        assert!(!is_low(2, 4));
    }

    proptest! {
        #[test]
        fn a_lease_is_enough_for_who_needs_it_and_else_within_its_bounds(
            last in any::<u32>(),
            (used, time, waiting, ahead) in any::<(u32, u64, u32, u64)>(),
            needs in 1..=250_u32,
            period in 0..=u64::MAX,
            most in 250..=u32::MAX,
        ) {
            let sizing = Sizing { period, most };
            let size = sizing.next(last, Demand { used, time, waiting, ahead }, needs);
            prop_assert!((needs..=most).contains(&size));
        }
    }
}
