//! A state that is damaged, cut off or outdated while somebody works with it.

use std::collections::BTreeSet;
use std::fs;

use jiff::Timestamp;
use redb::ReadableTable as _;
use setpoint_engine::{ItemState, Journal as _, Operation, Record};
use setpoint_graph::{ItemHandle, SubgraphPath};
use setpoint_state::{Run, RunDetails, StateDir};
use tempfile::TempDir;

use crate::{damaged, lock, names, part, reconcile, reference, run, state_in};

/// Overwrites the first place at which the database has this text.
fn zero(state: &StateDir, text: &str) {
    let mut bytes = fs::read(state.path().join("state.redb")).unwrap();
    let at = bytes.windows(text.len()).position(|window| window == text.as_bytes()).unwrap();
    bytes[at..at + text.len()].fill(0);
    replace(state, &bytes);
}

/// Puts another file in the place of the database, as a restore from a backup does.
fn replace(state: &StateDir, bytes: &[u8]) {
    let beside = state.path().join("beside");
    fs::write(&beside, bytes).unwrap();
    fs::rename(beside, state.path().join("state.redb")).unwrap();
}

#[tokio::test]
async fn damage_that_comes_while_a_writer_works_does_not_reach_the_copy() {
    let dir = TempDir::new().unwrap();
    let state = state_in(&dir);
    let (writer, graph) = lock(&state);
    let graph = reconcile(&writer, graph, &[part("a", 1), part("b", 3)]).await;
    writer.save(&graph, Some(run(1))).unwrap();
    zero(&state, "{\"name\":\"b\"");
    let graph = reconcile(&writer, graph, &[part("a", 2), part("b", 3)]).await;
    writer.save(&graph, Some(run(2))).unwrap();
    let snapshot = state.read().unwrap().unwrap();
    assert_eq!(names(&snapshot.graph), ["a=2", "b=3"]);
    assert_eq!(snapshot.damaged, None, "it was put in order from what the writer knows");
    assert_eq!(state.runs(9).unwrap().value, [run(2), run(1)]);
}

