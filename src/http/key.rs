//! What a request is limited by.

use super::Head;
use http::HeaderName;
use std::fmt;
use std::net::IpAddr;

/// Whose limit a request is under. Two requests are under the same one if their keys are equal.
///
/// It takes no more memory than [`Key::MAX_LEN`] and a little.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Key(Kind);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Kind {
    /// All that have none of their own.
    Shared,
    /// The first `len` bits of an IPv6 address; of an IPv4 address, all of it as mapped to IPv6.
    Client {
        prefix: u128,
        len: u8,
    },
    Bytes(Box<[u8]>),
    /// Of several things together.
    Joined(Box<[Key]>),
}

impl Key {
    /// The longest text that is a key, in bytes. Who sends more has no key: else a flood of long ones
    /// would fill the memory.
    pub const MAX_LEN: usize = 1024;

    /// These bytes, if they are not more than [`Key::MAX_LEN`].
    #[must_use]
    pub fn bytes(bytes: impl AsRef<[u8]>) -> Option<Self> {
        let bytes = bytes.as_ref();
        (bytes.len() <= Self::MAX_LEN).then(|| Self(Kind::Bytes(bytes.into())))
    }

    /// The client at this address; of an IPv6 address, all whose addresses begin with the same
    /// `ipv6_prefix` bits (all of them, if it is 128 or more). An IPv4 address that is mapped to IPv6 is
    /// the IPv4 address.
    #[must_use]
    pub fn client(address: IpAddr, ipv6_prefix: u8) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V4(address) => {
                Kind::Client { prefix: address.to_ipv6_mapped().to_bits(), len: 128 }
            }
            IpAddr::V6(address) => {
                let len = ipv6_prefix.min(128);
                let mask = u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0);
                Kind::Client { prefix: address.to_bits() & mask, len }
            }
        })
    }

    pub(super) fn shared() -> Self {
        Self(Kind::Shared)
    }

    pub(super) fn joined(keys: Box<[Key]>) -> Self {
        Self(Kind::Joined(keys))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Shared => f.write_str("all"),
            Kind::Client { prefix, len } => {
                let address = std::net::Ipv6Addr::from_bits(*prefix);
                match address.to_ipv4_mapped() {
                    Some(address) => write!(f, "{address}"),
                    None => write!(f, "{address}/{len}"),
                }
            }
            // It may be a secret, such as an API key.
            Kind::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Kind::Joined(keys) => keys.fmt(f),
        }
    }
}

/// Where the key of a request comes from: [`ClientAddr`](super::ClientAddr), [`Header`], [`Path`], or
/// a closure of your own.
pub trait KeyOf: Send + Sync + 'static {
    /// The key of a request; `None` if it has none, and then the policy says what becomes of it.
    fn key(&self, request: Head<'_>) -> Option<Key>;
}

impl<F: Fn(Head<'_>) -> Option<Key> + Send + Sync + 'static> KeyOf for F {
    fn key(&self, request: Head<'_>) -> Option<Key> {
        self(request)
    }
}

/// The value of a header field, such as an API key, byte by byte. A request that has none, or several,
/// or one that is longer than [`Key::MAX_LEN`], has no key.
///
/// Whoever can make up values has as many limits as values, so put it behind what checks them.
#[derive(Clone, Debug)]
pub struct Header(pub HeaderName);

impl KeyOf for Header {
    fn key(&self, request: Head<'_>) -> Option<Key> {
        let mut values = request.headers.get_all(&self.0).iter();
        let value = values.next().filter(|_| values.next().is_none())?;
        Key::bytes(value)
    }
}

/// The path that is asked for, as it is written. A request for one that is longer than
/// [`Key::MAX_LEN`] has no key.
#[derive(Clone, Copy, Debug)]
pub struct Path;

impl KeyOf for Path {
    fn key(&self, request: Head<'_>) -> Option<Key> {
        Key::bytes(request.uri.path())
    }
}
