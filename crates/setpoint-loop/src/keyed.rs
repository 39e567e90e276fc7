//! Work for each of many keys: one task for each, woken when there is something to look at, and few at work at a time.
//!
//! ```text
//!  poke(key) ──▶ the task of the key, started if there is none ──turn──▶ at most `limit` at work
//!  retire ─────▶ ends the tasks of keys that are not wanted any more
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::supervise::{Outcome, Phase, Supervisor, Task, TaskHandle};

/// The tasks of keys. They end with the supervisor.
///
/// ```
/// use std::time::Duration;
/// use setpoint_loop::{Keyed, Supervisor};
/// use tokio_util::sync::CancellationToken;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
/// let pauses = (Duration::from_millis(100), Duration::from_secs(30));
/// let supervisor = Supervisor::new(CancellationToken::new(), pauses, fastrand::Rng::with_seed(1));
/// let mut keyed = Keyed::new(supervisor, 8);
/// let (done, mut looked) = tokio::sync::mpsc::unbounded_channel();
/// keyed.poke("shop", |key, pokes| {
///     let (key, done) = (*key, done.clone());
///     move |task| {
///         let (pokes, done) = (pokes.clone(), done.clone());
///         async move {
///             while task.cancel.run_until_cancelled(pokes.next()).await.is_some() {
///                 let _turn = pokes.turn().await;
///                 let _ = done.send(key);
///             }
///         }
///     }
/// });
/// assert_eq!(looked.recv().await, Some("shop"));
/// keyed.retire(|key| *key != "shop").await;
/// assert!(keyed.is_empty());
/// # });
/// ```
pub struct Keyed<K> {
    supervisor: Supervisor,
    turns: Arc<Semaphore>,
    tasks: BTreeMap<K, (Pokes, TaskHandle)>,
}

/// What the task of a key waits for. Clones wait for the same.
#[derive(Clone, Debug)]
pub struct Pokes {
    notify: Arc<Notify>,
    turns: Arc<Semaphore>,
}

impl Pokes {
    /// Waits until the key was poked since the last call. Several pokes are one reason to look.
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&self) {
        self.notify.notified().await;
    }

    /// The turns of all keys, for what works for this one elsewhere.
    pub fn turns(&self) -> Arc<Semaphore> {
        Arc::clone(&self.turns)
    }

    /// Waits until this task may work; what is returned is dropped when it has.
    pub async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        // Nobody closes it.
        Arc::clone(&self.turns).acquire_owned().await.ok()
    }
}

impl<K: Ord + fmt::Display> Keyed<K> {
    /// Makes one whose tasks belong to a supervisor; at most `limit` of them have a turn at a time.
    pub fn new(supervisor: Supervisor, limit: usize) -> Self {
        let turns = Arc::new(Semaphore::new(limit.clamp(1, Semaphore::MAX_PERMITS)));
        Self { supervisor, turns, tasks: BTreeMap::new() }
    }

    /// Gives the task of a key a reason to look; starts it if there is none, or if it has ended.
    pub fn poke<F, T>(&mut self, key: K, make: impl FnOnce(&K, Pokes) -> F)
    where
        F: Fn(Task) -> T + Send + Sync + 'static,
        T: Future<Output: Outcome> + Send + 'static,
    {
        if self.tasks.get(&key).is_some_and(|(_, handle)| handle.health().phase == Phase::Ended) {
            self.tasks.remove(&key);
        }
        let (turns, supervisor) = (&self.turns, &self.supervisor);
        let (pokes, _) = self.tasks.entry(key).or_insert_with_key(|key| {
            let pokes = Pokes { notify: Arc::default(), turns: Arc::clone(turns) };
            let handle = supervisor.spawn(key.to_string(), make(key, pokes.clone()));
            (pokes, handle)
        });
        pokes.notify.notify_one();
    }

    /// Gives the tasks of all keys a reason to look.
    pub fn poke_all(&self) {
        for (pokes, _) in self.tasks.values() {
            pokes.notify.notify_one();
        }
    }

