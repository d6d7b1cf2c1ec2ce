//! A limiter of its own for a key: while somebody waits for a turn of it, or it has settings of its
//! own.
//!
//! A word can only be taken from. For all else the key gets a [`Limiter`] that goes on where the word
//! was left, with the same clock and so the same positions; and when nobody uses it any more, the
//! key's word goes on where the limiter was left.

use super::quota::Quotas;
use super::table::When;
use crate::limiter::Limiter;
use crate::line::Position;
use crate::sync::{AtomicU64, Ordering};
use std::sync::Arc;

/// A limiter of its own, and who uses it.
///
/// ```text
///   63        62         61      60        31 30        0
///  ┌─────────┬──────────┬───────┬────────────┬───────────┐
///  │ retired │ released │ apart │ uses so far│ users now │
///  └─────────┴──────────┴───────┴────────────┴───────────┘
/// ```
///
/// Once it is retired nobody uses it again. The count of uses tells a limiter that was idle all the
/// while from one that was used in between.
pub(super) struct Own {
    limiter: Arc<Limiter>,
    /// The quota of its key.
    quota: u16,
    uses: AtomicU64,
}

/// How an [`Own`] is left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retired {
    /// The key goes on by its word, from here.
    At(Position),
    /// The key is full, so nothing is to know of it.
    Full,
}

const USER: u64 = 1;
const USE: u64 = 1 << 31;
const APART: u64 = 1 << 61;
const RELEASED: u64 = 1 << 62;
const RETIRED: u64 = 1 << 63;

/// Whether anybody uses it.
fn is_used(uses: u64) -> bool {
    uses % USE != 0
}

/// One use more. The count of uses begins anew rather than reach the marks.
fn entered(uses: u64) -> u64 {
    let (marks, counts) = (uses / APART * APART, uses % APART);
    marks | ((counts + USE + USER) % APART)
}

impl Own {
    pub(super) fn new(limiter: Limiter, quota: u16) -> Self {
        Self { limiter: Arc::new(limiter), quota, uses: AtomicU64::new(0) }
    }

    pub(super) fn limiter(&self) -> &Arc<Limiter> {
        &self.limiter
    }

    pub(super) fn quota(&self) -> u16 {
        self.quota
    }

    /// Begins a use; false if it is retired.
    pub(super) fn enter(&self) -> bool {
        let enter = |uses| (uses & RETIRED == 0).then(|| entered(uses));
        // Relaxed: who enters has found the limiter by way of its page, which published it. Whoever
        // retires it afterwards fails, since this changes the word.
        self.uses.fetch_update(Ordering::Relaxed, Ordering::Relaxed, enter).is_ok()
    }

    /// Ends a use. True if it was the last one.
    pub(super) fn leave(&self) -> bool {
        // Release: pairs with the Acquire in `retire`, which reads what is spent of the line. Weaker,
        // it could miss what this user has taken, and the word would give that again.
        let uses = self.uses.fetch_sub(USER, Ordering::Release);
        !is_used(uses - USER)
    }

    /// Some number if there is one user, which is the same while there is nobody else.
    #[cfg(feature = "http")]
    pub(super) fn alone(&self) -> Option<u64> {
        // Acquire: pairs with the Release in `leave`. What others have booked and given back before
        // they left is seen by who finds them gone.
        let counts = self.uses.load(Ordering::Acquire) % APART;
        (counts % USE == USER).then_some(counts)
    }

    /// Sets it apart, for it gets settings of its own; by a user of it, so that it is not retired
    /// meanwhile.
    pub(super) fn set_apart(&self) {
        // Relaxed, here and below: `Line::follow` looks at it under the lock of the line's settings,
        // which the change that this announces takes afterwards.
        let _ = self.uses.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |uses| {
            Some((uses | APART) & !RELEASED)
        });
    }

    /// Lets it go when it is full, as a key without settings of its own.
    pub(super) fn release(&self) {
        self.uses.fetch_or(RELEASED, Ordering::Relaxed);
    }

    pub(super) fn is_apart(&self) -> bool {
        self.uses.load(Ordering::Relaxed) & APART != 0
    }

    pub(super) fn is_released(&self) -> bool {
        self.uses.load(Ordering::Relaxed) & RELEASED != 0
    }

    /// Whether it could be retired.
    pub(super) fn is_idle(&self, quotas: &Quotas, when: When) -> bool {
        // Relaxed: `retire` makes sure.
        let uses = self.uses.load(Ordering::Relaxed);
        !is_used(uses) && self.idle(uses, quotas, when).is_some()
    }

    /// How it is left if nobody has used it since `uses`; nothing if it must stay as it is.
    fn idle(&self, uses: u64, quotas: &Quotas, when: When) -> Option<Retired> {
        let line = self.limiter.line();
        if uses & RETIRED != 0 {
            // Whoever retired it has seen to the rest, at whatever time that was.
            let at = || Retired::At(line.spent());
            return Some(if uses & APART == 0 { at() } else { Retired::Full });
        }
        let quota = quotas.get(self.quota);
        let now = quota.at(when);
        let spent = line.spent_at_rest(now)?;
        if uses & APART == 0 {
            return Some(Retired::At(spent));
        }
        // The key is as any other then: full or not by the settings of its quota.
        let full = uses & RELEASED != 0 && line.is_full(now, spent) && quota.begins_full(now);
        full.then_some(Retired::Full)
    }

    /// Retires it, or finds it retired; nothing if it must stay as it is.
    pub(super) fn retire(&self, quotas: &Quotas, when: When) -> Option<Retired> {
        // Acquire: pairs with the Release in `leave`.
        let uses = self.uses.load(Ordering::Acquire);
        if is_used(uses) {
            return None;
        }
        let retired = self.idle(uses, quotas, when)?;
        if uses & RETIRED != 0 {
            return Some(retired);
        }
        // It was idle from the load above to here, so what was read of the line is the last of it.
        // Relaxed: whoever finds it retired reads the line anew, behind its own Acquire.
        let retire =
            self.uses.compare_exchange(uses, uses | RETIRED, Ordering::Relaxed, Ordering::Relaxed);
        retire.is_ok().then_some(retired)
    }
}
