//! What a policy may look at.

use http::{Extensions, HeaderMap, Method, Request, Uri};

/// A request without its body: what a [`Policy`](super::Policy) looks at.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Head<'a> {
    /// The method.
    pub method: &'a Method,
    /// What is asked for. Behind a router that strips prefixes, what is left of it.
    pub uri: &'a Uri,
    /// The header fields. What is in them, the client has written, unless a proxy has.
    pub headers: &'a HeaderMap,
    /// What the server and the layers before this one have added, such as the peer's address.
    pub extensions: &'a Extensions,
}

impl<'a, B> From<&'a Request<B>> for Head<'a> {
    fn from(request: &'a Request<B>) -> Self {
        Self {
            method: request.method(),
            uri: request.uri(),
            headers: request.headers(),
            extensions: request.extensions(),
        }
    }
}
