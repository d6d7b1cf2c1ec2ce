//! What there is to see of a limiter.

use crate::turns::Turns;

/// What there is to see of a limiter at one time: what [`Limiter::stats`](crate::Limiter::stats) and
/// [`RateLimit::stats`](crate::RateLimit::stats) return.
///
/// For display: by the time that you look at it, others have taken some. Each number is read by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// The permits that are free: those in the bucket and those given back, less what is booked and not
    /// yet minted, so it may be negative. Of a window those that it has left, and of a smooth limiter
    /// those that are stored.
    pub tokens: f64,
    /// How many wait in `acquire`.
    pub waiters: u32,
    /// How many turns were given back and are free for others. Always 0 for those limiters that are not
    /// on the [token line](crate#the-token-line).
    pub holes: usize,
    /// Whether it is closed.
    pub closed: bool,
}

impl Stats {
    pub(crate) fn of(limiter: &impl Turns) -> Self {
        let waiters = limiter.waiters();
        let now = waiters.time.now();
        Self {
            tokens: limiter.free(now),
            waiters: waiters.queue.taken(),
            holes: limiter.holes(now),
            closed: limiter.is_closed(),
        }
    }
}