/// Writes another text of the same length wherever the database has one.
fn overwrite(state: &StateDir, from: &str, to: &str) {
    let path = state.path().join("state.redb");
    let mut bytes = fs::read(&path).unwrap();
    let found: Vec<usize> =
        (0..bytes.len() - from.len()).filter(|&at| bytes[at..].starts_with(from.as_bytes())).collect();
    assert!(!found.is_empty(), "{from}");
    for at in found {
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
    replace(state, &bytes);
}

#[tokio::test]
async fn one_wrong_letter_in_an_item_is_damage_too_and_does_not_reach_the_copy() {
    for (from, to) in [
        ("{\"name\":\"b\"", "{\"nbme\":\"b\""),
        ("{\"name\":\"b\"", "{\"name\":\"c\""),
        ("\"metadata\"", "\"mftadata\""),
        ("\"state\"", "\"stbte\""),
    ] {
        let dir = TempDir::new().unwrap();
        let state = state_in(&dir);
        let (writer, graph) = lock(&state);
        let graph = reconcile(&writer, graph, &[part("a", 1), part("b", 3)]).await;
        writer.save(&graph, Some(run(1))).unwrap();
        let whole = fs::read(state.path().join("state.redb")).unwrap();
        overwrite(&state, from, to);
        let snapshot = state.read().unwrap().unwrap();
        assert_eq!(names(&snapshot.graph), ["a=1", "b=3"], "{to}");
        assert!(snapshot.damaged.is_some(), "{to}");
        // Also where it comes while a writer works.
        replace(&state, &whole);
        overwrite(&state, from, to);
        let graph = reconcile(&writer, graph, &[part("a", 2), part("b", 3)]).await;
        writer.save(&graph, Some(run(2))).unwrap();
        let snapshot = state.read().unwrap().unwrap();
        assert_eq!(
            (names(&snapshot.graph), snapshot.damaged),
            (vec!["a=2".into(), "b=3".into()], None),
            "{to}"
        );
        assert!(snapshot.graph.state(&reference("b")).unwrap().ownership().is_adopted(), "{to}");
    }
}

#[tokio::test]
async fn a_checkpoint_is_written_into_the_copy_which_is_not_made_anew() {
    use std::os::unix::fs::MetadataExt;
    let dir = TempDir::new().unwrap();
    let state = state_in(&dir);
    let (writer, graph) = lock(&state);
    let graph = reconcile(&writer, graph, &[part("a", 1), part("b", 3)]).await;
    writer.save(&graph, Some(run(1))).unwrap();
    let copy = || fs::metadata(state.path().join("state.last")).unwrap().ino();
    let made = copy();
    let graph = reconcile(&writer, graph, &[part("a", 2), part("c", 1)]).await;
    writer.save(&graph, Some(run(2))).unwrap();
    assert_eq!(copy(), made);
    // It is all that is left.
    fs::remove_file(state.path().join("state.redb")).unwrap();
    let snapshot = state.read().unwrap().unwrap();
    assert_eq!((names(&snapshot.graph), snapshot.serial), (vec!["a=2".into(), "c=1".into()], 2));
    assert_eq!(state.runs(9).unwrap().value, [run(2), run(1)]);
}

#[tokio::test]
async fn the_first_checkpoint_of_a_writer_is_written_into_the_copy_too() {
    use std::os::unix::fs::MetadataExt;
    let dir = TempDir::new().unwrap();
    let state = state_in(&dir);
    let (writer, graph) = lock(&state);
    let graph = reconcile(&writer, graph, &[part("a", 1), part("b", 3)]).await;
    writer.save(&graph, Some(run(1))).unwrap();
    drop(writer);
    let copy = || fs::metadata(state.path().join("state.last")).unwrap().ino();
    let (made, mut last) = (copy(), 1);
    for value in [2, 4] {
        let (writer, graph) = lock(&state);
        let graph = reconcile(&writer, graph, &[part("a", value), part("b", 3)]).await;
        last += 1;
        writer.save(&graph, Some(run(last))).unwrap();
        assert_eq!(copy(), made, "it is not made anew");
    }
    fs::remove_file(state.path().join("state.redb")).unwrap();
    let snapshot = state.read().unwrap().unwrap();
    assert_eq!((names(&snapshot.graph), snapshot.serial), (vec!["a=4".into(), "b=3".into()], 3));
}

#[tokio::test]
async fn a_copy_is_made_anew_now_and_then_so_that_damage_of_it_is_noticed() {
    let dir = TempDir::new().unwrap();
    let state = state_in(&dir);
    let (writer, graph) = lock(&state);
    let graph = reconcile(&writer, graph, &[part("a", 1), part("b", 3)]).await;
    writer.save(&graph, Some(run(1))).unwrap();
    drop(writer);
    // Where nobody looks, while nobody works with it.
    let copy = state.path().join("state.last");
    let mut bytes = fs::read(&copy).unwrap();
    let text = b"{\"name\":\"b\"";
    let at = bytes.windows(text.len()).position(|window| window == text).unwrap();
    bytes[at..at + text.len()].fill(0);
    fs::write(&copy, bytes).unwrap();
    let (writer, graph) = lock(&state);
    for _ in 1..64 {
        writer.save(&graph, None).unwrap();
    }
    drop(writer);
    drop(lock(&state));
    fs::remove_file(state.path().join("state.redb")).unwrap();
    assert_eq!(names(&state.read().unwrap().unwrap().graph), ["a=1", "b=3"]);
}

#[tokio::test]
async fn a_copy_that_was_left_behind_is_made_anew_by_the_next_command_also_if_there_is_nothing_to_do() {
    let dir = TempDir::new().unwrap();
    let state = state_in(&dir);
    let (writer, graph) = lock(&state);
    let graph = reconcile(&writer, graph, &[part("a", 1)]).await;
    writer.save(&graph, Some(run(1))).unwrap();
    let copy = state.path().join("state.last");
    let earlier = fs::read(&copy).unwrap();
    let graph = reconcile(&writer, graph, &[part("a", 2), part("c", 1)]).await;
    writer.save(&graph, Some(run(2))).unwrap();
    drop(writer);
    // The writer was killed between the two, or there was no room.
    fs::write(&copy, earlier).unwrap();
    drop(lock(&state));
    fs::write(state.path().join("state.redb"), "").unwrap();
    let snapshot = state.read().unwrap().unwrap();
    assert!(snapshot.damaged.is_some());
    assert_eq!(names(&snapshot.graph), ["a=2", "c=1"]);
}

#[tokio::test]
async fn a_copy_of_another_history_with_as_many_checkpoints_is_made_anew() {
    let dir = TempDir::new().unwrap();
    let state = state_in(&dir);
    let (writer, graph) = lock(&state);
    let graph = reconcile(&writer, graph, &[part("a", 1), part("b", 3)]).await;
    writer.save(&graph, Some(run(1))).unwrap();
    drop(writer);
    let earlier = fs::read(state.path().join("state.redb")).unwrap();
    let (writer, graph) = lock(&state);
    let graph = reconcile(&writer, graph, &[part("a", 1), part("b", 5)]).await;
    writer.save(&graph, Some(run(2))).unwrap();
    drop(writer);
    let copy = fs::read(state.path().join("state.last")).unwrap();
    // The database comes from a backup, and another run follows it.
    replace(&state, &earlier);
    let (writer, graph) = lock(&state);
    let graph = reconcile(&writer, graph, &[part("a", 7), part("b", 3)]).await;
    writer.save(&graph, Some(Run { command: "watch".to_owned(), ..run(2) })).unwrap();
    drop(writer);
    fs::write(state.path().join("state.last"), copy).unwrap();
    drop(lock(&state));
    fs::remove_file(state.path().join("state.redb")).unwrap();
    assert_eq!(names(&state.read().unwrap().unwrap().graph), ["a=7", "b=3"]);
}

#[tokio::test]
async fn damage_in_place_that_leaves_size_and_time_as_they_were_loses_nothing_either() {
    let dir = TempDir::new().unwrap();
    let state = state_in(&dir);
    let (writer, graph) = lock(&state);
    let graph = reconcile(&writer, graph, &[part("a", 1), part("b", 3)]).await;
    writer.save(&graph, Some(run(1))).unwrap();
    let path = state.path().join("state.redb");
    let text = b"{\"name\":\"b\"";
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(text.len()).position(|window| window == text).unwrap();
    bytes[at..at + text.len()].fill(0);
    let written = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, bytes).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(written).unwrap();
    let graph = reconcile(&writer, graph, &[part("a", 2), part("b", 3)]).await;
    writer.save(&graph, Some(run(2))).unwrap();
    assert_eq!(names(&state.read().unwrap().unwrap().graph), ["a=2", "b=3"]);
}

