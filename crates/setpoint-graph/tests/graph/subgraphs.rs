use setpoint_graph::{Graph, GraphError, SubgraphPath};

use crate::support::{Health, graph, item, names, path, thing};

fn own(graph: &Graph, place: &str) -> Vec<String> {
    let view = graph.subgraph(&path(place)).unwrap();
    view.own_items().iter().map(|node| node.reference().name().to_string()).collect()
}

#[test]
fn a_subgraph_tells_its_own_items_from_all_below_it() {
    let graph = graph([("s", thing("a")), ("s/t", thing("b")), ("s/t/u", thing("c")), ("v", thing("d"))]);
    assert_eq!(own(&graph, "s"), ["a"]);
    let s = graph.subgraph(&path("s")).unwrap();
    assert_eq!((s.len(), s.is_empty(), s.name().as_str()), (3, false, "s"));
    let below: Vec<_> = s.subgraphs().map(|view| view.path().to_string()).collect();
    assert_eq!(below, ["s/t"]);
    assert!(s.item(&item("d")).is_none(), "outside");
    assert_eq!(s.relative_path(&item("c")), Some(path("t/u")));
    assert_eq!(s.subgraph(&path("t")).unwrap().parent().unwrap().path(), path("s"));
    assert!(graph.view().parent().is_none());
    assert_eq!(graph.subgraph_paths(), ["s", "s/t", "s/t/u", "v"].map(path));
    assert!(graph.subgraph(&path("s/x")).is_none());
}

#[test]
fn edges_cross_subgraphs() {
    let graph = graph([("s", thing("a").needs("b")), ("t", thing("b"))]);
    assert!(!graph.outgoing(&item("a"))[0].dangling);
    let s = graph.subgraph(&path("s")).unwrap();
    assert_eq!(s.outgoing(&item("a")).len(), 1);
    assert!(s.incoming(&item("b")).is_empty(), "the item is outside");
}

#[test]
fn the_same_reference_in_two_subgraphs_is_an_error_and_move_item_moves() {
    let mut graph = graph([("s", thing("a"))]);
    let error = graph.put_item_into(&path("t"), thing("a").value(2)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "thing/a already lives in subgraph s, and can't be put into subgraph t as well; use move_item to move it"
    );
    let to_root = graph.put_item(thing("a")).unwrap_err();
    assert!(to_root.to_string().contains("the root graph"));
    assert!(graph.subgraph(&path("t")).is_none(), "a refused edit changes nothing");
    graph.move_item(&item("a"), &path("t/u")).unwrap();
    assert_eq!(graph.path_of(&item("a")), Some(path("t/u")));
    assert!(own(&graph, "s").is_empty());
    let error = graph.move_item(&item("x"), &path("new")).unwrap_err();
    assert!(matches!(error, GraphError::NoSuchItem { .. }));
    assert!(graph.subgraph(&path("new")).is_none());
}

#[test]
fn moving_an_item_keeps_its_state_and_edges() {
    let mut graph: Graph<Health> = Graph::new("test");
    graph.put_item_with_state(&path("s"), thing("a").needs("b"), Health::Busy).unwrap();
    graph.put_item(thing("c").needs("a")).unwrap();
    graph.move_item(&item("a"), &path("")).unwrap();
    assert_eq!(graph.state(&item("a")), Some(&Health::Busy));
    assert_eq!((graph.outgoing(&item("a")).len(), graph.incoming(&item("a")).len()), (1, 1));
}

#[test]
fn putting_a_subgraph_replaces_what_was_there() {
    let mut graph = graph([
        ("s", thing("kept").needs("out")),
        ("s", thing("gone")),
        ("s/t", thing("up")),
        ("s/t/u", thing("deep")),
        ("", thing("out").needs("gone")),
    ]);
    let mut new: Graph = Graph::new("s");
    new.set_description("the new one");
    new.put_item(thing("kept").needs("out")).unwrap();
    new.put_item(thing("up")).unwrap();
    new.put_item_into(&path("v"), thing("deep").value(2)).unwrap();
    let kept = graph.item(&item("kept")).unwrap().clone();
    let seen = graph.revision();
    graph.put_subgraph(&path(""), new).unwrap();
    assert_eq!(own(&graph, "s"), ["kept", "up"]);
    assert_eq!(own(&graph, "s/v"), ["deep"]);
    assert_eq!(graph.subgraph_paths(), ["s", "s/v"].map(path));
    assert_eq!(graph.subgraph(&path("s")).unwrap().description(), "the new one");
    assert_eq!(graph.missing(), [&item("gone")], "the edge to what is gone dangles");
    assert!(graph.item(&item("kept")).unwrap().is_same_as(&kept), "equal items are left alone");
    let touched = crate::journal::touched(&graph, seen).unwrap();
    assert_eq!(touched, ["deep", "gone", "up"].map(item).into(), "also the one that moved up");
}

