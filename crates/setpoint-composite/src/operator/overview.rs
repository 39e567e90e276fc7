//! One query for all structures that have none of their own: it wakes the watches of those in which something changed.
//!
//! ```text
//!  composite/ ─▶ blocking query ─▶ a number for each composite ──another than before──▶ its watch asks once
//! ```
//!
//! Whatever Consul does not report is found when the query's wait ends, for all of them at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use setpoint_consul::watch::{Cursor, LONGEST_WAIT, Settings, Wakes};
use setpoint_consul::{Client, Error};
use setpoint_loop::{Backoff, Supervisor, Task, TokenBucket};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep};

/// What all structures are below.
const ROOT: &str = "composite/";
/// How many changes are seen at once after a quiet time, before `refill` bounds their rate: they are those of many composites.
const BURST: u32 = 8;
/// How many of those that are woken may ask at a time.
const TURNS: usize = 4;

/// The composites that are followed, each with the number that wakes its watch.
type Followed = BTreeMap<String, watch::Sender<u64>>;

/// Wakes the watches of composites.
#[derive(Debug)]
pub(super) struct Overview {
    followed: Arc<watch::Sender<Followed>>,
    turns: Arc<Semaphore>,
}

impl Overview {
    /// Begins, with no composites yet; it ends with the supervisor.
    pub(super) fn start(client: &Client, settings: &Settings, supervisor: &Supervisor) -> Self {
        let followed = Arc::new(watch::Sender::new(Followed::new()));
        let (client, settings, set) = (client.clone(), settings.clone(), Arc::clone(&followed));
        supervisor.spawn("watch of all composites", move |task| {
            let watch = Watch {
                client: client.clone(),
                changed: set.subscribe(),
                set: Arc::clone(&set),
                wait: settings.wait.min(LONGEST_WAIT),
                cursor: Cursor::default(),
                bucket: TokenBucket::new(BURST, settings.refill),
                backoff: Backoff::new(settings.first_retry, settings.longest_retry, settings.random.clone()),
                known: BTreeMap::new(),
            };
            async move {
                task.cancel.clone().run_until_cancelled(watch.run(&task)).await;
            }
        });
        Self { followed, turns: Arc::new(Semaphore::new(TURNS)) }
    }

    /// Follows a composite, for as long as what is given is kept.
    pub(super) fn follow(&self, composite: &str) -> Wakes {
        let sender = watch::Sender::new(0);
        let mut number = sender.subscribe();
        self.followed.send_modify(|followed| {
            followed.retain(|_, sender| sender.receiver_count() > 0);
            number = followed.entry(composite.to_owned()).or_insert(sender).subscribe();
        });
        Wakes { number, turns: Arc::clone(&self.turns) }
    }
}

struct Watch {
    client: Client,
    set: Arc<watch::Sender<Followed>>,
    changed: watch::Receiver<Followed>,
    wait: Duration,
    cursor: Cursor,
    bucket: TokenBucket,
    backoff: Backoff,
    /// The numbers of all composites, as they were last seen.
    known: BTreeMap<String, u64>,
}

impl Watch {
    async fn run(mut self, task: &Task) {
        let client = self.client.clone();
        loop {
            task.beat();
            if !self.is_wanted() {
                // None is followed: there is nothing to ask for.
                tokio::select! {
                    changed = self.changed.changed() => if changed.is_err() { return },
                    () = sleep(LONGEST_WAIT) => {}
                }
                continue;
            }
            self.bucket.acquire().await;
            let began = Instant::now();
            let seen = tokio::select! {
                seen = client.wait_for_folders(ROOT, self.cursor.index(), self.wait) => seen,
                () = client.changed() => {
                    self.cursor.start_over();
                    continue;
                }
            };
            match seen {
                Ok((index, folders)) => {
                    self.cursor.advance(index, began.elapsed() < self.wait);
                    self.backoff.reset();
                    self.wake(|composite| folders.get(composite) != self.known.get(composite));
                    self.known = folders;
                }
                Err(error) => {
                    self.cursor.start_over();
                    self.sleep_after(&error).await;
                }
            }
        }
    }

    /// Returns whether any composite is followed.
    fn is_wanted(&mut self) -> bool {
        self.changed.borrow_and_update().values().any(|sender| sender.receiver_count() > 0)
    }

    /// Each asks for itself while all together can't: so each finds out for itself how Consul is doing.
    async fn sleep_after(&mut self, error: &Error) {
        self.wake(|_| true);
        let pause = error.pause(&mut self.backoff).min(LONGEST_WAIT);
        let milliseconds = pause.as_millis();
        tracing::warn!(
            error = error.message(),
            "watching all composites in Consul failed; it is tried again in {milliseconds} ms"
        );
        sleep(pause).await;
    }

    fn wake(&self, changed: impl Fn(&str) -> bool) {
        for (composite, sender) in self.set.borrow().iter() {
            if changed(composite) {
                sender.send_modify(|number| *number = number.wrapping_add(1));
            }
        }
    }
}
