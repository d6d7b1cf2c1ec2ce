//! A [tower](https://docs.rs/tower) layer over any limiter: feature `tower`.
//!
//! ```
//! use paceline::tower::{RateLimitLayer, Refused};
//! use paceline::{Limiter, Rate};
//! use std::sync::Arc;
//! use tower::{BoxError, Service, ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), BoxError> {
//! let limiter = Arc::new(Limiter::new(Rate::per_second(100), 1));
//! let mut service = ServiceBuilder::new()
//!     .layer(RateLimitLayer::new(limiter))
//!     .service_fn(|name: &'static str| async move { Ok::<_, BoxError>(format!("Hello, {name}")) });
//!
//! assert_eq!(service.ready().await?.call("you").await?, "Hello, you");
//! let refused = service.ready().await?.call("you").await.unwrap_err();
//! assert!(refused.is::<Refused>());
//! # Ok(())
//! # }
//! ```
//!
//! * A [`RateLimitLayer`] has three parts: a limit ([`Admit`]: a limiter, or with the feature `keyed`
//!   one per key), how long a request may wait for it, and
//!   what is answered if it is refused ([`Answer`]).
//! * The limit is asked in `call`, when the request is there; `poll_ready` tells whether the inner
//!   service is ready, and nothing else. So nobody takes a permit without a request, and clones of the
//!   service share the limit, however many of them are ready at once.
//! * The error type is that of the inner service. A refusal becomes one of its errors (`From<Refused>`,
//!   which `BoxError` has), or one of its answers: HTTP's 429 by [`http`](crate::http) of the
//!   feature `http`, gRPC's `ResourceExhausted` by that of the feature `tonic`, or whatever your own
//!   closure makes of it.
//! * A request that is dropped while it waits gives its turn back.
//! * A request that need not wait is handed on in `call`: nothing is boxed and no service is cloned for
//!   it. One that waits takes the service along that was ready, and leaves a clone.

mod admit;
mod answer;
#[cfg(feature = "keyed")]
mod by_key;
mod layer;
mod refused;
mod service;

pub use admit::{Admission, Admit, Shared};
pub use answer::{Answer, IntoError};
#[cfg(feature = "keyed")]
pub use by_key::ByKey;
pub use layer::RateLimitLayer;
pub use refused::Refused;
pub use service::{RateLimitService, ResponseFuture};
