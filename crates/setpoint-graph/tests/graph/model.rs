//! Random edits against a plain map as the oracle.

use std::collections::{BTreeMap, BTreeSet};

use petgraph::algo::tarjan_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use proptest::prelude::*;
use setpoint_graph::{
    Batch, Cycle, Drawing, Edge, Graph, ItemRef, Mark, Marks, ResourceKey, SlotId, SubgraphPath,
};

use crate::export::assert_tidy;
use crate::journal::touched;
use crate::support::{Need, Thing, item, path, thing};

type Model = BTreeMap<ItemRef, (SubgraphPath, Thing)>;

#[derive(Clone, Debug)]
enum Op {
    Put(SubgraphPath, Thing),
    Del(ItemRef),
    Move(ItemRef, SubgraphPath),
    PutSubgraph(SubgraphPath, String, Vec<(SubgraphPath, Thing)>),
    DelSubgraph(SubgraphPath),
    Batch(Vec<(SubgraphPath, Result<Thing, ItemRef>)>),
}

fn any_name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "d", "e", "f", "g", "h"]).prop_map(str::to_owned)
}

fn any_path() -> impl Strategy<Value = SubgraphPath> {
    prop::collection::vec(prop::sample::select(vec!["s", "t"]), 0..3)
        .prop_map(|names| names.into_iter().collect())
}

fn any_need(alternatives: bool) -> BoxedStrategy<Need> {
    let plain = any_name().prop_map(Need::One);
    if !alternatives {
        return plain.boxed();
    }
    let any_of = prop::collection::vec(any_name(), 0..4).prop_map(Need::AnyOf);
    prop_oneof![3 => plain, 1 => any_of].boxed()
}

fn any_thing(alternatives: bool) -> impl Strategy<Value = Thing> {
    let needs = prop::collection::vec(any_need(alternatives), 0..4);
    let claims = prop::collection::vec(prop::sample::select(vec!["p", "q"]), 0..3);
    (any_name(), 0..3_u32, needs, claims).prop_map(|(name, value, needs, claims)| Thing {
        needs,
        claims: claims.into_iter().map(str::to_owned).collect(),
        ..thing(&name).value(value)
    })
}

fn any_op(alternatives: bool) -> impl Strategy<Value = Op> {
    let name = || any_name().prop_map(|name| item(&name));
    let things = move || prop::collection::vec((any_path(), any_thing(alternatives)), 0..5);
    let steps = (any_path(), prop_oneof![any_thing(alternatives).prop_map(Ok), name().prop_map(Err)]);
    prop_oneof![
        6 => (any_path(), any_thing(alternatives)).prop_map(|(path, thing)| Op::Put(path, thing)),
        2 => name().prop_map(Op::Del),
        2 => (name(), any_path()).prop_map(|(name, path)| Op::Move(name, path)),
        2 => (any_path(), prop::sample::select(vec!["s", "t"]), things())
            .prop_map(|(path, name, things)| Op::PutSubgraph(path, name.to_owned(), things)),
        1 => any_path().prop_map(Op::DelSubgraph),
        2 => prop::collection::vec(steps, 0..5).prop_map(Op::Batch),
    ]
}

