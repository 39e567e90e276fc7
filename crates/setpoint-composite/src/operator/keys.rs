//! The keys of a Composite in Consul: written, put back, moved and removed.

use std::collections::{BTreeMap, BTreeSet};

use kube::ResourceExt as _;

use super::record::{RecordError, Records};
use crate::api::{Composite, CompositeSpec};
use crate::consul;
use crate::declare::{Baseline, Changes, Declaration, changes, owned_before, removal, structure_ref_key};
use crate::lease::{Fence, Fenced};
use crate::structure::Entry;

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

/// The keys that belong to a Composite, as its status remembers them.
pub(super) fn owned(composite: &Composite) -> BTreeSet<String> {
    composite.status.as_ref().map(|status| status.owned_keys.clone()).unwrap_or_default()
}

/// Whether entries show all declared keys below a prefix as they should be.
pub(super) fn intact(declared: &BTreeMap<String, String>, prefix: &str, entries: &[Entry]) -> bool {
    let below: BTreeMap<_, _> = declared
        .iter()
        .filter(|(key, _)| key.starts_with(prefix))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    changes(&below, &BTreeSet::new(), entries).is_empty()
}

/// Works on the keys of Composites.
#[derive(Debug)]
pub(super) struct Keys<'a> {
    pub(super) consul: &'a consul::Client,
    pub(super) records: &'a Records,
    pub(super) fence: &'a Fence,
}

impl Keys<'_> {
    /// Makes Consul hold what is declared, and nothing that was owned and is not declared any more; gives the Composite
    /// as it is then, and whether anything was written.
    ///
    /// The keys are remembered on the Composite before they are written, so that a crash leaves none that nobody knows.
    pub(super) async fn write(
        &self,
        composite: Composite,
        declared: &BTreeMap<String, String>,
    ) -> Result<(Composite, bool), (Composite, KeysError)> {
        let mut composite = composite;
        let mut conflict = None;
        for _ in 0..ROUNDS {
            let owned = owned(&composite);
            let remembered = owned_before(&owned, declared);
            let present = match self.consul.read(remembered.iter().map(String::as_str)).await {
                Ok(present) => present,
                Err(error) => return Err((composite, error.into())),
            };
            let changes = self.in_term(changes(declared, &owned, &present), &composite, &present);
            if changes.is_empty() {
                return Ok((composite, conflict.is_some()));
            }
            if remembered != owned {
                let mut status = composite.status.clone().unwrap_or_default();
                status.owned_keys = remembered;
                let before = composite.clone();
                composite = match self.records.tell(composite, status).await {
                    Ok(told) => told,
                    Err(error) => return Err((before, error.into())),
                };
            }
            if let Err(fenced) = self.fence.check() {
                return Err((composite, fenced.into()));
            }
            match self.consul.apply(&changes).await {
                Ok(()) => return Ok((composite, true)),
                Err(error @ consul::Error::Conflict(_)) => conflict = Some(error),
                Err(error) => return Err((composite, error.into())),
            }
        }
        let conflict = conflict.unwrap_or_else(|| consul::Error::Conflict("again and again".to_owned()));
        Err((composite, conflict.into()))
    }

    /// Ties changes to our term, by the key that every Composite of the namespace has.
    fn in_term(&self, changes: Changes, composite: &Composite, present: &[Entry]) -> Changes {
        let term = u64::try_from(self.fence.transitions()).unwrap_or_default();
        let key = structure_ref_key(&composite.namespace().unwrap_or_default());
        changes.in_term(term, &key, present)
    }

    /// Removes the keys that a Composite owns, except those that others declare.
    pub(super) async fn remove(
        &self,
        composite: &Composite,
        owned: &BTreeSet<String>,
        kept: &BTreeSet<String>,
    ) -> Result<(), KeysError> {
        let gone: BTreeSet<_> = owned.difference(kept).cloned().collect();
        let mut conflict = None;
        for _ in 0..ROUNDS {
            let present = self.consul.read(gone.iter().map(String::as_str)).await?;
            let changes = self.in_term(removal(&gone, &present), composite, &present);
            if changes.is_empty() {
                return Ok(());
            }
            self.fence.check()?;
            match self.consul.apply(&changes).await {
                Ok(()) => return Ok(()),
                Err(error @ consul::Error::Conflict(_)) => conflict = Some(error),
                Err(error) => return Err(error.into()),
            }
        }
        Err(conflict.unwrap_or_else(|| consul::Error::Conflict("again and again".to_owned())).into())
    }
}
