//! What is to be believed of an answer. Plain state; the time is an argument.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Snapshot;
use super::cursor::Cursor;
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
    pub(super) cursor: Cursor,
    known: Option<Snapshot>,
    /// Since when all entries are gone, without that being believed yet.
    empty_since: Option<Instant>,
}

impl Judge {
    pub(super) fn new(grace: Duration, max_stale: Duration) -> Self {
        Self { grace, max_stale, cursor: Cursor::default(), known: None, empty_since: None }
    }

    /// How much of the grace is left; none if there is none under way.
    pub(super) fn grace_left(&self, now: Instant) -> Option<Duration> {
        self.empty_since.map(|since| self.grace.saturating_sub(now - since))
    }

    /// Judges the answer to a blocking query, which came before the end of its wait or not.
    pub(super) fn hear(&mut self, response: Response, early: bool, now: Instant) -> Verdict {
        self.cursor.advance(response.index, early);
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

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(10);

    fn judge() -> Judge {
        Judge::new(GRACE, Duration::from_secs(10))
    }

    fn answer(index: u64, keys: &[&str]) -> Response {
        Response {
            index,
            entries: keys.iter().map(|key| Entry::new(*key, "value")).collect(),
            filtered_by_acls: false,
            known_leader: true,
            last_contact: Duration::ZERO,
        }
    }

    fn filtered(index: u64, keys: &[&str]) -> Response {
        Response { filtered_by_acls: true, ..answer(index, keys) }
    }

    /// The keys of what is passed on.
    fn changed(verdict: &Verdict) -> Vec<&str> {
        match verdict {
            Verdict::Changed { snapshot, .. } => {
                snapshot.entries.iter().map(|entry| entry.key.as_str()).collect()
            }
            other => panic!("not changed: {other:?}"),
        }
    }

    #[test]
    fn a_value_that_was_written_again_is_no_change() {
        let (mut judge, now) = (judge(), Instant::now());
        assert_eq!(changed(&judge.hear(answer(5, &["a"]), true, now)), ["a"]);
        let mut again = answer(9, &["a"]);
        again.entries[0].modify_index = 9;
        let verdict = judge.hear(again, true, now);
        assert!(matches!(&verdict, Verdict::Same { snapshot, .. } if snapshot.index == 9), "{verdict:?}");
        assert_eq!(judge.cursor.index(), 9);
    }

    #[test]
    fn filtered_entries_are_added_and_changed_but_never_removed() {
        let (mut judge, now) = (judge(), Instant::now());
        assert_eq!(judge.hear(filtered(4, &["a"]), true, now), Verdict::Withheld);
        assert_eq!(changed(&judge.hear(answer(5, &["a", "c"]), true, now)), ["a", "c"]);
        assert_eq!(changed(&judge.hear(filtered(6, &["b"]), true, now)), ["a", "b", "c"]);
        let nothing = judge.hear(filtered(7, &[]), true, now);
        assert!(matches!(nothing, Verdict::Same { filtered: true, .. }));
        assert_eq!(changed(&judge.hear(answer(8, &["b"]), true, now)), ["b"], "seen as a whole again");
    }

    #[test]
    fn filtered_emptiness_neither_begins_nor_ends_a_grace() {
        let (mut judge, now) = (judge(), Instant::now());
        judge.hear(answer(5, &["a"]), true, now);
        judge.hear(filtered(6, &[]), true, now);
        assert_eq!(judge.grace_left(now), None);
        assert_eq!(judge.hear(answer(7, &[]), true, now), Verdict::Suspect);
        judge.hear(filtered(8, &[]), true, now + GRACE);
        let later = now + GRACE;
        assert_eq!(judge.hear(answer(9, &[]), true, later), Verdict::Ask { last_contact: None });
    }

    #[test]
    fn emptiness_is_suspected_then_asked_for_then_believed_once() {
        let (mut judge, now) = (judge(), Instant::now());
        judge.hear(answer(5, &["a"]), true, now);
        assert_eq!(judge.hear(answer(6, &[]), true, now), Verdict::Suspect);
        assert_eq!(judge.grace_left(now + GRACE / 4), Some(GRACE / 4 * 3));
        assert_eq!(judge.hear(answer(7, &[]), true, now + GRACE / 2), Verdict::Waiting);
        let over = now + GRACE;
        assert_eq!(judge.hear(answer(8, &[]), true, over), Verdict::Ask { last_contact: None });
        assert_eq!(changed(&judge.hear_consistent(answer(8, &[]), over)), Vec::<&str>::new());
        assert_eq!(judge.grace_left(over), None);
        assert!(matches!(judge.hear(answer(9, &[]), true, over), Verdict::Same { .. }));
    }

    #[test]
    fn an_answer_that_is_behind_is_asked_again_and_forgotten() {
        let (mut judge, now) = (judge(), Instant::now());
        let behind = Response { last_contact: Duration::from_mins(1), ..answer(5, &["a"]) };
        assert!(matches!(judge.hear(behind, true, now), Verdict::Ask { last_contact: Some(_) }));
        assert_eq!(changed(&judge.hear_consistent(answer(6, &["b"]), now)), ["b"]);
    }

    #[test]
    fn an_index_that_goes_back_or_stands_still_without_a_wait_starts_over() {
        let (mut judge, now) = (judge(), Instant::now());
        judge.hear(answer(5, &["a"]), true, now);
        judge.hear(answer(5, &["a"]), false, now);
        assert_eq!(judge.cursor.index(), 5, "the wait was over: nothing happened");
        judge.hear(answer(5, &["a"]), true, now);
        assert_eq!(judge.cursor.index(), 0);
        judge.hear(answer(5, &["a"]), true, now);
        assert_eq!(judge.cursor.index(), 5);
        judge.hear(answer(4, &["a"]), false, now);
        assert_eq!(judge.cursor.index(), 0);
        judge.hear(answer(0, &["a"]), false, now);
        assert_eq!(judge.cursor.index(), 1, "never 0 without a reason");
    }

    #[test]
    fn equal_content_has_an_equal_hash() {
        let one = Snapshot::from(&answer(1, &["a", "b"]).entries[..]);
        let mut again = answer(2, &["a", "b"]).entries;
        again[0].modify_index = 7;
        assert_eq!(one.hash, Snapshot::from(&again[..]).hash);
        assert_ne!(one.hash, Snapshot::from(&again[..1]).hash);
    }
}