#[tokio::test]
async fn damage_that_can_be_read_is_damage_too() {
    for (from, to) in [
        // Another value, another name of one, and a key that nobody knows.
        ("\"value\":1", "\"value\":9"),
        ("serial", "sesial"),
        ("format", "fosmat"),
        ("machine", "macmine"),
    ] {
        let dir = TempDir::new().unwrap();
        let state = state_in(&dir);
        let (writer, graph) = lock(&state);
        let graph = reconcile(&writer, graph, &[part("a", 1), part("b", 3)]).await;
        writer.save(&graph, Some(run(1))).unwrap();
        drop(writer);
        overwrite(&state, from, to);
        let snapshot = state.read().unwrap().unwrap();
        assert_eq!((names(&snapshot.graph), snapshot.serial), (vec!["a=1".into(), "b=3".into()], 1), "{to}");
        assert!(snapshot.damaged.is_some(), "{to}");
        let (writer, graph) = lock(&state);
        assert_eq!(names(&graph), ["a=1", "b=3"], "{to}");
        assert!(writer.damaged().is_some(), "{to}");
    }
}

#[tokio::test]
async fn which_files_declared_the_items_is_known_also_if_a_run_is_cut_off() {
    let dir = TempDir::new().unwrap();
    let state = state_in(&dir);
    let files = |names: &[&str]| names.iter().map(ToString::to_string).collect::<BTreeSet<String>>();
    let known = || state.read().unwrap().unwrap().manifests;
    let (writer, graph) = lock(&state);
    assert_eq!(known(), None);
    assert!(writer.set_manifests(files(&["a.yaml"])) && !writer.set_manifests(files(&["a.yaml"])));
    writer.begin("apply", Timestamp::UNIX_EPOCH, Vec::new(), RunDetails::default());
    let graph = reconcile(&writer, graph, &[part("a", 1)]).await;
    assert_eq!(known(), Some(files(&["a.yaml"])), "it is journalled");
    writer.save(&graph, Some(run(1))).unwrap();
    assert_eq!(known(), Some(files(&["a.yaml"])));
    writer.set_manifests(files(&["b.yaml"]));
    writer.begin("apply", Timestamp::UNIX_EPOCH, Vec::new(), RunDetails::default());
    reconcile(&writer, graph, &[part("a", 2)]).await;
    drop(writer);
    let (writer, _) = lock(&state);
    assert_eq!(writer.manifests(), Some(files(&["b.yaml"])));
}

