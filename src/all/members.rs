//! Several limits at once: in a tuple, or in anything that is a slice.

use super::member::{Member, Seen};
use crate::concurrency::Concurrency;
use crate::error::{AcquireError, TryAcquireError};
use std::fmt::Debug;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Several limits.
pub(crate) trait Members: Send + Sync {
    /// The turns that are held with them; none where one was not had.
    type Turns: Debug + Send + Sync;

    /// Why `n` could not be had of all of them now: the weightiest reason. Writes nothing.
    fn refusal(&self, n: u32, now: Instant) -> Option<TryAcquireError>;

    /// Takes `n` of all of them, if they can be had now; of none, if not. It has looked at all but the
    /// first before it takes of the first.
    fn hold(&self, n: u32, now: Instant) -> Result<(), TryAcquireError>;

    /// Books `n` of all of them, if their turns come before `deadline`; or nothing.
    fn book(
        &self,
        n: u32,
        now: Instant,
        deadline: Option<Instant>,
    ) -> Result<Self::Turns, AcquireError>;

    /// What one who holds `turns` finds: the weightiest of what each says. A turn that has overflowed
    /// is booked anew.
    fn look(
        &self,
        n: u32,
        now: Instant,
        turns: &mut Self::Turns,
        deadline: Option<Instant>,
    ) -> Seen;

    /// Takes what was only looked at so far. All others have come then.
    fn settle(
        &self,
        n: u32,
        now: Instant,
        turns: &mut Self::Turns,
        deadline: Option<Instant>,
    ) -> Seen;

    /// Remembers that somebody who slept has woken so many nanoseconds late.
    fn woke(&self, now: Instant, late: u64);

    fn give_back(&self, now: Instant, turns: &Self::Turns);

    /// What tells of changes of their settings.
    fn changed(&self) -> Vec<Arc<Notify>>;

    fn places(&self) -> Vec<&Concurrency>;
}

/// In the same order for everybody, so that of all who take places in this order the one that has the
/// last gets on; each with how often it was named.
#[inline]
pub(crate) fn in_order(places: Vec<&Concurrency>) -> Vec<(&Concurrency, u32)> {
    // As a rule there are none.
    if places.is_empty() { Vec::new() } else { sorted(places) }
}

#[cold]
fn sorted(mut places: Vec<&Concurrency>) -> Vec<(&Concurrency, u32)> {
    places.sort_by_key(|place| place.identity());
    let mut counted: Vec<(&Concurrency, u32)> = Vec::new();
    for place in places {
        match counted.last_mut().filter(|(last, _)| last.identity() == place.identity()) {
            Some((_, count)) => *count += 1,
            None => counted.push((place, 1)),
        }
    }
    counted
}

/// The weightier of two reasons: the one that holds longer.
pub(crate) fn weightier(one: TryAcquireError, other: TryAcquireError) -> TryAcquireError {
    let weight = |error: &TryAcquireError| match error {
        TryAcquireError::Closed => 3,
        TryAcquireError::ExceedsBurst { .. } => 2,
        TryAcquireError::AtCapacity { .. } => 1,
        TryAcquireError::Limited(_) => 0,
    };
    // No hint is never, and that is longer than any.
    let hint =
        |error: &TryAcquireError| error.retry_after().map_or((1, None), |hint| (0, Some(hint)));
    if (weight(&one), hint(&one)) >= (weight(&other), hint(&other)) { one } else { other }
}

/// What two limits say together: the one that is further from a turn. Of turns, the one that came
/// last.
fn further(one: Seen, other: Seen) -> Seen {
    match (one, other) {
        (Seen::Refused(error), _) | (_, Seen::Refused(error)) => Seen::Refused(error),
        (Seen::Wait(one), Seen::Wait(other)) => {
            Seen::Wait(one.and_then(|one| other.map(|other| one.max(other))))
        }
        (Seen::Wait(turn), _) | (_, Seen::Wait(turn)) => Seen::Wait(turn),
        (Seen::Turn { late: one }, Seen::Turn { late: other }) => {
            Seen::Turn { late: one.min(other) }
        }
        (Seen::Overflown, _) | (_, Seen::Overflown) => Seen::Overflown,
    }
}

/// What the holder of one turn finds, which is booked anew if it has overflowed.
fn look_at<M: Member>(
    member: &M,
    n: u32,
    now: Instant,
    turn: &mut Option<M::Turn>,
    deadline: Option<Instant>,
) -> Seen {
    let Some(held) = turn else { return Seen::Turn { late: u64::MAX } };
    match member.look(now, held) {
        Seen::Overflown => {
            member.give_back(now, held);
            *turn = None;
            match member.book(n, now, deadline) {
                Ok(again) => member.look(now, turn.insert(again)),
                Err(error) => Seen::Refused(error),
            }
        }
        seen => seen,
    }
}

