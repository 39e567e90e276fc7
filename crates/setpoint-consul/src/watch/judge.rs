//! What is to be believed of an answer. Plain state; the time is an argument.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::cursor::Cursor;
use super::{Doubt, Snapshot};
use crate::{Entry, Response};

/// What to do about an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It holds what is known already.
    Same { snapshot: Snapshot, filtered: bool },
    /// It holds something new.
    Changed { snapshot: Snapshot, filtered: bool },
    /// ACLs filtered it, and nothing whole is known: it is not used.
    Withheld,
    /// Entries are gone that will be put back, or all of them, for the first time. What was known before holds on.
    Suspect { snapshot: Option<Snapshot> },
    /// They are still gone, and the grace is not over.
    Waiting { snapshot: Option<Snapshot> },
    /// It is not to be believed without a consistent read: the grace is over, or the server is behind.
    Ask { last_contact: Option<Duration> },
}

/// What is known of what is below a prefix.
pub(super) struct Judge {
    grace: Duration,
    max_stale: Duration,
    pub(super) cursor: Cursor,
    doubt: Option<Arc<dyn Doubt>>,
    /// What the keys begin with that are passed on; all if there is none.
    content: Option<String>,
    known: Option<Snapshot>,
    /// Since when entries are gone, without that being believed yet.
    doubted_since: Option<Instant>,
}

impl Judge {
    pub(super) fn new(
        grace: Duration,
        max_stale: Duration,
        doubt: Option<Arc<dyn Doubt>>,
        content: Option<String>,
    ) -> Self {
        Self { grace, max_stale, cursor: Cursor::default(), doubt, content, known: None, doubted_since: None }
    }

    /// Begins the grace anew: what would end it could not be found out.
    pub(super) fn postpone(&mut self, now: Instant) {
        self.doubted_since = self.doubted_since.map(|_| now);
    }

    /// How much of the grace is left; none if there is none under way.
    pub(super) fn grace_left(&self, now: Instant) -> Option<Duration> {
        self.doubted_since.map(|since| self.grace.saturating_sub(now - since))
    }

    /// Judges the answer to a blocking query, which came before the end of its wait or not.
    pub(super) fn judge_blocking(&mut self, response: Response, early: bool, now: Instant) -> Verdict {
        self.cursor.advance(response.index, early);
        if !response.known_leader || response.last_contact > self.max_stale {
            return Verdict::Ask { last_contact: Some(response.last_contact) };
        }
        self.judge(response, now, false)
    }

    /// Judges the answer to a consistent read.
    pub(super) fn judge_consistent(&mut self, response: Response, now: Instant) -> Verdict {
        self.judge(response, now, true)
    }

    fn judge(&mut self, response: Response, now: Instant, consistent: bool) -> Verdict {
        let Response { index, entries, filtered_by_acls: filtered, .. } = response;
        let (entries, beside): (Vec<_>, Vec<_>) = entries.into_iter().partition(|entry| {
            self.content.as_ref().is_none_or(|content| entry.key.starts_with(content.as_str()))
        });
        if filtered {
            let Some(known) = &self.known else { return Verdict::Withheld };
            let merged = merge(&known.entries, entries);
            return self.take(merged, index, filtered);
        }
        let doubtful = self.is_doubtful(&entries, &beside);
        match self.doubted_since {
            None if doubtful => {
                self.doubted_since = Some(now);
                Verdict::Suspect { snapshot: self.doubted(entries) }
            }
            None => self.take(entries, index, filtered),
            // Once there is doubt, all that was known has to be back: others put their own back one after the other.
            Some(_) if !doubtful && !self.is_missing(&entries) => self.take(entries, index, filtered),
            Some(since) if now - since < self.grace => Verdict::Waiting { snapshot: self.doubted(entries) },
            Some(_) if consistent => self.take(entries, index, filtered),
            Some(_) => Verdict::Ask { last_contact: None },
        }
    }

    /// Returns whether an answer is not to be believed at once: all entries are gone, or some that will be put back.
    fn is_doubtful(&self, entries: &[Entry], beside: &[Entry]) -> bool {
        let known = self.known.as_ref().map(|known| &known.entries[..]);
        if known.is_some_and(<[_]>::is_empty) {
            return false;
        }
        let doubts = |doubt: &Arc<dyn Doubt>| {
            doubt.lacks(known, entries, beside) || (doubt.is_disturbed() && self.is_missing(entries))
        };
        entries.is_empty() || self.doubt.as_ref().is_some_and(doubts)
    }

    /// Returns whether a key that is known is not there.
    fn is_missing(&self, entries: &[Entry]) -> bool {
        let there: BTreeSet<_> = entries.iter().map(|entry| entry.key.as_str()).collect();
        let known = self.known.iter().flat_map(|known| known.entries.iter());
        known.into_iter().any(|entry| !there.contains(entry.key.as_str()))
    }

