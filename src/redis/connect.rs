//! A connection as limiters want it.

use ::redis::aio::{ConnectionManager, ConnectionManagerConfig};
#[cfg(target_os = "linux")]
use ::redis::io::tcp::TcpSettings;
use ::redis::{Client, RedisResult};
use std::time::Duration;

/// How long it takes to give up a server that does not answer a new connection.
const CONNECTING: Duration = Duration::from_millis(250);

/// How long what was sent may be under way before the connection counts as broken.
#[cfg(target_os = "linux")]
const UNDER_WAY: Duration = Duration::from_secs(1);

/// Connects for limiters: one connection for all calls, made anew when it breaks.
///
/// It does not try again by itself, which is left to the next call and the limiter's
/// [`breaker`](super::Builder::breaker). A `ConnectionManager` as it comes tries again up to six times, at
/// intervals of up to seconds, and so notices late that a server is back. On Linux it also notices within
/// a second, instead of a quarter of an hour, that a server is gone that does not say so.
///
/// # Errors
///
/// If the server can't be reached.
///
/// # Examples
///
/// ```no_run
/// use paceline::Rate;
/// use paceline::redis::{RedisLimiter, connect};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let connection = connect(redis::Client::open("redis://127.0.0.1/")?).await?;
/// let limiter = RedisLimiter::builder(connection, "api", Rate::per_second(100)).burst(10).build().await?;
/// limiter.acquire().await?;
/// # Ok(())
/// # }
/// ```
pub async fn connect(client: Client) -> RedisResult<ConnectionManager> {
    #[cfg(target_os = "linux")]
    let client = {
        let settings = TcpSettings::default().set_nodelay(true).set_user_timeout(UNDER_WAY);
        Client::open(client.get_connection_info().clone().set_tcp_settings(settings))?
    };
    let config = ConnectionManagerConfig::new()
        .set_number_of_retries(0)
        .set_connection_timeout(Some(CONNECTING))
        // Each call has a limit of its own.
        .set_response_timeout(None);
    client.get_connection_manager_with_config(config).await
}
