//! What becomes of a rate when a call is reported.

use crate::rate::Rate;
use crate::sync::{AtomicU64, Ordering};
use std::time::Duration;

/// A rate in permits per 1000 seconds.
pub(crate) type Milli = u64;

const PERIOD: Duration = Duration::from_secs(1000);
/// 10^9 per second: 40 bits.
pub(crate) const FASTEST: Milli = 1_000_000_000_000;

/// The rate as so many per 1000 seconds, rounded down, if it is one to 10^12 of them.
pub(crate) fn milli(rate: Rate) -> Option<Milli> {
    let per_period = u128::from(rate.tokens()) * PERIOD.as_nanos();
    let milli = Milli::try_from(per_period.checked_div(rate.period().as_nanos())?).ok()?;
    (1..=FASTEST).contains(&milli).then_some(milli)
}

/// The rate of so many per 1000 seconds.
pub(crate) fn rate(milli: Milli) -> Rate {
    if milli % 1000 == 0 {
        return Rate::per_second(milli / 1000);
    }
    Rate::new(milli, PERIOD).unwrap_or(Rate::ZERO)
}

/// Within what a rate moves, and how fast.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) min: Milli,
    pub(crate) max: Milli,
    /// By how much it grows in the first calm round.
    pub(crate) increase: Milli,
    /// In nanoseconds.
    pub(crate) round: u64,
}

/// The rate and its history.
///
/// | bits | |
/// |---|---|
/// | 0 to 39 | the rate, in permits per 1000 s |
/// | 40 to 55 | the step, plus 2<sup>15</sup> |
/// | 56 to 63 | how often it was decreased since it has grown, at most 255 |
///
/// The step is how many rounds of growth lie behind the one in which it was back where it was refused;
/// less than zero before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Speed {
    rate: Milli,
    step: i64,
    trouble: u64,
}

const RATE_BITS: u32 = 40;
const STEP_BITS: u32 = 16;
const MOST_STEPS: i64 = (1 << (STEP_BITS - 1)) - 1;
const MOST_TROUBLE: u64 = (1 << 8) - 1;

impl Speed {
    fn pack(self) -> u64 {
        let step = (self.step + MOST_STEPS + 1).unsigned_abs();
        (self.trouble << STEP_BITS | step) << RATE_BITS | self.rate
    }

    fn unpack(word: u64) -> Self {
        let rate = word & ((1 << RATE_BITS) - 1);
        let step = (word >> RATE_BITS) & ((1 << STEP_BITS) - 1);
        let step = i64::try_from(step).unwrap_or(0) - MOST_STEPS - 1;
        Self { rate, step, trouble: word >> (RATE_BITS + STEP_BITS) }
    }

    /// After one more round without trouble: by the square of the step, as CUBIC grows. So it is soon
    /// near where it was refused, careful there, and soon far beyond if that is not the end any more.
    fn grown(self, terms: Terms) -> Self {
        let square = self.step.unsigned_abs().pow(2).max(1);
        let rate = self.rate.saturating_add(terms.increase.saturating_mul(square));
        let step = (self.step + 1).min(MOST_STEPS);
        Self { rate: rate.min(terms.max), step, trouble: 0 }
    }

    /// After one more round with trouble: without what the last one added; a tenth less, twice; then a fifth, two
    /// fifths, and from then on half.
    fn cut(self, terms: Terms) -> Self {
        let percent = [90, 90, 80, 60].get(usize::try_from(self.trouble).unwrap_or(usize::MAX));
        // What the last round added is what was too much, before all.
        let last = terms.increase.saturating_mul((self.step - 1).max(0).unsigned_abs().pow(2));
        let ceiling = self.rate.saturating_sub(last).max(terms.min);
        let rate = (ceiling * percent.copied().unwrap_or(50) / 100).max(terms.min);
        // Where it goes on being refused, where it was refused says nothing.
        let back = if self.trouble < 2 { ceiling - rate } else { 0 };
        let step = -steps_to(back / terms.increase);
        Self { rate, step, trouble: (self.trouble + 1).min(MOST_TROUBLE) }
    }
}

/// The most steps whose squares sum up to so many increases at most.
fn steps_to(increases: u64) -> i64 {
    let mut sum = 0;
    let fits = |step: &i64| {
        sum += step.unsigned_abs().pow(2);
        sum <= increases
    };
    (1..=MOST_STEPS).take_while(fits).last().unwrap_or(0)
}

const NEVER: u64 = u64::MAX;

/// A rate that follows reports. Times are nanoseconds of the limiter's clock.
#[derive(Debug)]
pub(crate) struct Pace {
    terms: Terms,
    speed: AtomicU64,
    /// When it was decreased last, or [`NEVER`].
    cut_at: AtomicU64,
    /// Since when nobody was refused and it has not grown.
    calm_since: AtomicU64,
}

impl Pace {
    pub(crate) fn new(terms: Terms, rate: Milli) -> Self {
        let speed = Speed { rate, step: 1, trouble: 0 };
        let speed = AtomicU64::new(speed.pack());
        Self { terms, speed, cut_at: AtomicU64::new(NEVER), calm_since: AtomicU64::new(0) }
    }

    pub(crate) fn rate(&self) -> Milli {
        // Relaxed: the rate is all in this word, and publishes nothing.
        Speed::unpack(self.speed.load(Ordering::Relaxed)).rate
    }

