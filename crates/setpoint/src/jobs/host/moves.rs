//! Moves that can't be made at once without mistaking one thing for another.
//!
//! A directory that moves takes along all that is in it. What is remembered inside of it by its path is then somewhere else,
//! and at its old path there may be what somebody else put there. So whatever is inside either moves along, or leaves for
//! elsewhere: neither to another name in the same directory, nor to where a directory has just left. All else is refused before
//! anything is done, and is done in two steps.

use std::collections::BTreeMap;
use std::fmt;

use setpoint_engine::CurrentGraph;
use setpoint_graph::{Graph, ItemRef};
use setpoint_host::{Directory, Symlink, path_of};

use super::error::Error;
use super::set::is_there;
use crate::error::CliError;

/// Why a move is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tangle {
    /// What is inside of a directory that moves does not move along.
    Inside { item: ItemRef, directory: ItemRef, carried: String, declared: String },
    /// What is reached through a link is somewhere else when the link points elsewhere.
    Behind { item: ItemRef, link: ItemRef },
    /// More than two directories take each other's places.
    Circle(Vec<ItemRef>),
}

impl fmt::Display for Tangle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inside { item, directory, carried, declared } => write!(
                formatter,
                "{item} is inside of {directory}, which moves, and would come to {carried}; it is declared as {declared}"
            ),
            Self::Behind { item, link } => {
                write!(formatter, "{item} is reached through {link}, which is to point elsewhere")
            }
            Self::Circle(directories) => {
                let names: Vec<String> = directories.iter().map(ToString::to_string).collect();
                write!(formatter, "{} take each other's places in a circle", names.join(", "))
            }
        }
    }
}

/// A directory that moves.
struct Move<'a> {
    item: &'a ItemRef,
    to: &'a str,
}

/// Refuses moves of which one would be mistaken for another.
pub(crate) fn check(current: &CurrentGraph, intended: &Graph) -> Result<(), CliError> {
    let mut moves: BTreeMap<&str, Move<'_>> = BTreeMap::new();
    let mut links: BTreeMap<&str, &ItemRef> = BTreeMap::new();
    for node in current.items().filter(|node| is_there(current, node.reference())) {
        let (item, Some(new)) = (node.reference(), intended.item(node.reference())) else { continue };
        if let (Some(old), Some(new)) = (node.item().get::<Directory>(), new.get::<Directory>()) {
            if old.path != new.path {
                moves.insert(old.path.as_str(), Move { item, to: new.path.as_str() });
            }
        } else if let (Some(old), Some(new)) = (node.item().get::<Symlink>(), new.get::<Symlink>())
            && (old.target != new.target || old.path != new.path)
        {
            links.insert(old.path.as_str(), item);
        }
    }
    if moves.is_empty() && links.is_empty() {
        return Ok(());
    }
    let mut tangles: Vec<Tangle> = circles(&moves);
    for node in current.items().filter(|node| is_there(current, node.reference())) {
        let item = node.reference();
        let new = intended.item(item).and_then(path_of);
        let (Some(old), Some(new)) = (path_of(node.item()), new) else { continue };
        tangles.extend(tangle(item, old.as_str(), new.as_str(), &moves, &links));
    }
    if tangles.is_empty() { Ok(()) } else { Err(Error::Tangled(tangles).into()) }
}

/// What keeps one item from being moved together with what is around it.
fn tangle(
    item: &ItemRef,
    old: &str,
    new: &str,
    moves: &BTreeMap<&str, Move<'_>>,
    links: &BTreeMap<&str, &ItemRef>,
) -> Option<Tangle> {
    // From the inside out: what is nearest carries it.
    let places = old.rmatch_indices('/').filter_map(|(end, _)| old.split_at_checked(end));
    for (around, rest) in places {
        if let Some(&link) = links.get(around) {
            return Some(Tangle::Behind { item: item.clone(), link: link.clone() });
        }
        let Some(found) = moves.get(around) else { continue };
        let carried = format!("{}{rest}", found.to);
        let touches =
            |place: &str| new == place || new.strip_prefix(place).is_some_and(|rest| rest.starts_with('/'));
        let is_mistakable = moves.keys().any(|from| touches(from)) || touches(found.to);
        if new == carried || !is_mistakable {
            return None;
        }
        let (item, directory, declared) = (item.clone(), found.item.clone(), new.to_owned());
        return Some(Tangle::Inside { item, directory, carried, declared });
    }
    None
}

/// The circles of more than two directories, each once.
fn circles(moves: &BTreeMap<&str, Move<'_>>) -> Vec<Tangle> {
    let mut circles = Vec::new();
    for (&first, one) in moves {
        let (mut members, mut at) = (vec![one.item.clone()], one.to);
        while at != first && members.len() <= moves.len() {
            // Each circle is found from its first place.
            let Some(next) = moves.get(at).filter(|_| at > first) else { break };
            members.push(next.item.clone());
            at = next.to;
        }
        if at == first && members.len() > 2 {
            circles.push(Tangle::Circle(members));
        }
    }
    circles
}
