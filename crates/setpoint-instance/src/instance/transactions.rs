//! Transactions: changes that are collected, and committed together onto the version that they were made for.
//!
//! ```text
//!  begin ──▶ InProgress ──commit──▶ gone
//!                 ├── another transaction was committed ──▶ Outdated
//!                 └── HAProxy refused the result ─────────▶ Failed
//! ```

use std::collections::BTreeMap;

use crate::configuration::Configuration;

/// So many that failed or are outdated are remembered.
const REMEMBERED: usize = 100;

/// How far a transaction has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionStatus {
    /// It can be changed and committed.
    InProgress,
    /// HAProxy refused what it came to.
    Failed,
    /// Another one was committed meanwhile.
    Outdated,
}

/// What is shown of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Its name.
    pub id: String,
    /// The version that it was made for, while it is in progress.
    pub version: Option<u64>,
    /// How far it has come.
    pub status: TransactionStatus,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    status: TransactionStatus,
    /// What it comes to; only while it is in progress, and is not being committed.
    configuration: Option<Configuration>,
}

/// All transactions of an instance.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    entries: BTreeMap<String, Entry>,
    begun: u64,
}

/// A name that is not used twice: 122 random bits, written as a UUID.
pub fn new_id() -> String {
    let bits = fastrand::u128(..);
    let bits = bits & !(0xf << 76) | 0x4 << 76;
    let bits = bits & !(0x3 << 62) | 0x2 << 62;
    let hex = format!("{bits:032x}");
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}

impl Transactions {
    /// How many are in progress.
    pub(crate) fn open(&self) -> usize {
        self.entries.values().filter(|entry| entry.status == TransactionStatus::InProgress).count()
    }

    /// Begins one with a copy of the configuration.
    pub(crate) fn begin(&mut self, configuration: Configuration) -> Transaction {
        let (id, version) = (new_id(), configuration.version());
        self.put(id.clone(), TransactionStatus::InProgress, Some(configuration));
        Transaction { id, version: Some(version), status: TransactionStatus::InProgress }
    }

    fn put(&mut self, id: String, status: TransactionStatus, configuration: Option<Configuration>) {
        self.begun += 1;
        self.entries.insert(id, Entry { number: self.begun, status, configuration });
        while self.entries.len() - self.open() > REMEMBERED {
            let ended =
                self.entries.iter().filter(|(_, entry)| entry.status != TransactionStatus::InProgress);
            let Some(oldest) = ended.min_by_key(|(_, entry)| entry.number).map(|(id, _)| id.clone()) else {
                break;
            };
            self.entries.remove(&oldest);
        }
    }

    /// Notes one that failed without having been begun: a single change is one, too.
    pub(crate) fn failed(&mut self, id: String) {
        self.put(id, TransactionStatus::Failed, None);
    }

    /// What one that is in progress comes to.
    pub(crate) fn configuration(&mut self, id: &str) -> Option<&mut Configuration> {
        self.entries.get_mut(id)?.configuration.as_mut()
    }

    /// Takes what one comes to, for a commit: until that has ended, nobody can change it, and think that the change is part of it.
    pub(crate) fn take(&mut self, id: &str) -> Option<Configuration> {
        self.entries.get_mut(id)?.configuration.take()
    }

    /// Gives it back: it can be committed again.
    pub(crate) fn give_back(&mut self, id: &str, configuration: Configuration) {
        if let Some(entry) = self.entries.get_mut(id) {
            entry.configuration = Some(configuration);
        }
    }

    pub(crate) fn get(&self, id: &str) -> Option<Transaction> {
        self.entries.get(id).map(|entry| shown(id, entry))
    }

    /// All, in the order in which they were begun.
    pub(crate) fn list(&self) -> Vec<Transaction> {
        let mut entries: Vec<_> = self.entries.iter().collect();
        entries.sort_by_key(|(_, entry)| entry.number);
        entries.into_iter().map(|(id, entry)| shown(id, entry)).collect()
    }

    /// Removes one. Returns whether it was there.
    pub(crate) fn remove(&mut self, id: &str) -> bool {
        self.entries.remove(id).is_some()
    }

    /// Ends one without its changes.
    pub(crate) fn end(&mut self, id: &str, status: TransactionStatus) {
        if let Some(entry) = self.entries.get_mut(id) {
            (entry.status, entry.configuration) = (status, None);
        }
    }

    /// Notes that a transaction was committed: all others that were made for an older version can't be any more.
    pub(crate) fn outdate(&mut self, version: u64) {
        self.outdate_if(|held| held < version);
    }

    /// Outdates all: versions are counted from the beginning again.
    pub(crate) fn outdate_all(&mut self) {
        self.outdate_if(|_| true);
    }

    fn outdate_if(&mut self, is_old: impl Fn(u64) -> bool) {
        for entry in self.entries.values_mut() {
            if entry.configuration.as_ref().is_some_and(|configuration| is_old(configuration.version())) {
                (entry.status, entry.configuration) = (TransactionStatus::Outdated, None);
            }
        }
    }
}

fn shown(id: &str, entry: &Entry) -> Transaction {
    let version = entry.configuration.as_ref().map(Configuration::version);
    Transaction { id: id.to_owned(), version, status: entry.status }
}

#[cfg(test)]
mod tests {
    use super::*;
    use setpoint_haproxy::model::Context;

    fn configuration(version: u64) -> Configuration {
        let text = format!("# _version={version}\nglobal\n").into_bytes();
        Configuration::of(vec![("a".into(), text)], Box::leak(Box::new(Context::default()))).unwrap()
    }

    #[test]
    fn a_commit_outdates_what_was_made_for_an_older_version() {
        let mut transactions = Transactions::default();
        let (old, new) = (transactions.begin(configuration(1)), transactions.begin(configuration(2)));
        transactions.outdate(2);
        assert_eq!(transactions.get(&old.id).unwrap().status, TransactionStatus::Outdated);
        assert_eq!(transactions.get(&new.id).unwrap().version, Some(2));
        assert_eq!(transactions.open(), 1);
    }

    #[test]
    fn those_that_failed_are_not_kept_for_ever() {
        let mut transactions = Transactions::default();
        let open = transactions.begin(configuration(1));
        (0..300).for_each(|number| transactions.failed(format!("t{number}")));
        let listed = transactions.list();
        assert_eq!(listed.len(), REMEMBERED + 1);
        assert_eq!((listed[0].id.as_str(), listed[100].id.as_str()), (open.id.as_str(), "t299"));
    }

    #[test]
    fn names_are_written_as_uuids_are() {
        let id = new_id();
        assert_eq!((id.len(), id.as_bytes()[14]), (36, b'4'), "{id}");
        assert!(matches!(id.as_bytes()[19], b'8' | b'9' | b'a' | b'b'), "{id}");
        assert_ne!(id, new_id());
    }
}
