//! Watches what is below a prefix: blocking queries, and what is to be believed of their answers.
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
//! - All entries gone at once is believed after a grace, if a consistent read says the same; so are entries gone that
//!   are known to be put back ([`Doubt`]). Until then, what was known before holds on.
//! - Nothing rests on being woken: Consul does not report the removal of a parent to those who wait for what is below it, if
//!   keys below it were removed before. So no query waits longer than [`LONGEST_WAIT`], and what its end brings is compared
//!   as anything else.
//! - The token bucket bounds the rate whatever wakes the query; a quiet time saves up for a burst.
//! - Cancelling drops the request and its connection at once.

mod cursor;
mod judge;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use setpoint_loop::{Backoff, TokenBucket, latest};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::{Client, Entry, Error, Read, Response};
pub use cursor::Cursor;
use judge::{Judge, Verdict};

/// All entries below a prefix at one index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The entries, in the order of their keys.
    pub entries: Arc<[Entry]>,
    /// The index that Consul gave with them.
    pub index: u64,
    /// A hash of keys and values.
    pub hash: u64,
    /// What Consul really answered, where that is not believed yet.
    pub doubted: Option<Arc<[Entry]>>,
}

impl Snapshot {
    /// Returns what Consul really answered, believed or not: for those who put their own entries back.
    pub fn present(&self) -> &[Entry] {
        self.doubted.as_deref().unwrap_or(&self.entries)
    }
}

/// Decides which answers are not to be believed at once.
pub trait Doubt: Send + Sync {
    /// Returns whether entries lack something that is known to have been there and that will be put back; where nothing is
    /// known yet, whether they lack anything that will be put back. `beside` is what was answered of other keys than those
    /// that are passed on.
    fn lacks(&self, known: Option<&[Entry]>, entries: &[Entry], beside: &[Entry]) -> bool;

    /// Returns whether something was put back lately: whatever else is missing may be put back by others too.
    fn is_disturbed(&self) -> bool;
}

/// How a prefix is watched.
#[derive(Clone)]
pub struct Settings {
    /// How long a blocking query waits: at most [`LONGEST_WAIT`].
    pub wait: Duration,
    /// What wakes a watch that is to hold no query of its own.
    pub wakes: Option<Wakes>,
    /// What the keys begin with that are passed on; all below the prefix if there is none. The others are shown to `doubt`.
    pub content: Option<String>,
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
    /// Which answers are not to be believed at once.
    pub doubt: Option<Arc<dyn Doubt>>,
    /// How far behind the leader an answer may be without being asked again.
    pub max_stale: Duration,
    /// For the pauses.
    pub random: fastrand::Rng,
}

/// What wakes a watch that holds no query of its own: it asks once whenever the number changes.
#[derive(Clone, Debug)]
pub struct Wakes {
    /// Changes when there is a reason to ask.
    pub number: tokio::sync::watch::Receiver<u64>,
    /// What is waited for before each question, where many share it.
    pub turns: Arc<Semaphore>,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("wait", &self.wait).finish_non_exhaustive()
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            wait: LONGEST_WAIT,
            wakes: None,
            content: None,
            burst: 2,
            refill: Duration::from_secs(3),
            first_retry: Duration::from_millis(250),
            longest_retry: Duration::from_secs(20),
            removal_grace: Duration::from_secs(10),
            doubt: None,
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
    /// Our token may not see everything, or it is not known whether it may. Nothing is removed.
    Filtered {
        /// Whether even what is seen is not passed on, because nothing whole was seen before.
        withheld: bool,
    },
    /// Entries are gone that will be put back, or all of them. It is believed if they still are after a grace.
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
    /// There was no reason to ask for a while. It is a sign of life and nothing else.
    Idle,
}

/// Observes what happens.
pub trait Observer: Send + Sync {
    /// Is called with each event.
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
    let judge = Judge::new(settings.removal_grace, settings.max_stale, settings.doubt, settings.content);
    let (wait, wakes) = (settings.wait, settings.wakes);
    let mut watch =
        Watch { client, prefix, wait, wakes, judge, backoff, bucket, sink, observer, doubted: false };
    cancel.run_until_cancelled(watch.run()).await;
}

