//! What a Composite declares, and what that changes in Consul: the original's updater by its cases, without its
//! tree deletes.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use setpoint_kv::{MAX_OPERATIONS, Operation};
use setpoint_structure::declare::{
    Baseline, Changes, Declaration, after, changes, data_changes, owned_after, owned_before, removal,
    structure_ref_key,
};
use setpoint_structure::{Entry, transform};

fn plain(namespace: &str, baseline: Option<&str>) -> Declaration {
    Declaration {
        operator_namespace: namespace.to_owned(),
        origin: namespace.to_owned(),
        controller: None,
        peer: None,
        baseline: baseline.map(|origin| Baseline { origin: origin.to_owned(), controller: None, peer: None }),
    }
}

fn bluegreen(name: &str, operator: &str, baseline: Option<&str>) -> Declaration {
    Declaration {
        operator_namespace: operator.to_owned(),
        origin: format!("{name}-o"),
        controller: Some(format!("{name}-c")),
        peer: Some(format!("{name}-p")),
        ..plain("", baseline)
    }
}

fn lines(declaration: &Declaration) -> Vec<String> {
    declaration.keys().into_iter().map(|(key, value)| format!("{key}={value}")).collect()
}

/// Carries changes out on a list of entries, as Consul would.
fn apply(present: &mut Vec<Entry>, changes: &Changes, index: u64) {
    for operation in changes.transactions().into_iter().flatten() {
        match operation {
            Operation::Set { key, value, flags, index: read } => {
                let found = present.iter().position(|entry| entry.key == key);
                assert_eq!(found.map_or(0, |at| present[at].modify_index), read, "{key}");
                present.retain(|entry| entry.key != key);
                present.push(Entry { modify_index: index, flags, ..Entry::new(key, value) });
            }
            Operation::Delete { key, index } => {
                let entry = present.iter().find(|entry| entry.key == key).expect("it was read");
                assert_eq!(entry.modify_index, index);
                present.retain(|entry| entry.key != key);
            }
            Operation::Check { key, index } => {
                let entry = present.iter().find(|entry| entry.key == key).expect("it was read");
                assert_eq!(entry.modify_index, index);
            }
        }
    }
}

#[test]
fn a_plain_baseline_sets_its_role_and_the_reference() {
    let declaration = plain("bl-o", None);
    assert_eq!(declaration.composite_id(), "bl-o");
    assert_eq!(
        lines(&declaration),
        [
            "composite/bl-o/structure/bl-o/compositeRole=baseline",
            "config/bl-o/application/composite/structureRef=composite/bl-o/structure",
        ]
    );
}

#[test]
fn a_plain_satellite_is_in_its_baselines_structure() {
    let declaration = plain("sat-o", Some("bl-o"));
    assert_eq!(declaration.composite_id(), "bl-o");
    assert_eq!(
        lines(&declaration),
        [
            "composite/bl-o/structure/sat-o/compositeRole=satellite",
            "config/sat-o/application/composite/structureRef=composite/bl-o/structure",
        ]
    );
}

#[test]
fn a_plain_part_is_that_of_the_namespace_the_resource_is_in() {
    let declaration = Declaration { origin: "elsewhere".to_owned(), ..plain("here", Some("bl-o")) };
    assert_eq!(lines(&declaration)[0], "composite/bl-o/structure/here/compositeRole=satellite");
}

#[test]
fn a_blue_green_baseline_sets_all_three_members() {
    assert_eq!(
        lines(&bluegreen("bl", "bl-c", None)),
        [
            "composite/bl-o/structure/bl-c/bluegreenRole=controller",
            "composite/bl-o/structure/bl-c/compositeRole=baseline",
            "composite/bl-o/structure/bl-o/bluegreenRole=origin",
            "composite/bl-o/structure/bl-o/compositeRole=baseline",
            "composite/bl-o/structure/bl-o/controllerNamespace=bl-c",
            "composite/bl-o/structure/bl-p/bluegreenRole=peer",
            "composite/bl-o/structure/bl-p/compositeRole=baseline",
            "composite/bl-o/structure/bl-p/controllerNamespace=bl-c",
            "config/bl-c/application/composite/structureRef=composite/bl-o/structure",
        ]
    );
}