/// Does the same to graph and model; the two must agree on whether it is refused.
fn apply(op: &Op, graph: &mut Graph, model: &mut Model) {
    match op {
        Op::Put(path, thing) => {
            let reference = item(&thing.name);
            let fits = model.get(&reference).is_none_or(|(home, _)| home == path);
            assert_eq!(graph.put_item_into(path, thing.clone()).is_ok(), fits);
            if fits {
                model.insert(reference, (path.clone(), thing.clone()));
            }
        }
        Op::Del(reference) => {
            assert_eq!(graph.del_item(reference).is_ok(), model.remove(reference).is_some());
        }
        Op::Move(reference, path) => {
            let entry = model.get_mut(reference);
            assert_eq!(graph.move_item(reference, path).is_ok(), entry.is_some());
            if let Some((home, _)) = entry {
                home.clone_from(path);
            }
        }
        Op::PutSubgraph(parent, name, things) => {
            let mut new = Graph::new(name.as_str());
            for (path, thing) in things {
                let _ = new.put_item_into(path, thing.clone());
            }
            let top = parent.join(name.as_str());
            let inside = |path: &SubgraphPath| top.is_prefix_of(path);
            let incoming: Vec<_> = new
                .items()
                .map(|n| (n.reference().clone(), top.concat(&n.path()), n.item().get().cloned().unwrap()))
                .collect();
            let fits = incoming.iter().all(|(r, ..)| model.get(r).is_none_or(|(home, _)| inside(home)));
            assert_eq!(graph.put_subgraph(parent, new).is_ok(), fits);
            if fits {
                model.retain(|_, (home, _)| !inside(home));
                model.extend(incoming.into_iter().map(|(r, path, thing)| (r, (path, thing))));
            }
        }
        Op::DelSubgraph(path) => {
            let there = !path.is_root() && graph.subgraph(path).is_some();
            assert_eq!(graph.del_subgraph(path).is_ok(), there);
            if there {
                model.retain(|_, (home, _)| !path.is_prefix_of(home));
            }
        }
        Op::Batch(steps) => {
            let mut batch = Batch::new();
            let mut places: BTreeSet<(ItemRef, SubgraphPath)> =
                model.iter().map(|(r, (home, _))| (r.clone(), home.clone())).collect();
            let mut things: BTreeMap<(ItemRef, SubgraphPath), Thing> =
                model.iter().map(|(r, (home, thing))| ((r.clone(), home.clone()), thing.clone())).collect();
            let mut fits = true;
            for (path, step) in steps {
                match step {
                    Ok(thing) => {
                        batch = batch.put(path, thing.clone());
                        let key = (item(&thing.name), path.clone());
                        places.insert(key.clone());
                        things.insert(key, thing.clone());
                    }
                    Err(reference) => {
                        batch = batch.del(path, reference);
                        fits &= places.remove(&(reference.clone(), path.clone()));
                    }
                }
            }
            let references: BTreeSet<_> = places.iter().map(|(reference, _)| reference).collect();
            fits &= references.len() == places.len();
            assert_eq!(graph.edit(batch).is_ok(), fits);
            if fits {
                *model = places
                    .into_iter()
                    .map(|key| {
                        let thing = things[&key].clone();
                        (key.0, (key.1, thing))
                    })
                    .collect();
            }
        }
    }
}

fn targets(thing: &Thing) -> Vec<ItemRef> {
    let mut targets = Vec::new();
    for need in &thing.needs {
        match need {
            Need::One(name) | Need::AtLeast(name, _) => targets.push(item(name)),
            Need::AnyOf(names) => {
                let mut seen = BTreeSet::new();
                targets.extend(names.iter().filter(|name| seen.insert(*name)).map(|name| item(name)));
            }
        }
    }
    targets
}

