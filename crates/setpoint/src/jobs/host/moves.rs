//! Moves that can't be made at once without mistaking one thing for another.
//!
//! A directory that moves takes along all that is in it. An item inside of it that is declared with another path is found by its
//! directory when its turn comes. One that is declared with the path that it has is not touched by a plan, which knows paths
//! only, and would be somewhere else afterwards; so would what is reached through a link that is to point elsewhere. And what
//! comes to where such a directory brings something else would have to wait until that has left, which no plan says either. All
//! of this is refused before anything is done, and is done in two steps.

use std::collections::BTreeMap;
use std::fmt;

use setpoint_engine::CurrentGraph;
use setpoint_graph::{Graph, ItemRef};
use setpoint_host::{Directory, File, Host, Symlink, path_of};
use setpoint_plan::{Action, Plan};

use super::error::Error;
use super::set::{is_adopted, is_there};
use crate::error::CliError;

/// Why a move is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MoveConflict {
    /// What is inside of a directory that moves does not move along.
    Inside { item: ItemRef, directory: ItemRef, carried: String, declared: String },
    /// Something is to come to where a directory that moves brings something else.
    Taken { item: ItemRef, path: String, other: ItemRef, directory: ItemRef },
    /// Something is to come to where what was there before Setpoint goes back, as the item that took it over leaves.
    Original { item: ItemRef, path: String, other: ItemRef },
    /// The same, where that is of another kind, and could not be taken over.
    OriginalOfOtherKind { item: ItemRef, path: String, other: ItemRef },
    /// Something is to come into a directory that is another one until that has left.
    Into { item: ItemRef, path: String, directory: ItemRef, other: ItemRef },
    /// What is reached through a link is somewhere else when the link points elsewhere.
    Behind { item: ItemRef, link: ItemRef },
}

impl fmt::Display for MoveConflict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inside { item, directory, carried, declared } => write!(
                formatter,
                "{item} is inside of {directory}, which moves, and would come to {carried}; it is declared as {declared}"
            ),
            Self::Taken { item, path, other, directory } => write!(
                formatter,
                "{item} is to be {path}, and {other} would come there with {directory}, which moves"
            ),
            Self::Original { item, path, other } => write!(
                formatter,
                "{item} is to be {path}, where what was there before Setpoint goes back, as {other} leaves: say `adopt: true` of \
                 {item} to take it over"
            ),
            Self::OriginalOfOtherKind { item, path, other } => write!(
                formatter,
                "{item} is to be {path}, where what was there before Setpoint goes back, as {other} leaves, and that is no {}: \
                 declare another path",
                item.kind()
            ),
            Self::Into { item, path, directory, other } => write!(
                formatter,
                "{item} is to be {path}, inside of {directory}, which comes there when {other} has left"
            ),
            Self::Behind { item, link } => {
                write!(formatter, "{item} is reached through {link}, which is to point elsewhere")
            }
        }
    }
}

/// Refuses to move or to set aside a directory that the state is in, and to point a link elsewhere that leads to it: what a run
/// did could not be remembered.
pub(crate) fn check_state(
    plan: &Plan,
    current: &CurrentGraph,
    intended: Option<&Graph>,
    host: &Host,
) -> Result<(), CliError> {
    let Some(state) = host.runtime().parent() else { return Ok(()) };
    let named = std::path::absolute(state).unwrap_or_else(|_| state.to_path_buf());
    let real = state.canonicalize().unwrap_or_else(|_| named.clone());
    for operation in plan.operations.iter().filter(|one| one.temporary || one.action == Action::Modify) {
        let item = ItemRef::new(operation.kind.as_str(), operation.name.as_str());
        let Some(old) = current.item(&item) else { continue };
        let new = intended.and_then(|graph| graph.item(&item)).filter(|_| !operation.temporary);
        let holds_it = if let Some(directory) = old.get::<Directory>() {
            let path = directory.path.in_root(host.root());
            let stays = new.and_then(path_of) == Some(&directory.path);
            !stays && path.canonicalize().is_ok_and(|path| real.starts_with(path))
        } else if let Some(link) = old.get::<Symlink>() {
            let stays = new.and_then(|new| new.get::<Symlink>());
            let stays = stays.is_some_and(|new| new.path == link.path && new.target == link.target);
            !stays && named.starts_with(link.path.in_root(host.root()))
        } else {
            false
        };
        if holds_it {
            return Err(Error::MovesState { item, state: named }.into());
        }
    }
    Ok(())
}

/// A directory that moves.
struct DirectoryMove<'a> {
    item: &'a ItemRef,
    to: &'a str,
}

