#![allow(missing_docs, clippy::all, clippy::pedantic)]
use crate::{AcquireError, Limiter, Rate, TryAcquireError};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Debug)]
pub struct Keyed<K> {
    rate: Rate,
    burst: u32,
    map: Mutex<HashMap<K, Arc<Limiter>>>,
}

impl<K: Hash + Eq + Clone> Keyed<K> {
    pub fn new(rate: Rate, burst: u32) -> Self {
        Self { rate, burst, map: Mutex::default() }
    }
    fn get(&self, key: &K) -> Arc<Limiter> {
        let mut map = self.map.lock().unwrap();
        if map.len() > 10_000 {
            map.retain(|_, limiter| limiter.tokens() < f64::from(self.burst));
        }
        Arc::clone(
            map.entry(key.clone()).or_insert_with(|| Arc::new(Limiter::new(self.rate, self.burst))),
        )
    }
    pub fn try_acquire_many(&self, key: &K, n: u32) -> Result<(), TryAcquireError> {
        self.get(key).try_acquire_many(n)
    }
    pub async fn acquire_many(
        &self,
        key: &K,
        n: u32,
        within: Option<Duration>,
    ) -> Result<(), AcquireError> {
        self.get(key).acquire_many(n).within(within.unwrap_or(Duration::MAX)).await.map(drop)
    }
    pub fn peek_many(&self, key: &K, n: u32) -> Result<(), TryAcquireError> {
        use crate::turns::Turns;
        let limiter = self.get(key);
        limiter.peek_at(n, limiter.now())
    }
    pub fn tokens(&self, key: &K) -> f64 {
        self.get(key).tokens()
    }
    pub fn rate(&self) -> Rate {
        self.rate
    }
    pub fn burst(&self) -> u32 {
        self.burst
    }
    pub fn len(&self) -> usize {
        self.map.lock().unwrap().len()
    }
}
