//! Claims, held to a model of Consul: whatever Composites do in whatever order, a key is there exactly while it is claimed,
//! and has the value of its oldest claim.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use setpoint_kv::Operation;
use setpoint_structure::declare::{Changes, Claimant, Resolution, claim_key, ownable, resolve};
use setpoint_structure::{Entry, Key};

/// Consul's store: transactions are carried out as a whole or refused.
#[derive(Clone, Debug, Default)]
struct Store {
    entries: BTreeMap<String, Entry>,
    index: u64,
}

impl Store {
    fn present(&self) -> Vec<Entry> {
        self.entries.values().cloned().collect()
    }

    /// Returns whether the changes were carried out.
    fn apply(&mut self, changes: &Changes) -> bool {
        let operations: Vec<_> = changes.transactions().into_iter().flatten().collect();
        let index_of = |key: &str| self.entries.get(key).map_or(0, |entry| entry.modify_index);
        let holds = operations.iter().all(|operation| match *operation {
            Operation::Set { key, index, .. }
            | Operation::Delete { key, index }
            | Operation::Check { key, index } => index_of(key) == index,
        });
        if !holds || operations.is_empty() {
            return holds;
        }
        self.index += 1;
        for operation in operations {
            match operation {
                Operation::Set { key, value, flags, .. } => {
                    let create_index = self.entries.get(key).map_or(self.index, |old| old.create_index);
                    let entry =
                        Entry { flags, create_index, modify_index: self.index, ..Entry::new(key, value) };
                    self.entries.insert(key.to_owned(), entry);
                }
                Operation::Delete { key, .. } => drop(self.entries.remove(key)),
                Operation::Check { .. } => {}
            }
        }
        true
    }

    fn value(&self, key: &str) -> Option<String> {
        self.entries.get(key).map(Entry::text)
    }
}

fn claimant(number: usize) -> Claimant {
    Claimant { namespace: format!("ns-{number}"), name: "composite".to_owned() }
}

fn key(number: usize) -> String {
    format!("composite/x/structure/n{number}/compositeRole")
}

fn declared(keys: &[(usize, &str)]) -> BTreeMap<String, String> {
    keys.iter().map(|(number, value)| (key(*number), (*value).to_owned())).collect()
}

fn write(store: &mut Store, who: usize, declared: &BTreeMap<String, String>, owned: &[usize]) -> Resolution {
    let owned = owned.iter().map(|number| key(*number)).collect();
    let resolution = resolve(&claimant(who), declared, &owned, &BTreeSet::new(), &store.present());
    assert!(store.apply(&resolution.changes));
    resolution
}

#[test]
fn a_key_stays_while_anybody_claims_it_and_goes_with_the_last() {
    let mut store = Store::default();
    let both = declared(&[(1, "baseline")]);
    write(&mut store, 1, &both, &[]);
    write(&mut store, 2, &both, &[]);
    write(&mut store, 1, &BTreeMap::new(), &[1]);
    assert_eq!(store.value(&key(1)).as_deref(), Some("baseline"));
    write(&mut store, 2, &BTreeMap::new(), &[1]);
    assert!(store.entries.is_empty(), "{store:?}");
}

#[test]
fn the_older_claim_holds_and_the_younger_takes_over_with_its_removal() {
    let mut store = Store::default();
    write(&mut store, 1, &declared(&[(1, "baseline")]), &[]);
    let younger = write(&mut store, 2, &declared(&[(1, "satellite")]), &[]);
    assert_eq!(store.value(&key(1)).as_deref(), Some("baseline"));
    assert_eq!(younger.conflicts.len(), 1);
    let conflict = &younger.conflicts[0];
    assert_eq!((conflict.held.as_str(), conflict.declared.as_str()), ("baseline", "satellite"));
    assert_eq!((&conflict.holder, conflict.key.as_str()), (&claimant(1), key(1).as_str()));
    assert_eq!(younger.expected, declared(&[(1, "baseline")]));
    // Neither has anything to do after that: nothing flips.
    for (who, value) in [(1, "baseline"), (2, "satellite")] {
        let again = write(&mut store, who, &declared(&[(1, value)]), &[1]);
        assert!(again.changes.is_empty(), "{again:?}");
    }
    write(&mut store, 1, &BTreeMap::new(), &[1]);
    assert_eq!(store.value(&key(1)).as_deref(), Some("satellite"), "in the same transaction");
    assert!(write(&mut store, 2, &declared(&[(1, "satellite")]), &[1]).conflicts.is_empty());
}

