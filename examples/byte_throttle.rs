//! Copies a file over a loopback socket at a byte rate, which is raised on the way.
//!
//! ```sh
//! cargo run --release --features io --example byte_throttle
//! ```

use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use paceline::io::{ReadRateLimitExt, WriteRateLimitExt};
use paceline::{Limiter, Rate};
use std::env::temp_dir;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::fs::{self, File};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

const MIB: u64 = 1 << 20;
const LENGTH: u64 = 24 * MIB;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = temp_dir().join(format!("byte_throttle.{}", std::process::id()));
    fs::write(&path, vec![7; usize::try_from(LENGTH)?]).await?;
    let copied = upload(File::open(&path).await?).await;
    fs::remove_file(&path).await?;
    copied
}

async fn upload(mut file: File) -> Result<(), Box<dyn std::error::Error>> {
    // 8 MiB per second, of which 64 KiB may go at once. Other connections could share it.
    let limiter = Limiter::builder(Rate::per_second(8 * MIB)).burst(64 << 10);
    let limiter = Arc::new(limiter.max_rate(Rate::per_second(16 * MIB)).build()?);

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let mut to =
        TcpStream::connect(listener.local_addr()?).await?.rate_limit_writes(limiter.clone());
    let (from, _) = listener.accept().await?;
    let began = Instant::now();
    let sending = tokio::spawn(async move {
        copy(&mut file, &mut to).await?;
        to.shutdown().await
    });

    // Acts on the transfer that is under way.
    let raising = tokio::spawn(async move {
        sleep(Duration::from_secs(1)).await;
        limiter.set_rate(Rate::per_second(16 * MIB))
    });

    // The other end would let 100 MiB per second in.
    let inlet = Limiter::new(Rate::per_second(100 * MIB), 1 << 20);
    let mut from = from.rate_limit_reads(&inlet);
    let bar = ProgressBar::new(LENGTH).with_style(ProgressStyle::with_template(
        "{wide_bar} {bytes}/{total_bytes}, {bytes_per_sec}",
    )?);
    let (mut received, mut next, mut buffer) = (0, Duration::from_millis(500), vec![0; 64 << 10]);
    loop {
        let read = from.read(&mut buffer).await? as u64;
        received += read;
        bar.set_position(received);
        if read == 0 || began.elapsed() >= next {
            next += Duration::from_millis(500);
            let seconds = began.elapsed().as_secs_f64();
            bar.suspend(|| println!("{} after {seconds:.2} s", HumanBytes(received)));
        }
        if read == 0 {
            break;
        }
    }
    bar.finish();
    sending.await??;
    raising.await??;
    assert_eq!(received, LENGTH);
    println!("8 MiB in the first second, and 16 in the second: two seconds are right");
    Ok(())
}
