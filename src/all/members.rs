//! What takes part in an [`All`](super::All), and several of them at once.

use crate::acquire::Terms;
use crate::concurrency::Concurrency;
use crate::error::{AcquireError, TryAcquireError};
use crate::leaky::LeakyBucket;
use crate::limiter::Limiter;
use crate::line::{Outlook, Patience};
use crate::smooth::{SmoothBursty, SmoothWarmingUp};
use crate::striped::Striped;
use crate::turns::Turns;
use crate::window::{FixedWindow, SlidingLog, SlidingWindow};
use std::fmt::Debug;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::time::Instant;

/// One limit.
pub(crate) trait Member: Send + Sync {
    /// A turn that is held with it.
    type Turn: Debug + Send + Sync;

    /// That instant in the limiter's own time.
    fn time(&self, now: Instant) -> u64;

    /// Whether `n` could be had at `now`, in its own time. Writes nothing.
    fn peek(&self, n: u32, now: u64) -> Result<(), TryAcquireError>;

    /// Takes `n` if they can be had at `now`, in its own time.
    fn hold(&self, n: u32, now: u64) -> Result<Self::Turn, TryAcquireError>;

    /// Books `n`, if their turn comes before `deadline`.
    fn book(
        &self,
        n: u32,
        now: Instant,
        deadline: Option<Instant>,
    ) -> Result<Self::Turn, AcquireError>;

    fn look(&self, now: Instant, turn: &Self::Turn) -> Seen;

    /// Remembers that somebody who slept has woken so many nanoseconds late.
    fn woke(&self, now: Instant, late: u64);

    fn give_back(&self, now: Instant, turn: &Self::Turn);

    /// Whether what was had at once can be given back. If not, it is taken last.
    const RETURNS: bool = true;

    /// Takes what it only looked at when it was booked. All others have come then.
    fn settle(
        &self,
        _n: u32,
        _now: Instant,
        _turn: &mut Self::Turn,
        _deadline: Option<Instant>,
    ) -> Seen {
        Seen::Turn { late: u64::MAX }
    }

    /// What tells of changes of its settings.
    fn changed(&self) -> Option<Arc<Notify>>;

    /// What it counts the places of, if it does.
    fn concurrency(&self) -> Option<&Concurrency> {
        None
    }
}

/// What one who holds a turn finds.
pub(crate) enum Seen {
    /// It came so many nanoseconds ago.
    Turn {
        late: u64,
    },
    Overflown,
    /// It comes then; `None` if never.
    Wait(Option<Instant>),
    Refused(AcquireError),
}

macro_rules! member_by_turns {
    ($($limiter:ty),+) => {$(
        impl Member for $limiter {
            type Turn = <Self as Turns>::Booking;

            #[inline]
            fn time(&self, now: Instant) -> u64 {
                self.waiters().time.nanos(now)
            }

            #[inline]
            fn peek(&self, n: u32, now: u64) -> Result<(), TryAcquireError> {
                self.peek_at(n, now)
            }

            #[inline]
            fn hold(&self, n: u32, now: u64) -> Result<<Self as Turns>::Booking, TryAcquireError> {
                self.hold_at(n, now)
            }

            fn book(
                &self,
                n: u32,
                now: Instant,
                deadline: Option<Instant>,
            ) -> Result<<Self as Turns>::Booking, AcquireError> {
                book(self, n, now, deadline)
            }

            fn look(&self, now: Instant, turn: &<Self as Turns>::Booking) -> Seen {
                look(self, now, turn)
            }

            fn woke(&self, now: Instant, late: u64) {
                Turns::woke(self, self.waiters().time.nanos(now), late);
            }

            fn give_back(&self, now: Instant, turn: &<Self as Turns>::Booking) {
                Turns::give_back(self, self.waiters().time.nanos(now), turn);
            }

            fn changed(&self) -> Option<Arc<Notify>> {
                Some(Arc::clone(&self.waiters().changed))
            }
        }
    )+};
}

// Not for all that has turns: then the compiler could not tell them from references.
member_by_turns!(Limiter, Striped, FixedWindow, LeakyBucket, SmoothBursty, SmoothWarmingUp);

/// What a sliding window gives at once is not given back. So while another limit is waited for it is
/// only looked at, and taken when all others have come.
macro_rules! member_taken_last {
    ($($limiter:ty),+) => {$(
        impl Member for $limiter {
            /// None while it is only looked at.
            type Turn = Option<<Self as Turns>::Booking>;

            const RETURNS: bool = false;

            fn time(&self, now: Instant) -> u64 {
                self.waiters().time.nanos(now)
            }

            fn peek(&self, n: u32, now: u64) -> Result<(), TryAcquireError> {
                self.peek_at(n, now)
            }

            fn hold(&self, n: u32, now: u64) -> Result<Self::Turn, TryAcquireError> {
                self.hold_at(n, now).map(Some)
            }

            fn book(
                &self,
                n: u32,
                now: Instant,
                deadline: Option<Instant>,
            ) -> Result<Self::Turn, AcquireError> {
                if self.peek_at(n, self.time(now)).is_ok() {
                    return Ok(None);
                }
                book(self, n, now, deadline).map(Some)
            }

            fn look(&self, now: Instant, turn: &Self::Turn) -> Seen {
                match turn {
                    Some(turn) => look(self, now, turn),
                    None => Seen::Turn { late: u64::MAX },
                }
            }

            fn settle(
                &self,
                n: u32,
                now: Instant,
                turn: &mut Self::Turn,
                deadline: Option<Instant>,
            ) -> Seen {
                if turn.is_none() {
                    match book(self, n, now, deadline) {
                        Ok(booked) => *turn = Some(booked),
                        Err(error) => return Seen::Refused(error),
                    }
                }
                Member::look(self, now, turn)
            }

            fn woke(&self, now: Instant, late: u64) {
                Turns::woke(self, self.waiters().time.nanos(now), late);
            }

            fn give_back(&self, now: Instant, turn: &Self::Turn) {
                if let Some(turn) = turn {
                    Turns::give_back(self, self.waiters().time.nanos(now), turn);
                }
            }

            fn changed(&self) -> Option<Arc<Notify>> {
                Some(Arc::clone(&self.waiters().changed))
            }
        }
    )+};
}

