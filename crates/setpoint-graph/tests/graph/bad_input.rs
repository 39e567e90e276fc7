use std::time::{Duration, Instant};

use setpoint_graph::{Graph, GraphError, ItemRef, SubgraphPath};

use crate::support::{Odd, Thing, graph, item, names, path, thing};

#[test]
fn two_dependencies_on_one_reference_are_two_edges() {
    let mut graph = graph([("", thing("a").needs("b").at_least("b", 3).needs("b"))]);
    assert_eq!((graph.outgoing(&item("a")).len(), graph.incoming(&item("b")).len()), (3, 3));
    graph.put_item(thing("c").needs("b")).unwrap();
    graph.put_item(thing("a").needs("b")).unwrap();
    assert_eq!(graph.incoming(&item("b")).len(), 2);
    graph.del_item(&item("a")).unwrap();
    graph.del_item(&item("c")).unwrap();
    assert!(graph.slot_of(&item("b")).is_none());
}

#[test]
fn an_item_that_needs_itself_can_be_put_replaced_and_deleted() {
    let mut graph = graph([("", thing("a").needs("a").needs("b").needs("a"))]);
    assert_eq!(graph.incoming(&item("a")).len(), 2);
    graph.put_item(thing("a").needs("a")).unwrap();
    assert_eq!(graph.incoming(&item("a")).len(), 1);
    graph.del_item(&item("a")).unwrap();
    assert!(graph.is_empty() && graph.missing().is_empty());
}

#[test]
fn an_external_item_with_dependencies_is_refused_by_name() {
    let mut graph: Graph = Graph::new("test");
    let error = graph.put_item_into(&path("s"), thing("a").needs("b").external()).unwrap_err();
    assert_eq!(error.to_string(), "thing/a is external and can't have dependencies (it names thing/b)");
    assert!(graph.is_empty() && graph.missing().is_empty() && graph.subgraph_paths().is_empty());
    graph.put_item(thing("a").external()).unwrap();
    let error = graph.put_item(thing("a").any_of([]).external()).unwrap_err();
    assert!(matches!(error, GraphError::ExternalWithDependencies { .. }));
    assert!(graph.item(&item("a")).unwrap().external());
}

#[test]
fn an_any_of_nothing_has_no_edges_and_says_what_it_is() {
    let graph = graph([("", thing("a").any_of([]).needs("b"))]);
    let edges = graph.outgoing(&item("a"));
    assert_eq!(edges.len(), 1);
    assert_eq!(edges[0].dependency.description(), "a stands on b");
    assert_eq!(graph.item(&item("a")).unwrap().dependencies()[0].to_string(), "any of nothing");
    assert!(graph.cycles().is_empty());
}

#[test]
fn names_of_any_kind_are_kept_as_they_are() {
    let long = "x".repeat(100_000);
    let odd = ["", " ", "\"", "\\", "a\nb", "\0", "a/b", "🦀 ünïcode", "<&>", &long];
    let mut graph: Graph = Graph::new("\n\"");
    for name in odd {
        graph.put_item_into(&SubgraphPath::from([name, "in"]), Odd(thing(name).needs(name))).unwrap();
    }
    assert_eq!(graph.len(), odd.len());
    for name in odd {
        let reference = ItemRef::of::<Odd>(name);
        assert_eq!(graph.path_of(&reference), Some(SubgraphPath::from([name, "in"])), "{name:?}");
        graph.del_item(&reference).unwrap();
    }
    assert_eq!((graph.len(), graph.missing().len()), (0, 0));
    assert_eq!(graph.subgraph_paths().len(), 2 * odd.len());
}

#[test]
fn references_that_print_alike_are_different() {
    let (one, two) = (ItemRef::new("a/b", "c"), ItemRef::new("a", "b/c"));
    assert_eq!(one.to_string(), two.to_string());
    assert_ne!(one, two);
}

