//! A database of which single bits are not what was written, and items that could not be read again.

use std::fs;
use std::path::Path;

use jiff::Timestamp;
use setpoint_engine::{ItemState, Journal as _, Operation, Record};
use setpoint_graph::{ItemHandle, SubgraphPath};
use setpoint_state::{RunDetails, StateDir, StateError};
use tempfile::TempDir;

use crate::{lock, names, part, reconcile, reference, run, state_in};

/// A state with two items and two runs; the database and its copy hold the same.
async fn saved() -> (TempDir, StateDir) {
    let dir = TempDir::new().unwrap();
    let state = state_in(&dir);
    let (writer, graph) = lock(&state);
    let graph = reconcile(&writer, graph, &[part("a", 1)]).await;
    writer.save(&graph, Some(run(1))).unwrap();
    let graph = reconcile(&writer, graph, &[part("a", 1), part("b", 3)]).await;
    writer.save(&graph, Some(run(2))).unwrap();
    (dir, state)
}

/// Bytes that say something, and some of those that say nothing: one of so many.
fn offsets(bytes: &[u8], step: usize) -> Vec<usize> {
    let says = |&at: &usize| bytes[at] != 0 || at.is_multiple_of(4093);
    let all: Vec<usize> = (0..bytes.len()).filter(says).collect();
    // Others with each run, so that in time it is all of them.
    let first = std::process::id() as usize % step;
    all.into_iter().skip(first).step_by(step).collect()
}

fn write_anew(path: &Path, bytes: &[u8]) {
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

#[tokio::test]
async fn whichever_bit_of_the_database_flips_all_that_is_remembered_is_read() {
    let (_dir, state) = saved().await;
    let path = state.path().join("state.redb");
    let whole = fs::read(&path).unwrap();
    let mut from_copy = 0;
    for (count, at) in offsets(&whole, 31).into_iter().enumerate() {
        let bit = 1 << (count % 8);
        let mut bytes = whole.clone();
        bytes[at] ^= bit;
        write_anew(&path, &bytes);
        let snapshot = state.read().map_err(|error| format!("byte {at}, bit {bit}: {error}"));
        let snapshot = snapshot.unwrap().unwrap();
        assert_eq!(names(&snapshot.graph), ["a=1", "b=3"], "byte {at}, bit {bit}");
        from_copy += usize::from(snapshot.damaged.is_some());
        let runs = state.runs(9).map_err(|error| format!("byte {at}, bit {bit}: {error}")).unwrap();
        assert_eq!(runs.value.len(), 2, "byte {at}, bit {bit}");
    }
    assert!(from_copy > 0, "some of it was noticed");
}

#[tokio::test]
async fn whichever_bit_of_the_database_flips_a_writer_goes_on_from_all_that_is_remembered() {
    let (_dir, state) = saved().await;
    let (path, copy) = (state.path().join("state.redb"), state.path().join("state.last"));
    let (whole, last) = (fs::read(&path).unwrap(), fs::read(&copy).unwrap());
    for (count, at) in offsets(&whole, 211).into_iter().enumerate() {
        let bit = 1 << (count % 8);
        let mut bytes = whole.clone();
        bytes[at] ^= bit;
        write_anew(&path, &bytes);
        write_anew(&copy, &last);
        let (writer, graph) = lock(&state);
        let graph = reconcile(&writer, graph, &[part("a", 2), part("b", 3)]).await;
        let saved = writer.save(&graph, Some(run(3)));
        saved.map_err(|error| format!("byte {at}, bit {bit}: {error}")).unwrap();
        drop(writer);
        let snapshot = state.read().unwrap().unwrap();
        assert_eq!(
            (names(&snapshot.graph), snapshot.damaged),
            (vec!["a=2".into(), "b=3".into()], None),
            "byte {at}, bit {bit}"
        );
    }
}

#[tokio::test]
async fn what_could_not_be_read_again_is_not_saved_and_what_was_saved_stays() {
    let (_dir, state) = saved().await;
    let (writer, _) = lock(&state);
    writer.begin("apply", Timestamp::UNIX_EPOCH, Vec::new(), RunDetails::default());
    let started = Record::Started {
        number: 1,
        operation: Operation::Modify,
        item: ItemHandle::new(part("a", 1)),
        target: Some(ItemHandle::new(part("a", 2))),
        path: SubgraphPath::root(),
        at: Timestamp::UNIX_EPOCH,
    };
    writer.journal().record(&[started]).await.unwrap();
    drop(writer);
    let (writer, mut graph) = lock(&state);
    // What the operation was to make of it is called otherwise.
    let item_state = graph.state(&reference("a")).unwrap().clone();
    let target = Some(ItemHandle::new(part("other", 2)));
    let item_state = item_state.with_unfinished_target(target);
    graph.put_item_with_state(&SubgraphPath::root(), part("a", 1), item_state).unwrap();
    let before = fs::read(state.path().join("state.redb")).unwrap();
    let error = writer.save(&graph, None).unwrap_err();
    assert!(matches!(error, StateError::Unreadable { .. }), "{error}");
    assert!(error.to_string().contains("part/a: it is called other inside"), "{error}");
    assert!(fs::read(state.path().join("state.redb")).unwrap() == before, "nothing was written");
    drop(writer);
    let snapshot = state.read().unwrap().unwrap();
    assert_eq!((names(&snapshot.graph), snapshot.damaged), (vec!["a=1".into(), "b=3".into()], None));
    assert!(snapshot.graph.state(&reference("a")).is_some_and(ItemState::is_unknown), "the journal is there");
}
