//! The keys of a Composite in Consul: written, put back, moved and removed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::ResourceExt as _;
use setpoint_consul as consul;
use setpoint_kube::lease::{Fence, Fenced};
use setpoint_kube::records::{RecordError, Records};
use tokio::time::Instant;

use super::contest::Contest;
use super::reconciler::write_status;
use super::structures::Expected;
use crate::api::{Composite, CompositeSpec};
use setpoint_structure::declare::{
    Baseline, Changes, Claimant, Conflict, Declaration, Resolution, Set, changes, is_claim, ownable,
    owned_before, resolve, structure_ref_key, to_read,
};
use setpoint_structure::{Entry, Key};

/// How often in a row keys that change under our hands are read anew.
const ROUNDS: usize = 5;

/// Why Consul does not hold the keys that it should.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeysError {
    #[error(transparent)]
    Consul(#[from] consul::Error),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Fenced(#[from] Fenced),
}

/// Why Consul does not hold the keys, in one word for the condition.
pub(super) fn reason(error: &consul::Error) -> &'static str {
    match error {
        consul::Error::Denied(_) => "ConsulDenied",
        consul::Error::Conflict(_) => "ConsulConflict",
        consul::Error::Overloaded { .. } => "ConsulOverloaded",
        _ => "ConsulUnavailable",
    }
}

/// What a Composite declares, as plain data.
pub fn declaration(namespace: &str, spec: &CompositeSpec) -> Declaration {
    let owned = |name: Option<&str>| name.map(str::to_owned);
    Declaration {
        operator_namespace: namespace.to_owned(),
        origin: spec.origin_namespace.clone(),
        controller: owned(spec.controller()),
        peer: owned(spec.peer()),
        baseline: spec.baseline.as_ref().map(|baseline| Baseline {
            origin: baseline.origin_namespace.clone(),
            controller: owned(baseline.controller()),
            peer: owned(baseline.peer()),
        }),
    }
}

/// The keys that belong to a Composite, as its status remembers them. Somebody may have written any key there: only those
/// that it can own count.
pub fn owned(composite: &Composite) -> BTreeSet<String> {
    let remembered = composite.status.as_ref().map(|status| &status.owned_keys);
    remembered.map(|keys| ownable(&composite.namespace().unwrap_or_default(), keys)).unwrap_or_default()
}

/// Returns whether entries show all declared keys below a prefix as they should be.
pub(super) fn intact(declared: &BTreeMap<String, String>, prefix: &str, entries: &[Entry]) -> bool {
    let below: BTreeMap<_, _> = declared
        .iter()
        .filter(|(key, _)| key.starts_with(prefix))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    changes(&below, &BTreeSet::new(), entries).is_empty()
}

/// Carries out changes: all of them, or with [`consul::Error::Conflict`] none of the transaction that failed.
pub async fn apply(client: &consul::Client, changes: &Changes) -> Result<(), consul::Error> {
    for operations in changes.transactions() {
        client.transact(&operations).await?;
    }
    Ok(())
}

/// What became of the keys of a Composite.
#[derive(Debug)]
pub(super) struct Written {
    /// The Composite as it is then.
    pub(super) composite: Composite,
    /// Whether anything was written.
    pub(super) wrote: bool,
    /// The keys whose declared value does not hold.
    pub(super) conflicts: Vec<Conflict>,
    /// The value that each declared key has now.
    pub(super) expected: BTreeMap<String, String>,
}

/// Works on the keys of Composites.
#[derive(Debug)]
pub(super) struct Keys<'a> {
    pub(super) consul: &'a consul::Client,
    pub(super) records: &'a Records<Composite>,
    pub(super) fence: &'a Fence,
    /// What was kept before, if anything was.
    pub(super) kept: Option<Kept<'a>>,
}

/// What a Composite keeps in Consul, so that it is seen what something else has changed there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept<'a> {
    /// What is kept in the structure, shared with all that follow it.
    pub(super) expected: &'a Expected,
    /// The values with which keys were last seen, or written.
    pub(super) before: &'a BTreeMap<String, String>,
    /// How often something else has changed them.
    pub(super) contest: &'a Mutex<Contest>,
}

/// What is to be done about changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// They are carried out.
    Now,
    /// They only put back what something else keeps changing, and have to wait.
    Later,
}