#[test]
fn ten_thousand_nested_subgraphs_do_not_overflow_the_stack() {
    let deep: SubgraphPath = (0..10_000).map(|i| format!("level {i}")).collect();
    let mut inner: Graph = Graph::new("top");
    inner.put_item_into(&deep, thing("bottom").needs("a")).unwrap();
    let mut outer: Graph = Graph::new("test");
    outer.put_subgraph(&path("s"), inner).unwrap();
    assert_eq!(names(&outer), ["bottom"]);
    let depth = outer.path_of(&item("bottom")).unwrap().names().len();
    assert_eq!(depth, 10_002);
    assert_eq!(outer.subgraph(&path("s/top")).unwrap().len(), 1);
    assert!(outer.cycles().is_empty());
    let mut other: Graph = Graph::new("top");
    other.put_item(thing("bottom")).unwrap();
    assert_eq!(outer.diff(&other).len(), 1);
    let copy = outer.clone();
    outer.put_subgraph(&path("s"), other).unwrap();
    assert_eq!(outer.path_of(&item("bottom")), Some(path("s/top")));
    drop(copy);
    outer.make_subgraph(&deep);
    outer.prune_subgraphs(&path(""), |_| false);
    assert_eq!(outer.subgraph_paths().len(), 2);
    outer.del_subgraph(&path("s")).unwrap();
}

#[test]
fn a_chain_of_a_hundred_thousand_items_does_not_overflow_the_stack() {
    let mut graph: Graph = Graph::new("chain");
    for i in 0..100_000_u32 {
        graph.put_item(thing(&i.to_string()).needs(&(i + 1).to_string())).unwrap();
    }
    assert!(graph.cycles().is_empty());
    graph.put_item(thing("100000").needs("0")).unwrap();
    assert_eq!(graph.cycles()[0].path().len(), 100_001);
}

#[test]
fn hundreds_of_thousands_of_items_are_put_and_taken_in_seconds() {
    let n = 200_000_u32;
    let start = Instant::now();
    let mut graph: Graph = Graph::new("large");
    let shuffled = (0..n).map(|i| i.wrapping_mul(7_919) % n);
    for i in shuffled.clone() {
        let needs = [i / 2, i / 3].map(|i| i.to_string());
        graph.put_item(thing(&i.to_string()).needs(&needs[0]).needs(&needs[1])).unwrap();
    }
    assert_eq!((graph.len(), graph.missing().len()), (n as usize, 0));
    assert_eq!(graph.items().count(), n as usize);
    for i in shuffled {
        graph.del_item(&item(&i.to_string())).unwrap();
    }
    assert!(graph.is_empty() && graph.missing().is_empty());
    assert!(start.elapsed() < Duration::from_mins(2), "{:?}", start.elapsed());
}

#[test]
fn an_item_with_many_dependencies_and_one_with_many_dependents_are_cheap() {
    let mut hub: Thing = thing("hub");
    let mut graph: Graph = Graph::new("hub");
    let n = 50_000;
    for i in 0..n {
        graph.put_item(thing(&format!("d{i}")).needs("hub").claims("the one")).unwrap();
        hub = hub.needs(&format!("n{i}"));
    }
    graph.put_item(hub).unwrap();
    assert_eq!((graph.incoming(&item("hub")).len(), graph.outgoing(&item("hub")).len()), (n, n));
    for i in 0..n {
        graph.del_item(&item(&format!("d{i}"))).unwrap();
    }
    graph.put_item(thing("hub")).unwrap();
    assert!(graph.missing().is_empty() && !graph.has_claims());
}

#[test]
fn slots_of_another_graph_give_nothing_rather_than_a_panic() {
    let large = graph([("", thing("a")), ("", thing("b")), ("", thing("c").any_of(["a", "b"]))]);
    let small: Graph = Graph::new("small");
    let slot = large.slot_of(&item("c")).unwrap();
    assert!(small.item_at(slot).is_none() && small.node(slot).is_none() && small.state_at(slot).is_none());
    assert!(small.edges_at(slot).is_empty() && small.incoming_at(slot).is_empty());
    assert!(small.slot_like(&large, slot).is_none() && large.slot_like(&small, slot).is_none());
    assert!(!small.view().contains_slot(slot) && small.dependency_at(slot, 9).is_none());
    assert!(small.cycles_from([slot]).is_empty());
}
