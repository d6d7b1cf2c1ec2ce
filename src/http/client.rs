//! Who the client is.

use super::hops::{forwarded, x_forwarded_for};
use super::{Head, Key, KeyOf};
use ipnet::IpNet;
use std::fmt;
use std::net::IpAddr;

/// A request by the address of its client: that of the peer, or behind proxies that you trust, the last
/// address that is none of theirs.
///
/// The peer's address is in the request's extensions, where the server puts it; you name its type.
/// For axum ([`into_make_service_with_connect_info`]) and tonic:
///
/// ```
/// # use std::net::SocketAddr;
/// use axum::extract::ConnectInfo;
/// use paceline::http::ClientAddr;
/// use tonic::transport::server::TcpConnectInfo;
///
/// let axum = ClientAddr::peer(|info: &ConnectInfo<SocketAddr>| info.0.ip());
/// let tonic = ClientAddr::peer(|info: &TcpConnectInfo| info.remote_addr().map(|it| it.ip()));
///
/// // Both proxies append to `X-Forwarded-For`.
/// let axum = axum.behind(["10.0.0.0/8".parse()?, "2001:db8::/32".parse()?]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// * Of `X-Forwarded-For` and `Forwarded` (RFC 7239) only the end is believed: each proxy appends the
///   address that it has the request from, and what stands before that the client may have made up. So it
///   is read from the end, and only for as long as the address that has said it is trusted.
/// * A request from a trusted address without the header is that proxy's own. If all of its hops are
///   trusted, the farthest is the client. If the next hop is no address (`unknown`, `_hidden`, or
///   malformed), nobody knows the client, and there is no key.
/// * An IPv6 client has a whole network at its disposal, so its key is a prefix: the first 64 bits
///   unless [set](Self::ipv6_prefix). IPv4 that is mapped to IPv6 is IPv4.
///
/// [`into_make_service_with_connect_info`]: https://docs.rs/axum/0.8/axum/struct.Router.html#method.into_make_service_with_connect_info
pub struct ClientAddr {
    peer: Box<dyn Fn(Head<'_>) -> Option<IpAddr> + Send + Sync>,
    trusted: Vec<IpNet>,
    says: Says,
    ipv6_prefix: u8,
}

/// Where proxies say whom they have a request from.
#[derive(Clone, Copy, Debug)]
enum Says {
    XForwardedFor,
    Forwarded,
}

impl ClientAddr {
    /// The peer's address, by the extension in which the server leaves it. Without that extension there
    /// is no key.
    pub fn peer<T, A>(address: impl Fn(&T) -> A + Send + Sync + 'static) -> Self
    where
        T: Send + Sync + 'static,
        A: Into<Option<IpAddr>>,
    {
        let peer = move |head: Head<'_>| head.extensions.get().and_then(|it| address(it).into());
        let trusted = Vec::new();
        Self { peer: Box::new(peer), trusted, says: Says::XForwardedFor, ipv6_prefix: 64 }
    }

    /// Believes the proxies in these networks what they append to `X-Forwarded-For`. Name no network in
    /// which clients are.
    #[must_use]
    pub fn behind(mut self, proxies: impl IntoIterator<Item = IpNet>) -> Self {
        self.trusted.extend(proxies);
        self
    }

    /// The proxies append to `Forwarded` (RFC 7239), and `X-Forwarded-For` is not looked at.
    #[must_use]
    pub fn by_forwarded(self) -> Self {
        Self { says: Says::Forwarded, ..self }
    }

    /// So many bits of an IPv6 address are its key: 0 to 128, and 64 unless set.
    #[must_use]
    pub fn ipv6_prefix(self, bits: u8) -> Self {
        Self { ipv6_prefix: bits, ..self }
    }

    /// The client's address, if it is known.
    #[must_use]
    pub fn address(&self, request: Head<'_>) -> Option<IpAddr> {
        let peer = (self.peer)(request)?.to_canonical();
        let trusted = |address| self.trusted.iter().any(|network| network.contains(&address));
        if !trusted(peer) {
            // No header matters then, and none is looked for.
            return Some(peer);
        }
        match self.says {
            Says::XForwardedFor => nearest(peer, x_forwarded_for(request.headers), trusted),
            Says::Forwarded => nearest(peer, forwarded(request.headers), trusted),
        }
    }
}

/// The first address that is not trusted, from the peer on; or the last, if all are.
fn nearest(
    peer: IpAddr,
    mut hops: impl Iterator<Item = Option<IpAddr>>,
    trusted: impl Fn(IpAddr) -> bool,
) -> Option<IpAddr> {
    let mut client = peer;
    while trusted(client) {
        match hops.next() {
            Some(hop) => client = hop?,
            None => break,
        }
    }
    Some(client)
}

impl KeyOf for ClientAddr {
    fn key(&self, request: Head<'_>) -> Option<Key> {
        Some(Key::client(self.address(request)?, self.ipv6_prefix))
    }
}

impl fmt::Debug for ClientAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientAddr")
            .field("trusted", &self.trusted)
            .field("says", &self.says)
            .field("ipv6_prefix", &self.ipv6_prefix)
            .finish_non_exhaustive()
    }
}
