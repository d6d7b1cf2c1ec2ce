//! Policies that are in a configuration.

use super::policy::MAX_KEYS;
use super::{ClientAddr, Head, Header, Key, KeyOf, Path, Policies, Policy};
use crate::config::{ConfigError, KeySource, Route, Routes};
use crate::keyed::Keyed;
use http::HeaderName;
use std::sync::Arc;

impl Policies {
    /// The limits that the requests to these routes are under: a [`Policy`] for each route, in their
    /// order, with the conditions that [`Routes`] say. `client` finds out whose request it is.
    ///
    /// A policy has the name of its route, or else its path. A request without a key is answered with
    /// 400: see [`Policy::without_key`].
    ///
    /// # Errors
    ///
    /// [`ConfigError::BadKey`] if a header field can't have such a name.
    ///
    /// # Examples
    ///
    /// ```
    /// use paceline::http::{ClientAddr, Policies};
    /// use paceline::tower::RateLimitLayer;
    /// use std::net::SocketAddr;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let routes: paceline::config::Routes = serde_json::from_str(
    ///     r#"[
    ///         {"limit": "100/s burst=200", "key": "client"},
    ///         {"path": "/login", "method": "POST", "limit": "20/min burst=5", "key": "client"}
    ///     ]"#,
    /// )?;
    /// let client = ClientAddr::peer(|peer: &SocketAddr| peer.ip());
    /// let layer = RateLimitLayer::http(Policies::of_routes(routes, client)?);
    /// # drop(layer);
    /// # Ok(())
    /// # }
    /// ```
    pub fn of_routes(routes: Routes, client: ClientAddr) -> Result<Self, ConfigError> {
        let (routes, client) = (Arc::new(routes), Arc::new(client));
        let policies = (0..routes.len()).map(|number| policy(&routes, number, &client));
        Ok(policies.collect::<Result<Vec<_>, _>>()?.into())
    }
}

fn policy(
    routes: &Arc<Routes>,
    number: usize,
    client: &Arc<ClientAddr>,
) -> Result<Policy, ConfigError> {
    let Route { key, limit, .. } = &routes[number];
    let limiter = Keyed::builder(limit.build()?).max_keys(MAX_KEYS).build()?;
    let of = Arc::clone(routes);
    let under = move |head: Head<'_>| {
        of.find(head.method.as_str(), head.uri.path()).numbers().contains(&number)
    };
    let policy = Policy::by(&name(&routes[number]), limiter).when(under);
    Ok(match key {
        KeySource::All => policy,
        KeySource::Client => {
            let client = Arc::clone(client);
            policy.per(move |head: Head<'_>| client.key(head))
        }
        KeySource::Path => policy.per(Path),
        KeySource::Header(name) => {
            let header = HeaderName::try_from(name);
            let bad = |_| ConfigError::BadKey { given: key.to_string() };
            policy.per(Header(header.map_err(bad)?))
        }
        KeySource::Param(param) => {
            let (of, param) = (Arc::clone(routes), param.clone());
            policy.per(move |head: Head<'_>| {
                let found = of.find(head.method.as_str(), head.uri.path());
                Key::bytes(found.param(&param)?)
            })
        }
    })
}

/// What clients are told, where only printable ASCII may be.
fn name(route: &Route) -> String {
    let path = route.path.as_ref().map(ToString::to_string);
    let name = route.name.clone().or(path).unwrap_or_else(|| "default".to_owned());
    name.chars().map(|char| if matches!(char, ' '..='~') { char } else { '?' }).collect()
}
