//! Which requests are under a limit, and by which key.

use super::error::ConfigError;
use super::limiter::LimiterConfig;
use super::text::as_text;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A limit, and the requests that are under it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Route {
    /// What the limit is called, if it has a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The paths that are under it; all for which there is no other route, unless set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathPattern>,
    /// The methods that are under it, one or a list; all unless set.
    #[serde(
        default,
        rename = "method",
        deserialize_with = "one_or_many",
        serialize_with = "as_one_or_many",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub methods: Vec<Method>,
    /// What has a limit of its own; [`KeySource::All`] unless set.
    #[serde(default)]
    pub key: KeySource,
    /// The limit.
    pub limit: LimiterConfig,
}

impl Route {
    /// All requests are under `limit`, together.
    #[must_use]
    pub fn new(limit: LimiterConfig) -> Self {
        Self { name: None, path: None, methods: Vec::new(), key: KeySource::All, limit }
    }

    /// Whether requests with this method are under it.
    #[must_use]
    pub fn has_method(&self, method: &str) -> bool {
        self.methods.is_empty() || self.methods.iter().any(|of| of.as_str() == method)
    }

    /// Whether the key is something that the path has.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        match (&self.key, &self.path) {
            (KeySource::Param(param), path)
                if !path.as_ref().is_some_and(|path| path.has_param(param)) =>
            {
                Err(ConfigError::NoSuchParam { param: param.clone(), path: path.clone() })
            }
            _ => Ok(()),
        }
    }
}

/// A pattern for paths, as in axum: `/users/{id}` and `/files/{*rest}`.
///
/// `{id}` is one segment, and `{*rest}` all of the path from there, but not nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathPattern(String);

impl PathPattern {
    /// As it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn has_param(&self, param: &str) -> bool {
        self.0.contains(&format!("{{{param}}}")) || self.0.contains(&format!("{{*{param}}}"))
    }
}

impl FromStr for PathPattern {
    type Err = ConfigError;

    fn from_str(given: &str) -> Result<Self, ConfigError> {
        let bad = |why: String| ConfigError::BadPath { given: given.to_owned(), why };
        if !given.starts_with('/') {
            return Err(bad("it does not begin with \"/\"".to_owned()));
        }
        let inserted = matchit::Router::new().insert(given, ());
        inserted.map_err(|error| bad(error.to_string()))?;
        Ok(Self(given.to_owned()))
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

as_text!(PathPattern, "a path such as \"/users/{id}\"");

/// The method of a request, such as `GET`. They are told apart by case, as HTTP does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Method(String);

impl Method {
    /// As it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Method {
    type Err = ConfigError;

    /// Small letters are refused, since no method that is in use has any.
    fn from_str(given: &str) -> Result<Self, ConfigError> {
        let is_one = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'-';
        if given.is_empty() || !given.bytes().all(is_one) {
            return Err(ConfigError::BadMethod { given: given.to_owned() });
        }
        Ok(Self(given.to_owned()))
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

as_text!(Method, "a method such as \"GET\"");

/// What has a limit of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeySource {
    /// `all`: nothing; all requests share one limit.
    #[default]
    All,
    /// `client`: each client, by its address.
    Client,
    /// `path`: each path, as it is asked for.
    Path,
    /// `header:NAME`: each value of a header field, such as an API key.
    Header(String),
    /// `param:NAME`: each value of a parameter of the path.
    Param(String),
}

impl FromStr for KeySource {
    type Err = ConfigError;

    fn from_str(given: &str) -> Result<Self, ConfigError> {
        let is_name = |name: &&str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':')
        };
        let named = |kind| given.strip_prefix(kind).filter(is_name).map(str::to_owned);
        match given {
            "all" => Ok(Self::All),
            "client" => Ok(Self::Client),
            "path" => Ok(Self::Path),
            _ => named("header:")
                .map(Self::Header)
                .or_else(|| named("param:").map(Self::Param))
                .ok_or_else(|| ConfigError::BadKey { given: given.to_owned() }),
        }
    }
}

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.pad("all"),
            Self::Client => f.pad("client"),
            Self::Path => f.pad("path"),
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Param(name) => write!(f, "param:{name}"),
        }
    }
}

as_text!(KeySource, "a key such as \"client\" or \"header:x-api-key\"");

fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Method>, D::Error> {
    deserializer.deserialize_any(OneOrMany)
}

/// Not by serde's `untagged`, which forgets what was wrong.
struct OneOrMany;

impl<'de> Visitor<'de> for OneOrMany {
    type Value = Vec<Method>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a method such as \"GET\", or a list of them")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<Method>, E> {
        text.parse().map(|method| vec![method]).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<Method>, A::Error> {
        let mut methods = Vec::new();
        while let Some(method) = list.next_element()? {
            methods.push(method);
        }
        Ok(methods)
    }
}

fn as_one_or_many<S: Serializer>(methods: &[Method], serializer: S) -> Result<S::Ok, S::Error> {
    match methods {
        [method] => method.serialize(serializer),
        _ => methods.serialize(serializer),
    }
}
