//! What a client is told.

use super::fields::{Fields, seconds};
use super::policies::{Ask, Refused, Taken};
use crate::tower;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use std::ptr;

/// What clients are told of limits.
///
/// * A request that is refused is answered with 429 Too Many Requests and, where anybody can tell,
///   `Retry-After` in whole seconds, rounded up and at least 1. If the limiter is closed it is
///   503; without a key it is 400, or what the [`Policy`](super::Policy::without_key) says.
/// * All answers have the fields `RateLimit-Policy` and `RateLimit` of
///   [draft-ietf-httpapi-ratelimit-headers-10], such as
///
///   ```text
///   RateLimit-Policy: "client";q=10;w=2
///   RateLimit: "client";r=7;t=1
///   ```
///
///   where `q` is the burst, `w` in how many seconds as many are minted, `r` how many are left and `t` in
///   how many seconds there is one more. (Those who wait in this layer have spent theirs already.) Of
///   several policies, each has an item; on a 429 `RateLimit` tells of those that refused.
/// * By choice they have the `X-RateLimit-*` fields as well, and the body of a refusal is a problem
///   (RFC 9457) instead of a line of text.
///
/// In front of a limit that is not made of policies, as any [`RateLimitLayer`](crate::tower::RateLimitLayer)
/// has it, it knows nothing but when to come back.
///
/// [draft-ietf-httpapi-ratelimit-headers-10]: https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/10/
#[derive(Clone, Debug)]
pub struct TooManyRequests {
    fields: Fields,
    problem: bool,
}

impl Default for TooManyRequests {
    fn default() -> Self {
        Self::new()
    }
}

impl TooManyRequests {
    /// With `RateLimit-Policy` and `RateLimit`, and a line of text for a body.
    #[must_use]
    pub fn new() -> Self {
        Self { fields: Fields { draft: true, x: false }, problem: false }
    }

    /// Without `RateLimit-Policy` and `RateLimit`.
    #[must_use]
    pub fn without_draft_fields(self) -> Self {
        Self { fields: Fields { draft: false, ..self.fields }, ..self }
    }

    /// With `X-RateLimit-Limit`, `-Remaining` and `-Reset`: the burst, how many are left, and in how
    /// many seconds there is one more (0 if none is missing), of the policy of which the least is left.
    #[must_use]
    pub fn x_ratelimit(self) -> Self {
        Self { fields: Fields { x: true, ..self.fields }, ..self }
    }

    /// The body of a 429 is a problem (RFC 9457) of the draft's type `quota-exceeded`, which names the
    /// policies; of another refusal, one that has a status and a title.
    #[must_use]
    pub fn problem_details(self) -> Self {
        Self { problem: true, ..self }
    }

    fn refusal<B: From<String>>(
        &self,
        status: StatusCode,
        why: &tower::Refused,
        violated: &[&str],
    ) -> Response<B> {
        let (kind, body) = if self.problem {
            ("application/problem+json", problem(status, why, violated))
        } else {
            ("text/plain; charset=utf-8", format!("{why}\n"))
        };
        let mut response = Response::new(body.into());
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        if let Some(wait) = why.retry_after() {
            headers.insert(RETRY_AFTER, seconds(wait).into());
        }
        response
    }
}

/// Its parts are free of what JSON would have escaped, but for the names.
fn problem(status: StatusCode, why: &tower::Refused, violated: &[&str]) -> String {
    let number = status.as_u16();
    if status != StatusCode::TOO_MANY_REQUESTS {
        return format!(r#"{{"title":"{why}","status":{number}}}"#);
    }
    format!(
        r#"{{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Request cannot be satisfied as assigned quota has been exceeded","status":{number},"detail":"{why}","violated-policies":[{}]}}"#,
        violated.join(",")
    )
}

fn status(why: &tower::Refused) -> StatusCode {
    match why {
        tower::Refused::NoKey => StatusCode::BAD_REQUEST,
        why if why.is_closed() => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::TOO_MANY_REQUESTS,
    }
}

impl<B: From<String>, E> tower::Answer<Taken, Refused, Response<B>, E> for TooManyRequests {
    fn refused(&self, refusal: Refused) -> Result<Response<B>, E> {
        let Refused { asks, why, status: given } = refusal;
        let refusing = asks.refusing();
        let violated: Vec<_> = refusing.iter().map(|policy| policy.quoted_name()).collect();
        let mut response = self.refusal(given.unwrap_or_else(|| status(&why)), &why, &violated);
        let told = |ask: Ask<'_>| refusing.iter().any(|policy| ptr::eq(*policy, ask.policy));
        self.fields.add(response.headers_mut(), &asks, told);
        Ok(response)
    }

    fn admitted(&self, Taken(asks): Taken, response: &mut Response<B>) {
        self.fields.add(response.headers_mut(), &asks, |_| true);
    }
}

impl<B: From<String>, E> tower::Answer<(), tower::Refused, Response<B>, E> for TooManyRequests {
    fn refused(&self, why: tower::Refused) -> Result<Response<B>, E> {
        Ok(self.refusal(status(&why), &why, &[]))
    }
}
