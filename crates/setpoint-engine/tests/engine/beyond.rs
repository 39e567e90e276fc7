//! What goes beyond the founding document.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use setpoint_engine::{
    ConditionKind, DefaultRegistry, Engine, Hooks, Journal, JournalError, LogEntry, MemoryJournal, OpCx,
    OpError, Operation, Record, Selection, SimulatedClock, condition, replay, testkit,
};
use setpoint_graph::{ItemHandle, SubgraphPath};

use crate::world::*;

#[tokio::test(start_paused = true)]
async fn losing_one_alternative_while_another_lives_is_no_operation() {
    let mut bench = Bench::new();
    bench.put(thing("A").on_any(&["B", "C"])).put(thing("B")).put(thing("C"));
    bench.run().await;
    bench.del("B");
    assert_eq!(log(&bench.run().await), ["delete B"]);
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn a_replacement_is_created_before_the_old_alternative_goes() {
    let mut bench = Bench::new();
    bench.put(thing("A").on_any(&["B", "C"])).put(thing("B"));
    bench.run().await;
    bench.del("B");
    bench.put(thing("C"));
    assert_eq!(log(&bench.run().await), ["create C", "delete B"]);
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn a_replacement_that_needs_what_the_old_alternative_holds_deletes_temporarily() {
    let mut bench = Bench::new();
    bench.put(thing("A").on_any(&["B", "C"])).put(thing("B").claiming("port"));
    bench.run().await;
    bench.del("B");
    bench.put(thing("C").claiming("port"));
    assert_eq!(log(&bench.run().await), ["delete A", "delete B", "create C", "create A"]);
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn a_circle_of_alternatives_is_created_if_some_order_exists() {
    let mut bench = Bench::new();
    bench.put(thing("A").on_any(&["B", "C"])).put(thing("B").on("A")).put(thing("C"));
    let status = bench.run().await;
    assert_eq!(log(&status), ["create C", "create A", "create B"]);
    status.result().unwrap();
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn items_that_only_hold_each_other_up_are_deleted() {
    let mut bench = Bench::new();
    bench.put(thing("A").on_any(&["B", "X"])).put(thing("B").on_any(&["A", "X"]));
    bench.appear(external("X"));
    assert_eq!(log(&bench.run().await), ["create A", "create B"]);
    bench.vanish("X");
    assert_eq!(bench.run().await.log().len(), 2);
    assert!(bench.world.names().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_old_holder_of_a_claim_goes_before_the_new_one_comes() {
    let mut bench = Bench::new();
    bench.put(thing("Z").claiming("port"));
    bench.run().await;
    bench.del("Z");
    bench.put(thing("A").claiming("port"));
    assert_eq!(log(&bench.run().await), ["delete Z", "create A"]);
    bench.put(thing("A")).put(thing("B").claiming("port"));
    assert_eq!(log(&bench.run().await), ["modify A", "create B"]);
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn of_two_intended_holders_the_later_stays_pending_and_names_the_first() {
    let mut bench = Bench::new();
    bench.put(thing("B").claiming("port"));
    bench.run().await;
    bench.put(thing("A").claiming("port"));
    let status = bench.run().await;
    assert!(status.log().is_empty());
    assert_eq!(bench.plan().left[0].to_string(), "? thing/A is pending: port is held by thing/B");
    bench.del("B");
    assert_eq!(log(&bench.run().await), ["delete B", "create A"]);
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn a_swap_of_claims_is_broken_by_a_temporary_deletion() {
    let mut bench = Bench::new();
    bench.put(thing("A").claiming("one")).put(thing("B").claiming("two"));
    bench.run().await;
    bench.put(thing("A").claiming("two")).put(thing("B").claiming("one"));
    assert_eq!(log(&bench.run().await), ["delete A", "modify B", "create A"]);
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn independent_operations_overlap_up_to_the_limit_and_related_ones_never() {
    let mut bench = Bench::new();
    bench.engine = bench.engine.clone().with_concurrency(3);
    for name in ["A", "B", "C", "D"] {
        bench.world.next(name, Operation::Create, Behaviour::Slow(Duration::from_secs(1)));
        bench.put(thing(name));
    }
    bench.put(thing("E").on("A"));
    let before = tokio::time::Instant::now();
    assert_eq!(bench.run().await.log().len(), 5);
    assert_eq!(before.elapsed(), Duration::from_secs(2));
    assert_eq!(bench.world.lock().most_running, 3);
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn items_related_through_an_unchanged_one_are_kept_apart() {
    let mut bench = Bench::new();
    bench.engine = bench.engine.clone().with_concurrency(4);
    bench.put(thing("A").on("B")).put(thing("B").on("C")).put(thing("C"));
    bench.run().await;
    for name in ["A", "C"] {
        bench.world.next(name, Operation::Modify, Behaviour::Slow(Duration::from_secs(1)));
    }
    bench.put(thing("A").on("B").value(1)).put(thing("C").value(1));
    assert_eq!(log(&bench.run().await), ["modify C", "modify A"]);
    assert_eq!(bench.world.lock().most_running, 1);
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn a_slow_operation_holds_up_only_what_depends_on_it() {
    let mut bench = Bench::new();
    bench.engine = bench.engine.clone().with_concurrency(4);
    bench.world.next("A", Operation::Create, Behaviour::Slow(Duration::from_secs(9)));
    bench.put(thing("A")).put(thing("B").on("A")).put(thing("C")).put(thing("D").on("C"));
    assert_eq!(log(&bench.run().await), ["create C", "create D", "create A", "create B"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_dropped_leaves_a_true_graph() {
    let mut bench = Bench::new();
    bench.world.next("B", Operation::Create, Behaviour::Slow(Duration::from_secs(5)));
    bench.put(thing("A")).put(thing("B").on("A"));
    let selection = Selection::all();
    let run = bench.engine.reconcile(&mut bench.current, Some(&bench.intended), &selection);
    assert!(tokio::time::timeout(Duration::from_secs(1), run).await.is_err());
    assert!(bench.state("A").unwrap().unfinished_operation().is_none());
    assert!(bench.state("B").unwrap().is_unknown());
    assert_eq!(log(&bench.run().await), ["delete B", "create B"]);
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn every_item_has_one_condition_and_an_explanation() {
    let mut bench = Bench::new();
    bench.engine = bench.engine.clone().with_retry(setpoint_engine::RetryPolicy::never());
    bench.world.fail("A", Operation::Create, "no room");
    bench.put(thing("A")).put(thing("B").on("A")).put(thing("C")).put(thing("D").on("D"));
    bench.run().await;
    let kind = |bench: &Bench, name: &str| condition(bench.graph(), &bench.intended, &r(name)).unwrap().kind;
    assert_eq!(kind(&bench, "A"), ConditionKind::Failed);
    assert_eq!(kind(&bench, "B"), ConditionKind::Pending);
    assert_eq!(kind(&bench, "C"), ConditionKind::InSync);
    assert_eq!(kind(&bench, "D"), ConditionKind::Invalid);
    let now = jiff::Timestamp::UNIX_EPOCH;
    let explanation = bench.engine.explain(bench.graph(), &bench.intended, &r("B"), now).unwrap().to_string();
    assert!(explanation.starts_with("thing/B is pending since"), "{explanation}");
    assert!(explanation.contains("thing/A has failed since"), "{explanation}");
    assert!(explanation.contains("no room"), "{explanation}");
    let status = bench.engine.subgraph_status(bench.graph(), &bench.intended, &SubgraphPath::root());
    assert_eq!(status.counts[&ConditionKind::InSync], 1);
    assert!(!status.is_in_sync());
}

#[tokio::test(start_paused = true)]
async fn a_listing_that_hangs_ends_with_the_time_an_operation_has() {
    struct Hangs;
    impl setpoint_engine::Configurator<Thing> for Hangs {
        async fn create(&self, _: &OpCx, _: &Thing) -> Result<(), OpError> {
            Ok(())
        }
        async fn delete(&self, _: &OpCx, _: &Thing) -> Result<(), OpError> {
            Ok(())
        }
        async fn list(&self, _: &OpCx) -> Result<Option<Vec<Thing>>, OpError> {
            std::future::pending().await
        }
    }
    let engine = Engine::new(DefaultRegistry::new().with(Hangs));
    let error = engine.discover(&setpoint_engine::CurrentGraph::new("test")).await.unwrap_err();
    assert_eq!(error.to_string(), "listing what is there took too long");
}

#[tokio::test(start_paused = true)]
async fn an_items_own_limit_wins_over_the_engines() {
    struct Slow;
    impl setpoint_engine::Configurator<Thing> for Slow {
        async fn create(&self, _: &OpCx, _: &Thing) -> Result<(), OpError> {
            tokio::time::sleep(Duration::from_mins(15)).await;
            Ok(())
        }
        async fn delete(&self, _: &OpCx, _: &Thing) -> Result<(), OpError> {
            Ok(())
        }
        fn limit(&self, _: Option<Operation>, item: &Thing) -> Option<Duration> {
            (item.value > 0).then(|| Duration::from_mins(u64::from(item.value)))
        }
    }
    let engine = Engine::new(DefaultRegistry::new().with(Slow)).with_clock(SimulatedClock::start());
    let mut intended = setpoint_graph::Graph::new("test");
    for (name, minutes) in [("A", 20), ("B", 12), ("C", 0)] {
        intended.put_item(thing(name).value(minutes)).unwrap();
    }
    let status = engine.reconcile(&mut None, Some(&intended), &Selection::all()).await.unwrap();
    let failed: Vec<_> = status.failures().iter().map(|failure| failure.item.name().to_string()).collect();
    assert_eq!(failed, ["B", "C"], "the engine's ten minutes hold where there is no other limit");
}

#[tokio::test(start_paused = true)]
async fn a_background_operation_that_takes_too_long_is_cancelled_and_given_up() {
    let mut bench = Bench::new();
    bench.engine =
        bench.engine.clone().with_timeout(Some(Duration::from_mins(5))).with_grace(Duration::from_mins(1));
    bench.world.next("A", Operation::Create, crate::world::Behaviour::Background);
    bench.put(thing("A"));
    let status = bench.run().await;
    let due = status.next_retry().expect("there is a time to look again");
    assert_eq!(due.duration_since(jiff::Timestamp::UNIX_EPOCH).as_mins(), 5);
    tokio::time::sleep(Duration::from_mins(6)).await;
    bench.run().await;
    let asked = bench.world.lock().background["A"].2.as_ref().unwrap().cancellation().is_cancelled();
    assert!(asked, "it is asked to stop");
    let waiting = bench.run().await;
    tokio::time::sleep(Duration::from_mins(2)).await;
    let status = bench.run().await;
    assert!(log(&status)[0].contains("did not stop"), "{:?}", log(&status));
    // Whoever waits for it is woken, although it never said how it ended.
    tokio::time::timeout(Duration::from_secs(1), waiting.wait_for_background())
        .await
        .expect("nobody waits for ever");
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_did_not_take_is_caught_by_verification() {
    let mut bench = Bench::new();
    bench.engine = bench.engine.clone().verifying();
    bench.world.lock().can_read = true;
    bench.put(thing("A"));
    bench.run().await;
    assert_eq!(bench.world.lock().reads, 1);
    // Something undoes the change before it is read back.
    bench.world.lock().sabotage = Some("A".into());
    bench.put(thing("A").value(5));
    let status = bench.run().await;
    assert!(
        log(&status)[0].starts_with("modify A (after the operation it is not as intended: value: "),
        "{:?}",
        log(&status)
    );
    assert_eq!(log(&bench.run().await), ["modify A"]);
}

/// A read that fails changed nothing; the operation before it did.
#[tokio::test(start_paused = true)]
async fn what_was_created_and_could_not_be_read_back_is_not_forgotten() {
    let mut bench = Bench::new();
    bench.engine = bench.engine.clone().verifying();
    bench.world.lock().can_read = true;
    bench.world.lock().unreadable = Some(OpError::untouched("permission denied"));
    bench.put(thing("A"));
    let status = bench.run().await;
    assert_eq!(log(&status), ["create A (can't be read back: permission denied)"]);
    assert_eq!(bench.state("A").unwrap().presence(), setpoint_engine::Presence::Partial);
    bench.world.take_log();
    bench.run().await;
    assert_eq!(bench.world.take_log(), ["delete A", "create A"], "it is not created beside itself");

    bench.world.lock().unreadable = Some(OpError::untouched("permission denied"));
    bench.put(thing("A").value(5));
    bench.run().await;
    // It is like the new value, and the intent goes back to the old one: that is a change.
    bench.put(thing("A"));
    bench.run().await;
    assert_eq!(bench.world.lock().exists["A"].value, thing("A").value);
}

#[tokio::test(start_paused = true)]
async fn what_nobody_could_see_the_end_of_is_read_back_by_the_next_run_and_neither_repeated_nor_cleaned_up() {
    for operation in [Operation::Create, Operation::Modify] {
        let mut bench = Bench::new();
        bench.world.lock().can_read = true;
        if operation == Operation::Modify {
            bench.put(thing("A"));
            bench.run().await;
        }
        bench.world.next("A", operation, Behaviour::Fail(OpError::unknown("no answer")));
        bench.put(thing("A").value(5)).put(thing("B").on_exactly("A", 5));
        let status = bench.run().await;
        assert_eq!(log(&status), [format!("{operation} A (no answer)")]);
        assert_eq!(status.failures().len(), 1);
        assert_eq!(log(&bench.run().await), ["create B"]);
        assert!(bench.run().await.failures().is_empty());
        bench.world.next("A", Operation::Delete, Behaviour::Fail(OpError::unknown("no answer")));
        bench.del("A").del("B");
        assert_eq!(log(&bench.run().await), ["delete B", "delete A (no answer)"]);
        assert_eq!(log(&bench.run().await), [""; 0]);
        assert!(bench.state("A").is_none());
    }
}

/// What can't be read is cleaned up.
#[tokio::test(start_paused = true)]
async fn what_nobody_could_see_the_end_of_and_can_not_be_read_is_made_anew() {
    let mut bench = Bench::new();
    bench.world.next("A", Operation::Create, Behaviour::Fail(OpError::unknown("no answer")));
    bench.put(thing("A"));
    bench.run().await;
    assert_eq!(log(&bench.run().await), ["delete A", "create A"]);
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn a_panic_while_a_background_operation_is_verified_is_its_failure() {
    let mut bench = Bench::new();
    bench.engine = bench.engine.clone().verifying();
    bench.world.lock().can_read = true;
    bench.world.next("A", Operation::Create, crate::world::Behaviour::Background);
    bench.put(thing("A"));
    bench.run().await;
    bench.world.finish("A", Ok(()));
    bench.world.lock().read_panics = true;
    let status = bench.run().await;
    assert!(log(&status)[0].contains("no reading today"), "{:?}", log(&status));
    assert_eq!(bench.world.names(), ["A"]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_run_is_reverted_to_the_state_at_its_start() {
    let mut bench = Bench::new();
    bench.put(thing("A").value(1));
    bench.run().await;
    bench.engine = bench.engine.clone().reverting();
    bench.world.fail("C", Operation::Create, "no room");
    bench.put(thing("A").value(2)).put(thing("B")).put(thing("C"));
    let status = bench.run().await;
    assert_eq!(log(&status), ["modify A", "create B", "create C (no room)"]);
    assert_eq!(log(status.reverted().unwrap()), ["modify A", "delete B"]);
    assert_eq!(bench.world.names(), ["A"]);
    assert_eq!(bench.world.lock().exists["A"].value, 1);
}

#[tokio::test(start_paused = true)]
async fn hooks_see_each_operation_and_may_refuse_it() {
    #[derive(Default)]
    struct Watch(Mutex<Vec<String>>);
    impl Hooks for Watch {
        fn before(&self, operation: Operation, item: &ItemHandle) -> Result<(), OpError> {
            if item.name().as_str() == "B" {
                return Err(OpError::untouched("not on a Sunday"));
            }
            self.0.lock().unwrap().push(format!("before {operation} {}", item.name()));
            Ok(())
        }
        fn after(&self, entry: &LogEntry) {
            self.0.lock().unwrap().push(format!("after {} {}", entry.operation(), entry.item().name()));
        }
    }
    let watch = Arc::new(Watch::default());
    let mut bench = Bench::new();
    bench.engine = bench.engine.clone().with_hooks(watch.clone());
    bench.put(thing("A")).put(thing("B"));
    assert_eq!(log(&bench.run().await), ["create A", "create B (not on a Sunday)"]);
    assert_eq!(*watch.0.lock().unwrap(), ["before create A", "after create A", "after create B"]);
    assert_eq!(bench.world.names(), ["A"]);
}

#[tokio::test(start_paused = true)]
async fn the_journal_knows_of_every_start_before_it_happens_and_replays_to_the_same_graph() {
    let journal = Arc::new(MemoryJournal::new());
    let mut bench = Bench::new();
    bench.engine = bench.engine.clone().with_journal(journal.clone()).with_concurrency(2);
    bench.intended.put_item_into(&path("sub"), thing("A").on("B")).unwrap();
    bench.put(thing("B")).put(thing("C"));
    bench.run().await;
    bench.put(thing("B").value(2));
    bench.del("C");
    bench.run().await;
    let records = journal.records();
    let replayed = replay("test", None, &records);
    assert!(replayed.diff(bench.graph()).is_empty());
    // Cut off anywhere, what was started and not ended is unknown, and nothing else is.
    for cut in 0..records.len() {
        let graph = replay("test", None, &records[..cut]);
        for node in graph.items() {
            let started = records[..cut].iter().rfind(|record| match record {
                Record::Started { item, .. } => item.reference() == node.reference(),
                Record::Ended { item, .. } => item == node.reference(),
                _ => false,
            });
            let open = matches!(started, Some(Record::Started { .. }));
            assert_eq!(node.state().unwrap().is_unknown(), open, "{node:?} at {cut}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_started_that_the_journal_does_not_know_of() {
    struct Full;
    impl Journal for Full {
        fn record<'a>(&'a self, _: &'a [Record]) -> BoxFuture<'a, Result<(), JournalError>> {
            Box::pin(async { Err(JournalError("disk full".into())) })
        }
    }
    let mut bench = Bench::new();
    bench.engine = bench.engine.clone().with_journal(Arc::new(Full));
    bench.put(thing("A"));
    let status = bench.run().await;
    assert!(status.log().is_empty());
    assert!(status.result().unwrap_err().to_string().contains("disk full"));
    assert!(bench.world.names().is_empty());
}

#[tokio::test(start_paused = true)]
async fn items_can_be_made_anew_on_request() {
    let mut bench = Bench::new();
    bench.put(thing("A")).put(thing("B").on("A"));
    bench.run().await;
    let engine = bench.engine.clone().replacing([r("A")]);
    let status =
        engine.reconcile(&mut bench.current, Some(&bench.intended), &Selection::all()).await.unwrap();
    assert_eq!(log(&status), ["delete B", "delete A", "create A", "create B"]);
    assert!(bench.run().await.log().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_item_that_could_not_be_made_anew_on_request_has_failed() {
    let mut bench = Bench::new();
    bench.put(thing("A"));
    bench.run().await;
    bench.world.fail("A", Operation::Delete, "held");
    let engine = bench.engine.clone().replacing([r("A")]);
    let status =
        engine.reconcile(&mut bench.current, Some(&bench.intended), &Selection::all()).await.unwrap();
    assert!(status.result().is_err(), "{:?}", log(&status));
    // It is as intended, and nobody asks for more.
    assert!(bench.run().await.result().is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_testkit_passes_a_good_configurator_and_finds_what_a_bad_one_does_wrong() {
    let world = World::default();
    world.lock().can_read = true;
    let samples = [thing("A"), thing("A").value(1), thing("A").fixed(1)];
    assert_eq!(testkit::check(world.clone(), &samples).await.findings, []);
    world.lock().sabotage = Some("A".into());
    let checked = testkit::check(world, &samples[..1]).await;
    assert!(
        checked.findings.iter().any(|finding| finding.promise == "what was created reads as it was wanted")
    );
}

#[tokio::test(start_paused = true)]
async fn checks_of_the_testkit_that_show_nothing_count_as_skipped() {
    let world = World::default();
    let blind = testkit::check(world.clone(), &[thing("A")]).await;
    assert_eq!((blind.passed, blind.findings.as_slice()), (0, &[][..]), "nothing can be read");
    let why = blind.skipped[0].to_string();
    assert!(why.starts_with("before it is created it is not there: "), "{why}");
    assert!(why.ends_with("the configurator can't read"), "{why}");

    world.lock().can_read = true;
    let checked = testkit::check(world.clone(), &[thing("A"), thing("A").fixed(1)]).await;
    assert_eq!(checked.findings, []);
    let skipped = |promise| checked.skipped.iter().filter(|skipped| skipped.promise == promise).count();
    assert_eq!(skipped("an item can be modified"), 2, "both ways are re-creations");
    assert_eq!(skipped("a cancelled creation stops"), 2, "its creation never waits");
    assert_eq!(skipped("an interrupted creation is cleaned up by a deletion"), 2);

    for _ in 0..5 {
        world.next("A", Operation::Create, Behaviour::Slow(Duration::from_millis(1)));
    }
    let waiting = testkit::check(world, &[thing("A")]).await;
    assert_eq!((waiting.findings.as_slice(), waiting.skipped.as_slice()), (&[][..], &[][..]));
}

#[tokio::test(start_paused = true)]
async fn the_log_is_the_same_every_time_at_concurrency_one() {
    let run = || async {
        let mut bench = Bench::new();
        for i in 0..30 {
            let mut made = thing(&format!("t{i:02}"));
            if i > 0 {
                made = made.on(&format!("t{:02}", (i * 7) % i));
            }
            bench.world.next(&made.name, Operation::Create, Behaviour::Slow(Duration::from_millis(i % 5)));
            bench.put(made);
        }
        let status = bench.run().await;
        let text = |entry: &LogEntry| format!("{entry} {:?} {:?}", entry.start(), entry.end());
        status.log().iter().map(text).collect::<Vec<_>>()
    };
    let first = run().await;
    assert_eq!(first.len(), 30);
    assert_eq!(first, run().await);
}

#[tokio::test(start_paused = true)]
async fn a_drained_run_finishes_what_runs_and_starts_nothing_more() {
    let mut bench = Bench::new();
    let stop = tokio_util::sync::CancellationToken::new();
    bench.engine = bench.engine.clone().draining_on(stop.clone());
    bench.world.next("A", Operation::Create, Behaviour::Slow(Duration::from_secs(5)));
    bench.put(thing("A")).put(thing("B").on("A"));
    let asked = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        stop.cancel();
    });
    let status = bench.run().await;
    asked.await.unwrap();
    assert_eq!(log(&status), ["create A"]);
    assert_eq!(status.interruption(), Some(&setpoint_engine::Interruption::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_drained_when_nothing_is_left_to_start_was_not_interrupted() {
    let mut bench = Bench::new();
    let stop = tokio_util::sync::CancellationToken::new();
    bench.engine = bench.engine.clone().draining_on(stop.clone());
    bench.world.next("A", Operation::Create, Behaviour::Slow(Duration::from_secs(5)));
    bench.put(thing("A"));
    let asked = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        stop.cancel();
    });
    let status = bench.run().await;
    asked.await.unwrap();
    assert_eq!(log(&status), ["create A"]);
    status.result().unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_was_read_already_is_not_read_again() {
    let mut bench = Bench::new();
    bench.world.lock().can_read = true;
    bench.put(thing("A")).put(thing("B")).put(thing("C"));
    bench.run().await;
    let items = bench.engine.readable(bench.graph(), &Selection::items([r("A"), r("B")]));
    bench.world.lock().exists.remove("A");
    let mut ahead = bench.engine.read_items(items).await;
    assert_eq!(bench.world.lock().reads, 2);
    // A reading of another value than the known one is of no use.
    ahead[1].was = ItemHandle::new(thing("B").value(9));
    let current = bench.current.as_mut().unwrap();
    let refreshed = bench.engine.refresh_beside(current, &Selection::all(), ahead).await;
    assert_eq!(bench.world.lock().reads, 4, "B and C");
    assert_eq!(refreshed.read, 3);
    let drifted: Vec<&str> = refreshed.drifted.iter().map(|drifted| drifted.item.name().as_str()).collect();
    assert_eq!(drifted, ["A"]);
}
