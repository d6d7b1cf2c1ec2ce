//! The layer for HTTP: who is limited by what, and what clients are told.

#![cfg(feature = "http")]

use futures::future::join_all;
use http::{HeaderMap, HeaderName, Method, Request, Response, StatusCode};
use paceline::http::{
    ClientAddr, Head, Header, IpNet, Key, Path, Policies, Policy, Refused, Taken, TooManyRequests,
};
use paceline::tower::{Admit, RateLimitLayer, RateLimitService};
use paceline::window::FixedWindow;
use paceline::{Limiter, Rate};
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};
use tower::util::ServiceFn;
use tower::{Layer, Service, ServiceExt, service_fn};

const SECOND: Duration = Duration::from_secs(1);
const ONE: &str = "192.0.2.1:1000";
const OTHER: &str = "192.0.2.2:1000";

// ---- The service and those who call it ---------------------------------------------------------

type Answered = Ready<Result<Response<String>, Infallible>>;
/// A service that never fails and never says no.
type Hello = ServiceFn<fn(Request<()>) -> Answered>;

fn hello() -> Hello {
    service_fn(|_| ready(Ok(Response::new("Hello".to_owned()))))
}

fn limited(policies: impl Into<Policies>) -> RateLimitService<Hello, Policies, TooManyRequests> {
    RateLimitLayer::http(policies).layer(hello())
}

fn get(path: &str) -> Request<()> {
    Request::get(path).extension(ONE.parse::<SocketAddr>().unwrap()).body(()).unwrap()
}

fn from(peer: &str) -> Request<()> {
    let mut request = get("/");
    request.extensions_mut().insert(peer.parse::<SocketAddr>().unwrap());
    request
}

fn with(mut request: Request<()>, fields: &[(&'static str, &str)]) -> Request<()> {
    for (name, value) in fields {
        request.headers_mut().append(*name, value.parse().unwrap());
    }
    request
}

async fn call<S>(service: &S, request: Request<()>) -> Response<String>
where
    S: Service<Request<()>, Response = Response<String>, Error = Infallible> + Clone,
{
    service.clone().oneshot(request).await.unwrap()
}

/// The statuses of some requests, one after the other.
async fn statuses<S, const N: usize>(service: &S, requests: [Request<()>; N]) -> [u16; N]
where
    S: Service<Request<()>, Response = Response<String>, Error = Infallible> + Clone,
{
    let mut statuses = [0; N];
    for (status, request) in statuses.iter_mut().zip(requests) {
        *status = call(service, request).await.status().as_u16();
    }
    statuses
}

fn field<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap())
}

fn peer() -> ClientAddr {
    ClientAddr::peer(|address: &SocketAddr| address.ip())
}

fn per_client(rate: Rate, burst: u32) -> Policy {
    Policy::new("client", rate, burst).per(peer())
}

