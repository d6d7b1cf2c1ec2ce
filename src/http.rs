//! The layer of [`tower`](crate::tower) for HTTP: feature `http`.
//!
//! Five requests a second from each client, and what each has left in every answer:
//!
//! ```
//! use axum::extract::ConnectInfo;
//! use axum::{Router, routing::get};
//! use paceline::Rate;
//! use paceline::http::{ClientAddr, Policy};
//! use paceline::tower::RateLimitLayer;
//! use std::net::SocketAddr;
//!
//! let client = ClientAddr::peer(|info: &ConnectInfo<SocketAddr>| info.0.ip());
//! let policy = Policy::new("client", Rate::per_second(5), 10).per(client);
//! let service = Router::new()
//!     .route("/", get(|| async { "Hello" }))
//!     .layer(RateLimitLayer::http(policy))
//!     .into_make_service_with_connect_info::<SocketAddr>();
//! # drop(service);
//! ```
//!
//! ```text
//! HTTP/1.1 429 Too Many Requests
//! retry-after: 1
//! ratelimit-policy: "client";q=10;w=2
//! ratelimit: "client";r=0;t=1
//! ```
//!
//! * A [`Policy`] says how much, [for whom](Policy::per) and [of which requests](Policy::when);
//!   [`Policies`] hold together, and one that refuses takes nothing of the others. Routes of a router
//!   have limits of their own by a layer on the route.
//! * A [`ClientAddr`] finds out who the client is, also behind proxies. Nothing that a client writes
//!   into a header makes it another client.
//! * [`TooManyRequests`] says what clients are told.
//! * Memory is bounded by the limiter's `max_keys`, and each key by [`Key::MAX_LEN`].
//!
//! A limiter of another kind, or one for all requests, needs no policy: any layer of
//! [`tower`](crate::tower) answers HTTP with `.answer(TooManyRequests::new())`.

mod client;
mod fields;
mod head;
mod hops;
mod key;
mod policies;
mod policy;
#[cfg(feature = "config")]
mod routes;
mod take;
mod too_many;

pub use client::ClientAddr;
pub use head::Head;
pub use ipnet::IpNet;
pub use key::{Header, Key, KeyOf, Path};
pub use policies::{Policies, Refused, Taken};
pub use policy::Policy;
pub use too_many::TooManyRequests;
