//! What the founding document promises, and the behaviours of the system behind it.

use setpoint_engine::{OpError, Operation, Selection};

use crate::world::*;

#[tokio::test(start_paused = true)]
async fn synchronous_only_operations_create_the_required_item_first_in_a_single_run() {
    let mut bench = Bench::new();
    bench.put(thing("A").on("B")).put(thing("B"));
    let status = bench.run().await;
    assert_eq!(log(&status), ["create B", "create A"]);
    assert!(!status.background_in_progress());
    assert!(bench.run().await.log().is_empty(), "a second run has nothing to do");
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn an_asynchronous_operation_is_completed_by_another_run() {
    let mut bench = Bench::new();
    bench.world.next("B", Operation::Create, Behaviour::Background);
    bench.put(thing("A").on("B")).put(thing("B"));
    let status = bench.run().await;
    assert_eq!(log(&status), ["create B..."]);
    assert!(status.background_in_progress());
    bench.world.finish("B", Ok(()));
    assert_eq!(status.ready_to_resume().await.graph.as_str(), "test");
    let status = bench.run().await;
    assert_eq!(log(&status), ["create B", "create A"]);
    assert!(!status.background_in_progress());
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn what_can_be_resumed_is_named_by_the_subgraph_whose_operations_have_ended() {
    let mut bench = Bench::new();
    for (place, name) in [("net/eth0", "A"), ("net/eth1", "B"), ("disk", "C")] {
        bench.intended.put_item_into(&path(place), thing(name)).unwrap();
    }
    bench.world.next("A", Operation::Create, Behaviour::Background);
    bench.world.next("C", Operation::Create, Behaviour::Background);
    let status = bench.run().await;
    bench.world.finish("A", Ok(()));
    let resumable = status.ready_to_resume().await;
    assert_eq!((resumable.graph.as_str(), &resumable.subgraph), ("test", &path("net/eth0")));
    assert_eq!(log(&bench.select(&resumable.selection()).await), ["create A"]);

    bench.world.next("B", Operation::Delete, Behaviour::Background);
    bench.intended.put_item_into(&path("net/eth1"), thing("B").fixed(1)).unwrap();
    let status = bench.run().await;
    bench.world.finish("B", Ok(()));
    assert_eq!(status.ready_to_resume().await.subgraph, path("net/eth1"));
    let status = bench.select(&Selection::subgraph(["disk"])).await;
    assert_eq!(log(&status), ["delete B"], "an end is collected by whichever run comes first");
    assert_eq!(status.ready_to_resume().await.subgraph, path("net/eth1"), "it is still to be acted on");
    bench.world.finish("C", Ok(()));
    let resumable = status.ready_to_resume().await;
    assert_eq!(resumable.selection(), Selection::all(), "they have only the root in common");
    let status = bench.select(&resumable.selection()).await;
    assert_eq!(log(&status), ["create C", "create B"]);
    let more = tokio::time::timeout(std::time::Duration::from_secs(1), status.ready_to_resume()).await;
    assert!(more.is_err(), "nothing is left to be acted on: {more:?}");
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn an_external_item_keeps_its_dependent_pending_until_it_appears() {
    let mut bench = Bench::new();
    bench.put(thing("A").on("B")).put(external("B"));
    let status = bench.run().await;
    assert!(status.log().is_empty());
    assert_eq!(status.pending(), 2);
    bench.appear(external("B"));
    assert_eq!(log(&bench.run().await), ["create A"]);
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn items_without_dependencies_are_created_modified_and_deleted() {
    let mut bench = Bench::new();
    assert!(bench.run().await.log().is_empty(), "an empty intent");
    bench.put(thing("A")).put(thing("B")).put(thing("C"));
    assert_eq!(log(&bench.run().await), ["create A", "create B", "create C"]);
    assert_eq!(bench.state("A").unwrap().last_operation(), Some(Operation::Create));
    bench.put(thing("B").value(7));
    assert_eq!(log(&bench.run().await), ["modify B"]);
    assert_eq!(bench.state("B").unwrap().last_operation(), Some(Operation::Modify));
    bench.put(thing("B").value(7));
    assert!(bench.run().await.log().is_empty(), "an equal put is no change");
    bench.del("A").del("C");
    assert_eq!(log(&bench.run().await), ["delete C", "delete A"]);
    assert_eq!(bench.graph().len(), 1);
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn a_required_item_is_created_first_and_deleted_last() {
    let mut bench = Bench::new();
    bench.put(thing("A").on("C")).put(thing("B").on("C")).put(thing("C"));
    assert_eq!(log(&bench.run().await), ["create C", "create A", "create B"]);
    bench.put(thing("C").value(1));
    assert_eq!(log(&bench.run().await), ["modify C"], "a modification leaves its dependents alone");
    bench.del("C");
    assert_eq!(log(&bench.run().await), ["delete B", "delete A", "delete C"], "deletions mirror creations");
    assert!(bench.graph().is_empty());
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn dependents_that_want_it_are_recreated_when_the_required_item_is_modified() {
    let mut bench = Bench::new();
    bench.put(thing("A").recreated_with("C")).put(thing("B").recreated_with("C")).put(thing("C"));
    bench.run().await;
    bench.put(thing("C").value(1));
    let status = bench.run().await;
    assert_eq!(log(&status), ["delete B", "delete A", "modify C", "create A", "create B"]);
    assert!(bench.run().await.log().is_empty());
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn an_item_that_cannot_be_changed_in_place_is_recreated_with_its_dependents() {
    let mut bench = Bench::new();
    bench.put(thing("A").on("B")).put(thing("B"));
    bench.run().await;
    bench.put(thing("B").fixed(1));
    assert_eq!(log(&bench.run().await), ["delete A", "delete B", "create B", "create A"]);
    assert!(bench.run().await.log().is_empty());
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn transitive_dependencies_are_followed_both_ways() {
    let mut bench = Bench::new();
    bench.put(thing("A").on("B")).put(thing("B").on("C"));
    let status = bench.run().await;
    assert!(status.log().is_empty());
    assert_eq!(status.pending(), 2);
    bench.put(thing("C"));
    assert_eq!(log(&bench.run().await), ["create C", "create B", "create A"]);
    bench.del("C");
    assert_eq!(log(&bench.run().await), ["delete A", "delete B", "delete C"]);
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn an_item_with_one_of_two_dependencies_missing_is_pending_without_an_error() {
    let mut bench = Bench::new();
    bench.put(thing("A").on("B").on("C")).put(thing("B"));
    let status = bench.run().await;
    assert_eq!(log(&status), ["create B"]);
    status.result().unwrap();
    let plan = bench.plan();
    assert_eq!(plan.left.len(), 1);
    assert_eq!(plan.left[0].causes, ["waits for thing/C (A rests on it): thing/C is not intended"]);
    bench.del("A");
    assert!(bench.run().await.log().is_empty(), "what was never there need not be deleted");
    assert_eq!(bench.run().await.pending(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_item_is_pending_until_a_modification_satisfies_its_predicate() {
    let mut bench = Bench::new();
    bench.put(thing("A").on_at_least("B", 5)).put(thing("B").value(1));
    assert_eq!(log(&bench.run().await), ["create B"]);
    let cause = &bench.plan().left[0].causes[0];
    assert!(cause.contains("that has at least the value 5"), "{cause}");
    assert!(cause.contains("value: 1"), "{cause}");
    bench.put(thing("B").value(5));
    assert_eq!(log(&bench.run().await), ["modify B", "create A"]);
    bench.put(thing("B").value(2));
    assert_eq!(log(&bench.run().await), ["delete A", "modify B"]);
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn a_dependency_switched_to_a_missing_item_deletes_and_later_creates() {
    let mut bench = Bench::new();
    bench.put(thing("A").on("B")).put(thing("B"));
    bench.run().await;
    bench.put(thing("A").on("C"));
    assert_eq!(log(&bench.run().await), ["delete A"]);
    bench.put(thing("C"));
    assert_eq!(log(&bench.run().await), ["create C", "create A"]);
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn a_changed_predicate_that_old_and_new_value_cannot_share_deletes_temporarily() {
    let mut bench = Bench::new();
    bench.put(thing("A").on_exactly("B", 5)).put(thing("B").value(5));
    bench.run().await;
    bench.put(thing("A").value(1).on_exactly("B", 7)).put(thing("B").value(7));
    let plan = bench.plan();
    assert!(plan.operations[0].temporary && plan.to_string().contains("- thing/A (temporarily)"), "{plan}");
    assert_eq!(log(&bench.run().await), ["delete A", "modify B", "create A"]);
    assert!(bench.run().await.log().is_empty());
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn a_changed_predicate_that_one_of_both_values_satisfies_is_modified_in_the_order_it_allows() {
    let mut bench = Bench::new();
    bench.put(thing("A").on_at_least("B", 5)).put(thing("B").value(5));
    bench.run().await;
    bench.put(thing("A").value(1).on_at_least("B", 1)).put(thing("B").value(2));
    assert_eq!(
        log(&bench.run().await),
        ["modify A", "modify B"],
        "the new value is content with the old one"
    );
    bench.put(thing("A").value(2).on_at_least("B", 7)).put(thing("B").value(9));
    assert_eq!(log(&bench.run().await), ["modify B", "modify A"]);
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn a_dependency_switched_while_the_old_one_goes_is_modified_before_the_deletion() {
    let mut bench = Bench::new();
    bench.put(thing("A").on("B")).put(thing("B")).put(thing("C"));
    bench.run().await;
    bench.put(thing("A").on("C")).del("B");
    assert_eq!(log(&bench.run().await), ["modify A", "delete B"]);
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn nested_subgraphs_are_created_selected_and_deleted() {
    let mut bench = Bench::new();
    bench.intended.put_item_into(&path("net"), thing("A").on("B")).unwrap();
    bench.intended.put_item_into(&path("net/inner"), thing("B")).unwrap();
    bench.intended.put_item_into(&path("disk"), thing("C")).unwrap();
    bench.intended.describe_subgraph(&path("net"), "the network");
    let status = bench.select(&Selection::subgraph(["disk"])).await;
    assert_eq!(log(&status), ["create C"]);
    assert_eq!(log(&bench.run().await), ["create B", "create A"]);
    assert_eq!(bench.graph().path_of(&r("B")), Some(path("net/inner")));
    assert_eq!(bench.graph().subgraph(&path("net")).unwrap().description(), "the network");
    assert!(bench.run().await.log().is_empty());
    let status =
        bench.engine.reconcile(&mut bench.current, None, &Selection::subgraph(["net"])).await.unwrap();
    assert_eq!(log(&status), ["delete A", "delete B"]);
    assert_eq!(bench.world.names(), ["C"]);
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn an_item_that_the_intent_holds_elsewhere_moves_without_an_operation() {
    let mut bench = Bench::new();
    bench.intended.put_item_into(&path("one"), thing("A")).unwrap();
    bench.run().await;
    bench.intended.move_item(&r("A"), &path("two/inner")).unwrap();
    let status = bench.run().await;
    assert!(status.log().is_empty());
    assert_eq!(bench.graph().path_of(&r("A")), Some(path("two/inner")));
}

#[tokio::test(start_paused = true)]
async fn a_dependent_outside_of_the_selection_is_recreated_with_what_it_needs() {
    let mut bench = Bench::new();
    bench.intended.put_item_into(&path("in"), thing("B")).unwrap();
    bench.intended.put_item_into(&path("out"), thing("A").on("B")).unwrap();
    bench.intended.put_item_into(&path("out"), thing("C")).unwrap();
    bench.run().await;
    bench.intended.put_item_into(&path("in"), thing("B").fixed(1)).unwrap();
    bench.intended.put_item_into(&path("out"), thing("C").value(1)).unwrap();
    let status = bench.select(&Selection::subgraph(["in"])).await;
    assert_eq!(log(&status), ["delete A", "delete B", "create B", "create A"]);
    assert_eq!(
        log(&bench.run().await),
        ["modify C"],
        "what was outside is done by the next run that holds it"
    );
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn a_modified_external_item_recreates_its_dependents_once() {
    let mut bench = Bench::new();
    bench.put(thing("A").recreated_with("B")).put(external("B"));
    bench.appear(external("B"));
    assert_eq!(log(&bench.run().await), ["create A"]);
    let modified = setpoint_engine::ItemState::present(jiff::Timestamp::UNIX_EPOCH).externally_modified();
    bench.current.as_mut().unwrap().set_state(&r("B"), modified).unwrap();
    assert_eq!(log(&bench.run().await), ["delete A", "create A"]);
    assert!(!bench.state("B").unwrap().is_externally_modified());
    assert!(bench.run().await.log().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_external_item_that_changes_so_that_a_predicate_fails_deletes_its_dependent() {
    let mut bench = Bench::new();
    bench.put(thing("A").on_at_least("B", 1));
    bench.appear(external("B").value(1));
    assert_eq!(log(&bench.run().await), ["create A"]);
    bench.appear(external("B").value(0));
    assert_eq!(log(&bench.run().await), ["delete A"]);
    bench.appear(external("B").value(3));
    assert_eq!(log(&bench.run().await), ["create A"]);
    bench.vanish("B");
    assert_eq!(log(&bench.run().await), ["delete A"]);
}

#[tokio::test(start_paused = true)]
async fn an_item_that_vanishes_with_an_external_one_is_not_deleted_by_hand() {
    let mut bench = Bench::new();
    bench.put(thing("A").vanishing_with("B")).put(thing("C").on("A"));
    bench.appear(external("B"));
    assert_eq!(log(&bench.run().await), ["create A", "create C"]);
    bench.vanish("B");
    assert_eq!(log(&bench.run().await), ["delete C"]);
    assert!(!bench.graph().contains(&r("A")));
}

#[tokio::test(start_paused = true)]
async fn failures_block_dependents_stay_visible_and_are_overcome() {
    let mut bench = Bench::new();
    bench.world.fail("B", Operation::Create, "no room");
    bench.put(thing("A").on("B")).put(thing("B")).put(thing("C"));
    let status = bench.run().await;
    assert_eq!(log(&status), ["create B (no room)", "create C"]);
    assert_eq!(status.failures().len(), 1);
    assert!(status.result().unwrap_err().to_string().contains("create thing/B: no room"));
    // Recovery: the failed creation is retried, and its dependent follows.
    let status = bench.run().await;
    assert_eq!(log(&status), ["create B", "create A"]);
    assert_eq!(status.log()[0].previous_error().unwrap().to_string(), "no room");
    status.result().unwrap();
    // A failed modification keeps the old value and is retried.
    bench.world.fail("B", Operation::Modify, "busy");
    bench.put(thing("B").value(1));
    assert_eq!(log(&bench.run().await), ["modify B (busy)"]);
    assert_eq!(bench.graph().item(&r("B")).unwrap().get::<Thing>().unwrap().value, 0);
    assert_eq!(log(&bench.run().await), ["modify B"]);
    // A failed deletion of a dependent blocks what it needs.
    bench.world.fail("A", Operation::Delete, "held open");
    bench.del("A").del("B");
    assert_eq!(log(&bench.run().await), ["delete A (held open)"]);
    assert_eq!(bench.world.names(), ["A", "B", "C"]);
    assert_eq!(log(&bench.run().await), ["delete A", "delete B"]);
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn asynchronous_operations_hold_up_only_what_is_related() {
    let mut bench = Bench::new();
    bench.world.next("B", Operation::Create, Behaviour::Background);
    bench.put(thing("A").on("B")).put(thing("B")).put(thing("C"));
    assert_eq!(log(&bench.run().await), ["create B...", "create C"]);
    bench.put(thing("C").value(1)).put(thing("D").on("C"));
    assert_eq!(log(&bench.run().await), ["modify C", "create D"], "unrelated items go on");
    bench.world.finish("B", Ok(()));
    assert_eq!(log(&bench.run().await), ["create B", "create A"]);
    // Modify in the background.
    bench.world.next("B", Operation::Modify, Behaviour::Background);
    bench.put(thing("B").value(1)).put(thing("A").value(1).on("B"));
    assert_eq!(log(&bench.run().await), ["modify B..."]);
    assert!(bench.run().await.log().is_empty());
    bench.world.finish("B", Ok(()));
    let status = bench.run().await;
    assert_eq!(log(&status), ["modify B", "modify A"]);
    assert_eq!(status.log()[0].item().get::<Thing>().unwrap().value, 1, "the log names the new value");
    // Delete in the background.
    bench.world.next("A", Operation::Delete, Behaviour::Background);
    bench.del("A").del("B");
    assert_eq!(log(&bench.run().await), ["delete A..."]);
    bench.world.finish("A", Ok(()));
    assert_eq!(log(&bench.run().await), ["delete A", "delete B"]);
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn asynchronous_failures_keep_the_old_value_and_are_retried() {
    let mut bench = Bench::new();
    bench.world.next("B", Operation::Create, Behaviour::Background);
    bench.put(thing("A").on("B")).put(thing("B"));
    bench.run().await;
    bench.world.finish("B", Err(OpError::untouched("lost")));
    let status = bench.run().await;
    assert_eq!(log(&status), ["create B (lost)"]);
    assert_eq!(log(&bench.run().await), ["create B", "create A"]);
    bench.world.next("B", Operation::Modify, Behaviour::Background);
    bench.put(thing("B").value(3));
    bench.run().await;
    bench.world.finish("B", Err(OpError::untouched("lost again")));
    assert_eq!(log(&bench.run().await), ["modify B (lost again)"]);
    assert_eq!(bench.graph().item(&r("B")).unwrap().get::<Thing>().unwrap().value, 0);
    assert_eq!(log(&bench.run().await), ["modify B"]);
    bench.world.next("A", Operation::Delete, Behaviour::Background);
    bench.del("A").del("B");
    bench.run().await;
    bench.world.finish("A", Err(OpError::untouched("stuck")));
    assert_eq!(log(&bench.run().await), ["delete A (stuck)"]);
    assert_eq!(log(&bench.run().await), ["delete A", "delete B"]);
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn background_operations_can_be_cancelled_all_or_by_filter() {
    let mut bench = Bench::new();
    for name in ["A", "B"] {
        bench.world.next(name, Operation::Create, Behaviour::Background);
        bench.put(thing(name));
    }
    let status = bench.run().await;
    status.cancel_background_where(|item| item.name().as_str() == "A");
    let cancelled = |bench: &Bench, name: &str| {
        let system = bench.world.lock();
        system.background[name].2.as_ref().unwrap().cancellation().is_cancelled()
    };
    assert!(cancelled(&bench, "A") && !cancelled(&bench, "B"));
    status.cancel_background();
    assert!(cancelled(&bench, "B"));
    bench.world.finish("A", Err(OpError::untouched("cancelled")));
    bench.world.finish("B", Err(OpError::untouched("cancelled")));
    status.wait_for_background().await;
    let status = bench.run().await;
    assert_eq!(log(&status), ["create A (cancelled)", "create B (cancelled)"]);
    assert!(status.log().iter().all(|entry| entry.cancelled().is_some()), "also of one that obeyed");
}

#[tokio::test(start_paused = true)]
async fn dependents_of_a_recreated_item_are_deleted_in_the_background_side_by_side() {
    let mut bench = Bench::new();
    bench.put(thing("A")).put(thing("B").on("A")).put(thing("C").on("A"));
    bench.run().await;
    for name in ["B", "C"] {
        bench.world.next(name, Operation::Delete, Behaviour::Background);
    }
    bench.put(thing("A").fixed(1));
    assert_eq!(log(&bench.run().await), ["delete C...", "delete B..."]);
    bench.world.finish("C", Ok(()));
    assert_eq!(log(&bench.run().await), ["delete C"]);
    bench.world.finish("B", Ok(()));
    assert_eq!(log(&bench.run().await), ["delete B", "delete A", "create A", "create B", "create C"]);
    assert!(bench.run().await.log().is_empty());
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn no_intent_deletes_everything_in_order() {
    let mut bench = Bench::new();
    bench.put(thing("A").on("B")).put(thing("B").on("C")).put(thing("C"));
    bench.run().await;
    assert_eq!(log(&bench.destroy().await), ["delete A", "delete B", "delete C"]);
    assert!(bench.graph().is_empty());
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn graphs_of_different_names_are_refused() {
    let mut bench = Bench::new();
    bench.run().await;
    let other = setpoint_graph::Graph::new("other");
    let refused = bench.engine.reconcile(&mut bench.current, Some(&other), &Selection::all()).await;
    assert!(refused.unwrap_err().to_string().contains("same name"));
}
