//! Prints how exactly bytes keep their rate over loopback sockets, what the wrappers cost in
//! processor time, and how evenly many connections share one limiter.
//!
//! `--quick` only shows that everything runs; `--only WORD` keeps the lines whose name contains the
//! word; `--runs N` copies so often, and what is printed are medians.

#![expect(clippy::cast_precision_loss, reason = "figures for people")]

use paceline::{
    Limiter, Rate,
    io::{ReadRateLimitExt, WriteRateLimitExt},
};
use paceline_peers::{measure::middle, options::Options, process, table::Table, versions};
use std::{
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, copy_buf, repeat, sink},
    net::{TcpListener, TcpStream},
    runtime::{Builder, Runtime},
    time::timeout_at,
};

const MIB: u64 = 1 << 20;

/// Which end is wrapped.
#[derive(Clone, Copy, PartialEq)]
enum Wrapped {
    Neither,
    Reader,
    Writer,
}

#[derive(Clone, Copy)]
struct Copying {
    name: &'static str,
    wrapped: Wrapped,
    /// What is copied in one go.
    buffer: usize,
}

const COPIES: [Copying; 6] = [
    Copying { name: "8 KiB, bare", wrapped: Wrapped::Neither, buffer: 8 << 10 },
    Copying { name: "8 KiB, reader", wrapped: Wrapped::Reader, buffer: 8 << 10 },
    Copying { name: "8 KiB, writer", wrapped: Wrapped::Writer, buffer: 8 << 10 },
    Copying { name: "64 KiB, bare", wrapped: Wrapped::Neither, buffer: 64 << 10 },
    Copying { name: "64 KiB, reader", wrapped: Wrapped::Reader, buffer: 64 << 10 },
    Copying { name: "64 KiB, writer", wrapped: Wrapped::Writer, buffer: 64 << 10 },
];

