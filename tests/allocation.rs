//! What is served at once allocates nothing.

use paceline::{Limiter, Rate};
use std::alloc::{GlobalAlloc, Layout, System};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};

/// Counts.
struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: it does what the system's allocator does.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
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
    let refused = limiter.acquire().within(std::time::Duration::from_secs(1));
    assert!(pin!(refused).as_mut().poll(cx).is_ready());
    assert_eq!(ALLOCATIONS.load(Ordering::Relaxed), before);
}