#[test]
fn a_blue_green_satellite_of_a_blue_green_baseline_is_named_by_its_origin() {
    let baseline = Baseline {
        origin: "bl-o".to_owned(),
        controller: Some("bl-c".to_owned()),
        peer: Some("bl-p".to_owned()),
    };
    let declaration = Declaration { baseline: Some(baseline), ..bluegreen("sat", "sat-o", None) };
    let keys = declaration.keys();
    assert_eq!(keys.len(), 9);
    assert_eq!(keys["composite/bl-o/structure/sat-p/compositeRole"], "satellite");
    assert_eq!(keys["config/sat-o/application/composite/structureRef"], "composite/bl-o/structure");
}

#[test]
fn what_is_declared_is_what_is_published() {
    let parts =
        [bluegreen("bl", "bl-c", None), bluegreen("sat", "sat-c", Some("bl-o")), plain("x", Some("bl-o"))];
    let entries: Vec<_> =
        parts.iter().flat_map(Declaration::keys).map(|(key, value)| Entry::new(key, value)).collect();
    let (payload, issues) = transform(&entries, "OnPrem", None);
    assert_eq!(issues, []);
    assert_eq!(
        payload.to_json(),
        concat!(
            r#"{"cloudProvider":"OnPrem","composite":{"baseline":{"controller":"bl-c","origin":"bl-o","peer":"bl-p"},"#,
            r#""satellites":[{"controller":"sat-c","origin":"sat-o","peer":"sat-p"},{"origin":"x"}]}}"#
        )
    );
}

#[test]
fn what_is_there_already_is_not_written_again() {
    let declared = bluegreen("bl", "bl-c", None).keys();
    let present: Vec<_> = declared.iter().map(|(key, value)| Entry::new(key, value)).collect();
    assert!(changes(&declared, &owned_after(&declared), &present).is_empty());
}

#[test]
fn an_own_key_that_something_else_removed_or_changed_is_put_back() {
    let declared = plain("bl", None).keys();
    let mut present: Vec<_> = declared.iter().map(|(key, value)| Entry::new(key, value)).collect();
    present[0] = Entry { modify_index: 7, ..Entry::new(&present[0].key, "satellite") };
    let gone = present.remove(1);
    let changes = changes(&declared, &owned_after(&declared), &present);
    assert_eq!(changes.deletes, []);
    let sets: Vec<_> = changes.sets.iter().map(|set| (&set.key, &set.old, set.index)).collect();
    assert_eq!(
        sets,
        [(&present[0].key, &Some("satellite".to_owned()), 7), (&gone.key, &None, 0)],
        "each bound to what was read"
    );
}

#[test]
fn leaving_blue_green_removes_the_members_and_nothing_else() {
    let before = bluegreen("bl", "bl-c", None).keys();
    let mut present: Vec<_> = before.iter().map(|(key, value)| Entry::new(key, value)).collect();
    present.push(Entry::new("composite/bl-o/structure/other/compositeRole", "satellite"));
    let declared = Declaration { controller: None, peer: None, ..bluegreen("bl", "bl-c", None) }.keys();
    let changes = changes(&declared, &owned_after(&before), &present);
    apply(&mut present, &changes, 9);
    let mut left: Vec<_> = present.iter().map(|entry| entry.key.as_str()).collect();
    left.sort_unstable();
    assert_eq!(
        left,
        [
            "composite/bl-o/structure/bl-c/compositeRole",
            "composite/bl-o/structure/other/compositeRole",
            "config/bl-c/application/composite/structureRef",
        ]
    );
}

