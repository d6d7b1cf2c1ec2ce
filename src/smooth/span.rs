//! Time as the schedules count it, in parts of 2^-64 ns: pure.
//!
//! Sixty-four bits of whole nanoseconds, as everywhere here, and as many of a fraction. What a permit
//! takes is rounded up to such a part, once for each rate. So 2^32 requests for one, without a moment's
//! rest between them, are late by 2^-32 ns together.

use std::ops::Sub;

const FRACTION_BITS: u32 = 64;

/// A length of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span(pub(super) u128);

impl Span {
    /// The longest time for which anything is stored: 146 years. Longer ones count as this, so that
    /// times of 438 years more can be told.
    pub(super) const MOST_NANOS: u64 = 1 << 62;

    pub(super) const fn of_nanos(nanos: u64) -> Self {
        Self((nanos as u128) << FRACTION_BITS)
    }

    /// A nanosecond over 2 to the power of `bits`.
    pub(super) const fn of_fraction(bits: u32) -> Self {
        Self(1 << (FRACTION_BITS - bits))
    }

    /// So many times this; as good as for ever if that is too long to tell.
    #[inline]
    pub(super) fn times(self, count: u32) -> Self {
        Self(self.0.saturating_mul(u128::from(count)))
    }

    /// How many times `other` this is, to show.
    #[expect(clippy::cast_precision_loss, reason = "to show")]
    pub(super) fn in_units_of(self, other: Self) -> f64 {
        self.0 as f64 / other.0 as f64
    }
}

/// A time since the beginning of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(pub(super) u128);

impl Moment {
    /// Where time ends.
    pub(super) const NEVER: Self = Self((u64::MAX as u128) << FRACTION_BITS);

    #[inline]
    pub(super) const fn of_nanos(nanos: u64) -> Self {
        Self((nanos as u128) << FRACTION_BITS)
    }

    /// So much later, or never.
    #[inline]
    pub(super) fn after(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0)).min(Self::NEVER)
    }

    /// The first whole nanosecond that does not come before this.
    ///
    /// A fraction of less than `rounding` is not waited for. If it were, the third permit of 3/s would
    /// come at 1 s and 1 ns.
    #[inline]
    pub(super) fn nanos(self, rounding: Span) -> u64 {
        let up = (1 << FRACTION_BITS) - rounding.0;
        (self.0.saturating_add(up) >> FRACTION_BITS) as u64
    }
}

impl Sub for Moment {
    type Output = Span;

    /// How much later this is; nothing when it is not.
    #[inline]
    fn sub(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}
