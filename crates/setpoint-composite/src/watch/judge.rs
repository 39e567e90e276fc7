//! What is to be believed of an answer. Plain state; the time is an argument.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Snapshot;
use crate::consul::Response;
use crate::structure::Entry;

/// What to do about an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It says what is known already.
    Same { snapshot: Snapshot, filtered: bool },
    /// It says something new.
    Changed { snapshot: Snapshot, filtered: bool },
    /// ACLs filtered it, and nothing whole is known: it is not used.
    Withheld,
    /// All entries are gone, for the first time.
    Suspect,
    /// All entries are gone, and the grace is not over.
    Waiting,
    /// It is not to be believed without a consistent read: the grace is over, or the server is behind.
    Ask { last_contact: Option<Duration> },
}

/// What is known of a structure.
#[derive(Debug)]
pub(super) struct Judge {
    grace: Duration,
    max_stale: Duration,
    /// What the next query gives back to Consul.
    index: u64,
    known: Option<Snapshot>,
    /// Since when all entries are gone, without that being believed yet.
    empty_since: Option<Instant>,
}

impl Judge {
    pub(super) fn new(grace: Duration, max_stale: Duration) -> Self {
        Self { grace, max_stale, index: 0, known: None, empty_since: None }
    }

    pub(super) fn index(&self) -> u64 {
        self.index
    }

    /// The next query is answered at once: after an error, nobody knows which server will answer.
    pub(super) fn start_over(&mut self) {
        self.index = 0;
    }

    /// Whether an answer's index is lower than the one before it.
    pub(super) fn went_back(&self, index: u64) -> bool {
        index < self.index
    }

    /// How much of the grace is left; none if there is none under way.
    pub(super) fn grace_left(&self, now: Instant) -> Option<Duration> {
        self.empty_since.map(|since| self.grace.saturating_sub(now - since))
    }

    /// Judges the answer to a blocking query.
    pub(super) fn hear(&mut self, response: Response, now: Instant) -> Verdict {
        // Never 0, unless to start over: a query at 0 does not block.
        self.index = if self.went_back(response.index) { 0 } else { response.index.max(1) };
        if !response.known_leader || response.last_contact > self.max_stale {
            return Verdict::Ask { last_contact: Some(response.last_contact) };
        }
        self.judge(response, now, false)
    }

    /// Judges the answer to a consistent read.
    pub(super) fn hear_consistent(&mut self, response: Response, now: Instant) -> Verdict {
        self.judge(response, now, true)
    }

    fn judge(&mut self, response: Response, now: Instant, consistent: bool) -> Verdict {
        let Response { index, entries, filtered_by_acls: filtered, .. } = response;
        if filtered {
            let Some(known) = &self.known else { return Verdict::Withheld };
            let merged = merge(&known.entries, entries);
            return self.take(merged, index, filtered);
        }
        let known_empty = self.known.as_ref().is_some_and(|known| known.entries.is_empty());
        if !entries.is_empty() || known_empty {
            return self.take(entries, index, filtered);
        }
        match self.empty_since {
            None => {
                self.empty_since = Some(now);
                Verdict::Suspect
            }
            Some(since) if now - since < self.grace => Verdict::Waiting,
            Some(_) if consistent => self.take(entries, index, filtered),
            Some(_) => Verdict::Ask { last_contact: None },
        }
    }

    fn take(&mut self, entries: Vec<Entry>, index: u64, filtered: bool) -> Verdict {
        if !filtered {
            self.empty_since = None;
        }
        if let Some(known) = &mut self.known
            && same(&known.entries, &entries)
        {
            known.index = index;
            return Verdict::Same { snapshot: known.clone(), filtered };
        }
        let snapshot = Snapshot { hash: hash(&entries), entries: entries.into(), index };
        self.known = Some(snapshot.clone());
        Verdict::Changed { snapshot, filtered }
    }
}

/// Whether two lists say the same: an index that moved without a change of the value is none.
fn same(one: &[Entry], other: &[Entry]) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).all(|(one, other)| one.key == other.key && one.value == other.value)
}

/// What is known, with what was seen of it now.
fn merge(known: &[Entry], seen: Vec<Entry>) -> Vec<Entry> {
    let mut all: BTreeMap<_, _> = known.iter().map(|entry| (entry.key.clone(), entry.clone())).collect();
    all.extend(seen.into_iter().map(|entry| (entry.key.clone(), entry)));
    all.into_values().collect()
}

fn hash(entries: &[Entry]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for entry in entries {
        (&entry.key, &entry.value).hash(&mut hasher);
    }
    hasher.finish()
}

impl From<&[Entry]> for Snapshot {
    /// A snapshot of entries at no index.
    fn from(entries: &[Entry]) -> Self {
        Self { hash: hash(entries), entries: Arc::from(entries), index: 0 }
    }
}
