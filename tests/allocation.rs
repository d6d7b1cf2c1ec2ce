//! What is served at once allocates nothing.

use paceline::smooth::{SmoothBursty, SmoothWarmingUp};
use paceline::window::{FixedWindow, SlidingLog, SlidingWindow};
use paceline::{All, CircuitBreaker, DynRateLimit, LeakyBucket, Limiter, Rate, Striped};
use std::alloc::{GlobalAlloc, Layout, System};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

/// Counts.
struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);
static FREED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: it does what the system's allocator does.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        FREED.fetch_add(1, Ordering::Relaxed);
        // SAFETY: handed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// The only test of its program, so nothing else counts meanwhile. There is no runtime either, so a
// timer would panic.
#[test]
fn what_is_served_or_refused_at_once_allocates_nothing_and_sets_no_timer() {
    let limiter = Limiter::new(Rate::per_day(1), 100);
    let cx = &mut Context::from_waker(Waker::noop());
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    for _ in 0..25 {
        assert!(limiter.try_acquire().is_ok());
        assert!(pin!(limiter.acquire_many(2)).as_mut().poll(cx).is_ready());
        assert!(limiter.reserve().is_ok());
    }
    assert!(limiter.try_acquire().is_err());
    let refused = limiter.acquire().within(Duration::from_secs(1));
    assert!(pin!(refused).as_mut().poll(cx).is_ready());
    assert_eq!(ALLOCATIONS.load(Ordering::Relaxed), before);

    let (day, fast) = (Duration::from_secs(86_400), Rate::per_second(1_000_000_000));
    let steps = Limiter::builder(Rate::per_day(100)).burst(100).refill(paceline::Refill::Interval);
    let limiters: [(&str, Box<dyn DynRateLimit>); 8] = [
        ("Striped", Box::new(Striped::new(Rate::per_day(1), 10_000).unwrap())),
        ("in steps", Box::new(steps.build().unwrap())),
        ("FixedWindow", Box::new(FixedWindow::new(100, day))),
        ("SlidingWindow", Box::new(SlidingWindow::new(100, day, 10))),
        ("SlidingLog", Box::new(SlidingLog::new(100, day))),
        ("LeakyBucket", Box::new(LeakyBucket::builder(fast, 100).delay(100).build().unwrap())),
        ("SmoothBursty", Box::new(SmoothBursty::new(fast))),
        ("SmoothWarmingUp", Box::new(SmoothWarmingUp::new(fast, Duration::from_nanos(1)))),
    ];
    for (name, limiter) in limiters {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        let granted = (0..30).filter(|_| limiter.try_acquire().is_ok()).count();
        assert!(granted > 0, "{name}");
        assert_eq!(ALLOCATIONS.load(Ordering::Relaxed), before, "{name}");
    }

    let both = All::new((Limiter::new(Rate::per_day(1), 30), Limiter::new(Rate::per_day(1), 40)));
    let breaker = CircuitBreaker::new(1, 1, day).unwrap();
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    for _ in 0..30 {
        let call = breaker.enter().unwrap();
        assert!(both.try_acquire().is_ok());
        call.succeeded();
    }
    assert!(both.try_acquire().is_err());
    assert_eq!(ALLOCATIONS.load(Ordering::Relaxed), before);

    #[cfg(feature = "keyed")]
    keys_are_looked_up_without_allocation(cx);
}

#[cfg(feature = "keyed")]
fn keys_are_looked_up_without_allocation(cx: &mut Context<'_>) {
    use paceline::Keyed;
    use paceline::keyed::Quota;

    let quota = Limiter::builder(Rate::per_day(1)).burst(100).max_wait(Duration::from_secs(1));
    let keyed: Keyed<String, std::hash::RandomState> = Keyed::builder(quota.build().unwrap())
        .quotas([Quota::new(Rate::per_day(1), 1)], |key: &String| usize::from(key == "other"))
        .hasher(std::hash::RandomState::new())
        .build()
        .unwrap();
    for key in ["key", "other"] {
        assert!(keyed.try_acquire(key).is_ok());
    }
    let mut before = ALLOCATIONS.load(Ordering::Relaxed);
    for _ in 0..33 {
        assert!(keyed.try_acquire("key").is_ok());
        assert!(keyed.peek("key").is_ok() && keyed.tokens("key") > 0.0);
        assert!(pin!(keyed.acquire_many("key", 2)).as_mut().poll(cx).is_ready());
    }
    for _ in 0..33 {
        assert!(keyed.try_acquire("key").is_err() && keyed.try_acquire("other").is_err());
        let refused =
            keyed.acquire("key").before(tokio::time::Instant::now() + Duration::from_secs(9));
        assert!(pin!(refused).as_mut().poll(cx).is_ready());
        assert!(pin!(keyed.acquire("key")).as_mut().poll(cx).is_ready());
    }
    assert_eq!(ALLOCATIONS.load(Ordering::Relaxed), before);

    // One that is not there is copied for `quotas` to look at, and not otherwise.
    let quota = Quota::new(Rate::per_day(1), 2);
    let keyed: Keyed<String> = Keyed::builder(quota).max_keys(100).build().unwrap();
    assert!(keyed.try_acquire("other").is_ok());
    before = ALLOCATIONS.load(Ordering::Relaxed);
    assert!(keyed.peek("key").is_ok() && keyed.try_acquire_many("key", 3).is_err());
    assert_eq!(ALLOCATIONS.load(Ordering::Relaxed), before);

    // Limiters of their own, and the keys that had them, go when nobody holds them any more.
    let keyed: Keyed<u64> = Keyed::new(Rate::per_second(1_000_000_000), 1);
    let live = || ALLOCATIONS.load(Ordering::Relaxed) - FREED.load(Ordering::Relaxed);
    keyed.retain_busy();
    for _ in 0..2 {
        before = live();
        let turns: Vec<_> = (0..500).map(|key| keyed.reserve(&key).unwrap()).collect();
        assert_eq!(keyed.len(), 500);
        assert!(live() > before + 1_000);
        drop(turns);
        keyed.retain_busy();
        assert!(keyed.is_empty());
    }
    // What maps and pointers keep for their threads may come and go.
    assert!(live() < before + 100, "of the second time nothing is left");
}