/// Refuses moves of which one would be mistaken for another.
pub(crate) fn check(current: &CurrentGraph, intended: &Graph) -> Result<(), CliError> {
    let mut conflicts = taken_by_originals(current, intended);
    let mut moves: BTreeMap<&str, DirectoryMove<'_>> = BTreeMap::new();
    let mut links: BTreeMap<&str, &ItemRef> = BTreeMap::new();
    for node in current.items().filter(|node| is_there(current, node.reference())) {
        let (item, Some(new)) = (node.reference(), intended.item(node.reference())) else { continue };
        if let (Some(old), Some(new)) = (node.item().get::<Directory>(), new.get::<Directory>()) {
            if old.path != new.path {
                moves.insert(old.path.as_str(), DirectoryMove { item, to: new.path.as_str() });
            }
        } else if let (Some(old), Some(new)) = (node.item().get::<Symlink>(), new.get::<Symlink>())
            && (old.target != new.target || old.path != new.path)
        {
            links.insert(old.path.as_str(), item);
        }
    }
    if moves.is_empty() && links.is_empty() && conflicts.is_empty() {
        return Ok(());
    }
    let coming: BTreeMap<&str, &str> = moves.iter().map(|(from, one)| (one.to, *from)).collect();
    // What directories that move bring along, and where to.
    let mut brought: BTreeMap<String, (&ItemRef, &ItemRef)> = BTreeMap::new();
    for node in current.items().filter(|node| is_there(current, node.reference())) {
        let (item, Some(old)) = (node.reference(), path_of(node.item())) else { continue };
        if let Some((directory, carried)) = carried(old.as_str(), &moves) {
            brought.insert(carried, (item, directory));
        }
        if let Some(new) = intended.item(item).and_then(path_of) {
            // Files and links wait for the directory that they are to be in.
            if node.item().get::<Directory>().is_some() {
                conflicts.extend(into_another(item, old.as_str(), new.as_str(), &moves, &coming));
            }
            conflicts.extend(conflict(item, old.as_str(), new.as_str(), &moves, &links));
        }
    }
    for node in intended.items() {
        let (item, Some(path)) = (node.reference(), path_of(node.item())) else { continue };
        if let Some(&(other, directory)) = brought.get(path.as_str()).filter(|(other, _)| *other != item) {
            let (item, path) = (item.clone(), path.to_string());
            conflicts.push(MoveConflict::Taken {
                item,
                path,
                other: other.clone(),
                directory: directory.clone(),
            });
        }
    }
    if conflicts.is_empty() { Ok(()) } else { Err(Error::MoveConflicts(conflicts).into()) }
}

/// What is to come to where an original goes back, and does not take that over.
fn taken_by_originals(current: &CurrentGraph, intended: &Graph) -> Vec<MoveConflict> {
    let mut originals: BTreeMap<&str, &ItemRef> = BTreeMap::new();
    for node in current.items().filter(|node| is_adopted(current, node.reference())) {
        let (item, Some(path)) = (node.reference(), path_of(node.item())) else { continue };
        let stays = intended.item(item).and_then(path_of) == Some(path);
        if !stays && node.item().get::<Directory>().is_none() {
            originals.insert(path.as_str(), item);
        }
    }
    let conflicts = intended.items().filter(|_| !originals.is_empty()).filter_map(|node| {
        let (item, path) = (node.reference(), path_of(node.item())?);
        let &other = originals.get(path.as_str())?;
        let adopts = node.item().get::<File>().map(|file| file.adopt);
        let adopts = adopts.or_else(|| node.item().get::<Symlink>().map(|link| link.adopt));
        let is_same_kind = other.kind() == item.kind();
        let conflict = || {
            let (item, path, other) = (item.clone(), path.to_string(), other.clone());
            if is_same_kind {
                MoveConflict::Original { item, path, other }
            } else {
                MoveConflict::OriginalOfOtherKind { item, path, other }
            }
        };
        (other != item && !(is_same_kind && adopts == Some(true))).then(conflict)
    });
    conflicts.collect()
}

/// What keeps a directory from being moved into one that comes to where another one still is.
fn into_another(
    item: &ItemRef,
    old: &str,
    new: &str,
    moves: &BTreeMap<&str, DirectoryMove<'_>>,
    coming: &BTreeMap<&str, &str>,
) -> Option<MoveConflict> {
    if old == new {
        return None;
    }
    around(new).find_map(|(path, _)| {
        // Another directory is there now, and leaves.
        let leaving = moves.get(path)?;
        let from = *coming.get(path)?;
        let coming = moves.get(from)?;
        let comes_along = old.strip_prefix(from).is_some_and(|rest| rest.starts_with('/'));
        (!comes_along && coming.item != leaving.item).then(|| MoveConflict::Into {
            item: item.clone(),
            path: new.to_owned(),
            directory: coming.item.clone(),
            other: leaving.item.clone(),
        })
    })
}

/// What keeps one item from being moved together with what is around it.
fn conflict(
    item: &ItemRef,
    old: &str,
    new: &str,
    moves: &BTreeMap<&str, DirectoryMove<'_>>,
    links: &BTreeMap<&str, &ItemRef>,
) -> Option<MoveConflict> {
    for (around, _) in around(old) {
        if let Some(&link) = links.get(around) {
            return Some(MoveConflict::Behind { item: item.clone(), link: link.clone() });
        }
        if moves.contains_key(around) {
            break;
        }
    }
    // One that moves by itself is found in its directory, wherever that is by then.
    let (directory, carried) = carried(old, moves).filter(|(_, carried)| new != carried && new == old)?;
    let (item, directory, declared) = (item.clone(), directory.clone(), new.to_owned());
    Some(MoveConflict::Inside { item, directory, carried, declared })
}

/// Where the nearest directory around a path that moves brings what is there.
fn carried<'a>(old: &str, moves: &BTreeMap<&str, DirectoryMove<'a>>) -> Option<(&'a ItemRef, String)> {
    around(old).find_map(|(around, rest)| {
        let found = moves.get(around)?;
        Some((found.item, format!("{}{rest}", found.to)))
    })
}

/// The directories around a path, each with the rest of the path, from the inside out.
fn around(path: &str) -> impl Iterator<Item = (&str, &str)> {
    path.rmatch_indices('/').filter_map(|(end, _)| path.split_at_checked(end))
}
