//! The usual hash of keys.

use std::hash::BuildHasher;

/// Hashes keys unless [`KeyedBuilder::hasher`](super::KeyedBuilder::hasher) says otherwise: by
/// [foldhash](foldhash::fast), seeded anew in each process.
///
/// It is not meant to hold against somebody who can choose keys and measure how long each takes. Where
/// that is a concern, take [`std::hash::RandomState`], at some 8 ns more.
#[derive(Clone, Debug, Default)]
pub struct RandomState(foldhash::fast::RandomState);

impl BuildHasher for RandomState {
    type Hasher = foldhash::fast::FoldHasher<'static>;

    #[inline]
    fn build_hasher(&self) -> Self::Hasher {
        self.0.build_hasher()
    }
}
