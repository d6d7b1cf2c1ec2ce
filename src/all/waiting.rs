//! Waiting for all of several limits.

use super::Permits;
use super::member::Seen;
use super::members::{Members, in_order};
use crate::error::AcquireError;
use std::future::poll_fn;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Waits for `n` of each of `members`, until `deadline` at most.
///
/// Places come first, since nobody knows how long that takes, and a turn waits for nobody. Then it has
/// a turn with each, and sleeps until the last of them comes.
pub(super) async fn acquire<M: Members>(
    members: &M,
    n: u32,
    deadline: Option<Instant>,
) -> Result<Permits, AcquireError> {
    let began = Instant::now();
    let too_late = |wait| AcquireError::WouldExceedDeadline {
        requested: n,
        wait,
        limit: deadline.map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(began)),
    };
    let mut places = Vec::new();
    for (place, count) in in_order(members.places()) {
        let waiting = place.acquire_many(n.saturating_mul(count));
        places.push(match deadline {
            Some(deadline) => timeout_at(deadline, waiting).await.map_err(|_| too_late(None))??,
            None => waiting.await?,
        });
    }
    let now = Instant::now();
    let mut held = Held { members, turns: Some(members.book(n, now, deadline)?) };
    // Who need not wait needs nobody to tell of changes, nor a runtime.
    let mut seen = held.look(n, now, deadline);
    loop {
        match seen {
            Seen::Turn { late } => {
                let now = Instant::now();
                seen = held.settle(n, now, deadline);
                let Seen::Turn { .. } = seen else { continue };
                // It is not late by more than it has waited: a change can put a turn into the past.
                let waited = now.saturating_duration_since(began);
                members.woke(now, late.min(crate::time::nanos(waited)));
                held.turns = None;
                return Ok(Permits { places, waited });
            }
            Seen::Refused(error) => return Err(error),
            Seen::Wait(turn) if turn.is_none_or(|turn| deadline.is_some_and(|end| turn > end)) => {
                if deadline.is_some() {
                    return Err(too_late(turn.map(|turn| turn.saturating_duration_since(began))));
                }
                seen = held.sleep(n, None, deadline).await;
            }
            Seen::Wait(turn) => seen = held.sleep(n, turn, deadline).await,
            // Booked anew, and overflowed at once: it looks again.
            Seen::Overflown => seen = held.look(n, Instant::now(), deadline),
        }
    }
}

/// Turns that are held, and given back when this is dropped.
struct Held<'a, M: Members> {
    members: &'a M,
    /// None once they are used.
    turns: Option<M::Turns>,
}

impl<M: Members> Held<'_, M> {
    fn look(&mut self, n: u32, now: Instant, deadline: Option<Instant>) -> Seen {
        let Some(turns) = &mut self.turns else { unreachable!("they are not used yet") };
        self.members.look(n, now, turns, deadline)
    }

    fn settle(&mut self, n: u32, now: Instant, deadline: Option<Instant>) -> Seen {
        let Some(turns) = &mut self.turns else { unreachable!("they are not used yet") };
        self.members.settle(n, now, turns, deadline)
    }

    /// Sleeps until `turn`, or until somebody tells of a change; and looks.
    ///
    /// It listens before it looks whether the turn is still the same: a change that came before is
    /// seen, and one that comes after is heard.
    async fn sleep(&mut self, n: u32, turn: Option<Instant>, deadline: Option<Instant>) -> Seen {
        let listen =
            |changed: std::sync::Arc<tokio::sync::Notify>| Box::pin(changed.notified_owned());
        let mut changed: Vec<_> = self.members.changed().into_iter().map(listen).collect();
        match self.look(n, Instant::now(), deadline) {
            Seen::Wait(present) if present == turn => {}
            seen => return seen,
        }
        let any = poll_fn(|cx| {
            let ready = changed.iter_mut().any(|changed| changed.as_mut().poll(cx).is_ready());
            if ready { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        });
        match turn {
            Some(turn) => {
                let _ = timeout_at(turn, any).await;
            }
            None => any.await,
        }
        self.look(n, Instant::now(), deadline)
    }
}

impl<M: Members> Drop for Held<'_, M> {
    fn drop(&mut self) {
        if let Some(turns) = &self.turns {
            self.members.give_back(Instant::now(), turns);
        }
    }
}
