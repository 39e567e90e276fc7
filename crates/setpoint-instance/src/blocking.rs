//! Work that keeps its thread busy: files that are written to disk, long texts that are read and compared.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Does work that takes long. On a runtime of several threads another thread takes over what this one had to do meanwhile; on a
/// runtime of one thread, all else waits.
pub fn run_blocking<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use setpoint_testutils::wait::LIMIT;

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn others_are_served_while_a_thread_is_busy() {
        let (sender, receiver) = mpsc::channel();
        let busy = tokio::spawn(async move {
            // What it waits for is done by a task that has only this thread to run on.
            tokio::spawn(async move { sender.send(()) });
            run_blocking(|| receiver.recv_timeout(LIMIT))
        });
        assert_eq!(busy.await.unwrap(), Ok(()));
    }

    #[tokio::test]
    async fn on_one_thread_it_is_done_all_the_same() {
        assert_eq!(run_blocking(|| 1), 1);
    }
}