#[test]
fn a_key_without_a_claim_is_somebody_elses() {
    let mut store = Store::default();
    store.entries.insert(key(1), Entry { modify_index: 1, ..Entry::new(key(1), "baseline") });
    // A status may name any key.
    let resolution = write(&mut store, 1, &BTreeMap::new(), &[1]);
    assert!(resolution.changes.is_empty());
    let other = claim_key(&Key::parse(&key(1)).unwrap(), &claimant(2));
    store.entries.insert(other.clone(), Entry { modify_index: 2, ..Entry::new(other, "baseline") });
    assert!(write(&mut store, 1, &BTreeMap::new(), &[1]).changes.is_empty(), "nor is another's claim ours");
}

#[test]
fn only_keys_of_structures_and_the_own_reference_can_be_owned() {
    let reference = "config/shop/application/composite/structureRef".to_owned();
    let others =
        ["config/cart/application/composite/structureRef", "vault/secret", "composite/x/claims/a/b/c/d"];
    let named: BTreeSet<_> =
        others.iter().map(|key| (*key).to_owned()).chain([reference.clone(), key(1)]).collect();
    assert_eq!(ownable("shop", &named), BTreeSet::from([reference, key(1)]));
}

#[test]
fn a_removal_that_did_not_see_a_new_claim_is_refused() {
    let mut store = Store::default();
    let same = declared(&[(1, "baseline")]);
    write(&mut store, 1, &same, &[]);
    let owned = BTreeSet::from([key(1)]);
    let late = resolve(&claimant(1), &BTreeMap::new(), &owned, &BTreeSet::new(), &store.present());
    write(&mut store, 2, &same, &[]);
    assert!(!store.apply(&late.changes), "the key was claimed meanwhile");
    assert_eq!(store.value(&key(1)).as_deref(), Some("baseline"));
}

/// One step of a Composite: what it declares from now on, and how many steps later its transaction arrives.
#[derive(Clone, Debug)]
struct Step {
    who: usize,
    declares: BTreeMap<usize, &'static str>,
    late: bool,
}

fn step() -> impl Strategy<Value = Step> {
    let declares = prop::collection::btree_map(0_usize..4, prop::sample::select(vec!["a", "b"]), 0..4);
    (0_usize..4, declares, any::<bool>()).prop_map(|(who, declares, late)| Step { who, declares, late })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn keys_are_there_exactly_while_they_are_claimed_and_have_the_value_of_the_oldest_claim(
        steps in prop::collection::vec(step(), 1..30),
    ) {
        let mut store = Store::default();
        let mut owned: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
        let mut waiting: Option<(usize, Changes)> = None;
        for step in steps {
            let wanted: BTreeMap<_, _> =
                step.declares.iter().map(|(number, value)| (key(*number), (*value).to_owned())).collect();
            let before = owned.entry(step.who).or_default();
            before.extend(wanted.keys().cloned());
            let resolution = resolve(&claimant(step.who), &wanted, before, &BTreeSet::new(), &store.present());
            if step.late && waiting.is_none() {
                waiting = Some((step.who, resolution.changes));
                continue;
            }
            prop_assert!(store.apply(&resolution.changes), "it was just read");
            // What was made from an earlier state arrives now, and may be refused; never half of it is carried out.
            if let Some((_, changes)) = waiting.take() {
                store.apply(&changes);
            }
            for number in 0..4 {
                let parsed = key(number);
                let parsed = Key::parse(&parsed).unwrap();
                let claims: Vec<_> = (0..4)
                    .filter_map(|who| store.entries.get(&claim_key(&parsed, &claimant(who))))
                    .collect();
                let oldest = claims.iter().min_by_key(|claim| claim.create_index);
                prop_assert_eq!(store.value(&key(number)), oldest.map(|claim| claim.text()));
            }
        }
    }
}
