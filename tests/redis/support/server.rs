//! A server that a test starts, hurts, and kills when it is done or panics.

use super::{Engine, eventually, skipped};
use redis::aio::{ConnectionManager, ConnectionManagerConfig, MultiplexedConnection};
use redis::{AsyncConnectionConfig, Client, RedisResult, cmd};
use std::fs::File;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// Ports are looked for before they are used, and so may be gone then.
const ATTEMPTS: usize = 5;

pub(crate) struct Server {
    program: PathBuf,
    options: Vec<String>,
    port: u16,
    directory: TempDir,
    process: Child,
}

impl Server {
    /// One that keeps nothing on disk.
    pub(crate) async fn start(engine: Engine) -> Option<Self> {
        Self::start_with(engine, &[]).await
    }

    /// One that writes all that it does to its disk before it answers.
    pub(crate) async fn start_durable(engine: Engine) -> Option<Self> {
        Self::start_with(engine, &["--appendonly", "yes", "--appendfsync", "always"]).await
    }

    /// `None` if it is not installed.
    pub(crate) async fn start_with(engine: Engine, options: &[&str]) -> Option<Self> {
        let Some(program) = engine.program() else {
            skipped(engine.name());
            return None;
        };
        let options: Vec<_> = options.iter().map(ToString::to_string).collect();
        for _ in 0..ATTEMPTS {
            let directory = TempDir::new().expect("a directory for the server");
            let port = free_port();
            let process = run(&program, port, &directory, &options);
            let options = options.clone();
            let mut server = Self { program: program.clone(), options, port, directory, process };
            if server.answers().await {
                return Some(server);
            }
        }
        panic!("{} does not start", engine.name());
    }

    /// Another of the same kind that follows this one.
    pub(crate) async fn start_replica(&self) -> Self {
        for _ in 0..ATTEMPTS {
            let directory = TempDir::new().expect("a directory for the server");
            let port = free_port();
            let mut options = self.options.clone();
            options.extend(["--replicaof".into(), "127.0.0.1".into(), self.port.to_string()]);
            // A copy is sent as soon as it is asked for.
            options.extend(["--repl-diskless-sync-delay".into(), "0".into()]);
            let process = run(&self.program, port, &directory, &options);
            let program = self.program.clone();
            let mut replica = Self { program, options, port, directory, process };
            if replica.answers().await {
                eventually("the replica follows", || async {
                    replica.info("replication").await.contains("master_link_status:up")
                })
                .await;
                return replica;
            }
        }
        panic!("the replica does not start");
    }

    /// Whether it answers, sooner or later, or ends before.
    async fn answers(&mut self) -> bool {
        let client = self.client();
        let process = &mut self.process;
        let mut ended = false;
        eventually("the server answers", || {
            ended = process.try_wait().expect("the state of the server").is_some();
            let client = client.clone();
            async move { ended || ping(&client).await.is_ok() }
        })
        .await;
        !ended
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self) -> String {
        // The third protocol: the usual one of a connection that is multiplexed.
        format!("redis://127.0.0.1:{}/?protocol=resp3", self.port)
    }

    pub(crate) fn client(&self) -> Client {
        Client::open(self.url()).expect("a URL of our own")
    }

    pub(crate) async fn connection(&self) -> MultiplexedConnection {
        self.client().get_multiplexed_async_connection().await.expect("the server is up")
    }

    /// A connection that waits for each answer for as long as it takes.
    pub(crate) async fn patient_connection(&self) -> MultiplexedConnection {
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        let client = self.client();
        let connection = client.get_multiplexed_async_connection_with_config(&config);
        connection.await.expect("the server is up")
    }

    /// A connection that comes back after a fault, and tries once for each call.
    pub(crate) async fn manager(&self) -> ConnectionManager {
        let config = ConnectionManagerConfig::new()
            .set_number_of_retries(1)
            .set_min_delay(Duration::from_millis(1))
            .set_connection_timeout(Some(Duration::from_millis(250)))
            .set_response_timeout(Some(Duration::from_millis(250)));
        self.client().get_connection_manager_with_config(config).await.expect("the server is up")
    }

    /// The time of the server, in microseconds since the Unix epoch.
    pub(crate) async fn now(&self) -> u64 {
        Self::time(&mut self.connection().await).await
    }

    /// The time of the server at the other end, in microseconds since the Unix epoch.
    pub(crate) async fn time(connection: &mut MultiplexedConnection) -> u64 {
        let (seconds, micros): (u64, u64) =
            cmd("TIME").query_async(connection).await.expect("the time");
        seconds * 1_000_000 + micros
    }

    pub(crate) async fn info(&self, section: &str) -> String {
        cmd("INFO").arg(section).query_async(&mut self.connection().await).await.expect("INFO")
    }

    /// Forgets all keys.
    pub(crate) async fn flush(&self) {
        let flush = cmd("FLUSHALL").query_async(&mut self.connection().await).await;
        let () = flush.expect("FLUSHALL");
    }

    /// What is stored under `key`, in bytes.
    pub(crate) async fn bytes(&self, key: &str) -> u64 {
        let length = cmd("STRLEN").arg(key).query_async(&mut self.connection().await).await;
        length.expect("STRLEN")
    }

    /// Forgets all scripts.
    pub(crate) async fn flush_scripts(&self) {
        let flush = cmd("SCRIPT").arg("FLUSH").query_async(&mut self.connection().await).await;
        let () = flush.expect("SCRIPT FLUSH");
    }

    /// A replica becomes a server of its own, as in a failover.
    pub(crate) async fn promote(&self) {
        let mut connection = self.connection().await;
        let promote = cmd("REPLICAOF").arg("NO").arg("ONE").query_async(&mut connection).await;
        let () = promote.expect("REPLICAOF NO ONE");
    }

    /// Ends it without a word, as a crash does.
    pub(crate) fn kill(&mut self) {
        self.process.kill().expect("it is ours");
        self.process.wait().expect("it ends");
    }

    /// Starts it again after [`Self::kill`], at the same port and with what is on its disk.
    pub(crate) async fn start_again(&mut self) {
        self.process = run(&self.program, self.port, &self.directory, &self.options);
        assert!(self.answers().await, "the port was taken meanwhile");
    }

    /// Stops it where it is, until [`Self::resume`].
    pub(crate) fn pause(&self) {
        self.signal("-STOP");
    }

    pub(crate) fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let pid = self.process.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status().expect("kill");
        assert!(sent.success(), "kill {signal}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already. What is paused can be killed too.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn run(program: &PathBuf, port: u16, directory: &TempDir, options: &[String]) -> Child {
    let log = File::create(directory.path().join("log")).expect("a log for the server");
    Command::new(program)
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--dir"])
        .arg(directory.path())
        .args(options)
        .stdin(Stdio::null())
        .stderr(log.try_clone().expect("a log for the server"))
        .stdout(log)
        .spawn()
        .expect("it was found just now")
}

async fn ping(client: &Client) -> RedisResult<()> {
    let mut connection = client.get_multiplexed_async_connection().await?;
    cmd("PING").query_async(&mut connection).await
}

/// A port of the loopback interface that nobody listens to.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback interface");
    listener.local_addr().expect("it is bound").port()
}