#[test]
fn a_subgraph_with_an_item_that_lives_elsewhere_is_refused_whole() {
    let mut graph = graph([("s", thing("a")), ("t", thing("b"))]);
    let mut new: Graph = Graph::new("s");
    new.put_item(thing("c")).unwrap();
    new.put_item_into(&path("x"), thing("b")).unwrap();
    let error = graph.put_subgraph(&path(""), new).unwrap_err();
    let expected = GraphError::LivesElsewhere { item: item("b"), lives_in: path("t"), put_into: path("s/x") };
    assert_eq!(error, expected);
    assert_eq!(names(&graph), ["a", "b"]);
}

#[test]
fn a_put_subgraph_brings_its_state() {
    let mut graph: Graph<Health> = Graph::new("test");
    let mut new = Graph::new("s");
    new.put_item_with_state(&path("t"), thing("a"), Health::Busy).unwrap();
    graph.put_subgraph(&path("p"), new).unwrap();
    assert_eq!(graph.state(&item("a")), Some(&Health::Busy));
    assert_eq!(graph.path_of(&item("a")), Some(path("p/s/t")));
}

#[test]
fn deleting_a_subgraph_takes_what_is_nested_and_leaves_edges_dangling() {
    let mut graph = graph([("s", thing("a")), ("s/t", thing("b")), ("", thing("c").needs("b"))]);
    graph.del_subgraph(&path("s")).unwrap();
    assert_eq!(names(&graph), ["c"]);
    assert!(graph.outgoing(&item("c"))[0].dangling);
    assert!(graph.subgraph_paths().is_empty());
    assert_eq!(graph.del_subgraph(&path("s")).unwrap_err().to_string(), "there is no subgraph s");
    let root = graph.del_subgraph(&SubgraphPath::root()).unwrap_err();
    assert_eq!(root.to_string(), "the root graph can't be deleted; name a subgraph");
}

#[test]
fn what_was_in_a_deleted_subgraph_is_in_no_view() {
    let mut graph = graph([("s", thing("a")), ("", thing("c").needs("a"))]);
    let slot = graph.slot_of(&item("a")).unwrap();
    graph.del_subgraph(&path("s")).unwrap();
    graph.make_subgraph(&path("t"));
    assert!(!graph.view().contains_slot(slot));
    assert!(!graph.subgraph(&path("t")).unwrap().contains_slot(slot));
    graph.put_item_into(&path("t"), thing("a")).unwrap();
    assert!(graph.subgraph(&path("t")).unwrap().contains_slot(slot));
}

#[test]
fn a_subgraph_is_edited_through_a_handle() {
    let mut graph = graph([("s", thing("a")), ("", thing("r"))]);
    let mut s = graph.edit_subgraph(&path("s"));
    s.put_item(thing("b")).unwrap();
    s.del_item(&item("a")).unwrap();
    let not_here = s.del_item(&item("r")).unwrap_err();
    assert_eq!(not_here.to_string(), "there is no item thing/r in subgraph s");
    s.edit_subgraph(&path("t/u")).put_item(thing("c")).unwrap();
    s.put_subgraph(Graph::new("empty")).unwrap();
    assert_eq!(s.view().len(), 2);
    s.del_subgraph("t").unwrap();
    let mut root = s.edit_parent().unwrap();
    root.put_item(thing("d")).unwrap();
    assert!(graph.edit_subgraph(&path("")).edit_parent().is_none());
    assert_eq!(names(&graph), ["d", "r", "b"]);
    assert_eq!(graph.subgraph_paths(), ["s", "s/empty"].map(path));
}

#[test]
fn a_handle_never_reaches_above_the_one_it_was_made_from() {
    let mut graph: Graph = Graph::new("test");
    let mut s = graph.edit_subgraph(&path("r/s"));
    let u = s.edit_subgraph(&path("t/u"));
    let back = u.edit_parent().unwrap().edit_parent().unwrap();
    assert_eq!(back.view().path(), path("r/s"));
    assert!(back.edit_parent().is_none(), "or it could delete what s edits");
    assert_eq!(s.edit_parent().unwrap().view().path(), path("r"));
}

#[test]
fn empty_subgraphs_are_pruned_unless_wanted() {
    let mut graph = graph([("a/b", thing("x"))]);
    for place in ["a/c/d", "e/f", "g/h"] {
        graph.make_subgraph(&path(place));
    }
    graph.prune_subgraphs(&path(""), |place| *place == path("g"));
    assert_eq!(graph.subgraph_paths(), ["a", "a/b", "g"].map(path));
}