    /// A call that began at `began` succeeded. Says whether the rate has grown: once in each round in
    /// which nobody was refused.
    pub(crate) fn succeeded(&self, began: u64, now: u64) -> bool {
        // Acquire, with the release of a decrease: who sees a decreased speed sees in the times below
        // that it was, and does not take it for one that calm rounds have led to.
        let speed = self.speed.load(Ordering::Acquire);
        // Relaxed, here and below: no time publishes anything, and each decision rests on the exchange
        // of the word that it is about.
        let calm_since = self.calm_since.load(Ordering::Relaxed);
        if now < calm_since.saturating_add(self.terms.round) || self.is_before_the_cut(began) {
            return false;
        }
        // Of those who find the same round over one grows. It loses to a refusal in between, which
        // says that the round was not calm.
        let first =
            self.calm_since.compare_exchange(calm_since, now, Ordering::Relaxed, Ordering::Relaxed);
        if first.is_err() {
            return false;
        }
        // Once: if the speed has moved since, it was decreased, and growth from before is over.
        let before = Speed::unpack(speed);
        let after = before.grown(self.terms);
        let grown =
            self.speed.compare_exchange(speed, after.pack(), Ordering::Relaxed, Ordering::Relaxed);
        grown.is_ok() && after.rate != before.rate
    }

    /// A call that began at `began` was refused. Says whether the rate was decreased: at most once a
    /// round, and only by a call that began after the last time.
    pub(crate) fn refused(&self, began: u64, now: u64) -> bool {
        // A read-modify-write, so that the later time stays whoever comes last.
        self.calm_since.fetch_max(now, Ordering::Relaxed);
        let cut_at = self.cut_at.load(Ordering::Relaxed);
        let in_round = now < cut_at.saturating_add(self.terms.round);
        if cut_at != NEVER && (began <= cut_at || in_round) {
            return false;
        }
        // Of those who find the same round over one decreases.
        let cuts = self.cut_at.compare_exchange(cut_at, now, Ordering::Relaxed, Ordering::Relaxed);
        cuts.is_ok() && self.cut()
    }

    fn is_before_the_cut(&self, began: u64) -> bool {
        let cut_at = self.cut_at.load(Ordering::Relaxed);
        cut_at != NEVER && began <= cut_at
    }

    /// Decreases the rate, and says whether it is another.
    fn cut(&self) -> bool {
        let after = |before| Speed::unpack(before).cut(self.terms);
        let packed = |before| Some(after(before).pack());
        // Release: as `succeeded` says. It goes again if growth comes in between, so that no decrease
        // is lost.
        let before = self.speed.fetch_update(Ordering::Release, Ordering::Relaxed, packed);
        before.is_ok_and(|before| Speed::unpack(before).rate != after(before).rate)
    }

    /// Has `apply` set the rate, by everybody whose report has changed it.
    ///
    /// Who is overtaken between reading the rate and setting it sets an old one; so it looks again.
    /// Those who set a limiter's rate exclude each other by a lock, and so the last of them sees every
    /// change that any of them had seen.
    pub(crate) fn govern(&self, apply: impl Fn(Rate)) {
        let mut set = self.rate();
        loop {
            apply(rate(set));
            let latest = self.rate();
            if latest == set {
                return;
            }
            set = latest;
        }
    }
}

#[cfg(all(test, not(paceline_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_kept_in_thousandths() {
        assert_eq!(milli(Rate::per_minute(60)), Some(1000));
        assert_eq!(milli(Rate::new(1, PERIOD).unwrap()), Some(1));
        assert_eq!(milli(Rate::per_second(1_000_000_000)), Some(FASTEST));
        let out = [Rate::ZERO, Rate::UNLIMITED, Rate::per_day(1), Rate::per_second(1_000_000_001)];
        assert_eq!(out.map(milli), [None; 4]);
        assert_eq!(rate(1500), Rate::from_per_second(1.5).unwrap());
    }

    #[test]
    fn a_speed_is_read_back_from_its_word() {
        for rate in [1, FASTEST] {
            for step in [-MOST_STEPS, 0, MOST_STEPS] {
                for trouble in [0, MOST_TROUBLE] {
                    let speed = Speed { rate, step, trouble };
                    assert_eq!(Speed::unpack(speed.pack()), speed);
                }
            }
        }
        assert!(steps_to(FASTEST) < MOST_STEPS);
    }

    #[test]
    fn it_grows_faster_and_falls_faster_the_longer_that_goes_on() {
        let terms = Terms { min: 10_000, max: 1_000_000, increase: 1000, round: 1 };
        let mut speed = Speed { rate: 100_000, step: 1, trouble: 0 };
        let mut next = |step: fn(Speed, Terms) -> Speed| {
            speed = step(speed, terms);
            speed.rate
        };
        assert_eq!([(); 3].map(|()| next(Speed::grown)), [101_000, 105_000, 114_000]);
        assert_eq!([(); 5].map(|()| next(Speed::cut)), [94_500, 85_050, 68_040, 40_824, 20_412]);
        assert_eq!([(); 2].map(|()| next(Speed::cut)), [10_206, 10_000]);
        assert_eq!(next(Speed::grown), 11_000);
        assert_eq!([(); 20].map(|()| next(Speed::grown))[19], 1_000_000, "the most");
    }

    #[test]
    fn it_is_slow_where_it_was_refused() {
        let terms = Terms { min: 1, max: 1_000_000, increase: 1000, round: 1 };
        let mut speed = Speed { rate: 100_000, step: 1, trouble: 0 }.cut(terms);
        let rates = [(); 9].map(|()| {
            speed = speed.grown(terms);
            speed.rate / 1000
        });
        assert_eq!(rates, [94, 95, 96, 97, 101, 110, 126, 151, 187]);
    }
}
