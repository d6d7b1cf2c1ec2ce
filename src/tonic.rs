//! The layer of [`tower`](crate::tower) for gRPC: feature `tonic`.
//!
//! A hundred calls a second of one service; more are answered `ResourceExhausted`:
//!
//! ```
//! use paceline::tonic::ResourceExhausted;
//! use paceline::tower::RateLimitLayer;
//! use paceline::{Limiter, Rate};
//! use std::sync::Arc;
//! use tonic::transport::Server;
//! use tower::Layer;
//!
//! let limiter = Arc::new(Limiter::new(Rate::per_second(100), 10));
//! let layer = RateLimitLayer::new(limiter).answer(ResourceExhausted);
//!
//! let (_, health) = tonic_health::server::health_reporter();
//! let server = Server::builder().add_service(layer.layer(health));
//! # drop(server);
//! ```
//!
//! It goes around one service, whose name it keeps ([`NamedService`]), or around all of them
//! (`Server::builder().layer(layer)`). By clients it limits with the policies of the feature `http`:
//! `RateLimitLayer::http(policy).answer(ResourceExhausted)`.

use crate::tower::{Answer, RateLimitService, Refused};
use http::Response;
use tonic::metadata::MetadataMap;
use tonic::server::NamedService;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

/// Answers what is refused with the status `ResourceExhausted`, or `Unavailable` if the limiter is
/// closed, or `InvalidArgument` if the call has no key.
///
/// Where anybody can tell when to call again, the status has it twice: as the `RetryInfo` of
/// [its details](StatusExt), and as `grpc-retry-pushback-ms` in its metadata, which clients that
/// have a retry policy go by ([gRFC A6]).
///
/// [gRFC A6]: https://github.com/grpc/proposal/blob/master/A6-client-retries.md#pushback
#[derive(Clone, Copy, Debug, Default)]
pub struct ResourceExhausted;

impl<P, R: Into<Refused>, B: Default, E> Answer<P, R, Response<B>, E> for ResourceExhausted {
    fn refused(&self, refusal: R) -> Result<Response<B>, E> {
        Ok(status(&refusal.into()).into_http())
    }
}

fn status(why: &Refused) -> Status {
    let code = match why {
        Refused::NoKey => Code::InvalidArgument,
        why if why.is_closed() => Code::Unavailable,
        _ => Code::ResourceExhausted,
    };
    let Some(wait) = why.retry_after() else { return Status::new(code, why.to_string()) };
    let mut metadata = MetadataMap::new();
    // Rounded up, since a call that is a little early is refused again.
    let millis = wait.as_nanos().div_ceil(1_000_000);
    metadata.insert("grpc-retry-pushback-ms", u64::try_from(millis).unwrap_or(u64::MAX).into());
    let details = ErrorDetails::with_retry_info(Some(wait));
    Status::with_error_details_and_metadata(code, why.to_string(), details, metadata)
}

impl<S: NamedService, L, A> NamedService for RateLimitService<S, L, A> {
    const NAME: &'static str = S::NAME;
}
