//! Readers and writers that keep a byte rate.
#![cfg(feature = "io")]

use paceline::io::{ReadRateLimitExt, WriteRateLimitExt};
use paceline::window::FixedWindow;
use paceline::{AcquireError, Limiter, Rate};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::{Instant, sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);

fn per_second(bytes: u64, burst: u32) -> Limiter {
    Limiter::new(Rate::per_second(bytes), burst)
}

fn cx() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

/// What the other end does next.
#[derive(Debug)]
enum Step {
    /// Nothing, once.
    Pending,
    /// So many bytes pass at most.
    Pass(usize),
    Fail,
}

/// A connection that does what it is told, and then passes all. What is read counts up from 0.
#[derive(Debug, Default)]
struct Scripted {
    steps: VecDeque<Step>,
    next: u8,
    left: usize,
    written: Vec<u8>,
    writes: Vec<usize>,
    flushed: bool,
    is_shut: bool,
}

impl Scripted {
    fn with(steps: impl IntoIterator<Item = Step>) -> Self {
        Self { steps: steps.into_iter().collect(), left: usize::MAX, ..Self::default() }
    }

    fn step(&mut self, cx: &Context<'_>) -> Poll<io::Result<usize>> {
        match self.steps.pop_front() {
            None => Poll::Ready(Ok(usize::MAX)),
            Some(Step::Pass(most)) => Poll::Ready(Ok(most)),
            Some(Step::Pending) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Some(Step::Fail) => Poll::Ready(Err(ErrorKind::ConnectionReset.into())),
        }
    }
}

impl AsyncRead for Scripted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let most = std::task::ready!(self.step(cx))?.min(self.left).min(buf.remaining());
        self.left -= most;
        for _ in 0..most {
            buf.put_slice(&[self.next]);
            self.next = self.next.wrapping_add(1);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Scripted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let most = std::task::ready!(self.step(cx))?.min(buf.len());
        self.written.extend(&buf[..most]);
        self.writes.push(most);
        Poll::Ready(Ok(most))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let all: Vec<u8> = bufs.iter().flat_map(|buf| buf.iter().copied()).collect();
        self.as_mut().poll_write(cx, &all)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.flushed = true;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_shut = true;
        Poll::Ready(Ok(()))
    }
}

/// Bytes that count up from 0.
fn counted(length: usize) -> Vec<u8> {
    (0..=u8::MAX).cycle().take(length).collect()
}

#[tokio::test(start_paused = true)]
async fn a_read_takes_as_long_as_the_rate_says() {
    let limiter = per_second(1000, 500);
    let began = Instant::now();
    let mut reader = Scripted { left: 4500, ..Scripted::with([]) }.rate_limit_reads(&limiter);
    let mut bytes = [0; 4500];
    reader.read_exact(&mut bytes).await.unwrap();
    assert_eq!(bytes[..], counted(4500));
    assert_eq!(began.elapsed(), SECOND * 4);
    // The end is seen at the next turn.
    assert_eq!(reader.read(&mut bytes).await.unwrap(), 0);
    assert_eq!(began.elapsed(), SECOND * 41 / 10);
    assert!((limiter.tokens() - 100.0).abs() < 1e-9, "and took nothing");
}

#[tokio::test(start_paused = true)]
async fn a_write_larger_than_the_burst_is_split() {
    let limiter = per_second(1000, 300);
    let began = Instant::now();
    let mut writer = Scripted::with([]).rate_limit_writes(&limiter);
    writer.write_all(&counted(2300)).await.unwrap();
    assert_eq!(began.elapsed(), SECOND * 2);
    assert_eq!(writer.get_ref().written, counted(2300));
    assert!(writer.get_ref().writes.iter().all(|length| *length <= 300));
}