#[tokio::test]
async fn where_the_items_are_is_known_also_if_the_first_run_is_cut_off() {
    let dir = TempDir::new().unwrap();
    let state = state_in(&dir);
    let (writer, graph) = lock(&state);
    writer.set_location("here");
    assert_eq!(state.read().unwrap().unwrap().location, None);
    writer.begin("apply", Timestamp::UNIX_EPOCH, Vec::new(), RunDetails::default());
    reconcile(&writer, graph, &[part("a", 1)]).await;
    assert_eq!(state.read().unwrap().unwrap().location.as_deref(), Some("here"));
    drop(writer);
    let (writer, _) = lock(&state);
    assert_eq!(writer.location().as_deref(), Some("here"));
}

#[tokio::test]
async fn a_copy_that_is_gone_is_made_anew() {
    let dir = TempDir::new().unwrap();
    let state = state_in(&dir);
    let (writer, graph) = lock(&state);
    let graph = reconcile(&writer, graph, &[part("a", 1), part("b", 3)]).await;
    writer.save(&graph, Some(run(1))).unwrap();
    fs::remove_file(state.path().join("state.last")).unwrap();
    let graph = reconcile(&writer, graph, &[part("a", 2), part("b", 3)]).await;
    writer.save(&graph, Some(run(2))).unwrap();
    fs::remove_file(state.path().join("state.redb")).unwrap();
    assert_eq!(names(&state.read().unwrap().unwrap().graph), ["a=2", "b=3"]);
}

#[tokio::test]
async fn what_was_not_changed_is_known_also_if_the_database_is_gone_when_a_checkpoint_is_written() {
    for is_copy_gone in [false, true] {
        let dir = TempDir::new().unwrap();
        let state = state_in(&dir);
        let (writer, graph) = lock(&state);
        let graph = reconcile(&writer, graph, &[part("a", 1), part("b", 3)]).await;
        writer.save(&graph, Some(run(1))).unwrap();
        fs::remove_file(state.path().join("state.redb")).unwrap();
        if is_copy_gone {
            fs::remove_file(state.path().join("state.last")).unwrap();
        }
        let graph = reconcile(&writer, graph, &[part("a", 2), part("b", 3)]).await;
        writer.save(&graph, Some(run(2))).unwrap();
        let snapshot = state.read().unwrap().unwrap();
        assert_eq!((names(&snapshot.graph), snapshot.damaged), (vec!["a=2".into(), "b=3".into()], None));
        let runs = state.runs(9).unwrap().value;
        assert_eq!(runs.len(), if is_copy_gone { 1 } else { 2 }, "{runs:?}");
    }
}

#[tokio::test]
async fn a_database_whose_number_of_checkpoints_is_none_is_damaged() {
    const META: redb::TableDefinition<'_, &str, &str> = redb::TableDefinition::new("meta");
    let (_dir, state) = damaged(|path| {
        let db = redb::Database::open(path).unwrap();
        let txn = db.begin_write().unwrap();
        txn.open_table(META).unwrap().insert("serial", "x").unwrap();
        txn.commit().unwrap();
    })
    .await;
    let snapshot = state.read().unwrap().unwrap();
    assert!(snapshot.damaged.unwrap().contains("its serial is no number"));
}

#[tokio::test]
async fn what_the_third_format_knew_by_other_names_is_known() {
    const ITEMS: redb::TableDefinition<'_, (&str, &str), &[u8]> = redb::TableDefinition::new("items");
    const META: redb::TableDefinition<'_, &str, &str> = redb::TableDefinition::new("meta");
    let (_dir, state) = damaged(|path| {
        let db = redb::Database::open(path).unwrap();
        let txn = db.begin_write().unwrap();
        let mut items = txn.open_table(ITEMS).unwrap();
        let stored = items.get(("part", "a")).unwrap().unwrap().value().to_vec();
        let mut stored: serde_json::Value = serde_json::from_slice(&stored).unwrap();
        stored["state"]["remembered"] = serde_json::json!({"ownership": "adopted"});
        stored["state"]["flight"] =
            serde_json::json!({"operation": "modify", "started": "1970-01-01T00:00:00Z"});
        items.insert(("part", "a"), stored.to_string().as_bytes()).unwrap();
        drop(items);
        txn.open_table(META).unwrap().insert("format", "3").unwrap();
        txn.commit().unwrap();
    })
    .await;
    let known = || {
        let snapshot = state.read().unwrap().unwrap();
        assert_eq!(snapshot.damaged, None);
        let known = snapshot.graph.state(&reference("a")).unwrap().clone();
        (known.ownership().is_adopted(), known.is_unknown())
    };
    assert_eq!(known(), (true, true));
    let (writer, graph) = lock(&state);
    writer.save(&graph, None).unwrap();
    drop(writer);
    assert_eq!(known(), (true, true), "also when it was written anew");
}

