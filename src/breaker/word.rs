//! The word of a circuit breaker, and what becomes of it: pure functions.

/// What a breaker knows.
///
/// ```text
///   63   62 61         52 51                                              0
///  ┌───────┬─────────────┬─────────────────────────────────────────────────┐
///  │ 0     │ round       │ which of the last calls failed (32 bits)        │ closed
///  │ 1     │ round       │ until when, in microseconds                      │ open
///  │ 2     │ round       │ succeeded (16 bits), being made (16 bits)        │ half open
///  └───────┴─────────────┴─────────────────────────────────────────────────┘
/// ```
///
/// The round is another one after each change of the state, so that who comes back from an earlier one
/// is not counted. (It comes around after 1024 changes.) Microseconds come around after 142 years.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word {
    round: u64,
    state: Held,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// The newest in the lowest bit.
    Closed {
        failed: u32,
    },
    Open {
        until: u64,
    },
    HalfOpen {
        succeeded: u32,
        made: u32,
    },
}

/// The state alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Closed,
    Open { until: u64 },
    HalfOpen,
}

/// When a breaker opens, and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    pub(super) failures: u32,
    pub(super) calls: u32,
    /// In microseconds.
    pub(super) open_for: u64,
    pub(super) probes: u32,
}

/// The round that a call belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry(u64);

pub(super) const MOST_CALLS: u32 = 32;
pub(super) const MOST_PROBES: u32 = u16::MAX as u32;

const ROUND_BITS: u32 = 10;
const ROUNDS: u64 = 1 << ROUND_BITS;
const PAYLOAD_BITS: u32 = 52;
const PAYLOAD: u64 = (1 << PAYLOAD_BITS) - 1;

impl Word {
    pub(super) const CLOSED: Self = Self { round: 0, state: Held::Closed { failed: 0 } };

