//! The layer for gRPC around a tonic service, over loopback.

#![cfg(feature = "tonic")]

use paceline::tonic::ResourceExhausted;
use paceline::tower::{Answer, RateLimitLayer, Refused};
use paceline::window::FixedWindow;
use paceline::{DynRateLimit, Limiter, Rate};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};
use tonic::server::NamedService;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Server};
use tonic::{Code, Request, Response, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_types::StatusExt;
use tower::Layer;

/// Nothing here takes so long unless it hangs.
const HANGS: Duration = Duration::from_secs(60);

fn health() -> HealthServer<impl Health> {
    tonic_health::server::health_reporter().1
}

/// Serves by `router`, whatever layers it has, and connects to it.
macro_rules! serve {
    ($router:expr) => {{
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn($router.serve_with_incoming(TcpIncoming::from(listener)));
        let channel = Channel::from_shared(format!("http://{address}")).unwrap();
        HealthClient::new(channel.connect().await.unwrap())
    }};
}

async fn check(client: &HealthClient<Channel>) -> Result<Response<()>, Status> {
    let check = Request::new(HealthCheckRequest { service: String::new() });
    let answer = timeout(HANGS, client.clone().check(check)).await.unwrap();
    answer.map(|answer| answer.map(drop))
}

fn once() -> Arc<Limiter> {
    Arc::new(Limiter::new(Rate::per_day(1), 1))
}

fn pushback(status: &Status) -> Option<&str> {
    Some(status.metadata().get("grpc-retry-pushback-ms")?.to_str().unwrap())
}

/// Refused, with a day to wait, which both the details and the metadata tell.
fn is_told_to_wait(refused: &Status) {
    assert_eq!(refused.code(), Code::ResourceExhausted);
    let told = refused.get_details_retry_info().unwrap().retry_delay.unwrap();
    assert!(told <= Duration::from_secs(86_400) && told > Duration::from_secs(86_000));
    let millis = pushback(refused).unwrap();
    let rounded = Duration::from_millis(millis.parse().unwrap());
    assert!(rounded >= told && rounded.saturating_sub(told) < Duration::from_millis(1));
    assert!(refused.message().contains("retry after"));
}

fn name<S: NamedService>(_: &S) -> &'static str {
    S::NAME
}

#[tokio::test]
async fn a_service_behind_the_layer_keeps_its_name_and_tells_when_to_call_again() {
    let service = RateLimitLayer::new(once()).answer(ResourceExhausted).layer(health());
    assert_eq!(name(&service), "grpc.health.v1.Health");
    let client = serve!(Server::builder().add_service(service));
    assert!(check(&client).await.is_ok());
    is_told_to_wait(&check(&client).await.unwrap_err());
}

#[tokio::test]
async fn a_layer_is_around_all_services_of_a_server() {
    let layer = RateLimitLayer::new(once()).answer(ResourceExhausted);
    let client = serve!(Server::builder().layer(layer).add_service(health()));
    assert!(check(&client).await.is_ok());
    is_told_to_wait(&check(&client).await.unwrap_err());
}

#[tokio::test]
async fn a_call_that_waits_and_is_cancelled_gives_its_turn_back() {
    let limiter = once();
    let layer = RateLimitLayer::new(Arc::clone(&limiter)).wait().answer(ResourceExhausted);
    let client = serve!(Server::builder().add_service(layer.layer(health())));
    limiter.try_acquire().unwrap();
    let debt_is = async |debt: f64| {
        let until = async {
            while (limiter.tokens() - debt).abs() > 0.1 {
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(HANGS, until).await.unwrap();
    };
    let call = tokio::spawn(async move { check(&client).await });
    debt_is(-1.0).await;
    call.abort();
    debt_is(0.0).await;
}

fn answer(refused: Refused) -> Status {
    let answer: Result<http::Response<String>, ()> =
        Answer::<(), _, _, _>::refused(&ResourceExhausted, refused);
    Status::from_header_map(answer.unwrap().headers()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn each_refusal_has_its_code() {
    let window = FixedWindow::new(1, Duration::from_nanos(1_500_000_001));
    assert_eq!(answer(Refused::NoKey).code(), Code::InvalidArgument);
    window.try_acquire().unwrap();
    let limited = answer(window.try_acquire().unwrap_err().into());
    assert_eq!(limited.code(), Code::ResourceExhausted);
    // Rounded up.
    assert_eq!(pushback(&limited).unwrap(), "1501");
    let exceeds = answer(window.try_acquire_many(2).unwrap_err().into());
    assert_eq!(exceeds.code(), Code::ResourceExhausted);
    assert_eq!(pushback(&exceeds), None);
    DynRateLimit::close(&window);
    assert_eq!(answer(window.try_acquire().unwrap_err().into()).code(), Code::Unavailable);
}

#[cfg(feature = "http")]
#[tokio::test]
async fn clients_have_limits_of_their_own() {
    use paceline::http::{ClientAddr, Policy};
    use tonic::transport::server::TcpConnectInfo;

    let peer = |info: &TcpConnectInfo| info.remote_addr().map(|address| address.ip());
    let policy = Policy::new("client", Rate::per_day(1), 1).per(ClientAddr::peer(peer));
    let layer = RateLimitLayer::http(policy).answer(ResourceExhausted);
    let client = serve!(Server::builder().add_service(layer.layer(health())));
    assert!(check(&client).await.is_ok());
    is_told_to_wait(&check(&client).await.unwrap_err());
}
