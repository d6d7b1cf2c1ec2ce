//! One limit, and which requests are under it.

use super::{Head, Key, KeyOf, Refused, fields};
use crate::keyed::{Keyed, Quota};
use crate::rate::Rate;
use http::{HeaderValue, Method, StatusCode};
use std::fmt;

/// A limit with a name, the requests that are under it, and what each of them takes of it.
///
/// Unless told otherwise all requests are under it, share one limit, and take a permit each.
///
/// # Examples
///
/// ```
/// use paceline::Rate;
/// use paceline::http::{ClientAddr, Head, Header, Policy};
/// # use axum::extract::ConnectInfo;
/// # use std::net::SocketAddr;
/// use http::{HeaderName, Method, StatusCode};
///
/// // Five a second from each client.
/// let peer = |info: &ConnectInfo<SocketAddr>| info.0.ip();
/// let clients = Policy::new("client", Rate::per_second(5), 10).per(ClientAddr::peer(peer));
///
/// // A thousand a day for each API key, of which an export takes ten; without one 401.
/// let key = Header(HeaderName::from_static("x-api-key"));
/// let quota = Policy::new("daily", Rate::per_day(1000), 1000)
///     .per(key)
///     .without_key(StatusCode::UNAUTHORIZED)
///     .cost(|request: Head<'_>| if request.uri.path() == "/export" { 10 } else { 1 });
///
/// // Writes, by all together.
/// let writes = Policy::new("writes", Rate::per_second(50), 50)
///     .methods([Method::POST, Method::PUT, Method::DELETE])
///     .under("/documents");
/// ```
pub struct Policy {
    name: Box<str>,
    quoted_name: Box<str>,
    /// As clients are told of it, while its settings are these.
    description: (Rate, u32, HeaderValue),
    limiter: Keyed<Key>,
    keys: Vec<Box<dyn KeyOf>>,
    without_key: WithoutKey,
    conditions: Vec<FromHead<bool>>,
    cost: FromHead<u32>,
}

type FromHead<T> = Box<dyn Fn(Head<'_>) -> T + Send + Sync>;

/// What becomes of a request that has no key.
#[derive(Clone, Copy, Debug)]
enum WithoutKey {
    Refused(StatusCode),
    Shared,
}

/// A few MB of clients, or 100 MB of the longest keys.
pub(super) const MAX_KEYS: usize = 100_000;

impl Policy {
    /// A limit of `rate` that keeps up to `burst` permits, for each key if there are [keys](Self::per),
    /// and for a hundred thousand of those at a time (see [`KeyedBuilder::max_keys`]).
    ///
    /// Clients are told the name.
    ///
    /// # Panics
    ///
    /// If the name has anything in it but printable ASCII.
    ///
    /// [`KeyedBuilder::max_keys`]: crate::keyed::KeyedBuilder::max_keys
    #[must_use]
    pub fn new(name: &str, rate: Rate, burst: u32) -> Self {
        let quota = Quota::new(rate, burst);
        Self::by(name, Keyed::builder(quota).max_keys(MAX_KEYS).keyed())
    }

    /// The limit that a limiter of yours has: one with windows, with other quotas for some keys, or with
    /// room for more of them. Give it a cap on keys where clients can make them up.
    ///
    /// # Panics
    ///
    /// If the name has anything in it but printable ASCII.
    #[must_use]
    pub fn by(name: &str, limiter: Keyed<Key>) -> Self {
        let printable = name.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        assert!(printable, "the name {name:?} of a policy has not only printable ASCII in it");
        let quoted_name = quoted(name);
        let (rate, burst) = (limiter.rate(), limiter.burst());
        let description = fields::policy(&quoted_name, rate, burst);
        Self {
            name: name.into(),
            quoted_name: quoted_name.into(),
            description: (rate, burst, description),
            limiter,
            keys: Vec::new(),
            without_key: WithoutKey::Refused(StatusCode::BAD_REQUEST),
            conditions: Vec::new(),
            cost: Box::new(|_| 1),
        }
    }

    /// Each key has a limit of its own. By several keys: each combination of them has.
    #[must_use]
    pub fn per(mut self, key: impl KeyOf) -> Self {
        self.keys.push(Box::new(key));
        self
    }

    /// A request without a key is answered with this status: 400 unless set.
    ///
    /// # Panics
    ///
    /// If it is no client error, 400 to 499.
    #[must_use]
    pub fn without_key(self, status: StatusCode) -> Self {
        assert!(status.is_client_error(), "{status} is no client error");
        Self { without_key: WithoutKey::Refused(status), ..self }
    }

    /// All requests without a key share one limit.
    #[must_use]
    pub fn without_key_shared(self) -> Self {
        Self { without_key: WithoutKey::Shared, ..self }
    }

    /// Only requests with one of these methods are under it.
    #[must_use]
    pub fn methods(self, methods: impl IntoIterator<Item = Method>) -> Self {
        let methods: Vec<_> = methods.into_iter().collect();
        self.when(move |request: Head<'_>| methods.contains(request.method))
    }

    /// Only requests for this path and what is below it are under it. A path is compared as it is
    /// written, without decoding; where a router has routes, put the layer on the route.
    #[must_use]
    pub fn under(self, path: &str) -> Self {
        let path = path.trim_end_matches('/').to_owned();
        self.when(move |request: Head<'_>| {
            let rest = request.uri.path().strip_prefix(path.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// Only requests of which this is true are under it. Of several conditions all must be.
    #[must_use]
    pub fn when(mut self, condition: impl Fn(Head<'_>) -> bool + Send + Sync + 'static) -> Self {
        self.conditions.push(Box::new(condition));
        self
    }

    /// A request takes so many permits, instead of one.
    #[must_use]
    pub fn cost(self, cost: impl Fn(Head<'_>) -> u32 + Send + Sync + 'static) -> Self {
        Self { cost: Box::new(cost), ..self }
    }

    /// What clients know it by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn quoted_name(&self) -> &str {
        &self.quoted_name
    }

    /// How clients are told of it.
    pub(super) fn description(&self, rate: Rate, burst: u32) -> HeaderValue {
        let (usual_rate, usual_burst, description) = &self.description;
        if (rate, burst) == (*usual_rate, *usual_burst) {
            description.clone()
        } else {
            fields::policy(&self.quoted_name, rate, burst)
        }
    }

    /// The limiter.
    #[must_use]
    pub fn limiter(&self) -> &Keyed<Key> {
        &self.limiter
    }

    /// The key that a request has and how many permits it takes; `None` if it is not under it.
    pub(super) fn ask(&self, request: Head<'_>) -> Result<Option<(Key, u32)>, Refused> {
        if !self.conditions.iter().all(|condition| condition(request)) {
            return Ok(None);
        }
        let key = match self.keys.as_slice() {
            [] => Some(Key::shared()),
            [key] => key.key(request),
            keys => keys.iter().map(|key| key.key(request)).collect::<Option<_>>().map(Key::joined),
        };
        let key = match (key, self.without_key) {
            (Some(key), _) => key,
            (None, WithoutKey::Shared) => Key::shared(),
            (None, WithoutKey::Refused(status)) => return Err(Refused::without_key(status)),
        };
        Ok(Some((key, (self.cost)(request))))
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy")
            .field("name", &self.name)
            .field("limiter", &self.limiter)
            .field("without_key", &self.without_key)
            .finish_non_exhaustive()
    }
}

/// A string of printable ASCII as structured fields and JSON have it alike.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\""))
}
