//! What this process uses.

use std::time::Duration;

/// The memory that is resident, in bytes, where the system tells.
#[must_use]
pub fn resident() -> Option<usize> {
    memory_stats::memory_stats().map(|stats| stats.physical_mem)
}

/// The processor time that all threads have used so far.
///
/// # Panics
///
/// When the system does not tell.
#[must_use]
pub fn cpu() -> Duration {
    cpu_time::ProcessTime::now().as_duration()
}
