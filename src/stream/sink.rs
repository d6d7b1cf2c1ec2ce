//! Sinks.

use super::error::SinkError;
use super::gate::Gate;
use crate::handle::Handle;
use crate::rate_limit::RateLimit;
use futures_core::{FusedStream, Stream};
use futures_sink::Sink;
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Gives every [`Sink`] an adapter that lets items through at a rate.
pub trait SinkRateLimitExt<T>: Sink<T> + Sized {
    /// Takes a permit for each item. The limiter is a reference, or in an [`Arc`](std::sync::Arc).
    ///
    /// # Examples
    ///
    /// ```
    /// use futures::SinkExt;
    /// use paceline::stream::SinkRateLimitExt;
    /// use paceline::{Limiter, Rate};
    /// use std::time::Duration;
    /// use tokio::time::Instant;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let limiter = Limiter::new(Rate::per_second(10), 1);
    /// let began = Instant::now();
    /// let mut sink = Vec::new().rate_limit_sink(&limiter);
    /// for item in 1..=3 {
    ///     sink.send(item).await.unwrap();
    /// }
    /// assert_eq!(*sink.get_ref(), [1, 2, 3]);
    /// assert_eq!(began.elapsed(), Duration::from_millis(200));
    /// # }
    /// ```
    fn rate_limit_sink<'a, L: RateLimit>(
        self,
        limiter: impl Into<Handle<'a, L>>,
    ) -> RateLimitedSink<'a, Self, T, L> {
        RateLimitedSink::new(self, limiter.into(), |_| 1)
    }

    /// Takes as many permits for each item as `weigh` says that it weighs.
    fn rate_limit_sink_by<'a, L: RateLimit, W: FnMut(&T) -> u32>(
        self,
        limiter: impl Into<Handle<'a, L>>,
        weigh: W,
    ) -> RateLimitedSink<'a, Self, T, L, W> {
        RateLimitedSink::new(self, limiter.into(), weigh)
    }
}

impl<T, S: Sink<T>> SinkRateLimitExt<T> for S {}

pin_project! {
    /// A sink that passes items on when their turns come: what
    /// [`rate_limit_sink`](SinkRateLimitExt::rate_limit_sink) returns.
    ///
    /// An item that it was given waits in it for its turn, and there is room for the next when it has been
    /// passed on. Flushing and closing wait for it too. While it waits, what went before is
    /// flushed. If the sink is also a stream, so is this, unlimited.
    ///
    /// An item that the limiter refuses is in the error of the next call that waits for it, and the sink
    /// can be used as before.
    ///
    /// # Panics
    ///
    /// If an item must wait and this is polled outside of a Tokio runtime with its timer enabled; or if
    /// an item is sent before it is ready.
    ///
    /// # Cancel safety
    ///
    /// A future that polls it may be dropped at any time. The item that waits stays, and is passed on by
    /// the next call; [`take_pending`](Self::take_pending) takes it out. Only with this itself, or with a
    /// future that has not yet handed the item over, is an item dropped.
    #[derive(Debug)]
    #[must_use = "sinks do nothing unless polled"]
    pub struct RateLimitedSink<'a, S, T, L: RateLimit, W = fn(&T) -> u32> {
        #[pin]
        sink: S,
        gate: Gate<'a, T, L, W>,
        // Let through, and not passed on since the sink is not ready.
        passed: Option<T>,
    }
}

impl<'a, S, T, L: RateLimit, W> RateLimitedSink<'a, S, T, L, W> {
    fn new(sink: S, limiter: Handle<'a, L>, weigh: W) -> Self {
        Self { sink, gate: Gate::new(limiter, weigh), passed: None }
    }

    /// The sink.
    pub fn get_ref(&self) -> &S {
        &self.sink
    }

    /// The sink. What is sent to it is not limited, and goes ahead of an item that waits.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    /// The sink. What is sent to it is not limited, and goes ahead of an item that waits.
    #[must_use]
    pub fn get_pin_mut(self: Pin<&mut Self>) -> Pin<&mut S> {
        self.project().sink
    }

    /// The sink, and the item that was not passed on, if there is one. The turn goes back.
    pub fn into_parts(mut self) -> (S, Option<T>) {
        let item = self.passed.take().or_else(|| self.gate.take());
        (self.sink, item)
    }

    /// Takes out the item that was not passed on, if there is one, and gives its turn back.
    #[must_use]
    pub fn take_pending(self: Pin<&mut Self>) -> Option<T> {
        let this = self.project();
        this.passed.take().or_else(|| this.gate.take())
    }
}

impl<S: Sink<T>, T, L: RateLimit, W> RateLimitedSink<'_, S, T, L, W> {
    /// Passes on the item that waits, if there is one.
    ///
    /// The sink is made ready first: a permit may be used only before it overflows, so it is taken when
    /// nothing else is to be waited for.
    fn poll_pass(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), SinkError<T, S::Error>>> {
        let mut this = self.project();
        if this.gate.is_empty() && this.passed.is_none() {
            return Poll::Ready(Ok(()));
        }
        ready!(this.sink.as_mut().poll_ready(cx)).map_err(SinkError::Sink)?;
        if this.passed.is_none() {
            match this.gate.poll(cx) {
                Poll::Ready(outcome) => {
                    *this.passed = outcome.transpose().map_err(SinkError::Refused)?;
                    // Flushed meanwhile, it may have to be made ready again.
                    ready!(this.sink.as_mut().poll_ready(cx)).map_err(SinkError::Sink)?;
                }
                Poll::Pending => {
                    let flushed = this.sink.poll_flush(cx).map_err(SinkError::Sink);
                    return match flushed {
                        Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                        _ => Poll::Pending,
                    };
                }
            }
        }
        if let Some(item) = this.passed.take() {
            this.sink.start_send(item).map_err(SinkError::Sink)?;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S, T, L, W> Sink<T> for RateLimitedSink<'_, S, T, L, W>
where
    S: Sink<T>,
    L: RateLimit,
    W: FnMut(&T) -> u32,
{
    type Error = SinkError<T, S::Error>;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.poll_pass(cx)
    }

    fn start_send(self: Pin<&mut Self>, item: T) -> Result<(), Self::Error> {
        let gate = self.project().gate;
        assert!(gate.is_empty(), "`start_send` before `poll_ready` was ready");
        gate.put(item);
        Ok(())
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        ready!(self.as_mut().poll_pass(cx))?;
        self.project().sink.poll_flush(cx).map_err(SinkError::Sink)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        ready!(self.as_mut().poll_pass(cx))?;
        self.project().sink.poll_close(cx).map_err(SinkError::Sink)
    }
}

impl<S: Stream, T, L: RateLimit, W> Stream for RateLimitedSink<'_, S, T, L, W> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        self.project().sink.poll_next(cx)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.sink.size_hint()
    }
}

impl<S: FusedStream, T, L: RateLimit, W> FusedStream for RateLimitedSink<'_, S, T, L, W> {
    fn is_terminated(&self) -> bool {
        self.sink.is_terminated()
    }
}
