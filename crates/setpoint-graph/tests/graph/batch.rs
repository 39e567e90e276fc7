use setpoint_graph::{Batch, Graph, GraphError};

use crate::support::{Health, graph, item, names, path, thing};

#[test]
fn a_batch_is_validated_at_its_end() {
    let mut graph = graph([("s", thing("a")), ("t", thing("b"))]);
    let swap = Batch::new()
        .put(&path("t"), thing("a").value(2))
        .put(&path("s"), thing("b"))
        .del(&path("t"), item("b"))
        .del(&path("s"), item("a"));
    graph.edit(swap).unwrap();
    assert_eq!(graph.path_of(&item("a")), Some(path("t")));
    assert_eq!(graph.path_of(&item("b")), Some(path("s")));
    assert_eq!(graph.item(&item("a")).unwrap().get(), Some(&thing("a").value(2)));
}

#[test]
fn a_refused_batch_changes_nothing() {
    let mut graph = graph([("s", thing("a"))]);
    let before = graph.revision();
    let twice = Batch::new().put(&path("new"), thing("0")).put(&path("b"), thing("a"));
    let error = graph.edit(twice).unwrap_err();
    let expected = GraphError::LivesElsewhere { item: item("a"), lives_in: path("s"), put_into: path("b") };
    assert_eq!(error, expected, "it says where the item lives, whatever sorts first");
    let absent = Batch::new().put(&path(""), thing("0")).del(&path("t"), item("a"));
    assert_eq!(graph.edit(absent).unwrap_err().to_string(), "there is no item thing/a in subgraph t");
    let external = Batch::new().put(&path(""), thing("0")).put(&path(""), thing("x").needs("a").external());
    assert!(matches!(graph.edit(external), Err(GraphError::ExternalWithDependencies { .. })));
    assert_eq!((graph.revision(), names(&graph)), (before, vec!["a".to_owned()]));
    assert_eq!(graph.subgraph_paths(), [path("s")]);
}

#[test]
fn steps_on_one_item_follow_each_other() {
    let mut graph: Graph = Graph::new("test");
    graph.edit(Batch::new().put(&path(""), thing("a")).del(&path(""), item("a"))).unwrap();
    assert!(graph.is_empty(), "put and taken away");
    graph.edit(Batch::new().put(&path(""), thing("a")).put(&path(""), thing("a").value(2))).unwrap();
    assert_eq!(graph.item(&item("a")).unwrap().get(), Some(&thing("a").value(2)), "the last one stays");
    graph.edit(Batch::new()).unwrap();
}

#[test]
fn an_item_that_moves_in_a_batch_keeps_its_state() {
    let mut graph: Graph<Health> = Graph::new("test");
    graph.put_item_with_state(&path("s"), thing("a"), Health::Busy).unwrap();
    graph.edit(Batch::new().del(&path("s"), item("a")).put(&path("t"), thing("a"))).unwrap();
    assert_eq!(graph.state(&item("a")), Some(&Health::Busy));
}
