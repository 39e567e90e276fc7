//! From graphs to the model of a drawing.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Drawing, DrawnEdge, DrawnNode, DrawnPresence, DrawnSubgraph, Mark, Marks};
use crate::{Dependency, Graph, ItemHandle, ItemRef, Look, Name, Node, State, View};

impl Drawing {
    /// Draws a graph, or a part of one.
    pub fn of<'a, S: State>(part: impl Into<View<'a, S>>) -> Self {
        let part = part.into();
        let mut draft = Draft::new(&part);
        draft.add_part(&part, |_| None, None);
        draft.add_edges(&part, |_, _| Some(None));
        draft.finish(false)
    }

    /// Draws the way from one graph, or part, to another.
    ///
    /// What happens to an item is found by comparison, unless the caller marks it.
    pub fn transition<'a, 'b, S: State, O: State>(
        from: impl Into<View<'a, S>>,
        to: impl Into<View<'b, O>>,
        marks: &Marks,
    ) -> Self {
        let (from, to) = (from.into(), to.into());
        let changes: FxHashMap<ItemRef, Mark> = from
            .diff(&to)
            .into_iter()
            .map(|difference| (difference.item, difference.change.into()))
            .collect();
        let mark = |item: &ItemRef| {
            let found = marks.get(item).or_else(|| changes.get(item)).copied();
            Some(found.unwrap_or(Mark::Unchanged))
        };
        let mut draft = Draft::new(&to);
        draft.add_part(&to, mark, Some(Mark::Added));
        draft.add_part(&from, mark, Some(Mark::Removed));
        let (before, after) = (edges_of(&from), edges_of(&to));
        let is_new = |item: &ItemRef, target: &ItemRef| !before.contains(&(item, target));
        draft.add_edges(&to, |item, target| {
            Some(Some(if is_new(item, target) { Mark::Added } else { Mark::Unchanged }))
        });
        draft.add_edges(&from, |item, target| {
            (!after.contains(&(item, target))).then_some(Some(Mark::Removed))
        });
        draft.finish(true)
    }
}

impl<'a, S: State> From<&'a Graph<S>> for View<'a, S> {
    fn from(graph: &'a Graph<S>) -> Self {
        graph.view()
    }
}

fn edges_of<'a, S: State>(part: &View<'a, S>) -> FxHashSet<(&'a ItemRef, &'a ItemRef)> {
    let targets = |node: Node<'a, S>| {
        let dependencies = node.item().dependencies().iter();
        dependencies.flat_map(Dependency::targets).map(move |target| (node.reference(), target))
    };
    part.items().flat_map(targets).collect()
}

/// A drawing whose parts are not yet in order.
struct Draft {
    subgraphs: Vec<(DrawnSubgraph, BTreeMap<Name, usize>)>,
    nodes: BTreeMap<ItemRef, DrawnNode>,
    edges: Vec<(ItemRef, ItemRef, DrawnEdge)>,
}

impl Draft {
    fn new<S: State>(part: &View<'_, S>) -> Self {
        let whole = DrawnSubgraph {
            name: part.name().clone(),
            description: part.description().to_owned(),
            parent: None,
            mark: None,
        };
        Self { subgraphs: vec![(whole, BTreeMap::new())], nodes: BTreeMap::new(), edges: Vec::new() }
    }

    /// Adds the subgraphs and items that are not there yet. Subgraphs are marked as `fresh` if they were not
    /// there, and as staying if they were.
    fn add_part<S: State>(
        &mut self,
        part: &View<'_, S>,
        mark: impl Fn(&ItemRef) -> Option<Mark>,
        fresh: Option<Mark>,
    ) {
        let mut todo = vec![(*part, 0)];
        while let Some((view, place)) = todo.pop() {
            for node in view.own_items() {
                let drawn =
                    || draw(node.item(), node.state(), DrawnPresence::Here, mark(node.reference()), place);
                let known = self.nodes.entry(node.reference().clone()).or_insert_with(drawn);
                // Of an item in both parts, one may know how it is.
                if known.look == Look::default() {
                    known.look = look(node.state());
                }
            }
            for child in view.subgraphs() {
                let next = self.subgraphs.len();
                let below = *self.subgraphs[place].1.entry(child.name().clone()).or_insert(next);
                if below == next {
                    let (name, description) = (child.name().clone(), child.description().to_owned());
                    let drawn = DrawnSubgraph { name, description, parent: Some(place), mark: fresh };
                    self.subgraphs.push((drawn, BTreeMap::new()));
                } else {
                    self.subgraphs[below].0.mark = Some(Mark::Unchanged);
                }
                todo.push((child, below));
            }
        }
    }

