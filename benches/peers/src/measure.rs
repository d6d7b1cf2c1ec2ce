//! The harness: every subject in short rounds, in turn, and medians over the rounds.
//!
//! A machine does not hold still: its frequency moves, a neighbour wakes up, two threads fall in
//! and out of step. Measured one after the other, each subject would get a piece of that of its
//! own. So the rounds are short and alternate (A B C, C B A, A B C, ...): whatever goes on meets
//! all of them, and the median drops the rounds that were disturbed.
//!
//! A process does not hold still either, from one start to the next: where the system puts its
//! pages moves some of these loops by a fifth, for as long as it lives. So a run is
//! several starts (see [`crate::starts`]), and the rounds of all of them are pooled.
//!
//! Nothing here judges a time: figures are printed, and people judge.

use core_affinity::CoreId;
use std::{
    fmt,
    future::Future,
    hint::black_box,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Kinds of operation: the groups of the peers' table. Only like is compared with like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What a limiter cannot do without, alone.
    Floor,
    /// One permit asked without waiting, and granted.
    Granted,
    /// One permit asked without waiting, and refused.
    Denied,
    /// One permit awaited that is there already.
    Ready,
    /// A turn in the future booked and given back.
    Reserve,
}

impl Kind {
    /// All kinds, in the order of the table.
    pub const ALL: [Self; 5] =
        [Self::Floor, Self::Granted, Self::Denied, Self::Ready, Self::Reserve];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Floor => "floors",
            Self::Granted => "try, granted",
            Self::Denied => "try, denied",
            Self::Ready => "await, ready at once (in block_on of a current_thread runtime)",
            Self::Reserve => "book a turn in the future and give it back",
        })
    }
}

/// On how many threads at once a subject can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// By one thread, then by two that share it.
    OneAndTwo,
    /// By one only.
    One,
}

/// When one thread's loop began and ended.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    start: Instant,
    end: Instant,
}

impl Span {
    /// From `start` until now.
    #[must_use]
    pub fn since(start: Instant) -> Self {
        Self { start, end: Instant::now() }
    }

    /// Until now, and so long: for a loop that stops the watch now and then.
    ///
    /// # Panics
    ///
    /// When the clock does not reach back so far.
    #[must_use]
    pub fn lasting(busy: Duration) -> Self {
        let end = Instant::now();
        Self { start: end.checked_sub(busy).expect("it began after the clock did"), end }
    }
}

/// Lets the threads of one round start together.
///
/// They spin: a sleeping barrier wakes its threads tens of microseconds apart, and for so long the
/// first would run as if alone.
#[derive(Debug)]
pub struct Gate {
    parties: usize,
    arrived: AtomicUsize,
}

impl Gate {
    /// After so many looks a waiting thread lets others run, for a machine with fewer free cores
    /// than threads.
    const SPINS: u32 = 1 << 14;

    fn new(parties: usize) -> Self {
        Self { parties, arrived: AtomicUsize::new(0) }
    }

    /// On how many threads this round is.
    #[must_use]
    pub fn parties(&self) -> usize {
        self.parties
    }

    /// Returns once every thread of the round has come here.
    pub fn pass(&self) {
        // AcqRel pairs with the loads below and with the other arrivals: what a thread did to warm
        // up is over for all before anyone is timed.
        self.arrived.fetch_add(1, Ordering::AcqRel);
        let mut spins = 0;
        while self.arrived.load(Ordering::Acquire) < self.parties {
            if spins < Self::SPINS {
                spins += 1;
                std::hint::spin_loop();
            } else {
                thread::yield_now();
            }
        }
    }
}

/// Where the threads of a round run: each on a core of its own, wherever that can be had.
///
/// Left to the scheduler, a new thread lands on the other's core now and then and stays there for
/// longer than a round: then each runs alone, half of the time, and nothing is contended.
#[derive(Clone, Copy, Debug)]
struct Cores(Option<[CoreId; 2]>);

impl Cores {
    /// To be asked before anything is pinned: a pinned thread sees its own core only.
    fn available() -> Self {
        let two = |cores: Vec<CoreId>| Some([*cores.first()?, *cores.get(1)?]);
        Self(core_affinity::get_core_ids().and_then(two))
    }

    fn pin_this_thread(self, to: usize) {
        if let Self(Some(cores)) = self {
            // Where this is refused, the figures are a little less steady.
            core_affinity::set_for_current(cores[to]);
        }
    }
}

