//! What differs between what is declared and what is in Consul, and the transactions that change it.

use std::collections::{BTreeMap, BTreeSet};

use setpoint_kv::{Entry, MAX_OPERATIONS, Operation};

/// A key that is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    /// The key.
    pub key: String,
    /// Its new value.
    pub value: String,
    /// Its present value as a text; none if there is no such key.
    pub old: Option<String>,
    /// The index at which it was read; 0 if there was no such key.
    pub index: u64,
    /// The number beside the value: of the reference the transition count of the leader that writes it, of other keys how often their
    /// claims have changed.
    pub flags: u64,
}

/// A key that must be as it was read, without being changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// The key.
    pub key: String,
    /// The index at which it was read.
    pub index: u64,
}

/// A key that is to be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delete {
    /// The key.
    pub key: String,
    /// Its present value as a text.
    pub old: String,
    /// The index at which it was read.
    pub index: u64,
}

/// All that differs, in the order of the keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The keys that are to be written.
    pub sets: Vec<Set>,
    /// The keys that are to be removed.
    pub deletes: Vec<Delete>,
    /// What the first transaction holds on to beside these.
    pub guard: Option<Guard>,
    /// Whether these are only the first of what differs: the rest is bound to what they write.
    pub incomplete: bool,
}

impl Changes {
    /// Returns whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty() && self.deletes.is_empty()
    }

    /// The same changes, bound to a leadership: all of them hold only while `key` is as it was read, which carries the
    /// transition count of the Lease beside its value. The first changes of a leader mark `key` with its count, so that
    /// what a former leader has still on its way is refused.
    ///
    /// Where `key` is not there, it is created first and alone: a transaction that only asks that it must not be there could still
    /// be carried out after somebody has created and removed it.
    #[must_use]
    pub fn fenced(mut self, transitions: u64, key: &str, present: &[Entry]) -> Self {
        let touched =
            self.sets.iter().any(|set| set.key == key) || self.deletes.iter().any(|gone| gone.key == key);
        let there = present.iter().find(|entry| entry.key == key).filter(|_| !touched);
        match there {
            Some(entry) if entry.flags != transitions => self.sets.push(Set {
                key: key.to_owned(),
                value: entry.text(),
                old: Some(entry.text()),
                index: entry.modify_index,
                flags: transitions,
            }),
            Some(entry) if !self.is_empty() => {
                self.guard = Some(Guard { key: key.to_owned(), index: entry.modify_index });
            }
            _ => {}
        }
        if self.sets.iter().any(|set| set.key == key && set.index == 0) {
            let all = self.sets.len() + self.deletes.len();
            self.sets.retain(|set| set.key == key);
            self.deletes.clear();
            self.incomplete = all > 1;
        }
        self.sets.iter_mut().filter(|set| set.key == key).for_each(|set| set.flags = transitions);
        self
    }

    /// The transactions to carry out one after the other, each with [`MAX_OPERATIONS`] at most. A Composite has so
    /// few keys that it is one, unless a resource comes with a long list of keys from before: what is declared is
    /// written first, then.
    pub fn transactions(&self) -> Vec<Vec<Operation<'_>>> {
        let guards = self.guard.iter().map(|guard| Operation::Check { key: &guard.key, index: guard.index });
        let sets = self.sets.iter().map(|set| Operation::Set {
            key: &set.key,
            value: &set.value,
            flags: set.flags,
            index: set.index,
        });
        let deletes = self.deletes.iter().map(|gone| Operation::Delete { key: &gone.key, index: gone.index });
        let all: Vec<_> = guards.chain(sets).chain(deletes).collect();
        all.chunks(MAX_OPERATIONS).map(<[_]>::to_vec).collect()
    }
}

/// Compares what is declared with what is there.
///
/// Declared keys are written if their value differs. Keys that are owned, and not declared any more, are removed.
/// No other key is touched.
///
/// ```
/// use std::collections::{BTreeMap, BTreeSet};
/// use setpoint_structure::{Entry, declare::changes};
///
/// let declared = BTreeMap::from([("a".into(), "1".into()), ("b".into(), "2".into())]);
/// let owned = BTreeSet::from(["a".into(), "old".into()]);
/// let present = [Entry::new("a", "1"), Entry::new("old", "0"), Entry::new("another's", "9")];
/// let changes = changes(&declared, &owned, &present);
/// assert_eq!((changes.sets[0].key.as_str(), changes.sets.len()), ("b", 1));
/// assert_eq!((changes.deletes[0].key.as_str(), changes.deletes.len()), ("old", 1));
/// ```
pub fn changes(declared: &BTreeMap<String, String>, owned: &BTreeSet<String>, present: &[Entry]) -> Changes {
    let present: BTreeMap<_, _> = present.iter().map(|entry| (entry.key.as_str(), entry)).collect();
    let set = |(key, value): (&String, &String)| {
        let there = present.get(key.as_str());
        let same = there.is_some_and(|entry| entry.value.as_deref().unwrap_or_default() == value.as_bytes());
        (!same).then(|| Set {
            key: key.clone(),
            value: value.clone(),
            old: there.map(|entry| entry.text()),
            index: there.map_or(0, |entry| entry.modify_index),
            flags: there.map_or(0, |entry| entry.flags),
        })
    };
    let delete = |key: &String| {
        let entry = present.get(key.as_str()).filter(|_| !declared.contains_key(key))?;
        Some(Delete { key: key.clone(), old: entry.text(), index: entry.modify_index })
    };
    Changes {
        sets: declared.iter().filter_map(set).collect(),
        deletes: owned.iter().filter_map(delete).collect(),
        ..Changes::default()
    }
}

/// What removes all keys that are owned, for a resource that goes.
pub fn removal(owned: &BTreeSet<String>, present: &[Entry]) -> Changes {
    changes(&BTreeMap::new(), owned, present)
}

/// The keys to remember before a transaction: those that were ours, and those that will be.
pub fn owned_before(owned: &BTreeSet<String>, declared: &BTreeMap<String, String>) -> BTreeSet<String> {
    owned.iter().chain(declared.keys()).cloned().collect()
}

/// The keys to remember after a transaction: those that are declared.
pub fn owned_after(declared: &BTreeMap<String, String>) -> BTreeSet<String> {
    declared.keys().cloned().collect()
}
