//! Streams and sinks that let their items through at a rate: the feature `stream`.
//!
//! [`StreamRateLimitExt`] and [`SinkRateLimitExt`] give every [`Stream`] and [`Sink`] an adapter that
//! takes a permit for each item, or as many as the item weighs, of any [`RateLimit`].
//!
//! An item comes first and its permits after. A permit may be used only before it overflows, so one
//! that was taken beforehand and lay about while the stream has nothing would be lost, to
//! everybody who shares the limiter. So the adapter holds one item while its turn comes, never more:
//!
//! * a future that polls it may be dropped at any time; the item is there at the next poll;
//! * `take_pending` gives it back, and its turn to the limiter; `into_parts` both it and the stream;
//! * an item that the limiter refuses (it is closed, the item weighs more than the burst, or the wait
//!   is bounded) comes out in the error, [`Refused`]. The next one is asked for as if nothing had
//!   happened, so after the limiter has been closed all that the stream has comes out refused.
//!
//! # Examples
//!
//! ```
//! use futures::StreamExt;
//! use paceline::stream::StreamRateLimitExt;
//! use paceline::{Limiter, Rate};
//! use std::time::Duration;
//! use tokio::time::Instant;
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let limiter = Limiter::new(Rate::per_second(10), 1);
//! let began = Instant::now();
//! let mut requests = futures::stream::iter(1..=3).rate_limit_stream(&limiter);
//! while let Some(request) = requests.next().await {
//!     println!("{} after {:?}", request?, began.elapsed());
//! }
//! assert_eq!(began.elapsed(), Duration::from_millis(200));
//! # Ok(())
//! # }
//! ```

mod error;
mod gate;
mod sink;
mod source;

pub use error::{Refused, SinkError};
pub use sink::{RateLimitedSink, SinkRateLimitExt};
pub use source::{RateLimitedStream, StreamRateLimitExt};

#[expect(unused_imports, reason = "for the documentation")]
use {crate::RateLimit, futures_core::Stream, futures_sink::Sink};
