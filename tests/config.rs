//! Limiters and routes in configuration files.
#![cfg(feature = "config")]

use paceline::config::{ConfigError, KeySource, LimiterConfig, PathPattern, Route, Routes};
use paceline::{AcquireError, BuildError, Rate};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use std::time::Duration;

fn limiter(text: &str) -> Result<LimiterConfig, ConfigError> {
    text.parse()
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct File {
    #[serde(default)]
    limits: Vec<LimiterConfig>,
    #[serde(default)]
    routes: Routes,
}

fn toml(text: &str) -> Result<File, String> {
    toml::from_str(text).map_err(|error| error.to_string())
}

fn json(text: &str) -> Result<File, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

fn yaml(text: &str) -> Result<File, String> {
    serde_yaml_ng::from_str(text).map_err(|error| error.to_string())
}

#[track_caller]
fn assert_says<T: std::fmt::Debug>(outcome: Result<T, String>, words: &[&str]) {
    let error = outcome.expect_err("an error");
    for word in words {
        assert!(error.contains(word), "{word:?} is not in: {error}");
    }
}

// ---- A limiter ---------------------------------------------------------------------------------

#[test]
fn a_rate_alone_is_a_limiter() {
    for text in ["20/min", "unlimited", "1/250ms", "0.5 / second"] {
        let config = limiter(text).unwrap();
        assert_eq!(config, LimiterConfig::new(text.parse().unwrap()));
        assert_eq!(config.build().unwrap().burst(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn the_limiter_has_all_that_is_set() {
    let config = limiter(
        " 20 / min burst=5  initial=2 max_wait=250ms max_waiters=100 slack=0s precise=2ms \
         max_rate=50/min max_burst=9",
    );
    let limiter = config.unwrap().build().unwrap();
    assert_eq!((limiter.rate(), limiter.burst()), (Rate::per_minute(20), 5));
    assert!((limiter.tokens() - 2.0).abs() < 1e-9);
    limiter.acquire_many(2).await.unwrap();
    let refused = limiter.acquire().await;
    let limit = Duration::from_millis(250);
    assert!(
        matches!(refused, Err(AcquireError::WouldExceedDeadline { limit: of, .. }) if of == limit),
        "{refused:?}"
    );
    assert!(limiter.set_burst(10).is_err());
    assert!(limiter.set_rate(Rate::per_minute(51)).is_err());
    assert!(limiter.set_burst(9).is_ok() && limiter.set_rate(Rate::per_minute(50)).is_ok());
}

#[test]
fn a_table_of_the_same_names_is_the_same_limiter() {
    let text = "100/s burst=20 initial=3 max_wait=250ms max_waiters=7 slack=1ms precise=2us \
                max_rate=200/s max_burst=30";
    let from_toml = toml(
        r#"[[limits]]
        rate = "100/s"
        burst = 20
        initial = 3
        max_wait = "250ms"
        max_waiters = 7
        slack = "1ms"
        precise = "2 us"
        max_rate = "200/s"
        max_burst = 30
        "#,
    );
    let expected = [limiter(text).unwrap()];
    assert_eq!(from_toml.unwrap().limits, expected);
    let from_json = json(
        r#"{"limits": [{"rate": "100/s", "burst": 20, "initial": 3, "max_wait": "250ms",
            "max_waiters": 7, "slack": "1ms", "precise": "2us", "max_rate": "200/s",
            "max_burst": 30}]}"#,
    );
    assert_eq!(from_json.unwrap().limits, expected);
    let from_yaml = yaml(
        "limits:\n- rate: 100/s\n  burst: 20\n  initial: 3\n  max_wait: 250ms\n  max_waiters: 7\n  \
         slack: 1ms\n  precise: 2us\n  max_rate: 200/s\n  max_burst: 30\n",
    );
    assert_eq!(from_yaml.unwrap().limits, expected);
}

#[test]
fn what_is_wrong_with_a_text_is_quoted() {
    let error = |text: &str| limiter(text).unwrap_err().to_string();
    for (text, words) in [
        ("10/fortnight burst=5", "unknown unit \"fortnight\""),
        ("burst=5", "invalid rate \"\""),
        ("20/min burst=-5", "invalid number \"-5\""),
        ("20/min burst=4294967296", "invalid number \"4294967296\""),
        ("20/min bust=5", "unknown setting \"bust=5\""),
        ("20/min burst=5 fast", "unknown setting \"fast\""),
        ("20/min burst=5 burst=6", "the setting burst is given twice"),
        ("20/min max_wait=5m", "\"5m\": the unit \"m\" is ambiguous"),
        ("20/min max_wait=5", "\"5\": unknown unit \"\""),
        ("20/min max_wait=0.5s", "\"0.5s\": \"0.5\" is not a whole number"),
        ("20/min max_wait=s", "\"s\": a number is missing"),
        ("20/min max_wait=600000days", "\"600000days\": too long"),
        ("20/min slack=99999999999999999999999999999999999999999s", "too long"),
        ("20/min max_rate=1/x", "unknown unit \"x\""),
        ("20/min burst=5 initial=6", "6"),
    ] {
        assert!(error(text).contains(words), "{text}: {}", error(text));
    }
    let why = BuildError::InitialExceedsBurst { initial: 6, burst: 5 };
    assert_eq!(limiter("20/min burst=5 initial=6"), Err(ConfigError::Build(why)));
}

#[test]
fn what_is_wrong_in_a_file_is_told_with_its_line_and_its_value() {
    let bad_unit = toml("limits = [\n  \"20/min\",\n  \"10/fortnight burst=2\",\n]");
    assert_says(bad_unit, &["line 3", "10/fortnight", "unknown unit \"fortnight\""]);
    assert_says(
        toml("[[limits]]\nrate = \"20/min\"\nmax_wait = \"5m\"\n"),
        &["line 3", "\"5m\"", "ambiguous"],
    );
    assert_says(toml("[[limits]]\nrate = \"20/min\"\nburst = -5\n"), &["line 3", "-5"]);
    assert_says(
        toml("[[limits]]\nrate = \"20/min\"\nbust = 5\n"),
        &["line 3", "`bust`", "`burst`"],
    );
    assert_says(toml("\n[[limits]]\nburst = 5\n"), &["line 2", "missing field `rate`"]);
    let too_full = "[[limits]]\nrate = \"20/min\"\nburst = 5\ninitial = 6\n";
    assert_says(toml(too_full), &["line 1", "6", "5"]);
    assert_says(toml("limits = [20]"), &["line 1", "20", "a limit such as \"20/min burst=5\""]);

    assert_says(json("{\"limits\": [\n\"20/m\"]}"), &["line 2", "\"20/m\"", "ambiguous"]);
    assert_says(
        json("{\"limits\": [\n{\"rate\": \"20/min\",\n\"max_wait\": \"5 parsecs\"}]}"),
        &["line 3", "\"5 parsecs\"", "unknown unit"],
    );
    assert_says(yaml("limits:\n- 20/min\n- rate: 20/m\n"), &["line 3", "\"20/m\"", "ambiguous"]);
}

fn durations() -> impl Strategy<Value = Option<Duration>> {
    let units = prop::sample::select(vec![1_u64, 1_000, 1_000_000, 1_000_000_000, 60_000_000_000]);
    prop::option::of(
        (0..100_u64, units).prop_map(|(count, unit)| Duration::from_nanos(count * unit)),
    )
}

proptest! {
    #[test]
    fn what_is_printed_reads_back_equal(
        tokens in 0..10_000_u64,
        period in prop::sample::select(vec![1_u64, 250, 1_000, 60_000, 86_400_000]),
        burst in 0..100_u32,
        initial in prop::option::of(0..100_u32),
        max_waiters in prop::option::of(any::<u32>()),
        (max_wait, slack, precise) in (durations(), durations(), durations()),
        has_max in any::<bool>(),
    ) {
        let rate = Rate::new(tokens, Duration::from_millis(period)).unwrap();
        let mut config = LimiterConfig::new(rate);
        config.burst = burst;
        config.initial = initial.map(|initial| initial.min(burst));
        config.max_waiters = max_waiters;
        (config.max_wait, config.slack, config.precise) = (max_wait, slack, precise);
        if has_max {
            (config.max_rate, config.max_burst) = (Some(rate), Some(burst));
        }
        let text = config.to_string();
        prop_assert_eq!(limiter(&text).unwrap(), config.clone());
        let file = File { limits: vec![config], routes: Routes::default() };
        let through = toml(&toml::to_string(&file).unwrap()).unwrap();
        prop_assert_eq!(&through, &file);
        let through = json(&serde_json::to_string(&file).unwrap()).unwrap();
        prop_assert_eq!(&through, &file);
    }

    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,40}", known in "[0-9/a-z_= ]{0,40}") {
        for text in [text, known] {
            if let Ok(config) = limiter(&text) {
                prop_assert_eq!(limiter(&config.to_string()), Ok(config));
            }
            let _ = (text.parse::<PathPattern>(), text.parse::<KeySource>());
        }
    }
}