#[test]
fn a_changed_composite_id_moves_the_keys_in_one_transaction() {
    let before = plain("sat", Some("one")).keys();
    let mut present: Vec<_> = before.iter().map(|(key, value)| Entry::new(key, value)).collect();
    let declared = plain("sat", Some("two")).keys();
    let changes = changes(&declared, &owned_after(&before), &present);
    assert_eq!(changes.transactions().len(), 1);
    apply(&mut present, &changes, 5);
    let now: BTreeMap<_, _> = present.iter().map(|entry| (entry.key.clone(), entry.text())).collect();
    assert_eq!(now, declared);
}

#[test]
fn a_resource_that_goes_removes_all_that_it_owned_and_is_still_there() {
    let declared = bluegreen("bl", "bl-c", None).keys();
    let mut present: Vec<_> = declared.iter().map(|(key, value)| Entry::new(key, value)).collect();
    present.pop();
    present.push(Entry::new("composite/bl-o/structure/other/compositeRole", "satellite"));
    let changes = removal(&owned_after(&declared), &present);
    apply(&mut present, &changes, 5);
    assert_eq!(present.len(), 1, "{present:?}");
}

#[test]
fn a_crash_between_the_two_writes_of_owned_keys_leaves_no_key_that_nobody_knows() {
    let (old, new) = (plain("sat", Some("one")).keys(), plain("sat", Some("two")).keys());
    let noted = owned_before(&owned_after(&old), &new);
    assert!(old.keys().chain(new.keys()).all(|key| noted.contains(key)));
    // It died after the transaction: what it had noted before still covers what is there.
    let present: Vec<_> = new.iter().map(|(key, value)| Entry::new(key, value)).collect();
    assert!(changes(&new, &noted, &present).is_empty());
    assert_eq!(removal(&noted, &present).deletes.len(), 2);
}

#[test]
fn a_long_list_of_old_keys_is_split_with_the_declared_ones_first() {
    let declared = plain("bl", None).keys();
    let present: Vec<_> = (0..200).map(|number| Entry::new(format!("old/{number:03}"), "")).collect();
    let owned = present.iter().map(|entry| entry.key.clone()).collect();
    let changes = changes(&declared, &owned, &present);
    let transactions = changes.transactions();
    assert_eq!(transactions.len(), 4);
    assert!(transactions.iter().all(|operations| operations.len() <= MAX_OPERATIONS));
    assert!(matches!(transactions[0][..2], [Operation::Set { .. }, Operation::Set { .. }]));
}

