//! One watch for all keys that refer to structures, however many namespaces there are.
//!
//! ```text
//!  what all keys begin with ─▶ blocking query ──something changed──▶ the keys, many in a request ─▶ each namespace
//! ```
//!
//! Of one namespace it is the key itself that is waited for; of many it is `config/`, below which other things change as
//! well: the token bucket bounds how often the keys are read for that. While nothing changes there, they are read every ten
//! seconds all the same: not every removal is reported.

use std::collections::BTreeMap;
use std::time::Duration;

use setpoint_consul::watch::{Cursor, Settings};
use setpoint_consul::{Client, Error};
use setpoint_loop::{Backoff, Supervisor, Task, TokenBucket};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use setpoint_structure::Entry;

/// How long keys may go unread while nothing changes.
const LONGEST_REST: Duration = Duration::from_secs(10);
/// The longest wait of a query: two of them, each of which Consul may draw out by a sixteenth, are within the rest.
const LONGEST_QUERY: Duration = Duration::from_millis(4_500);

/// What was observed of one key: nothing yet, or its entry, or that there is none.
pub(super) type ObservedKey = watch::Receiver<Option<Vec<Entry>>>;

/// The keys that somebody follows, or did.
type Followed = BTreeMap<String, watch::Sender<Option<Vec<Entry>>>>;

/// Follows keys.
#[derive(Debug)]
pub(super) struct References {
    followed: watch::Sender<Followed>,
}

impl References {
    /// Begins, with no keys yet; it ends with the supervisor.
    pub(super) fn start(client: &Client, settings: &Settings, supervisor: &Supervisor) -> Self {
        let followed = watch::Sender::new(Followed::new());
        let (client, settings, set) = (client.clone(), settings.clone(), followed.subscribe());
        supervisor.spawn("watch of references", move |task| {
            let watch = Watch {
                client: client.clone(),
                set: set.clone(),
                wait: settings.wait.min(LONGEST_QUERY),
                cursor: Cursor::default(),
                bucket: TokenBucket::new(settings.burst, settings.refill),
                backoff: Backoff::new(settings.first_retry, settings.longest_retry, settings.random.clone()),
                read: None,
            };
            async move {
                task.cancel.clone().run_until_cancelled(watch.run(&task)).await;
            }
        });
        Self { followed }
    }

    /// Follows a key, for as long as what is given is kept.
    pub(super) fn follow(&self, key: &str) -> ObservedKey {
        let sender = watch::Sender::new(None);
        let mut observed = sender.subscribe();
        self.followed.send_modify(|followed| {
            followed.retain(|_, sender| sender.receiver_count() > 0);
            observed = followed.entry(key.to_owned()).or_insert(sender).subscribe();
        });
        observed
    }
}

/// Waits for the next observation of a key; without a key there is never any.
pub(super) async fn next_observation(observed: Option<&mut ObservedKey>) -> Vec<Entry> {
    if let Some(observed) = observed
        && observed.changed().await.is_ok()
        && let Some(entries) = &*observed.borrow_and_update()
    {
        return entries.clone();
    }
    std::future::pending().await
}

struct Watch {
    client: Client,
    set: watch::Receiver<Followed>,
    wait: Duration,
    cursor: Cursor,
    bucket: TokenBucket,
    backoff: Backoff,
    /// Which keys were read last, at which index, and when.
    read: Option<(Vec<String>, u64, Instant)>,
}

impl Watch {
    async fn run(mut self, task: &Task) {
        let client = self.client.clone();
        loop {
            task.beat();
            let keys = self.keys();
            let (Some(first), Some(last)) = (keys.first(), keys.last()) else {
                tokio::select! {
                    changed = self.set.changed() => if changed.is_err() { return },
                    () = sleep(LONGEST_REST) => {}
                }
                continue;
            };
            self.bucket.acquire().await;
            let began = Instant::now();
            let waited = tokio::select! {
                waited = client.wait_below(common_start(first, last), self.cursor.index(), self.wait) => waited,
                Ok(()) = self.set.changed() => {
                    self.cursor.start_over();
                    continue;
                }
                () = client.changed() => {
                    self.cursor.start_over();
                    continue;
                }
            };
            let index = *waited.as_ref().unwrap_or(&0);
            let waited = waited.map(|index| self.cursor.advance(index, began.elapsed() < self.wait));
            // Where we may not list what is there, we may still read the keys, at their own pace.
            let read = match &waited {
                Ok(()) if !self.is_due(&keys, index) => Ok(()),
                Ok(()) | Err(Error::Denied(_)) => client.read_together(&keys).await.map(|entries| {
                    self.pass_on(&keys, entries);
                    self.read = Some((keys, index, Instant::now()));
                }),
                Err(_) => Ok(()),
            };
            match waited.and(read) {
                Ok(()) => self.backoff.reset(),
                Err(error) => {
                    self.cursor.start_over();
                    let pause = error.pause(&mut self.backoff).min(LONGEST_REST);
                    let milliseconds = pause.as_millis();
                    let error = error.message();
                    if self.backoff.attempts() == 1 {
                        tracing::warn!(
                            error,
                            "the structureRef keys can't be watched in Consul; they are read again in {milliseconds} ms"
                        );
                    } else {
                        tracing::debug!(error, "the structureRef keys can't be watched in Consul");
                    }
                    sleep(pause).await;
                }
            }
        }
    }

    /// Returns whether keys have to be read: something changed, they are others, or it was long ago.
    fn is_due(&self, keys: &[String], index: u64) -> bool {
        self.read.as_ref().is_none_or(|(read, at, when)| {
            read != keys || *at != index || when.elapsed() + self.wait * 17 / 16 > LONGEST_REST
        })
    }

    /// The keys that are followed, in their order.
    fn keys(&mut self) -> Vec<String> {
        let followed = self.set.borrow_and_update();
        let kept = followed.iter().filter(|(_, sender)| sender.receiver_count() > 0);
        kept.map(|(key, _)| key.clone()).collect()
    }

    /// Passes what was read of keys on to those who follow them.
    fn pass_on(&self, keys: &[String], entries: Vec<Entry>) {
        let mut found: BTreeMap<_, _> = entries.into_iter().map(|entry| (entry.key.clone(), entry)).collect();
        let followed = self.set.borrow();
        for key in keys {
            // Also what is as it was before: a key may have been written and removed again since.
            if let Some(sender) = followed.get(key) {
                sender.send_replace(Some(found.remove(key).into_iter().collect()));
            }
        }
    }
}

/// What all keys begin with that are not before the first, nor after the last.
fn common_start<'a>(first: &'a str, last: &str) -> &'a str {
    let same = first.char_indices().zip(last.chars()).take_while(|((_, one), other)| one == other);
    let end = same.last().map_or(0, |((at, one), _)| at + one.len_utf8());
    first.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_keys_are_waited_for_by_what_they_begin_with() {
        for (first, last, start) in [
            ("config/a/x", "config/a/x", "config/a/x"),
            ("config/a/x", "config/b/x", "config/"),
            ("config/shop-a/x", "config/shop/x", "config/shop"),
            ("a", "b", ""),
        ] {
            assert_eq!(common_start(first, last), start);
        }
    }
}
