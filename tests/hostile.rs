//! What attackers send: nothing of it makes one client another, panics, or fills the memory.

#![cfg(feature = "http")]

use http::header::{FORWARDED, HeaderName, HeaderValue};
use http::{HeaderMap, Request};
use paceline::http::{
    ClientAddr, Head, Header, IpNet, Key, KeyOf, Path, Policies, Policy, TooManyRequests,
};
use paceline::keyed::{Keyed, Quota};
use paceline::tower::{Admit, Answer};
use paceline::{Limiter, Rate};
use proptest::prelude::*;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const PROXY: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

// ---- Requests ----------------------------------------------------------------------------------

fn request(peer: IpAddr, headers: HeaderMap) -> Request<()> {
    let mut request = Request::get("/").extension(peer).body(()).unwrap();
    *request.headers_mut() = headers;
    request
}

/// By the peer that the request has as an extension, behind proxies in 10.0.0.0/8.
fn client() -> ClientAddr {
    let proxies: IpNet = "10.0.0.0/8".parse().unwrap();
    ClientAddr::peer(|peer: &IpAddr| *peer).behind([proxies])
}

fn key(by: &impl KeyOf, request: &Request<()>) -> Option<Key> {
    by.key(Head::from(request))
}

/// Each of these lines is what a header field may hold, and hardly ever anything good.
fn lines() -> impl Strategy<Value = Vec<HeaderValue>> {
    let byte = prop_oneof![
        6 => prop::sample::select(&b"\",;=\\[]:. for1"[..]),
        1 => (32u8..=255).prop_filter("not DEL", |&byte| byte != 127),
    ];
    let address =
        any::<IpAddr>().prop_map(|address| format!("for={address}, {address}, ").into_bytes());
    let line = prop::collection::vec(
        prop_oneof![3 => prop::collection::vec(byte, 0..30), 1 => address],
        0..8,
    );
    let line = line.prop_map(|parts| HeaderValue::from_bytes(&parts.concat()).unwrap());
    prop::collection::vec(line, 0..4)
}

/// Not one of the proxies.
fn address() -> impl Strategy<Value = IpAddr> {
    let outside = |address: &IpAddr| match address.to_canonical() {
        IpAddr::V4(address) => address.octets()[0] != 10,
        IpAddr::V6(_) => true,
    };
    let mapped = any::<Ipv4Addr>().prop_map(|address| IpAddr::V6(address.to_ipv6_mapped()));
    prop_oneof![any::<IpAddr>(), mapped].prop_filter("a proxy", outside)
}

/// What a proxy appends to what it was sent: to the last line, or as a line of its own.
fn appended(
    forged: &[HeaderValue],
    name: &HeaderName,
    client: IpAddr,
    own_line: bool,
) -> HeaderMap {
    let element = match (client, name == FORWARDED) {
        (IpAddr::V6(client), true) => format!("proto=https;for=\"[{client}]:4711\""),
        (_, true) => format!("for={client};host=example.com"),
        (_, false) => client.to_string(),
    };
    let mut lines = forged.to_vec();
    let last = match lines.pop() {
        Some(last) if !own_line => [last.as_bytes(), b", ", element.as_bytes()].concat(),
        last => {
            lines.extend(last);
            element.into_bytes()
        }
    };
    lines.push(HeaderValue::from_bytes(&last).unwrap());
    lines.into_iter().map(|line| (name.clone(), line)).collect()
}

/// The first 64 bits of IPv6, all of IPv4.
fn same_client(one: IpAddr, other: IpAddr) -> bool {
    match (one.to_canonical(), other.to_canonical()) {
        (IpAddr::V6(one), IpAddr::V6(other)) => one.segments()[..4] == other.segments()[..4],
        (one, other) => one == other,
    }
}

// ---- Nobody is somebody else -------------------------------------------------------------------

