//! Readers.

use super::meter::{ByteLimit, Meter};
use crate::handle::Handle;
use pin_project_lite::pin_project;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Gives every [`AsyncRead`] a wrapper that reads at a byte rate.
pub trait ReadRateLimitExt: AsyncRead + Sized {
    /// Takes a permit for each byte that is read. The limiter is a reference, or in an
    /// [`Arc`](std::sync::Arc).
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::io::ReadRateLimitExt;
    /// use paceline::{Limiter, Rate};
    /// use std::time::Duration;
    /// use tokio::io::AsyncReadExt;
    /// use tokio::time::Instant;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> std::io::Result<()> {
    /// let limiter = Limiter::new(Rate::per_second(1000), 500);
    /// let began = Instant::now();
    /// let mut download = tokio::io::repeat(7).rate_limit_reads(&limiter);
    /// download.read_exact(&mut [0; 1500]).await?;
    /// assert_eq!(began.elapsed(), Duration::from_secs(1));
    /// # Ok(())
    /// # }
    /// ```
    fn rate_limit_reads<'a, L: ByteLimit>(
        self,
        limiter: impl Into<Handle<'a, L>>,
    ) -> RateLimitedReader<'a, Self, L> {
        RateLimitedReader { inner: self, meter: Meter::new(limiter.into()) }
    }
}

impl<R: AsyncRead> ReadRateLimitExt for R {}

pin_project! {
    /// Reads at a byte rate: what [`rate_limit_reads`](ReadRateLimitExt::rate_limit_reads) returns. See
    /// [the module](crate::io).
    ///
    /// What is written passes through, unlimited.
    ///
    /// # Panics
    ///
    /// If it must wait and is polled outside of a Tokio runtime with its timer enabled.
    #[derive(Debug)]
    pub struct RateLimitedReader<'a, R, L: ByteLimit> {
        #[pin]
        inner: R,
        meter: Meter<'a, L>,
    }
}

impl<R, L: ByteLimit> RateLimitedReader<'_, R, L> {
    /// The reader.
    pub fn get_ref(&self) -> &R {
        &self.inner
    }

    /// The reader. What is read of it is not limited.
    pub fn get_mut(&mut self) -> &mut R {
        &mut self.inner
    }

    /// The reader. What is read of it is not limited.
    #[must_use]
    pub fn get_pin_mut(self: Pin<&mut Self>) -> Pin<&mut R> {
        self.project().inner
    }

    /// The reader. Nothing that was read is lost.
    pub fn into_inner(self) -> R {
        self.inner
    }

    /// The limiter.
    #[must_use]
    pub fn limiter(&self) -> &L {
        self.meter.limiter()
    }
}

impl<R: AsyncRead, L: ByteLimit> AsyncRead for RateLimitedReader<'_, R, L> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.project();
        let room = buf.remaining();
        if room == 0 {
            return this.inner.poll_read(cx, buf);
        }
        let pass = ready!(this.meter.poll_pass(cx, room))?;
        let outcome = poll_read_most(this.inner, cx, buf, pass.bytes);
        this.meter.used(&pass, room - buf.remaining());
        outcome
    }
}

/// Reads up to `most` bytes.
fn poll_read_most(
    reader: Pin<&mut impl AsyncRead>,
    cx: &mut Context<'_>,
    buf: &mut ReadBuf<'_>,
    most: usize,
) -> Poll<io::Result<()>> {
    if buf.remaining() <= most {
        return reader.poll_read(cx, buf);
    }
    let mut part = ReadBuf::new(buf.initialize_unfilled_to(most));
    let outcome = reader.poll_read(cx, &mut part);
    let filled = part.filled().len();
    buf.advance(filled);
    outcome
}

impl<R: AsyncWrite, L: ByteLimit> AsyncWrite for RateLimitedReader<'_, R, L> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.project().inner.poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.project().inner.poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().inner.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().inner.poll_shutdown(cx)
    }
}
