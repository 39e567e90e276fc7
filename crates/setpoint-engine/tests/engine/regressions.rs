//! Defects and weaknesses of the system behind the founding document: here each is shown not to exist.

use std::time::Duration;

use jiff::Timestamp;
use setpoint_engine::{
    CurrentGraph, DefaultRegistry, Engine, ItemState, OpError, Operation, Record, RetryPolicy, Selection,
    SimulatedClock, replay,
};
use setpoint_graph::{Graph, Item, ItemHandle, Kind, Name, SubgraphPath};
use tokio_util::sync::CancellationToken;

use crate::world::*;

#[tokio::test(start_paused = true)]
async fn a_caller_may_refuse_the_whole_where_anything_is_invalid() {
    let mut bench = Bench::new();
    bench.engine = bench.world.engine().refusing_invalid();
    bench.put(thing("A").on("A")).put(thing("B"));
    let refused = bench.engine.reconcile(&mut bench.current, Some(&bench.intended), &Selection::all()).await;
    assert!(refused.unwrap_err().to_string().contains("thing/A → thing/A"));
    assert!(bench.world.names().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_item_without_a_configurator_is_invalid_and_holds_up_only_its_dependents() {
    #[derive(Debug, PartialEq)]
    struct Strange;
    impl Item for Strange {
        const KIND: Kind = Kind::from_static("strange");
        fn name(&self) -> Name {
            Name::from_static("A")
        }
    }
    let mut bench = Bench::new();
    bench.intended.put_item(Strange).unwrap();
    bench.put(thing("B"));
    let status = bench.run().await;
    assert_eq!(log(&status), ["create B"]);
    let why = status.invalid()[0].to_string();
    assert_eq!(why, "strange/A: no configurator is registered for the kind strange");
}

#[tokio::test(start_paused = true)]
async fn a_failed_creation_is_retried_with_the_same_intent_and_stays_visible_until_then() {
    let mut bench = Bench::new();
    bench.engine = bench
        .world
        .engine()
        .with_retry(RetryPolicy::exponential(Duration::from_secs(10), Duration::from_mins(1)));
    bench.world.fail("A", Operation::Create, "no room");
    bench.world.fail("A", Operation::Create, "still no room");
    bench.put(thing("A"));
    let first = bench.run().await;
    assert_eq!(log(&first), ["create A (no room)"]);
    let too_early = bench.run().await;
    assert!(too_early.log().is_empty());
    assert_eq!(too_early.failures().len(), 1, "a failure stays visible");
    assert_eq!(too_early.next_retry(), first.next_retry());
    tokio::time::sleep(Duration::from_secs(10)).await;
    let second = bench.run().await;
    assert_eq!(second.log()[0].previous_error().unwrap().to_string(), "no room");
    assert_eq!(second.failures()[0].attempts, 2);
    tokio::time::sleep(Duration::from_secs(20)).await;
    let third = bench.run().await;
    assert_eq!(log(&third), ["create A"]);
    third.result().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_failed_creation_is_retried_at_once_when_what_it_needs_was_made_anew() {
    let mut bench = Bench::new();
    bench.engine = bench.world.engine().with_retry(RetryPolicy::never());
    bench.world.fail("A", Operation::Create, "not with this B");
    bench.put(thing("A").on("B")).put(thing("B"));
    bench.run().await;
    assert!(bench.run().await.log().is_empty());
    bench.put(thing("B").fixed(1));
    assert_eq!(log(&bench.run().await), ["delete B", "create B", "create A"]);
}

#[tokio::test(start_paused = true)]
async fn a_recreation_whose_creation_fails_recovers_with_its_dependents() {
    let mut bench = Bench::new();
    bench.put(thing("A").on("B")).put(thing("B"));
    bench.run().await;
    bench.world.fail("B", Operation::Create, "no room");
    bench.put(thing("B").fixed(1));
    assert_eq!(log(&bench.run().await), ["delete A", "delete B", "create B (no room)"]);
    assert_eq!(log(&bench.run().await), ["create B", "create A"]);
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn a_partial_creation_is_cleaned_up_before_the_retry_and_when_it_is_dropped() {
    let mut bench = Bench::new();
    for _ in 0..2 {
        bench.world.next("A", Operation::Create, Behaviour::Fail(OpError::new("half done")));
    }
    bench.put(thing("A"));
    bench.run().await;
    assert_eq!(log(&bench.run().await), ["delete A", "create A (half done)"]);
    assert_eq!(
        bench.state("A").unwrap().last_failure().unwrap().attempts,
        2,
        "cleaning up does not reset the count"
    );
    bench.del("A");
    assert_eq!(log(&bench.run().await), ["delete A"]);
    assert!(bench.graph().is_empty());
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn a_modification_that_adds_a_dependency_on_a_new_item_stays_a_modification() {
    let mut bench = Bench::new();
    bench.put(thing("A"));
    bench.run().await;
    bench.put(thing("A").on("Z")).put(thing("Z"));
    assert_eq!(log(&bench.run().await), ["create Z", "modify A"]);
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn what_would_need_something_that_failed_stays_as_it_is_until_that_succeeds() {
    let mut bench = Bench::new();
    let policy = RetryPolicy::exponential(Duration::from_secs(10), Duration::from_mins(1));
    bench.engine = bench.world.engine().with_retry(policy);
    bench.put(thing("A")).put(thing("B")).put(thing("C").on("B"));
    bench.run().await;
    bench.world.take_log();
    bench.world.fail("Z", Operation::Create, "no room");
    bench
        .put(thing("A").fixed(1).on("Z"))
        .put(thing("B").value(1).on("Y"))
        .put(thing("Z"))
        .put(thing("Y").after("Z"));
    assert_eq!(log(&bench.run().await), ["create Z (no room)"]);
    let too_early = bench.run().await;
    assert_eq!(log(&too_early), [""; 0], "nothing is taken away either while the next attempt is not due");
    let plan = bench.plan();
    let left: Vec<String> =
        plan.left.iter().map(|left| format!("{}: {:?}", left.name, left.causes)).collect();
    assert!(
        left.iter().any(|left| left
            .contains("A: [\"waits for thing/Z (A rests on it): thing/Z failed to create: no room\"]")),
        "{left:?}"
    );
    assert!(left.iter().any(|left| left.starts_with("B: [\"waits for thing/Y")), "{left:?}");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(log(&bench.run().await), ["create Z", "create Y", "modify B", "delete A", "create A"]);
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn what_is_not_intended_any_more_stays_while_something_needs_it_that_can_not_change_yet() {
    let mut bench = Bench::new();
    bench.put(thing("A").on("X")).put(thing("X").on("W")).put(thing("W"));
    bench.run().await;
    bench.world.fail("Z", Operation::Create, "no room");
    bench.del("X").del("W");
    bench.put(thing("A").on("Z")).put(thing("Z"));
    assert_eq!(log(&bench.run().await), ["create Z (no room)"]);
    assert_eq!(bench.world.names(), ["A", "W", "X"]);
    assert_eq!(log(&bench.run().await), ["create Z", "modify A", "delete X", "delete W"]);
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn what_loses_what_it_needs_goes_also_while_its_intended_value_needs_something_that_failed() {
    let mut bench = Bench::new();
    bench.appear(external("net"));
    bench.put(external("net")).put(thing("A").on("net"));
    bench.run().await;
    bench.world.fail("Z", Operation::Create, "no room");
    bench.put(thing("A").on("net").on("Z")).put(thing("Z"));
    assert_eq!(log(&bench.run().await), ["create Z (no room)"]);
    bench.world.fail("Z", Operation::Create, "no room");
    bench.vanish("net");
    assert!(log(&bench.run().await).contains(&"delete A".to_owned()));
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn a_background_modification_or_deletion_does_not_hold_up_unrelated_creations() {
    let mut bench = Bench::new();
    bench.put(thing("A")).put(thing("B"));
    bench.run().await;
    bench.world.next("A", Operation::Modify, Behaviour::Background);
    bench.world.next("B", Operation::Delete, Behaviour::Background);
    bench.put(thing("A").value(1)).put(thing("C"));
    bench.del("B");
    assert_eq!(log(&bench.run().await), ["modify A...", "delete B...", "create C"]);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_run_starts_nothing_more_and_stops_what_listens() {
    let mut bench = Bench::new();
    bench.world.next("A", Operation::Create, Behaviour::Hang);
    bench.put(thing("A")).put(thing("B"));
    let cancel = CancellationToken::new();
    let selection = Selection::all();
    let run = bench.engine.reconcile_until(&mut bench.current, Some(&bench.intended), &selection, &cancel);
    let (status, ()) = tokio::join!(run, async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        cancel.cancel();
    });
    let status = status.unwrap();
    assert_eq!(log(&status), ["create A (stopped)"]);
    assert!(status.log()[0].cancelled().is_some());
    assert!(status.interruption().is_some());
    assert!(bench.world.names().is_empty());
    assert_eq!(log(&bench.run().await), ["create A", "create B"]);
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_takes_too_long_is_cancelled_and_given_up_on() {
    let mut bench = Bench::new();
    bench.engine = bench
        .world
        .engine()
        .with_timeout_for("thing", Duration::from_secs(3))
        .with_grace(Duration::from_secs(2))
        .with_retry(RetryPolicy::every_run());
    bench.world.next("A", Operation::Create, Behaviour::Stubborn);
    bench.put(thing("A"));
    let before = tokio::time::Instant::now();
    let status = bench.run().await;
    assert_eq!(before.elapsed(), Duration::from_secs(5));
    assert_eq!(log(&status), ["create A (the operation took too long and did not stop)"]);
    assert_eq!(log(&bench.run().await), ["delete A", "create A"], "what it may have left is cleaned up");
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn a_panicking_configurator_is_a_failed_operation() {
    std::panic::set_hook(Box::new(|_| {}));
    let mut bench = Bench::new();
    bench.world.next("A", Operation::Create, Behaviour::Panic);
    bench.put(thing("A")).put(thing("B"));
    let status = bench.run().await;
    assert_eq!(log(&status), ["create A (the configurator panicked: boom)", "create B"]);
    assert_eq!(log(&bench.run().await), ["delete A", "create A"]);
    drop(std::panic::take_hook());
}

#[tokio::test(start_paused = true)]
async fn a_panicking_predicate_is_one_that_does_not_hold() {
    std::panic::set_hook(Box::new(|_| {}));
    let mut bench = Bench::new();
    bench.put(thing("A")).put(thing("B").on_exactly("A", PANICS)).put(thing("C"));
    let status = bench.run().await;
    assert_eq!(log(&status), ["create A", "create C"]);
    assert_eq!(status.pending(), 1);
    let now = Timestamp::UNIX_EPOCH;
    let why = bench.engine.explain(bench.graph(), &bench.intended, &r("B"), now).unwrap().to_string();
    assert!(why.contains("its predicate panicked") && why.contains("boom"), "{why}");
    drop(std::panic::take_hook());
}

#[tokio::test(start_paused = true)]
async fn a_dependent_outside_of_the_selection_is_recreated_into_its_own_subgraph_and_once() {
    let mut bench = Bench::new();
    bench.intended.put_item_into(&path("in"), thing("B")).unwrap();
    bench.intended.put_item_into(&path("new/deep"), thing("A").on("B")).unwrap();
    let status = bench.select(&Selection::subgraph(["in"])).await;
    assert_eq!(log(&status), ["create B", "create A"], "it only waited for what the selection brought");
    assert_eq!(bench.graph().path_of(&r("A")), Some(path("new/deep")));
    assert!(bench.run().await.log().is_empty(), "it is not created twice");
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn an_external_item_that_appears_wakes_pending_items_outside_of_the_selection() {
    let mut bench = Bench::new();
    bench.intended.put_item_into(&path("out"), thing("A").on("X")).unwrap();
    bench.intended.put_item_into(&path("in"), external("X")).unwrap();
    bench.run().await;
    let current = bench.current.as_mut().unwrap();
    bench.world.lock().exists.insert("X".into(), external("X"));
    current.put_item_into(&path("in"), external("X")).unwrap();
    assert_eq!(log(&bench.select(&Selection::subgraph(["in"])).await), ["create A"]);
}

#[tokio::test(start_paused = true)]
async fn an_item_without_state_counts_as_present_and_stays_where_it_is() {
    let mut bench = Bench::new();
    bench.intended.put_item_into(&path("sub"), thing("A")).unwrap();
    let mut current = CurrentGraph::new("test");
    current.put_item_into(&path("sub"), thing("A")).unwrap();
    bench.world.lock().exists.insert("A".into(), thing("A"));
    bench.current = Some(current);
    let status = bench.run().await;
    assert!(status.log().is_empty());
    status.result().unwrap();
    assert_eq!(bench.graph().path_of(&r("A")), Some(path("sub")));
}

#[tokio::test(start_paused = true)]
async fn removing_an_item_from_the_intent_cancels_its_background_creation() {
    let mut bench = Bench::new();
    bench.world.next("A", Operation::Create, Behaviour::Background);
    bench.put(thing("A"));
    bench.run().await;
    bench.del("A");
    bench.run().await;
    let cancelled = bench.world.lock().background["A"].2.as_ref().unwrap().cancellation().is_cancelled();
    assert!(cancelled);
    bench.world.finish("A", Ok(()));
    assert_eq!(log(&bench.run().await), ["create A", "delete A"]);
    assert!(bench.world.names().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_background_operation_that_ignores_its_cancellation_is_given_up_on_in_time() {
    let mut bench = Bench::new();
    bench.engine = bench.engine.clone().with_grace(Duration::from_mins(1));
    bench.world.next("A", Operation::Create, Behaviour::Background);
    bench.put(thing("A"));
    let status = bench.run().await;
    status.cancel_background();
    let status = bench.run().await;
    assert!(status.background_in_progress());
    assert!(status.next_retry().is_some(), "the caller is told when to look again");
    tokio::time::sleep(Duration::from_secs(61)).await;
    let late = bench.world.lock().background.remove("A").unwrap().2.unwrap();
    bench.world.lock().running.clear();
    let status = bench.run().await;
    assert_eq!(log(&status)[0], "create A (the operation was cancelled and did not stop)");
    assert!(!status.background_in_progress());
    late.finish(Ok(()));
    let status = bench.run().await;
    assert!(!status.background_in_progress(), "what it still says is ignored");
}

#[tokio::test(start_paused = true)]
async fn dropping_an_item_in_flight_from_the_current_graph_ends_its_being_in_progress() {
    let mut bench = Bench::new();
    bench.world.next("A", Operation::Create, Behaviour::Background);
    bench.put(thing("A"));
    bench.run().await;
    bench.current.as_mut().unwrap().del_item(&r("A")).unwrap();
    bench.del("A");
    assert!(!bench.run().await.background_in_progress());
}

#[tokio::test(start_paused = true)]
async fn a_completion_that_is_dropped_fails_the_operation() {
    let mut bench = Bench::new();
    bench.world.next("A", Operation::Create, Behaviour::Background);
    bench.put(thing("A"));
    let status = bench.run().await;
    bench.world.lock().background.clear();
    bench.world.lock().running.clear();
    status.ready_to_resume().await;
    let status = bench.run().await;
    assert_eq!(log(&status)[0], "create A (the operation was dropped before it finished)");
}

#[tokio::test(start_paused = true)]
async fn no_signal_of_many_background_operations_is_lost() {
    let mut bench = Bench::new();
    for i in 0..100 {
        let name = format!("A{i:03}");
        bench.world.next(&name, Operation::Create, Behaviour::Background);
        bench.put(thing(&name));
    }
    let status = bench.run().await;
    for i in 0..100 {
        bench.world.finish(&format!("A{i:03}"), Ok(()));
    }
    status.ready_to_resume().await;
    assert_eq!(bench.run().await.log().len(), 100);
}

#[tokio::test(start_paused = true)]
async fn equal_input_gives_an_equal_plan_whatever_the_order_of_its_making() {
    let things: Vec<Thing> = (0..40)
        .map(|i| {
            let made = thing(&format!("t{i:02}"));
            if i > 2 { made.on(&format!("t{:02}", i / 2)).on(&format!("t{:02}", i / 3)) } else { made }
        })
        .collect();
    let world = World::default();
    let engine = world.engine();
    let now = jiff::Timestamp::UNIX_EPOCH;
    let plan = |order: &mut dyn Iterator<Item = &Thing>| {
        let mut graph = Graph::new("test");
        for thing in order {
            graph.put_item(thing.clone()).unwrap();
        }
        let plan = engine.plan(None, Some(&graph), &Selection::all(), now).unwrap();
        serde_json::to_string(&plan).unwrap()
    };
    let forwards = plan(&mut things.iter());
    assert_eq!(forwards, plan(&mut things.iter().rev()));
    assert_eq!(forwards, plan(&mut things[20..].iter().chain(&things[..20])));
}

#[tokio::test(start_paused = true)]
async fn a_plan_changes_nothing() {
    let mut bench = Bench::new();
    bench.put(thing("A")).put(thing("B").on("A"));
    bench.run().await;
    bench.world.take_log();
    bench.put(thing("A").fixed(1));
    let before = format!("{:?}", bench.current);
    let plan = bench.plan();
    assert_eq!(plan.summary().recreate, 2);
    assert_eq!(format!("{:?}", bench.current), before);
    assert!(bench.world.take_log().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_error_names_every_failure_and_not_only_the_last() {
    let mut bench = Bench::new();
    bench.world.fail("A", Operation::Create, "no room");
    bench.world.fail("B", Operation::Create, "no permission");
    bench.put(thing("A")).put(thing("B"));
    let error = bench.run().await.result().unwrap_err().to_string();
    assert_eq!(error, "create thing/A: no room; create thing/B: no permission");
}

#[tokio::test(start_paused = true)]
async fn a_graph_loaded_without_its_handles_is_read_back_or_cleaned_up() {
    for can_read in [true, false] {
        let mut bench = Bench::new();
        bench.world.lock().can_read = can_read;
        bench.world.next("A", Operation::Create, Behaviour::Background);
        bench.put(thing("A"));
        bench.run().await;
        // The process dies; the work was done all the same.
        let copy = bench.graph().clone();
        bench.world.finish("A", Ok(()));
        bench.current = Some(copy);
        assert!(bench.state("A").unwrap().is_unknown());
        let expected: &[&str] = if can_read { &[] } else { &["delete A", "create A"] };
        assert_eq!(log(&bench.run().await), expected);
        assert_eq!(bench.world.names(), ["A"]);
        bench.world.assert_no_violation();
    }
}

#[tokio::test(start_paused = true)]
async fn a_state_the_caller_writes_is_respected() {
    let mut bench = Bench::new();
    bench.put(thing("A"));
    let mut current = CurrentGraph::new("test");
    let failed = ItemState::present(jiff::Timestamp::UNIX_EPOCH)
        .failed(Operation::Create, OpError::untouched("seen elsewhere"));
    current.put_item_with_state(&setpoint_graph::SubgraphPath::root(), thing("A"), failed).unwrap();
    bench.current = Some(current);
    assert_eq!(log(&bench.run().await), ["create A"]);
}

#[tokio::test]
async fn names_of_any_kind_are_no_danger() {
    let engine = Engine::new(DefaultRegistry::new().with::<Thing>(World::default()))
        .with_clock(SimulatedClock::start());
    let mut graph = Graph::new("test");
    for name in ["", " ", "\"", "\n", "ü/ö\u{0}", "a\\b", &"x".repeat(100_000)] {
        graph.put_item(thing(name)).unwrap();
    }
    let mut current = None;
    let status = engine.reconcile(&mut current, Some(&graph), &Selection::all()).await.unwrap();
    assert_eq!(status.log().len(), 7);
    status.result().unwrap();
}

/// The failure to create it was remembered elsewhere, in a graph that had no subgraph yet.
#[test]
fn a_replayed_creation_puts_the_item_where_it_was_created() {
    let started = |path: SubgraphPath| Record::Started {
        number: 1,
        operation: Operation::Create,
        item: ItemHandle::new(thing("A")),
        target: None,
        path,
        at: Timestamp::UNIX_EPOCH,
    };
    let ended = |outcome| Record::Ended { item: r("A"), outcome, at: Timestamp::UNIX_EPOCH };
    let inner = SubgraphPath::from(["one"]);
    let records = [
        started(SubgraphPath::root()),
        ended(Err(OpError::untouched("no room"))),
        started(inner.clone()),
        ended(Ok(())),
    ];
    let graph = replay("test", None, &records);
    assert_eq!(graph.path_of(&r("A")), Some(inner));
}

/// Its deletion has failed half-way: what it holds is not free before it is cleaned up.
#[tokio::test(start_paused = true)]
async fn nothing_takes_what_is_held_by_parts_that_are_not_cleaned_up_yet() {
    for other in ["B", "0"] {
        let mut bench = Bench::new();
        bench.put(thing("A").claiming("port"));
        bench.run().await;
        bench.world.next("A", Operation::Delete, Behaviour::Fail(OpError::new("half way")));
        bench.put(thing("A").fixed(1)).put(thing(other).claiming("port"));
        assert_eq!(log(&bench.run().await), ["delete A (half way)"]);
        let mut done = log(&bench.run().await);
        assert_eq!(done.remove(0), "delete A");
        done.sort();
        let mut created = ["A", other].map(|name| format!("create {name}"));
        created.sort();
        assert_eq!(done, created);
    }
}

#[tokio::test(start_paused = true)]
async fn an_item_that_vanished_while_it_was_created_in_the_background_is_made_anew() {
    let mut bench = Bench::new();
    bench.world.next("A", Operation::Create, Behaviour::Background);
    bench.put(thing("A").vanishing_with("X"));
    bench.appear(external("X"));
    assert_eq!(log(&bench.run().await), ["create A..."]);
    bench.vanish("X");
    bench.run().await;
    bench.world.finish("A", Ok(()));
    // The new intent does not need what went.
    bench.put(thing("A").value(1));
    assert_eq!(log(&bench.run().await), ["create A", "create A"]);
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn what_is_made_anew_with_an_item_is_when_that_was_taken_away_and_comes_back() {
    let mut bench = Bench::new();
    bench.world.lock().can_read = true;
    bench.put(thing("A")).put(thing("B").recreated_with("A")).put(thing("C").on("A"));
    bench.run().await;
    bench.world.lock().exists.remove("A");
    bench.engine.refresh(bench.current.as_mut().unwrap(), &Selection::all()).await;
    assert_eq!(log(&bench.run().await), ["delete B", "create A", "create B"]);
    assert_eq!(log(&bench.run().await), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn what_was_held_back_by_a_failure_that_the_same_run_overcomes_is_done_by_it() {
    let mut bench = Bench::new();
    bench.put(thing("a").claiming("p")).put(thing("b").claiming("q"));
    bench.put(thing("fa").on("a")).put(thing("fb").on("b")).put(thing("l").after("fa"));
    bench.run().await;
    // Two change places, so that one of them goes meanwhile, with what stands on it.
    bench.put(thing("a").claiming("q")).put(thing("b").claiming("p"));
    bench.put(thing("fa").on("a").value(1)).put(thing("n"));
    bench.put(thing("l").after("fa").on("n").value(1));
    for operation in [Operation::Delete, Operation::Modify] {
        bench.world.fail("fa", operation, "busy");
    }
    let status = bench.run().await;
    assert!(!status.failures().is_empty() || bench.plan().is_empty(), "{:?}\n{}", log(&status), bench.plan());
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn nothing_is_made_anew_for_a_modification_that_is_held_back() {
    let mut bench = Bench::new();
    bench.put(thing("a")).put(thing("b").recreated_with("a"));
    bench.run().await;
    // What it comes after from now on can't be there.
    bench.put(thing("c").on("nowhere")).put(thing("a").value(1).after("c"));
    for _ in 0..2 {
        let status = bench.run().await;
        assert_eq!(log(&status), Vec::<String>::new());
    }
}
