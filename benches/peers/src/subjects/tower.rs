//! `tower`'s `RateLimit`: a layer around a service, used through `&mut self`. So there is no second
//! thread (behind a `Buffer` one would measure the channel), and no try: a service that has to
//! wait is pending.

use super::{DAY, STOCK};
use crate::measure::{Gate, Kind, Span, Subject, Threads, runtime, warm_up};
use std::{
    convert::Infallible,
    future::{Ready, ready},
    hint::black_box,
    sync::{Mutex, PoisonError},
    time::Instant,
};
use tower::{
    Service, ServiceExt,
    limit::{RateLimit, rate::Rate},
    service_fn,
};

type Answer = Ready<Result<(), Infallible>>;

/// Ready, then called: around a service that answers at once.
#[must_use]
pub fn subjects() -> Vec<Subject> {
    // It holds a timer from the start, so it is built inside a runtime. The timer is never
    // polled, so it doesn't matter that the loop is another runtime's.
    let limited = runtime().block_on(async {
        let service = service_fn((|()| ready(Ok(()))) as fn(()) -> Answer);
        RateLimit::new(service, Rate::new(STOCK.into(), DAY))
    });
    // For the exclusive access only: locked once a round, outside the timed loop.
    let limited = &*Box::leak(Box::new(Mutex::new(limited)));
    let run = |gate: &Gate, count: u32| {
        let mut limited = limited.lock().unwrap_or_else(PoisonError::into_inner);
        runtime().block_on(async {
            for _ in 0..warm_up(count) {
                black_box(&once(&mut *limited).await);
            }
            gate.pass();
            let start = Instant::now();
            for _ in 0..count {
                black_box(&once(&mut *limited).await);
            }
            Span::since(start)
        })
    };
    let check = |count: u32| {
        let mut limited = limited.lock().unwrap_or_else(PoisonError::into_inner);
        runtime().block_on(async {
            let mut strays = 0;
            for _ in 0..count {
                // It answers only once ready.
                strays += u32::from(once(&mut *limited).await.is_err());
            }
            strays
        })
    };
    vec![Subject::from_parts(
        Kind::Ready,
        "tower RateLimit ready().await + call",
        Threads::One,
        run,
        check,
    )]
}

async fn once(
    service: &mut impl Service<(), Response = (), Error = Infallible, Future = Answer>,
) -> Result<(), Infallible> {
    service.ready().await?.call(()).await
}