macro_rules! members_in_tuple {
    ($first:ident $first_at:tt $(, $rest:ident $at:tt)*) => {
        impl<$first: Member, $($rest: Member),*> Members for ($first, $($rest,)*) {
            type Turns = (Option<$first::Turn>, $(Option<$rest::Turn>,)*);

            fn refusal(&self, n: u32, now: Instant) -> Option<TryAcquireError> {
                let first = self.$first_at.peek(n, self.$first_at.time(now)).err();
                let all = [first, $(self.$at.peek(n, self.$at.time(now)).err()),*];
                all.into_iter().flatten().reduce(weightier)
            }

            #[inline]
            fn hold(&self, n: u32, now: Instant) -> Result<(), TryAcquireError> {
                let times = (self.$first_at.time(now), $(self.$at.time(now),)*);
                $(self.$at.peek(n, times.$at)?;)*
                let mut turns: Self::Turns = (none(&self.$first_at), $(none(&self.$at),)*);
                // What can't be given back comes last.
                for returns in [true, false] {
                    let held = hold_one(&self.$first_at, n, times.$first_at, &mut turns.$first_at, returns)
                        $(.and_then(|()| hold_one(&self.$at, n, times.$at, &mut turns.$at, returns)))*;
                    if let Err(refusal) = held {
                        self.give_back(now, &turns);
                        return Err(refusal);
                    }
                }
                Ok(())
            }

            fn book(
                &self,
                n: u32,
                now: Instant,
                deadline: Option<Instant>,
            ) -> Result<Self::Turns, AcquireError> {
                let first = self.$first_at.book(n, now, deadline)?;
                let mut turns: Self::Turns = (Some(first), $(none(&self.$at),)*);
                $(
                    match self.$at.book(n, now, deadline) {
                        Ok(turn) => turns.$at = Some(turn),
                        Err(refusal) => {
                            self.give_back(now, &turns);
                            return Err(refusal);
                        }
                    }
                )*
                Ok(turns)
            }

            fn look(
                &self,
                n: u32,
                now: Instant,
                turns: &mut Self::Turns,
                deadline: Option<Instant>,
            ) -> Seen {
                let seen = look_at(&self.$first_at, n, now, &mut turns.$first_at, deadline);
                $(let seen = further(seen, look_at(&self.$at, n, now, &mut turns.$at, deadline));)*
                seen
            }

            fn settle(
                &self,
                n: u32,
                now: Instant,
                turns: &mut Self::Turns,
                deadline: Option<Instant>,
            ) -> Seen {
                let seen = settle_one(&self.$first_at, n, now, &mut turns.$first_at, deadline);
                $(
                    let one = settle_one(&self.$at, n, now, &mut turns.$at, deadline);
                    let seen = further(seen, one);
                )*
                seen
            }

            fn woke(&self, now: Instant, late: u64) {
                self.$first_at.woke(now, late);
                $(self.$at.woke(now, late);)*
            }

            fn give_back(&self, now: Instant, turns: &Self::Turns) {
                if let Some(turn) = &turns.$first_at {
                    self.$first_at.give_back(now, turn);
                }
                $(
                    if let Some(turn) = &turns.$at {
                        self.$at.give_back(now, turn);
                    }
                )*
            }

            fn changed(&self) -> Vec<Arc<Notify>> {
                [self.$first_at.changed(), $(self.$at.changed()),*].into_iter().flatten().collect()
            }

            fn places(&self) -> Vec<&Concurrency> {
                [self.$first_at.concurrency(), $(self.$at.concurrency()),*]
                    .into_iter()
                    .flatten()
                    .collect()
            }
        }
    };
}

/// Takes of this one, if it is to be taken now.
#[inline(always)]
#[expect(clippy::inline_always, reason = "measured: see benches/README.md")]
fn hold_one<M: Member>(
    member: &M,
    n: u32,
    now: u64,
    turn: &mut Option<M::Turn>,
    returns: bool,
) -> Result<(), TryAcquireError> {
    if M::RETURNS == returns {
        *turn = Some(member.hold(n, now)?);
    }
    Ok(())
}

fn settle_one<M: Member>(
    member: &M,
    n: u32,
    now: Instant,
    turn: &mut Option<M::Turn>,
    deadline: Option<Instant>,
) -> Seen {
    match turn {
        Some(turn) => member.settle(n, now, turn, deadline),
        None => Seen::Turn { late: u64::MAX },
    }
}

/// No turn with this one yet.
fn none<M: Member>(_member: &M) -> Option<M::Turn> {
    None
}

members_in_tuple!(A 0, B 1);
members_in_tuple!(A 0, B 1, C 2);
members_in_tuple!(A 0, B 1, C 2, D 3);
members_in_tuple!(A 0, B 1, C 2, D 3, E 4);
members_in_tuple!(A 0, B 1, C 2, D 3, E 4, F 5);
members_in_tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
members_in_tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);

impl<M: Member> Members for [M] {
    type Turns = Vec<Option<M::Turn>>;

    fn refusal(&self, n: u32, now: Instant) -> Option<TryAcquireError> {
        let refusals = self.iter().filter_map(|member| member.peek(n, member.time(now)).err());
        refusals.reduce(weightier)
    }

