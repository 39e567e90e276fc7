//! Watches a structure in Consul: blocking queries, and what is to be believed of their answers.
//!
//! ```text
//!  bucket ─▶ blocking query ──answer──▶ judge ──changed──▶ Snapshot ─▶ latest-wins slot
//!    ▲            │ error                │ empty, or behind the leader
//!    │            ▼                      ▼
//!    └──────── backoff             consistent read, after a grace
//! ```
//!
//! - A return is no change: what came is compared with what is known. Only whole snapshots are passed on.
//! - An index that went back, or stood still though Consul did not wait to the end, as after a restored snapshot,
//!   and any error start over at 0.
//! - What ACLs filtered removes nothing: the entries that are known stay. Where nothing is known yet, nothing is
//!   passed on.
//! - All entries gone at once is believed after a grace, if a consistent read says the same.
//! - The token bucket bounds the rate whatever wakes the query; a quiet time saves up for a burst.
//! - Cancelling drops the request and its connection at once.

mod cursor;
mod judge;

use std::sync::Arc;
use std::time::Duration;

use setpoint_loop::{Backoff, TokenBucket, latest};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::consul::{Client, Error, Read, Response};
use crate::structure::Entry;
pub(crate) use cursor::Cursor;
use judge::{Judge, Verdict};

/// All entries of a structure at one index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The entries, in the order of their keys.
    pub entries: Arc<[Entry]>,
    /// The index that Consul gave with them.
    pub index: u64,
    /// A hash of keys and values.
    pub hash: u64,
}

/// How a structure is watched.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long a blocking query waits: at most 10 minutes. With zero, Consul is asked as often as the bucket allows.
    pub wait: Duration,
    /// What each query waits for before it is asked, where many share it.
    pub turns: Option<Arc<Semaphore>>,
    /// How many queries may follow each other at once.
    pub burst: u32,
    /// How long it takes until one more may.
    pub refill: Duration,
    /// The bound of the first pause after an error.
    pub first_retry: Duration,
    /// The bound of every pause after an error.
    pub longest_retry: Duration,
    /// How long all entries must have been gone until that is believed.
    pub removal_grace: Duration,
    /// How far behind the leader an answer may be without being asked again.
    pub max_stale: Duration,
    /// For the pauses.
    pub random: fastrand::Rng,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            wait: Duration::from_mins(1),
            turns: None,
            burst: 2,
            refill: Duration::from_secs(3),
            first_retry: Duration::from_millis(250),
            longest_retry: Duration::from_secs(20),
            removal_grace: Duration::from_secs(10),
            max_stale: Duration::from_secs(10),
            random: fastrand::Rng::new(),
        }
    }
}

/// What happens while watching.
#[derive(Debug)]
pub enum Event<'a> {
    /// Consul answered, and the answer is believed.
    Answered {
        /// Its index.
        index: u64,
        /// How many entries are known now.
        entries: usize,
        /// Whether they differ from those known before.
        changed: bool,
    },
    /// Consul did not answer, or with an error.
    Failed {
        /// Why.
        error: &'a Error,
        /// How many times in a row.
        attempts: u32,
        /// How long until the next try.
        pause: Duration,
    },
    /// Our token may not see everything, or it can't be told whether it may. Nothing is removed.
    Filtered {
        /// Whether even what is seen is not passed on, because nothing whole was seen before.
        withheld: bool,
    },
    /// All entries are gone. It is believed if they still are after a grace.
    RemovalSuspected,
    /// All entries are gone, and that is passed on.
    RemovalConfirmed,
    /// The index went back, or stood still although Consul answered early: the watch starts over.
    IndexReset {
        /// What it was.
        from: u64,
        /// What it is.
        to: u64,
    },
    /// The answer came from a server that has no leader, or is too far behind it; it is asked again.
    Stale {
        /// How far behind.
        last_contact: Duration,
    },
    /// The token or the certificates changed, and the query under way is asked anew.
    Renewed,
}