    #[inline]
    pub(super) fn to_word(self) -> u64 {
        let (state, payload) = match self.state {
            Held::Closed { failed } => (0, u64::from(failed)),
            Held::Open { until } => (1, until & PAYLOAD),
            Held::HalfOpen { succeeded, made } => (2, u64::from(succeeded) << 16 | u64::from(made)),
        };
        state << (PAYLOAD_BITS + ROUND_BITS) | self.round << PAYLOAD_BITS | payload
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the fields are what is asked for")]
    pub(super) fn from_word(word: u64) -> Self {
        let payload = word & PAYLOAD;
        let state = match word >> (PAYLOAD_BITS + ROUND_BITS) {
            0 => Held::Closed { failed: payload as u32 },
            1 => Held::Open { until: payload },
            _ => Held::HalfOpen {
                succeeded: u32::from((payload >> 16) as u16),
                made: u32::from(payload as u16),
            },
        };
        Self { round: word >> PAYLOAD_BITS & (ROUNDS - 1), state }
    }

    pub(super) fn state(self) -> State {
        match self.state {
            Held::Closed { .. } => State::Closed,
            Held::Open { until } => State::Open { until },
            Held::HalfOpen { .. } => State::HalfOpen,
        }
    }

    /// Closed it lets everybody through, and nothing changes by that.
    #[inline]
    pub(super) fn entry_if_closed(self) -> Option<Entry> {
        matches!(self.state, Held::Closed { .. }).then_some(Entry(self.round))
    }

    /// What becomes of it when somebody wants to enter; and who is refused, until how long from now,
    /// if that is known.
    pub(super) fn enter(self, rule: &Rule, now: u64) -> (Self, Result<Entry, Option<u64>>) {
        let next = match self.state {
            Held::Closed { .. } => self,
            Held::Open { until } if now < until => return (self, Err(Some(until - now))),
            Held::Open { .. } => self.next(Held::HalfOpen { succeeded: 0, made: 1 }),
            Held::HalfOpen { succeeded, made } if succeeded + made < rule.probes => {
                Self { state: Held::HalfOpen { succeeded, made: made + 1 }, ..self }
            }
            Held::HalfOpen { .. } => return (self, Err(None)),
        };
        (next, Ok(Entry(next.round)))
    }

    pub(super) fn succeeded(self, rule: &Rule, entry: Entry) -> Self {
        match self.state {
            _ if entry != Entry(self.round) => self,
            Held::Closed { failed } => {
                Self { state: Held::Closed { failed: rule.shifted(failed, 0) }, ..self }
            }
            Held::HalfOpen { succeeded, made } => {
                let (succeeded, made) = (succeeded + 1, made.saturating_sub(1));
                if succeeded >= rule.probes {
                    self.closed()
                } else {
                    Self { state: Held::HalfOpen { succeeded, made }, ..self }
                }
            }
            Held::Open { .. } => self,
        }
    }

    pub(super) fn failed(self, rule: &Rule, entry: Entry, now: u64) -> Self {
        match self.state {
            _ if entry != Entry(self.round) => self,
            Held::Closed { failed } => {
                let failed = rule.shifted(failed, 1);
                if failed.count_ones() >= rule.failures {
                    self.opened(rule, now)
                } else {
                    Self { state: Held::Closed { failed }, ..self }
                }
            }
            Held::HalfOpen { .. } => self.opened(rule, now),
            Held::Open { .. } => self,
        }
    }

    /// A call is gone and nobody knows how it ended.
    pub(super) fn dropped(self, entry: Entry) -> Self {
        match self.state {
            Held::HalfOpen { succeeded, made } if entry == Entry(self.round) => {
                let made = made.saturating_sub(1);
                Self { state: Held::HalfOpen { succeeded, made }, ..self }
            }
            _ => self,
        }
    }

    pub(super) fn opened(self, rule: &Rule, now: u64) -> Self {
        // What is beyond 142 years ends there.
        let until = now.saturating_add(rule.open_for).min(PAYLOAD);
        self.next(Held::Open { until })
    }

    pub(super) fn closed(self) -> Self {
        self.next(Held::Closed { failed: 0 })
    }

    fn next(self, state: Held) -> Self {
        Self { round: (self.round + 1) % ROUNDS, state }
    }
}

impl Rule {
    /// The outcomes of the last calls, the newest in the lowest bit.
    fn shifted(&self, failed: u32, newest: u32) -> u32 {
        (failed << 1 | newest) & (u32::MAX >> (MOST_CALLS - self.calls))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn word() -> impl Strategy<Value = Word> {
        let state = prop_oneof![
            any::<u32>().prop_map(|failed| Held::Closed { failed }),
            (0..=PAYLOAD).prop_map(|until| Held::Open { until }),
            (0..=MOST_PROBES, 0..=MOST_PROBES)
                .prop_map(|(succeeded, made)| Held::HalfOpen { succeeded, made }),
        ];
        (0..ROUNDS, state).prop_map(|(round, state)| Word { round, state })
    }

    proptest! {
        #[test]
        fn a_word_reads_as_what_was_written(word in word()) {
            prop_assert_eq!(Word::from_word(word.to_word()), word);
        }

        #[test]
        fn it_opens_when_so_many_of_the_last_calls_failed(
            outcomes in prop::collection::vec(any::<bool>(), 0..200),
            calls in 1..=MOST_CALLS,
            failures in 1..=MOST_CALLS,
        ) {
            prop_assume!(failures <= calls);
            let rule = Rule { failures, calls, open_for: 10, probes: 1 };
            let mut word = Word::CLOSED;
            for (index, failed) in outcomes.iter().enumerate() {
                let entry = word.entry_if_closed().expect("closed until then");
                word = if *failed { word.failed(&rule, entry, 7) } else { word.succeeded(&rule, entry) };
                let last = outcomes[..=index].iter().rev().take(calls as usize);
                let broken = last.filter(|failed| **failed).count() >= failures as usize;
                prop_assert_eq!(word.state() == State::Open { until: 17 }, broken);
                if broken {
                    break;
                }
            }
        }
    }
}
