//! All stripes of a limiter, and how they get tokens and give them.
//!
//! What the stripes hold was taken from the line, whose capacity is less than the burst by as much as
//! they hold at most. So the line and they hold a burst at most, and what is used in a
//! window is that and what is minted in it. This is the third sentence of the token line with the
//! burst held in several places.
//!
//! A stripe has no clock, so what it holds never overflows; and it can't be told when what it lacks
//! was used, but at two times: when somebody takes the last of it, and when somebody comes by and
//! finds it as it was before. What overflows of the line from then on fills it up, as it would have
//! stayed in a bucket that holds the whole burst.

use super::stripe::{MOST_TOKENS, Stripe, Taken};
use crate::line::{Line, Overflow};

/// The stripes.
pub(crate) struct Pool {
    stripes: Box<[Stripe]>,
    /// How many tokens a stripe holds at most.
    batch: u32,
}

/// As many as there may be: what they hold stays far below 2^32.
pub(super) const MOST_STRIPES: u32 = 1024;

impl Pool {
    /// So many stripes, or the next power of two, of up to `batch` tokens; none if that is out of
    /// range.
    pub(crate) fn empty(count: u32, batch: u32) -> Option<Self> {
        let in_range = (1..=MOST_STRIPES).contains(&count) && (1..=MOST_TOKENS).contains(&batch);
        in_range.then(|| {
            let stripes = (0..count.next_power_of_two()).map(|_| Stripe::empty());
            Self { stripes: stripes.collect(), batch }
        })
    }

    /// Puts in so many tokens in all, beside a line that has just begun.
    pub(crate) fn start(&self, line: &Line, initial: u32) {
        let mut left = initial;
        for stripe in &self.stripes {
            left -= stripe.add(left, self.batch);
            stripe.record(stripe.word(), line.overflowed_by(0));
        }
    }

    /// How many tokens all stripes hold at most.
    pub(crate) fn capacity(&self) -> u32 {
        self.stripes.iter().map(|_| self.batch).sum()
    }

    /// The burst must be this, so that the line has a batch beside what the stripes hold.
    pub(crate) fn least_burst(&self) -> u32 {
        self.capacity() + self.batch
    }

    /// How many tokens there are in all stripes.
    pub(crate) fn tokens(&self) -> u32 {
        self.stripes.iter().map(|stripe| stripe.word().tokens()).sum()
    }

    pub(crate) fn close(&self) {
        self.stripes.iter().for_each(Stripe::close);
    }

    /// Takes `n` of the stripe with this number: the fast path, which reads no clock and touches
    /// nothing that other threads write. If other threads use this stripe too, it says so to
    /// `contended`.
    #[inline]
    pub(crate) fn take(
        &self,
        line: &Line,
        number: usize,
        n: u32,
        clock: impl Fn() -> u64,
        contended: impl FnOnce(),
    ) -> bool {
        match self.stripe(number).take(n) {
            Taken::Nothing => return false,
            Taken::Some => {}
            Taken::Last => self.fetch(line, number, clock),
            Taken::Contended => contended(),
        }
        true
    }

    #[inline]
    fn stripe(&self, number: usize) -> &Stripe {
        &self.stripes[number & (self.stripes.len() - 1)]
    }

    /// Fills a stripe that has just been emptied, so that it may be long until it is again.
    #[cold]
    fn fetch(&self, line: &Line, number: usize, clock: impl Fn() -> u64) {
        let stripe = self.stripe(number);
        // Read before the clock: a word that another thread made later is not missing since then.
        let word = stripe.word();
        let now = clock();
        if !self.take_of_line(line, stripe, 0, now, 0, &clock) {
            stripe.record(word, line.overflowed_by(now));
        }
    }

    /// Takes `n` of the line, or of all stripes and the line together. Overflow of the line is judged
    /// with an allowance.
    #[cold]
    pub(crate) fn take_elsewhere(
        &self,
        line: &Line,
        number: usize,
        n: u32,
        now: u64,
        allowance: u64,
        clock: impl Fn() -> u64,
    ) -> bool {
        self.take_of_line(line, self.stripe(number), n, now, allowance, &clock)
            || n <= line.burst()
                && n <= self.tokens().saturating_add(line.whole_tokens(now))
                && self.gather(line, number, 0, n, now, &clock)
    }