// ---- What clients are told ---------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn each_answer_tells_what_is_left_and_a_refusal_when_to_come_back() {
    let service = limited(per_client(Rate::per_minute(2), 2));
    let expected = [
        (StatusCode::OK, "\"client\";r=1;t=30", None),
        (StatusCode::OK, "\"client\";r=0;t=30", None),
        (StatusCode::TOO_MANY_REQUESTS, "\"client\";r=0;t=30", Some("30")),
    ];
    for (status, left, retry_after) in expected {
        let answer = call(&service, get("/")).await;
        assert_eq!(answer.status(), status);
        let headers = answer.headers();
        assert_eq!(field(headers, "ratelimit-policy"), Some("\"client\";q=2;w=60"));
        assert_eq!(field(headers, "ratelimit"), Some(left));
        assert_eq!(field(headers, "retry-after"), retry_after);
        assert_eq!(field(headers, "x-ratelimit-limit"), None);
    }
    // What it says is right, and a little less is not enough.
    sleep(Duration::from_millis(29_999)).await;
    assert_eq!(call(&service, get("/")).await.headers()["retry-after"], "1");
    sleep(Duration::from_millis(1)).await;
    assert_eq!(call(&service, get("/")).await.status(), StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn the_x_fields_and_problem_details_are_by_choice() {
    let layer = RateLimitLayer::http(per_client(Rate::per_second(1), 5));
    let answer = TooManyRequests::new().without_draft_fields().x_ratelimit().problem_details();
    let service = layer.answer(answer).layer(hello());
    for (left, next) in [("4", "1"), ("3", "1"), ("2", "1"), ("1", "1"), ("0", "1")] {
        let answer = call(&service, get("/")).await;
        let headers = answer.headers();
        let fields = ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"];
        assert_eq!(fields.map(|name| field(headers, name)), [Some("5"), Some(left), Some(next)]);
        assert_eq!(field(headers, "ratelimit"), None);
    }
    let refused = call(&service, get("/")).await;
    assert_eq!(refused.headers()["content-type"], "application/problem+json");
    let problem: serde_json::Value = serde_json::from_str(refused.body()).unwrap();
    let kind = "https://iana.org/assignments/http-problem-types#quota-exceeded";
    assert_eq!(problem["type"], kind);
    assert_eq!(problem["status"], 429);
    assert_eq!(problem["violated-policies"], serde_json::json!(["client"]));
}

#[tokio::test(start_paused = true)]
async fn a_name_is_quoted_in_fields_and_problems_alike() {
    let name = r#"a "b" \c"#;
    let layer = RateLimitLayer::http(Policy::new(name, Rate::per_second(1), 1));
    let service = layer.answer(TooManyRequests::new().problem_details()).layer(hello());
    let answer = call(&service, get("/")).await;
    assert_eq!(answer.headers()["ratelimit"], r#""a \"b\" \\c";r=0;t=1"#);
    let refused = call(&service, get("/")).await;
    let problem: serde_json::Value = serde_json::from_str(refused.body()).unwrap();
    assert_eq!(problem["violated-policies"], serde_json::json!([name]));
}

#[test]
#[should_panic(expected = "not only printable ASCII")]
fn a_name_that_no_field_can_have_is_refused() {
    let _ = Policy::new("clients\r\nx: y", Rate::per_second(1), 1);
}

#[tokio::test(start_paused = true)]
async fn what_has_no_limit_is_not_told_of() {
    let service = limited(Policy::new("all", Rate::UNLIMITED, 1));
    let answer = call(&service, get("/")).await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert!(answer.headers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_never_comes_has_no_time() {
    let service = limited(Policy::new("once", Rate::ZERO, 1));
    let answer = call(&service, get("/")).await;
    assert_eq!(answer.headers()["ratelimit-policy"], "\"once\";q=1");
    assert_eq!(answer.headers()["ratelimit"], "\"once\";r=0");
    let refused = call(&service, get("/")).await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(field(refused.headers(), "retry-after"), None);
}

#[tokio::test(start_paused = true)]
async fn two_layers_tell_of_both_and_the_inner_is_the_one_of_the_x_fields() {
    let both = || TooManyRequests::new().x_ratelimit();
    let inner = RateLimitLayer::http(Policy::new("route", Rate::per_second(1), 3));
    let outer = RateLimitLayer::http(Policy::new("all", Rate::per_second(1), 9));
    let service = outer.answer(both()).layer(inner.answer(both()).layer(hello()));
    let answer = call(&service, get("/")).await;
    let all: Vec<_> = answer.headers().get_all("ratelimit").iter().collect();
    assert_eq!(all, ["\"route\";r=2;t=1", "\"all\";r=8;t=1"]);
    assert_eq!(answer.headers()["x-ratelimit-limit"], "3");
}

#[tokio::test(start_paused = true)]
async fn any_limiter_answers_429_and_when_to_come_back() {
    let limiter = Arc::new(FixedWindow::new(1, SECOND * 10));
    let layer = RateLimitLayer::new(Arc::clone(&limiter)).answer(TooManyRequests::new());
    let service = layer.layer(hello());
    assert_eq!(call(&service, get("/")).await.status(), StatusCode::OK);
    let refused = call(&service, get("/")).await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.headers()["retry-after"], "10");
    limiter.close();
    assert_eq!(call(&service, get("/")).await.status(), StatusCode::SERVICE_UNAVAILABLE);
}

// ---- Keys --------------------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn each_client_has_a_limit_of_its_own_whatever_its_port() {
    let service = limited(per_client(Rate::per_second(1), 1));
    let requests = [ONE, "192.0.2.1:2000", OTHER, "192.0.2.2:2000"].map(from);
    assert_eq!(statuses(&service, requests).await, [200, 429, 200, 429]);
}

#[tokio::test(start_paused = true)]
async fn ipv6_is_limited_by_the_network_and_mapped_ipv4_is_ipv4() {
    let service = limited(per_client(Rate::per_second(1), 1));
    let peers = ["[2001:db8::1]:1", "[2001:db8::ffff:1]:1", "[2001:db8:0:1::1]:1"].map(from);
    assert_eq!(statuses(&service, peers).await, [200, 429, 200]);
    let peers =
        ["192.0.2.1:1", "[::ffff:192.0.2.1]:1", "[::ffff:192.0.2.2]:1", "[::1]:1"].map(from);
    assert_eq!(statuses(&service, peers).await, [200, 429, 200, 200]);
    let wide = Policy::new("site", Rate::per_second(1), 1).per(peer().ipv6_prefix(48));
    let peers = ["[2001:db8::1]:1", "[2001:db8:0:1::1]:1", "[2001:db8:1::1]:1"].map(from);
    assert_eq!(statuses(&limited(wide), peers).await, [200, 429, 200]);
    let all = Policy::new("all", Rate::per_second(1), 1).per(peer().ipv6_prefix(0));
    let peers = ["[2001:db8::1]:1", "[::1]:1", "192.0.2.1:1"].map(from);
    assert_eq!(statuses(&limited(all), peers).await, [200, 429, 200]);
}

#[tokio::test(start_paused = true)]
async fn a_header_is_compared_byte_by_byte() {
    let key = Header(HeaderName::from_static("x-api-key"));
    let service = limited(Policy::new("key", Rate::per_second(1), 1).per(key));
    let keys = ["a", "a", "A", "b"].map(|key| with(get("/"), &[("x-api-key", key)]));
    assert_eq!(statuses(&service, keys).await, [200, 429, 200, 200]);
}

#[tokio::test(start_paused = true)]
async fn without_a_key_it_is_a_client_error_or_one_limit_for_all_of_those() {
    let header = || Header(HeaderName::from_static("x-api-key"));
    let policy = || Policy::new("key", Rate::per_second(1), 1).per(header());
    let refused = call(&limited(policy()), get("/")).await;
    assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
    assert_eq!(refused.body(), "the request has no key to be limited by\n");
    assert_eq!(field(refused.headers(), "retry-after"), None);

    let service = limited(policy().without_key(StatusCode::UNAUTHORIZED));
    let two = || with(get("/"), &[("x-api-key", "a"), ("x-api-key", "b")]);
    let long = || with(get("/"), &[("x-api-key", &"k".repeat(Key::MAX_LEN + 1))]);
    assert_eq!(statuses(&service, [get("/"), two(), long()]).await, [401, 401, 401]);

    let service = limited(policy().without_key_shared());
    let keyed = with(get("/"), &[("x-api-key", "a")]);
    assert_eq!(
        statuses(&service, [get("/"), from(OTHER), two(), keyed]).await,
        [200, 429, 429, 200]
    );

    // A server that does not say who the peer is.
    let unknown = Request::get("/").body(()).unwrap();
    let service = limited(per_client(Rate::per_second(1), 1));
    assert_eq!(call(&service, unknown).await.status(), StatusCode::BAD_REQUEST);
}

#[test]
#[should_panic(expected = "500 Internal Server Error is no client error")]
fn without_a_key_it_is_never_the_servers_fault() {
    let policy = Policy::new("key", Rate::per_second(1), 1);
    let _ = policy.without_key(StatusCode::INTERNAL_SERVER_ERROR);
}

#[tokio::test(start_paused = true)]
async fn by_path_by_several_keys_and_by_a_key_of_ones_own() {
    let service = limited(Policy::new("path", Rate::per_second(1), 1).per(Path));
    assert_eq!(statuses(&service, ["/a", "/a?b", "/b"].map(get)).await, [200, 429, 200]);

    let service = limited(per_client(Rate::per_second(1), 1).per(Path));
    assert_eq!(statuses(&service, ["/a", "/a", "/b"].map(get)).await, [200, 429, 200]);
    assert_eq!(statuses(&service, [from(OTHER)]).await, [200]);

    let tenant = |request: Head<'_>| Key::bytes(request.uri.path().split('/').nth(1)?);
    let service = limited(Policy::new("tenant", Rate::per_second(1), 1).per(tenant));
    assert_eq!(statuses(&service, ["/t/a", "/t/b", "/u/a"].map(get)).await, [200, 429, 200]);
}

// ---- Which requests, and how much --------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn a_policy_may_be_for_some_methods_or_paths_only() {
    let writes = Policy::new("writes", Rate::per_second(1), 1).methods([Method::POST, Method::PUT]);
    let service = limited(writes);
    let methods = [Method::GET, Method::POST, Method::GET, Method::PUT, Method::DELETE];
    let requests = methods.map(|method| Request::builder().method(method).body(()).unwrap());
    assert_eq!(statuses(&service, requests).await, [200, 200, 200, 429, 200]);

    let service = limited(Policy::new("api", Rate::per_second(1), 1).under("/api/"));
    let paths = ["/", "/apis", "/api", "/api/", "/api/a", "/api?x"].map(get);
    assert_eq!(statuses(&service, paths).await, [200, 200, 200, 429, 429, 429]);
    let free = call(&service, get("/")).await;
    assert!(free.headers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_request_may_cost_more_than_one() {
    let cost = |request: Head<'_>| if request.uri.path() == "/export" { 10 } else { 1 };
    let service = limited(Policy::new("points", Rate::per_second(1), 10).cost(cost));
    let answer = call(&service, get("/export")).await;
    assert_eq!(answer.headers()["ratelimit"], "\"points\";r=0;t=1");
    assert_eq!(call(&service, get("/export")).await.headers()["retry-after"], "10");
    assert_eq!(call(&service, get("/")).await.headers()["retry-after"], "1");
}

// ---- Several policies --------------------------------------------------------------------------

fn burst_and_daily() -> Policies {
    let daily = Policy::new("daily", Rate::per_day(86_400 / 60), 3).per(peer());
    [per_client(Rate::per_second(1), 2), daily].into()
}

#[tokio::test(start_paused = true)]
async fn all_must_hold_and_one_that_refuses_takes_nothing_of_the_others() {
    let policies = burst_and_daily();
    let service = limited(policies.clone());
    let answer = call(&service, get("/")).await;
    let quotas = "\"client\";q=2;w=2, \"daily\";q=3;w=180";
    assert_eq!(answer.headers()["ratelimit-policy"], quotas);
    assert_eq!(answer.headers()["ratelimit"], "\"client\";r=1;t=1, \"daily\";r=2;t=60");
    call(&service, get("/")).await;
    // The first refuses, however often it is asked, and the other has what it had.
    for _ in 0..5 {
        let refused = call(&service, get("/")).await;
        assert_eq!(refused.headers()["ratelimit-policy"], quotas);
        assert_eq!(refused.headers()["ratelimit"], "\"client\";r=0;t=1");
        assert_eq!(refused.headers()["retry-after"], "1");
    }
    sleep(SECOND * 2).await;
    // The third of the day, and then the other refuses.
    assert_eq!(call(&service, get("/")).await.status(), StatusCode::OK);
    for _ in 0..5 {
        let refused = call(&service, get("/")).await;
        assert_eq!(refused.headers()["ratelimit"], "\"daily\";r=0;t=58");
        assert_eq!(refused.headers()["retry-after"], "58");
    }
    sleep(SECOND * 58).await;
    assert_eq!(
        call(&service, get("/")).await.headers()["ratelimit"],
        "\"client\";r=1;t=1, \"daily\";r=0;t=60"
    );
}

#[tokio::test(start_paused = true)]
async fn both_that_refuse_are_named_and_the_later_says_when() {
    let a = || Policy::new("a", Rate::per_second(1), 1);
    let b = || Policy::new("b", Rate::per_minute(1), 1);
    for (policies, names) in [([a(), b()], ["a", "b"]), ([b(), a()], ["b", "a"])] {
        let layer = RateLimitLayer::http(policies).answer(TooManyRequests::new().problem_details());
        let service = layer.layer(hello());
        call(&service, get("/")).await;
        let refused = call(&service, get("/")).await;
        let problem: serde_json::Value = serde_json::from_str(refused.body()).unwrap();
        assert_eq!(problem["violated-policies"], serde_json::json!(names));
        assert_eq!(refused.headers()["retry-after"], "60");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_ones_own_may_name_the_policies() {
    let layer = RateLimitLayer::http(burst_and_daily()).answer(|refused: Refused| {
        Ok(Response::new(format!("{:?} {:?}", refused.policies(), refused.why().retry_after())))
    });
    let service = layer.layer(hello());
    let mut answers = Vec::new();
    for _ in 0..3 {
        answers.push(call(&service, get("/")).await.into_body());
    }
    assert_eq!(answers, ["Hello", "Hello", "[\"client\"] Some(1s)"]);
}

/// Two that both see the last permit of one policy, and have both taken of the other.
#[test]
fn threads_that_come_in_between_lose_nothing_of_either() {
    const ROUNDS: u32 = 10_000;
    let policy = |name, burst| Policy::new(name, Rate::ZERO, burst).per(Path);
    let wide = policy("wide", 10);
    let limiter = wide.limiter().clone();
    let policies = Policies::from([wide, policy("narrow", 1)]);
    let together = Barrier::new(2);
    let take = || {
        let admit = |round| {
            let request = get(&format!("/{round}"));
            together.wait();
            u32::from(policies.try_admit(&request).is_ok())
        };
        (0..ROUNDS).map(admit).sum::<u32>()
    };
    let admitted = std::thread::scope(|scope| {
        let threads = [scope.spawn(take), scope.spawn(take)];
        threads.map(|thread| thread.join().unwrap())
    });
    assert_eq!(admitted[0] + admitted[1], ROUNDS);
    limiter.for_each(|key, tokens| assert!((tokens - 9.0).abs() < 1e-6, "{key:?}: {tokens}"));
}

// ---- Waiting -----------------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn told_to_wait_each_client_has_its_own_queue() {
    let service = RateLimitLayer::http(per_client(Rate::per_second(1), 1)).wait().layer(hello());
    let began = Instant::now();
    let calls = [ONE, ONE, ONE, OTHER, OTHER].map(|peer| call(&service, from(peer)));
    let answers = join_all(calls).await;
    assert!(answers.iter().all(|answer| answer.status() == StatusCode::OK));
    assert_eq!(began.elapsed(), SECOND * 2);
}

#[tokio::test(start_paused = true)]
async fn with_several_policies_one_that_is_dropped_gives_back_all_its_turns() {
    let fast = || Policy::new("fast", Rate::every(SECOND * 3 / 5), 1);
    let slow = || Policy::new("slow", Rate::per_second(1), 1);
    for policies in [[fast(), slow()], [slow(), fast()]] {
        let service = RateLimitLayer::http(policies).wait().layer(hello());
        call(&service, get("/")).await;
        for _ in 0..20 {
            // After the turn of the fast one, and before that of the slow one.
            let gives_up = timeout(SECOND * 7 / 10, call(&service, get("/"))).await;
            assert!(gives_up.is_err());
            let began = Instant::now();
            call(&service, get("/")).await;
            assert_eq!(began.elapsed(), SECOND * 3 / 10);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_bound_it_waits_for_what_does_not_come_by_itself() {
    for more in 0..2 {
        let policy = || Policy::new("p", Rate::ZERO, 1);
        let policies: Vec<_> = (0..=more).map(|_| policy()).collect();
        let limiters: Vec<_> = policies.iter().map(|policy| policy.limiter().clone()).collect();
        let service = RateLimitLayer::http(policies).wait().layer(hello());
        call(&service, get("/")).await;
        let mut waits = Box::pin(call(&service, get("/")));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(waits.as_mut().poll(&mut cx).is_pending());
        for limiter in limiters {
            limiter.set_rate(Rate::per_second(1)).unwrap();
        }
        assert_eq!(waits.await.status(), StatusCode::OK);
    }
}

#[tokio::test(start_paused = true)]
async fn beyond_the_bound_it_is_refused_at_once() {
    let layer = RateLimitLayer::http(per_client(Rate::per_second(1), 1)).wait_within(SECOND * 2);
    let service = layer.layer(hello());
    call(&service, get("/")).await;
    let mut waits = [(); 2].map(|()| Box::pin(call(&service, get("/"))));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(waits.iter_mut().all(|call| call.as_mut().poll(&mut cx).is_pending()));
    let Poll::Ready(refused) = pin!(call(&service, get("/"))).poll(&mut cx) else {
        panic!("it can't be served in time")
    };
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.headers()["retry-after"], "1");
    assert_eq!(refused.headers()["ratelimit"], "\"client\";r=0;t=3");
    assert!(join_all(waits).await.iter().all(|answer| answer.status() == StatusCode::OK));
}

// ---- Behind proxies ----------------------------------------------------------------------------

fn trusted() -> [IpNet; 2] {
    ["10.0.0.0/8", "2001:db8::/32"].map(|network| network.parse().unwrap())
}

fn behind_proxies() -> Policy {
    Policy::new("client", Rate::per_second(1), 1).per(peer().behind(trusted()))
}

/// Whom a request from `peer` with these fields is taken to be from.
fn client(by: &ClientAddr, peer: &str, fields: &[(&'static str, &str)]) -> Option<String> {
    let request = with(from(peer), fields);
    by.address(Head::from(&request)).map(|address| address.to_string())
}

#[test]
fn the_client_is_the_last_hop_that_is_not_trusted() {
    let by = peer().behind(trusted());
    let says = |peer, text| client(&by, peer, &[("x-forwarded-for", text)]);
    let is = |address: &str| Some(address.to_owned());
    assert_eq!(says("10.0.0.1:1", "1.1.1.1"), is("1.1.1.1"));
    // What stands before it, the client has made up.
    assert_eq!(says("10.0.0.1:1", "9.9.9.9, 1.1.1.1, 10.0.0.2"), is("1.1.1.1"));
    assert_eq!(says("10.0.0.1:1", "10.0.0.9, 1.1.1.1"), is("1.1.1.1"));
    assert_eq!(says("10.0.0.1:1", "junk\"\\;, 1.1.1.1"), is("1.1.1.1"));
    // Who is not trusted is not believed.
    assert_eq!(says("8.8.8.8:1", "1.1.1.1"), is("8.8.8.8"));
    // Also where the trusted one is written otherwise.
    assert_eq!(says("[::ffff:10.0.0.1]:1", "1.1.1.1, ::ffff:10.0.0.2"), is("1.1.1.1"));
    assert_eq!(says("[2001:db8::1]:1", "[2001:db9::1]:80"), is("2001:db9::1"));
    // A proxy's own, and one of a trusted machine.
    assert_eq!(client(&by, "10.0.0.1:1", &[]), is("10.0.0.1"));
    assert_eq!(says("10.0.0.1:1", "10.0.0.3, 10.0.0.2"), is("10.0.0.3"));
    // Nobody knows.
    for unknown in ["", "unknown", "1.1.1.1,", "1.1.1.1, _hidden", "1.1.1", "1.1.1.1 2.2.2.2"] {
        assert_eq!(says("10.0.0.1:1", unknown), None, "{unknown}");
    }
    // The other header is not looked at.
    assert_eq!(client(&by, "10.0.0.1:1", &[("forwarded", "for=1.1.1.1")]), is("10.0.0.1"));
    let by = peer().behind(trusted()).by_forwarded();
    let fields =
        [("forwarded", "for=9.9.9.9"), ("forwarded", "for=\"[2001:db9::1]:80\";proto=http")];
    assert_eq!(client(&by, "10.0.0.1:1", &fields), is("2001:db9::1"));
    assert_eq!(client(&by, "10.0.0.1:1", &[("x-forwarded-for", "1.1.1.1")]), is("10.0.0.1"));
}

#[tokio::test(start_paused = true)]
async fn a_client_behind_a_proxy_has_its_own_limit_and_can_take_nobody_elses() {
    let service = limited(behind_proxies());
    let request = |text| with(from("10.0.0.1:1"), &[("x-forwarded-for", text)]);
    let requests = ["1.1.1.1", "9.9.9.9, 1.1.1.1", "2.2.2.2", "1.1.1.1, 2.2.2.2", "9.9.9.9", "x"];
    assert_eq!(statuses(&service, requests.map(request)).await, [200, 429, 200, 429, 200, 400]);
}

/// A limiter that both HTTP and another part of the program take from.
#[tokio::test(start_paused = true)]
async fn a_limiter_of_ones_own_is_shared() {
    let limiter = Arc::new(Limiter::new(Rate::per_second(1), 1));
    let layer = RateLimitLayer::new(Arc::clone(&limiter)).answer(TooManyRequests::default());
    limiter.try_acquire().unwrap();
    let refused = call(&layer.layer(hello()), get("/")).await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
}

// ---- Types -------------------------------------------------------------------------------------

fn shared<T: Send + Sync + Unpin + 'static>() {}

#[test]
fn all_can_be_shared() {
    shared::<Policy>();
    shared::<Policies>();
    shared::<Key>();
    shared::<ClientAddr>();
    shared::<Header>();
    shared::<Path>();
    shared::<TooManyRequests>();
    shared::<Refused>();
    shared::<Taken>();
    shared::<RateLimitService<Hello, Policies, TooManyRequests>>();
}
