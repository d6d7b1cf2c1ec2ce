//! What a permit takes of the schedule, changed rarely and read by every request.

use super::span::Span;
use crate::rate::Rate;
use crate::sync::{AtomicU128, Mutex, Ordering};
use std::sync::PoisonError;

/// The time between two permits, and the rate that says so.
pub(super) struct Pace {
    /// A word of [`Price`]: all that a request must know, so that one load reads it whole.
    price: AtomicU128,
    /// As it was written, only to be shown. Tokens and period.
    rate: AtomicU128,
    setters: Mutex<()>,
}

/// What a permit takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Price {
    /// The rate is unlimited.
    Free,
    Each(Span),
    /// The rate is zero.
    Never,
    /// The limiter is closed.
    Closed,
}

impl Price {
    const FREE: u128 = 0;
    const CLOSED: u128 = u128::MAX;
    /// Longer than what any rate has between two permits.
    const NEVER: u128 = u128::MAX - 1;

    /// Rounded up: never too fast.
    fn at(rate: Rate) -> Self {
        if rate.is_unlimited() {
            Self::Free
        } else if rate.is_zero() {
            Self::Never
        } else {
            Self::Each(Span(Span::of_nanos(rate.period).0.div_ceil(u128::from(rate.tokens))))
        }
    }

    fn to_word(self) -> u128 {
        match self {
            Self::Free => Self::FREE,
            Self::Each(span) => span.0,
            Self::Never => Self::NEVER,
            Self::Closed => Self::CLOSED,
        }
    }

    #[inline]
    fn from_word(word: u128) -> Self {
        match word {
            Self::FREE => Self::Free,
            Self::NEVER => Self::Never,
            Self::CLOSED => Self::Closed,
            span => Self::Each(Span(span)),
        }
    }
}

impl Pace {
    pub(super) fn new(rate: Rate) -> Self {
        Self {
            price: AtomicU128::new(Price::at(rate).to_word()),
            rate: AtomicU128::new(pack(rate)),
            setters: Mutex::new(()),
        }
    }

    #[inline]
    pub(super) fn price(&self) -> Price {
        // Acquire: pairs with the Release stores below. Who sees the limiter closed, or a new rate,
        // sees all that the caller who made it so had done before. With Relaxed it need not.
        Price::from_word(self.price.load(Ordering::Acquire))
    }

    pub(super) fn rate(&self) -> Rate {
        // Acquire: pairs with the Release store of it. Who is shown a new rate is charged by it:
        // with Relaxed it could still find the price before.
        let word = self.rate.load(Ordering::Acquire);
        #[expect(clippy::cast_possible_truncation, reason = "the halves are what is asked for")]
        let (tokens, period) = ((word >> 64) as u64, word as u64);
        Rate { tokens, period }
    }

    /// Goes by `rate` from now on, unless closed. If it leaves a time without limit, `refresh` is
    /// called before that ends.
    pub(super) fn set(&self, rate: Rate, refresh: impl FnOnce()) {
        // Nothing panics while the lock is held. Requests do not take it.
        let _setter = self.setters.lock().unwrap_or_else(PoisonError::into_inner);
        let (before, price) = (self.price(), Price::at(rate));
        if before == Price::Closed {
            return;
        }
        if before == Price::Free && price != Price::Free {
            refresh();
        }
        // Release, and before the rate: see `price` and `rate`. The lock keeps it from opening what
        // was closed meanwhile.
        self.price.store(price.to_word(), Ordering::Release);
        self.rate.store(pack(rate), Ordering::Release);
    }

    pub(super) fn close(&self) {
        let _setter = self.setters.lock().unwrap_or_else(PoisonError::into_inner);
        // Release: see `price`.
        self.price.store(Price::CLOSED, Ordering::Release);
    }
}

fn pack(rate: Rate) -> u128 {
    (u128::from(rate.tokens) << 64) | u128::from(rate.period)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_price_is_the_period_over_the_tokens_rounded_up(tokens in 1..1_u64 << 24, period in 1..1_u64 << 38) {
            prop_assume!(tokens.div_ceil(1_000) <= period);
            let Price::Each(price) = Price::at(Rate { tokens, period }) else {
                return Err(TestCaseError::fail("it is neither free nor never"));
            };
            let (tokens, exact) = (u128::from(tokens), Span::of_nanos(period).0);
            prop_assert!((price.0 - 1) * tokens < exact && exact <= price.0 * tokens);
            prop_assert_eq!(Price::from_word(Price::Each(price).to_word()), Price::Each(price));
        }
    }

    #[test]
    fn the_ends_of_the_scale_have_words_of_their_own() {
        let slowest = Rate { tokens: 1, period: u64::MAX };
        assert!(matches!(Price::at(slowest), Price::Each(span) if span.0 < Price::NEVER));
        assert!(matches!(Price::at(Rate::MAX), Price::Each(span) if span.0 > Price::FREE));
        for price in [Price::Free, Price::Never, Price::Closed] {
            assert_eq!(Price::from_word(price.to_word()), price);
        }
    }
}