// ---- Routes ------------------------------------------------------------------------------------

const ROUTES: &str = r#"
    [[routes]]
    name = "client"
    limit = "100/s burst=200"
    key = "client"

    [[routes]]
    path = "/login"
    method = "POST"
    key = "client"
    limit = { rate = "20/min", burst = 5 }

    [[routes]]
    path = "/login"
    limit = "1000/s"

    [[routes]]
    path = "/users/{id}"
    method = ["GET", "HEAD"]
    key = "param:id"
    limit = "10/s"

    [[routes]]
    path = "/users/me"
    limit = "20/s"

    [[routes]]
    path = "/files/{*rest}"
    key = "header:x-api-key"
    limit = "30/s"
"#;

/// The limits that a request is under.
fn limits(routes: &Routes, method: &str, path: &str) -> Vec<String> {
    routes.find(method, path).routes().map(|route| route.limit.to_string()).collect()
}

#[test]
fn a_request_is_under_the_routes_of_its_most_specific_path_and_its_method() {
    let routes = toml(ROUTES).unwrap().routes;
    assert_eq!(routes.len(), 6);
    for (method, path, expected) in [
        ("POST", "/login", &["20/min burst=5", "1000/s"][..]),
        ("GET", "/login", &["1000/s"]),
        ("BREW", "/login", &["1000/s"]),
        ("GET", "/users/7", &["10/s"]),
        ("HEAD", "/users/7", &["10/s"]),
        ("POST", "/users/7", &["100/s burst=200"]),
        ("GET", "/users/me", &["20/s"]),
        ("GET", "/users/7/posts", &["100/s burst=200"]),
        ("PUT", "/files/a/b/c", &["30/s"]),
        ("PUT", "/files/", &["100/s burst=200"]),
        ("GET", "/", &["100/s burst=200"]),
    ] {
        assert_eq!(limits(&routes, method, path), expected, "{method} {path}");
    }
    assert_eq!(routes.find("GET", "/users/7").param("id"), Some("7"));
    assert_eq!(routes.find("GET", "/users/7").numbers(), [3]);
    assert_eq!(routes.find("GET", "/users/me").param("id"), None);
    assert_eq!(routes.find("GET", "/other").param("id"), None);
    assert_eq!(routes[3].key, KeySource::Param("id".to_owned()));
    assert_eq!(routes[0].name.as_deref(), Some("client"));
}

