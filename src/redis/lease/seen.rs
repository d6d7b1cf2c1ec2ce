//! The server's line as a reply showed it, by the clock of this process. Pure.
//!
//! Times are nanoseconds of this process's clock. All that is known of the server's is that it showed a
//! certain time between when a request was sent and when its reply was received. So a position
//! counts as minted when it is by the earliest that the server's clock can show, and as overflowed when
//! it may be by the latest. The two clocks may go apart by 1/1024, twice what an NTP daemon makes of them.

use crate::redis::reply::Clock;
use crate::redis::settings::Settings;

/// One in so many nanoseconds is what two clocks may go apart.
const DRIFT: i128 = 1_024;

const NANOS_PER_MICRO: i128 = 1_000;

/// What a reply showed, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// By our clock.
    pub(crate) sent: u64,
    pub(crate) received: u64,
    /// By the server's, in microseconds.
    pub(crate) now: i64,
    pub(crate) clock: Clock,
}

impl Seen {
    /// From when on what ends at `position` is certainly minted; never at a rate of zero.
    pub(crate) fn minted(&self, position: i64) -> u64 {
        let Some(time) = self.clock.due(position) else { return u64::MAX };
        let ahead = self.ahead(time).max(0);
        clamp(i128::from(self.received) + ahead + (ahead + DRIFT - 1) / DRIFT)
    }

    /// Until when what begins at `position` has certainly not overflowed; for ever at a rate of zero.
    pub(crate) fn alive(&self, position: i64) -> u64 {
        let end = position.saturating_add(signed(self.clock.settings.capacity));
        let Some(time) = self.clock.due(end) else { return u64::MAX };
        // The clock that showed `now` may have been about to show the next microsecond.
        let ahead = self.ahead(time.saturating_sub(1));
        clamp(i128::from(self.sent) + ahead - (ahead.max(0) + DRIFT - 1) / DRIFT)
    }

    /// The size of a token.
    pub(crate) fn token(&self) -> i64 {
        signed(self.clock.settings.token)
    }

    /// How many tokens lie between what is handed out up to `end` and what is minted: none while it
    /// is in debt.
    pub(crate) fn stored(&self, end: i64) -> u32 {
        let Settings { grains, over, token, .. } = self.clock.settings;
        let elapsed = i128::from(self.now.saturating_sub(self.clock.start).max(0));
        let minted = elapsed * i128::from(grains) / i128::from(over.max(1));
        let stored = i128::from(self.clock.origin) + minted - i128::from(end);
        u32::try_from(stored.max(0) / i128::from(token.max(1))).unwrap_or(u32::MAX)
    }

    fn ahead(&self, time: i64) -> i128 {
        (i128::from(time) - i128::from(self.now)) * NANOS_PER_MICRO
    }
}

/// All of them are below 2^53.
fn signed(grains: u64) -> i64 {
    i64::try_from(grains).unwrap_or(i64::MAX)
}

fn clamp(time: i128) -> u64 {
    u64::try_from(time.max(0)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// A grain each microsecond, which is a thousandth of a token, and an hour before it overflows.
    const SETTINGS: Settings =
        Settings { version: 0, token: 1_000, grains: 1, over: 1, capacity: 3_600_000_000 };
    const CLOCK: Clock = Clock { settings: SETTINGS, epoch: 0, start: 5_000_000, origin: 0 };
    const SEEN: Seen =
        Seen { sent: 10 * SECOND, received: 11 * SECOND, now: 5_000_000, clock: CLOCK };

    fn with(settings: Settings) -> Seen {
        Seen { clock: Clock { settings, ..CLOCK }, ..SEEN }
    }

    #[test]
    fn clocks_that_go_apart_are_allowed_for() {
        let minted = SEEN.minted(3_600_000_000);
        assert!(minted >= (3_600 + 3 + 11) * SECOND, "{minted}");
        let alive = SEEN.alive(0);
        assert!(alive <= (3_600 - 3 + 10) * SECOND, "{alive}");
    }

    #[test]
    fn a_line_that_stands_still_mints_nothing_and_overflows_never() {
        let still = with(Settings { grains: 0, ..SETTINGS });
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
        let odd = Seen { received: 0, ..with(Settings { grains: 3, over: 2, ..SETTINGS }) };
        let micros = |position| odd.minted(position) / 1_000;
        assert_eq!([micros(0), micros(1), micros(2), micros(3), micros(4)], [0, 1, 2, 2, 3]);
    }
}
