//! Paceline beside its peers and beside the floors, in one run.
//!
//! ```text
//! cargo run --release --manifest-path benches/peers/Cargo.toml --bin speed
//! ```
//!
//! prints what one operation of each costs (`-- --quick` only shows that everything runs).
//!
//! The others run in real time, for minutes: `fidelity` (which part of its rate each reaches, and
//! how evenly it serves), `precise` (how near to their turns grants come), `stripes` (which part of
//! its rate `Striped` reaches, and how many it can give), `crowds` (what waiters cost, up to a
//! million) and `overload` (what gets through when four times as many come and everybody gives up
//! after a while, as a table and as a chart). Run them on a quiet machine; `-- --quick` takes
//! seconds.
//!
//! `instructions` runs one operation so many times, for `benches/instructions.sh`, which counts.
//!
//! * [`mod@measure`]: the harness of `speed`. It runs every subject in short rounds, in turn, and
//!   keeps the samples.
//! * [`starts`]: several starts of the program, pooled; [`again`] starts it.
//! * [`subjects`]: what is measured, a file for each crate. A new peer is a new file there and a
//!   line in [`subjects::all`].
//! * [`awaited`]: the limiters that the other programs await, all built alike; [`options`] and
//!   [`process`] are what else these share.
//! * [`table`] prints, and [`versions`] says what was measured.
//!
//! The programs are in `src/bin`.

pub mod again;
pub mod awaited;
pub mod measure;
pub mod options;
pub mod process;
pub mod starts;
pub mod subjects;
pub mod table;
pub mod versions;