impl Keys<'_> {
    /// Claims what is declared and makes Consul hold it, as far as no older claim has another value; gives up the claims of what
    /// was owned and is not declared any more.
    ///
    /// The keys are remembered on the Composite before they are written, so that a crash leaves none that nobody knows.
    pub(super) async fn write(
        &self,
        mut composite: Composite,
        declared: &BTreeMap<String, String>,
    ) -> Result<Written, (Composite, KeysError)> {
        let claimant = claimant(&composite);
        let (mut wrote, mut refused) = (false, None);
        for _ in 0..ROUNDS {
            let owned = owned(&composite);
            let remembered = owned_before(&owned, declared);
            let present = match self.read(&claimant, &remembered).await {
                Ok(present) => present,
                Err(error) => return Err((composite, error.into())),
            };
            let Resolution { changes, conflicts, expected } =
                resolve(&claimant, declared, &owned, &BTreeSet::new(), &present);
            let changes = self.fenced(changes, &claimant, &present);
            if changes.is_empty() {
                self.settled();
                return Ok(Written { composite, wrote: wrote || refused.is_some(), conflicts, expected });
            }
            // What others change between two rounds is the same contest.
            if !wrote && refused.is_none() && self.turn_of(&changes, &claimant) == Turn::Later {
                return Ok(Written { composite, wrote: false, conflicts, expected });
            }
            if remembered != owned {
                let mut status = composite.status.clone().unwrap_or_default();
                status.owned_keys = remembered;
                let before = composite.clone();
                composite = match write_status(self.records, self.fence, composite, status).await {
                    Ok(written) => written,
                    Err(error) => return Err((before, error.into())),
                };
            }
            if let Err(fenced) = self.fence.check() {
                return Err((composite, fenced.into()));
            }
            self.announce_repairs(&changes);
            match apply(self.consul, &changes).await {
                Ok(()) if changes.incomplete => wrote = true,
                Ok(()) => return Ok(Written { composite, wrote: true, conflicts, expected }),
                Err(error @ consul::Error::Conflict(_)) => refused = Some(error),
                Err(error) => return Err((composite, error.into())),
            }
        }
        Err((composite, refusal(refused).into()))
    }

    /// Returns whether changes that put back what something else has changed are to be carried out now.
    fn turn_of(&self, changes: &Changes, claimant: &Claimant) -> Turn {
        let Some(Kept { before, contest, .. }) = self.kept else { return Turn::Now };
        let changed = |set: &&Set| set.old.as_ref() != Some(&set.value);
        let undone = |set: &&Set| before.get(&set.key) == Some(&set.value);
        let mut real = changes.sets.iter().filter(changed);
        let Some(first) = real.clone().find(undone) else {
            self.settled();
            return Turn::Now;
        };
        let found = first.old.as_ref().map_or("gone".to_owned(), |old| format!("`{old}`"));
        let (key, value) = (&first.key, &first.value);
        let change = format!(
            "something else keeps changing `{key}`, which is {found} where Composite `{claimant}` keeps `{value}`"
        );
        let may = lock(contest).take(change, Instant::now());
        // What was never there before does not wait for what is contested. Claims go and come with their keys.
        let more = !changes.deletes.is_empty() || real.any(|set| !undone(&set) && !is_claim(&set.key));
        if may || more { Turn::Now } else { Turn::Later }
    }

    /// Records that nothing else has changed what was kept.
    fn settled(&self) {
        if let Some(kept) = &self.kept {
            lock(kept.contest).settled();
        }
    }

    /// Announces that keys are about to be put back which something else removed, before anybody sees them again.
    fn announce_repairs(&self, changes: &Changes) {
        let Some(Kept { expected, before, .. }) = self.kept else { return };
        let put_back = |set: &Set| {
            let was_there = before.get(&set.key) == Some(&set.value);
            was_there && set.old.as_ref() != Some(&set.value) && Key::parse(&set.key).is_some()
        };
        if changes.sets.iter().any(put_back) && changes.deletes.is_empty() {
            expected.disturb();
        }
    }

    /// Gives up the claims of a Composite. A key goes with its last claim; one that nobody claims goes unless it is in `kept`.
    pub(super) async fn remove(
        &self,
        composite: &Composite,
        kept: &BTreeSet<String>,
    ) -> Result<(), KeysError> {
        let (claimant, owned) = (claimant(composite), owned(composite));
        let mut refused = None;
        for _ in 0..ROUNDS {
            let present = self.read(&claimant, &owned).await?;
            let resolution = resolve(&claimant, &BTreeMap::new(), &owned, kept, &present);
            let changes = self.fenced(resolution.changes, &claimant, &present);
            if changes.is_empty() {
                return Ok(());
            }
            self.fence.check()?;
            match apply(self.consul, &changes).await {
                Ok(()) => return Ok(()),
                Err(error @ consul::Error::Conflict(_)) => refused = Some(error),
                Err(error) => return Err(error.into()),
            }
        }
        Err(refusal(refused).into())
    }

    /// Drops the claims of a Composite, and leaves the keys as they are.
    pub(super) async fn unclaim(&self, composite: &Composite) -> Result<(), KeysError> {
        let (claimant, owned) = (claimant(composite), owned(composite));
        let present = self.read(&claimant, &owned).await?;
        let resolution = resolve(&claimant, &BTreeMap::new(), &owned, &BTreeSet::new(), &present);
        let mut changes = resolution.changes;
        // The value of a key by another claim is written by its claimant.
        changes.sets.clear();
        changes.deletes.retain(|gone| is_claim(&gone.key));
        self.fence.check()?;
        Ok(apply(self.consul, &changes).await?)
    }

    /// Reads keys with their claims, and the reference of the namespace.
    async fn read(&self, claimant: &Claimant, keys: &BTreeSet<String>) -> Result<Vec<Entry>, consul::Error> {
        let read: Vec<_> = to_read(&claimant.namespace, keys).into_iter().collect();
        self.consul.read_trees(&read).await
    }

    /// Binds changes to our leadership, by the key that every Composite of the namespace has.
    fn fenced(&self, changes: Changes, claimant: &Claimant, present: &[Entry]) -> Changes {
        let transitions = u64::try_from(self.fence.transitions()).unwrap_or_default();
        changes.fenced(transitions, &structure_ref_key(&claimant.namespace), present)
    }
}

/// Who a Composite is in a claim.
pub fn claimant(composite: &Composite) -> Claimant {
    Claimant { namespace: composite.namespace().unwrap_or_default(), name: composite.name_any() }
}

/// Nothing under this lock can be half done, so a panic elsewhere does not spoil it.
fn lock(contest: &Mutex<Contest>) -> MutexGuard<'_, Contest> {
    contest.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refusal(refused: Option<consul::Error>) -> consul::Error {
    refused.unwrap_or_else(|| consul::Error::Conflict("the keys changed in every attempt".to_owned()))
}
