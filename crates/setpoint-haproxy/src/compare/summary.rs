//! A difference in numbers and names.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use setpoint_plan::Action;

use super::operation::{Operation, Subject};
use crate::edit::ChildKey;
use crate::model::ObjectKind;
use crate::text::SectionKind;

/// Names of sections that are new, changed or gone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Names {
    /// Those that are new.
    pub added: BTreeSet<String>,
    /// Those that stay, and change in themselves or in what stands in them.
    pub modified: BTreeSet<String>,
    /// Those that go.
    pub deleted: BTreeSet<String>,
}

/// Names of servers that are new, changed or gone, by backend.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Servers {
    /// Those that are new.
    pub added: BTreeMap<String, Vec<String>>,
    /// Those that change.
    pub modified: BTreeMap<String, Vec<String>>,
    /// Those that go.
    pub deleted: BTreeMap<String, Vec<String>>,
}

/// A difference in numbers and names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DiffSummary {
    /// How many operations create something.
    pub creates: usize,
    /// How many change something.
    pub updates: usize,
    /// How many delete something.
    pub deletes: usize,
    /// How many can be carried over only by pushing text.
    pub texts: usize,
    /// Whether `global` differs.
    pub global_changed: bool,
    /// Whether some `defaults` differs.
    pub defaults_changed: bool,
    /// Frontends by name.
    pub frontends: Names,
    /// Backends by name.
    pub backends: Names,
    /// All other sections, by what they are and are called.
    pub others: Names,
    /// Servers by backend.
    pub servers: Servers,
}

impl DiffSummary {
    /// Counts operations.
    pub fn of(operations: &[Operation]) -> Self {
        let mut summary = Self::default();
        for operation in operations {
            summary.count(operation);
        }
        // What is created or deleted as a whole is not modified as well.
        for names in [&mut summary.frontends, &mut summary.backends, &mut summary.others] {
            let Names { added, modified, deleted } = names;
            modified.retain(|name| !added.contains(name) && !deleted.contains(name));
        }
        summary
    }

    fn count(&mut self, operation: &Operation) {
        let key = &operation.section;
        match operation.action {
            Action::Create => self.creates += 1,
            Action::Delete => self.deletes += 1,
            Action::Modify | Action::Recreate => self.updates += 1,
        }
        self.texts += usize::from(operation.is_text());
        self.global_changed |= key.kind == SectionKind::Global;
        self.defaults_changed |= key.kind == SectionKind::Defaults;
        if matches!(operation.subject, Subject::Configuration { .. }) {
            self.others.modified.insert("configuration".to_owned());
            return;
        }
        let (names, name) = match (key.kind, &key.name) {
            (SectionKind::Frontend, Some(name)) => (&mut self.frontends, name.to_string()),
            (SectionKind::Backend, Some(name)) => (&mut self.backends, name.to_string()),
            _ => (&mut self.others, key.to_string()),
        };
        let whole = !matches!(operation.subject, Subject::Child { .. });
        let set = match operation.action {
            Action::Create if whole => &mut names.added,
            Action::Delete if whole => &mut names.deleted,
            _ => &mut names.modified,
        };
        set.insert(name);
        if let Subject::Child { kind: ObjectKind::Server, key: ChildKey::Name(server), .. } =
            &operation.subject
        {
            let backend = key.name.as_ref().map_or_else(|| key.to_string(), ToString::to_string);
            let servers = match operation.action {
                Action::Create => &mut self.servers.added,
                Action::Delete => &mut self.servers.deleted,
                Action::Modify | Action::Recreate => &mut self.servers.modified,
            };
            servers.entry(backend).or_default().push(server.to_string());
        }
    }

    /// Returns whether there is anything to do.
    pub fn has_changes(&self) -> bool {
        self.total_operations() > 0
    }

    /// How many operations there are.
    pub fn total_operations(&self) -> usize {
        self.creates + self.updates + self.deletes
    }

    /// How many operations are more than a change of a server, which a running HAProxy can often be told.
    pub fn structural_operations(&self) -> usize {
        let modified: usize = self.servers.modified.values().map(Vec::len).sum();
        self.total_operations().saturating_sub(modified)
    }
}
