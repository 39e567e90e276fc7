use setpoint_graph::{DifferenceKind, Graph};

use crate::support::{graph, item, path, thing};

#[test]
fn equal_graphs_do_not_differ() {
    let one = graph([("s", thing("a").needs("b")), ("", thing("c"))]);
    let two = graph([("", thing("c")), ("s", thing("a").needs("b"))]);
    assert!(one.diff(&two).is_empty() && one.diff(&one.clone()).is_empty());
}

#[test]
fn a_diff_tells_every_change_in_order_of_reference() {
    let one = graph([("", thing("z")), ("", thing("changed")), ("s", thing("moved")), ("", thing("same"))]);
    let two = graph([
        ("", thing("same")),
        ("t", thing("moved")),
        ("u", thing("changed").value(2)),
        ("v", thing("a")),
    ]);
    let diff = one.diff(&two);
    let words: Vec<_> = diff.iter().map(ToString::to_string).collect();
    assert_eq!(words, ["+ thing/a", "~ thing/changed", "> thing/moved", "- thing/z"]);
    let places: Vec<_> = diff.iter().map(|d| (d.from.clone(), d.to.clone())).collect();
    assert_eq!(
        places,
        [
            (None, Some(path("v"))),
            (Some(path("")), Some(path("u"))),
            (Some(path("s")), Some(path("t"))),
            (Some(path("")), None)
        ]
    );
}

#[test]
fn against_an_empty_graph_everything_differs() {
    let one = graph([("s", thing("a")), ("", thing("b"))]);
    let none: Graph = Graph::new("none");
    assert!(one.diff(&none).iter().all(|d| d.change == DifferenceKind::Removed));
    assert!(none.diff(&one).iter().all(|d| d.change == DifferenceKind::Added));
    assert_eq!(none.diff(&one).len(), 2);
}

#[test]
fn parts_at_different_depths_compare_by_relative_path() {
    let one = graph([("p/q/s", thing("a")), ("p/q", thing("b"))]);
    let two = graph([("s", thing("a")), ("", thing("b").value(2))]);
    let below = one.subgraph(&path("p/q")).unwrap();
    let diff = below.diff(&two.view());
    assert_eq!(diff.len(), 1);
    assert_eq!((&diff[0].item, diff[0].change), (&item("b"), DifferenceKind::Modified));
}

#[test]
fn an_item_only_mentioned_on_the_other_side_is_missing_there() {
    let one = graph([("", thing("a"))]);
    let two = graph([("", thing("b").needs("a"))]);
    let words: Vec<_> = one.diff(&two).iter().map(ToString::to_string).collect();
    assert_eq!(words, ["- thing/a", "+ thing/b"]);
}