#[tokio::test(start_paused = true)]
async fn what_was_not_read_is_given_back() {
    let limiter = per_second(1, 100);
    let steps = [Step::Pass(30), Step::Pending, Step::Fail, Step::Pass(0), Step::Pass(70)];
    let mut reader = Scripted::with(steps).rate_limit_reads(&limiter);
    let mut buf = [0; 500];
    assert_eq!(reader.read(&mut buf).await.unwrap(), 30);
    assert!((limiter.tokens() - 70.0).abs() < 1e-9);
    let mut read = pin!(reader.read(&mut buf));
    assert!(read.as_mut().poll(&mut cx()).is_pending());
    assert!((limiter.tokens() - 70.0).abs() < 1e-9, "one that waits for data holds nothing");
    assert_eq!(read.await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert!((limiter.tokens() - 70.0).abs() < 1e-9);
    assert_eq!(reader.read(&mut buf).await.unwrap(), 0);
    assert!((limiter.tokens() - 70.0).abs() < 1e-9);
}

#[tokio::test(start_paused = true)]
async fn what_was_not_written_is_given_back() {
    let limiter = per_second(1, 100);
    let steps = [Step::Pass(30), Step::Pending, Step::Fail];
    let mut writer = Scripted::with(steps).rate_limit_writes(&limiter);
    assert_eq!(writer.write(&counted(90)).await.unwrap(), 30);
    assert!((limiter.tokens() - 70.0).abs() < 1e-9);
    assert_eq!(writer.write(&counted(9)).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert!((limiter.tokens() - 70.0).abs() < 1e-9);
}

#[tokio::test(start_paused = true)]
async fn what_was_given_back_behind_others_is_used_by_the_next() {
    let limiter = per_second(100, 100);
    limiter.acquire_many(100).await.unwrap();
    let mut reader = Scripted::with([Step::Pass(4)]).rate_limit_reads(&limiter);
    let mut buf = [0; 100];
    let began = Instant::now();
    // The one has the turn of 10, of which it uses 4, and the other that of 50 behind it.
    let (read, other) = tokio::join!(reader.read(&mut buf), limiter.acquire_many(50));
    assert_eq!((read.unwrap(), other.unwrap()), (4, SECOND * 6 / 10));
    assert_eq!(limiter.acquire_many(6).await, Ok(Duration::ZERO));
    assert_eq!(began.elapsed(), SECOND * 6 / 10);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_lost_when_a_read_is_dropped_at_any_time() {
    let limiter = per_second(1000, 64);
    let steps = (0..200).map(|n| if n % 3 == 0 { Step::Pending } else { Step::Pass(n % 50 + 1) });
    let mut reader = Scripted::with(steps).rate_limit_reads(&limiter);
    let (mut bytes, mut dropped) = (Vec::<u8>::new(), 0);
    while bytes.len() < 3000 {
        let mut buf = [0; 100];
        // A future that is polled once or twice, and dropped.
        let polls = 1 + dropped % 2;
        let read = timeout(Duration::from_millis(polls), reader.read(&mut buf)).await;
        match read {
            Ok(read) => bytes.extend(&buf[..read.unwrap()]),
            Err(_) => dropped += 1,
        }
    }
    assert!(dropped > 100, "{dropped} were dropped");
    assert_eq!(bytes, counted(bytes.len()));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_lost_when_a_write_is_dropped_at_any_time() {
    let limiter = per_second(1000, 64);
    let steps = (0..200).map(|n| if n % 3 == 0 { Step::Pending } else { Step::Pass(n % 50 + 1) });
    let mut writer = Scripted::with(steps).rate_limit_writes(&limiter);
    let (bytes, mut written, mut dropped) = (counted(3000), 0, 0);
    while written < bytes.len() {
        // With another length each time.
        let end = bytes.len().min(written + 1 + dropped % 90);
        match timeout(Duration::from_millis(1), writer.write(&bytes[written..end])).await {
            Ok(length) => written += length.unwrap(),
            Err(_) => dropped += 1,
        }
    }
    assert!(dropped > 100, "{dropped} were dropped");
    assert_eq!(writer.into_inner().written, bytes);
    assert!(limiter.tokens() >= 0.0);
}

#[tokio::test(start_paused = true)]
async fn one_that_is_dropped_while_it_waits_gives_its_turn_back() {
    let limiter = per_second(1, 10);
    limiter.acquire_many(10).await.unwrap();
    let mut writer = Scripted::with([]).rate_limit_writes(&limiter);
    assert!(pin!(writer.write(&[0; 10])).poll(&mut cx()).is_pending());
    assert!((limiter.tokens() + 1.0).abs() < 1e-9);
    writer.shutdown().await.unwrap();
    assert!(limiter.tokens().abs() < 1e-9, "shut down, it writes no more");
    assert!(writer.get_ref().is_shut);
    let mut reader = Scripted::with([]).rate_limit_reads(&limiter);
    assert!(pin!(reader.read(&mut [0; 10])).poll(&mut cx()).is_pending());
    drop(reader);
    assert!(limiter.tokens().abs() < 1e-9);
}

#[tokio::test(start_paused = true)]
async fn vectored_writes_pass_through_and_are_cut_to_what_may_pass() {
    let limiter = per_second(1000, 100);
    let mut writer = Scripted::with([]).rate_limit_writes(&limiter);
    assert!(writer.is_write_vectored());
    let bytes = counted(120);
    let bufs = [&bytes[..50], &[], &bytes[50..90], &bytes[90..]].map(IoSlice::new);
    assert_eq!(writer.write_vectored(&bufs[..3]).await.unwrap(), 90);
    assert_eq!(writer.get_ref().written, bytes[..90]);
    let began = Instant::now();
    // Of 120, as many as the burst.
    assert_eq!(writer.write_vectored(&bufs).await.unwrap(), 100);
    assert_eq!(writer.get_ref().written[90..], bytes[..100]);
    assert_eq!(began.elapsed(), Duration::from_millis(90));
    // More slices than are cut in one go.
    let many: Vec<_> = bytes.chunks(3).map(IoSlice::new).collect();
    sleep(SECOND).await;
    assert_eq!(writer.write_vectored(&many).await.unwrap(), 48);
    assert!((limiter.tokens() - 52.0).abs() < 1e-9);
    assert_eq!(writer.write_vectored(&[]).await.unwrap(), 0);
    assert_eq!(writer.write(&[]).await.unwrap(), 0);
    assert!((limiter.tokens() - 52.0).abs() < 1e-9);
}

#[tokio::test(start_paused = true)]
async fn flushing_and_the_other_direction_are_not_limited() {
    let none = Limiter::new(Rate::ZERO, 0);
    let mut both = Scripted::with([]).rate_limit_writes(&none);
    both.flush().await.unwrap();
    assert!(both.get_ref().flushed);
    let mut buf = [9; 4];
    both.read_exact(&mut buf).await.unwrap();
    assert_eq!(buf, [0, 1, 2, 3]);
    let mut both = Scripted::with([]).rate_limit_reads(&none);
    both.write_all(&counted(1000)).await.unwrap();
    both.flush().await.unwrap();
    both.shutdown().await.unwrap();
    let end = both.into_inner();
    assert_eq!((end.written.len(), end.flushed, end.is_shut), (1000, true, true));
}

#[tokio::test(start_paused = true)]
async fn each_direction_may_have_its_own_rate() {
    let (slow, fast) = (per_second(100, 100), per_second(1000, 1000));
    let mut both = Scripted::with([]).rate_limit_reads(&slow).rate_limit_writes(&fast);
    let began = Instant::now();
    both.write_all(&counted(2000)).await.unwrap();
    assert_eq!(began.elapsed(), SECOND);
    both.read_exact(&mut [0; 300]).await.unwrap();
    assert_eq!(began.elapsed(), SECOND * 3);
}

#[tokio::test(start_paused = true)]
async fn a_new_rate_acts_on_a_transfer_under_way() {
    let limiter = Arc::new(per_second(1000, 100));
    let mut writer = Scripted::with([]).rate_limit_writes(limiter.clone());
    let began = Instant::now();
    let write = tokio::spawn(async move { writer.write_all(&counted(10_100)).await });
    sleep(SECOND).await;
    limiter.set_rate(Rate::per_second(9000)).unwrap();
    write.await.unwrap().unwrap();
    assert_eq!(began.elapsed(), SECOND * 2);
}

#[tokio::test(start_paused = true)]
async fn a_lower_burst_splits_what_waits() {
    let limiter = Arc::new(per_second(100, 100));
    limiter.acquire_many(100).await.unwrap();
    let mut writer = Scripted::with([]).rate_limit_writes(limiter.clone());
    let write = tokio::spawn(async move { writer.write(&counted(100)).await });
    sleep(SECOND / 10).await;
    limiter.set_burst(10).unwrap();
    assert_eq!(write.await.unwrap().unwrap(), 10);
}

#[tokio::test(start_paused = true)]
async fn an_unlimited_limiter_passes_all_in_one_go() {
    let limiter = Limiter::new(Rate::UNLIMITED, 0);
    let mut writer = Scripted::with([]).rate_limit_writes(&limiter);
    assert_eq!(writer.write(&counted(1 << 20)).await.unwrap(), 1 << 20);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_an_io_error_that_says_why() {
    let limiter = per_second(1, 10);
    let mut writer = Scripted::with([]).rate_limit_writes(&limiter);
    writer.write_all(&[0; 10]).await.unwrap();
    let ((), refused) = tokio::join!(
        async {
            sleep(SECOND / 2).await;
            limiter.close();
        },
        writer.write(&[0; 10]),
    );
    let refused = refused.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionAborted);
    let why = refused.get_ref().unwrap().downcast_ref::<AcquireError>();
    assert_eq!(why, Some(&AcquireError::Closed));

    let limiter = Limiter::builder(Rate::per_minute(1)).burst(9).initial(0).max_wait(SECOND);
    let limiter = limiter.build().unwrap();
    let mut reader = Scripted::with([]).rate_limit_reads(&limiter);
    assert_eq!(reader.read(&mut [0; 9]).await.unwrap_err().kind(), ErrorKind::TimedOut);

    let nothing = per_second(1, 0);
    let mut reader = Scripted::with([]).rate_limit_reads(&nothing);
    assert_eq!(reader.read(&mut [0; 9]).await.unwrap_err().kind(), ErrorKind::Other);
}

#[tokio::test(start_paused = true)]
async fn many_connections_share_a_limiter_evenly() {
    let limiter = Limiter::builder(Rate::per_second(1 << 20)).burst(64 << 10).initial(0);
    let limiter = Arc::new(limiter.build().unwrap());
    let connections: Vec<_> = (0..100)
        .map(|n| {
            let mut writer = Scripted::with([]).rate_limit_writes(limiter.clone());
            // They ask for more in one go than passes, each for another length.
            let bytes = counted(5000 + n * 100);
            tokio::spawn(async move {
                let end = Instant::now() + SECOND * 20;
                while timeout(SECOND, writer.write(&bytes)).await.is_ok() && Instant::now() < end {}
                writer.into_inner().written.len()
            })
        })
        .collect();
    let mut shares = Vec::new();
    for connection in connections {
        shares.push(connection.await.unwrap());
    }
    let (least, most) = (*shares.iter().min().unwrap(), *shares.iter().max().unwrap());
    assert!(most - least <= 2 * 4096, "{least} to {most}");
    let all: usize = shares.iter().sum();
    // 20 s, and what was under way at the end.
    let expected = 20 << 20;
    assert!(all.abs_diff(expected) <= 100 * 4096 + (1 << 20) / 200, "{all} of {expected}");
}

#[tokio::test(start_paused = true)]
async fn a_fixed_window_is_a_quota_of_bytes() {
    let quota = FixedWindow::new(1000, SECOND * 60);
    let began = Instant::now();
    let mut writer = Scripted::with([Step::Pass(10)]).rate_limit_writes(&quota);
    writer.write_all(&counted(1000)).await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO);
    writer.write_all(&counted(1)).await.unwrap();
    assert_eq!(began.elapsed(), SECOND * 60);
}

fn shared_and_movable<T: Send + Sync + Unpin + 'static>() {}

#[test]
fn wrappers_can_be_shared_and_sent_and_moved() {
    use paceline::io::{RateLimitedReader, RateLimitedWriter};
    shared_and_movable::<RateLimitedReader<'static, Scripted, Limiter>>();
    shared_and_movable::<RateLimitedWriter<'static, Scripted, FixedWindow>>();
}
