//! Forgiveness for waking late.
//!
//! A timer wakes a task a millisecond or more after its turn. With a small burst, what was minted
//! meanwhile has overflowed by then, and a task that loops would reach a fraction of its rate. So
//! those who wait have a slack:
//!
//! * one who wakes late uses its interval all the same if it has overflowed by less than the slack;
//! * and for the next slack of time, who acquires judges overflow as it was when that turn came, or
//!   a slack ago at most. So the tokens that were minted while it overslept are used.
//!
//! In terms of the third sentence of the token line: for `acquire`, what has overflowed is judged up
//! to a slack ago. So in a window of length `w` at most `burst + rate * (w + slack)` permits are
//! used, exactly. Only lateness counts: where nobody overslept of late, nothing is forgiven, so an
//! idle limiter gathers nothing. Those who try or reserve are always judged by the present.

use crate::sync::{AtomicU64, Ordering};

/// How much is forgiven, and the last lateness.
pub(crate) struct Slack {
    /// In nanoseconds.
    most: u64,
    /// Written by those who wake late; the last one wins.
    ///
    /// ```text
    ///   63                                13 12       0
    ///  ┌────────────────────────────────────┬──────────┐
    ///  │ when somebody woke, in us          │ how late │  in parts of `most`
    ///  └────────────────────────────────────┴──────────┘
    /// ```
    ///
    /// `when` comes around after 71 years; then a stale lateness is taken for a fresh one, which
    /// forgives no more than a fresh one would.
    lateness: AtomicU64,
}

const LATE_BITS: u32 = 13;
const PARTS: u64 = (1 << LATE_BITS) - 1;

impl Slack {
    pub(crate) fn new(most: u64) -> Self {
        Self { most, lateness: AtomicU64::new(0) }
    }

    /// How much is forgiven at most.
    pub(crate) fn most(&self) -> u64 {
        self.most
    }

    /// Somebody who sleeps has woken at `now`, so long after its turn.
    pub(crate) fn woke(&self, now: u64, late: u64) {
        if self.most == 0 {
            return;
        }
        let parts = u128::from(late.min(self.most)) * u128::from(PARTS) / u128::from(self.most);
        #[expect(clippy::cast_possible_truncation, reason = "at most PARTS")]
        let word = ((now / 1_000) << LATE_BITS) | parts as u64;
        // Relaxed: nothing else is published by it, and any value that is seen, however stale,
        // forgives at most the slack. So the bound holds whatever the race.
        self.lateness.store(word, Ordering::Relaxed);
    }

    /// How much is forgiven at `now`.
    #[inline]
    pub(crate) fn allowance(&self, now: u64) -> u64 {
        // Relaxed: as above.
        match self.lateness.load(Ordering::Relaxed) {
            0 => 0,
            word => self.allowance_of(word, now),
        }
    }

    fn allowance_of(&self, word: u64, now: u64) -> u64 {
        let (woke, parts) = (word >> LATE_BITS, word & PARTS);
        let since = (now / 1_000).wrapping_sub(woke) << LATE_BITS >> LATE_BITS;
        if since > self.most / 1_000 {
            return 0;
        }
        #[expect(clippy::cast_possible_truncation, reason = "at most `most`")]
        let late = ((u128::from(parts) * u128::from(self.most)) >> LATE_BITS) as u64;
        late
    }
}

#[cfg(all(test, not(paceline_loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_forgiven_is_the_lateness_and_at_most_the_slack(
            most in 1..u64::MAX / 2,
            now in 0..u64::MAX / 2,
            late: u64,
            later: u64,
        ) {
            let slack = Slack::new(most);
            prop_assert_eq!(slack.allowance(now), 0);
            slack.woke(now, late);
            let forgiven = slack.allowance(now);
            prop_assert!(forgiven <= late.min(most));
            prop_assert!(late.min(most) - forgiven <= most / PARTS * 2 + 2);
            prop_assert!(slack.allowance(now.saturating_add(later)) <= forgiven);
        }
    }

    #[test]
    fn it_is_forgiven_for_the_next_slack_of_time() {
        let slack = Slack::new(5_000_000);
        slack.woke(1_000_000_000, 2_000_000);
        let forgiven = slack.allowance(1_000_000_000);
        assert!((1_998_000..=2_000_000).contains(&forgiven));
        assert_eq!(slack.allowance(1_005_000_000), forgiven);
        assert_eq!(slack.allowance(1_005_001_000), 0);
        assert_eq!(slack.allowance(999_000_000), 0);
    }

    #[test]
    fn without_slack_nothing_is_forgiven() {
        let slack = Slack::new(0);
        slack.woke(1, 1);
        assert_eq!(slack.allowance(1), 0);
    }
}