fn map() -> impl Strategy<Value = BTreeMap<String, String>> {
    prop::collection::btree_map("[a-f]", "[xyz]", 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn changes_lead_to_what_is_declared_and_touch_nothing_else(
        declared in map(), there in map(), owned in prop::collection::btree_set("[a-f]", 0..6),
    ) {
        let mut present: Vec<_> = (1..)
            .zip(&there)
            .map(|(index, (key, value))| Entry { modify_index: index, ..Entry::new(key, value) })
            .collect();
        let found = changes(&declared, &owned, &present);
        apply(&mut present, &found, 100);
        let now: BTreeMap<_, _> = present.iter().map(|entry| (entry.key.clone(), entry.text())).collect();
        let mut expected = there.clone();
        expected.retain(|key, _| !owned.contains(key) || declared.contains_key(key));
        expected.extend(declared.clone());
        prop_assert_eq!(&now, &expected);
        prop_assert!(changes(&declared, &owned, &present).is_empty(), "once is enough");
        let untouched: BTreeSet<_> = present.iter().filter(|entry| entry.modify_index < 100).collect::<Vec<_>>()
            .into_iter().map(|entry| entry.key.clone()).collect();
        for key in untouched {
            prop_assert_eq!(there.get(&key), now.get(&key));
        }
    }
}

#[test]
fn what_would_be_written_is_a_plan_like_any_other() {
    let before = plain("sat", Some("one")).keys();
    let present: Vec<_> = before.iter().map(|(key, value)| Entry::new(key, value)).collect();
    let found = changes(&plain("sat", Some("two")).keys(), &owned_after(&before), &present);
    let mut plan = setpoint_plan::Plan::new("two");
    found.plan(&mut plan);
    assert_eq!(
        plan.to_string(),
        "two: 1 to create, 1 to modify, 1 to delete
  + key/composite/two/structure/sat/compositeRole: it is declared and not there
      value: satellite
  ~ key/config/sat/application/composite/structureRef: its value is not the declared one
      value: composite/one/structure → composite/two/structure
  - key/composite/one/structure/sat/compositeRole: it was declared and is not any more
      value: satellite → (none)
"
    );
    let then: BTreeMap<_, _> =
        after(&present, &found).iter().map(|entry| (entry.key.clone(), entry.text())).collect();
    assert_eq!(then, plain("sat", Some("two")).keys());
}

#[test]
fn a_config_map_differs_by_what_it_says_or_else_by_how_it_is_written() {
    let entries: Vec<_> =
        plain("bl", None).keys().iter().map(|(key, value)| Entry::new(key, value)).collect();
    let (payload, _) = transform(&entries, "OnPrem", None);
    let said = |present: Option<&str>| -> Vec<_> {
        let line = |change: setpoint_plan::AttributeChange| {
            format!(
                "{}: {:?} {:?}",
                change.attribute,
                change.old.unwrap_or_default(),
                change.new.unwrap_or_default()
            )
        };
        data_changes(present, &payload).into_iter().map(line).collect()
    };
    assert_eq!(said(Some(&payload.to_json())), [""; 0]);
    assert_eq!(said(None), [r#"baseline.origin: "" "bl""#, r#"cloudProvider: "" "OnPrem""#]);
    let other = r#"{"cloudProvider":"OnPrem","composite":{"baseline":{"origin":"old","peer":"p"}}}"#;
    assert_eq!(said(Some(other)), [r#"baseline.origin: "old" "bl""#, r#"baseline.peer: "p" """#]);
    let spaced = payload.to_json().replace(':', ": ");
    assert!(said(Some(&spaced))[0].starts_with("data: "), "the same, but not the same bytes");
    assert!(said(Some("garbage"))[0].starts_with(r#"data: "garbage" "#));
}

#[test]
fn the_first_changes_of_a_leader_mark_the_reference_and_the_next_hold_on_to_it() {
    let declaration = plain("bl-o", None);
    let (declared, key) = (declaration.keys(), structure_ref_key("bl-o"));
    let mut present = Vec::new();
    let fenced = |transitions: u64, present: &[Entry]| {
        changes(&declared, &owned_after(&declared), present).fenced(transitions, &key, present)
    };
    // The key that everything holds on to comes first and alone: that it must not be there holds again once it is gone.
    let first = fenced(1, &present);
    assert_eq!(first.sets.iter().map(|set| (&set.key, set.index)).collect::<Vec<_>>(), [(&key, 0)]);
    apply(&mut present, &first, 4);
    let rest = fenced(1, &present);
    assert_eq!(rest.guard.as_ref().map(|guard| (&guard.key, guard.index)), Some((&key, 4)));
    apply(&mut present, &rest, 5);
    let flags = |present: &[Entry]| present.iter().find(|entry| entry.key == key).map(|entry| entry.flags);
    assert_eq!(flags(&present), Some(1));
    assert!(fenced(1, &present).is_empty(), "nothing differs for the same leader");

    // The next leader marks the reference, and nothing else.
    let marked = fenced(2, &present);
    assert_eq!((marked.sets.len(), &marked.sets[0].key, marked.sets[0].flags), (1, &key, 2));
    assert_eq!(marked.guard, None, "it is the key itself that is held on to");
    apply(&mut present, &marked, 6);

    // What it changes later holds only while the reference is as it was read.
    let role = declared.keys().find(|other| **other != key).expect("there is a role");
    present.retain(|entry| entry.key != *role);
    let later = fenced(2, &present);
    assert_eq!(later.guard.as_ref().map(|guard| (&guard.key, guard.index)), Some((&key, 6)));
    assert_eq!(later.sets.iter().map(|set| &set.key).collect::<Vec<_>>(), [role]);
    apply(&mut present, &later, 7);
    assert!(fenced(2, &present).is_empty());
}
