//! What holds for a transform of anything.

use std::collections::BTreeSet;

use proptest::prelude::*;
use setpoint_structure::{Entry, Payload, Roles, Structure, transform};

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let namespace = prop::sample::select(vec!["a", "b", "c", "d", "e", "f"]);
    let said = prop_oneof![
        8 => prop::sample::select(vec![
            ("compositeRole", "baseline"), ("compositeRole", "satellite"), ("compositeRole", "Satellite"),
            ("bluegreenRole", "controller"), ("bluegreenRole", "origin"), ("bluegreenRole", "peer"),
            ("controllerNamespace", "a"), ("controllerNamespace", "b"), ("controllerNamespace", "z"),
        ]),
        1 => prop::sample::select(vec![
            ("compositeRole", " baseline"), ("bluegreenRole", "green"), ("bluegreenRole", ""), ("color", "red"),
        ]),
    ];
    let entry =
        (namespace, said, prop::bool::weighted(0.03)).prop_map(|(namespace, (attribute, value), null)| {
            let key = format!("composite/x/structure/{namespace}/{attribute}");
            Entry { value: (!null).then(|| value.as_bytes().to_vec()), ..Entry::new(key, "") }
        });
    prop::collection::vec(entry, 0..24)
}

fn roles() -> impl Strategy<Value = Roles> {
    let name = || prop::option::of(prop::sample::select(vec!["a", "b", "c", "d", "e", "f", "old"]));
    (name(), name(), name()).prop_map(|(controller, origin, peer)| Roles {
        controller: controller.map(str::to_owned),
        origin: origin.map(str::to_owned),
        peer: peer.map(str::to_owned),
    })
}

fn previous() -> impl Strategy<Value = Option<Payload>> {
    let structure = (prop::option::of(roles()), prop::collection::vec(roles(), 0..3));
    let payload = structure.prop_map(|(baseline, satellites)| Payload {
        cloud_provider: "Other".to_owned(),
        composite: Structure { baseline, satellites },
    });
    prop::option::of(payload)
}

/// The last entry of each key, in the order of the keys: as Consul lists them.
fn listed(entries: &[Entry]) -> Vec<Entry> {
    let keys: BTreeSet<_> = entries.iter().map(|entry| &entry.key).collect();
    keys.into_iter().filter_map(|key| entries.iter().rfind(|entry| entry.key == *key).cloned()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_order_of_entries_does_not_matter(entries in entries(), previous in previous(), seed: u64) {
        let entries = listed(&entries);
        let mut shuffled = entries.clone();
        fastrand::Rng::with_seed(seed).shuffle(&mut shuffled);
        prop_assert_eq!(
            transform(&entries, "OnPrem", previous.as_ref()),
            transform(&shuffled, "OnPrem", previous.as_ref())
        );
    }

    #[test]
    fn a_transform_of_its_own_result_changes_nothing(entries in entries(), previous in previous()) {
        let (once, issues) = transform(&entries, "OnPrem", previous.as_ref());
        let (twice, again) = transform(&entries, "OnPrem", Some(&once));
        prop_assert_eq!(once.to_json(), twice.to_json());
        prop_assert_eq!(issues.len(), again.len());
    }

    #[test]
    fn what_is_written_is_read_back(entries in entries(), previous in previous()) {
        let (payload, _) = transform(&entries, "OnPrem", previous.as_ref());
        prop_assert_eq!(Payload::from_json(&payload.to_json()).unwrap(), payload);
    }

    #[test]
    fn every_namespace_is_named_once_or_is_in_an_issue(entries in entries()) {
        let (payload, issues) = transform(&entries, "OnPrem", None);
        let groups = payload.composite.baseline.iter().chain(&payload.composite.satellites);
        let named: Vec<_> = groups.flat_map(Roles::namespaces).collect();
        let unique: BTreeSet<_> = named.iter().copied().collect();
        prop_assert_eq!(named.len(), unique.len(), "{:?}", named);
        for entry in listed(&entries) {
            let namespace = entry.key.split('/').nth(3).unwrap();
            let placed = entry.key.ends_with("compositeRole") && entry.text().trim() != "";
            let mentioned = issues.iter().any(|issue| {
                issue.subject.contains(&format!("/{namespace}/"))
                    || issue.subject == namespace
                    || issue.message.contains(&format!("`{namespace}`"))
                    // In a group that is ambiguous for the sake of others.
                    || issue.message.contains("the group is left out")
            });
            prop_assert!(!placed || unique.contains(namespace) || mentioned, "{}: {:?}", namespace, issues);
        }
    }

    #[test]
    fn no_namespace_is_kept_beside_itself(entries in entries(), previous in previous()) {
        let (payload, _) = transform(&entries, "OnPrem", previous.as_ref());
        let groups: Vec<_> = payload.composite.baseline.iter().chain(&payload.composite.satellites).collect();
        for (at, one) in groups.iter().enumerate() {
            for other in groups.iter().skip(at + 1) {
                prop_assert!(one.namespaces().all(|name| other.namespaces().all(|second| second != name)));
            }
        }
    }
}
