//! Which Composite of a namespace counts: pure.

use std::sync::Arc;

use kube::ResourceExt;

use crate::api::Composite;

/// The Composites of one namespace.
#[derive(Clone, Debug, Default)]
pub struct NamespaceComposites {
    /// The one that counts: the oldest that stays.
    pub winner: Option<Arc<Composite>>,
    /// The others that stay.
    pub others: Vec<Arc<Composite>>,
    /// Those that are being deleted.
    pub leaving: Vec<Arc<Composite>>,
}

/// Sorts the Composites of a namespace: the oldest wins, and of equally old ones the first by name.
pub fn sort_composites(mut all: Vec<Arc<Composite>>) -> NamespaceComposites {
    let age = |composite: &Composite| composite.creation_timestamp().map(|time| time.0);
    all.sort_by_key(|one| (age(one), one.name_any()));
    let (leaving, staying): (Vec<_>, Vec<_>) = all.into_iter().partition(|composite| composite.is_leaving());
    let mut staying = staying.into_iter();
    NamespaceComposites { winner: staying.next(), others: staying.collect(), leaving }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn composite(name: &str, created: &str, leaving: bool) -> Arc<Composite> {
        let mut value = json!({
            "apiVersion": "core.netcracker.com/v1",
            "kind": "Composite",
            "subKind": "CompositeStructure",
            "metadata": { "name": name, "creationTimestamp": created },
            "spec": { "originNamespace": "o" },
        });
        if leaving {
            value["metadata"]["deletionTimestamp"] = json!(created);
        }
        Arc::new(serde_json::from_value(value).unwrap())
    }

    #[test]
    fn the_oldest_that_stays_wins_and_equals_go_by_name() {
        let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
        let found = sort_composites(vec![
            composite("a", late, false),
            composite("c", early, false),
            composite("b", early, false),
            composite("0", early, true),
        ]);
        let names = |all: &[Arc<Composite>]| all.iter().map(|one| one.name_any()).collect::<Vec<_>>();
        assert_eq!(found.winner.unwrap().name_any(), "b");
        assert_eq!(names(&found.others), ["c", "a"]);
        assert_eq!(names(&found.leaving), ["0"]);
        assert!(sort_composites(Vec::new()).winner.is_none());
    }
}
