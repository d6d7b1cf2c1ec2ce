//! Limiters and routes in configuration files: the feature `config`.
//!
//! A limiter is a line of text, [`LimiterConfig`], or a table of the same settings:
//!
//! ```toml
//! search = "100/s burst=20 max_wait=250ms"
//! upload = { rate = "20/min", burst = 5 }
//! ```
//!
//! [`Routes`] say which limit the requests to a path are under, by which key:
//!
//! ```
//! # fn main() -> Result<(), toml::de::Error> {
//! #[derive(serde::Deserialize)]
//! struct Config {
//!     search: paceline::config::LimiterConfig,
//!     routes: paceline::config::Routes,
//! }
//!
//! let config: Config = toml::from_str(
//!     r#"
//!     search = "100/s burst=20 max_wait=250ms"
//!
//!     [[routes]]
//!     limit = "100/s burst=200"
//!     key = "client"
//!
//!     [[routes]]
//!     path = "/login"
//!     method = "POST"
//!     limit = "20/min burst=5"
//!     key = "client"
//!
//!     [[routes]]
//!     path = "/tenants/{tenant}/reports/{*rest}"
//!     method = ["GET", "HEAD"]
//!     limit = { rate = "1000/h", burst = 50 }
//!     key = "param:tenant"
//!     "#,
//! )?;
//! let limiter = config.search.build().expect("it was checked when it was read");
//! assert_eq!(limiter.burst(), 20);
//! let found = config.routes.find("POST", "/login");
//! assert_eq!(found.routes().next().expect("a route").limit.to_string(), "20/min burst=5");
//! # Ok(())
//! # }
//! ```
//!
//! Whatever is wrong is refused when it is read, unknown settings too. The error quotes the value and says
//! what was expected; where the format tells the line and the column, as TOML, YAML and JSON do, it has
//! them.

mod duration;
mod error;
mod limiter;
mod route;
mod routes;
mod text;

pub use error::ConfigError;
pub use limiter::LimiterConfig;
pub use route::{KeySource, Method, PathPattern, Route};
pub use routes::{Found, Routes};
