//! Routes in a configuration, as limits of an HTTP service.
#![cfg(all(feature = "config", feature = "http"))]

use http::{Request, Response};
use paceline::config::{ConfigError, Routes};
use paceline::http::{ClientAddr, Policies};
use paceline::tower::RateLimitLayer;
use std::convert::Infallible;
use std::net::SocketAddr;
use tower::{Layer, ServiceExt, service_fn};

const ROUTES: &str = r#"[
    {"name": "client", "limit": "100/s burst=4", "key": "client"},
    {"path": "/login", "method": "POST", "limit": "20/min burst=2", "key": "client"},
    {"path": "/tenants/{tenant}/reports", "limit": "1/h", "key": "param:tenant"},
    {"path": "/export", "limit": "1/h", "key": "header:X-Api-Key"},
    {"path": "/status", "limit": "3/h burst=3"}
]"#;

fn client() -> ClientAddr {
    ClientAddr::peer(|peer: &SocketAddr| peer.ip())
}

fn request(method: &str, path: &str, peer: u8, key: Option<&str>) -> Request<()> {
    let peer = SocketAddr::from(([192, 0, 2, peer], 1000));
    let request = Request::builder().method(method).uri(path).extension(peer);
    let request = match key {
        Some(key) => request.header("x-api-key", key),
        None => request,
    };
    request.body(()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn each_request_is_under_the_limits_of_its_route_and_its_key() {
    let routes: Routes = serde_json::from_str(ROUTES).unwrap();
    let layer = RateLimitLayer::http(Policies::of_routes(routes, client()).unwrap());
    let service = layer.layer(service_fn(|_: Request<()>| async {
        Ok::<_, Infallible>(Response::new(String::new()))
    }));
    let status = |method, path, peer, key| {
        let call = service.clone().oneshot(request(method, path, peer, key));
        async move { call.await.unwrap().status().as_u16() }
    };
    // By client, of this method; those of others are under the route without a path.
    for expected in [200, 200, 429] {
        assert_eq!(status("POST", "/login", 1, None).await, expected);
    }
    assert_eq!(status("POST", "/login", 2, None).await, 200);
    for expected in [200, 200, 200, 200, 429] {
        assert_eq!(status("GET", "/login", 1, None).await, expected);
    }
    // By a parameter of the path, whoever asks.
    assert_eq!(status("GET", "/tenants/a/reports", 1, None).await, 200);
    assert_eq!(status("GET", "/tenants/a/reports?x=1", 3, None).await, 429);
    assert_eq!(status("GET", "/tenants/b/reports", 1, None).await, 200);
    // By a header field.
    assert_eq!(status("GET", "/export", 1, Some("k")).await, 200);
    assert_eq!(status("GET", "/export", 3, Some("k")).await, 429);
    assert_eq!(status("GET", "/export", 3, Some("l")).await, 200);
    assert_eq!(status("GET", "/export", 3, None).await, 400);
    // All together.
    for (peer, expected) in [(5, 200), (6, 200), (7, 200), (8, 429)] {
        assert_eq!(status("GET", "/status", peer, None).await, expected);
    }
}

#[test]
fn a_header_field_that_can_t_be_is_refused() {
    let routes = r#"[{"limit": "1/s", "key": "header:(x)"}]"#;
    let refused = Policies::of_routes(serde_json::from_str(routes).unwrap(), client());
    assert_eq!(refused.err(), Some(ConfigError::BadKey { given: "header:(x)".to_owned() }));
}