    /// Adds the edges of a part that `mark` wants, and nodes for what they lead to.
    fn add_edges<S: State>(
        &mut self,
        part: &View<'_, S>,
        mark: impl Fn(&ItemRef, &ItemRef) -> Option<Option<Mark>>,
    ) {
        let graph = part.graph();
        for node in part.items() {
            for (index, dependency) in node.item().dependencies().iter().enumerate() {
                let problems: Vec<Option<String>> =
                    dependency.targets().iter().map(|target| problem(graph, dependency, target)).collect();
                let met = problems.iter().any(Option::is_none);
                for (target, unsatisfied) in dependency.targets().iter().zip(problems) {
                    let Some(mark) = mark(node.reference(), target) else { continue };
                    self.add_target(graph, target);
                    let edge = DrawnEdge {
                        from: 0,
                        to: 0,
                        description: dependency.description().to_owned(),
                        wanted: dependency.wanted().map(str::to_owned),
                        any_of: dependency.is_any_of().then_some(index),
                        unsatisfied,
                        met,
                        mark,
                    };
                    self.edges.push((node.reference().clone(), target.clone(), edge));
                }
            }
        }
    }

    fn add_target<S: State>(&mut self, graph: &Graph<S>, target: &ItemRef) {
        if self.nodes.contains_key(target) {
            return;
        }
        let drawn = match graph.node_of(target) {
            Some(node) => draw(node.item(), node.state(), DrawnPresence::Outside, None, 0),
            None => DrawnNode {
                reference: target.clone(),
                label: target.name().to_string(),
                description: format!("{target} is missing"),
                external: false,
                presence: DrawnPresence::Missing,
                look: Look { created: false, ..Look::default() },
                mark: None,
                subgraph: 0,
            },
        };
        self.nodes.insert(target.clone(), drawn);
    }

    /// Brings all into order and turns references into positions.
    fn finish(self, transition: bool) -> Drawing {
        let mut order = Vec::with_capacity(self.subgraphs.len());
        let mut position = vec![0; self.subgraphs.len()];
        let mut todo = vec![0];
        while let Some(subgraph) = todo.pop() {
            position[subgraph] = order.len();
            order.push(subgraph);
            todo.extend(self.subgraphs[subgraph].1.values().rev());
        }
        let subgraphs = order.iter().map(|&old| {
            let mut subgraph = self.subgraphs[old].0.clone();
            subgraph.parent = subgraph.parent.map(|parent| position[parent]);
            subgraph
        });
        let index: FxHashMap<&ItemRef, usize> =
            self.nodes.keys().enumerate().map(|(i, item)| (item, i)).collect();
        let mut edges: Vec<DrawnEdge> = self
            .edges
            .into_iter()
            .filter_map(|(from, to, edge)| {
                Some(DrawnEdge { from: *index.get(&from)?, to: *index.get(&to)?, ..edge })
            })
            .collect();
        edges.sort_by_key(|edge| edge.from);
        let subgraphs = subgraphs.collect();
        let mut nodes: Vec<DrawnNode> = self.nodes.into_values().collect();
        for node in &mut nodes {
            node.subgraph = position[node.subgraph];
        }
        Drawing { subgraphs, nodes, edges, transition }
    }
}

fn draw<S: State>(
    item: &ItemHandle,
    state: Option<&S>,
    presence: DrawnPresence,
    mark: Option<Mark>,
    subgraph: usize,
) -> DrawnNode {
    DrawnNode {
        reference: item.reference().clone(),
        label: item.label(),
        description: item.description(),
        external: item.external(),
        presence,
        look: look(state),
        mark,
        subgraph,
    }
}

fn look<S: State>(state: Option<&S>) -> Look {
    state.map(State::look).unwrap_or_default()
}

/// Why a target does not satisfy a dependency; none if it does.
fn problem<S: State>(graph: &Graph<S>, dependency: &Dependency, target: &ItemRef) -> Option<String> {
    let Some(node) = graph.node_of(target) else { return Some("it is missing".to_owned()) };
    if !look(node.state()).created {
        return Some("it is not created".to_owned());
    }
    dependency.check(node.item()).err()
}
