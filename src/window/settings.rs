//! What may change of a limiter by window: its limit, and whether it is closed.

use crate::line::Refusal;
use crate::sync::{AtomicU64, Mutex, Ordering};
use std::sync::PoisonError;

const CLOSED: u64 = 1 << 32;

/// The limit and whether it is closed, in one word.
pub(crate) struct Settings {
    word: AtomicU64,
    /// The largest limit that it is built for.
    max_limit: u32,
    setters: Mutex<()>,
}

impl Settings {
    pub(super) fn new(limit: u32, max_limit: u32) -> Self {
        Self { word: AtomicU64::new(limit.into()), max_limit, setters: Mutex::new(()) }
    }

    /// The limit, if a request for so many may be looked at.
    #[inline]
    pub(super) fn admit(&self, permits: u32) -> Result<u32, Refusal> {
        let word = self.word();
        let limit = limit_of(word);
        if word & CLOSED != 0 {
            Err(Refusal::Closed)
        } else if permits > limit {
            Err(Refusal::ExceedsBurst { burst: limit })
        } else {
            Ok(limit)
        }
    }

    pub(super) fn limit(&self) -> u32 {
        limit_of(self.word())
    }

    pub(super) fn max_limit(&self) -> u32 {
        self.max_limit
    }

    #[inline]
    fn word(&self) -> u64 {
        // Acquire: pairs with the Release below. Who sees a change sees all that was done before
        // it: slots that were made ready for a larger limit, and what a closer did.
        self.word.load(Ordering::Acquire)
    }

    /// Changes the limit by `change`, which is given the present one and a way to publish the new
    /// one. Setters exclude each other, and block nobody else.
    pub(super) fn change(&self, change: impl FnOnce(u32, &dyn Fn(u32))) {
        let _setter = self.setters.lock().unwrap_or_else(PoisonError::into_inner);
        change(self.limit(), &|limit| {
            // Release: see `word`. A read-modify-write, since it may be closed meanwhile.
            let set = |word| Some((word & CLOSED) | u64::from(limit));
            let _ = self.word.fetch_update(Ordering::Release, Ordering::Relaxed, set);
        });
    }

    pub(super) fn close(&self) {
        // Release: see `word`.
        self.word.fetch_or(CLOSED, Ordering::Release);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.word() & CLOSED != 0
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the low half")]
fn limit_of(word: u64) -> u32 {
    word as u32
}
