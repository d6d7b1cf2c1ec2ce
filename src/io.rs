//! Readers and writers that keep a byte rate: the feature `io`.
//!
//! [`ReadRateLimitExt`] and [`WriteRateLimitExt`] give every [`AsyncRead`] and [`AsyncWrite`] a wrapper
//! that takes a permit for each byte. Many connections may share one limiter; their turns come one
//! after the other, so they share it evenly.
//!
//! * The limiter's rate is in bytes per second, and its burst is the most that goes through at once:
//!   some milliseconds' worth is a good choice, and 5 ms of it are forgiven to late timers anyway
//!   ([`Builder::slack`](crate::Builder::slack)).
//! * A limiter that is to be set to more than 10<sup>7</sup> bytes per second later is built for that:
//!   [`Builder::max_rate`](crate::Builder::max_rate).
//! * What is larger than the burst is split. In one go passes what is minted in a millisecond, so that
//!   nobody holds up the others; at a low rate 4 KiB, unless even that takes longer than a tenth of a
//!   second. Who wants less than that in one go gets less than the others.
//! * Permits are taken first, and what was not read or written is given back at once: how much there is
//!   to read is known only afterwards, and bytes that were read before they may pass would have to
//!   lie somewhere. So each byte has passed with a permit that was minted and had not overflowed, and a
//!   connection that has nothing to read holds none. The end of a stream is seen when the turn
//!   comes.
//! * A new rate acts on transfers under way, at once.
//! * If the limiter refuses, that is an [`std::io::Error`] with the
//!   [`AcquireError`](crate::AcquireError) in it: of the kind `ConnectionAborted` if it is closed,
//!   `TimedOut` if the turn comes later than its `max_wait` allows, else `Other`.
//! * Flushing and shutting down pass through, and so does the other direction of a connection.
//!
//! # Cancel safety
//!
//! A future that reads or writes may be dropped at any time, and no bytes are lost: while it waits for
//! its turn nothing was read or written yet. The turn is kept for the next call. (It is given back
//! with the wrapper, or when it is shut down.)
//!
//! # Examples
//!
//! ```
//! use paceline::io::WriteRateLimitExt;
//! use paceline::{Limiter, Rate};
//! use std::sync::Arc;
//! use std::time::Duration;
//! use tokio::io::AsyncWriteExt;
//! use tokio::time::Instant;
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> std::io::Result<()> {
//! // A mebibyte per second, for all connections together.
//! let limiter = Arc::new(Limiter::new(Rate::per_second(1 << 20), 8 << 10));
//!
//! let began = Instant::now();
//! let mut upload = tokio::io::sink().rate_limit_writes(limiter.clone());
//! upload.write_all(&vec![0; 264 << 10]).await?;
//! assert_eq!(began.elapsed(), Duration::from_millis(250));
//! # Ok(())
//! # }
//! ```

mod meter;
mod read;
mod write;

pub use meter::ByteLimit;
pub use read::{RateLimitedReader, ReadRateLimitExt};
pub use write::{RateLimitedWriter, WriteRateLimitExt};

#[expect(unused_imports, reason = "for the documentation")]
use tokio::io::{AsyncRead, AsyncWrite};
