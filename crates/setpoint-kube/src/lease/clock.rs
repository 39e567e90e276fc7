//! A clock that never stands still.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The time since the machine was started, also that in which the process or the machine was stopped.
///
/// ```
/// let before = setpoint_kube::lease::boot_time();
/// assert!(setpoint_kube::lease::boot_time() >= before);
/// ```
pub fn boot_time() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    let nanoseconds = u32::try_from(now.tv_nsec).unwrap_or_default();
    Duration::new(seconds, nanoseconds)
}
