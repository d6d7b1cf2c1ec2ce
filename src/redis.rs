//! Limits that processes share, on a Redis or Valkey server.
//!
//! The [token line](crate#the-token-line) of such a limit is on the server, in one key. The verbs are
//! those of a [`Limiter`](crate::Limiter), and mean the same; each is a call, which can fail.
//!
//! ```no_run
//! use paceline::Rate;
//! use paceline::redis::{RedisLimiter, connect};
//! use std::time::Duration;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let connection = connect(redis::Client::open("redis://127.0.0.1/")?).await?;
//!
//! // Whoever uses this name shares 100 permits a second.
//! let limiter = RedisLimiter::builder(connection, "mail", Rate::per_second(100))
//!     .burst(20)
//!     .build()
//!     .await?;
//!
//! limiter.acquire().within(Duration::from_millis(500)).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Which mode
//!
//! | | a call | choose it |
//! |---|---|---|
//! | strict: what there is without more ado | a round trip each | unless you know better |
//! | [leased](Builder::lease) | a round trip for a batch | where round trips are felt, by those who call or by the server: see [below](#leases) |
//! | [`KeyedRedisLimiter`] | a round trip each | for a limit for each user, address, tenant |
//!
//! And for when the server is away a [`Fallback`]: see [below](#when-the-server-is-away).
//!
//! # What holds
//!
//! * **The bound.** In every window `(t1, t2]` of whole microseconds by the server's clock, at most
//!   `burst + rate * (t2 - t1)` permits have their turn, over all processes, exactly. The clocks of the
//!   processes do not matter, unless they were [asked for](Builder::time).
//! * **Nobody's turn comes too early.** It is reckoned from when the server's answer came, so it
//!   is late by as long as the answer was under way.
//! * **What is given back is used again**, as in one process: by [`Reservation::cancel`], by an
//!   [`Acquire`] that is dropped, and by a call that is dropped or timed out while its command was on its
//!   way. The latter is given back when the answer comes. This goes on in the background, on
//!   the runtime that the limiter was built on.
//! * **Each call ends** within the [timeout](Builder::timeout) that was set, whatever the client's own
//!   attempts are; an `acquire` in that and its wait, twice if it must book again.
//! * **One who wakes late** by more than 5 ms beyond the time at which its turn has overflowed gives it
//!   back and books again. With a burst of 1 at 1000/s a single task that acquires in a loop gets
//!   less than half of the rate for that; several tasks, a larger burst or a lease get all of it.
//!
//! # Leases
//!
//! With [`Builder::lease`] a process books a batch of permits in one round trip, and serves from it. What
//! is at hand are intervals of the server's line like any booking, and each is used by the same rule: once
//! it is minted, and before it overflows, both by the server's clock as far as the process can be sure
//! of it. So the bound is the same, whatever how many processes hold, and no part of the burst is kept
//! back for them.
//!
//! * **Its size** follows the demand: what the process uses in 50 ms, at most a quarter of the burst
//!   ([`Lease::period`], [`Lease::most`]). More is asked for in the background when half is left. Processes
//!   that want more than there is come to equal shares, and book about a period ahead.
//! * **It pays** from some 100 permits a second and process on, with a burst of 16 or more. A process
//!   that uses less makes a round trip for each permit, as without leases.
//! * **It keeps from others** what is at hand: the burst that they find is smaller by that.
//! * **Nobody uses it** for one or two periods: it is given back. **The process dies**: it is lost, which
//!   is as if it had been used.
//! * **The rate is set** in another process: it holds for what is at hand from the next round trip on, a
//!   period later at most while it is in use.
//! * Those who wait are served in their order, within a process. A reservation, and a request for more
//!   than a lease, are made on the server.
//! * The process's clock and the server's may go apart by a thousandth, and the server's may not be set
//!   meanwhile: if it is set ahead by an hour, what is at hand was minted before and is used after.
//!
//! Measured, 64 tasks that each acquire each millisecond, where the limit is 100 000/s: 1500 permits for each
//! round trip, and 99 of 100 wait for less than 3 us.
//!
//! # When the server is away
//!
//! A call ends within the [timeout](Builder::timeout). After five that failed in a row the
//! [breaker](Builder::breaker) opens: for 300 ms calls fail at once, then one of them finds out whether the
//! server is back. What is at hand of a lease is served meanwhile. Whatever fails goes to the
//! [`Fallback`]:
//!
//! | | while the server is away | bound |
//! |---|---|---|
//! | [`Closed`](Fallback::Closed) | calls fail | that of the limit |
//! | [`Open`](Fallback::Open) | calls pass | none |
//! | [`Local`](Fallback::Local) | a limiter of the process's own serves its share | that of the limit, and a second burst when the server is back; and if some processes are cut off while others are not, their shares beside it |
//!
//! The connection should come back by itself and soon, as that of [`connect()`] does. Measured, 64 tasks
//! that acquire while the server is killed for two seconds: calls end within the timeout, and half a
//! second after its return all is as before.
//!
//! # Exactness
//!
//! A script's numbers are doubles: whole numbers are exact up to 2<sup>53</sup>. Positions on the line
//! are such numbers, in grains, from a beginning that moves along; a token is 60 000 000 grains for
//! most limits, and is chosen as in one process. Times are whole microseconds.
//!
//! * The rate that a limit is built for rounds nowhere, if a period of it in lowest terms is a whole
//!   number of microseconds and at most a minute (a day if it is slower than one a minute). So do the
//!   usual rates that it is set to later. This is for what a limit can be set to unless more is said; larger
//!   [bursts](Builder::max_burst) and [rates](Builder::max_rate) have smaller numbers of grains.
//! * Any other rate makes turns late, never early, by up to a grain, or a microsecond if that is
//!   more. One whose ratio does not fit is served slower, by two parts in a million at most.
//! * At times that are given ([`TimeSource::from_fn`]) a limit answers as a
//!   [`Limiter`](crate::Limiter) does whose nanosecond is its microsecond. Tests compare the two, on random
//!   operations and on those recorded of Go's `time/rate`.
//!
//! # What can go wrong
//!
//! | | then |
//! |---|---|
//! | a process dies | what it had booked stays spent; what it had leased too: a quarter of the burst at most |
//! | an answer is lost | the call fails, and what it may have booked stays spent. It is never sent again by itself |
//! | a cancel's answer is lost | it is sent again, up to three times, and applied once |
//! | the server has forgotten the script | it is sent again, to that node of a cluster |
//! | the server has forgotten its keys, since it was killed and keeps nothing on its disk | each limit starts full, which is a burst too many at most; what is at hand of leases is used until the next answer. Settings come back with the next process that knows of them |
//! | a replica that lags takes over, or an old state is restored | what was booked since is forgotten: those permits are used by who holds them and by who books them anew. If they are also cancelled, then once more: no other's cancel counts twice |
//! | the server's clock steps back | no permits are minted until it is where it was |
//! | a key holds something else | [`Failure::Server`] or [`Failure::Answer`] |
//!
//! With cluster connections, whose client repeats commands by itself, a booking may be made twice; then
//! one of the two stays spent.
//!
//! # What it costs
//!
//! A request takes the server about 1.2 times as long as the shortest script that reads, asks for the time
//! and writes. Requests of one process for one limit that come while others are under way go together, up
//! to 64 in a call, so 64 tasks make more calls than the same connection runs empty scripts. A limit
//! takes 80 bytes beside its name, and is gone when it is full. While turns that were given back are
//! about, it takes 56 bytes more, 16 for each such hole, and a bit for each booking since, 4 KiB
//! at most. With all that the server keeps for a key, a million limits are 224 MB on Redis 7.0 and 180 MB
//! on Valkey 9.
//!
//! What was set by [`RedisLimiter::set_rate`] or [`set_burst`](RedisLimiter::set_burst) is kept, also when
//! the limit is full, and so is a limit that never refills.
//!
//! # Requirements
//!
//! Redis 5, Valkey, or what runs their scripts; a Tokio runtime with its timer. The time that the client
//! itself waits for an answer (500 ms unless set) is how late an answer may come such that what it booked is
//! given back: with none, as [`connect()`] has it, that is as long as the connection lives.

mod acquire;
mod builder;
mod clock;
mod connect;
mod connection;
mod error;
mod fallback;
mod keyed;
mod lease;
mod limiter;
mod name;
mod numbers;
mod remote;
mod reply;
mod requests;
mod reservation;
mod script;
mod settings;

pub use acquire::{Acquire, AcquireFuture};
pub use builder::Builder;
pub use clock::TimeSource;
pub use connect::connect;
pub use error::{Error, Failure};
pub use fallback::Fallback;
pub use keyed::KeyedRedisLimiter;
pub use lease::Lease;
pub use limiter::RedisLimiter;
pub use reservation::Reservation;
