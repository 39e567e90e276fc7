//! Reasons of operations: each code of a plan, and what is waited for.

use setpoint_engine::{OpError, Operation, RetryPolicy, Selection};
use setpoint_plan::{Plan, ReasonCode, Standing};

use crate::world::{Behaviour, Bench, external, log, r, thing};

/// The operations of a plan as sign, name and code.
fn codes(plan: &Plan) -> Vec<(char, &str, ReasonCode)> {
    let operations = plan.operations.iter();
    operations
        .map(|operation| (operation.action.sign(), operation.name.as_str(), operation.code.unwrap()))
        .collect()
}

/// The reason of an item's next operation, in words and as a code.
fn explained(bench: &Bench, name: &str) -> (String, ReasonCode) {
    let now = jiff::Timestamp::UNIX_EPOCH;
    let explanation = bench.engine.explain(bench.graph(), &bench.intended, &r(name), now).unwrap();
    let next = explanation.causes[0].next.as_ref().unwrap();
    (next.reason.clone(), next.code)
}

#[tokio::test(start_paused = true)]
async fn what_is_missing_changed_removed_or_asked_for_says_so() {
    let mut bench = Bench::new();
    bench.put(thing("A")).put(thing("B")).put(thing("C"));
    assert!(codes(&bench.plan()).iter().all(|(_, _, code)| *code == ReasonCode::Missing));
    bench.run().await;
    bench.put(thing("A").value(1)).put(thing("B").fixed(1)).del("C");
    let plan = bench.plan();
    assert!(codes(&plan).contains(&('~', "A", ReasonCode::Changed)));
    assert!(codes(&plan).contains(&('+', "B", ReasonCode::NotInPlace)));
    assert!(codes(&plan).contains(&('-', "C", ReasonCode::Removed)));
    bench.run().await;
    bench.engine = bench.engine.clone().replacing([r("A")]);
    assert_eq!(codes(&bench.plan()), [('-', "A", ReasonCode::Requested), ('+', "A", ReasonCode::Requested)]);
}