    fn hold(&self, n: u32, now: Instant) -> Result<(), TryAcquireError> {
        self.iter().skip(1).try_for_each(|member| member.peek(n, member.time(now)))?;
        let mut turns = Vec::with_capacity(self.len());
        for member in self {
            match member.hold(n, member.time(now)) {
                Ok(turn) => turns.push(Some(turn)),
                Err(refusal) => {
                    self.give_back(now, &turns);
                    return Err(refusal);
                }
            }
        }
        Ok(())
    }

    fn book(
        &self,
        n: u32,
        now: Instant,
        deadline: Option<Instant>,
    ) -> Result<Self::Turns, AcquireError> {
        let mut turns = Vec::with_capacity(self.len());
        for member in self {
            match member.book(n, now, deadline) {
                Ok(turn) => turns.push(Some(turn)),
                Err(refusal) => {
                    self.give_back(now, &turns);
                    return Err(refusal);
                }
            }
        }
        Ok(turns)
    }

    fn look(
        &self,
        n: u32,
        now: Instant,
        turns: &mut Self::Turns,
        deadline: Option<Instant>,
    ) -> Seen {
        let all =
            self.iter().zip(turns).map(|(member, turn)| look_at(member, n, now, turn, deadline));
        all.fold(Seen::Turn { late: u64::MAX }, further)
    }

    fn settle(
        &self,
        n: u32,
        now: Instant,
        turns: &mut Self::Turns,
        deadline: Option<Instant>,
    ) -> Seen {
        let all = self.iter().zip(turns);
        let all = all.map(|(member, turn)| settle_one(member, n, now, turn, deadline));
        all.fold(Seen::Turn { late: u64::MAX }, further)
    }

    fn woke(&self, now: Instant, late: u64) {
        for member in self {
            member.woke(now, late);
        }
    }

    fn give_back(&self, now: Instant, turns: &Self::Turns) {
        for (member, turn) in self.iter().zip(turns) {
            if let Some(turn) = turn {
                member.give_back(now, turn);
            }
        }
    }

    fn changed(&self) -> Vec<Arc<Notify>> {
        self.iter().filter_map(Member::changed).collect()
    }

    fn places(&self) -> Vec<&Concurrency> {
        self.iter().filter_map(Member::concurrency).collect()
    }
}

macro_rules! members_of_slice {
    ($([$($generics:tt)*] $owner:ty),+) => {$(
        impl<M: Member, $($generics)*> Members for $owner {
            type Turns = Vec<Option<M::Turn>>;

            fn refusal(&self, n: u32, now: Instant) -> Option<TryAcquireError> {
                self[..].refusal(n, now)
            }

            fn hold(&self, n: u32, now: Instant) -> Result<(), TryAcquireError> {
                self[..].hold(n, now)
            }

            fn book(
                &self,
                n: u32,
                now: Instant,
                deadline: Option<Instant>,
            ) -> Result<Self::Turns, AcquireError> {
                self[..].book(n, now, deadline)
            }

            fn look(
                &self,
                n: u32,
                now: Instant,
                turns: &mut Self::Turns,
                deadline: Option<Instant>,
            ) -> Seen {
                self[..].look(n, now, turns, deadline)
            }

            fn settle(
                &self,
                n: u32,
                now: Instant,
                turns: &mut Self::Turns,
                deadline: Option<Instant>,
            ) -> Seen {
                self[..].settle(n, now, turns, deadline)
            }

            fn woke(&self, now: Instant, late: u64) {
                self[..].woke(now, late);
            }

            fn give_back(&self, now: Instant, turns: &Self::Turns) {
                self[..].give_back(now, turns);
            }

            fn changed(&self) -> Vec<Arc<Notify>> {
                self[..].changed()
            }

            fn places(&self) -> Vec<&Concurrency> {
                self[..].places()
            }
        }
    )+};
}

members_of_slice!([] &[M], [] Vec<M>, [] Box<[M]>, [const N: usize] [M; N]);

#[cfg(all(test, not(paceline_loom)))]
mod tests {
    use super::*;
    use crate::limiter::Limiter;
    use crate::rate::Rate;
    use std::time::Duration;

    #[test]
    fn where_the_second_refuses_each_word_of_both_is_as_before() {
        let full = Limiter::new(Rate::per_second(10), 10);
        let empty = Limiter::new(Rate::per_hour(1), 1);
        let now = Instant::now();
        empty.try_acquire_many_at(1, now).unwrap();
        let words = || (full.line().words(), empty.line().words());
        let before = words();
        // Also where the first has overflowed since.
        for later in [0, 60] {
            let now = now + Duration::from_secs(later);
            assert!((&full, &empty).hold(1, now).is_err());
            assert!((&empty, &full).hold(1, now).is_err());
            assert!([&full, &empty][..].hold(1, now).is_err());
            assert!((&full, &empty).refusal(1, now).is_some());
            assert_eq!(words(), before);
        }
    }
}
