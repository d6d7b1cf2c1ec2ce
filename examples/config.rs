//! Limits that are in a configuration file, and what is said of one that is wrong.
//!
//! ```sh
//! cargo run --release --features config --example config
//! ```

use paceline::config::{LimiterConfig, Routes};
use serde::Deserialize;

#[derive(Deserialize)]
struct Config {
    search: LimiterConfig,
    routes: Routes,
}

const CONFIG: &str = r#"
search = "100/s burst=20 max_wait=250ms"

[[routes]]
limit = "100/s burst=200"
key = "client"

[[routes]]
path = "/login"
method = "POST"
limit = { rate = "20/min", burst = 5 }
key = "client"

[[routes]]
path = "/tenants/{tenant}/reports"
limit = "1000/h burst=50"
key = "param:tenant"
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config: Config = toml::from_str(CONFIG)?;
    println!("search: {:?}", config.search.build()?);

    // With the feature `http`, `http::Policies::of_routes` makes a layer of them.
    for (method, path) in [("POST", "/login"), ("GET", "/tenants/7/reports"), ("GET", "/login")] {
        for route in config.routes.find(method, path).routes() {
            println!("{method} {path}: {} for each of {}", route.limit, route.key);
        }
    }

    let wrong = CONFIG.replace("20/min", "20/m");
    println!("\n{}", toml::from_str::<Config>(&wrong).err().ok_or("it is wrong")?);
    Ok(())
}
