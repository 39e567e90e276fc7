//! Places that matter: lines and servers of which HAProxy looks at the order.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashSet;
use smol_str::SmolStr;

use super::as_text::AsText;
use super::{below, unmodelled};
use crate::model::{Object, ObjectKind, SectionModel, Value};
use crate::table::directives;
use crate::table::facts::{Base, Given, facts};
use crate::text::{Line, Section};

/// One side of a section that is compared.
#[derive(Clone, Copy)]
pub(super) struct Placement<'a> {
    pub(super) section: &'a Section,
    pub(super) model: &'a SectionModel,
    /// The `defaults` that govern it, nearest first.
    pub(super) defaults: &'a [Object],
}

/// Why a difference between two sections is one of places that the model does not show.
pub(super) fn differ(old: Placement<'_>, new: Placement<'_>) -> Option<AsText> {
    let (before, after) = (Bases::of(old.section), Bases::of(new.section));
    if (before.are_scattered() || after.are_scattered())
        && (before != after || old.model.children != new.model.children)
    {
        return Some(before.reason());
    }
    if servers_move(old, new) {
        return Some(AsText::ServerOrder);
    }
    let moved = lines_move(old.model, new.model) || below::differ(old.section, new.section);
    moved.then_some(AsText::Sequence)
}

/// Returns whether operations on a section may bring lines out of an order that counts.
pub(super) fn may_misplace(section: &Section, model: &SectionModel) -> bool {
    let bases = Bases::of(section);
    !model.unmodelled.is_empty()
        || has_mixed_sequences(model)
        || !bases.add_up && !bases.lines.is_empty() && !bases.before.is_empty()
}

/// Returns whether lines of a section that operations made are in another order than they should, and it matters.
pub(super) fn are_misplaced(
    (result, made): (&Section, &SectionModel),
    (desired, wanted): (&Section, &SectionModel),
) -> bool {
    let (held, expected) = (Bases::of(result), Bases::of(desired));
    let scattered = held.are_scattered() || expected.are_scattered();
    unmodelled::lines(result, made) != unmodelled::lines(desired, wanted)
        || lines_move(made, wanted)
        || scattered && held != expected
}

/// Why a section can't be made of its model: the model does not show places.
pub(super) fn unlike_the_model(section: &Section, model: &SectionModel) -> Option<AsText> {
    let starts = Bases::of(section);
    if starts.are_scattered() {
        return Some(starts.reason());
    }
    has_mixed_sequences(model).then_some(AsText::Sequence)
}

/// The lines of a section that others start from, and how many of them stand before each of these: those are the ones that it
/// starts from. Servers start from `default-server`, and what a `crt-store` loads from its folders.
#[derive(Debug, Default, PartialEq, Eq)]
struct Bases {
    /// Whether each adds to what those before it give, as a `default-server` does.
    add_up: bool,
    lines: Vec<Vec<Vec<u8>>>,
    before: BTreeMap<Vec<u8>, usize>,
}

impl Bases {
    fn of(section: &Section) -> Self {
        let mut found = Self::default();
        let facts = facts().section(section.kind());
        for line in section.lines() {
            let Some(keyword) = line.keyword() else { continue };
            let keyword = String::from_utf8_lossy(&keyword);
            let Some(base) = facts.base(&keyword) else { continue };
            let words: Vec<_> = line.words().collect();
            match base {
                Base::Is { adds, .. } => {
                    found.add_up = adds;
                    found.lines.push(words.into_iter().map(|word| word.text.into_owned()).collect());
                }
                Base::On(_) => {
                    // What has a name is known by it.
                    let name = facts.named(&keyword).iter().find_map(|named| match named.given(&words) {
                        Some(Given::Word(word)) => Some(word.text.to_vec()),
                        _ => None,
                    });
                    let whole = || words.iter().map(|word| &*word.text).collect::<Vec<_>>().join(&b' ');
                    found.before.insert(name.unwrap_or_else(whole), found.lines.len());
                }
            }
        }
        found
    }

    /// Returns whether one line before all servers does not say the same.
    fn are_scattered(&self) -> bool {
        let count = self.lines.len();
        (count > 1 && self.add_up) || self.before.values().any(|before| *before < count)
    }

    fn reason(&self) -> AsText {
        if self.add_up { AsText::DefaultServer } else { AsText::Sequence }
    }
}

/// The directives of each sequence, in their order; where a key decides, for each key.
fn sequences(model: &SectionModel) -> BTreeMap<(&'static str, Option<&SmolStr>), Vec<usize>> {
    let mut found: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    let keys: BTreeSet<_> = model.sequences.iter().map(|line| (line.sequence, line.key.as_ref())).collect();
    for (sequence, key) in &keys {
        let is_keyed = keys.iter().any(|(other, key)| other == sequence && key.is_some());
        if is_keyed && key.is_none() {
            // What has no key of its own counts for each.
            continue;
        }
        let here = |line: &&crate::model::Placed| {
            line.sequence == *sequence && (line.key.is_none() || line.key.as_ref() == *key)
        };
        let families = model.sequences.iter().filter(here).map(|line| line.family).collect();
        found.insert((*sequence, *key), families);
    }
    found
}

/// Returns whether lines of different directives are in an order that counts.
fn has_mixed_sequences(model: &SectionModel) -> bool {
    sequences(model).values().any(|families| is_mixed(families))
}

fn is_mixed(families: &[usize]) -> bool {
    families.first().is_some_and(|first| families.iter().any(|family| family != first))
}

/// Returns whether lines of different directives are in a different order, and it matters.
fn lines_move(old: &SectionModel, new: &SectionModel) -> bool {
    let (held, wanted) = (sequences(old), sequences(new));
    wanted.iter().any(|(key, families)| is_mixed(families) && held.get(key) != Some(families))
}