/// Everything that must hold after any edit.
fn check(graph: &Graph, model: &Model) {
    assert_eq!(graph.len(), model.len());
    let mut expected: Vec<_> = model.iter().map(|(r, (path, _))| (path.clone(), r.clone())).collect();
    expected.sort();
    let found: Vec<_> = graph.items().map(|node| (node.path(), node.reference().clone())).collect();
    assert_eq!(found, expected, "order and paths");

    let mut mentioned: BTreeSet<ItemRef> = BTreeSet::new();
    let mut slots: BTreeSet<SlotId> = graph.slots().collect();
    assert_eq!(slots.len(), model.len());
    for (reference, (path, thing)) in model {
        let slot = graph.slot_of(reference).expect("the index finds every reference");
        assert_eq!(graph.item_at(slot).unwrap().get(), Some(thing));
        assert!(graph.subgraph(path).unwrap().contains_slot(slot));
        let edges: Vec<ItemRef> =
            graph.edges_at(slot).iter().map(|edge| graph.reference_at(edge.slot).unwrap().clone()).collect();
        assert_eq!(edges, targets(thing), "edges follow the dependencies");
        for (position, edge) in (0_u32..).zip(graph.edges_at(slot)) {
            let back = graph.incoming_at(edge.slot)[edge.position as usize];
            assert_eq!(back, Edge { slot, position });
            assert!(
                graph.dependency_at(slot, position).unwrap().targets().contains(&edges[position as usize])
            );
            slots.insert(edge.slot);
        }
        mentioned.extend(edges);
    }
    for &slot in &slots {
        assert_eq!(graph.slot_of(graph.reference_at(slot).unwrap()), Some(slot));
        for (position, edge) in (0_u32..).zip(graph.incoming_at(slot)) {
            assert_eq!(graph.edges_at(edge.slot)[edge.position as usize], Edge { slot, position });
        }
    }
    let missing: Vec<_> = mentioned.iter().filter(|reference| !model.contains_key(reference)).collect();
    assert_eq!(graph.missing(), missing);

    for key in ["p", "q"] {
        let holders: BTreeSet<_> = model
            .iter()
            .filter(|(_, (_, thing))| thing.claims.iter().any(|claim| claim == key))
            .map(|(reference, _)| reference.clone())
            .collect();
        let claimants = graph.claimants(&ResourceKey::new(key));
        let named: BTreeSet<_> =
            claimants.iter().map(|&slot| graph.reference_at(slot).unwrap().clone()).collect();
        assert_eq!((named, claimants.len()), (holders.clone(), holders.len()));
    }
    let (all, paths) = (graph.view().len(), graph.subgraph_paths());
    assert_eq!(all, graph.len());
    let mut sorted = paths.clone();
    sorted.sort();
    assert_eq!(paths, sorted);
}

/// The cycles that petgraph finds: components of several items, or of one that needs itself.
fn oracle_cycles(model: &Model) -> Vec<Vec<ItemRef>> {
    let index: BTreeMap<&ItemRef, usize> = model.keys().enumerate().map(|(i, r)| (r, i)).collect();
    let mut plain: DiGraph<(), ()> = DiGraph::new();
    let nodes: Vec<NodeIndex> = model.keys().map(|_| plain.add_node(())).collect();
    for (reference, (_, thing)) in model {
        for target in targets(thing).iter().filter_map(|target| index.get(target)) {
            plain.add_edge(nodes[index[reference]], nodes[*target], ());
        }
    }
    let names: Vec<&ItemRef> = model.keys().collect();
    let mut cycles: Vec<Vec<ItemRef>> = tarjan_scc(&plain)
        .into_iter()
        .filter(|members| members.len() > 1 || plain.contains_edge(members[0], members[0]))
        .map(|members| {
            let mut members: Vec<_> = members.into_iter().map(|i| names[i.index()].clone()).collect();
            members.sort();
            members
        })
        .collect();
    cycles.sort();
    cycles
}

/// The part of a model that lives inside a subgraph.
fn part_of(model: &Model, place: &SubgraphPath) -> Model {
    let inside = model.iter().filter(|(_, (home, _))| place.is_prefix_of(home));
    inside.map(|(reference, entry)| (reference.clone(), entry.clone())).collect()
}

