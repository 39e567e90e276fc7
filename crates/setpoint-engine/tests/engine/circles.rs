//! Items that stand on each other in a circle, or would: it is named, never closed, and nothing is left hanging.

use std::time::Duration;

use setpoint_engine::{Operation, Selection};
use setpoint_plan::Standing;

use crate::world::*;

#[tokio::test(start_paused = true)]
async fn a_cycle_in_the_intent_is_named_and_the_rest_goes_on() {
    let mut bench = Bench::new();
    bench.put(thing("A").on("B")).put(thing("B").on("A")).put(thing("C").on("A")).put(thing("D"));
    let status = bench.run().await;
    assert_eq!(log(&status), ["create D"]);
    let invalid: Vec<String> = status.invalid().iter().map(ToString::to_string).collect();
    let why = "it depends on itself: thing/A → thing/B → thing/A";
    assert_eq!(invalid, [format!("thing/A: {why}"), format!("thing/B: {why}")]);
    assert!(status.result().is_err());
    let plan = bench.plan();
    let standings: Vec<_> = plan.left.iter().map(|left| (left.name.as_str(), left.standing)).collect();
    assert_eq!(standings, [("A", Standing::Invalid), ("B", Standing::Invalid), ("C", Standing::Pending)]);
    bench.del("B");
    bench.put(thing("B"));
    assert_eq!(log(&bench.run().await), ["create B", "create A", "create C"], "once broken, all is created");
}

#[tokio::test(start_paused = true)]
async fn a_modification_that_closes_a_cycle_is_left_out_and_deletion_does_not_hang() {
    let mut bench = Bench::new();
    bench.put(thing("A").on("B")).put(thing("B"));
    bench.run().await;
    bench.put(thing("B").on("A"));
    let status = bench.run().await;
    assert!(status.log().is_empty());
    assert_eq!(status.invalid().len(), 2);
    assert_eq!(log(&bench.destroy().await), ["delete A", "delete B"]);
    bench.world.assert_no_violation();
}
#[tokio::test(start_paused = true)]
async fn a_selected_item_is_not_made_to_need_one_outside_that_still_needs_it() {
    let mut bench = Bench::new();
    bench.put(thing("C")).put(thing("E").on("C"));
    bench.run().await;
    bench.put(thing("C").on("E")).put(thing("E"));
    let status = bench.select(&Selection::item(r("C"))).await;
    assert!(status.log().is_empty(), "{:?}", log(&status));
    assert!(status.invalid()[0].why.contains("needs its present value"));
    assert_eq!(log(&bench.run().await), ["modify E", "modify C"], "a run that holds both finds the way");
    bench.world.assert_no_violation();
}

