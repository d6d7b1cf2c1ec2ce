//! Positions stay within 53 bits however much is minted, and what is booked stays where it is.

use crate::pair::Pair;
use crate::support::{Engine, Server};
use paceline::redis::RedisLimiter;
use paceline::{Limiter, Rate};
use redis::AsyncCommands;

const FAST: u64 = 10_000_000;

/// A lap in less than two seconds, and hardly ever full.
#[tokio::test]
async fn a_line_of_many_laps_answers_as_a_limiter_of_one_process() {
    let Some(server) = Server::start(Engine::Redis).await else { return };
    let burst = 10_000_000;
    let remote =
        RedisLimiter::builder(server.patient_connection().await, "test", Rate::per_second(FAST));
    let remote = remote.burst(burst).max_burst(burst).max_rate(Rate::per_second(FAST));
    let local = Limiter::builder(Rate::per_second(FAST * 1_000)).burst(burst).max_burst(burst);
    let local = local.build().unwrap();
    let pair = Pair::new(remote, &local, 1, 0).await;
    pair.wait(1);
    let mut connection = server.patient_connection().await;
    let mut id = 0;
    for round in 0..300_u64 {
        // Some of what is booked is given back late, some in the next lap, some never.
        pair.reserve(id, 5_400_000).await;
        pair.reserve(id + 2, 5_400_000).await;
        pair.reserve(id + 1, 1 + u32::try_from(round).unwrap()).await;
        pair.try_acquire(3).await;
        pair.wait(1_050_000 + 7 * round);
        if let Some(old) = pair.booked().first().filter(|_| round % 3 == 0) {
            pair.cancel(*old).await;
        }
        if let Some(last) = pair.booked().last().filter(|_| round % 4 == 0) {
            pair.refund(*last).await;
        }
        pair.assert_same().await;
        let stored: Vec<u8> = connection.get("paceline:{test}").await.unwrap();
        // Times and positions; what is beyond are holes and others.
        for number in stored[..80].chunks_exact(8) {
            let number = f64::from_le_bytes(number.try_into().unwrap());
            assert!(number.fract() == 0.0 && number.abs() < 2_f64.powi(52), "{number}");
        }
        while pair.booked().len() > 8 {
            pair.forget(pair.booked()[0]);
        }
        id += 3;
    }
}