/// Which servers of a section have a place that matters.
enum Ordered {
    All,
    Backups,
    None,
}

/// Returns whether servers would be in a different order than they should, and it matters: what is new comes after those of its
/// kind.
fn servers_move(old: Placement<'_>, new: Placement<'_>) -> bool {
    let ordered = match (ordered(old), ordered(new)) {
        (Ordered::All, _) | (_, Ordered::All) => Ordered::All,
        (Ordered::Backups, _) | (_, Ordered::Backups) => Ordered::Backups,
        _ => return false,
    };
    let (held, wanted) = (servers(old.model), servers(new.model));
    let result = with_new_ones_last(&held, &wanted);
    let backups: BTreeSet<&str> = [old, new].iter().flat_map(|side| backups(*side)).collect();
    let counts = |server: &&(ObjectKind, &str)| matches!(ordered, Ordered::All) || backups.contains(server.1);
    result.iter().filter(counts).ne(wanted.iter().filter(counts))
}

/// The servers that stay, in their order, each new one after the last of its kind.
fn with_new_ones_last<'s>(
    held: &[(ObjectKind, &'s str)],
    wanted: &[(ObjectKind, &'s str)],
) -> Vec<(ObjectKind, &'s str)> {
    let (before, after): (FxHashSet<_>, FxHashSet<_>) =
        (held.iter().copied().collect(), wanted.iter().copied().collect());
    let mut new: BTreeMap<ObjectKind, Vec<(ObjectKind, &str)>> = BTreeMap::new();
    let mut kinds: Vec<ObjectKind> = Vec::new();
    for server in wanted.iter().filter(|server| !before.contains(*server)) {
        let of_kind = new.entry(server.0).or_default();
        if of_kind.is_empty() {
            kinds.push(server.0);
        }
        of_kind.push(*server);
    }
    let kept: Vec<_> = held.iter().copied().filter(|server| after.contains(server)).collect();
    let last: BTreeMap<ObjectKind, usize> =
        kept.iter().enumerate().map(|(at, server)| (server.0, at)).collect();
    let mut result = Vec::with_capacity(wanted.len());
    for (at, server) in kept.into_iter().enumerate() {
        result.push(server);
        if last.get(&server.0) == Some(&at) {
            result.extend(new.remove(&server.0).unwrap_or_default());
        }
    }
    result.extend(kinds.into_iter().filter_map(|kind| new.remove(&kind)).flatten());
    result
}

fn servers(model: &SectionModel) -> Vec<(ObjectKind, &str)> {
    let is_server = |child: &&Object| matches!(child.kind, ObjectKind::Server | ObjectKind::ServerTemplate);
    model.children.iter().filter(is_server).filter_map(|child| Some((child.kind, child.name()?))).collect()
}

fn backups(side: Placement<'_>) -> impl Iterator<Item = &str> {
    let all = setting(side, "default_server.backup") == Some("enabled");
    let is_backup = move |child: &&Object| {
        let own = child.get("backup").and_then(Value::as_str);
        own == Some("enabled") || (all && own.is_none())
    };
    side.model.children.iter().filter(is_backup).filter_map(|child| child.name())
}

/// What the algorithm of a section makes of the order of its servers.
fn ordered(side: Placement<'_>) -> Ordered {
    let is_unknown = |line: &Line<'_>| {
        let keyword = line.keyword();
        let chooses = |word: &[u8]| facts().chooses_algorithm(&String::from_utf8_lossy(word));
        keyword.as_deref().is_some_and(chooses) && side.model.unmodelled.contains(&line.number())
    };
    if !side.model.unmodelled.is_empty() && side.section.lines().any(|line| is_unknown(&line)) {
        return Ordered::All;
    }
    let algorithm = setting(side, "balance.algorithm");
    let servers = algorithm.and_then(|algorithm| directives().servers_of(algorithm));
    match servers {
        Some(servers) if servers.are_ordered => Ordered::All,
        Some(servers) if servers.are_hashed => match setting(side, "hash_type.method") {
            Some("consistent") if have_hash_places(side) => Ordered::Backups,
            _ => Ordered::All,
        },
        // Of an algorithm that no row knows, all is believed.
        None if algorithm.is_some() => Ordered::All,
        _ if setting(side, "allbackups") == Some("enabled") => Ordered::None,
        _ => Ordered::Backups,
    }
}

/// Returns whether the places of all servers in a consistent hash are stated: otherwise they follow from their numbers, and
/// these from their order.
fn have_hash_places(side: Placement<'_>) -> bool {
    let options = directives().hash_places();
    let stated = |object: &Object, prefix: &str| -> Option<bool> {
        let places = object.fields.iter().filter_map(|(field, value)| {
            let path = field.path().strip_prefix(prefix)?;
            let (_, values) = options.iter().find(|(option, _)| *option == path)?;
            Some(values.is_empty() || value.as_str().is_some_and(|value| values.contains(&value)))
        });
        places.max()
    };
    let by_default =
        side.model.object.iter().chain(side.defaults).find_map(|object| stated(object, "default_server."));
    let is_server = |child: &&Object| matches!(child.kind, ObjectKind::Server | ObjectKind::ServerTemplate);
    let mut servers = side.model.children.iter().filter(is_server);
    servers.all(|server| stated(server, "").or(by_default) == Some(true))
}

/// A setting of a section, or of the `defaults` that govern it.
fn setting<'a>(side: Placement<'a>, path: &str) -> Option<&'a str> {
    let own = side.model.object.iter();
    own.chain(side.defaults).find_map(|object| object.get(path).and_then(Value::as_str))
}
