//! Streams.

use super::error::Refused;
use super::gate::Gate;
use crate::handle::Handle;
use crate::rate_limit::RateLimit;
use futures_core::{FusedStream, Stream};
use futures_sink::Sink;
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Gives every [`Stream`] an adapter that lets its items through at a rate.
pub trait StreamRateLimitExt: Stream + Sized {
    /// Takes a permit for each item. The limiter is a reference, or in an [`Arc`](std::sync::Arc).
    ///
    /// # Examples
    ///
    /// See [the module](crate::stream).
    fn rate_limit_stream<'a, L: RateLimit>(
        self,
        limiter: impl Into<Handle<'a, L>>,
    ) -> RateLimitedStream<'a, Self, L> {
        RateLimitedStream::new(self, limiter.into(), |_| 1)
    }

    /// Takes as many permits for each item as `weigh` says that it weighs.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures::StreamExt;
    /// use paceline::stream::StreamRateLimitExt;
    /// use paceline::{Limiter, Rate};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let limiter = Limiter::new(Rate::per_second(100), 10);
    /// let words = futures::stream::iter(["a", "few", "words"]);
    /// let by_length = |word: &&str| u32::try_from(word.len()).unwrap_or(u32::MAX);
    /// let all: Vec<_> = words.rate_limit_stream_by(&limiter, by_length).collect().await;
    /// assert!(all.into_iter().all(|word| word.is_ok()));
    /// # }
    /// ```
    fn rate_limit_stream_by<'a, L: RateLimit, W: FnMut(&Self::Item) -> u32>(
        self,
        limiter: impl Into<Handle<'a, L>>,
        weigh: W,
    ) -> RateLimitedStream<'a, Self, L, W> {
        RateLimitedStream::new(self, limiter.into(), weigh)
    }
}

impl<S: Stream> StreamRateLimitExt for S {}

pin_project! {
    /// A stream whose items come when their turns do: what
    /// [`rate_limit_stream`](StreamRateLimitExt::rate_limit_stream) returns.
    ///
    /// Each item comes as `Ok`, or is in the [`Refused`] that says why it was not let through. See
    /// [the module](crate::stream). If the stream is also a sink, so is this, unlimited.
    ///
    /// # Panics
    ///
    /// If an item must wait and this is polled outside of a Tokio runtime with its timer enabled.
    ///
    /// # Cancel safety
    ///
    /// A future that polls it, such as that of `next`, may be dropped at any time. The item that waits
    /// stays, and keeps its turn. So one that is no longer polled is better dropped, or its item taken: a
    /// turn that nobody uses is lost to all who share the limiter.
    #[derive(Debug)]
    #[must_use = "streams do nothing unless polled"]
    pub struct RateLimitedStream<'a, S: Stream, L: RateLimit, W = fn(&<S as Stream>::Item) -> u32> {
        #[pin]
        stream: S,
        gate: Gate<'a, S::Item, L, W>,
    }
}

impl<'a, S: Stream, L: RateLimit, W> RateLimitedStream<'a, S, L, W> {
    fn new(stream: S, limiter: Handle<'a, L>, weigh: W) -> Self {
        Self { stream, gate: Gate::new(limiter, weigh) }
    }

    /// The stream.
    pub fn get_ref(&self) -> &S {
        &self.stream
    }

    /// The stream. What is taken of it is not limited.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// The stream. What is taken of it is not limited.
    #[must_use]
    pub fn get_pin_mut(self: Pin<&mut Self>) -> Pin<&mut S> {
        self.project().stream
    }

    /// The stream, and the item that waits for its turn, if there is one. The turn goes back.
    pub fn into_parts(mut self) -> (S, Option<S::Item>) {
        let item = self.gate.take();
        (self.stream, item)
    }

    /// Takes out the item that waits for its turn, if there is one, and gives the turn back.
    #[must_use]
    pub fn take_pending(self: Pin<&mut Self>) -> Option<S::Item> {
        self.project().gate.take()
    }
}

impl<S: Stream, L: RateLimit, W: FnMut(&S::Item) -> u32> Stream for RateLimitedStream<'_, S, L, W> {
    type Item = Result<S::Item, Refused<S::Item>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.project();
        if this.gate.is_empty() {
            match ready!(this.stream.poll_next(cx)) {
                Some(item) => this.gate.put(item),
                None => return Poll::Ready(None),
            }
        }
        this.gate.poll(cx)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let waiting = usize::from(!self.gate.is_empty());
        let (least, most) = self.stream.size_hint();
        (least.saturating_add(waiting), most.and_then(|most| most.checked_add(waiting)))
    }
}

impl<S, L, W> FusedStream for RateLimitedStream<'_, S, L, W>
where
    S: FusedStream,
    L: RateLimit,
    W: FnMut(&S::Item) -> u32,
{
    fn is_terminated(&self) -> bool {
        self.gate.is_empty() && self.stream.is_terminated()
    }
}

impl<T, S: Stream + Sink<T>, L: RateLimit, W> Sink<T> for RateLimitedStream<'_, S, L, W> {
    type Error = S::Error;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.project().stream.poll_ready(cx)
    }

    fn start_send(self: Pin<&mut Self>, item: T) -> Result<(), S::Error> {
        self.project().stream.start_send(item)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.project().stream.poll_flush(cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.project().stream.poll_close(cx)
    }
}
