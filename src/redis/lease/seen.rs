//! The server's line as a reply showed it, by the clock of this process. Pure.
//!
//! Times are nanoseconds of this process's clock. All that is known of the server's is that it showed a
//! certain time between when a request was sent and when its reply was received. So a position
//! counts as minted when it is by the earliest that the server's clock can show, and as overflowed when
//! it may be by the latest. The two clocks may go apart by 1/1024, twice what an NTP daemon makes of them.

/// One in so many nanoseconds is what two clocks may go apart.
const DRIFT: i128 = 1_024;

const NANOS_PER_MICRO: i128 = 1_000;

/// Positions are in grains, the server's times in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// By our clock.
    pub(crate) sent: u64,
    pub(crate) received: u64,
    /// What the server's clock showed.
    pub(crate) now: i64,
    /// So much was minted at that time of the server.
    pub(crate) start: i64,
    pub(crate) origin: i64,
    /// Since then `grains` are minted each `micros`.
    pub(crate) grains: i64,
    pub(crate) micros: i64,
    /// The size of a token and of the bucket.
    pub(crate) token: i64,
    pub(crate) capacity: i64,
}

impl Seen {
    /// From when on what ends at `position` is certainly minted; never at a rate of zero.
    pub(crate) fn minted(&self, position: i64) -> u64 {
        let Some((whole, rest)) = self.time_of(position) else { return u64::MAX };
        let ahead = self.ahead(whole + i128::from(rest > 0)).max(0);
        clamp(i128::from(self.received) + ahead + (ahead + DRIFT - 1) / DRIFT)
    }

    /// Until when what begins at `position` has certainly not overflowed; for ever at a rate of zero.
    pub(crate) fn alive(&self, position: i64) -> u64 {
        let end = position.saturating_add(self.capacity);
        let Some((whole, _)) = self.time_of(end) else { return u64::MAX };
        // The clock that showed `now` may have been about to show the next microsecond.
        let ahead = self.ahead(whole - 1);
        clamp(i128::from(self.sent) + ahead - (ahead.max(0) + DRIFT - 1) / DRIFT)
    }

    /// How many tokens the bucket keeps when `spent` is the end of what is handed out; none while it is in debt.
    pub(crate) fn stored(&self, spent: i64) -> u32 {
        let elapsed = i128::from(self.now.saturating_sub(self.start).max(0));
        let minted = i128::from(self.origin)
            + elapsed * i128::from(self.grains) / i128::from(self.micros.max(1));
        let tokens = (minted - i128::from(spent)).max(0) / i128::from(self.token.max(1));
        u32::try_from(tokens).unwrap_or(u32::MAX)
    }

    /// The server's time at which `position` is minted: whole microseconds, and whether some are left over.
    fn time_of(&self, position: i64) -> Option<(i128, i128)> {
        let (grains, micros) = (i128::from(self.grains), i128::from(self.micros));
        let beyond = (i128::from(position) - i128::from(self.origin)) * micros;
        let whole = beyond.checked_div_euclid(grains)?;
        Some((i128::from(self.start) + whole, beyond.rem_euclid(grains)))
    }

    fn ahead(&self, time: i128) -> i128 {
        (time - i128::from(self.now)) * NANOS_PER_MICRO
    }
}

fn clamp(time: i128) -> u64 {
    u64::try_from(time.max(0)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// A grain each microsecond, which is a thousandth of a token, and an hour before it overflows.
    const SEEN: Seen = Seen {
        sent: 10 * SECOND,
        received: 11 * SECOND,
        now: 5_000_000,
        start: 5_000_000,
        origin: 0,
        grains: 1,
        micros: 1,
        token: 1_000,
        capacity: 3_600_000_000,
    };

    #[test]
    fn clocks_that_go_apart_are_allowed_for() {
        let minted = SEEN.minted(3_600_000_000);
        assert!(minted >= (3_600 + 3 + 11) * SECOND, "{minted}");
        let alive = SEEN.alive(0);
        assert!(alive <= (3_600 - 3 + 10) * SECOND, "{alive}");
    }

    #[test]
    fn a_line_that_stands_still_mints_nothing_and_overflows_never() {
        let still = Seen { grains: 0, ..SEEN };
        assert_eq!((still.minted(1), still.alive(0)), (u64::MAX, u64::MAX));
    }

    #[test]
    fn what_the_bucket_keeps_is_whole_tokens() {
        let later = Seen { now: SEEN.now + 2_999, ..SEEN };
        assert_eq!([later.stored(0), later.stored(-1), later.stored(5_000)], [2, 3, 0]);
    }

    #[test]
    fn a_position_is_minted_in_the_first_whole_microsecond() {
        // Three grains each two microseconds.
        let odd = Seen { grains: 3, micros: 2, sent: 0, received: 0, ..SEEN };
        let micros = |position| odd.minted(position) / 1_000;
        assert_eq!([micros(0), micros(1), micros(2), micros(3), micros(4)], [0, 1, 2, 2, 3]);
    }
}
