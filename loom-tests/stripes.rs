//! Races for what the stripes hold.
//!
//! Time stands still in each model, so every token is granted, in a stripe, or on the line; and
//! nothing is lost as long as nothing overflows.

use super::{EACH_NANOSECOND, race_on, take};
use crate::line::{Bounds, Line, Overflow, Settings};
use crate::striped::{Pool, Stripe};

/// Two stripes of so many tokens at most beside a line that keeps four.
struct Striped {
    line: Line,
    pool: Pool,
}

const LINE: u32 = 4;

fn striped(batch: u32, on_line: u32, in_stripes: u32) -> Striped {
    let bounds = Bounds::usual(EACH_NANOSECOND, LINE);
    let full = Settings::full(EACH_NANOSECOND, LINE, bounds, 0);
    let line = Line::new(Settings { initial: on_line, ..full });
    let pool = Pool::empty(2, batch).expect("in range");
    pool.start(&line, in_stripes);
    Striped { line, pool }
}

impl Striped {
    /// Tries as `Striped::try_acquire_many` does, in the stripe of that number.
    fn take(&self, number: usize, n: u32, now: u64) -> bool {
        self.pool.take(&self.line, number, n, || now, || ())
            || self.pool.take_elsewhere(&self.line, number, n, now, 0, || now)
            || take(&self.line, now, n).is_some()
    }

    fn left(&self, now: u64) -> u32 {
        assert!(self.pool.tokens() <= self.pool.capacity());
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few")]
        let on_line = self.line.tokens(now) as u32;
        self.pool.tokens() + on_line
    }
}

#[test]
fn two_threads_take_the_last_token_of_a_stripe() {
    race_on(
        || striped(1, 0, 1),
        |limiter| limiter.take(0, 1, 0),
        |limiter| limiter.take(0, 1, 0),
        |limiter, left, right| {
            assert!(left != right);
            assert_eq!(limiter.left(0), 0);
        },
    );
}

#[test]
fn a_thief_races_with_the_owner() {
    race_on(
        || striped(1, 0, 1),
        |limiter| limiter.take(0, 1, 0),
        |limiter| limiter.take(1, 1, 0),
        |limiter, owner, thief| {
            assert!(owner != thief);
            assert_eq!(limiter.left(0), 0);
        },
    );
}

#[test]
fn two_fill_the_same_stripe() {
    race_on(
        || striped(1, 4, 0),
        |limiter| limiter.take(0, 1, 0),
        |limiter| limiter.take(0, 1, 0),
        |limiter, left, right| {
            assert!(left && right);
            assert_eq!(2 + limiter.left(0), 4, "what the stripe has no room for is back");
        },
    );
}

#[test]
fn two_gather_at_once() {
    race_on(
        || striped(1, 0, 2),
        |limiter| limiter.take(0, 2, 0),
        |limiter| limiter.take(1, 2, 0),
        |limiter, left, right| {
            assert!(!(left && right));
            let granted = 2 * (u32::from(left) + u32::from(right));
            assert_eq!(granted + limiter.left(0), 2, "what one gave up is back");
        },
    );
}

#[test]
fn a_gathering_that_fails_races_with_a_refill() {
    race_on(
        || striped(1, 1, 2),
        |limiter| limiter.take(0, 3, 0),
        // By now there is enough to fill the stripe that the other has emptied.
        |limiter| limiter.take(0, 1, 3),
        |limiter, all, one| {
            assert!(one);
            assert_eq!(3 * u32::from(all) + 1 + limiter.left(3), 6);
        },
    );
}

/// Both stripes are empty since the beginning, and at 9 more than enough has overflowed.
#[test]
fn overflow_fills_a_stripe_that_its_owner_fills_too() {
    race_on(
        || striped(1, 0, 0),
        |limiter| limiter.take(0, 1, 9),
        |limiter| limiter.take(1, 1, 9),
        |limiter, left, right| {
            assert!(left && right);
            assert!(2 + limiter.left(9) <= LINE + 2, "never more than the burst");
            assert!(2 + limiter.left(9) >= LINE, "what was on the line is not lost");
        },
    );
}

/// All is full at 9, and both stripes were full when it overflowed. Each is emptied while overflow
/// comes by, and looks then as it did when it was empty at first.
#[test]
fn what_overflowed_while_a_stripe_was_full_is_not_its_own() {
    race_on(
        || {
            let limiter = striped(1, 0, 0);
            assert!(limiter.take(0, 1, 5), "and both stripes are filled");
            limiter
        },
        |limiter| limiter.take(0, 1, 9),
        |limiter| limiter.take(1, 1, 9),
        |limiter, left, right| {
            assert!(left && right);
            assert!(2 + limiter.left(9) <= LINE + 2, "never more than the burst");
        },
    );
}

/// Six have overflowed, and nobody has used one.
const SIX: Overflow = Overflow { tokens: 6, end: 6 };

/// A stripe of two is emptied when five have overflowed; somebody else has seen it full when it was
/// one, and comes later to say so.
#[test]
fn two_record_the_same_stripe() {
    race_on(
        || {
            let stripe = Stripe::empty();
            assert_eq!(stripe.add(2, 2), 2);
            stripe
        },
        |stripe| {
            stripe.take(2);
            stripe.record(stripe.word(), 5);
        },
        |stripe| {
            let word = stripe.word();
            stripe.record(word, if word.tokens() == 2 { 1 } else { 5 });
            stripe.fill(SIX, 2)
        },
        |stripe, (), filled| {
            let filled = filled + stripe.fill(SIX, 2);
            assert!(filled <= 1, "only one has overflowed since it was emptied");
        },
    );
}

#[test]
fn close_races_with_take() {
    race_on(
        || striped(2, 2, 2),
        |limiter| {
            limiter.line.close();
            limiter.pool.close();
        },
        |limiter| limiter.take(0, 2, 0),
        |limiter, (), _| {
            assert_eq!(limiter.pool.tokens(), 0);
            assert!(!limiter.take(0, 1, 0) && !limiter.take(1, 1, 0));
        },
    );
}

#[test]
fn close_races_with_a_gathering_that_fails() {
    race_on(
        || striped(1, 1, 1),
        |limiter| {
            // Now the line has too little for the other.
            let taken = limiter.take(1, 1, 0);
            limiter.line.close();
            limiter.pool.close();
            taken
        },
        |limiter| limiter.take(0, 2, 0),
        |limiter, _, _| assert_eq!(limiter.pool.tokens(), 0),
    );
}

#[test]
fn close_races_with_a_refill() {
    race_on(
        || striped(1, 2, 0),
        |limiter| {
            limiter.line.close();
            limiter.pool.close();
        },
        |limiter| limiter.take(0, 1, 0),
        |limiter, (), _| {
            assert_eq!(limiter.pool.tokens(), 0);
            assert!(!limiter.take(0, 1, 0));
        },
    );
}