type Run = Box<dyn Fn(&Gate, u32) -> Span + Send + Sync>;
type Check = Box<dyn Fn(u32) -> u32 + Send + Sync>;

/// One line of the table: an operation of one crate, in a group `K` of the table.
pub struct Subject<K = Kind> {
    kind: K,
    name: &'static str,
    threads: Threads,
    run: Run,
    check: Check,
    strays: u32,
}

impl<K: Copy + fmt::Display> Subject<K> {
    /// An operation of which `as_labelled` says whether it did what the label says.
    ///
    /// The timed loop contains `op` alone. `black_box` looks at its whole outcome: an error that
    /// carries much has to be made, as it would be for a caller who reads it. It looks at it where
    /// it lies, by reference: by value it would copy it first, which nobody does who is granted.
    pub fn sync<T>(
        kind: K,
        name: &'static str,
        op: impl Fn() -> T + Copy + Send + Sync + 'static,
        as_labelled: impl Fn(&T) -> bool + Send + Sync + 'static,
    ) -> Self {
        let run = move |gate: &Gate, count: u32| {
            for _ in 0..warm_up(count) {
                black_box(&op());
            }
            gate.pass();
            let start = Instant::now();
            for _ in 0..count {
                black_box(&op());
            }
            Span::since(start)
        };
        let check = move |count: u32| {
            let mut strays = 0;
            for _ in 0..count {
                strays += u32::from(!as_labelled(&op()));
            }
            strays
        };
        Self::from_parts(kind, name, Threads::OneAndTwo, run, check)
    }

    /// The same for a future that is ready: all futures of a round in one `block_on`, so that
    /// entering the runtime costs nothing. Each thread has a runtime of its own.
    ///
    /// Tokio's cooperative budget is left on, as it is for everybody: those who respect it go
    /// round the scheduler once in 128 operations, and that is in their figure.
    pub fn future<T, F: Future<Output = T>>(
        kind: K,
        name: &'static str,
        op: impl Fn() -> F + Copy + Send + Sync + 'static,
        as_labelled: impl Fn(&T) -> bool + Send + Sync + 'static,
    ) -> Self {
        let run = move |gate: &Gate, count: u32| {
            runtime().block_on(async {
                for _ in 0..warm_up(count) {
                    black_box(&op().await);
                }
                gate.pass();
                let start = Instant::now();
                for _ in 0..count {
                    black_box(&op().await);
                }
                Span::since(start)
            })
        };
        let check = move |count: u32| {
            runtime().block_on(async {
                let mut strays = 0;
                for _ in 0..count {
                    strays += u32::from(!as_labelled(&op().await));
                }
                strays
            })
        };
        Self::from_parts(kind, name, Threads::OneAndTwo, run, check)
    }

    /// A subject that fits neither. `run` warms up, passes the gate, and times its loop; `check`
    /// runs the operation so many times and says how often it did not do what the label says.
    pub fn from_parts(
        kind: K,
        name: &'static str,
        threads: Threads,
        run: impl Fn(&Gate, u32) -> Span + Send + Sync + 'static,
        check: impl Fn(u32) -> u32 + Send + Sync + 'static,
    ) -> Self {
        Self { kind, name, threads, run: Box::new(run), check: Box::new(check), strays: 0 }
    }

    /// Keeps it to one thread, for a crate that fails on two.
    #[must_use = "returns the subject"]
    pub fn on_one_thread_only(mut self) -> Self {
        self.threads = Threads::One;
        self
    }

    /// Lets a check pass in which up to so many operations did not do what the label says, for a
    /// crate that cannot be set up to do it without fail.
    #[must_use = "returns the subject"]
    pub fn allowing_strays(mut self, strays: u32) -> Self {
        self.strays = strays;
        self
    }

    /// The group it belongs to.
    #[must_use]
    pub fn kind(&self) -> K {
        self.kind
    }

    /// Its name in the table.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Makes sure that the operation does what its label says, on one thread and on two.
    ///
    /// # Panics
    ///
    /// When it does not: the figure would be that of something else.
    pub fn verify(&self) {
        const COUNT: u32 = 2_000;
        let check = &self.check;
        let strays = check(COUNT);
        self.judge(strays, COUNT, "one thread");
        if self.threads == Threads::OneAndTwo {
            let strays = thread::scope(|scope| {
                let other = scope.spawn(|| check(COUNT));
                check(COUNT) + other.join().expect("the other thread's check")
            });
            self.judge(strays, 2 * COUNT, "two threads");
        }
    }

