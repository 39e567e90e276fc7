use setpoint_graph::{Graph, Item, ItemRef, Kind, ResourceKey};

use crate::support::{Thing, graph, item, path, thing};

fn out(graph: &Graph, name: &str) -> Vec<(String, bool)> {
    let edges = graph.outgoing(&item(name));
    edges.iter().map(|edge| (edge.to.name().to_string(), edge.dangling)).collect()
}

fn into(graph: &Graph, name: &str) -> Vec<String> {
    graph.incoming(&item(name)).iter().map(|edge| edge.from.name().to_string()).collect()
}

#[test]
fn an_edge_dangles_until_the_required_item_is_put() {
    let mut graph = graph([("", thing("a").needs("b"))]);
    assert_eq!(out(&graph, "a"), [("b".into(), true)]);
    assert_eq!(into(&graph, "b"), ["a"], "also into what is only mentioned");
    assert_eq!(graph.missing(), [&item("b")]);
    assert!(!graph.contains(&item("b")));
    graph.put_item_into(&path("s"), thing("b")).unwrap();
    assert_eq!(out(&graph, "a"), [("b".into(), false)]);
    assert!(graph.missing().is_empty());
}

#[test]
fn edges_follow_the_item_when_it_is_replaced() {
    let mut graph = graph([("", thing("a").needs("b").needs("c")), ("", thing("x").needs("b"))]);
    graph.put_item(thing("a").needs("d").needs("b")).unwrap();
    assert_eq!(
        out(&graph, "a"),
        [("d".into(), true), ("b".into(), true)],
        "in the order of the dependencies"
    );
    assert_eq!(into(&graph, "b"), ["a", "x"]);
    assert!(into(&graph, "c").is_empty());
    assert_eq!(graph.missing(), [&item("b"), &item("d")]);
}

#[test]
fn edges_go_with_their_item_and_stay_with_its_dependents() {
    let mut graph = graph([("", thing("a").needs("b")), ("", thing("b").needs("c")), ("", thing("c"))]);
    graph.del_item(&item("b")).unwrap();
    assert_eq!(out(&graph, "a"), [("b".into(), true)]);
    assert!(out(&graph, "b").is_empty());
    assert!(into(&graph, "c").is_empty());
    graph.del_item(&item("a")).unwrap();
    assert!(graph.slot_of(&item("b")).is_none(), "nobody mentions it any more");
}

#[test]
fn a_dependency_says_why_it_is_there_and_what_it_wants() {
    let graph = graph([("", thing("a").needs("b").at_least("c", 5)), ("", thing("c").value(3))]);
    let edges = graph.outgoing(&item("a"));
    assert_eq!(edges[0].dependency.description(), "a stands on b");
    assert_eq!(edges[0].dependency.wanted(), None);
    assert_eq!(edges[1].dependency.to_string(), "thing/c that is at least 5");
    let three = graph.item(&item("c")).unwrap();
    let why = edges[1].dependency.check(three).unwrap_err();
    assert_eq!(why, "its state is thing c with value 3");
    assert!(edges[1].dependency.is_satisfied_by(&thing("c").value(5).into()));
    assert!(!edges[1].dependency.is_satisfied_by(three));
}

#[test]
fn a_predicate_of_another_type_says_so() {
    #[derive(Debug, PartialEq)]
    struct Other;
    impl Item for Other {
        const KIND: Kind = Thing::KIND;
        fn name(&self) -> setpoint_graph::Name {
            "b".into()
        }
    }
    let graph = graph([("", thing("a").at_least("b", 1))]);
    let edges = graph.outgoing(&item("a"));
    assert_eq!(edges[0].dependency.check(&Other.into()).unwrap_err(), "it is of an unexpected type");
}

#[test]
fn every_edge_of_an_any_of_leads_back_to_its_dependency() {
    let graph = graph([("", thing("a").needs("p").any_of(["x", "y", "x"]).needs("q"))]);
    let slot = graph.slot_of(&item("a")).unwrap();
    let of_edge: Vec<_> = (0..4).map(|edge| graph.dependency_index(slot, edge)).collect();
    assert_eq!(of_edge, [0, 1, 1, 2], "an alternative named twice counts once");
    assert_eq!(graph.dependency_at(slot, 2).unwrap().to_string(), "any of thing/x, thing/y");
    assert!(graph.dependency_at(slot, 2).unwrap().is_any_of());
    assert_eq!(graph.dependency_at(slot, 3).unwrap().targets(), [ItemRef::new("thing", "q")]);
    assert!(graph.dependency_at(slot, 4).is_none());
}

#[test]
fn claims_are_known_by_key_and_whoever_claimed_first_stays_first() {
    let mut graph = graph([("", thing("a").claims("port/80")), ("s", thing("b").claims("port/80"))]);
    let key = ResourceKey::new("port/80");
    let slots = [item("a"), item("b")].map(|item| graph.slot_of(&item).unwrap());
    assert_eq!(graph.claimants(&key), slots);
    graph.put_item(thing("a").claims("port/80").claims("port/81").value(2)).unwrap();
    assert_eq!(graph.claimants(&key), slots, "a modification does not lose the place");
    assert_eq!(graph.claimants(&ResourceKey::new("port/81")), [slots[0]]);
    graph.put_item(thing("a")).unwrap();
    assert_eq!(graph.claimants(&key), [slots[1]]);
    graph.del_subgraph(&path("s")).unwrap();
    assert!(!graph.has_claims());
}
