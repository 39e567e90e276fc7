use setpoint_graph::DifferenceKind;

use crate::support::{graph, item, path, thing};

#[test]
fn one_item_is_a_graph_of_its_own() {
    let graph =
        graph([("s", thing("a").needs("b").needs("c")), ("s", thing("b")), ("", thing("d").needs("a"))]);
    let only = graph.item_as_graph(&item("a")).unwrap();
    assert_eq!((only.len(), only.name().as_str(), only.description()), (1, "a", ""));
    assert_eq!(only.relative_path(&item("a")), Some(path("")));
    assert_eq!(only.path(), path("s"), "where it stands in the graph");
    assert_eq!(only.parent().unwrap().path(), path("s"));
    assert_eq!((only.outgoing(&item("a")).len(), only.incoming(&item("a")).len()), (2, 1));
    assert!(only.item(&item("b")).is_none() && only.outgoing(&item("d")).is_empty());
    assert_eq!(only.subgraphs().count(), 0);
    assert!(only.subgraph(&path("s")).is_none());
    assert!(graph.item_as_graph(&item("c")).is_none(), "only mentioned");
}

#[test]
fn one_item_is_compared_with_another_wherever_they_live() {
    let one = graph([("s", thing("a")), ("s", thing("b"))]);
    let two = graph([("t/u", thing("a")), ("", thing("b").value(2))]);
    let select = |name| (one.item_as_graph(&item(name)).unwrap(), two.item_as_graph(&item(name)).unwrap());
    let (a, other) = select("a");
    assert!(a.diff(&other).is_empty());
    let (b, other) = select("b");
    assert_eq!(b.diff(&other)[0].change, DifferenceKind::Modified);
    let changes: Vec<_> = a.diff(&other).iter().map(ToString::to_string).collect();
    assert_eq!(changes, ["- thing/a", "+ thing/b"]);
}

#[test]
fn a_selected_item_is_edited_through_its_parent() {
    let mut graph = graph([("s", thing("a"))]);
    let parent = graph.item_as_graph(&item("a")).unwrap().path();
    let mut edit = graph.edit_subgraph(&parent);
    edit.put_item(thing("a").value(9)).unwrap();
    assert_eq!(edit.view().item(&item("a")).unwrap().item().get(), Some(&thing("a").value(9)));
    edit.del_item(&item("a")).unwrap();
    assert!(graph.is_empty());
}