proptest! {
    #[test]
    fn behind_a_proxy_two_requests_share_a_key_if_and_only_if_they_are_of_one_client(
        forged in [lines(), lines()],
        clients in [address(), address()],
        own_line: bool,
        by_forwarded: bool,
    ) {
        let (name, by) =
            if by_forwarded { (FORWARDED, client().by_forwarded()) } else { (X_FORWARDED_FOR, client()) };
        let [one, again, other] = [(0, 0), (1, 0), (1, 1)].map(|(lines, who)| {
            let headers = appended(&forged[lines], &name, clients[who], own_line);
            key(&by, &request(PROXY, headers))
        });
        prop_assert_eq!(&one, &Some(Key::client(clients[0], 64)));
        prop_assert_eq!(&one, &again);
        prop_assert_eq!(one == other, same_client(clients[0], clients[1]));
    }

    #[test]
    fn without_a_proxy_no_header_makes_a_client_another(
        forged in lines(),
        peer in address(),
        by_forwarded: bool,
    ) {
        let (name, by) =
            if by_forwarded { (FORWARDED, client().by_forwarded()) } else { (X_FORWARDED_FOR, client()) };
        let headers = forged.into_iter().map(|line| (name.clone(), line)).collect();
        prop_assert_eq!(key(&by, &request(peer, headers)), Some(Key::client(peer, 64)));
    }

    #[test]
    fn mapped_to_ipv6_an_ipv4_client_is_itself_and_no_other(one: Ipv4Addr, other: Ipv4Addr, bits: u8) {
        let plain = Key::client(one.into(), bits);
        prop_assert_eq!(&plain, &Key::client(one.to_ipv6_mapped().into(), bits));
        prop_assert_eq!(plain == Key::client(other.to_ipv6_mapped().into(), bits), one == other);
        // Not even where IPv6 is all one client.
        prop_assert_ne!(plain, Key::client(one.to_ipv6_compatible().into(), bits % 128));
    }

    #[test]
    fn of_ipv6_a_key_is_the_prefix(one: u128, flipped in 0u32..128, bits in 0u8..=128) {
        let [key, other] = [one, one ^ (1 << (127 - flipped))]
            .map(|address| Key::client(Ipv6Addr::from_bits(address).into(), bits));
        let is_v4 = |address| Ipv6Addr::from_bits(address).to_ipv4_mapped().is_some();
        prop_assume!(!is_v4(one) && !is_v4(one ^ (1 << (127 - flipped))));
        prop_assert_eq!(key == other, flipped >= u32::from(bits));
    }

    #[test]
    fn header_values_share_a_key_if_and_only_if_they_are_the_same_bytes(
        one in prop::collection::vec(128u8..=255, 0..1500),
        other in prop::collection::vec(128u8..=255, 0..1500),
        cut in 0usize..1500,
    ) {
        let by = Header(X_API_KEY);
        let key = |value: &[u8]| {
            let value = HeaderValue::from_bytes(value).unwrap();
            key(&by, &request(PROXY, HeaderMap::from_iter([(X_API_KEY, value)])))
        };
        prop_assert_eq!(key(&one).is_some(), one.len() <= Key::MAX_LEN);
        if one.len().max(other.len()) <= Key::MAX_LEN {
            prop_assert_eq!(key(&one) == key(&other), one == other);
            let cut = &one[..cut.min(one.len())];
            prop_assert_eq!(key(&one) == key(cut), one == cut);
        }
    }

    #[test]
    fn whatever_is_in_the_headers_the_answer_is_no_server_error(
        forwarded in lines(),
        forwarded_for in lines(),
        api_key in lines(),
        peer in prop::option::of(any::<IpAddr>()),
    ) {
        let policies = [
            Policy::new("a", Rate::per_day(1), 1).per(client()),
            Policy::new("b", Rate::per_day(1), 1).per(client().by_forwarded()).without_key_shared(),
            Policy::new("c", Rate::per_day(1), 1).per(Header(X_API_KEY)).per(Path),
        ];
        let policies = Policies::from(policies);
        let mut request = Request::get("/").body(()).unwrap();
        if let Some(peer) = peer {
            request.extensions_mut().insert(peer);
        }
        let fields = [(FORWARDED, forwarded), (X_FORWARDED_FOR, forwarded_for), (X_API_KEY, api_key)];
        for (name, lines) in fields {
            for line in lines {
                request.headers_mut().append(name.clone(), line);
            }
        }
        for _ in 0..2 {
            if let Err(refused) = policies.try_admit(&request) {
                let answer: Result<http::Response<String>, Infallible> =
                    TooManyRequests::new().problem_details().refused(refused);
                prop_assert!(answer.unwrap().status().is_client_error());
            }
        }
    }
}

// ---- Memory ------------------------------------------------------------------------------------

fn capped(quota: Quota, keys: usize) -> Keyed<Key> {
    Keyed::builder(quota).max_keys(keys).build().unwrap()
}

#[test]
fn a_million_clients_take_no_more_memory_than_there_is_room_for_and_nobody_gets_more() {
    let keyed = capped(Limiter::new(Rate::ZERO, 2).into(), 10_000);
    let policies = Policies::from(Policy::by("client", keyed.clone()).per(client()));
    let admit = |peer: IpAddr| policies.try_admit(&request(peer, HeaderMap::new())).is_ok();
    let victim = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    assert!(admit(victim) && admit(victim) && !admit(victim));
    for number in 0u32..1_000_000 {
        // Half of them by networks of IPv6, of which anybody has many.
        let peer = if number % 2 == 0 {
            IpAddr::V4(Ipv4Addr::from_bits(0xc000_0300 + number))
        } else {
            IpAddr::V6(Ipv6Addr::from_bits((0x2001_0db8_0000_0000 + u128::from(number)) << 64))
        };
        admit(peer);
        if number % 1000 == 0 {
            assert!(keyed.len() <= 10_000);
            assert!(!admit(victim), "what it has used is forgotten");
        }
    }
    assert!(keyed.len() <= 10_000);
}

#[test]
fn unless_a_limiter_is_given_there_is_a_cap() {
    let policy = Policy::new("client", Rate::per_day(1), 1);
    assert_eq!(policy.limiter().max_keys(), Some(100_000));
}

#[test]
fn long_keys_are_bounded_in_number_and_length() {
    let keyed = capped(Quota::new(Rate::per_day(1), 1), 100);
    let policies = Policies::from(Policy::by("key", keyed.clone()).per(Header(X_API_KEY)));
    for number in 0..2000 {
        let long = format!("{number:0>0$}", Key::MAX_LEN + number % 2);
        let headers = HeaderMap::from_iter([(X_API_KEY, HeaderValue::try_from(long).unwrap())]);
        let admitted = policies.try_admit(&request(PROXY, headers));
        assert!(number % 2 == 0 || admitted.is_err(), "it is longer than a key may be");
    }
    assert!(keyed.len() <= 100);
}