    /// What is known, with what was answered and is not believed.
    fn doubted(&self, entries: Vec<Entry>) -> Option<Snapshot> {
        let known = self.known.clone()?;
        Some(Snapshot { doubted: Some(entries.into()), ..known })
    }

    fn take(&mut self, entries: Vec<Entry>, index: u64, filtered: bool) -> Verdict {
        if !filtered {
            self.doubted_since = None;
        }
        if let Some(known) = &mut self.known
            && same(&known.entries, &entries)
        {
            known.index = index;
            return Verdict::Same { snapshot: known.clone(), filtered };
        }
        let snapshot = Snapshot { hash: hash(&entries), entries: entries.into(), index, doubted: None };
        self.known = Some(snapshot.clone());
        Verdict::Changed { snapshot, filtered }
    }
}

/// Returns whether two lists are equal in their keys and values: an index that moved without a change of the value is none.
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
        Self { hash: hash(entries), entries: Arc::from(entries), index: 0, doubted: None }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    const GRACE: Duration = Duration::from_secs(10);

    /// Keeps an entry `ours`.
    #[derive(Default)]
    struct Ours {
        disturbed: AtomicBool,
    }

    impl Doubt for Ours {
        fn lacks(&self, known: Option<&[Entry]>, entries: &[Entry], beside: &[Entry]) -> bool {
            let has = |entries: &[Entry]| entries.iter().any(|entry| entry.key == "ours");
            known.is_none_or(has) && !has(entries) && (known.is_some() || !beside.is_empty())
        }

        fn is_disturbed(&self) -> bool {
            self.disturbed.load(Ordering::Relaxed)
        }
    }

    fn judge() -> Judge {
        Judge::new(GRACE, Duration::from_secs(10), None, None)
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
        assert_eq!(changed(&judge.judge_blocking(answer(5, &["a"]), true, now)), ["a"]);
        let mut again = answer(9, &["a"]);
        again.entries[0].modify_index = 9;
        let verdict = judge.judge_blocking(again, true, now);
        assert!(matches!(&verdict, Verdict::Same { snapshot, .. } if snapshot.index == 9), "{verdict:?}");
        assert_eq!(judge.cursor.index(), 9);
    }

    #[test]
    fn filtered_entries_are_added_and_changed_but_never_removed() {
        let (mut judge, now) = (judge(), Instant::now());
        assert_eq!(judge.judge_blocking(filtered(4, &["a"]), true, now), Verdict::Withheld);
        assert_eq!(changed(&judge.judge_blocking(answer(5, &["a", "c"]), true, now)), ["a", "c"]);
        assert_eq!(changed(&judge.judge_blocking(filtered(6, &["b"]), true, now)), ["a", "b", "c"]);
        let nothing = judge.judge_blocking(filtered(7, &[]), true, now);
        assert!(matches!(nothing, Verdict::Same { filtered: true, .. }));
        assert_eq!(
            changed(&judge.judge_blocking(answer(8, &["b"]), true, now)),
            ["b"],
            "seen as a whole again"
        );
    }

    #[test]
    fn filtered_emptiness_neither_begins_nor_ends_a_grace() {
        let (mut judge, now) = (judge(), Instant::now());
        judge.judge_blocking(answer(5, &["a"]), true, now);
        judge.judge_blocking(filtered(6, &[]), true, now);
        assert_eq!(judge.grace_left(now), None);
        assert!(matches!(judge.judge_blocking(answer(7, &[]), true, now), Verdict::Suspect { .. }));
        judge.judge_blocking(filtered(8, &[]), true, now + GRACE);
        let later = now + GRACE;
        assert_eq!(judge.judge_blocking(answer(9, &[]), true, later), Verdict::Ask { last_contact: None });
    }

    #[test]
    fn emptiness_is_suspected_then_asked_for_then_believed_once() {
        let (mut judge, now) = (judge(), Instant::now());
        judge.judge_blocking(answer(5, &["a"]), true, now);
        let suspected = judge.judge_blocking(answer(6, &[]), true, now);
        let Verdict::Suspect { snapshot: Some(snapshot) } = suspected else { panic!("{suspected:?}") };
        assert_eq!((snapshot.index, snapshot.entries.len(), snapshot.present().len()), (5, 1, 0));
        assert_eq!(judge.grace_left(now + GRACE / 4), Some(GRACE / 4 * 3));
        assert!(matches!(
            judge.judge_blocking(answer(7, &[]), true, now + GRACE / 2),
            Verdict::Waiting { .. }
        ));
        let over = now + GRACE;
        assert_eq!(judge.judge_blocking(answer(8, &[]), true, over), Verdict::Ask { last_contact: None });
        assert_eq!(changed(&judge.judge_consistent(answer(8, &[]), over)), Vec::<&str>::new());
        assert_eq!(judge.grace_left(over), None);
        assert!(matches!(judge.judge_blocking(answer(9, &[]), true, over), Verdict::Same { .. }));
    }

    #[test]
    fn what_will_be_put_back_is_waited_for_until_all_is_there_again() {
        let ours = Arc::new(Ours::default());
        let doubt = Arc::clone(&ours) as Arc<dyn Doubt>;
        let mut judge = Judge::new(GRACE, Duration::from_secs(10), Some(doubt), None);
        let now = Instant::now();
        judge.judge_blocking(answer(5, &["b", "ours"]), true, now);
        assert_eq!(
            changed(&judge.judge_blocking(answer(6, &["ours"]), true, now)),
            ["ours"],
            "others' keys may go"
        );
        assert_eq!(changed(&judge.judge_blocking(answer(7, &["b", "ours"]), true, now)), ["b", "ours"]);
        assert!(matches!(judge.judge_blocking(answer(8, &["b"]), true, now), Verdict::Suspect { .. }));
        assert!(
            matches!(judge.judge_blocking(answer(9, &["ours"]), true, now), Verdict::Waiting { .. }),
            "b is away now"
        );
        let back = judge.judge_blocking(answer(10, &["b", "ours"]), true, now);
        assert!(matches!(back, Verdict::Same { .. }), "{back:?}");
        assert_eq!(judge.grace_left(now), None);
        // What is not put back in time is believed, and does not delay what happens after that.
        judge.judge_blocking(answer(11, &["b"]), true, now);
        assert_eq!(changed(&judge.judge_consistent(answer(12, &["b"]), now + GRACE)), ["b"]);
        assert_eq!(changed(&judge.judge_blocking(answer(13, &["b", "c"]), true, now)), ["b", "c"]);

        // Where ours was put back before its absence was seen, others' may be put back too.
        judge.judge_blocking(answer(14, &["b", "ours"]), true, now);
        ours.disturbed.store(true, Ordering::Relaxed);
        assert!(matches!(judge.judge_blocking(answer(15, &["ours"]), true, now), Verdict::Suspect { .. }));
        assert!(matches!(judge.judge_blocking(answer(16, &["b", "ours"]), true, now), Verdict::Same { .. }));
    }

    #[test]
    fn what_is_beside_the_content_is_shown_to_doubt_and_is_no_news() {
        let doubt = Arc::new(Ours::default()) as Arc<dyn Doubt>;
        let mut judge = Judge::new(GRACE, Duration::from_secs(10), Some(doubt), Some("o".to_owned()));
        let now = Instant::now();
        // Nothing is known yet, and what is beside shows that there is more to come.
        let first = judge.judge_blocking(answer(4, &["other", "claim"]), true, now);
        assert_eq!(first, Verdict::Suspect { snapshot: None });
        assert_eq!(changed(&judge.judge_blocking(answer(5, &["ours", "claim"]), true, now)), ["ours"]);
        let beside = judge.judge_blocking(answer(6, &["ours", "claim", "more"]), true, now);
        assert!(matches!(beside, Verdict::Same { .. }), "{beside:?}");
        // Everything of the content is gone, whatever is left beside it.
        assert!(matches!(judge.judge_blocking(answer(7, &["claim"]), true, now), Verdict::Suspect { .. }));
    }

    #[test]
    fn an_answer_that_is_behind_is_asked_again_and_forgotten() {
        let (mut judge, now) = (judge(), Instant::now());
        let behind = Response { last_contact: Duration::from_mins(1), ..answer(5, &["a"]) };
        assert!(matches!(judge.judge_blocking(behind, true, now), Verdict::Ask { last_contact: Some(_) }));
        assert_eq!(changed(&judge.judge_consistent(answer(6, &["b"]), now)), ["b"]);
    }

    #[test]
    fn an_index_that_goes_back_or_stands_still_without_a_wait_starts_over() {
        let (mut judge, now) = (judge(), Instant::now());
        judge.judge_blocking(answer(5, &["a"]), true, now);
        judge.judge_blocking(answer(5, &["a"]), false, now);
        assert_eq!(judge.cursor.index(), 5, "the wait was over: nothing happened");
        judge.judge_blocking(answer(5, &["a"]), true, now);
        assert_eq!(judge.cursor.index(), 0);
        judge.judge_blocking(answer(5, &["a"]), true, now);
        assert_eq!(judge.cursor.index(), 5);
        judge.judge_blocking(answer(4, &["a"]), false, now);
        assert_eq!(judge.cursor.index(), 0);
        judge.judge_blocking(answer(0, &["a"]), false, now);
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
