//! Bookings and cancels with holes about.
//!
//! Time stands still here: all times are given, so that holes neither come due nor overflow while
//! they are measured.

use crate::{
    Group, Subject,
    measure::{Gate, Span, Threads, warm_up},
    plain::leak,
};
use paceline::{Limiter, Rate, Reservation};
use std::{
    sync::atomic::{AtomicU32, AtomicUsize, Ordering},
    time::{Duration, Instant as Watch},
};
use tokio::time::Instant;

/// How many holes are about, and what the table calls it.
pub(crate) const ABOUT: [(usize, &str); 3] =
    [(1, "1 hole about"), (100, "100 holes about"), (10_000, "10 000 holes about")];

/// How many turns are booked before they are cancelled again. Only the bookings are timed or only
/// the cancels, and two readings of the clock are spread over so many of them.
const BATCH: usize = 8;

/// A turn each millisecond.
const TURN: Duration = Duration::from_millis(1);

pub(crate) fn subjects() -> Vec<Subject> {
    let mut subjects = vec![denied()];
    for (place, half, group) in [
        (Place::First, Half::Bookings, Group::BookFirstHole),
        (Place::Anywhere, Half::Bookings, Group::BookAnyHole),
        (Place::First, Half::Cancels, Group::CancelFirst),
        (Place::Anywhere, Half::Cancels, Group::CancelAny),
    ] {
        subjects.extend(ABOUT.map(|(holes, name)| subject(group, name, holes, place, half)));
    }
    subjects
}

/// A refusal that has to look whether a hole would do: none has come due.
fn denied() -> Subject {
    let field = leak(Field::new(1, 100, Place::First));
    let limiter = &field.limiters[0];
    Subject::sync(
        Group::Denied,
        "try_acquire_many_at(), 100 holes about",
        || limiter.try_acquire_many_at(1, field.now),
        Result::is_err,
    )
}

fn subject(group: Group, name: &'static str, holes: usize, place: Place, half: Half) -> Subject {
    // Of many holes, a batch more or less changes nothing. A single one is taken once, so a batch
    // is one turn of each of several limiters; two threads need a hole each, and meet less often
    // than where there is one limiter.
    let (one, two) = if holes > 10 * BATCH {
        let shared = leak(Field::new(1, holes, place));
        (shared, shared)
    } else {
        let field = |threads| leak(Field::new(BATCH, holes * threads, place));
        (field(1), field(2))
    };
    Subject::from_parts(
        group,
        name,
        Threads::OneAndTwo,
        move |gate, count| if gate.parties() == 1 { one } else { two }.run(half, gate, count),
        move |count| {
            two.rounds(half, count, &mut two.times());
            one.strays() + two.strays()
        },
    )
}

/// Where in the map the holes are taken and left.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A booking takes the first, as in a service, and a cancel puts it back.
    First,
    /// Anywhere: for a cancel, as in a service; for a booking, as if all before it had overflowed
    /// and lay there still.
    Anywhere,
}

/// What is timed.
#[derive(Clone, Copy)]
enum Half {
    Bookings,
    Cancels,
}

/// Limiters of which every other turn is a hole:
///
/// ```text
/// now   1 ms   2 ms   3 ms   4 ms          end
///  ├──────┼──────┼──────┼──────┼── ... ┼──────┤
///   hole 0  kept  hole 1  kept           kept
/// ```
///
/// The last is kept, so that a cancel never meets the end of the line.
struct Field {
    limiters: Vec<Limiter>,
    /// When cancels are made.
    now: Instant,
    /// When bookings are made, over and over. At half a turn past the start of a hole all before
    /// it has overflowed, and it has not come due.
    times: Vec<Instant>,
    /// The next of `times`.
    next: AtomicUsize,
    end: Instant,
    strays: AtomicU32,
}

impl Field {
    fn new(limiters: usize, holes: usize, place: Place) -> Self {
        let limiters: Vec<Limiter> =
            (0..limiters).map(|_| Limiter::new(Rate::every(TURN), 1)).collect();
        let now = Instant::now();
        for limiter in &limiters {
            assert!(limiter.try_acquire_many_at(1, now).is_ok(), "a new limiter is full");
            let book = |_| limiter.reserve_many_at(1, now).expect("the line has room");
            let turns: Vec<Reservation<'_>> = (0..2 * holes).map(book).collect();
            // Not in their order, for their places in memory.
            let mut given_back: Vec<_> = turns.into_iter().step_by(2).collect();
            fastrand::shuffle(&mut given_back);
            for turn in given_back {
                turn.cancel_at(now);
            }
        }
        let start = |hole: usize| now + TURN * 2 * u32::try_from(hole).expect("few enough");
        let times = match place {
            Place::First => vec![now],
            Place::Anywhere => {
                // Two threads that hold a batch each leave holes beyond the last of these.
                let mut times: Vec<_> = (0..holes.saturating_sub(2 * BATCH).max(1))
                    .map(|hole| start(hole) + TURN / 2)
                    .collect();
                fastrand::shuffle(&mut times);
                times
            }
        };
        let (next, strays) = (AtomicUsize::new(0), AtomicU32::new(0));
        Self { limiters, now, times, next, end: start(holes), strays }
    }

    fn run(&self, half: Half, gate: &Gate, count: u32) -> Span {
        let mut times = self.times();
        self.rounds(half, warm_up(count), &mut times);
        gate.pass();
        Span::lasting(self.rounds(half, count, &mut times))
    }

    /// Books and cancels `count` turns, and says how long the timed half of that took.
    fn rounds(
        &self,
        half: Half,
        count: u32,
        times: &mut impl Iterator<Item = Instant>,
    ) -> Duration {
        let mut busy = Duration::ZERO;
        let mut strays = 0;
        let mut held = Vec::with_capacity(BATCH);
        let mut left = count as usize;
        while left > 0 {
            let batch = left.min(BATCH);
            let start = Watch::now();
            for limiter in self.limiters.iter().cycle().take(batch) {
                let time = times.next().expect("they never end");
                held.extend(limiter.reserve_many_at(1, time));
            }
            let booked = Watch::now();
            strays += batch - held.iter().filter(|turn| self.is_hole(turn)).count();
            let looked = Watch::now();
            held.drain(..).for_each(|turn| turn.cancel_at(self.now));
            busy += match half {
                Half::Bookings => booked - start,
                Half::Cancels => looked.elapsed(),
            };
            left -= batch;
        }
        self.strays.fetch_add(u32::try_from(strays).unwrap_or(u32::MAX), Ordering::Relaxed);
        busy
    }

    /// Whether it lies before the end of the line, where only holes were free.
    ///
    /// Since that is asked of every turn, and there are many more of them than holes, it says of
    /// the cancels too that they left a hole: else the holes would have run out.
    fn is_hole(&self, turn: &Reservation<'_>) -> bool {
        turn.ready_at().is_some_and(|at| at < self.end)
    }

    fn strays(&self) -> u32 {
        self.strays.load(Ordering::Relaxed)
    }

    /// Each who asks starts elsewhere.
    fn times(&self) -> impl Iterator<Item = Instant> {
        let from = self.next.fetch_add(self.times.len() / 3 + 1, Ordering::Relaxed);
        self.times.iter().copied().cycle().skip(from % self.times.len())
    }
}
