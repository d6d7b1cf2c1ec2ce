//! Paceline beside its peers and beside the floors, in one run.
//!
//! ```text
//! cargo run --release --manifest-path benches/peers/Cargo.toml --bin speed
//! ```
//!
//! prints what one operation of each costs (`-- --quick` only shows that everything runs).
//!
//! * [`mod@measure`]: the harness. It runs every subject in short rounds, in turn, and keeps the
//!   samples.
//! * [`starts`]: several starts of the program, pooled.
//! * [`subjects`]: what is measured, a file for each crate. A new peer is a new file there and a
//!   line in [`subjects::all`].
//! * [`table`] prints, and [`versions`] says what was measured.
//!
//! The programs are in `src/bin`.

pub mod awaited;
pub mod measure;
pub mod options;
pub mod process;
pub mod starts;
pub mod subjects;
pub mod table;
pub mod versions;