    /// Ends the tasks of keys that are not wanted any more, and waits until they have ended.
    pub async fn retire(&mut self, wanted: impl Fn(&K) -> bool) {
        let mut ended = Vec::new();
        self.tasks.retain(|key, (_, handle)| {
            let wanted = wanted(key);
            if !wanted {
                handle.cancel();
                ended.push(handle.clone());
            }
            wanted
        });
        for handle in ended {
            handle.ended().await;
        }
    }

    /// Returns whether no key has a task.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// The supervisor of the tasks.
    pub fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// Gives the supervisor back, to end it.
    pub fn into_supervisor(self) -> Supervisor {
        self.supervisor
    }
}

impl<K: fmt::Debug> fmt::Debug for Keyed<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyed").field("keys", &self.tasks.keys()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use tokio::time::sleep;
    use tokio_util::sync::CancellationToken;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[derive(Clone, Debug, Default)]
    struct Counts {
        starts: Arc<AtomicUsize>,
        looks: Arc<AtomicUsize>,
        most: Arc<AtomicUsize>,
        now: Arc<AtomicUsize>,
    }

    impl Counts {
        async fn work(self, task: Task, pokes: Pokes) {
            self.starts.fetch_add(1, Ordering::Relaxed);
            while task.cancel.run_until_cancelled(pokes.next()).await.is_some() {
                let _turn = pokes.turn().await;
                let now = self.now.fetch_add(1, Ordering::Relaxed) + 1;
                self.most.fetch_max(now, Ordering::Relaxed);
                sleep(SECOND).await;
                self.now.fetch_sub(1, Ordering::Relaxed);
                self.looks.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn keyed(limit: usize) -> Keyed<u32> {
        let random = fastrand::Rng::with_seed(1);
        Keyed::new(Supervisor::new(CancellationToken::new(), (SECOND, SECOND * 30), random), limit)
    }

    fn poke(keyed: &mut Keyed<u32>, key: u32, counts: &Counts) {
        keyed.poke(key, |_, pokes| {
            let counts = counts.clone();
            move |task| counts.clone().work(task, pokes.clone())
        });
    }

    #[tokio::test(start_paused = true)]
    async fn many_pokes_of_a_key_are_one_look_and_one_task() {
        let (mut keyed, counts) = (keyed(4), Counts::default());
        for _ in 0..10 {
            poke(&mut keyed, 1, &counts);
        }
        sleep(SECOND * 10).await;
        assert_eq!(counts.starts.load(Ordering::Relaxed), 1);
        assert_eq!(counts.looks.load(Ordering::Relaxed), 1);
        // A poke while it works is looked at afterwards.
        poke(&mut keyed, 1, &counts);
        sleep(SECOND / 2).await;
        poke(&mut keyed, 1, &counts);
        sleep(SECOND * 10).await;
        assert_eq!(counts.looks.load(Ordering::Relaxed), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_than_the_limit_work_at_a_time() {
        let (mut keyed, counts) = (keyed(3), Counts::default());
        for key in 0..20 {
            poke(&mut keyed, key, &counts);
        }
        sleep(SECOND * 60).await;
        assert_eq!(counts.looks.load(Ordering::Relaxed), 20);
        assert_eq!(counts.most.load(Ordering::Relaxed), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_retired_key_ends_and_starts_anew_when_it_is_poked_again() {
        let (mut keyed, counts) = (keyed(3), Counts::default());
        for key in 0..3 {
            poke(&mut keyed, key, &counts);
        }
        sleep(SECOND * 5).await;
        keyed.retire(|key| *key != 1).await;
        assert_eq!(keyed.supervisor().health().len(), 2);
        poke(&mut keyed, 1, &counts);
        sleep(SECOND * 5).await;
        assert_eq!(counts.starts.load(Ordering::Relaxed), 4);
        keyed.poke_all();
        sleep(SECOND * 5).await;
        assert_eq!(counts.looks.load(Ordering::Relaxed), 7);
    }
}
