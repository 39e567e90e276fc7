//! What reading the managed system shows: drift, contested items, and items that nobody declared.

use std::time::Duration;

use setpoint_engine::{
    ConditionKind, DefaultRegistry, Engine, Observed, OpCx, OpError, Operation, Selection, condition,
};
use setpoint_graph::ItemHandle;

use crate::world::*;

#[tokio::test(start_paused = true)]
async fn drift_is_found_by_reading_and_repaired() {
    let mut bench = Bench::new();
    bench.world.lock().can_read = true;
    bench.put(thing("A").value(1)).put(thing("B"));
    bench.run().await;
    bench.world.lock().exists.insert("A".into(), thing("A").value(9));
    bench.world.lock().exists.remove("B");
    let refreshed = bench.engine.refresh(bench.current.as_mut().unwrap(), &Selection::all()).await;
    assert_eq!(refreshed.read, 2);
    let drifted: Vec<_> = refreshed.drifted.iter().map(|d| (d.item.clone(), d.found.is_some())).collect();
    assert_eq!(drifted, [(r("A"), true), (r("B"), false)]);
    let kind = condition(bench.graph(), &bench.intended, &r("A")).unwrap().kind;
    assert_eq!(kind, ConditionKind::Drifted);
    assert_eq!(log(&bench.run().await), ["modify A", "create B"]);
    assert_eq!(bench.world.lock().exists["A"].value, 1);
    let kind = condition(bench.graph(), &bench.intended, &r("A")).unwrap().kind;
    assert_eq!(kind, ConditionKind::InSync);
}

