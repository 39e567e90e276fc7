use setpoint_graph::{Graph, State};

use crate::support::{graph, item, path, thing};

fn cycles<S: State>(graph: &Graph<S>) -> Vec<String> {
    graph.cycles().iter().map(ToString::to_string).collect()
}

#[test]
fn two_items_that_need_each_other_are_a_cycle() {
    let mut graph = graph([("", thing("a").needs("b")), ("", thing("b").needs("c"))]);
    assert!(cycles(&graph).is_empty());
    graph.put_item(thing("b").needs("a")).unwrap();
    assert_eq!(cycles(&graph), ["thing/a → thing/b → thing/a"]);
}

#[test]
fn a_cycle_of_three_over_subgraphs_is_named_in_order_from_the_smallest() {
    let graph =
        graph([("s", thing("c").needs("b")), ("t", thing("b").needs("a")), ("", thing("a").needs("c"))]);
    assert_eq!(cycles(&graph), ["thing/a → thing/c → thing/b → thing/a"]);
    let found = &graph.cycles()[0];
    assert_eq!(found.path(), ["a", "c", "b"].map(item));
    assert_eq!(found.members(), ["a", "b", "c"].map(item));
    assert_eq!(found.slots().len(), 3);
}

#[test]
fn a_cycle_inside_a_subgraph_is_found_on_the_subgraph() {
    let graph =
        graph([("s", thing("a").needs("b")), ("s/t", thing("b").needs("a")), ("u", thing("c").needs("a"))]);
    assert_eq!(graph.subgraph(&path("s")).unwrap().cycles().len(), 1);
    assert!(graph.subgraph(&path("s/t")).unwrap().cycles().is_empty(), "what is outside counts as there");
    assert!(graph.subgraph(&path("u")).unwrap().cycles().is_empty());
    assert_eq!(graph.cycles_from([graph.slot_of(&item("c")).unwrap()]).len(), 1, "reachable from c");
}

#[test]
fn an_item_that_needs_itself_is_a_cycle_also_as_a_selection() {
    let graph = graph([("", thing("a").needs("a"))]);
    assert_eq!(cycles(&graph), ["thing/a → thing/a"]);
    assert_eq!(graph.item_as_graph(&item("a")).unwrap().cycles().len(), 1);
}

#[test]
fn alternatives_that_can_start_elsewhere_are_no_cycle() {
    let one = graph([("", thing("a").any_of(["b", "c"])), ("", thing("b").needs("a")), ("", thing("c"))]);
    assert!(cycles(&one).is_empty(), "c, a, b");
    let two = graph([("", thing("a").any_of(["b", "missing"])), ("", thing("b").needs("a"))]);
    assert!(cycles(&two).is_empty(), "what is missing may come");
}

#[test]
fn alternatives_that_all_wait_for_the_item_are_a_cycle() {
    let graph = graph([
        ("", thing("a").any_of(["b", "c"])),
        ("", thing("b").needs("a")),
        ("", thing("c").needs("a")),
    ]);
    assert_eq!(cycles(&graph), ["thing/a → thing/b → thing/a"]);
    assert_eq!(graph.cycles()[0].members().len(), 3);
}

#[test]
fn an_alternative_behind_another_cycle_does_not_help() {
    let graph = graph([
        ("", thing("a").any_of(["b", "c"])),
        ("", thing("b").needs("a")),
        ("", thing("c").needs("c")),
    ]);
    assert_eq!(cycles(&graph), ["thing/a → thing/b → thing/a", "thing/c → thing/c"]);
}

#[test]
fn what_only_waits_for_a_cycle_is_not_on_it() {
    let graph =
        graph([("", thing("a").needs("b")), ("", thing("b").needs("b")), ("", thing("0").needs("a"))]);
    assert_eq!(cycles(&graph), ["thing/b → thing/b"]);
    assert_eq!(graph.cycles()[0].members(), [item("b")]);
}

#[test]
fn two_cycles_joined_by_harmless_alternatives_are_both_named() {
    let graph = graph([
        ("", thing("a").needs("b").any_of(["c", "w"])),
        ("", thing("b").needs("a")),
        ("", thing("c").needs("d").any_of(["a", "w"])),
        ("", thing("d").needs("c")),
        ("", thing("w")),
    ]);
    assert_eq!(cycles(&graph), ["thing/a → thing/b → thing/a", "thing/c → thing/d → thing/c"]);
}

#[test]
fn a_long_chain_behind_a_cycle_is_searched_in_no_time() {
    let mut graph: Graph = Graph::new("chain");
    let n = 50_000;
    for i in 0..n {
        let this = thing(&format!("{i:06}"));
        let next = format!("{:06}", i + 1);
        let this = if i + 1 < n { this.needs(&next) } else { this.any_of(["000000", "w"]).needs("self") };
        graph.put_item(this).unwrap();
    }
    graph.put_item(thing("self").needs("self")).unwrap();
    graph.put_item(thing("w")).unwrap();
    assert_eq!(cycles(&graph), ["thing/self → thing/self"]);
    graph.put_item(thing(&format!("{:06}", n - 1)).needs("000000")).unwrap();
    assert_eq!(graph.cycles()[0].path().len(), n);
}

#[test]
fn a_hub_whose_needs_are_met_one_by_one_is_searched_in_no_time() {
    let mut graph: Graph = Graph::new("hub");
    let mut hub = thing("hub");
    for i in 0..50_000 {
        let name = format!("{i:05}");
        hub = hub.needs(&name);
        graph.put_item(thing(&name).any_of(["hub", "w"])).unwrap();
    }
    graph.put_item(hub).unwrap();
    assert!(cycles(&graph).is_empty());
}
