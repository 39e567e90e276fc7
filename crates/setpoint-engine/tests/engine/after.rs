//! What comes after something else is touched when that is as intended, and not before.

use std::time::Duration;

use setpoint_engine::{OpError, Operation, RetryPolicy, Selection};

use crate::world::{Behaviour, Bench, log, r, thing};

#[tokio::test(start_paused = true)]
async fn what_is_made_anew_with_an_item_stays_as_it_is_where_changing_that_fails() {
    let mut bench = Bench::new();
    bench.put(thing("A")).put(thing("B").restarting().repeated_with("A"));
    bench.run().await;
    bench.put(thing("A").value(1));
    let planned = bench.plan();
    assert_eq!(planned.operations[1].waits_for, ["thing/A"], "{planned}");
    assert!(planned.operations[1].reason.contains("it is made anew when thing/A is changed"), "{planned}");
    bench.world.fail("A", Operation::Modify, "no");
    assert_eq!(log(&bench.run().await), ["modify A (no)"]);
    assert_eq!(log(&bench.run().await), ["modify A", "delete B", "create B"]);
    assert_eq!(log(&bench.run().await), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_item_with_another_value_waits_for_what_it_comes_after_before_its_old_value_goes() {
    let mut bench = Bench::new();
    bench.put(thing("A")).put(thing("B").after("A"));
    bench.run().await;
    bench.put(thing("A").value(1)).put(thing("B").fixed(1).after("A"));
    bench.world.fail("A", Operation::Modify, "no");
    assert_eq!(log(&bench.run().await), ["modify A (no)"]);
    assert_eq!(bench.world.lock().exists["B"].fixed, 0);
    assert_eq!(log(&bench.run().await), ["modify A", "delete B", "create B"]);
    // So it does where that is made anew itself.
    bench.put(thing("A").fixed(1)).put(thing("B").fixed(2).after("A"));
    bench.world.fail("A", Operation::Create, "no");
    assert_eq!(log(&bench.run().await), ["delete A", "create A (no)"]);
    assert_eq!(bench.world.lock().exists["B"].fixed, 1);
    assert_eq!(log(&bench.run().await), ["create A", "delete B", "create B"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_made_anew_with_an_item_stays_where_that_vanished_and_does_not_come_back() {
    let mut bench = Bench::new();
    bench.world.lock().can_read = true;
    bench.put(thing("A")).put(thing("B").restarting().repeated_with("A"));
    bench.run().await;
    bench.world.lock().exists.remove("A");
    bench.engine.refresh(bench.current.as_mut().unwrap(), &Selection::all()).await;
    bench.world.fail("A", Operation::Create, "no");
    assert_eq!(log(&bench.run().await), ["create A (no)"]);
    assert_eq!(log(&bench.run().await), ["create A", "delete B", "create B"]);
}

#[tokio::test(start_paused = true)]
async fn an_item_that_changes_in_place_is_made_anew_where_that_is_how_it_is_applied_again() {
    let mut bench = Bench::new();
    bench.put(thing("A")).put(thing("B").restarting().repeated_with("A"));
    bench.run().await;
    bench.put(thing("A").value(1)).put(thing("B").restarting().value(1).repeated_with("A"));
    assert_eq!(log(&bench.run().await), ["modify A", "delete B", "create B"]);
}

#[tokio::test(start_paused = true)]
async fn that_an_item_must_be_made_anew_is_remembered_until_it_was() {
    let mut bench = Bench::new();
    bench.put(thing("A")).put(thing("B").restarting().repeated_with("A"));
    bench.run().await;
    bench.put(thing("A").value(1));
    bench.world.fail("B", Operation::Delete, "no");
    assert_eq!(log(&bench.run().await), ["modify A", "delete B (no)"]);
    let planned = bench.plan();
    assert!(planned.operations[0].reason.contains("an item with which it is made anew changed"), "{planned}");
    assert_eq!(log(&bench.run().await), ["delete B", "create B"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_made_anew_with_an_item_is_also_when_that_comes_back_after_it_failed_half_way() {
    let mut bench = Bench::new();
    bench.put(thing("A")).put(thing("B").restarting().repeated_with("A")).put(thing("C").repeated_with("A"));
    bench.run().await;
    bench.put(thing("A").fixed(1));
    bench.world.next("A", Operation::Create, Behaviour::Fail(OpError::new("no")));
    assert_eq!(log(&bench.run().await), ["delete A", "create A (no)"]);
    let expected = ["delete A", "create A", "delete B", "create B", "modify C"];
    assert_eq!(log(&bench.run().await), expected);
    assert_eq!(log(&bench.run().await), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn what_an_item_came_after_goes_when_the_item_did() {
    let mut bench = Bench::new();
    bench.put(thing("A")).put(thing("B").after("A"));
    bench.run().await;
    bench.world.fail("B", Operation::Delete, "no");
    assert_eq!(log(&bench.destroy().await), ["delete B (no)"], "it may be needed to delete B");
    assert_eq!(log(&bench.destroy().await), ["delete B", "delete A"]);
}

#[tokio::test(start_paused = true)]
async fn what_an_item_came_after_stays_while_the_item_waits_for_what_it_is_to_come_after() {
    for changed in [thing("B").fixed(1), thing("B").value(1)] {
        let operations = if changed.fixed == 1 { vec!["delete B", "create B"] } else { vec!["modify B"] };
        let mut bench = Bench::new();
        bench.put(thing("A")).put(thing("B").after("A"));
        bench.run().await;
        bench.del("A").put(thing("C")).put(changed.after("C"));
        bench.world.fail("C", Operation::Create, "no");
        assert_eq!(log(&bench.run().await), ["create C (no)"]);
        let expected: Vec<&str> = ["create C"].into_iter().chain(operations).chain(["delete A"]).collect();
        assert_eq!(log(&bench.run().await), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn an_item_goes_first_where_what_it_is_to_come_after_waits_for_that() {
    let mut bench = Bench::new();
    bench.put(thing("B").claiming("p"));
    bench.run().await;
    bench.put(thing("A").claiming("p")).put(thing("B").claiming("q").fixed(1).after("A"));
    assert_eq!(log(&bench.run().await), ["delete B", "create A", "create B"], "A takes what B holds");
    bench.world.assert_no_violation();
    // B stands on D, which is made anew, and so does C: B can't wait for C.
    let mut bench = Bench::new();
    bench.put(thing("D")).put(thing("C").on("D")).put(thing("B").on("D").restarting().repeated_with("C"));
    bench.run().await;
    bench.put(thing("D").fixed(1));
    assert_eq!(
        log(&bench.run().await),
        ["delete B", "delete C", "delete D", "create D", "create C", "create B"]
    );
    bench.world.assert_no_violation();
}

/// A bench in which what failed is tried again after ten seconds.
fn patient_bench() -> Bench {
    let mut bench = Bench::new();
    let policy = RetryPolicy::exponential(Duration::from_secs(10), Duration::from_mins(1));
    bench.engine = bench.world.engine().with_retry(policy);
    bench.world.lock().can_read = true;
    bench
}

#[tokio::test(start_paused = true)]
async fn the_next_run_is_due_when_what_holds_an_item_back_is_and_not_when_the_item_was() {
    let mut bench = patient_bench();
    bench.put(thing("A")).put(thing("B").after("A"));
    bench.run().await;
    bench.put(thing("A").value(1));
    bench.world.fail("A", Operation::Modify, "no");
    let due = bench.run().await.next_retry();
    assert!(due.is_some());
    bench.world.lock().exists.insert("B".into(), thing("B").after("A").value(9));
    bench.engine.refresh(bench.current.as_mut().unwrap(), &Selection::all()).await;
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let held = bench.run().await;
        assert_eq!((log(&held), held.next_retry()), (Vec::new(), due));
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    let status = bench.run().await;
    assert_eq!((log(&status), status.next_retry()), (vec!["modify A".into(), "modify B".into()], None));
}

#[tokio::test(start_paused = true)]
async fn no_run_is_due_for_an_item_that_was_due_and_not_selected() {
    let mut bench = patient_bench();
    bench.put(thing("A")).put(thing("B"));
    bench.world.fail("A", Operation::Create, "no");
    assert!(bench.run().await.next_retry().is_some());
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(bench.select(&Selection::items([r("B")])).await.next_retry(), None);
    assert_eq!(log(&bench.run().await), ["create A"]);
}