#[tokio::test(start_paused = true)]
async fn an_item_that_something_else_keeps_changing_is_contested_and_backed_off_from() {
    let mut bench = Bench::new();
    bench.world.lock().can_read = true;
    bench.put(thing("A").value(1));
    bench.run().await;
    let mut repairs = 0;
    for _ in 0..20 {
        bench.world.lock().exists.insert("A".into(), thing("A").value(9));
        bench.engine.refresh(bench.current.as_mut().unwrap(), &Selection::all()).await;
        repairs += bench.run().await.log().len();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(repairs < 6, "{repairs} repairs");
    let kind = condition(bench.graph(), &bench.intended, &r("A")).unwrap().kind;
    assert_eq!(kind, ConditionKind::Contested);
    let status = bench.run().await;
    assert!(status.next_retry().is_some());
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(log(&bench.run().await), ["modify A"]);
}

#[tokio::test(start_paused = true)]
async fn a_read_is_given_what_was_noted_of_the_item() {
    struct Numbered;
    impl setpoint_engine::Configurator<Thing> for Numbered {
        async fn create(&self, cx: &OpCx, new: &Thing) -> Result<(), OpError> {
            cx.note(&new.value).await
        }
        async fn delete(&self, _: &OpCx, _: &Thing) -> Result<(), OpError> {
            Ok(())
        }
        async fn read(&self, cx: &OpCx, item: &Thing) -> Result<Observed<Thing>, OpError> {
            Ok(if cx.noted() == Some(item.value) {
                Observed::Present(item.clone())
            } else {
                Observed::Absent
            })
        }
    }
    let engine = Engine::new(DefaultRegistry::new().with(Numbered));
    let mut intended = setpoint_graph::Graph::new("test");
    intended.put_item(thing("A").value(7)).unwrap();
    let mut current = None;
    engine.reconcile(&mut current, Some(&intended), &Selection::all()).await.unwrap();
    let refreshed = engine.refresh(current.as_mut().unwrap(), &Selection::all()).await;
    assert_eq!((refreshed.read, refreshed.drifted), (1, vec![]));
}

/// Notes the value of what is deleted, and creates only what has another.
struct Noting;

impl setpoint_engine::Configurator<Thing> for Noting {
    async fn create(&self, cx: &OpCx, new: &Thing) -> Result<(), OpError> {
        match cx.noted::<u32>() {
            Some(7) if new.value == 8 => Err(OpError::untouched("the one with 7 was deleted")),
            noted => cx.note(&noted.map_or(new.value, |noted| noted + new.value)).await,
        }
    }
    async fn delete(&self, cx: &OpCx, old: &Thing) -> Result<(), OpError> {
        cx.note(&old.value).await
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_deletion_of_an_item_that_is_made_anew_notes_is_known_to_its_creation() {
    let engine = Engine::new(DefaultRegistry::new().with(Noting)).retrying_now();
    let mut current = None;
    for (value, done) in [(7, true), (8, false), (9, true)] {
        let mut intended = setpoint_graph::Graph::new("test");
        intended.put_item(thing("A").value(value)).unwrap();
        let status = engine.reconcile(&mut current, Some(&intended), &Selection::all()).await.unwrap();
        assert_eq!(status.result().is_ok(), done, "{value}");
    }
    let state = current.as_ref().unwrap().state(&r("A")).unwrap();
    assert_eq!(state.noted::<u32>(), Some(16), "7, of the one that was deleted, and 9");
}

/// A run is cut off between the two halves of making an item anew, or before the second has done anything.
#[tokio::test(start_paused = true)]
async fn what_is_to_be_made_anew_is_remembered_also_if_a_run_is_cut_off_and_nothing_is_there() {
    for lost in 0..4 {
        let mut bench = Bench::new();
        bench.world.lock().can_read = true;
        bench.put(thing("A").fixed(1));
        bench.run().await;
        let before = bench.current.clone();
        let journal = std::sync::Arc::new(setpoint_engine::MemoryJournal::new());
        let engine = bench.engine.clone();
        bench.engine = engine.clone().with_journal(journal.clone());
        bench.put(thing("A").fixed(2));
        bench.world.fail("A", Operation::Create, "not now");
        bench.run().await;
        bench.engine = engine;
        bench.world.lock().exists.remove("A");
        let mut records = journal.records();
        records.truncate(records.len() - lost);
        let mut current = setpoint_engine::replay("test", before, &records);
        bench.engine.refresh(&mut current, &Selection::all()).await;
        let state = current.state(&r("A")).unwrap();
        assert!(state.reapply().is_needed(), "{lost} records are lost of {records:?}");
    }
}

/// It was deleted, and whatever has its name by now is somebody else's.
#[tokio::test(start_paused = true)]
async fn what_was_to_be_made_anew_and_is_not_intended_any_more_is_forgotten() {
    let engine = Engine::new(DefaultRegistry::new().with(Noting)).retrying_now();
    let mut current = None;
    for value in [7, 8] {
        let mut intended = setpoint_graph::Graph::new("test");
        intended.put_item(thing("A").value(value)).unwrap();
        let _ = engine.reconcile(&mut current, Some(&intended), &Selection::all()).await.unwrap();
    }
    let status = engine.reconcile(&mut current, None, &Selection::all()).await.unwrap();
    assert_eq!(log(&status), [""; 0]);
    assert!(current.is_none_or(|current| current.is_empty()));
}

#[tokio::test(start_paused = true)]
async fn what_was_adopted_and_is_gone_is_released_when_it_is_not_intended_any_more() {
    let bench = Bench::new();
    let mut current = setpoint_engine::CurrentGraph::new("test");
    let path = setpoint_graph::SubgraphPath::root();
    let state = setpoint_engine::ItemState::present(jiff::Timestamp::UNIX_EPOCH).adopted();
    current.put_item_with_state(&path, ItemHandle::new(thing("A")), state).unwrap();
    bench.world.lock().can_read = true;
    let refreshed = bench.engine.refresh(&mut current, &Selection::all()).await;
    assert_eq!(refreshed.drifted.len(), 1);
    assert!(current.state(&r("A")).unwrap().ownership().is_adopted());
    let mut current = Some(current);
    let status = bench.engine.reconcile(&mut current, None, &Selection::all()).await.unwrap();
    assert_eq!(log(&status), ["delete A"]);
}

#[tokio::test(start_paused = true)]
async fn items_nobody_declared_are_listed() {
    let bench = Bench::new();
    bench.world.lock().can_read = true;
    bench.world.lock().exists.insert("stray".into(), thing("stray"));
    let graph = setpoint_engine::CurrentGraph::new("test");
    let found = bench.engine.discover(&graph).await.unwrap();
    assert_eq!(found.iter().map(ItemHandle::reference).collect::<Vec<_>>(), [&r("stray")]);
}
