//! When a server wants to be asked again.

use http::header::{DATE, HeaderName, RETRY_AFTER};
use http::{HeaderMap, StatusCode};
use std::time::{Duration, UNIX_EPOCH};

/// How long the server asks to wait; `None` if it does not.
///
/// A date is read by the server's own clock, if it tells that, so that clocks that differ do no harm; if
/// not, by `now`, the time since the Unix epoch.
pub(super) fn retry_after(
    status: StatusCode,
    headers: &HeaderMap,
    now: impl FnOnce() -> Duration,
) -> Option<Duration> {
    if !matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        return None;
    }
    let wait = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !wait.is_empty() && wait.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than fit are the longest wait.
        return Some(Duration::from_secs(wait.parse().unwrap_or(u64::MAX)));
    }
    let until = date(headers, RETRY_AFTER)?;
    Some(until.saturating_sub(date(headers, DATE).unwrap_or_else(now)))
}

/// A date, as the time since the Unix epoch.
fn date(headers: &HeaderMap, name: HeaderName) -> Option<Duration> {
    let date = httpdate::parse_http_date(headers.get(name)?.to_str().ok()?).ok()?;
    date.duration_since(UNIX_EPOCH).ok()
}

#[cfg(all(test, not(paceline_loom)))]
mod tests {
    use super::*;
    use http::HeaderValue;
    use proptest::prelude::*;

    const NOW: Duration = Duration::from_secs(784_111_777);

    fn asked(fields: &[(HeaderName, &[u8])]) -> Option<Duration> {
        let value = |value| HeaderValue::from_bytes(value).unwrap();
        let headers = fields.iter().map(|(name, text)| (name.clone(), value(text))).collect();
        retry_after(StatusCode::TOO_MANY_REQUESTS, &headers, || NOW)
    }

    #[expect(clippy::unnecessary_wraps, reason = "as what is asked for is")]
    fn seconds(seconds: u64) -> Option<Duration> {
        Some(Duration::from_secs(seconds))
    }

    #[test]
    fn it_is_a_number_of_seconds() {
        assert_eq!(asked(&[(RETRY_AFTER, b"120")]), seconds(120));
        assert_eq!(asked(&[(RETRY_AFTER, b"0")]), seconds(0));
        assert_eq!(asked(&[(RETRY_AFTER, b"99999999999999999999999")]), seconds(u64::MAX));
    }

    #[test]
    fn or_a_date_by_the_servers_clock() {
        let until = || (RETRY_AFTER, &b"Sun, 06 Nov 1994 08:49:47 GMT"[..]);
        assert_eq!(asked(&[until()]), seconds(10));
        let date = (DATE, &b"Sun, 06 Nov 1994 08:49:17 GMT"[..]);
        assert_eq!(asked(&[until(), date]), seconds(30));
        assert_eq!(asked(&[(RETRY_AFTER, b"Sun, 06 Nov 1994 08:00:00 GMT")]), seconds(0));
    }

    #[test]
    fn without_it_or_with_another_status_nobody_asks() {
        assert_eq!(asked(&[]), None);
        for malformed in [&b""[..], b"-1", b"+1", b"1.5", b"soon", b"1 2", b"\xff"] {
            assert_eq!(asked(&[(RETRY_AFTER, malformed)]), None);
        }
        let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static("1"))]);
        assert_eq!(retry_after(StatusCode::MOVED_PERMANENTLY, &headers, || NOW), None);
        assert_eq!(retry_after(StatusCode::SERVICE_UNAVAILABLE, &headers, || NOW), seconds(1));
    }

    proptest! {
        #[test]
        fn whatever_a_server_says_is_read(text in "[ -~\u{80}-\u{ff}]{0,40}", date in "[ -~]{0,40}") {
            asked(&[(RETRY_AFTER, text.as_bytes()), (DATE, date.as_bytes())]);
        }
    }
}
