//! Paceline beside its peers and beside the floors, in one run.
//!
//! * [`mod@measure`]: the harness. It runs every subject in short rounds, in turn, and keeps medians.
//! * [`subjects`]: what is measured, a file for each crate. A new peer is a new file there and a
//!   line in [`subjects::all`].
//! * [`table`] prints, and [`versions`] says of which versions.
//!
//! The programs are in `src/bin`: `speed` prints the cost of one operation of each.

pub mod measure;
pub mod subjects;
pub mod table;
pub mod versions;
