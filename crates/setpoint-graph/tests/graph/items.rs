use setpoint_graph::{Attributes, Graph, GraphError, Item, ItemHandle, ItemRef, Kind, Name, SubgraphPath};

use crate::support::{Bridge, Health, graph, item, names, path, thing};

#[test]
fn an_empty_graph_has_a_name_and_nothing_else() {
    let graph: Graph = Graph::new("empty");
    assert_eq!(graph.name().as_str(), "empty");
    assert_eq!((graph.description(), graph.len(), graph.is_empty()), ("", 0, true));
    assert_eq!(graph.items().count(), 0);
    assert!(graph.item(&item("a")).is_none());
    assert!(graph.outgoing(&item("a")).is_empty() && graph.incoming(&item("a")).is_empty());
    assert!(graph.cycles().is_empty() && graph.missing().is_empty() && graph.subgraph_paths().is_empty());
}

#[test]
fn a_graph_can_be_described() {
    let mut graph: Graph = Graph::new("test");
    graph.set_description("all of it");
    assert_eq!((graph.description(), graph.view().description()), ("all of it", "all of it"));
}

#[test]
fn an_item_that_was_put_is_found_by_its_reference() {
    let graph = graph([("", thing("a").value(7))]);
    let found = graph.item(&item("a")).unwrap();
    assert_eq!((found.kind().as_str(), found.name().as_str(), found.external()), ("thing", "a", false));
    assert_eq!(found.description(), "thing a with value 7");
    assert_eq!(found.to_string(), found.description());
    assert_eq!(found.get(), Some(&thing("a").value(7)));
    assert_eq!(graph.path_of(&item("a")), Some(SubgraphPath::root()));
}

#[test]
fn the_same_name_may_be_used_by_items_of_different_kinds() {
    let graph = graph([("", ItemHandle::new(thing("a"))), ("", ItemHandle::new(Bridge(thing("a"))))]);
    assert_eq!(graph.len(), 2);
}

#[test]
fn an_item_is_replaced_by_one_of_its_reference() {
    let mut graph = graph([("", thing("a"))]);
    let slot = graph.slot_of(&item("a")).unwrap();
    assert_eq!(graph.put_item(thing("a").value(2)).unwrap(), slot);
    assert_eq!(graph.len(), 1);
    assert_eq!(graph.item(&item("a")).unwrap().get(), Some(&thing("a").value(2)));
}

#[test]
fn putting_an_equal_item_is_no_mutation() {
    let mut graph = graph([("", thing("a").needs("b"))]);
    let (before, held) = (graph.revision(), graph.item(&item("a")).unwrap().clone());
    graph.put_item(thing("a").needs("b")).unwrap();
    assert_eq!(graph.revision(), before);
    assert!(graph.item(&item("a")).unwrap().is_same_as(&held));
}

#[test]
fn a_deleted_item_is_returned_and_gone() {
    let mut graph = graph([("", thing("a").value(3)), ("", thing("b"))]);
    let deleted = graph.del_item(&item("a")).unwrap();
    assert_eq!(deleted.get(), Some(&thing("a").value(3)));
    assert_eq!(names(&graph), ["b"]);
    let error = graph.del_item(&item("a")).unwrap_err();
    assert_eq!(error.to_string(), "there is no item thing/a");
}

#[test]
fn state_is_kept_beside_an_item_and_goes_with_it() {
    let mut graph: Graph<Health> = Graph::new("test");
    let slot = graph.put_item_with_state(&path(""), thing("a"), Health::Busy).unwrap();
    assert_eq!(graph.state(&item("a")), Some(&Health::Busy));
    graph.put_item(thing("a").value(2)).unwrap();
    assert_eq!(graph.state(&item("a")), Some(&Health::Busy), "a replacement keeps it");
    graph.set_state(&item("a"), Health::Absent).unwrap();
    *graph.state_at_mut(slot).unwrap() = Health::Created;
    assert_eq!(graph.state_at(slot), Some(&Health::Created));
    graph.del_item(&item("a")).unwrap();
    graph.put_item(thing("a")).unwrap();
    assert_eq!(graph.state(&item("a")), None);
    let missing = graph.set_state(&item("x"), Health::Busy);
    assert!(matches!(missing, Err(GraphError::NoSuchItem { .. })));
    *graph.shared_mut() = 5;
    assert_eq!(*graph.shared(), 5);
}

#[test]
fn items_are_iterated_by_path_and_then_reference() {
    let graph = graph([
        ("b", ItemHandle::new(thing("1"))),
        ("", ItemHandle::new(thing("10"))),
        ("a/z", ItemHandle::new(thing("2"))),
        ("a", ItemHandle::new(thing("3"))),
        ("", ItemHandle::new(Bridge(thing("9")))),
        ("a.b", ItemHandle::new(thing("4"))),
    ]);
    assert_eq!(names(&graph), ["9", "10", "3", "2", "4", "1"]);
}

#[test]
fn clones_share_items_but_not_edits() {
    let one = graph([("", thing("a").needs("b")), ("s", thing("b"))]);
    let mut two = one.clone();
    assert_ne!(one.id(), two.id());
    assert!(one.item(&item("a")).unwrap().is_same_as(two.item(&item("a")).unwrap()));
    two.del_item(&item("b")).unwrap();
    assert_eq!((one.len(), two.len()), (2, 1));
    assert!(!one.outgoing(&item("a"))[0].dangling);
}

#[test]
fn items_of_another_type_are_never_equal() {
    #[derive(Debug, PartialEq)]
    struct Impostor;
    impl Item for Impostor {
        const KIND: Kind = Kind::from_static("thing");
        fn name(&self) -> Name {
            Name::from_static("a")
        }
        fn attributes(&self, attributes: &mut Attributes) {
            attributes.add("size", 4).add_sensitive("password", "x");
        }
    }
    let (one, two) = (ItemHandle::new(thing("a")), ItemHandle::new(Impostor));
    assert_ne!(one, two);
    assert_eq!(one.reference(), two.reference());
    assert!(two.get::<crate::support::Thing>().is_none());
    assert_eq!(two.label(), "a");
    assert_eq!(two.description(), "size: 4\npassword: (sensitive)");
    let attributes = two.attributes();
    let shown: Vec<_> = attributes.iter().map(|a| (a.name, a.value.as_str(), a.sensitive)).collect();
    assert_eq!(shown, [("size", "4", false), ("password", "x", true)]);
    assert_eq!(ItemHandle::new(thing("labelled-x")).label(), "The x");
    assert_eq!(ItemRef::new("thing", "a"), *one.reference());
}

#[test]
fn an_item_without_attributes_is_described_by_kind_and_name() {
    #[derive(Debug, PartialEq)]
    struct Bare(u32);
    impl Item for Bare {
        const KIND: Kind = Kind::from_static("bare");
        fn name(&self) -> Name {
            Name::new("a")
        }
    }
    assert_eq!(ItemHandle::new(Bare(7)).description(), "bare/a");
}

#[test]
fn names_that_begin_alike_are_iterated_in_their_own_order() {
    let long = "the same sixteen bytes and more";
    let mut expected: Vec<String> =
        ["", "\0", "a", "a\0", "a\0b", "ab", "ß", "🦀", long].map(String::from).into();
    expected.extend([format!("{long}!"), format!("{long}\0"), long[..16].to_owned(), long[..15].to_owned()]);
    let mut graph: Graph = Graph::new("test");
    for name in &expected {
        graph.put_item(thing(name)).unwrap();
    }
    expected.sort();
    assert_eq!(names(&graph), expected);
}
