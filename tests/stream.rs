//! Streams and sinks that let their items through at a rate.
#![cfg(feature = "stream")]

use futures::channel::mpsc;
use futures::stream::{self, FusedStream};
use futures::{FutureExt, Sink, SinkExt, Stream, StreamExt};
use paceline::stream::{Refused, SinkError, SinkRateLimitExt, StreamRateLimitExt};
use paceline::{AcquireError, Limiter, Rate, RateLimit};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);

fn per_second(tokens: u64, burst: u32) -> Limiter {
    Limiter::new(Rate::per_second(tokens), burst)
}

fn cx() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

#[tokio::test(start_paused = true)]
async fn each_item_comes_at_its_turn() {
    let limiter = per_second(1, 2);
    let began = Instant::now();
    let items = stream::iter(0..5).rate_limit_stream(&limiter);
    let times: Vec<_> = items.map(|item| (item.unwrap(), began.elapsed())).collect().await;
    let expected = [(0, 0), (1, 0), (2, 1), (3, 2), (4, 3)];
    assert_eq!(times, expected.map(|(item, time)| (item, time * SECOND)));
}

#[tokio::test(start_paused = true)]
async fn an_item_takes_as_many_permits_as_it_weighs() {
    let limiter = Arc::new(per_second(1, 4));
    let began = Instant::now();
    let mut items = stream::iter([4, 0, 3]).rate_limit_stream_by(limiter.clone(), |n| *n);
    for (item, time) in [(4, 0), (0, 0), (3, 3)] {
        assert_eq!(items.next().await, Some(Ok(item)));
        assert_eq!(began.elapsed(), time * SECOND);
    }
    assert_eq!(items.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn no_permit_is_taken_while_the_stream_has_nothing() {
    let limiter = per_second(1, 1);
    let (mut sender, receiver) = mpsc::channel(1);
    let mut items = receiver.rate_limit_stream(&limiter);
    assert!(items.next().now_or_never().is_none());
    assert!(limiter.try_acquire().is_ok(), "it is there for others");
    sender.send(1).await.unwrap();
    let began = Instant::now();
    assert_eq!(items.next().await, Some(Ok(1)));
    assert_eq!(began.elapsed(), SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_next_loses_neither_the_item_nor_its_turn() {
    let limiter = per_second(1, 1);
    limiter.acquire().await.unwrap();
    let began = Instant::now();
    let mut items = stream::iter(0..3).rate_limit_stream(&limiter);
    for _ in 0..4 {
        assert!(timeout(SECOND / 5, items.next()).await.is_err());
    }
    assert_eq!(items.next().await, Some(Ok(0)));
    assert_eq!(began.elapsed(), SECOND, "the turn that it had from the first poll");
    assert_eq!(items.next().await, Some(Ok(1)));
    assert_eq!(began.elapsed(), SECOND * 2);
}

#[tokio::test(start_paused = true)]
async fn the_item_that_waits_can_be_taken_out_and_its_turn_goes_back() {
    let limiter = per_second(1, 1);
    limiter.acquire().await.unwrap();
    let mut items = stream::iter(0..3).rate_limit_stream(&limiter);
    assert!(items.next().now_or_never().is_none());
    assert!((limiter.tokens() - -1.0).abs() < 1e-9);
    assert_eq!(Pin::new(&mut items).take_pending(), Some(0));
    assert!(limiter.tokens().abs() < 1e-9);
    assert!(items.next().now_or_never().is_none());
    let (rest, waits) = items.into_parts();
    assert_eq!(waits, Some(1));
    assert_eq!(rest.collect::<Vec<_>>().await, [2]);
    assert!(limiter.tokens().abs() < 1e-9);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_dropped_gives_the_turn_back() {
    let limiter = per_second(1, 1);
    limiter.acquire().await.unwrap();
    let mut items = stream::iter(0..3).rate_limit_stream(&limiter);
    assert!(items.next().now_or_never().is_none());
    drop(items);
    assert!(limiter.tokens().abs() < 1e-9);
}

#[tokio::test(start_paused = true)]
async fn what_weighs_more_than_the_burst_comes_out_refused_and_the_rest_goes_on() {
    let limiter = per_second(1, 3);
    let items = stream::iter([2, 4, 1]).rate_limit_stream_by(&limiter, |n| *n);
    let all: Vec<_> = items.map(|item| item.map_err(Refused::into_item)).collect().await;
    assert_eq!(all, [Ok(2), Err(4), Ok(1)]);
}

#[tokio::test(start_paused = true)]
async fn a_closed_limiter_gives_out_all_that_the_stream_has() {
    let limiter = per_second(1, 1);
    let mut items = stream::iter(0..4).rate_limit_stream(&limiter);
    assert_eq!(items.next().await, Some(Ok(0)));
    let (waited, ()) = tokio::join!(items.next(), async {
        sleep(SECOND / 2).await;
        limiter.close();
    });
    let refused = waited.unwrap().unwrap_err();
    assert_eq!(*refused.error(), AcquireError::Closed);
    assert_eq!(refused.into_item(), 1);
    let rest: Vec<_> = items.map(|item| item.unwrap_err().into_item()).collect().await;
    assert_eq!(rest, [2, 3]);
}

#[tokio::test(start_paused = true)]
async fn the_size_hint_counts_the_item_that_waits() {
    let limiter = per_second(1, 1);
    limiter.acquire().await.unwrap();
    let mut items = stream::iter(0..3).rate_limit_stream(&limiter);
    assert_eq!(items.size_hint(), (3, Some(3)));
    assert!(items.next().now_or_never().is_none());
    assert_eq!(items.size_hint(), (3, Some(3)));
    items.next().await.unwrap().unwrap();
    assert_eq!(items.size_hint(), (2, Some(2)));
}

#[tokio::test(start_paused = true)]
async fn it_is_terminated_when_the_stream_is_and_nothing_waits() {
    let limiter = per_second(1, 1);
    limiter.acquire().await.unwrap();
    let mut items = stream::once(async { 1 }).boxed().fuse().rate_limit_stream(&limiter);
    assert!(items.next().now_or_never().is_none());
    assert!(!items.is_terminated());
    assert_eq!(items.next().await, Some(Ok(1)));
    assert_eq!(items.next().await, None);
    assert!(items.is_terminated());
}

/// Written in terms of what all limiters share.
async fn count<L: RateLimit>(items: impl Stream<Item = u8>, limiter: &L) -> usize {
    items.rate_limit_stream(limiter).count().await
}

#[tokio::test(start_paused = true)]
async fn any_limiter_will_do() {
    let bucket = paceline::LeakyBucket::new(Rate::per_second(1), 5);
    assert_eq!(count(stream::iter([1, 2, 3]), &bucket).await, 3);
    let window = paceline::window::FixedWindow::new(2, SECOND);
    assert_eq!(count(stream::iter([1, 2, 3]), &window).await, 3);
}

#[tokio::test(start_paused = true)]
async fn a_sink_is_sent_each_item_at_its_turn() {
    let limiter = per_second(1, 2);
    let began = Instant::now();
    let mut sink = Vec::new().rate_limit_sink(&limiter);
    for (item, time) in [0, 0, 1, 2].into_iter().enumerate() {
        sink.send(item).await.unwrap();
        assert_eq!(began.elapsed(), time * SECOND);
        assert_eq!(sink.get_ref().len(), item + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn closing_a_sink_waits_for_the_item_in_it() {
    let limiter = per_second(1, 1);
    limiter.acquire().await.unwrap();
    let (sender, receiver) = mpsc::channel(9);
    let mut sink = sender.rate_limit_sink_by(&limiter, |_| 1);
    sink.feed(7).await.unwrap();
    assert!(sink.close().now_or_never().is_none());
    sink.close().await.unwrap();
    assert_eq!(receiver.collect::<Vec<_>>().await, [7]);
}

#[tokio::test(start_paused = true)]
async fn a_send_dropped_at_any_time_loses_nothing_that_it_handed_over() {
    let limiter = per_second(1, 1);
    limiter.acquire().await.unwrap();
    let (sender, mut receiver) = mpsc::channel(0);
    let mut sink = sender.rate_limit_sink(&limiter);
    // Handed over, and dropped while it waits; and the one after it not yet.
    assert!(sink.send(1).now_or_never().is_none());
    assert!(sink.send(2).now_or_never().is_none());
    let (flushed, next) = tokio::join!(sink.flush(), receiver.next());
    assert_eq!((flushed.is_ok(), next), (true, Some(1)));
    assert!(sink.send(3).now_or_never().is_none());
    assert_eq!(Pin::new(&mut sink).take_pending(), Some(3));
    assert!(limiter.tokens().abs() < 1e-9, "its turn went back");
    assert_eq!(sink.into_parts().1, None);
}

#[tokio::test(start_paused = true)]
async fn an_item_that_a_sink_is_refused_comes_back_and_the_sink_goes_on() {
    let limiter = per_second(1, 2);
    let mut sink = Vec::new().rate_limit_sink_by(&limiter, |n| *n);
    match sink.send(3).await {
        Err(SinkError::Refused(refused)) => {
            let burst = AcquireError::ExceedsBurst { requested: 3, burst: 2 };
            assert_eq!(*refused.error(), burst);
            assert_eq!(refused.into_item(), 3);
        }
        other => panic!("{other:?}"),
    }
    sink.send(1).await.unwrap();
    assert_eq!(*sink.get_ref(), [1]);
}

/// A sink that is ready when it is told to be, and counts its flushes.
#[derive(Default)]
struct Manual {
    ready: bool,
    items: Vec<u8>,
    flushes: usize,
}

impl Sink<u8> for Manual {
    type Error = &'static str;

    fn poll_ready(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        if self.ready { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn start_send(mut self: Pin<&mut Self>, item: u8) -> Result<(), Self::Error> {
        self.items.push(item);
        if item == 13 { Err("unlucky") } else { Ok(()) }
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.flushes += 1;
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.poll_flush(cx)
    }
}

#[tokio::test(start_paused = true)]
async fn no_permit_is_taken_before_the_sink_is_ready() {
    let limiter = per_second(1, 1);
    let mut sink = Manual::default().rate_limit_sink(&limiter);
    let mut pinned = Pin::new(&mut sink);
    assert!(pinned.as_mut().poll_ready(&mut cx()).is_ready());
    pinned.as_mut().start_send(1).unwrap();
    assert!(pinned.as_mut().poll_flush(&mut cx()).is_pending());
    assert!(limiter.try_acquire().is_ok(), "it is there for others");
    pinned.as_mut().get_pin_mut().ready = true;
    assert!(pinned.as_mut().poll_flush(&mut cx()).is_pending(), "no permit");
    assert_eq!(sink.get_ref().flushes, 1, "what went before is flushed while it waits");
    sleep(SECOND).await;
    assert!(Pin::new(&mut sink).poll_flush(&mut cx()).is_ready());
    assert_eq!(sink.get_ref().items, [1]);
}

#[tokio::test(start_paused = true)]
async fn the_error_of_the_sink_is_told() {
    let limiter = per_second(1, 1);
    let mut sink = Manual { ready: true, ..Manual::default() }.rate_limit_sink(&limiter);
    assert!(matches!(sink.send(13).await, Err(SinkError::Sink("unlucky"))));
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "`start_send` before `poll_ready` was ready")]
async fn a_sink_that_is_sent_to_before_it_is_ready_panics() {
    let limiter = per_second(1, 1);
    let mut sink = Manual::default().rate_limit_sink(&limiter);
    Pin::new(&mut sink).start_send(1).unwrap();
    let _ = Pin::new(&mut sink).start_send(2);
}

#[tokio::test(start_paused = true)]
async fn a_forward_is_paced_and_the_other_half_passes_through() {
    let limiter = per_second(1, 1);
    let began = Instant::now();
    let (sender, receiver) = mpsc::unbounded();
    let echo = sender.rate_limit_sink(&limiter);
    stream::iter([1, 2, 3]).map(Ok).forward(echo).await.unwrap();
    assert_eq!(began.elapsed(), SECOND * 2);
    assert_eq!(receiver.collect::<Vec<_>>().await, [1, 2, 3]);
}

fn shared_and_movable<T: Send + Sync + Unpin + 'static>() {}

#[test]
fn adapters_can_be_shared_and_sent_and_moved() {
    use paceline::stream::{RateLimitedSink, RateLimitedStream};
    shared_and_movable::<RateLimitedStream<'static, stream::Empty<u8>, Limiter>>();
    shared_and_movable::<RateLimitedSink<'static, Vec<u8>, u8, Limiter>>();
    shared_and_movable::<Refused<u8>>();
    shared_and_movable::<SinkError<u8, u8>>();
}
