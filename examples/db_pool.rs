//! How fast a pool opens new connections: after a restart, everybody wants one at once.
//!
//! A pool caps how many connections there are, not how fast they are opened; and to open one is the
//! dearest thing that can be asked of many a database. Here the pool's manager awaits a permit before it
//! opens one. The database is `SQLite`, in a file; the pool is deadpool.
//!
//!     cargo run --release --example db_pool

use deadpool::managed::{self, Metrics, Pool, RecycleResult};
use paceline::{Limiter, Rate};
use rusqlite::Connection;
use std::error::Error;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::task::spawn_blocking;

const CONNECTIONS: usize = 24;
const CALLERS: u64 = 100;
/// Connections that may be opened in a second, and at once.
const RATE: Rate = Rate::per_second(20);
const BURST: u32 = 4;

/// Opens connections, each when its turn comes.
struct Opener {
    file: PathBuf,
    limiter: Limiter,
    began: Instant,
    /// When each was opened.
    opened: Mutex<Vec<Duration>>,
}

type Shared = Arc<Mutex<Connection>>;
type BoxError = Box<dyn Error + Send + Sync>;

impl managed::Manager for Opener {
    type Type = Shared;
    type Error = BoxError;

    async fn create(&self) -> Result<Shared, BoxError> {
        // A caller that gives up while it waits here gives back its turn.
        self.limiter.acquire().await?;
        self.opened.lock().expect("nobody panics").push(self.began.elapsed());
        let file = self.file.clone();
        let open = move || -> rusqlite::Result<Connection> {
            let connection = Connection::open(file)?;
            connection.busy_timeout(Duration::from_secs(5))?;
            Ok(connection)
        };
        Ok(Arc::new(Mutex::new(spawn_blocking(open).await??)))
    }

    async fn recycle(&self, _: &mut Shared, _: &Metrics) -> RecycleResult<BoxError> {
        Ok(())
    }
}

/// What a restart looked like.
struct Restart {
    /// How many connections were opened in each tenth of a second.
    opened: Vec<usize>,
    served: u64,
    took: Duration,
}

async fn restart(rate: Rate, burst: u32) -> Result<Restart, BoxError> {
    let directory = std::env::temp_dir().join(format!("paceline-pool-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let file = directory.join("jobs.sqlite");
    let setup = Connection::open(&file)?;
    setup.execute_batch("DROP TABLE IF EXISTS jobs; CREATE TABLE jobs (caller INTEGER)")?;

    let began = Instant::now();
    let opener =
        Opener { file, limiter: Limiter::new(rate, burst), began, opened: Mutex::new(Vec::new()) };
    let pool = Pool::builder(opener).max_size(CONNECTIONS).build()?;
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let pool: Pool<Opener> = pool.clone();
            tokio::spawn(async move {
                let connection = pool.get().await.map_err(|error| error.to_string())?;
                let connection = Arc::clone(&connection);
                let insert = move || {
                    let connection = connection.lock().expect("nobody panics");
                    connection.execute("INSERT INTO jobs VALUES (?1)", [caller])
                };
                spawn_blocking(insert)
                    .await
                    .map_err(|error| error.to_string())?
                    .map_err(|error| error.to_string())
            })
        })
        .collect();
    for caller in callers {
        caller.await??;
    }
    let took = began.elapsed();
    let served = setup.query_row("SELECT count(*) FROM jobs", [], |row| row.get(0))?;
    let mut tenths = Vec::new();
    for time in pool.manager().opened.lock().expect("nobody panics").iter() {
        let tenth = usize::try_from(time.as_millis() / 100)?;
        tenths.resize(tenths.len().max(tenth + 1), 0);
        tenths[tenth] += 1;
    }
    drop((pool, setup));
    std::fs::remove_dir_all(directory)?;
    Ok(Restart { opened: tenths, served, took })
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    println!("{CALLERS} callers of a pool of up to {CONNECTIONS} connections\n");
    println!("connections opened in each tenth of a second");
    for (name, rate, burst) in [("as they come", Rate::UNLIMITED, 0), ("paced", RATE, BURST)] {
        let Restart { opened, served, took } = restart(rate, burst).await?;
        let opened: Vec<_> = opened.iter().map(|count| format!("{count:>3}")).collect();
        println!("  {name:<13}{}   {served} served in {took:.1?}", opened.concat());
    }
    println!(
        "\nThe paced pool opened {BURST} at once and then {RATE}; callers took turns with those."
    );
    Ok(())
}
