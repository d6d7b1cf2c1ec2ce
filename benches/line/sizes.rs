//! How large things are, and why, for 64 bits.
//!
//! * **`Limiter`**: room for what must not disturb each other, not for data. The state word, the
//!   settings, and the counters of the map of holes are each on cache lines of their own (128
//!   bytes, since x86 fetches lines in pairs), so that a grant does not slow down who reads the
//!   settings, nor a cancel who is granted. The head of the map, with a link for each of its 32
//!   levels, takes 256 bytes. It is the price of a limiter, not of a waiter; a limiter that never
//!   has a hole allocates nothing more for them.
//! * **`Acquire`**: while it waits it holds all that it needs in place, so that waiting allocates
//!   nothing: tokio's timer (112 bytes) and its `OwnedNotified` (64), and the booking (64), whose
//!   positions are of 128 bits each. Before and after it is as large, but only the first words are
//!   written.
//! * **`Reservation`**: the booking, and whose it is.
//! * **`Result<(), TryAcquireError>`**: a refusal carries what `retry_after()` would divide, and
//!   does not divide.

use crate::table::Table;
use paceline::{Acquire, Limiter, Reservation, TryAcquireError};

pub(crate) fn table() -> Table {
    let mut table = Table::new(&["size", "bytes"]);
    for (name, bytes) in [
        ("Limiter", size_of::<Limiter>()),
        ("Acquire, waiting or not", size_of::<Acquire<'_>>()),
        ("Reservation", size_of::<Reservation<'_>>()),
        ("Result<(), TryAcquireError>", size_of::<Result<(), TryAcquireError>>()),
    ] {
        table.row(vec![name.to_owned(), bytes.to_string()]);
    }
    table
}
