//! Keys that come and go, and what is said of them.

use paceline::keyed::{KeyedAcquire, KeyedBuilder, Quota, RandomState};
use paceline::window::{Align, FixedWindow};
use paceline::{AcquireError, Keyed, Limiter, Rate, Reservation, ReserveError, TryAcquireError};
use std::fmt::Debug;
use std::time::Duration;
use tokio::time::{Instant, advance};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn what_changes_nothing_adds_no_key() {
    let keyed: Keyed<String> = Keyed::new(Rate::per_second(1), 3);
    assert!(keyed.peek("a").is_ok() && keyed.peek_many("a", 4).is_err());
    assert!(keyed.try_acquire_many("a", 4).is_err());
    assert!(keyed.try_acquire_many("a", 0).is_ok());
    assert!(keyed.acquire_many("a", 4).await.is_err());
    assert!(keyed.acquire_many("a", 0).await.is_ok());
    assert!(keyed.reserve_many("a", 4).is_err());
    drop(keyed.reserve_many("a", 0));
    keyed.reset("a");
    assert!((keyed.tokens("a") - 3.0).abs() < 1e-9);
    keyed.for_each(|key, _| panic!("{key}"));
    assert!(keyed.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_number_of_keys_is_that_of_those_who_are_busy() {
    let keyed: Keyed<u32> = Keyed::new(Rate::per_second(1), 10);
    for key in 0..1_000 {
        assert!(keyed.try_acquire_many(&key, 1 + key % 10).is_ok());
    }
    assert_eq!(keyed.len(), 1_000);
    for second in 1..=10 {
        advance(SECOND).await;
        keyed.retain_busy();
        assert_eq!(keyed.len(), 1_000 - 100 * second);
        let mut seen = 0;
        keyed.for_each(|key, tokens| {
            seen += 1;
            let spent = f64::from(1 + key % 10);
            let minted = f64::from(u32::try_from(second).unwrap());
            assert!((tokens - (10.0 - spent + minted)).abs() < 1e-6, "{key}: {tokens}");
        });
        assert_eq!(seen, keyed.len());
    }
    assert!(keyed.is_empty());
}

/// Nobody calls `retain_busy`.
#[tokio::test(start_paused = true)]
async fn keys_that_are_full_are_left_out_as_others_come() {
    let keyed: Keyed<u64> =
        Keyed::builder(Quota::new(Rate::per_second(1), 1)).max_keys(100_000).build().unwrap();
    let mut most = 0;
    for key in 0..500_000 {
        assert!(keyed.try_acquire(&key).is_ok());
        if key % 5_000 == 0 {
            advance(SECOND).await;
        }
        most = most.max(keyed.len());
    }
    assert!(most < 40_000, "{most}, of whom 5000 are busy at a time");
}

#[tokio::test(start_paused = true)]
async fn keys_are_looked_up_by_what_they_borrow_as() {
    let keyed: Keyed<Vec<u8>, std::hash::RandomState> =
        Keyed::builder(Quota::new(Rate::per_second(1), 1))
            .hasher(std::hash::RandomState::new())
            .build()
            .unwrap();
    assert!(keyed.try_acquire(&[1, 2][..]).is_ok());
    assert!(keyed.try_acquire(&vec![1, 2]).is_err());
    assert!(keyed.acquire(&[3][..]).await.is_ok());
    assert_eq!(keyed.acquire_owned(vec![3]).await, Ok(SECOND));
    assert!(keyed.peek(&[3][..]).is_err());
}

#[tokio::test(start_paused = true)]
async fn clones_are_the_same_limiters() {
    let keyed: Keyed<&str> = Keyed::new(Rate::per_second(1), 1);
    let clone = keyed.clone();
    assert!(keyed.try_acquire(&"a").is_ok());
    assert!(clone.try_acquire(&"a").is_err());
    clone.set_rate(Rate::per_second(2)).unwrap();
    assert_eq!(keyed.rate(), Rate::per_second(2));
    clone.close();
    assert_eq!(keyed.try_acquire(&"b"), Err(TryAcquireError::Closed));
}

/// Who comes with a time that has passed finds what was spent since.
#[tokio::test(start_paused = true)]
async fn an_older_time_mints_nothing_though_the_key_was_forgotten() {
    let keyed: Keyed<u8> = Keyed::new(Rate::per_second(1), 3);
    let start = Instant::now();
    assert!(keyed.try_acquire_many(&0, 3).is_ok());
    advance(10 * SECOND).await;
    keyed.retain_busy();
    assert!(keyed.is_empty());
    assert!(keyed.try_acquire_many_at(&0, 2, start + SECOND).is_err());
    assert!(keyed.try_acquire_many(&0, 3).is_ok());
}

#[tokio::test(start_paused = true)]
async fn once_closed_nothing_is_had_of_any_key() {
    let keyed: Keyed<u8> = Keyed::new(Rate::per_second(1), 1);
    assert!(keyed.try_acquire(&0).is_ok());
    let turn = keyed.reserve(&0).unwrap();
    let waiting = tokio::spawn(keyed.acquire_owned(0));
    tokio::task::yield_now().await;
    keyed.close();
    assert_eq!(waiting.await.unwrap(), Err(AcquireError::Closed));
    assert_eq!(turn.ready().await, Err(AcquireError::Closed));
    for key in [0, 1] {
        assert_eq!(keyed.try_acquire(&key), Err(TryAcquireError::Closed));
        assert_eq!(keyed.peek(&key), Err(TryAcquireError::Closed));
        assert_eq!(keyed.reserve(&key).err(), Some(ReserveError::Closed));
        assert_eq!(keyed.acquire(&key).await, Err(AcquireError::Closed));
        assert_eq!(keyed.acquire(&key).before(Instant::now()).await, Err(AcquireError::Closed));
    }
    assert!(keyed.is_closed());
}

// ---- Settings ----------------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn a_key_with_settings_of_its_own_keeps_them_until_it_is_reset() {
    let keyed: Keyed<u8> = Keyed::new(Rate::per_second(1), 1);
    keyed.set_burst_of(&0, 5).unwrap();
    keyed.set_rate_of(&0, Rate::per_second(10)).unwrap();
    advance(SECOND).await;
    keyed.retain_busy();
    assert_eq!(keyed.len(), 1, "it is full, and not forgotten");
    assert!(keyed.try_acquire_many(&0, 5).is_ok());
    keyed.set_burst(3).unwrap();
    keyed.set_rate(Rate::per_second(2)).unwrap();
    assert_eq!(keyed.reserve(&0).unwrap().delay(), SECOND / 10);
    advance(SECOND).await;
    assert!(keyed.try_acquire_many(&0, 4).is_ok(), "its own burst");
    keyed.reset(&0);
    assert!(keyed.try_acquire_many(&0, 4).is_err());
    assert_eq!(keyed.len(), 1, "it is not full");
    advance(2 * SECOND).await;
    keyed.retain_busy();
    assert_eq!(keyed.len(), 0);
    assert!(keyed.try_acquire_many(&0, 3).is_ok());
}

/// What has overflowed meanwhile stays lost.
#[tokio::test(start_paused = true)]
async fn a_key_that_is_reset_gets_nothing_back_that_it_has_spent() {
    let keyed: Keyed<u8> = Keyed::new(Rate::per_second(1), 10);
    assert!(keyed.try_acquire_many(&0, 10).is_ok());
    keyed.set_burst_of(&0, 1).unwrap();
    advance(SECOND).await;
    keyed.reset(&0);
    keyed.retain_busy();
    assert!(keyed.try_acquire_many(&0, 2).is_err());
    assert!(keyed.try_acquire_many(&0, 1).is_ok());
}

#[test]
fn settings_beyond_reach_are_refused_and_change_nothing() {
    let window = FixedWindow::new(5, SECOND);
    let keyed: Keyed<u8> = Keyed::builder(Quota::new(Rate::per_second(1), 5))
        .quotas([window.into()], |key| usize::from(*key))
        .build()
        .unwrap();
    let (rate, burst) = (Rate::per_second(2), 6);
    assert!(keyed.set_rate(rate).is_err() && keyed.set_burst(burst).is_err());
    assert_eq!((keyed.rate(), keyed.burst()), (Rate::per_second(1), 5));
    assert!(keyed.set_rate_of(&1, rate).is_err() && keyed.set_burst_of(&1, burst).is_err());
    assert!(keyed.set_rate_of(&0, Rate::per_second(1_000_000_000_000)).is_err());
    assert_eq!(keyed.len(), 0, "who was refused is not kept");
    assert!(keyed.set_rate_of(&0, rate).is_ok());
    assert_eq!(keyed.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn windows_that_would_begin_with_the_first_use_begin_for_all_at_once() {
    let window = FixedWindow::builder(2, SECOND).align(Align::FirstUse).build().unwrap();
    let keyed: Keyed<u8> = Keyed::like(window);
    advance(SECOND * 3 / 4).await;
    assert!(keyed.try_acquire_many(&0, 2).is_ok());
    let wait = keyed.try_acquire(&0).unwrap_err().retry_after();
    assert_eq!(wait, Some(SECOND / 4));
    advance(SECOND / 2).await;
    assert!(keyed.try_acquire_many(&1, 2).is_ok() && keyed.try_acquire_many(&0, 2).is_ok());
    assert_eq!(keyed.try_acquire(&1).unwrap_err().retry_after(), Some(SECOND * 3 / 4));
}

/// What a limiter holds to start with is for its first use; a key always starts full.
#[test]
fn a_key_starts_full_whatever_its_quota_started_with() {
    let quota = Limiter::builder(Rate::per_second(1)).burst(5).initial(0).build().unwrap();
    let keyed: Keyed<u8> = Keyed::like(quota);
    assert!(keyed.try_acquire_many(&0, 5).is_ok());
}

// ---- Types -------------------------------------------------------------------------------------

fn shared<T: Send + Sync + 'static>() {}
fn movable<T: Unpin + Debug>() {}
fn printable<T: Debug>() {}
fn sendable<T: Send + Sync>(_: &T) {}

#[test]
fn all_can_be_shared_and_sent_and_owned_futures_outlive_everything() {
    shared::<Keyed<String>>();
    shared::<Keyed<u64, std::hash::RandomState>>();
    shared::<KeyedBuilder<String>>();
    shared::<KeyedAcquire<'static, str, RandomState>>();
    shared::<KeyedAcquire<'static, u64, std::hash::RandomState>>();
    shared::<Quota>();
    shared::<RandomState>();
    shared::<Reservation<'static>>();
    movable::<Keyed<String>>();
    movable::<KeyedBuilder<String>>();
    movable::<Quota>();
    movable::<RandomState>();
    printable::<KeyedAcquire<'static, str, RandomState>>();

    let keyed: Keyed<String> = Keyed::new(Rate::per_second(1), 1);
    sendable(&keyed.acquire("a").within(SECOND));
    sendable(&keyed.reserve("a").unwrap());
    let owned: KeyedAcquire<'static, String, RandomState> = keyed.acquire_owned("a".to_owned());
    drop(keyed);
    sendable(&owned);
}