/// Whoever stands on any of several items leaves room for a wrong choice: here C goes first, though G could.
#[tokio::test(start_paused = true)]
async fn deletions_in_a_circle_of_alternatives_leave_nobody_without_support() {
    let mut bench = Bench::new();
    // C stands on H, H on C or G, G on A or C: built as A, G, H, C.
    bench.put(thing("A"));
    bench.put(thing("G").on_any(&["A", "C"]));
    bench.put(thing("H").on_any(&["C", "G"]));
    bench.put(thing("C").on("H"));
    assert_eq!(log(&bench.run().await), ["create A", "create G", "create H", "create C"]);
    for name in ["A", "G", "H", "C"] {
        bench.del(name);
    }
    assert_eq!(log(&bench.run().await), ["delete C", "delete H", "delete G", "delete A"]);
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn an_item_whose_new_support_never_came_goes_when_that_is_not_intended_any_more() {
    let mut bench = Bench::new();
    bench.put(thing("C").on_any(&["X", "I"]));
    bench.appear(external("X"));
    assert_eq!(log(&bench.run().await), ["create C"]);
    // The old support goes, and the new one can't be made.
    bench.world.fail("I", Operation::Create, "no room");
    bench.put(thing("I"));
    bench.vanish("X");
    assert_eq!(log(&bench.run().await), ["create I (no room)", "delete C"]);
    bench.del("I");
    bench.run().await;
    assert!(bench.world.names().is_empty(), "{:?}", bench.world.names());
}

/// H stands on F or A, and A on H until its modification, which fails: F may not go before that is known.
#[tokio::test(start_paused = true)]
async fn a_failed_modification_leaves_nothing_that_only_holds_itself_up() {
    let mut bench = Bench::new();
    bench.put(thing("F")).put(thing("H").on_any(&["F", "A"])).put(thing("A").on("H"));
    assert_eq!(log(&bench.run().await), ["create F", "create H", "create A"]);
    bench.world.fail("A", Operation::Modify, "no room");
    bench.put(thing("A").value(1));
    bench.del("F");
    let status = bench.run().await;
    assert_eq!(log(&status)[0], "modify A (no room)");
    bench.world.assert_no_violation();
    while bench.run().await.next_retry().is_some() {
        tokio::time::sleep(Duration::from_mins(1)).await;
    }
    bench.world.assert_no_violation();
    assert_eq!(bench.world.names(), ["A", "H"]);
}

/// B stands on H and G on B or the external Z; without Z, an H that is to stand on G would hold itself up.
#[tokio::test(start_paused = true)]
async fn a_modification_never_closes_a_circle_that_only_holds_itself_up() {
    let mut bench = Bench::new();
    bench.put(thing("H")).put(thing("B").on("H")).put(thing("G").on_any(&["B", "Z"]));
    assert_eq!(log(&bench.run().await), ["create H", "create B", "create G"]);
    bench.put(thing("H").value(1).on("G"));
    assert_eq!(log(&bench.run().await), ["delete G", "delete B", "delete H"]);
    bench.world.assert_no_violation();
    bench.appear(external("Z"));
    assert_eq!(log(&bench.run().await), ["create G", "create H", "create B"]);
    // Z goes again: nothing of the three can stay.
    bench.vanish("Z");
    bench.run().await;
    assert_eq!(bench.world.names(), [""; 0]);
}

/// I is to stand on B, which stands on I until its own modification; that fails.
#[tokio::test(start_paused = true)]
async fn after_a_failed_modification_nothing_comes_to_stand_on_what_stands_on_it() {
    let mut bench = Bench::new();
    bench.put(thing("I")).put(thing("B").on_any(&["A", "I"]));
    assert_eq!(log(&bench.run().await), ["create I", "create B"]);
    bench.world.fail("B", Operation::Modify, "no room");
    bench.put(thing("B").value(1)).put(thing("I").value(1).on("B"));
    assert_eq!(log(&bench.run().await), ["modify B (no room)"]);
    assert_eq!(bench.plan().operations.len(), 2, "B is tried again, and I follows");
    assert_eq!(log(&bench.run().await), ["modify B", "modify I"]);
    bench.world.assert_no_violation();
}

/// F is to stand on B, which stands on A or F; A can't be created.
#[tokio::test(start_paused = true)]
async fn after_a_failed_creation_nothing_comes_to_stand_on_what_stands_on_it() {
    let mut bench = Bench::new();
    bench.put(thing("F"));
    assert_eq!(log(&bench.run().await), ["create F"]);
    bench.world.fail("A", Operation::Create, "no room");
    bench.put(thing("A")).put(thing("B").on_any(&["A", "F"])).put(thing("F").value(1).on("B"));
    assert_eq!(log(&bench.run().await), ["create A (no room)", "create B"]);
    bench.world.assert_no_violation();
    assert_eq!(log(&bench.run().await), ["create A", "modify F"]);
    bench.world.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn an_item_that_loses_the_alternative_to_itself_is_invalid() {
    let mut bench = Bench::new();
    bench.appear(external("Y"));
    bench.put(thing("D").on_any(&["Y", "D"]));
    assert_eq!(log(&bench.run().await), ["create D"]);
    bench.put(thing("D").fixed(1).on("D"));
    assert_eq!(log(&bench.run().await), [""; 0]);
    assert_eq!(bench.plan().left[0].causes, ["it depends on itself: thing/D → thing/D"]);
    bench.world.assert_no_violation();
}

/// I stands on E or H, and E is to stand on I: not while H is away.
#[tokio::test(start_paused = true)]
async fn nothing_comes_to_stand_on_what_stands_on_it_while_the_alternative_is_made_anew() {
    let mut bench = Bench::new();
    bench.put(thing("E")).put(thing("H")).put(thing("I").on_any(&["E", "H"]));
    assert_eq!(log(&bench.run().await), ["create E", "create H", "create I"]);
    bench.put(thing("E").value(1).on("I")).put(thing("H").fixed(1));
    bench.world.fail("H", Operation::Create, "no room");
    let status = bench.run().await;
    assert!(!log(&status).contains(&"modify E".to_owned()), "{:?}", log(&status));
    bench.world.assert_no_violation();
    bench.run().await;
    assert_eq!(bench.world.names(), ["E", "H", "I"]);
    bench.world.assert_no_violation();
}

/// E stands on H, or on B that stands on E itself: while H is made anew, B is nothing to stand on.
#[tokio::test(start_paused = true)]
async fn what_stands_on_an_item_is_no_bridge_for_it() {
    let mut bench = Bench::new();
    bench.put(thing("H")).put(thing("E").on_any(&["B", "H"]));
    assert_eq!(log(&bench.run().await), ["create H", "create E"]);
    bench.put(thing("H").fixed(1)).put(thing("B").on("E"));
    bench.world.fail("H", Operation::Create, "no room");
    assert_eq!(log(&bench.run().await), ["delete E", "delete H", "create H (no room)"]);
    assert_eq!(log(&bench.run().await), ["create H", "create E", "create B"]);
    bench.world.assert_no_violation();
}