fn main() -> ExitCode {
    match Options::from_args(std::env::args().skip(1)) {
        Ok(options) if options.rest.is_empty() => {
            run(&options);
            ExitCode::SUCCESS
        }
        Ok(_) | Err(_) => {
            eprintln!("usage: bytes {}", Options::USAGE);
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) {
    let (length, runs) =
        if options.quick { (MIB, 1) } else { (64 * MIB, options.runs.unwrap_or(5)) };
    println!("Bytes over loopback sockets, by {}.\n", versions::list(["tokio"]));
    let wanted = || COPIES.iter().filter(|copying| options.wants(copying.name));

    println!("{} MiB at 16 MiB/s: {} s are right.\n", length / MIB, length / 16 / MIB);
    let mut table = Table::new(&["", "seconds", "off by"]);
    let due = length as f64 / (16 * MIB) as f64;
    for copying in wanted().filter(|copying| copying.wrapped != Wrapped::Neither) {
        let times = (0..runs).map(|_| spent(*copying, 16 * MIB, length).0.as_secs_f64());
        let time = middle(times.collect());
        let off = format!("{:+.2} %", (time / due - 1.0) * 100.0);
        table.row(vec![copying.name.to_owned(), format!("{time:.3}"), off]);
    }
    println!("{table}");

    let (length, runs) = if options.quick { (MIB, 1) } else { (1024 * MIB, runs * 3) };
    println!("{} MiB at 1 GiB/s, and how much processor time that takes.\n", length / MIB);
    let mut table = Table::new(&["", "seconds", "processor", "beside bare"]);
    // They alternate: whatever the machine does meanwhile meets all of them.
    let rounds: Vec<Vec<_>> = (0..runs)
        .map(|_| wanted().map(|copying| spent(*copying, 1024 * MIB, length)).collect())
        .collect();
    let mut bare = f64::NAN;
    for (column, copying) in wanted().enumerate() {
        let of = |figure: fn(&(Duration, Duration)) -> Duration| {
            middle(rounds.iter().map(|round| figure(&round[column]).as_secs_f64()).collect())
        };
        let (time, cpu) = (of(|spent| spent.0), of(|spent| spent.1));
        if copying.wrapped == Wrapped::Neither {
            bare = cpu;
        }
        let more = format!("{:+.1} %", (cpu / bare - 1.0) * 100.0);
        table.row(vec![copying.name.to_owned(), format!("{time:.3}"), format!("{cpu:.3}"), more]);
    }
    println!("{table}");

    let time = Duration::from_secs(if options.quick { 1 } else { 60 });
    let shares = shares(100, 16 * MIB, time);
    let all: u64 = shares.iter().sum();
    let fair = all as f64 / shares.len() as f64;
    let off = |share: Option<&u64>| share.map_or(0.0, |share| (*share as f64 / fair - 1.0) * 100.0);
    println!("100 connections at 16 MiB/s for {time:?}:");
    println!("  together {:.3} MiB/s", all as f64 / time.as_secs_f64() / MIB as f64);
    println!(
        "  the least has {:+.2} %, the most {:+.2} %",
        off(shares.iter().min()),
        off(shares.iter().max())
    );
}

/// How long it takes to copy so many bytes, and how much processor time.
fn spent(copying: Copying, rate: u64, length: u64) -> (Duration, Duration) {
    let Copying { wrapped, buffer, .. } = copying;
    let limiter = limiter(rate);
    runtime().block_on(async move {
        let (from, to) = connection().await;
        let (began, cpu) = (Instant::now(), process::cpu());
        let sent = match wrapped {
            Wrapped::Writer => {
                let from = from.rate_limit_writes(limiter.clone());
                tokio::spawn(async move { send(from, length, buffer).await })
            }
            _ => tokio::spawn(async move { send(from, length, buffer).await }),
        };
        let received = match wrapped {
            Wrapped::Reader => {
                let to = to.rate_limit_reads(limiter);
                tokio::spawn(async move { receive(to, buffer).await })
            }
            _ => tokio::spawn(async move { receive(to, buffer).await }),
        };
        sent.await.expect("no panic").expect("it is sent");
        assert_eq!(received.await.expect("no panic"), length);
        (began.elapsed(), process::cpu().saturating_sub(cpu))
    })
}

async fn send(mut to: impl AsyncWrite + Unpin, length: u64, buffer: usize) -> std::io::Result<()> {
    let mut bytes = BufReader::with_capacity(buffer, repeat(7).take(length));
    copy_buf(&mut bytes, &mut to).await?;
    to.shutdown().await
}

async fn receive(from: impl AsyncRead + Unpin, buffer: usize) -> u64 {
    let mut bytes = BufReader::with_capacity(buffer, from);
    copy_buf(&mut bytes, &mut sink()).await.expect("it is received")
}

/// How many bytes each of so many connections gets through.
fn shares(count: usize, rate: u64, time: Duration) -> Vec<u64> {
    runtime().block_on(async move {
        let mut connections = Vec::new();
        for _ in 0..count {
            connections.push(connection().await);
        }
        // Now, or the first of them would have what was minted meanwhile.
        let limiter = limiter(rate);
        let end = tokio::time::Instant::now() + time;
        let tasks: Vec<_> = connections
            .into_iter()
            .map(|(from, to)| {
                // Until the other end is dropped.
                tokio::spawn(async move { send(from, u64::MAX, 64 << 10).await });
                let mut to = to.rate_limit_reads(limiter.clone());
                tokio::spawn(async move {
                    let (mut share, mut buffer) = (0, vec![0; 64 << 10]);
                    while let Ok(read) = timeout_at(end, to.read(&mut buffer)).await {
                        share += read.expect("it is read") as u64;
                    }
                    share
                })
            })
            .collect();
        let mut shares = Vec::new();
        for task in tasks {
            shares.push(task.await.expect("no panic"));
        }
        shares
    })
}

/// It keeps 50 ms of its rate, and has nothing yet.
fn limiter(rate: u64) -> Arc<Limiter> {
    let burst = u32::try_from(rate / 20).expect("it fits");
    let limiter = Limiter::builder(Rate::per_second(rate)).burst(burst).initial(0).max_burst(burst);
    let limiter = limiter.max_rate(Rate::per_second(rate));
    Arc::new(limiter.build().expect("within what a limiter can be"))
}

async fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("its address");
    let (from, to) = tokio::join!(TcpStream::connect(address), listener.accept());
    (from.expect("it is accepted"), to.expect("it is connected").0)
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}
