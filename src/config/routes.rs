//! A table of routes.

use super::error::ConfigError;
use super::route::{PathPattern, Route};
use matchit::{Params, Router};
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::ops::Deref;

/// Routes, and which of them a request is under: a list in a configuration.
///
/// * A request is under those routes whose path is the most specific of those that match it, as in axum:
///   text goes before `{id}`, and that before `{*rest}`. Where none matches, it is under the routes
///   that have no path.
/// * Only those routes are looked at that have the request's method, or none.
/// * Several routes of the same path hold together.
///
/// It dereferences to the routes.
#[derive(Clone, Default)]
pub struct Routes {
    all: Vec<Route>,
    /// For each method that is written, and for all others.
    by_method: Vec<(String, Paths)>,
    others: Paths,
}

/// Routes by their paths, as numbers.
#[derive(Clone, Default)]
struct Paths {
    with_path: Router<Vec<usize>>,
    without: Vec<usize>,
}

/// The routes that a request is under: what [`Routes::find`] returns.
pub struct Found<'t, 'p> {
    all: &'t [Route],
    numbers: &'t [usize],
    /// None if it is under those that have no path.
    params: Option<Params<'t, 'p>>,
}

impl Routes {
    /// Routes that are looked up by path and method.
    ///
    /// # Errors
    ///
    /// [`ConfigError::BadPath`] if two paths can't be told apart, and
    /// [`ConfigError::NoSuchParam`] if a key is by a parameter that the path has not.
    pub fn new(routes: impl IntoIterator<Item = Route>) -> Result<Self, ConfigError> {
        let routes: Vec<_> = routes.into_iter().collect();
        routes.iter().try_for_each(Route::check)?;
        let mut methods: Vec<_> = routes.iter().flat_map(|route| &route.methods).collect();
        methods.sort_by_key(|method| method.as_str());
        methods.dedup();
        let paths_of = |method: &str| Paths::of(&routes, |route| route.has_method(method));
        let of =
            |method: &super::Method| Ok((method.as_str().to_owned(), paths_of(method.as_str())?));
        let by_method = methods.into_iter().map(of).collect::<Result<_, ConfigError>>()?;
        let others = Paths::of(&routes, |route| route.methods.is_empty())?;
        Ok(Self { all: routes, by_method, others })
    }

    /// The routes that a request with this method and path is under. The path is that of the URL,
    /// without the query.
    #[must_use]
    pub fn find<'p>(&self, method: &str, path: &'p str) -> Found<'_, 'p> {
        let by_method = self.by_method.iter().find(|(of, _)| of == method);
        let paths = by_method.map_or(&self.others, |(_, paths)| paths);
        match paths.with_path.at(path) {
            Ok(found) => Found { all: &self.all, numbers: found.value, params: Some(found.params) },
            Err(_) => Found { all: &self.all, numbers: &paths.without, params: None },
        }
    }
}

impl Paths {
    /// Those that are under `condition`.
    fn of(routes: &[Route], condition: impl Fn(&Route) -> bool) -> Result<Self, ConfigError> {
        let mut paths: Vec<(&PathPattern, Vec<usize>)> = Vec::new();
        let mut without = Vec::new();
        for (number, route) in routes.iter().enumerate().filter(|(_, route)| condition(route)) {
            let Some(path) = &route.path else {
                without.push(number);
                continue;
            };
            match paths.iter_mut().find(|(known, _)| *known == path) {
                Some((_, numbers)) => numbers.push(number),
                None => paths.push((path, vec![number])),
            }
        }
        let mut with_path = Router::new();
        for (path, numbers) in paths {
            with_path.insert(path.as_str(), numbers).map_err(|error| ConfigError::BadPath {
                given: path.to_string(),
                why: error.to_string(),
            })?;
        }
        Ok(Self { with_path, without })
    }
}

impl<'t> Found<'t, '_> {
    /// The routes, in their order; none if the request is under none.
    pub fn routes(&self) -> impl Iterator<Item = &'t Route> {
        self.numbers.iter().map(|number| &self.all[*number])
    }

    /// Their numbers in the table.
    #[must_use]
    pub fn numbers(&self) -> &'t [usize] {
        self.numbers
    }
}

impl<'p> Found<'_, 'p> {
    /// What a parameter of the path is in this request.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&'p str> {
        self.params.as_ref()?.get(name)
    }
}

impl Deref for Routes {
    type Target = [Route];

    fn deref(&self) -> &[Route] {
        &self.all
    }
}

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.all.fmt(f)
    }
}

impl fmt::Debug for Found<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Found").field("numbers", &self.numbers).finish_non_exhaustive()
    }
}

impl PartialEq for Routes {
    fn eq(&self, other: &Self) -> bool {
        self.all == other.all
    }
}

impl Serialize for Routes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.all.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Routes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(Vec::<Route>::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}
