//! Writers.

use super::meter::{ByteLimit, Meter};
use crate::handle::Handle;
use pin_project_lite::pin_project;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, ReadBuf};

/// Gives every [`AsyncWrite`] a wrapper that writes at a byte rate.
pub trait WriteRateLimitExt: AsyncWrite + Sized {
    /// Takes a permit for each byte that is written. The limiter is a reference, or in an
    /// [`Arc`](std::sync::Arc).
    ///
    /// # Examples
    ///
    /// See [the module](crate::io).
    fn rate_limit_writes<'a, L: ByteLimit>(
        self,
        limiter: impl Into<Handle<'a, L>>,
    ) -> RateLimitedWriter<'a, Self, L> {
        RateLimitedWriter { inner: self, meter: Meter::new(limiter.into()) }
    }
}

impl<W: AsyncWrite> WriteRateLimitExt for W {}

pin_project! {
    /// Writes at a byte rate: what [`rate_limit_writes`](WriteRateLimitExt::rate_limit_writes) returns.
    /// See [the module](crate::io).
    ///
    /// What is read passes through, unlimited.
    ///
    /// # Panics
    ///
    /// If it must wait and is polled outside of a Tokio runtime with its timer enabled.
    #[derive(Debug)]
    pub struct RateLimitedWriter<'a, W, L: ByteLimit> {
        #[pin]
        inner: W,
        meter: Meter<'a, L>,
    }
}

impl<W, L: ByteLimit> RateLimitedWriter<'_, W, L> {
    /// The writer.
    pub fn get_ref(&self) -> &W {
        &self.inner
    }

    /// The writer. What is written to it is not limited.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.inner
    }

    /// The writer. What is written to it is not limited.
    #[must_use]
    pub fn get_pin_mut(self: Pin<&mut Self>) -> Pin<&mut W> {
        self.project().inner
    }

    /// The writer. Nothing that was accepted is lost: this buffers nothing.
    pub fn into_inner(self) -> W {
        self.inner
    }

    /// The limiter.
    #[must_use]
    pub fn limiter(&self) -> &L {
        self.meter.limiter()
    }
}

impl<W: AsyncWrite, L: ByteLimit> RateLimitedWriter<'_, W, L> {
    /// Writes up to `length` bytes by `write`, which is told how many.
    fn poll_write_by(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        length: usize,
        write: impl FnOnce(Pin<&mut W>, &mut Context<'_>, usize) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let this = self.project();
        if length == 0 {
            return write(this.inner, cx, 0);
        }
        let pass = ready!(this.meter.poll_pass(cx, length))?;
        let outcome = write(this.inner, cx, pass.bytes.min(length));
        let written = match &outcome {
            Poll::Ready(Ok(written)) => *written,
            _ => 0,
        };
        this.meter.used(&pass, written);
        outcome
    }
}

impl<W: AsyncWrite, L: ByteLimit> AsyncWrite for RateLimitedWriter<'_, W, L> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_by(cx, buf.len(), |inner, cx, most| inner.poll_write(cx, &buf[..most]))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = bufs.iter().fold(0_usize, |sum, buf| sum.saturating_add(buf.len()));
        self.poll_write_by(cx, length, |inner, cx, most| {
            if most == length {
                return inner.poll_write_vectored(cx, bufs);
            }
            let mut first = [IoSlice::new(&[]); SLICES];
            inner.poll_write_vectored(cx, first_bytes(bufs, most, &mut first))
        })
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().inner.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.project();
        this.meter.cancel();
        this.inner.poll_shutdown(cx)
    }
}

/// How many slices are written in one go where they must be cut.
const SLICES: usize = 16;

/// The first `most` bytes of `bufs`, or less if that takes too many slices.
fn first_bytes<'a, 'b>(
    bufs: &'b [IoSlice<'_>],
    mut most: usize,
    first: &'a mut [IoSlice<'b>; SLICES],
) -> &'a [IoSlice<'b>] {
    let mut count = 0;
    for (slot, buf) in first.iter_mut().zip(bufs) {
        let length = buf.len().min(most);
        *slot = IoSlice::new(&buf[..length]);
        most -= length;
        count += 1;
        if most == 0 {
            break;
        }
    }
    &first[..count]
}

impl<W: AsyncRead, L: ByteLimit> AsyncRead for RateLimitedWriter<'_, W, L> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.project().inner.poll_read(cx, buf)
    }
}

impl<W: AsyncBufRead, L: ByteLimit> AsyncBufRead for RateLimitedWriter<'_, W, L> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        self.project().inner.poll_fill_buf(cx)
    }

    fn consume(self: Pin<&mut Self>, amount: usize) {
        self.project().inner.consume(amount);
    }
}
