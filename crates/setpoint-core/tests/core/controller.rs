use std::collections::VecDeque;
use std::future::pending;
use std::time::Duration;

use setpoint_core::pacing::{Listener, trigger};
use setpoint_core::{Changed, Graph, ItemRef, Reason, Selection, Source, latest};

use crate::world::{SECOND, Valve, World, start, valves};

#[tokio::test(start_paused = true)]
async fn what_is_intended_is_made_at_the_start_and_left_alone_afterwards() {
    let world = World::default();
    let mut running = start(&world, valves([("a", 1), ("b", 2)]));
    let first = running.pass().await;
    assert_eq!((first.reason, first.after), (Reason::Started, Duration::ZERO));
    assert_eq!(first.log, ["create valve/a", "create valve/b"]);
    assert!(first.converged);
    let later = running.passes_within(150 * SECOND).await;
    let seen: Vec<_> = later.iter().map(|pass| (pass.reason, pass.log.len(), pass.after)).collect();
    assert_eq!(seen, [(Reason::DriftCheck, 0, 60 * SECOND), (Reason::DriftCheck, 0, 120 * SECOND)]);
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_source_wakes_it_at_once() {
    let world = World::default();
    let (sender, source) = latest();
    let mut running = start(&world, source);
    let first = running.pass().await;
    assert!(first.log.is_empty() && !first.converged, "nothing is known yet, and nothing is done");
    tokio::time::sleep(7 * SECOND).await;
    sender.send(valves([("a", 1)])).unwrap();
    sender.send(valves([("a", 2), ("b", 1)])).unwrap();
    let woken = running.pass().await;
    assert_eq!((woken.reason, woken.after), (Reason::Changed, 7 * SECOND));
    assert_eq!(woken.log, ["create valve/a", "create valve/b"]);
    assert_eq!(world.lock().openings["a"], 2, "only the newest counts");
    sender.send(valves([("a", 3)])).unwrap();
    assert_eq!(running.pass().await.log, ["modify valve/a", "delete valve/b"]);
    drop(sender);
    assert_eq!(running.passes_within(40 * SECOND).await, [], "what was sent last stands");
    assert_eq!(world.lock().openings["a"], 3);
}

#[tokio::test(start_paused = true)]
async fn a_failed_item_is_retried_when_it_is_due_and_not_before() {
    let world = World::default();
    world.lock().broken.insert("a");
    let mut running = start(&world, valves([("a", 1)]));
    assert!(!running.pass().await.converged);
    let retried = running.pass().await;
    assert_eq!((retried.reason, retried.after), (Reason::Retried, 10 * SECOND));
    assert_eq!(world.lock().attempts, 2);
    world.lock().broken.clear();
    let repaired = running.pass().await;
    assert_eq!((repaired.reason, repaired.after), (Reason::Retried, 30 * SECOND));
    assert_eq!(repaired.log, ["create valve/a (before that: the valve is stuck)"]);
    assert!(repaired.converged);
}

#[tokio::test(start_paused = true)]
async fn drift_is_found_after_the_interval_and_repaired() {
    let world = World::default();
    let mut running = start(&world, valves([("a", 1), ("b", 2)]));
    running.pass().await;
    world.lock().openings.insert("a", 99);
    world.lock().openings.remove("b");
    let repaired = running.pass().await;
    assert_eq!((repaired.reason, repaired.after), (Reason::DriftCheck, 60 * SECOND));
    assert_eq!(repaired.drifted, 2);
    assert_eq!(repaired.log, ["modify valve/a", "create valve/b"]);
    assert_eq!(world.lock().openings, [("a", 1), ("b", 2)].into());
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_background_operation_is_collected_at_once() {
    let world = World::default();
    world.lock().slow.insert("a");
    let mut running = start(&world, valves([("a", 1)]));
    assert!(!running.pass().await.converged);
    tokio::time::sleep(3 * SECOND).await;
    let making = std::mem::take(&mut world.lock().making);
    for completion in making {
        completion.finish(Ok(()));
    }
    let resumed = running.pass().await;
    assert_eq!((resumed.reason, resumed.after, resumed.converged), (Reason::Resumed, 3 * SECOND, true));
}

#[tokio::test(start_paused = true)]
async fn it_stops_at_once_while_it_waits() {
    let world = World::default();
    let mut running = start(&world, valves([("a", 1)]));
    running.pass().await;
    let (current, took) = running.stopped().await;
    assert_eq!(took, Duration::ZERO);
    assert!(current.unwrap().contains(&ItemRef::of::<Valve>("a")), "what is known can be started from again");
}

#[tokio::test(start_paused = true)]
async fn it_stops_as_soon_as_what_runs_has_been_cancelled() {
    let world = World::default();
    world.lock().hanging.insert("a");
    let mut running = start(&world, valves([("a", 1)]));
    assert_eq!(running.passes_within(SECOND).await, [], "its first pass goes on");
    assert_eq!(running.stopped().await.1, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn it_stops_within_the_grace_if_a_background_operation_ignores_its_cancellation() {
    let world = World::default();
    world.lock().slow.insert("a");
    let mut running = start(&world, valves([("a", 1)]));
    running.pass().await;
    assert_eq!(running.stopped().await.1, 5 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_controller_leaves_a_graph_that_the_next_one_starts_from() {
    use setpoint_core::{Controller, DefaultRegistry, Engine};
    let world = World::default();
    let mut running = start(&world, valves([("a", 1), ("b", 1)]));
    running.pass().await;
    let (current, _) = running.stopped().await;
    world.lock().openings.insert("b", 7);
    let (attempts, stop) = (world.lock().attempts, setpoint_core::CancellationToken::new());
    let converged = stop.clone();
    let engine = Engine::new(DefaultRegistry::new().with(world.clone()));
    let next = Controller::new(engine, valves([("a", 1), ("b", 1)])).starting_from(current.unwrap());
    next.observed_by(move |_, _| converged.cancel()).run(stop).await;
    assert_eq!(world.lock().attempts, attempts + 1, "the start looks for drift, and only that is put right");
    assert_eq!(world.lock().openings["b"], 1);
}

/// A source whose loads come to what a test says, and that changes when it says so.
struct Scripted {
    loads: VecDeque<Result<Graph, &'static str>>,
    intended: Option<Graph>,
    changes: Listener,
    changed: Changed,
}

impl Source for Scripted {
    type Error = &'static str;

    async fn load(&mut self) -> Result<(), &'static str> {
        if let Some(load) = self.loads.pop_front() {
            self.intended = Some(load?);
        }
        Ok(())
    }

    fn intended(&self) -> Option<&Graph> {
        self.intended.as_ref()
    }

    async fn changed(&mut self) -> Changed {
        match self.changes.fired().await {
            Some(_) => self.changed.clone(),
            None => pending().await,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_that_fails_is_reported_and_loaded_again_with_growing_pauses() {
    let world = World::default();
    let (_trigger, changes) = trigger();
    let mut loads: VecDeque<_> = std::iter::repeat_n(Err("no such server"), 5).collect();
    loads.push_back(Ok(valves([("a", 1)])));
    let source = Scripted { loads, intended: None, changes, changed: Changed::Intended };
    let mut running = start(&world, source);
    let passes = running.passes_within(200 * SECOND).await;
    let failed: Vec<_> = passes.iter().filter(|pass| pass.source_error.is_some()).collect();
    assert!(failed.iter().all(|pass| pass.source_error.as_deref() == Some("no such server")));
    let loaded = passes.iter().find(|pass| !pass.log.is_empty()).unwrap();
    assert_eq!((failed.len(), loaded.log[0].as_str()), (5, "create valve/a"));
    let times = failed.iter().chain([&loaded]).map(|pass| pass.after).collect::<Vec<_>>();
    let pauses: Vec<_> = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    let bounds = [8, 16, 32, 64, 64].map(|seconds| seconds * SECOND);
    assert!(pauses.iter().zip(bounds).all(|(pause, bound)| *pause <= bound), "{pauses:?}");
    assert!(pauses.iter().any(|pause| *pause > 8 * SECOND), "they grow: {pauses:?}");
}

#[tokio::test(start_paused = true)]
async fn what_was_intended_last_stands_while_the_source_fails() {
    let world = World::default();
    let (trigger, changes) = trigger();
    let mut loads = VecDeque::from([Ok(valves([("a", 1)]))]);
    loads.extend(std::iter::repeat_n(Err("not a graph"), 1_000));
    let mut running = start(&world, Scripted { loads, intended: None, changes, changed: Changed::Intended });
    running.pass().await;
    trigger.fire();
    assert_eq!(running.pass().await.source_error.as_deref(), Some("not a graph"));
    world.lock().openings.remove("a");
    let passes = running.passes_within(61 * SECOND).await;
    let repaired: Vec<_> = passes.iter().filter(|pass| !pass.log.is_empty()).collect();
    assert_eq!((repaired[0].drifted, repaired[0].log[0].as_str()), (1, "create valve/a"));
}

#[tokio::test(start_paused = true)]
async fn items_that_may_have_changed_are_read_at_once_and_the_source_is_not_loaded() {
    let world = World::default();
    let (trigger, changes) = trigger();
    let loads = VecDeque::from([Ok(valves([("a", 1), ("b", 1)])), Err("it was loaded again")]);
    let changed = Changed::Items(Selection::item(ItemRef::of::<Valve>("a")));
    let mut running = start(&world, Scripted { loads, intended: None, changes, changed });
    running.pass().await;
    world.lock().openings.clear();
    trigger.fire();
    let repaired = running.pass().await;
    assert_eq!((repaired.reason, repaired.after), (Reason::Changed, Duration::ZERO));
    assert_eq!((repaired.source_error, repaired.log), (None, vec!["create valve/a".to_owned()]));
    assert_eq!(running.pass().await.log, ["create valve/b"], "the rest is found by the interval");
}

#[tokio::test(start_paused = true)]
async fn a_source_that_never_rests_does_not_hold_up_the_look_for_drift() {
    let world = World::default();
    let (trigger, changes) = trigger();
    let loads = VecDeque::from([Ok(valves([("a", 1)]))]);
    let mut running = start(&world, Scripted { loads, intended: None, changes, changed: Changed::Intended });
    running.pass().await;
    world.lock().openings.clear();
    let restless = tokio::spawn(async move {
        loop {
            trigger.fire();
            tokio::time::sleep(SECOND / 2).await;
        }
    });
    let passes = running.passes_within(61 * SECOND).await;
    restless.abort();
    let repaired: Vec<_> = passes.iter().filter(|pass| pass.drifted > 0).collect();
    assert_eq!((repaired.len(), repaired[0].log[0].as_str()), (1, "create valve/a"));
    assert!(repaired[0].after <= 61 * SECOND, "{:?}", repaired[0]);
}