#[tokio::test(start_paused = true)]
async fn an_item_that_a_failed_change_may_have_left_half_done_is_applied_again() {
    let mut bench = Bench::new();
    bench.put(thing("A"));
    bench.run().await;
    bench.world.next("A", Operation::Modify, Behaviour::Fail(OpError::new("disk full")));
    bench.put(thing("A").value(1));
    bench.run().await;
    // The intent goes back to the value that the item had: only the failure is a reason to do anything.
    bench.put(thing("A").value(0));
    assert_eq!(codes(&bench.plan()), [('~', "A", ReasonCode::HalfDone)]);
    assert_eq!(log(&bench.run().await), ["modify A"]);
    assert!(bench.plan().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_item_of_which_a_failed_creation_may_have_left_parts_is_cleaned_up() {
    let mut bench = Bench::new();
    bench.world.next("A", Operation::Create, Behaviour::Fail(OpError::new("disk full")));
    bench.put(thing("A"));
    bench.run().await;
    assert_eq!(codes(&bench.plan()), [('-', "A", ReasonCode::Leftover), ('+', "A", ReasonCode::Leftover)]);
}

#[tokio::test(start_paused = true)]
async fn an_item_that_lost_what_it_needs_names_it() {
    let mut bench = Bench::new();
    bench.put(external("X")).put(thing("A").on("X"));
    bench.appear(external("X"));
    bench.run().await;
    bench.vanish("X");
    let plan = bench.plan();
    assert_eq!(codes(&plan), [('-', "A", ReasonCode::DependencyLost)]);
    let reason =
        "it lost what it needs: waits for thing/X (A rests on it): thing/X is external and not there";
    assert_eq!(plan.operations[0].reason, reason);
}

#[tokio::test(start_paused = true)]
async fn what_depends_on_an_item_that_is_recreated_or_modified_says_which() {
    let mut bench = Bench::new();
    bench.put(thing("A")).put(thing("B").on("A")).put(thing("C")).put(thing("D").recreated_with("C"));
    bench.run().await;
    bench.put(thing("A").fixed(1)).put(thing("C").value(1));
    let plan = bench.plan();
    let (b, d) = (ReasonCode::DependencyRecreated, ReasonCode::DependencyModified);
    let of = |name| codes(&plan).into_iter().filter(|(_, n, _)| *n == name).collect::<Vec<_>>();
    assert_eq!(of("B"), [('-', "B", b), ('+', "B", b)]);
    assert_eq!(of("D"), [('-', "D", d), ('+', "D", d)]);
}

#[tokio::test(start_paused = true)]
async fn an_item_that_no_order_keeps_in_place_is_deleted_for_a_while() {
    let mut bench = Bench::new();
    bench.put(thing("A").claiming("one")).put(thing("B").claiming("two"));
    bench.run().await;
    bench.put(thing("A").claiming("two")).put(thing("B").claiming("one"));
    let expected =
        [('-', "A", ReasonCode::Cycle), ('~', "B", ReasonCode::Changed), ('+', "A", ReasonCode::Cycle)];
    assert_eq!(codes(&bench.plan()), expected);
}

#[tokio::test(start_paused = true)]
async fn an_item_that_is_applied_again_with_another_says_so_before_and_after_that_changed() {
    let mut bench = Bench::new();
    bench.put(thing("A")).put(thing("B").repeated_with("A"));
    bench.run().await;
    bench.put(thing("A").value(1));
    let expected = [('~', "A", ReasonCode::Changed), ('~', "B", ReasonCode::Repeated)];
    assert_eq!(codes(&bench.plan()), expected);
    assert_eq!(bench.plan().operations[1].reason, "it is applied again when thing/A is changed");
    bench.world.fail("B", Operation::Modify, "busy");
    assert_eq!(log(&bench.run().await), ["modify A", "modify B (busy)"]);
    assert_eq!(codes(&bench.plan()), [('~', "B", ReasonCode::Repeated)]);
    let reason = "an item with which it is applied again changed: thing/A";
    assert_eq!(explained(&bench, "B"), (reason.to_owned(), ReasonCode::Repeated));
    assert_eq!(log(&bench.run().await), ["modify B"]);
    assert!(bench.plan().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_item_whose_recreation_was_interrupted_is_created_for_that_reason() {
    let mut bench = Bench::new();
    bench.put(thing("A"));
    bench.run().await;
    bench.world.fail("A", Operation::Create, "disk full");
    bench.put(thing("A").fixed(1));
    assert_eq!(log(&bench.run().await), ["delete A", "create A (disk full)"]);
    assert_eq!(codes(&bench.plan()), [('+', "A", ReasonCode::RecreationInterrupted)]);
    let reason = "an interrupted re-creation is completed";
    assert_eq!(explained(&bench, "A"), (reason.to_owned(), ReasonCode::RecreationInterrupted));
    assert_eq!(log(&bench.run().await), ["create A"]);
    assert!(bench.plan().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_item_that_is_found_although_its_recreation_was_interrupted_is_applied_again() {
    let mut bench = Bench::new();
    bench.put(thing("A"));
    bench.run().await;
    bench.world.next("A", Operation::Create, Behaviour::Hang);
    bench.put(thing("A").fixed(1));
    {
        let run = bench.engine.reconcile(&mut bench.current, Some(&bench.intended), &Selection::All);
        let dropped = tokio::time::timeout(std::time::Duration::from_secs(1), run).await;
        assert!(dropped.is_err(), "the creation hangs");
    }
    // It looks as intended, and nobody knows who made it so.
    {
        let mut system = bench.world.lock();
        system.can_read = true;
        system.partial.clear();
        system.exists.insert("A".into(), thing("A").fixed(1));
    }
    bench.engine.refresh(bench.current.as_mut().unwrap(), &Selection::all()).await;
    assert_eq!(codes(&bench.plan()), [('~', "A", ReasonCode::RecreationInterrupted)]);
    assert_eq!(log(&bench.run().await), ["modify A"]);
    assert!(bench.plan().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_item_of_which_nobody_knows_how_its_operation_ended_is_recreated() {
    let mut bench = Bench::new();
    bench.put(thing("A"));
    bench.run().await;
    bench.world.next("A", Operation::Modify, Behaviour::Hang);
    bench.put(thing("A").value(1));
    {
        let run = bench.engine.reconcile(&mut bench.current, Some(&bench.intended), &Selection::All);
        let dropped = tokio::time::timeout(std::time::Duration::from_secs(1), run).await;
        assert!(dropped.is_err(), "the modification hangs");
    }
    assert_eq!(codes(&bench.plan()), [('-', "A", ReasonCode::Unknown), ('+', "A", ReasonCode::Unknown)]);
}

#[tokio::test(start_paused = true)]
async fn what_is_left_as_it_is_names_the_items_that_it_waits_for() {
    let mut bench = Bench::new();
    bench.engine = bench.world.engine().with_retry(RetryPolicy::never());
    bench.put(thing("A")).put(thing("B").on("A").on("X")).put(thing("C").claiming("port"));
    bench.put(thing("D").claiming("port"));
    bench.world.fail("A", Operation::Create, "disk full");
    bench.run().await;
    let plan = bench.plan();
    let left: Vec<_> =
        plan.left.iter().map(|left| (left.name.as_str(), left.standing, left.waits_for.join(" "))).collect();
    let expected = [
        ("A", Standing::Failed, String::new()),
        ("B", Standing::Pending, "thing/A thing/X".to_owned()),
        ("D", Standing::Pending, "thing/C".to_owned()),
    ];
    assert_eq!(left, expected);
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_background_operation_names_its_item() {
    let mut bench = Bench::new();
    bench.world.next("A", Operation::Create, Behaviour::Background);
    bench.put(thing("A")).put(thing("B").on("A"));
    bench.run().await;
    let plan = bench.plan();
    let waits: Vec<_> =
        plan.left.iter().map(|left| (left.name.as_str(), left.waits_for.as_slice())).collect();
    assert_eq!(waits, [("A", &[][..]), ("B", &["thing/A".to_owned()][..])]);
    assert_eq!(plan.left[0].standing, Standing::Busy);
}

#[tokio::test(start_paused = true)]
async fn an_operation_names_the_items_whose_operations_it_waits_for() {
    let mut bench = Bench::new();
    bench.put(thing("A")).put(thing("B").on("A")).put(thing("C").on("A").on("B"));
    let plan = bench.plan();
    let waits: Vec<_> = plan.operations.iter().map(|operation| operation.waits_for.join(" ")).collect();
    assert_eq!(waits, ["", "thing/A", "thing/A thing/B"]);
}