/// Is told what happens.
pub trait Observer: Send + Sync {
    /// Takes note of an event.
    fn observe(&self, event: Event<'_>);
}

impl<F: Fn(Event<'_>) + Send + Sync> Observer for F {
    fn observe(&self, event: Event<'_>) {
        self(event);
    }
}

/// Watches all entries below a prefix until it is cancelled, or until nobody takes snapshots any more.
///
/// The first snapshot is passed on as soon as there is one, and another whenever the content differs.
pub async fn watch(
    client: Client,
    prefix: String,
    settings: Settings,
    sink: latest::Sender<Snapshot>,
    cancel: CancellationToken,
    observer: impl Observer,
) {
    let backoff = Backoff::new(settings.first_retry, settings.longest_retry, settings.random.clone());
    let bucket = TokenBucket::new(settings.burst, settings.refill);
    let judge = Judge::new(settings.removal_grace, settings.max_stale);
    let (wait, turns) = (settings.wait, settings.turns);
    let mut watch = Watch { client, prefix, wait, turns, judge, backoff, bucket, sink, observer };
    cancel.run_until_cancelled(watch.run()).await;
}

/// The shortest wait that is sent: Consul takes 0 for five minutes.
const SHORTEST_WAIT: Duration = Duration::from_millis(10);

struct Watch<O> {
    client: Client,
    prefix: String,
    wait: Duration,
    turns: Option<Arc<Semaphore>>,
    judge: Judge,
    backoff: Backoff,
    bucket: TokenBucket,
    sink: latest::Sender<Snapshot>,
    observer: O,
}

impl<O: Observer> Watch<O> {
    async fn run(&mut self) {
        let (client, sink) = (self.client.clone(), self.sink.clone());
        loop {
            self.bucket.acquire().await;
            let result = tokio::select! {
                result = self.poll() => result,
                () = client.changed() => {
                    // Another token may see more, or less, at the same index.
                    self.judge.cursor.start_over();
                    self.observer.observe(Event::Renewed);
                    continue;
                }
                () = sink.closed() => return,
            };
            match result {
                Ok(Some(snapshot)) => {
                    self.backoff.reset();
                    if sink.send(snapshot).is_err() {
                        return;
                    }
                }
                Ok(None) => self.backoff.reset(),
                Err(error) => {
                    self.judge.cursor.start_over();
                    let pause = error.pause(&mut self.backoff);
                    let attempts = self.backoff.attempts();
                    self.observer.observe(Event::Failed { error: &error, attempts, pause });
                    sleep(pause).await;
                }
            }
        }
    }

    /// Asks once, and once more consistently where the answer is not to be believed by itself.
    async fn poll(&mut self) -> Result<Option<Snapshot>, Error> {
        let turns = self.turns.clone();
        let _turn = match &turns {
            // Nobody closes it.
            Some(turns) => turns.acquire().await.ok(),
            None => None,
        };
        let wait = self.judge.grace_left(Instant::now()).map_or(self.wait, |left| left.min(self.wait));
        let (before, wait) = (self.judge.cursor.index(), wait.max(SHORTEST_WAIT));
        let started = Instant::now();
        let response = self.client.list(&self.prefix, Read::Blocking { index: before, wait }).await?;
        let early = started.elapsed() < wait;
        if self.judge.cursor.must_start_over(response.index, early) {
            self.observer.observe(Event::IndexReset { from: before, to: response.index });
        }
        match self.judge.hear(response, early, Instant::now()) {
            Verdict::Ask { last_contact } => {
                if let Some(last_contact) = last_contact {
                    self.observer.observe(Event::Stale { last_contact });
                }
                let response = self.client.list(&self.prefix, Read::Consistent).await?;
                self.confirm(response).await
            }
            verdict => Ok(self.conclude(verdict)),
        }
    }

    /// Takes the answer of a consistent read. That nothing is there needs one who would see it.
    async fn confirm(&mut self, response: Response) -> Result<Option<Snapshot>, Error> {
        let empty = response.entries.is_empty() && !response.filtered_by_acls;
        if empty && !self.client.sees_what_is_filtered().await? {
            self.observer.observe(Event::Filtered { withheld: true });
            return Ok(None);
        }
        let verdict = self.judge.hear_consistent(response, Instant::now());
        Ok(self.conclude(verdict))
    }

    fn conclude(&self, verdict: Verdict) -> Option<Snapshot> {
        let answered = |snapshot: &Snapshot, changed| {
            let (index, entries) = (snapshot.index, snapshot.entries.len());
            self.observer.observe(Event::Answered { index, entries, changed });
        };
        match verdict {
            Verdict::Same { snapshot, filtered } => {
                if filtered {
                    self.observer.observe(Event::Filtered { withheld: false });
                } else {
                    answered(&snapshot, false);
                }
                None
            }
            Verdict::Changed { snapshot, filtered } => {
                if filtered {
                    self.observer.observe(Event::Filtered { withheld: false });
                } else {
                    if snapshot.entries.is_empty() {
                        self.observer.observe(Event::RemovalConfirmed);
                    }
                    answered(&snapshot, true);
                }
                Some(snapshot)
            }
            Verdict::Withheld => {
                self.observer.observe(Event::Filtered { withheld: true });
                None
            }
            Verdict::Suspect => {
                self.observer.observe(Event::RemovalSuspected);
                None
            }
            // A consistent read is never asked for twice.
            Verdict::Waiting | Verdict::Ask { .. } => None,
        }
    }
}
