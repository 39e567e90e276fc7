//! Claims: which Composite declares which key, and whose value holds. Pure.
//!
//! ```text
//!  composite/{id}/structure/{namespace}/{attribute}                              the key
//!  composite/{id}/claims/{namespace}/{attribute}/{claimant's namespace}/{name}   a claim: the value that is declared
//! ```
//!
//! Several Composites may declare a key, such as those of a blue-green group. Each claims it, in the transaction that writes
//! it. The oldest claim holds: the one with the lowest index of creation. A key goes with its last claim, whoever removes it,
//! and a key that nobody claims is somebody else's and is never touched.
//!
//! Whatever changes the claims of a key writes the key as well, if only the number beside its value. So a transaction that
//! was made from other claims than there are is refused, and nobody removes a key that was claimed meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use setpoint_kv::Entry;

use super::changes::{Changes, Delete, Set};
use super::declaration::structure_ref_key;
use crate::{Key, prefix};

/// Who claims a key: a Composite.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claimant {
    /// The namespace that the Composite is in.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl fmt::Display for Claimant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A key that another Composite declares with another value, which holds because its claim is older.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The key.
    pub key: String,
    /// The value that was declared and does not hold.
    pub declared: String,
    /// The value that holds.
    pub held: String,
    /// Who declares it.
    pub holder: Claimant,
}

/// What is to be done about the keys of a Composite.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolution {
    /// The changes.
    pub changes: Changes,
    /// The keys whose declared value does not hold.
    pub conflicts: Vec<Conflict>,
    /// The value of each declared key once the changes are carried out.
    pub expected: BTreeMap<String, String>,
}

/// The prefix of all claims of a key.
fn claims_of(key: &Key<'_>) -> String {
    format!("composite/{}/claims/{}/{}/", key.composite_id, key.namespace, key.attribute)
}

/// The key of a Composite's claim of a key.
///
/// ```
/// use setpoint_structure::declare::{Claimant, claim_key};
/// use setpoint_structure::Key;
///
/// let key = Key::parse("composite/shop/structure/cart/compositeRole").unwrap();
/// let claimant = Claimant { namespace: "cart".into(), name: "composite".into() };
/// assert_eq!(claim_key(&key, &claimant), "composite/shop/claims/cart/compositeRole/cart/composite");
/// ```
pub fn claim_key(key: &Key<'_>, claimant: &Claimant) -> String {
    format!("{}{claimant}", claims_of(key))
}

/// Everything that has to be read before keys are written or removed: the prefixes of the keys, of their claims, and the
/// reference of the namespace.
pub fn to_read<'a>(namespace: &str, keys: impl IntoIterator<Item = &'a String>) -> BTreeSet<String> {
    let mut read = BTreeSet::from([structure_ref_key(namespace)]);
    for key in keys {
        if let Some(key) = Key::parse(key) {
            read.insert(format!("{}{}/", prefix(key.composite_id), key.namespace));
            read.insert(format!("composite/{}/claims/{}/", key.composite_id, key.namespace));
        }
    }
    read
}

/// Those of some keys that a Composite of a namespace can own: keys of structures, and the reference of the namespace.
pub fn ownable(namespace: &str, keys: &BTreeSet<String>) -> BTreeSet<String> {
    let reference = structure_ref_key(namespace);
    keys.iter().filter(|key| **key == reference || Key::parse(key).is_some()).cloned().collect()
}

/// Returns whether a key is that of a claim.
pub fn is_claim(key: &str) -> bool {
    let mut parts = key.split('/');
    (parts.next(), parts.nth(1)) == (Some("composite"), Some("claims"))
}

/// A claim as it was read.
struct Claim<'a> {
    entry: &'a Entry,
    claimant: Claimant,
}

/// Compares what a Composite declares, and what it owned before, with what is there.
///
/// Keys of structures go by their claims. All other keys, such as the reference, are written if their value differs and
/// removed if they are owned and neither declared any more nor in `kept`.
pub fn resolve(
    claimant: &Claimant,
    declared: &BTreeMap<String, String>,
    owned: &BTreeSet<String>,
    kept: &BTreeSet<String>,
    present: &[Entry],
) -> Resolution {
    let present: BTreeMap<_, _> = present.iter().map(|entry| (entry.key.as_str(), entry)).collect();
    let mut resolution = Resolution::default();
    let keys: BTreeSet<_> = declared.keys().chain(owned).collect();
    for key in keys {
        let wanted = declared.get(key);
        match Key::parse(key) {
            Some(parsed) => resolve_key(&mut resolution, claimant, &parsed, wanted, &present),
            None => resolve_unclaimed(&mut resolution, key, wanted, kept, &present),
        }
    }
    resolution.changes.sets.sort_by(|one, other| one.key.cmp(&other.key));
    resolution.changes.deletes.sort_by(|one, other| one.key.cmp(&other.key));
    resolution
}

fn resolve_unclaimed(
    resolution: &mut Resolution,
    key: &str,
    wanted: Option<&String>,
    kept: &BTreeSet<String>,
    present: &BTreeMap<&str, &Entry>,
) {
    let there = present.get(key).copied();
    match (wanted, there) {
        (Some(value), there) => {
            resolution.expected.insert(key.to_owned(), value.clone());
            if there.is_none_or(|entry| !holds(entry, value)) {
                let flags = there.map_or(0, |entry| entry.flags);
                resolution.changes.sets.push(set(key, value, there, flags));
            }
        }
        (None, Some(entry)) if !kept.contains(key) => resolution.changes.deletes.push(delete(entry)),
        (None, _) => {}
    }
}

