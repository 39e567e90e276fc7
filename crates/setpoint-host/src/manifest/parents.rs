//! The directories that declared items are in and that nobody declared.

use std::collections::{BTreeMap, BTreeSet};

use setpoint_graph::{Graph, ItemHandle, ItemRef};

use crate::item::{Access, Because, Dependence, Need, RootPath};
use crate::kinds::{Directory, with_need};

/// Undeclared directories by path, the outer ones first.
#[derive(Debug, Default)]
pub(crate) struct Parents {
    directories: BTreeMap<RootPath, Parent>,
    /// Items that run in directories: each with the directories that nobody declared around it, the nearest one first.
    runs_in: Vec<(ItemRef, Vec<RootPath>)>,
}

#[derive(Debug, Default)]
struct Parent {
    /// The declared items directly in it.
    children: Vec<ItemRef>,
    /// The nearest declared directory, or link to one, around it.
    around: Option<ItemRef>,
}

impl Parents {
    /// Takes in the directories around the path of an item; `declared` gives the item that is declared at a path.
    pub(crate) fn take_in(
        &mut self,
        path: &RootPath,
        item: &ItemRef,
        declared: impl Fn(&str) -> Option<ItemRef>,
    ) {
        let mut undeclared = Vec::new();
        let mut around = None;
        let mut next = path.parent();
        while let Some(parent) = next {
            if let Some(known) = self.directories.get_mut(parent) {
                if undeclared.is_empty() {
                    known.children.push(item.clone());
                }
                around.clone_from(&known.around);
                break;
            }
            around = declared(parent);
            if around.is_some() {
                break;
            }
            undeclared.push(parent);
            next = parent.rsplit_once('/').map(|(outer, _)| outer);
        }
        for (i, parent) in undeclared.into_iter().enumerate() {
            let Ok(path) = RootPath::new(parent) else { continue };
            let children = if i == 0 { vec![item.clone()] } else { Vec::new() };
            self.directories.insert(path, Parent { children, around: around.clone() });
        }
    }

    /// Takes in the directory that an item runs in: nothing is made for its sake, but it waits for what is made for others.
    pub(crate) fn take_in_directory(
        &mut self,
        directory: &RootPath,
        item: &ItemRef,
        declared: impl Fn(&str) -> Option<ItemRef>,
    ) {
        let outer = |path: &str| path.rsplit_once('/').map(|(outer, _)| outer.len());
        let text = directory.as_str();
        let around = std::iter::successors(Some(text), |path| outer(path).map(|end| &text[..end]));
        let undeclared = around.take_while(|path| declared(path).is_none());
        self.runs_in.push((item.clone(), undeclared.filter_map(|path| RootPath::new(path).ok()).collect()));
    }

    /// Adds to a graph those that are wanted, as items that what is inside of them needs. Returns whether any was added.
    pub(crate) fn add_to(&self, graph: &mut Graph, is_wanted: impl Fn(&RootPath) -> bool) -> bool {
        let mut added: BTreeMap<&str, ItemRef> = BTreeMap::new();
        let mut changed = false;
        let mut new: BTreeSet<&RootPath> = BTreeSet::new();
        for (path, parent) in &self.directories {
            let reference = reference(path);
            let is_there = graph.contains(&reference);
            if !is_there && !is_wanted(path) {
                continue;
            }
            added.insert(path.as_str(), reference.clone());
            if is_there {
                continue;
            }
            new.insert(path);
            let outer = path.parent().and_then(|outer| added.get(outer)).or(parent.around.as_ref());
            let needs = outer.map(inside).into_iter().collect();
            let (name, path, access) = (reference.name().clone(), path.clone(), Access::default());
            let directory = Directory { name, path, access, adopt: false, implicit: true, needs };
            changed |= graph.put_item(ItemHandle::new(directory)).is_ok();
            for child in &parent.children {
                need(graph, child, &reference);
            }
        }
        for (item, around) in &self.runs_in {
            if let Some(nearest) = around.iter().find(|path| added.contains_key(path.as_str()))
                && new.contains(nearest)
            {
                need(graph, item, &reference(nearest));
            }
        }
        changed
    }
}

/// Lets an item need the directory that it is in.
fn need(graph: &mut Graph, item: &ItemRef, directory: &ItemRef) {
    let with = graph.item(item).and_then(|item| with_need(item, inside(directory)));
    // The same reference: such a put is never refused.
    let _ = with.map(|item| graph.put_item(item));
}

/// What an undeclared directory is called: its path with a slash, which no declared name ends with. One that is declared
/// there later, under whatever name, is known by its place.
fn reference(path: &RootPath) -> ItemRef {
    ItemRef::of::<Directory>(format!("{path}/"))
}

fn inside(item: &ItemRef) -> Need {
    Need { item: item.clone(), because: Because::Inside, dependence: Dependence::Requires }
}