member_taken_last!(SlidingWindow, SlidingLog);

fn book<L: Turns>(
    limiter: &L,
    n: u32,
    now: Instant,
    deadline: Option<Instant>,
) -> Result<L::Booking, AcquireError> {
    let waiters = limiter.waiters();
    let began = waiters.time.nanos(now);
    let deadline = deadline.map_or(u64::MAX, |deadline| waiters.time.nanos(deadline));
    let until = began.saturating_add(waiters.max_wait).min(deadline);
    let patience = if until == u64::MAX { Patience::Forever } else { Patience::Until(until) };
    let booked = limiter.book(began, n, patience);
    booked.map_err(|refusal| Terms { began, until }.refused(n, began, refusal))
}

fn look<L: Turns>(limiter: &L, now: Instant, turn: &L::Booking) -> Seen {
    let time = &limiter.waiters().time;
    match limiter.look(time.nanos(now), turn) {
        Outlook::Turn { overflown: true, .. } => Seen::Overflown,
        Outlook::Turn { late, overflown: false } => Seen::Turn { late },
        Outlook::Wait(turn) => Seen::Wait(turn.and_then(|turn| time.instant(turn))),
        Outlook::ExceedsBurst { burst } => {
            let requested = limiter.permits_of(turn);
            Seen::Refused(AcquireError::ExceedsBurst { requested, burst })
        }
        Outlook::Closed => Seen::Refused(AcquireError::Closed),
    }
}

/// Its places are taken apart from the turns; see [`in_order`].
impl Member for Concurrency {
    type Turn = ();

    fn time(&self, _now: Instant) -> u64 {
        0
    }

    fn peek(&self, n: u32, _now: u64) -> Result<(), TryAcquireError> {
        self.peek(n)
    }

    fn hold(&self, _n: u32, _now: u64) -> Result<(), TryAcquireError> {
        Ok(())
    }

    fn book(&self, _n: u32, _now: Instant, _deadline: Option<Instant>) -> Result<(), AcquireError> {
        Ok(())
    }

    fn look(&self, _now: Instant, _turn: &()) -> Seen {
        Seen::Turn { late: u64::MAX }
    }

    fn woke(&self, _now: Instant, _late: u64) {}

    fn give_back(&self, _now: Instant, _turn: &()) {}

    fn changed(&self) -> Option<Arc<Notify>> {
        None
    }

    fn concurrency(&self) -> Option<&Concurrency> {
        Some(self)
    }
}

macro_rules! member_by_reference {
    ($($reference:ty),+) => {$(
        impl<M: Member> Member for $reference {
            type Turn = M::Turn;

            const RETURNS: bool = M::RETURNS;

            fn settle(
                &self,
                n: u32,
                now: Instant,
                turn: &mut M::Turn,
                deadline: Option<Instant>,
            ) -> Seen {
                M::settle(self, n, now, turn, deadline)
            }

            #[inline]
            fn time(&self, now: Instant) -> u64 {
                M::time(self, now)
            }

            #[inline]
            fn peek(&self, n: u32, now: u64) -> Result<(), TryAcquireError> {
                M::peek(self, n, now)
            }

            #[inline]
            fn hold(&self, n: u32, now: u64) -> Result<M::Turn, TryAcquireError> {
                M::hold(self, n, now)
            }

            fn book(
                &self,
                n: u32,
                now: Instant,
                deadline: Option<Instant>,
            ) -> Result<M::Turn, AcquireError> {
                M::book(self, n, now, deadline)
            }

            fn look(&self, now: Instant, turn: &M::Turn) -> Seen {
                M::look(self, now, turn)
            }

            fn woke(&self, now: Instant, late: u64) {
                M::woke(self, now, late);
            }

            fn give_back(&self, now: Instant, turn: &M::Turn) {
                M::give_back(self, now, turn);
            }

            fn changed(&self) -> Option<Arc<Notify>> {
                M::changed(self)
            }

            fn concurrency(&self) -> Option<&Concurrency> {
                M::concurrency(self)
            }
        }
    )+};
}

member_by_reference!(&M, Arc<M>);

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
fn weightier(one: Option<TryAcquireError>, other: TryAcquireError) -> TryAcquireError {
    let weight = |error: &TryAcquireError| match error {
        TryAcquireError::Closed => 3,
        TryAcquireError::ExceedsBurst { .. } => 2,
        TryAcquireError::AtCapacity { .. } => 1,
        TryAcquireError::Limited(_) => 0,
    };
    // No hint is never, and that is longer than any.
    let hint =
        |error: &TryAcquireError| error.retry_after().map_or((1, None), |hint| (0, Some(hint)));
    match one {
        Some(one) if (weight(&one), hint(&one)) >= (weight(&other), hint(&other)) => one,
        _ => other,
    }
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
                let mut refusal = self.$first_at.peek(n, self.$first_at.time(now)).err();
                $(
                    if let Err(other) = self.$at.peek(n, self.$at.time(now)) {
                        refusal = Some(weightier(refusal, other));
                    }
                )*
                refusal
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
        refusals.fold(None, |one, other| Some(weightier(one, other)))
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