fn resolve_key(
    resolution: &mut Resolution,
    claimant: &Claimant,
    key: &Key<'_>,
    wanted: Option<&String>,
    present: &BTreeMap<&str, &Entry>,
) {
    let (name, changes) = (key.to_string(), &mut resolution.changes);
    let there = present.get(name.as_str()).copied();
    let mut claims = claims(key, present);
    let mine = claims.iter().position(|claim| claim.claimant == *claimant).map(|at| claims.remove(at));
    let own_key = claim_key(key, claimant);
    let claims_changed = match (wanted, &mine) {
        (Some(value), mine) if mine.as_ref().is_none_or(|mine| !holds(mine.entry, value)) => {
            changes.sets.push(set(&own_key, value, mine.as_ref().map(|mine| mine.entry), 0));
            true
        }
        (None, Some(mine)) => {
            changes.deletes.push(delete(mine.entry));
            true
        }
        _ => false,
    };
    // One that is still to be made is the youngest.
    let own_age = mine.as_ref().map_or(u64::MAX, |mine| mine.entry.create_index);
    let older = claims.first().filter(|oldest| wanted.is_none() || oldest.entry.create_index < own_age);
    let value = match (older, wanted) {
        (Some(holder), _) => holder.entry.text(),
        (None, Some(value)) => value.clone(),
        (None, None) => {
            if let (Some(_), Some(entry)) = (&mine, there) {
                changes.deletes.push(delete(entry));
            }
            return;
        }
    };
    // A Composite that neither claims nor claimed the key does not change it.
    if wanted.is_none() && mine.is_none() {
        return;
    }
    if claims_changed || there.is_none_or(|entry| !holds(entry, &value)) {
        let flags = there.map_or(0, |entry| entry.flags.wrapping_add(1));
        changes.sets.push(set(&name, &value, there, flags));
    }
    if let Some(declared) = wanted {
        if let Some(holder) = older.filter(|_| value != *declared) {
            resolution.conflicts.push(Conflict {
                key: name.clone(),
                declared: declared.clone(),
                held: value.clone(),
                holder: holder.claimant.clone(),
            });
        }
        resolution.expected.insert(name, value);
    }
}

/// All claims of a key, the oldest first.
fn claims<'a>(key: &Key<'_>, present: &BTreeMap<&str, &'a Entry>) -> Vec<Claim<'a>> {
    let before = claims_of(key);
    let below = present.range(before.as_str()..).take_while(|(key, _)| key.starts_with(&before));
    let mut claims: Vec<_> = below
        .filter_map(|(key, entry)| {
            let (namespace, name) = key.strip_prefix(&before)?.split_once('/')?;
            let claimant = Claimant { namespace: namespace.to_owned(), name: name.to_owned() };
            Some(Claim { entry, claimant })
        })
        .collect();
    claims.sort_by_key(|claim| (claim.entry.create_index, claim.claimant.clone()));
    claims
}

/// The keys that some entries claim, each with the value that holds: that of its oldest claim.
///
/// ```
/// use setpoint_structure::declare::claimed;
/// use setpoint_structure::Entry;
///
/// let claim = Entry::new("composite/shop/claims/cart/compositeRole/cart/composite", "satellite");
/// let held = claimed(std::slice::from_ref(&claim));
/// assert_eq!(held["composite/shop/structure/cart/compositeRole"], b"satellite");
/// ```
pub fn claimed(entries: &[Entry]) -> BTreeMap<String, &[u8]> {
    let mut oldest: BTreeMap<String, (u64, &str, &Entry)> = BTreeMap::new();
    for entry in entries {
        let Some((key, claimant)) = claim_of(&entry.key) else { continue };
        let this = (entry.create_index, claimant, entry);
        let held = oldest.entry(key).or_insert(this);
        if (this.0, this.1) < (held.0, held.1) {
            *held = this;
        }
    }
    oldest.into_iter().map(|(key, (_, _, entry))| (key, entry.value.as_deref().unwrap_or_default())).collect()
}

/// The key that the key of a claim is about, and who claims it.
fn claim_of(claim: &str) -> Option<(String, &str)> {
    let (composite_id, rest) = claim.strip_prefix("composite/")?.split_once("/claims/")?;
    let (namespace, rest) = rest.split_once('/')?;
    let (attribute, claimant) = rest.split_once('/')?;
    let key = format!("{}{namespace}/{attribute}", prefix(composite_id));
    Key::parse(&key)?;
    Some((key, claimant))
}

fn holds(entry: &Entry, value: &str) -> bool {
    entry.value.as_deref().unwrap_or_default() == value.as_bytes()
}

fn set(key: &str, value: &str, there: Option<&Entry>, flags: u64) -> Set {
    Set {
        key: key.to_owned(),
        value: value.to_owned(),
        old: there.map(Entry::text),
        index: there.map_or(0, |entry| entry.modify_index),
        flags,
    }
}

fn delete(entry: &Entry) -> Delete {
    Delete { key: entry.key.clone(), old: entry.text(), index: entry.modify_index }
}
