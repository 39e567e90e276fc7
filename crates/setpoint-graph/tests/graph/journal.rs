use std::collections::BTreeSet;

use setpoint_graph::{Graph, ItemRef, Revision, State, Touched};

use crate::support::{Health, graph, item, path, thing};

/// All references that the journal names since a revision.
pub(crate) fn touched<S: State>(graph: &Graph<S>, since: Revision) -> Option<BTreeSet<ItemRef>> {
    let entries = graph.touched_since(since)?;
    Some(
        entries
            .filter_map(|entry| match entry {
                Touched::Slot(slot) => graph.reference_at(*slot).cloned(),
                Touched::Gone(reference) => Some((**reference).clone()),
            })
            .collect(),
    )
}

#[test]
fn every_kind_of_change_is_touched() {
    let mut graph: Graph<Health> = Graph::new("test");
    let mut seen = graph.revision();
    let mut expect = |graph: &Graph<Health>, names: &[&str], why: &str| {
        let expected: BTreeSet<_> = names.iter().map(|name| item(name)).collect();
        assert_eq!(touched(graph, seen).unwrap(), expected, "{why}");
        assert_eq!(graph.revision() > seen, !names.is_empty(), "{why}");
        seen = graph.revision();
    };
    graph.put_item(thing("a").needs("b")).unwrap();
    expect(&graph, &["a"], "put");
    graph.put_item(thing("a").needs("b")).unwrap();
    expect(&graph, &[], "put an equal one");
    graph.set_state(&item("a"), Health::Busy).unwrap();
    expect(&graph, &["a"], "state");
    graph.move_item(&item("a"), &path("s")).unwrap();
    expect(&graph, &["a"], "move");
    graph.move_item(&item("a"), &path("s")).unwrap();
    expect(&graph, &[], "move to where it is");
    graph.put_item_into(&path("s"), thing("a").needs("c")).unwrap();
    expect(&graph, &["a", "b"], "replace; b is mentioned no more");
    graph.put_item(thing("c")).unwrap();
    graph.del_item(&item("c")).unwrap();
    expect(&graph, &["c"], "deleted, and still mentioned");
    graph.del_subgraph(&path("s")).unwrap();
    expect(&graph, &["a", "c"], "freed slots are named");
}

#[test]
fn a_slot_that_was_used_again_does_not_hide_what_was_in_it() {
    let mut graph = graph([("", thing("a"))]);
    let seen = graph.revision();
    let slot = graph.slot_of(&item("a")).unwrap();
    graph.del_item(&item("a")).unwrap();
    assert_eq!(graph.put_item(thing("b")).unwrap(), slot);
    assert_eq!(touched(&graph, seen).unwrap(), ["a", "b"].map(item).into());
}

#[test]
fn a_journal_that_does_not_reach_back_says_so() {
    let mut graph = graph([("", thing("a"))]);
    let start = graph.revision();
    for value in 0..10_000 {
        graph.put_item(thing("a").value(value + 1)).unwrap();
    }
    assert!(graph.touched_since(start).is_none());
    let seen = graph.revision();
    assert_eq!(graph.touched_since(seen).unwrap().count(), 0);
    let clone = graph.clone();
    assert!(clone.touched_since(seen).is_none(), "a revision of another graph that is beyond this one's");
}
