//! Each part starts, answers as its real self, and is gone afterwards.
#![cfg_attr(test, expect(clippy::unwrap_used, reason = "helpers of tests fail the test"))]

mod consul;
mod etcd;
mod haproxy;
mod kubernetes;
mod proxy;

use setpoint_testutils::wait;

/// Waits until no process has this id.
async fn process_is_gone(id: u32) {
    let path = format!("/proc/{id}");
    wait::until("a process to be gone", wait::READY, async || {
        (!std::path::Path::new(&path).exists()).then_some(())
    })
    .await;
}