#[tokio::test]
async fn a_database_that_can_not_even_be_opened_any_more_is_put_in_order_by_its_writer() {
    let dir = TempDir::new().unwrap();
    let state = state_in(&dir);
    let (writer, graph) = lock(&state);
    let graph = reconcile(&writer, graph, &[part("a", 1), part("b", 3)]).await;
    writer.save(&graph, Some(run(1))).unwrap();
    let path = state.path().join("state.redb");
    let length = usize::try_from(fs::metadata(&path).unwrap().len()).unwrap();
    for damage in [vec![0; length], Vec::new()] {
        replace(&state, &damage);
        writer.save(&graph, None).unwrap();
        let snapshot = state.read().unwrap().unwrap();
        assert_eq!((names(&snapshot.graph), snapshot.damaged), (vec!["a=1".into(), "b=3".into()], None));
    }
}

#[tokio::test]
async fn a_journal_that_goes_on_from_a_later_state_than_the_copy_is_set_aside_and_named() {
    let dir = TempDir::new().unwrap();
    let state = state_in(&dir);
    let (writer, graph) = lock(&state);
    let graph = reconcile(&writer, graph, &[part("a", 1)]).await;
    writer.save(&graph, Some(run(1))).unwrap();
    let earlier = fs::read(state.path().join("state.last")).unwrap();
    let graph = reconcile(&writer, graph, &[part("a", 2)]).await;
    writer.save(&graph, Some(run(2))).unwrap();
    reconcile(&writer, graph, &[part("a", 2), part("c", 1)]).await;
    drop(writer);
    // There was no room for the last copy, and now the database is damaged.
    fs::write(state.path().join("state.last"), earlier).unwrap();
    fs::write(state.path().join("state.redb"), "").unwrap();
    let (writer, graph) = lock(&state);
    assert_eq!(names(&graph), ["a=1"]);
    let damaged = writer.damaged().unwrap();
    assert!(damaged.contains("journal.damaged"), "{damaged}");
    let kept = fs::read_to_string(state.path().join("journal.damaged")).unwrap();
    assert!(kept.contains("\"c\""), "{kept}");
}

#[tokio::test]
async fn what_was_journalled_behind_lines_that_could_not_be_removed_is_read() {
    let dir = TempDir::new().unwrap();
    let state = state_in(&dir);
    let (writer, graph) = lock(&state);
    let graph = reconcile(&writer, graph, &[part("a", 1)]).await;
    let journal = state.path().join("journal");
    let old = fs::read(&journal).unwrap();
    writer.save(&graph, Some(run(1))).unwrap();
    fs::write(&journal, old).unwrap();
    reconcile(&writer, graph, &[part("a", 1), part("c", 1)]).await;
    drop(writer);
    let snapshot = state.read().unwrap().unwrap();
    assert_eq!((names(&snapshot.graph), snapshot.unfinished), (vec!["a=1".into(), "c=1".into()], true));
    let (_, graph) = lock(&state);
    assert_eq!(names(&graph), ["a=1", "c=1"]);
}

#[tokio::test]
async fn what_an_operation_that_was_cut_off_was_to_make_is_known_also_after_a_checkpoint() {
    let dir = TempDir::new().unwrap();
    let state = state_in(&dir);
    let (writer, graph) = lock(&state);
    let graph = reconcile(&writer, graph, &[part("a", 1)]).await;
    writer.save(&graph, Some(run(1))).unwrap();
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
    let (writer, graph) = lock(&state);
    writer.save(&graph, None).unwrap();
    drop(writer);
    let (_, graph) = lock(&state);
    let target = graph.state(&reference("a")).and_then(ItemState::unfinished_target);
    assert_eq!(target, Some(&ItemHandle::new(part("a", 2))));
}
