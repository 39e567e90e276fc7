//! Graphs in and out of serde.

use std::error::Error;

use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use setpoint_graph::{Graph, Item, ItemHandle, ItemTypes, Kind, Name, SubgraphPath, TypesError};

use crate::support::{Bridge, Health, Need, Thing, item, path, thing};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Secret {
    name: String,
}

impl Item for Secret {
    const KIND: Kind = Kind::from_static("secret");

    fn name(&self) -> Name {
        Name::new(&self.name)
    }
}

fn types() -> ItemTypes {
    let mut types = ItemTypes::new();
    types.register::<Thing>().register::<Secret>();
    types
}

fn read(value: Value) -> Result<Graph<Health>, TypesError> {
    types().from_value(value)
}

/// The error with all its causes.
fn words(error: &TypesError) -> String {
    let causes = std::iter::successors(Some(error as &dyn Error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

fn refused(value: Value) -> String {
    words(&read(value).unwrap_err())
}

#[test]
fn a_graph_survives_being_written_and_read() {
    let mut graph: Graph<Health> = Graph::new("host");
    graph.set_description("one machine");
    graph.describe_subgraph(&path("net"), "the network");
    graph.make_subgraph(&path("empty/inside"));
    graph.put_item_with_state(&path("net/eth0"), thing("a").needs("b").claims("p"), Health::Busy).unwrap();
    graph.put_item(Secret { name: "s".into() }).unwrap();
    let value = types().to_value(&graph).unwrap();
    let again = read(value.clone()).unwrap();
    assert!(graph.diff(&again).is_empty());
    assert_eq!(again.subgraph_paths(), graph.subgraph_paths());
    assert_eq!((again.name().as_str(), again.description()), ("host", "one machine"));
    assert_eq!(again.subgraph(&path("net")).unwrap().description(), "the network");
    assert_eq!(again.state(&item("a")), Some(&Health::Busy));
    assert_eq!(again.outgoing(&item("a")).len(), 1, "dependencies are derived");
    assert!(again.has_claims());
    assert!(again.item(&("secret", "s").into()).unwrap().get::<Secret>().is_some());
    assert_eq!(types().to_value(&again).unwrap(), value);
    assert_eq!(
        value["subgraphs"],
        json!([{ "path": ["empty", "inside"] }, { "path": ["net"], "description": "the network" }])
    );
    assert_eq!(value["items"][1]["state"], "Busy");
}

#[test]
fn one_item_is_written_and_read_by_itself() {
    let types = types();
    let handle = ItemHandle::new(thing("a").value(4).needs("b"));
    let value = types.item_to_value(&handle).unwrap();
    let again = types.item_from_value(handle.kind(), value).unwrap();
    assert_eq!(again, handle);
    assert_eq!(again.dependencies().len(), 1);
    assert_eq!(types.kinds().map(Kind::as_str).collect::<Vec<_>>(), ["secret", "thing"]);
}

#[test]
fn a_kind_that_is_not_registered_is_named_with_its_item() {
    let mut graph: Graph = Graph::new("host");
    graph.put_item(Bridge(thing("a"))).unwrap();
    assert_eq!(words(&types().to_value(&graph).unwrap_err()), "bridge/a: kind bridge is not registered");
    let value = json!({ "name": "x", "items": [{ "path": ["s", "t"], "kind": "other", "item": {} }] });
    assert_eq!(refused(value), "items[0] of kind other in subgraph s/t: kind other is not registered");
}

#[test]
fn a_body_that_does_not_parse_is_named_with_its_place() {
    let value = json!({ "name": "x", "items": [
        { "kind": "secret", "item": { "name": "fine" } },
        { "kind": "thing", "item": { "name": "bad" } },
    ] });
    assert_eq!(
        refused(value),
        "items[1] of kind thing (named \"bad\"): can't be read: missing field `value`"
    );
    let state = json!({ "name": "x", "items": [{ "kind": "secret", "item": { "name": "s" }, "state": 7 }] });
    let words = refused(state);
    assert!(words.starts_with("the state of secret/s, items[0] of kind secret: can't be read: "), "{words}");
}

#[test]
fn a_reference_that_occurs_twice_is_named() {
    let secret = |place: Value| json!({ "path": place, "kind": "secret", "item": { "name": "s" } });
    let elsewhere = json!({ "name": "x", "items": [secret(json!([])), secret(json!(["t"]))] });
    assert_eq!(refused(elsewhere), "items[1] of kind secret in subgraph t: secret/s is there already");
    let same = json!({ "name": "x", "items": [secret(json!([])), secret(json!([]))] });
    assert_eq!(refused(same), "items[1] of kind secret: secret/s is there already");
}

#[test]
fn an_item_of_another_type_than_registered_for_its_kind_is_refused() {
    #[derive(Debug, PartialEq)]
    struct Impostor;
    impl Item for Impostor {
        const KIND: Kind = Secret::KIND;
        fn name(&self) -> Name {
            Name::from_static("a")
        }
    }
    let error = words(&types().item_to_value(&ItemHandle::new(Impostor)).unwrap_err());
    assert!(error.contains("secret/a is not of type") && error.contains("Secret"), "{error}");
}

#[test]
fn what_the_graph_refuses_is_refused_with_its_place() {
    let body = serde_json::to_value(thing("a").needs("b").external()).unwrap();
    let words = refused(json!({ "name": "x", "items": [{ "kind": "thing", "item": body }] }));
    assert!(words.contains("items[0] of kind thing: refused: thing/a is external"), "{words}");
}

#[test]
fn a_document_of_another_shape_is_refused() {
    for value in
        [json!(null), json!([]), json!({}), json!({ "name": "x", "itmes": [] }), json!({ "name": 3 })]
    {
        let words = refused(value.clone());
        assert!(words.starts_with("the graph: can't be read: "), "{value}: {words}");
    }
}

#[test]
fn deep_nesting_is_written_flat() {
    let deep: SubgraphPath = (0..10_000).map(|i| i.to_string()).collect();
    let mut graph: Graph<Health> = Graph::new("deep");
    graph.put_item_into(&deep, thing("bottom")).unwrap();
    let text = types().to_value(&graph).unwrap().to_string();
    assert!(text.len() < 200_000, "{}", text.len());
    let again = read(serde_json::from_str(&text).unwrap()).unwrap();
    assert_eq!(again.path_of(&item("bottom")), Some(deep));
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[a-d]", 1 => any::<String>()]
}

fn any_health() -> impl Strategy<Value = Option<Health>> {
    prop_oneof![
        Just(None),
        Just(Some(Health::Created)),
        Just(Some(Health::Absent)),
        any::<String>().prop_map(|error| Some(Health::Broken(error))),
    ]
}

prop_compose! {
    fn any_entry()(
        place in prop::collection::vec(any_text(), 0..4),
        name in any_text(),
        value in any::<u32>(),
        needs in prop::collection::vec(any_text().prop_map(Need::One), 0..3),
        claims in prop::collection::vec(any_text(), 0..2),
        health in any_health(),
    ) -> (SubgraphPath, Thing, Option<Health>) {
        let thing = Thing { needs, claims, ..thing(&name).value(value) };
        (place.into_iter().collect(), thing, health)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_graph_survives_as_text(
        name in any_text(),
        description in any::<String>(),
        entries in prop::collection::vec(any_entry(), 0..12),
        described in prop::collection::vec((prop::collection::vec(any_text(), 0..3), any::<String>()), 0..4),
    ) {
        let mut graph: Graph<Health> = Graph::new(name);
        graph.set_description(description);
        for (place, thing, health) in entries {
            let Ok(slot) = graph.put_item_into(&place, thing) else { continue };
            if let Some(health) = health {
                graph.set_state_at(slot, health);
            }
        }
        for (place, text) in described {
            graph.describe_subgraph(&place.into_iter().collect(), text);
        }
        let value = types().to_value(&graph).unwrap();
        let again = read(serde_json::from_str(&value.to_string()).unwrap()).unwrap();
        prop_assert!(graph.diff(&again).is_empty());
        prop_assert_eq!(graph.subgraph_paths(), again.subgraph_paths());
        prop_assert_eq!((graph.name(), graph.description()), (again.name(), again.description()));
        for (ours, theirs) in graph.items().zip(again.items()) {
            prop_assert_eq!(ours.state(), theirs.state());
        }
        prop_assert_eq!(types().to_value(&again).unwrap(), value);
    }
}