    fn judge(&self, strays: u32, of: u32, on: &str) {
        assert!(
            strays <= self.strays,
            "{}, {}: {strays} of {of} operations on {on} did something else",
            self.kind,
            self.name
        );
    }

    fn one(&self, count: u32) -> Duration {
        let span = (self.run)(&Gate::new(1), count);
        span.end - span.start
    }

    /// From the gate to the last one's finish.
    fn two(&self, count: u32, cores: Cores) -> Duration {
        let gate = Gate::new(2);
        let run = &self.run;
        let (mine, theirs) = thread::scope(|scope| {
            let other = scope.spawn(|| {
                cores.pin_this_thread(1);
                run(&gate, count)
            });
            let mine = run(&gate, count);
            (mine, other.join().expect("the other thread's loop"))
        });
        mine.end.max(theirs.end) - mine.start.min(theirs.start)
    }
}

impl<K: fmt::Debug> fmt::Debug for Subject<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject")
            .field("kind", &self.kind)
            .field("name", &self.name)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

/// The runtime that ready futures are awaited in: one thread, a timer, nothing else.
///
/// # Panics
///
/// When the system has nothing left to build it of.
#[must_use]
pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a current_thread runtime")
}

/// The runtime that services use, with so many workers.
///
/// # Panics
///
/// When the system has nothing left to build it of.
#[must_use]
pub fn workers(count: usize) -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(count)
        .enable_time()
        .build()
        .expect("a multi_thread runtime")
}

/// How many operations to run before a loop of `count`: enough for thread-locals, caches and
/// branch predictors.
#[must_use]
pub fn warm_up(count: u32) -> u32 {
    count / 64 + 16
}

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How often the program is started.
    pub starts: u32,
    /// Rounds of each subject on each number of threads, in each start.
    pub rounds: u32,
    /// About how long a round of one subject takes.
    pub round: Duration,
}

impl Plan {
    /// For figures worth keeping.
    pub const FULL: Self = Self { starts: 9, rounds: 13, round: Duration::from_micros(1_500) };

    /// To see that everything runs.
    pub const QUICK: Self = Self { starts: 2, rounds: 2, round: Duration::from_micros(100) };
}

/// Nanoseconds per operation and thread of one subject, one sample a round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// On one thread.
    pub one: Vec<f64>,
    /// On two threads that share it; empty where two cannot.
    pub two: Vec<f64>,
}

impl Samples {
    /// Adds the rounds of another start.
    pub fn pool(&mut self, other: Self) {
        self.one.extend(other.one);
        self.two.extend(other.two);
    }
}

/// The rounds of one subject on one number of threads, over.
#[derive(Clone, Debug)]
pub struct Series {
    sorted: Vec<f64>,
}

impl Series {
    /// Nothing where there were no rounds.
    #[must_use]
    pub fn new(mut samples: Vec<f64>) -> Option<Self> {
        samples.sort_by(f64::total_cmp);
        (!samples.is_empty()).then_some(Self { sorted: samples })
    }

    /// The middle of the rounds.
    #[must_use]
    pub fn median(&self) -> f64 {
        self.quantile(1, 2)
    }

    /// How far apart the middle half of the rounds lies, as a part of the median. What is under it
    /// is not worth an argument.
    #[must_use]
    pub fn spread(&self) -> f64 {
        (self.quantile(3, 4) - self.quantile(1, 4)) / self.median()
    }

    /// What so large a part of the rounds lies below.
    #[must_use]
    pub fn quantile(&self, part: usize, of: usize) -> f64 {
        self.sorted[(self.sorted.len() - 1) * part / of]
    }
}

/// The middle of some figures.
///
/// # Panics
///
/// When there are none.
#[must_use]
pub fn middle(figures: Vec<f64>) -> f64 {
    Series::new(figures).expect("at least one run").median()
}