/// What can never be created, by trying: start with what is missing, create until nothing moves.
fn stuck(model: &Model) -> BTreeSet<ItemRef> {
    let mut created: BTreeSet<&ItemRef> = BTreeSet::new();
    loop {
        let there = |name: &String| !model.contains_key(&item(name)) || created.contains(&item(name));
        let ready = |thing: &Thing| {
            thing.needs.iter().all(|need| match need {
                Need::One(name) | Need::AtLeast(name, _) => there(name),
                // One without alternatives is never met, which is no cycle.
                Need::AnyOf(names) => names.is_empty() || names.iter().any(there),
            })
        };
        let next: Vec<_> = model
            .iter()
            .filter(|(r, (_, thing))| !created.contains(r) && ready(thing))
            .map(|(r, _)| r)
            .collect();
        if next.is_empty() {
            return model.keys().filter(|r| !created.contains(r)).cloned().collect();
        }
        created.extend(next);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_edits_keep_every_invariant(ops in prop::collection::vec(any_op(true), 1..40)) {
        let (mut graph, mut model) = (Graph::new("model"), Model::new());
        for (i, op) in ops.iter().enumerate() {
            let (seen, before, edits_on) = (graph.revision(), model.clone(), graph.clone());
            apply(op, &mut graph, &mut model);
            check(&graph, &model);
            let named = touched(&graph, seen).unwrap();
            let changed = before.keys().chain(model.keys()).filter(|r| before.get(r) != model.get(r));
            for reference in changed {
                prop_assert!(named.contains(reference), "step {} {:?}: {} is not in the journal", i, op, reference);
            }
            let diff: BTreeSet<_> = edits_on.diff(&graph).into_iter().map(|d| d.item).collect();
            let differing: BTreeSet<_> =
                before.keys().chain(model.keys()).filter(|r| before.get(r) != model.get(r)).cloned().collect();
            prop_assert_eq!(diff, differing);
        }
        let drawing = Drawing::of(&graph);
        assert_tidy(&drawing, &drawing.layout());
        let birth = Drawing::transition(&Graph::<()>::new("model"), &graph, &Marks::new());
        prop_assert_eq!(birth.nodes().iter().filter(|n| n.mark == Some(Mark::Added)).count(), model.len());
        let top = graph.subgraph_paths();
        for place in top.iter().filter(|place| place.names().len() == 1) {
            graph.del_subgraph(place).unwrap();
        }
        for reference in graph.items().map(|n| n.reference().clone()).collect::<Vec<_>>() {
            graph.del_item(&reference).unwrap();
        }
        check(&graph, &Model::new());
        prop_assert!(!graph.has_claims());
    }

    #[test]
    fn cycles_are_those_that_petgraph_finds(ops in prop::collection::vec(any_op(false), 1..20)) {
        let (mut graph, mut model) = (Graph::new("model"), Model::new());
        for op in &ops {
            apply(op, &mut graph, &mut model);
        }
        let members = |cycles: Vec<Cycle>| {
            let mut members: Vec<_> = cycles.iter().map(|cycle| cycle.members().to_vec()).collect();
            members.sort();
            members
        };
        prop_assert_eq!(members(graph.cycles()), oracle_cycles(&model));
        for place in graph.subgraph_paths() {
            let view = graph.subgraph(&place).unwrap();
            prop_assert_eq!(members(view.cycles()), oracle_cycles(&part_of(&model, &place)));
        }
    }

    #[test]
    fn a_cycle_is_reported_exactly_if_something_can_never_be_created(
        things in prop::collection::vec(any_thing(true), 1..9)
    ) {
        let (mut graph, mut model) = (Graph::new("model"), Model::new());
        for thing in things {
            apply(&Op::Put(path(""), thing), &mut graph, &mut model);
        }
        let (cycles, stuck) = (graph.cycles(), stuck(&model));
        prop_assert_eq!(cycles.is_empty(), stuck.is_empty());
        for cycle in &cycles {
            prop_assert!(cycle.members().iter().all(|member| stuck.contains(member)));
            for (i, from) in cycle.path().iter().enumerate() {
                let to = &cycle.path()[(i + 1) % cycle.path().len()];
                prop_assert!(graph.outgoing(from).iter().any(|edge| edge.to == to), "{}", cycle);
            }
            prop_assert_eq!(cycle.path().first(), cycle.path().iter().min());
        }
    }
}
