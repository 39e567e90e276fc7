//! Each part starts, answers as its real self, and is gone afterwards.
#![cfg_attr(test, expect(clippy::unwrap_used, reason = "helpers of tests fail the test"))]

mod consul;
mod dataplaneapi;
mod etcd;
mod gone;
mod haproxy;
mod kubernetes;
mod network;
mod pages;
mod proxy;

use setpoint_testutils::wait;

/// Waits until no process with this id is running. One that is dead and not yet buried is not.
async fn process_is_gone(id: u32) {
    let running = || {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let state = stat.rsplit(')').next().unwrap_or_default().trim_start().to_owned();
        !(state.is_empty() || state.starts_with('Z'))
    };
    wait::until("a process to be gone", wait::LIMIT, async || (!running()).then_some(())).await;
}