/// The longest wait of a blocking query. What Consul does not report is found when it ends, up to a sixteenth later, at most.
/// It is so much shorter than a usual grace that all who put something back after a removal do so within the grace of any of
/// them, whenever each found out.
pub const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// How long a watch without a query of its own may give no sign of life.
const IDLE: Duration = Duration::from_secs(10);
/// The shortest wait that is sent: Consul takes 0 for five minutes.
const SHORTEST_WAIT: Duration = Duration::from_millis(10);

struct Watch<O> {
    client: Client,
    prefix: String,
    wait: Duration,
    wakes: Option<Wakes>,
    judge: Judge,
    backoff: Backoff,
    bucket: TokenBucket,
    sink: latest::Sender<Snapshot>,
    observer: O,
    /// Whether what was passed on last is doubted.
    doubted: bool,
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
                    continue;
                }
            }
            tokio::select! {
                () = self.reason_to_ask() => {}
                () = client.changed() => self.observer.observe(Event::Renewed),
                () = sink.closed() => return,
            }
        }
    }

    /// Waits until there is a reason to ask again: at once, where Consul itself lets us wait.
    async fn reason_to_ask(&mut self) {
        let Some(wakes) = &mut self.wakes else { return };
        loop {
            let grace = self.judge.grace_left(Instant::now());
            tokio::select! {
                // If nobody can wake us any more, it is asked now and then.
                woken = wakes.number.changed() => {
                    if woken.is_err() {
                        sleep(LONGEST_WAIT).await;
                    }
                    return;
                }
                () = sleep(grace.unwrap_or(IDLE)) => match grace {
                    Some(_) => return,
                    None => self.observer.observe(Event::Idle),
                },
            }
        }
    }

    /// Asks once, and once more consistently where the answer is not to be believed by itself.
    async fn poll(&mut self) -> Result<Option<Snapshot>, Error> {
        let turns = self.wakes.as_ref().map(|wakes| Arc::clone(&wakes.turns));
        let _turn = match &turns {
            // Nobody closes it.
            Some(turns) => turns.acquire().await.ok(),
            None => None,
        };
        if let Some(wakes) = &mut self.wakes {
            // What wakes us from here on may not be in the answer.
            wakes.number.mark_unchanged();
            self.judge.cursor.start_over();
        }
        let wait = self
            .judge
            .grace_left(Instant::now())
            .map_or(self.wait, |left| left.min(self.wait))
            .min(LONGEST_WAIT);
        let (before, wait) = (self.judge.cursor.index(), wait.max(SHORTEST_WAIT));
        let started = Instant::now();
        let response = self.client.list(&self.prefix, Read::Blocking { index: before, wait }).await?;
        let early = started.elapsed() < wait;
        if self.judge.cursor.must_start_over(response.index, early) {
            self.observer.observe(Event::IndexReset { from: before, to: response.index });
        }
        match self.judge.judge_blocking(response, early, Instant::now()) {
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
            // Without this the grace would be over for ever, and Consul asked again at once.
            self.judge.postpone(Instant::now());
            return Ok(None);
        }
        let verdict = self.judge.judge_consistent(response, Instant::now());
        Ok(self.conclude(verdict))
    }

    fn conclude(&mut self, verdict: Verdict) -> Option<Snapshot> {
        let doubted = std::mem::replace(
            &mut self.doubted,
            matches!(verdict, Verdict::Suspect { .. } | Verdict::Waiting { .. }),
        );
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
                // Those who put something back need to know that it is back.
                doubted.then_some(snapshot)
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
            Verdict::Suspect { snapshot } => {
                self.observer.observe(Event::RemovalSuspected);
                snapshot
            }
            Verdict::Waiting { snapshot } => snapshot,
            // A consistent read is never asked for twice.
            Verdict::Ask { .. } => None,
        }
    }
}
