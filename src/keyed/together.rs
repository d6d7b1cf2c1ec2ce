//! What is needed to take of several keys together: all or nothing.

use super::Keyed;
use super::hold::Hold;
use super::table::When;
use crate::all::member::{Member, Seen};
use crate::error::{AcquireError, TryAcquireError};
use crate::limiter::Limiter;
use crate::line::Standing;
use crate::turns::Turns;
use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How a key stands that has a limiter of its own.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
pub(super) fn standing_of(limiter: &Limiter, now: u64) -> Standing {
    let left = limiter.line().tokens(now) as u32;
    let refusal = limiter.peek_at(left.saturating_add(1), now).err();
    let next = refusal.and_then(|refusal| refusal.retry_after());
    Standing { rate: limiter.rate(), burst: limiter.burst(), left, next }
}

/// So many permits of a key, as a member of an [`All`](crate::All): the number that is asked of that
/// does not matter.
pub(crate) struct Share<K: Clone + Eq + Hash, S: BuildHasher> {
    hold: Hold<K, S>,
    permits: u32,
}

impl<K, S> Keyed<K, S>
where
    K: Clone + Eq + Hash,
    S: BuildHasher,
{
    pub(crate) fn standing<Q>(&self, key: &Q) -> Standing
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.table.standing(key)
    }

    pub(crate) fn share<Q>(&self, key: &Q, permits: u32) -> Share<K, S>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        Share { hold: Hold::of(&self.table, key, When::Now), permits }
    }

    /// Makes `n` permits of `key` free again, of which so many were just taken and are not used.
    ///
    /// They are lost if somebody waits for a turn of the key, or if one that was given back is still
    /// free, at that very moment.
    #[cold]
    pub(crate) fn give_back<Q>(&self, key: &Q, n: u32)
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let hold = Hold::of(&self.table, key, When::Now);
        // What was taken by its word has no booking. But where nobody has one, all that is spent is used
        // for good, by whomever, and so the last of it can as well be what is given back. Others who only
        // take come and go, so it tries again.
        let given_back = || {
            let alone = hold.own().alone()?;
            let now = hold.now();
            let spent = hold.line().spent_at_rest(now)?;
            let is_still = hold.own().alone() == Some(alone);
            is_still.then(|| Turns::give_back(&*hold, now, &hold.line().booking_before(spent, n)))
        };
        (0..100).find_map(|_| given_back());
    }
}

impl<K, S> Member for Share<K, S>
where
    K: Clone + Eq + Hash + Send + Sync,
    S: BuildHasher + Send + Sync,
{
    type Turn = <Limiter as Member>::Turn;

    fn time(&self, now: Instant) -> u64 {
        Member::time(&*self.hold, now)
    }

    fn peek(&self, _n: u32, now: u64) -> Result<(), TryAcquireError> {
        Member::peek(&*self.hold, self.permits, now)
    }

    fn hold(&self, _n: u32, now: u64) -> Result<Self::Turn, TryAcquireError> {
        Member::hold(&*self.hold, self.permits, now)
    }

    fn book(
        &self,
        _n: u32,
        now: Instant,
        deadline: Option<Instant>,
    ) -> Result<Self::Turn, AcquireError> {
        Member::book(&*self.hold, self.permits, now, deadline)
    }

    fn look(&self, now: Instant, turn: &Self::Turn) -> Seen {
        Member::look(&*self.hold, now, turn)
    }

    fn woke(&self, now: Instant, late: u64) {
        Member::woke(&*self.hold, now, late);
    }

    fn give_back(&self, now: Instant, turn: &Self::Turn) {
        Member::give_back(&*self.hold, now, turn);
    }

    fn changed(&self) -> Option<Arc<Notify>> {
        Member::changed(&*self.hold)
    }
}

#[cfg(all(test, not(paceline_loom)))]
mod tests {
    use super::*;
    use crate::Rate;
    use std::pin::pin;
    use std::task::{Context, Waker};

    fn keyed() -> Keyed<u32> {
        Keyed::new(Rate::ZERO, 10)
    }

    #[track_caller]
    fn has(keyed: &Keyed<u32>, tokens: f64) {
        assert!((keyed.tokens(&1) - tokens).abs() < 1e-9, "{}", keyed.tokens(&1));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_taken_and_is_given_back_is_there_again() {
        let keyed = keyed();
        keyed.try_acquire_many(&1, 4).unwrap();
        keyed.try_acquire_many(&1, 3).unwrap();
        keyed.give_back(&1, 4);
        has(&keyed, 7.0);
        keyed.give_back(&1, 3);
        has(&keyed, 10.0);
        assert!(keyed.try_acquire_many(&1, 10).is_ok());
        assert!(keyed.try_acquire(&1).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn the_turn_of_one_who_waits_is_given_to_nobody_else() {
        let keyed: Keyed<u32> = Keyed::new(Rate::per_second(1), 10);
        keyed.try_acquire_many(&1, 10).unwrap();
        let mut waits = pin!(keyed.acquire_many(&1, 2));
        assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        keyed.give_back(&1, 2);
        has(&keyed, -2.0);
        waits.await.unwrap();
        has(&keyed, 0.0);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_free_already_is_not_given_back_again() {
        let keyed = keyed();
        keyed.try_acquire_many(&1, 2).unwrap();
        let share = keyed.share(&1, 3);
        let now = share.time(Instant::now());
        let [first, second] = [(); 2].map(|()| Member::hold(&share, 1, now).unwrap());
        // A hole, before what is held by the second.
        Member::give_back(&share, Instant::now(), &first);
        has(&keyed, 5.0);
        drop(second);
        drop(share);
        keyed.give_back(&1, 4);
        assert!(keyed.tokens(&1) <= 9.0);
        let mut had = 0;
        while keyed.try_acquire(&1).is_ok() {
            had += 1;
        }
        assert!(had <= 9, "{had} of what is left");
    }
}