/// Measures all subjects in this process, in rounds that alternate. The samples come in the
/// subjects' order. The calling thread is kept on one core from then on.
///
/// # Panics
///
/// When an operation does not do what its label says, before the rounds or after them.
#[must_use]
pub fn measure<K: Copy + fmt::Display>(subjects: &[Subject<K>], plan: Plan) -> Vec<Samples> {
    let cores = Cores::available();
    for subject in subjects {
        subject.verify();
    }
    cores.pin_this_thread(0);
    let mut tracks: Vec<_> =
        subjects.iter().map(|subject| Tracks::of(subject, plan, cores)).collect();
    for round in 0..plan.rounds {
        // There and back again, so that nobody always comes after the same one.
        if round % 2 == 0 {
            tracks.iter_mut().for_each(Tracks::sample);
        } else {
            tracks.iter_mut().rev().for_each(Tracks::sample);
        }
    }
    // Once more: a stock of permits that ran out on the way would show here.
    for subject in subjects {
        subject.verify();
    }
    tracks.into_iter().map(|tracks| tracks.samples).collect()
}

/// A subject with its counts of operations to a round, and its samples so far.
struct Tracks<'a, K> {
    subject: &'a Subject<K>,
    cores: Cores,
    count_on_one: u32,
    count_on_two: Option<u32>,
    samples: Samples,
}

impl<'a, K: Copy + fmt::Display> Tracks<'a, K> {
    fn of(subject: &'a Subject<K>, plan: Plan, cores: Cores) -> Self {
        Self {
            subject,
            cores,
            count_on_one: calibrate(|count| subject.one(count), plan.round),
            count_on_two: (subject.threads == Threads::OneAndTwo)
                .then(|| calibrate(|count| subject.two(count, cores), plan.round)),
            samples: Samples::default(),
        }
    }

    fn sample(&mut self) {
        let each = |wall: Duration, count: u32| wall.as_secs_f64() * 1e9 / f64::from(count);
        let count = self.count_on_one;
        let wall = self.subject.one(count);
        self.samples.one.push(each(wall, count));
        if let Some(count) = self.count_on_two {
            let wall = self.subject.two(count, self.cores);
            self.samples.two.push(each(wall, count));
        }
    }
}

/// How many operations make a round of about that long.
fn calibrate(timed: impl Fn(u32) -> Duration, round: Duration) -> u32 {
    let mut count = 256_u32;
    loop {
        let wall = timed(count);
        // A quarter is long enough to judge by, and the first, cold ones are over by then.
        if wall * 4 >= round || count > u32::MAX / 2 {
            let scaled = u128::from(count) * round.as_nanos() / wall.as_nanos().max(1);
            return u32::try_from(scaled).unwrap_or(u32::MAX).max(1);
        }
        count *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_spreads_come_from_the_sorted_rounds() {
        let series = Series::new(vec![9.0, 2.0, 3.0, 4.0, 1.0]).unwrap();
        assert!((series.median() - 3.0).abs() < 1e-9);
        assert!((series.spread() - 2.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn calibration_aims_at_the_round() {
        let count = calibrate(|count| Duration::from_nanos(10) * count, Duration::from_millis(1));
        assert_eq!(count, 100_000);
    }

    #[test]
    fn a_count_is_found_for_what_takes_no_time() {
        assert_eq!(calibrate(|_| Duration::ZERO, Duration::from_millis(1)), u32::MAX);
    }

    #[test]
    fn samples_come_in_the_order_of_the_subjects() {
        let subject = |threads| {
            Subject::from_parts(
                Kind::Floor,
                "a pause",
                threads,
                |gate, _| {
                    gate.pass();
                    let start = Instant::now();
                    thread::sleep(Duration::from_micros(10));
                    Span::since(start)
                },
                |_| 0,
            )
        };
        let subjects = [subject(Threads::One), subject(Threads::OneAndTwo)];
        let samples = measure(&subjects, Plan::QUICK);
        let rounds = Plan::QUICK.rounds as usize;
        assert_eq!([samples[0].one.len(), samples[0].two.len()], [rounds, 0]);
        assert_eq!([samples[1].one.len(), samples[1].two.len()], [rounds, rounds]);
    }

    #[test]
    #[should_panic(expected = "3 of 2000 operations on one thread did something else")]
    fn an_operation_that_does_something_else_is_not_measured() {
        Subject::from_parts(
            Kind::Granted,
            "a liar",
            Threads::One,
            |_, _| Span::since(Instant::now()),
            |_| 3,
        )
        .verify();
    }
}