#[test]
fn without_routes_nothing_is_found() {
    assert_eq!(Routes::default().find("GET", "/").routes().count(), 0);
    let only = Routes::new([Route::new(LimiterConfig::new(Rate::per_second(1)))]).unwrap();
    assert_eq!(only.find("GET", "/").routes().count(), 1);
}

#[test]
fn routes_are_written_as_they_are_read() {
    let file = toml(ROUTES).unwrap();
    assert_eq!(toml(&toml::to_string(&file).unwrap()).unwrap(), file);
    assert_eq!(json(&serde_json::to_string(&file).unwrap()).unwrap(), file);
    assert_eq!(yaml(&serde_yaml_ng::to_string(&file).unwrap()).unwrap(), file);
}

#[test]
fn what_is_wrong_with_a_route_is_told_with_its_line_and_its_value() {
    let route = |line: &str| toml(&format!("[[routes]]\nlimit = \"1/s\"\n{line}\n"));
    assert_says(route("path = \"login\""), &["line 3", "\"login\"", "does not begin with"]);
    assert_says(route("path = \"/a/{b\""), &["line 3", "\"/a/{b\""]);
    assert_says(route("method = \"post\""), &["line 3", "\"post\"", "GET"]);
    assert_says(route("method = [\"GET\", \"\"]"), &["line 3", "invalid method \"\""]);
    assert_says(route("method = 5"), &["line 3", "5", "a method"]);
    assert_says(route("key = \"cookie:id\""), &["line 3", "\"cookie:id\"", "header:NAME"]);
    assert_says(route("key = \"header:\""), &["line 3", "\"header:\""]);
    assert_says(route("paths = \"/\""), &["line 3", "`paths`", "`path`"]);
    assert_says(toml("[[routes]]\npath = \"/\"\n"), &["line 1", "missing field `limit`"]);
    assert_says(
        route("path = \"/users/{id}\"\nkey = \"param:name\""),
        &["\"name\"", "/users/{id}"],
    );
    assert_says(route("key = \"param:name\""), &["\"name\"", "no path"]);
    let twice = "[[routes]]\nlimit = \"1/s\"\npath = \"/a/{b}\"\n[[routes]]\nlimit = \"1/s\"\npath = \"/a/{c}\"\n";
    assert_says(toml(twice), &["\"/a/{c}\""]);
}

fn shared_and_movable<T: Send + Sync + Unpin + 'static>() {}

#[test]
fn what_is_read_can_be_shared_and_sent_and_moved() {
    shared_and_movable::<LimiterConfig>();
    shared_and_movable::<Routes>();
    shared_and_movable::<Route>();
    shared_and_movable::<ConfigError>();
}