    /// Takes `n` of the line, and what the stripe has room for; `n` and one at least.
    fn take_of_line(
        &self,
        line: &Line,
        stripe: &Stripe,
        n: u32,
        now: u64,
        allowance: u64,
        clock: &impl Fn() -> u64,
    ) -> bool {
        let most = n.saturating_add(stripe.word().room(self.batch)).max(1);
        let Some(batch) = line.take_batch(now, n.max(1), most, allowance) else { return false };
        // What overflowed fills this stripe too: then the line has the rest back, and so it has
        // if another thread has filled the stripe meanwhile.
        let spare = batch.tokens - n;
        self.share_out(line, batch.overflow, clock);
        let added = stripe.add(spare, self.batch);
        line.give_back_surplus(now, &batch, spare - added);
        true
    }

    /// Lets stripes have what overflowed while they lacked it, before somebody moves the line on who
    /// does not ask them.
    #[cold]
    pub(crate) fn catch_up(&self, line: &Line, now: u64, clock: impl Fn() -> u64) {
        if let Some(batch) = line.take_batch(now, 1, 1, 0) {
            line.give_back_surplus(now, &batch, 1);
            self.share_out(line, batch.overflow, &clock);
        }
    }

    /// Fills stripes with what overflowed while they lacked it. Each such token goes to one of them.
    fn share_out(&self, line: &Line, mut overflow: Overflow, clock: &impl Fn() -> u64) {
        if overflow.tokens == 0 {
            return;
        }
        for stripe in &self.stripes {
            let word = stripe.word();
            if word.room(self.batch) == 0 {
                continue;
            }
            if stripe.is_recorded(word) {
                overflow = overflow.less(stripe.fill(overflow, self.batch).into());
            } else {
                stripe.record(word, line.overflowed_by(clock()));
            }
        }
    }

    /// Takes `n` of this stripe and those after it, all around, and the rest of the line. If there
    /// are not enough, because another thread was faster, all is put back.
    fn gather(
        &self,
        line: &Line,
        number: usize,
        offset: usize,
        n: u32,
        now: u64,
        clock: &impl Fn() -> u64,
    ) -> bool {
        if n == 0 || offset == self.stripes.len() {
            return n == 0 || line.take_batch(now, n, n, 0).is_some();
        }
        let stripe = self.stripe(number + offset);
        let borrowed = stripe.borrow(n);
        let enough = self.gather(line, number, offset + 1, n - borrowed, now, clock);
        if borrowed > 0 {
            stripe.settle(borrowed, if enough { 0 } else { borrowed });
            stripe.record(stripe.word(), line.overflowed_by(clock()));
        }
        enough
    }
}

#[cfg(all(test, not(paceline_loom)))]
mod tests {
    use super::*;
    use crate::line::{Bounds, Settings};
    use crate::rate::Rate;

    /// A thread empties its stripe and reads the clock, and stands still there. Meanwhile another
    /// one fills the stripe and uses a part of it much later, when the first goes on.
    #[test]
    fn a_stripe_that_another_thread_filled_meanwhile_is_missing_nothing_from_before() {
        let rate = Rate::per_second(1_000_000);
        let line = Line::new(Settings::full(rate, 4, Bounds::usual(rate, 4), 0));
        let pool = Pool::empty(2, 4).unwrap();
        pool.start(&line, 8);
        let take = |number, n, now| {
            pool.take(&line, number, n, || now, || ())
                || pool.take_elsewhere(&line, number, n, now, 0, || now)
        };
        line.take_batch(0, 4, 4, 0).unwrap();
        let later = 12_000;
        let others = || {
            assert!(take(0, 1, 5_000), "and it has three more");
            assert!(take(0, 2, later));
        };
        let clock = || {
            others();
            0
        };
        assert!(pool.take(&line, 0, 4, clock, || ()));
        let mut used = 2;
        for number in [1, 0] {
            while take(number, 1, later) {
                used += 1;
            }
        }
        assert!(used <= 12, "{used} are used in a nanosecond");
    }

    /// A thread has what overflowed in its hand and reads the clock. Meanwhile another one empties
    /// a stripe, which lacked nothing when that overflowed.
    #[test]
    fn a_stripe_is_not_filled_by_what_overflowed_before_it_was_emptied() {
        let rate = Rate::per_second(1_000_000);
        let line = Line::new(Settings::full(rate, 4, Bounds::usual(rate, 4), 0));
        let pool = Pool::empty(2, 4).unwrap();
        pool.start(&line, 8);
        let now = 100_000;
        // Nobody has seen that the first stripe lacks two.
        assert!(pool.take(&line, 0, 2, || now, || ()));
        let others = || {
            line.take_batch(now, 1, 4, 0);
            assert!(pool.take(&line, 1, 4, || now, || ()));
            now
        };
        assert!(pool.take_of_line(&line, pool.stripe(1), 1, now, 0, &others));
        assert_eq!(pool.tokens(), 2, "used are 10 of 12");
        assert_eq!(line.whole_tokens(now), 0);
    }
}
