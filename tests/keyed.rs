//! A limiter per key.
#![cfg(feature = "keyed")]

use paceline::{Keyed, Limiter, Rate};
use proptest::prelude::*;
use std::time::Duration;
use tokio::time::Instant;

#[derive(Clone, Debug)]
enum Step {
    Try(u8, u32),
    Reserve(u8, u32),
    Cancel(usize),
    Refund(usize),
    Wait(u64),
    Rate(u64),
    Burst(u32),
    Tidy,
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0..6_u8;
    prop_oneof![
        6 => (key.clone(), 0..5_u32).prop_map(|(key, n)| Step::Try(key, n)),
        2 => (key.clone(), 0..5_u32).prop_map(|(key, n)| Step::Reserve(key, n)),
        1 => any::<usize>().prop_map(Step::Cancel),
        1 => any::<usize>().prop_map(Step::Refund),
        4 => prop_oneof![0..3_u64, 0..200_000_000_u64, 0..5_000_000_000_u64].prop_map(Step::Wait),
        1 => (0..30_u64).prop_map(Step::Rate),
        1 => (0..6_u32).prop_map(Step::Burst),
        1 => Just(Step::Tidy),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    /// Whatever is done with keys, each is as a limiter of its own; and a key that was forgotten is
    /// as one that was not.
    #[test]
    fn each_key_is_as_a_limiter_of_its_own(steps in prop::collection::vec(step(), 1..120)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let rate = Rate::per_second(7);
            let keyed: Keyed<u8> = Keyed::new(rate, 3);
            let limiters: Vec<_> = (0..6).map(|_| Limiter::new(rate, 3)).collect();
            let mut now = Instant::now();
            let mut turns = Vec::new();
            for step in steps {
                match step {
                    Step::Try(key, n) => prop_assert_eq!(
                        keyed.try_acquire_many_at(&key, n, now).map_err(|e| e.retry_after()),
                        limiters[usize::from(key)].try_acquire_many_at(n, now).map_err(|e| e.retry_after()),
                        "{}", key
                    ),
                    Step::Reserve(key, n) => {
                        let one = keyed.reserve_many_at(&key, n, now);
                        let other = limiters[usize::from(key)].reserve_many_at(n, now);
                        prop_assert_eq!(one.as_ref().map(|r| r.delay_from(now)).ok(), other.as_ref().map(|r| r.delay_from(now)).ok());
                        if let (Ok(one), Ok(other)) = (one, other) {
                            turns.push((one, other));
                        }
                    }
                    Step::Cancel(index) if !turns.is_empty() => {
                        let (one, other) = turns.swap_remove(index % turns.len());
                        one.cancel_at(now);
                        other.cancel_at(now);
                    }
                    Step::Refund(index) if !turns.is_empty() => {
                        let (one, other) = turns.swap_remove(index % turns.len());
                        one.refund_at(now);
                        other.refund_at(now);
                    }
                    Step::Cancel(_) | Step::Refund(_) => {}
                    Step::Wait(nanos) => {
                        tokio::time::advance(Duration::from_nanos(nanos)).await;
                        now = Instant::now();
                    }
                    Step::Rate(per_second) => {
                        keyed.set_rate(Rate::per_second(per_second)).unwrap();
                        for limiter in &limiters {
                            limiter.set_rate_at(Rate::per_second(per_second), now).unwrap();
                        }
                    }
                    Step::Burst(burst) => {
                        keyed.set_burst(burst).unwrap();
                        for limiter in &limiters {
                            limiter.set_burst_at(burst, now).unwrap();
                        }
                    }
                    Step::Tidy => keyed.retain_busy(),
                }
                for (key, limiter) in (0..).zip(&limiters) {
                    let (one, other) = (keyed.tokens_at(&key, now), limiter.tokens_at(now));
                    prop_assert!((one - other).abs() < 1e-9, "{}: {} {}", key, one, other);
                }
            }
            Ok(())
        })?;
    }
}
