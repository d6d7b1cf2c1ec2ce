//! Reads what proxies say of whom they have a request from: the nearest hop first.
//!
//! A proxy appends to what it was sent, so only what stands at the end is its word, and all is read from
//! there: what a client has put before it, however malformed, does not change how the end is read.

use http::HeaderMap;
use http::header::{FORWARDED, HeaderName};
use std::net::{IpAddr, SocketAddr};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The hops in `X-Forwarded-For`; `None` for one that is no address.
pub(super) fn x_forwarded_for(headers: &HeaderMap) -> impl Iterator<Item = Option<IpAddr>> {
    let lines = headers.get_all(X_FORWARDED_FOR).iter().rev();
    lines.flat_map(|line| line.as_bytes().rsplit(|&byte| byte == b',')).map(address)
}

/// The hops in `Forwarded` (RFC 7239); `None` for one that is no address.
pub(super) fn forwarded(headers: &HeaderMap) -> impl Iterator<Item = Option<IpAddr>> {
    let lines = headers.get_all(FORWARDED).iter().rev();
    lines.flat_map(|line| elements(line.as_bytes())).map(hop)
}

/// The elements of a list, from the last. A comma in quotes separates nothing.
fn elements(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut quoted = false;
    line.rsplit(move |&byte| {
        quoted ^= byte == b'"';
        byte == b',' && !quoted
    })
}

/// The address in an element such as `for="[2001:db8::1]:4711";proto=https`.
///
/// No address has an escape in it, and where one is, quotes may not be what they seem.
fn hop(element: &[u8]) -> Option<IpAddr> {
    if element.contains(&b'\\') {
        return None;
    }
    let mut quoted = false;
    let pairs = element.split(|&byte| {
        quoted ^= byte == b'"';
        byte == b';' && !quoted
    });
    let mut nodes = pairs.filter_map(|pair| {
        let (name, value) = pair.split_at(pair.iter().position(|&byte| byte == b'=')?);
        name.trim_ascii().eq_ignore_ascii_case(b"for").then_some(&value[1..])
    });
    let node = nodes.next().filter(|_| nodes.next().is_none())?.trim_ascii();
    match node.strip_prefix(b"\"") {
        Some(rest) => address(rest.strip_suffix(b"\"")?),
        None => address(node),
    }
}

/// An address with or without a port, that of IPv6 with or without brackets. IPv4 that is mapped to
/// IPv6 is IPv4.
fn address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text.trim_ascii()).ok()?;
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let address = match bare {
        Some(bare) => IpAddr::V6(bare.parse().ok()?),
        None => text.parse().or_else(|_| text.parse().map(|it: SocketAddr| it.ip())).ok()?,
    };
    Some(address.to_canonical())
}

#[cfg(all(test, not(paceline_loom)))]
mod tests {
    use super::*;
    use http::HeaderValue;
    use proptest::prelude::*;

    fn headers(name: &HeaderName, lines: &[&[u8]]) -> HeaderMap {
        let values = lines.iter().map(|line| HeaderValue::from_bytes(line).unwrap());
        values.map(|value| (name.clone(), value)).collect()
    }

    #[expect(clippy::unnecessary_wraps, reason = "as a hop is")]
    fn ip(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn the_last_of_x_forwarded_for_comes_first() {
        let lines: [&[u8]; 2] =
            [b"9.9.9.9, junk ,10.0.0.1:80", b" 10.0.0.2 ,[2001:db8::1]:443,::ffff:1.2.3.4"];
        let headers = headers(&X_FORWARDED_FOR, &lines);
        let hops: Vec<_> = x_forwarded_for(&headers).collect();
        let v6 = ip("2001:db8::1");
        assert_eq!(hops, [ip("1.2.3.4"), v6, ip("10.0.0.2"), ip("10.0.0.1"), None, ip("9.9.9.9")]);
    }

    #[test]
    fn the_last_of_forwarded_comes_first() {
        let lines: [&[u8]; 2] = [
            b"for=9.9.9.9, for=unknown, for=_hidden, proto=https",
            b"For=\"[2001:db8::1]:4711\";by=\"a,b;for=8.8.8.8\", proto=http ; FOR = 10.0.0.2",
        ];
        let headers = headers(&FORWARDED, &lines);
        let hops: Vec<_> = forwarded(&headers).collect();
        let v6 = ip("2001:db8::1");
        assert_eq!(hops, [ip("10.0.0.2"), v6, None, None, None, ip("9.9.9.9")]);
    }

    #[test]
    fn what_is_ambiguous_is_no_address() {
        let malformed: [&[u8]; 10] = [
            b"",
            b"for=",
            b"for=\"1.2.3.4",
            b"for=1.2.3.4\"",
            b"for=1.2.3.4;for=5.6.7.8",
            b"for=\"1.2.3.4\\\"\"",
            b"for=1.2.3.4.5",
            b"for=[::1",
            b"for=\xff\xfe",
            b"for=fe80::1%eth0",
        ];
        for element in malformed {
            let headers = headers(&FORWARDED, &[element]);
            assert_eq!(forwarded(&headers).next(), Some(None), "{}", element.escape_ascii());
        }
        for element in
            [&b""[..], b"1.2.3", b"localhost", b"1.2.3.4 5.6.7.8", b"\xc3\xa4", b"[1.2.3.4]"]
        {
            let headers = headers(&X_FORWARDED_FOR, &[element]);
            assert_eq!(x_forwarded_for(&headers).next(), Some(None), "{}", element.escape_ascii());
        }
    }

    /// All that a header value may hold.
    fn value() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![
            4 => prop::sample::select(&b"\",;=\\[]: for1."[..]),
            1 => (32u8..=255).prop_filter("not DEL", |&byte| byte != 127),
        ];
        prop::collection::vec(byte, 0..200)
    }

    proptest! {
        #[test]
        fn what_a_proxy_appends_is_read_whatever_stands_before_it(
            forged in prop::collection::vec(value(), 0..4),
            address: IpAddr,
            same_line: bool,
        ) {
            let canonical = Some(Some(address.to_canonical()));
            let bracketed = match address {
                IpAddr::V4(address) => address.to_string(),
                IpAddr::V6(address) => format!("\"[{address}]\""),
            };
            for (name, element) in
                [(X_FORWARDED_FOR, address.to_string()), (FORWARDED, format!("for={bracketed}"))]
            {
                let mut lines = forged.clone();
                match lines.last_mut() {
                    Some(last) if same_line => last.extend(format!(", {element}").as_bytes()),
                    _ => lines.push(element.into_bytes()),
                }
                let lines: Vec<_> = lines.iter().map(Vec::as_slice).collect();
                let headers = headers(&name, &lines);
                let mut hops: Box<dyn Iterator<Item = _>> = if name == FORWARDED {
                    Box::new(forwarded(&headers))
                } else {
                    Box::new(x_forwarded_for(&headers))
                };
                prop_assert_eq!(hops.next(), canonical);
                // And the rest is read to its end.
                hops.count();
            }
        }
    }
}
