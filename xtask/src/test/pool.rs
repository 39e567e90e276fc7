//! Does independent work side by side: most test binaries wait most of the time.
//!
//! ```text
//! jobs, in their order ──▶ workers, each with one job at a time ──▶ outcomes, in the order in which they come
//! ```

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// Does each job on one of some workers, and hands on what it came to. Returns when all are done.
pub(super) fn run<J: Sync, O: Send>(
    jobs: &[J],
    workers: usize,
    work: impl Fn(&J) -> O + Sync,
    mut on_outcome: impl FnMut(&J, O),
) {
    let next = AtomicUsize::new(0);
    let (sender, outcomes) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..workers.min(jobs.len()) {
            let (sender, next, work) = (sender.clone(), &next, &work);
            scope.spawn(move || {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if sender.send((job, work(job))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for (job, outcome) in outcomes {
            on_outcome(job, outcome);
        }
    });
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn each_job_is_done_once_and_as_many_at_a_time_as_there_are_workers() {
        let jobs: Vec<u32> = (0..9).collect();
        // Nobody passes before three have come: fewer workers would wait for ever.
        let three = Barrier::new(3);
        let mut done = Vec::new();
        let work = |job: &u32| {
            three.wait();
            job * 2
        };
        run(&jobs, 3, work, |job, outcome| done.push((*job, outcome)));
        let distinct: BTreeSet<_> = done.iter().copied().collect();
        assert_eq!((done.len(), distinct), (9, jobs.iter().map(|job| (*job, job * 2)).collect()));
    }

    #[test]
    fn one_worker_keeps_the_order() {
        let mut done = Vec::new();
        run(&[3, 1, 2], 1, |job| *job, |_, outcome| done.push(outcome));
        assert_eq!(done, [3, 1, 2]);
    }
}
