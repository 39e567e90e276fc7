//! The state on a real disk: what survives, who may write, what others see meanwhile.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod flips;
mod recovery;

use std::fs;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use redb::ReadableTable as _;
use serde::{Deserialize, Serialize};
use setpoint_engine::{
    Configurator, CurrentGraph, DefaultRegistry, Engine, Journal, OpCx, OpError, Operation, Presence,
    Reapply, Record, Selection,
};
use setpoint_graph::{Graph, Item, ItemHandle, ItemRef, ItemTypes, Kind, Name, SubgraphPath};
use setpoint_state::{OperationDetails, Run, RunDetails, RunDrift, RunOutcome, StateDir, StateError, Writer};
use tempfile::TempDir;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Part {
    name: String,
    value: u32,
}

impl Item for Part {
    const KIND: Kind = Kind::from_static("part");
    fn name(&self) -> Name {
        Name::new(&self.name)
    }
}

struct Parts;

impl Configurator<Part> for Parts {
    async fn create(&self, cx: &OpCx, new: &Part) -> Result<(), OpError> {
        if new.value == 3 {
            cx.adopt().await?;
        }
        if new.value == 13 { Err(OpError::untouched("bad luck")) } else { Ok(()) }
    }
    async fn delete(&self, _: &OpCx, _: &Part) -> Result<(), OpError> {
        Ok(())
    }
    async fn modify(&self, _: &OpCx, _: &Part, _: &Part) -> Result<(), OpError> {
        Ok(())
    }
}

fn part(name: &str, value: u32) -> Part {
    Part { name: name.into(), value }
}

fn reference(name: &str) -> ItemRef {
    ItemRef::new("part", name)
}

fn state_in(dir: &TempDir) -> StateDir {
    let mut types = ItemTypes::new();
    types.register::<Part>();
    StateDir::new(dir.path().join(".setpoint"), Arc::new(types))
}

fn lock(state: &StateDir) -> (Writer, CurrentGraph) {
    state.lock("machine", "apply", Duration::ZERO).unwrap()
}

fn run(number: u64) -> Run {
    let (started, ended) = (Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH);
    Run {
        number,
        command: "apply".into(),
        started,
        ended,
        outcome: RunOutcome::Done,
        drift: Vec::new(),
        entries: Vec::new(),
    }
}

/// Reconciles as a command would: journalled, not yet saved.
async fn reconcile(writer: &Writer, graph: CurrentGraph, parts: &[Part]) -> CurrentGraph {
    let mut intended = Graph::new("machine");
    for part in parts {
        intended.put_item(part.clone()).unwrap();
    }
    writer.begin("apply", Timestamp::UNIX_EPOCH, Vec::new(), RunDetails::default());
    let engine = Engine::new(DefaultRegistry::new().with(Parts)).with_journal(writer.journal());
    let mut current = Some(graph);
    engine.reconcile(&mut current, Some(&intended), &Selection::all()).await.unwrap();
    current.unwrap()
}

fn names(graph: &CurrentGraph) -> Vec<String> {
    graph.items().map(|node| format!("{}={}", node.reference().name(), value(node.item()))).collect()
}

fn value(item: &ItemHandle) -> u32 {
    item.get::<Part>().unwrap().value
}

#[test]
fn reading_where_nothing_was_written_finds_nothing_and_makes_nothing() {
    let dir = TempDir::new().unwrap();
    assert!(state_in(&dir).read().unwrap().is_none());
    assert!(state_in(&dir).runs(10).unwrap().value.is_empty());
    assert!(!dir.path().join(".setpoint").exists());
}

#[tokio::test]
async fn what_was_saved_is_there_again() {
    let dir = TempDir::new().unwrap();
    let state = state_in(&dir);
    {
        let (writer, graph) = lock(&state);
        let graph = reconcile(&writer, graph, &[part("a", 1), part("b", 13), part("c", 3)]).await;
        writer.save(&graph, Some(run(1))).unwrap();
    }
    let snapshot = state.read().unwrap().unwrap();
    assert_eq!((snapshot.set.as_str(), snapshot.unfinished), ("machine", false));
    assert_eq!(names(&snapshot.graph), ["a=1", "b=13", "c=3"]);
    let trouble = snapshot.graph.state(&reference("b")).unwrap().last_failure().unwrap();
    assert_eq!(trouble.error.to_string(), "bad luck");
    let is_adopted = |name| snapshot.graph.state(&reference(name)).unwrap().ownership().is_adopted();
    assert_eq!((is_adopted("a"), is_adopted("c")), (false, true));
    assert_eq!(state.runs(10).unwrap().value, [run(1)]);
    assert_eq!(state.run(1).unwrap().value, Some(run(1)));
    assert_eq!(state.run(2).unwrap().value, None);
}

#[tokio::test]
async fn a_checkpoint_writes_what_changed_and_removes_what_went() {
    let dir = TempDir::new().unwrap();
    let state = state_in(&dir);
    let (writer, graph) = lock(&state);
    let graph = reconcile(&writer, graph, &[part("a", 1), part("b", 2), part("c", 3)]).await;
    writer.save(&graph, Some(run(1))).unwrap();
    let graph = reconcile(&writer, graph, &[part("a", 1), part("b", 5), part("d", 4)]).await;
    writer.save(&graph, Some(run(2))).unwrap();
    assert_eq!(names(&state.read().unwrap().unwrap().graph), ["a=1", "b=5", "d=4"]);
    assert_eq!(state.runs(1).unwrap().value, [run(2)]);
}

#[test]
fn the_state_of_another_set_is_refused() {
    let dir = TempDir::new().unwrap();
    let state = state_in(&dir);
    drop(lock(&state));
    let error = state.lock("garden", "apply", Duration::ZERO).unwrap_err();
    assert!(matches!(&error, StateError::OtherSet { found, .. } if found == "machine"), "{error}");
    assert!(error.to_string().ends_with("belongs to the set \"machine\", not to \"garden\""), "{error}");
}

#[test]
fn a_second_writer_is_refused_and_told_who_the_first_is() {
    let dir = TempDir::new().unwrap();
    let state = state_in(&dir);
    let first = lock(&state);
    assert!(state.holder().unwrap().0.contains(&std::process::id().to_string()));
    let error = state.lock("machine", "destroy", Duration::ZERO).unwrap_err();
    let who = format!("in use by process {} (setpoint apply)", std::process::id());
    assert!(error.to_string().ends_with(&who), "{error}");
    drop(first);
    assert_eq!(state.holder(), None);
    lock(&state);
}

#[tokio::test]
async fn a_reader_sees_what_a_run_under_way_has_done_so_far() {
    let dir = TempDir::new().unwrap();
    let state = state_in(&dir);
    let (writer, graph) = lock(&state);
    let graph = reconcile(&writer, graph, &[part("a", 1)]).await;
    let snapshot = state.read().unwrap().unwrap();
    assert!(snapshot.unfinished);
    assert_eq!(names(&snapshot.graph), ["a=1"]);
    writer.save(&graph, None).unwrap();
    assert!(!state.read().unwrap().unwrap().unfinished);
}

#[tokio::test]
async fn a_run_whose_process_ended_is_taken_over_by_the_next_writer() {
    let dir = TempDir::new().unwrap();
    let state = state_in(&dir);
    {
        let (writer, graph) = lock(&state);
        reconcile(&writer, graph, &[part("a", 1), part("b", 3)]).await;
        // Started, and then nothing more.
        let started = Record::Started {
            number: 3,
            operation: Operation::Create,
            item: ItemHandle::new(part("c", 3)),
            target: None,
            path: SubgraphPath::root(),
            at: Timestamp::UNIX_EPOCH,
        };
        writer.journal().record(&[started]).await.unwrap();
    }
    let (writer, graph) = lock(&state);
    assert_eq!(names(&graph), ["a=1", "b=3", "c=3"]);
    assert!(graph.state(&reference("c")).unwrap().is_unknown());
    assert!(graph.state(&reference("b")).unwrap().ownership().is_adopted());
    // Until it is saved, the journal is what tells: another process that ends here loses nothing either.
    assert!(writer.has_unsaved_runs());
    drop(writer);
    let (writer, graph) = lock(&state);
    assert!(graph.state(&reference("c")).unwrap().is_unknown());
    assert_eq!(writer.begin("apply", Timestamp::UNIX_EPOCH, Vec::new(), RunDetails::default()), 2);
    writer.save(&graph, Some(run(2))).unwrap();
    let lost = state.run(1).unwrap().value.unwrap();
    assert_eq!((lost.outcome, lost.command.as_str(), lost.entries.len()), (RunOutcome::Lost, "apply", 3));
    assert!(lost.entries[0].ended.is_some() && lost.entries[2].ended.is_none());
    assert!(!state.path().join("journal").exists());
    // It was saved: the same is there without the journal.
    assert_eq!(names(&state.read().unwrap().unwrap().graph), ["a=1", "b=3", "c=3"]);
}

#[tokio::test]
async fn the_history_has_the_reasons_of_a_run_that_its_process_did_not_live_to_finish() {
    let dir = TempDir::new().unwrap();
    let state = state_in(&dir);
    let drift = RunDrift { kind: "part".into(), name: "b".into(), gone: true, changes: Vec::new() };
    {
        let (writer, graph) = lock(&state);
        let operations = vec![OperationDetails {
            operation: Operation::Create,
            item: reference("a"),
            reason: "it is intended and not there".into(),
            changes: vec!["value: 1".into()],
        }];
        let details = RunDetails { operations, drift: vec![drift.clone()] };
        writer.begin("apply", Timestamp::UNIX_EPOCH, Vec::new(), details);
        let mut intended = Graph::new("machine");
        intended.put_item(part("a", 1)).unwrap();
        intended.put_item(part("unplanned", 1)).unwrap();
        let engine = Engine::new(DefaultRegistry::new().with(Parts)).with_journal(writer.journal());
        engine.reconcile(&mut Some(graph), Some(&intended), &Selection::all()).await.unwrap();
    }
    let (writer, graph) = lock(&state);
    writer.save(&graph, None).unwrap();
    let lost = state.run(1).unwrap().value.unwrap();
    assert_eq!((lost.outcome, &lost.drift[..]), (RunOutcome::Lost, &[drift][..]));
    let reasons: Vec<_> = lost.entries.iter().map(|entry| (&*entry.name, entry.reason.as_deref())).collect();
    assert_eq!(reasons, [("a", Some("it is intended and not there")), ("unplanned", None)]);
    assert_eq!(lost.entries[0].changes, ["value: 1"]);
}

#[tokio::test]
async fn half_a_last_line_of_the_journal_was_never_written() {
    let dir = TempDir::new().unwrap();
    let state = state_in(&dir);
    {
        let (writer, graph) = lock(&state);
        reconcile(&writer, graph, &[part("a", 1)]).await;
    }
    let journal = state.path().join("journal");
    let mut file = fs::OpenOptions::new().append(true).open(&journal).unwrap();
    file.write_all(b"{\"started\":{\"number\":9,").unwrap();
    let (writer, graph) = lock(&state);
    assert_eq!(names(&graph), ["a=1"]);
    // What comes after it is whole again.
    reconcile(&writer, graph, &[part("b", 2)]).await;
    drop(writer);
    assert_eq!(names(&lock(&state).1), ["b=2"]);
}

/// As after a failure of power: a page of the journal was never written.
#[tokio::test]
async fn a_journal_is_known_up_to_the_line_that_is_damaged_and_the_rest_is_set_aside_and_named() {
    for first in [true, false] {
        let dir = TempDir::new().unwrap();
        let state = state_in(&dir);
        {
            let (writer, graph) = lock(&state);
            reconcile(&writer, graph, &[part("a", 1)]).await;
        }
        let journal = state.path().join("journal");
        let mut bytes = fs::read(&journal).unwrap();
        if first {
            bytes[..16].fill(0);
        } else {
            bytes.extend([0; 64]);
            bytes.extend(b"\n{}\n");
        }
        fs::write(&journal, &bytes).unwrap();
        let known: &[&str] = if first { &[] } else { &["a=1"] };
        let snapshot = state.read().unwrap().unwrap();
        assert_eq!(names(&snapshot.graph), known);
        let line = if first { "line 1: " } else { "line 4: " };
        assert!(snapshot.damaged.unwrap().contains(line));
        let (writer, graph) = lock(&state);
        assert_eq!(names(&graph), known);
        assert_eq!(writer.has_unsaved_runs(), !first);
        let damaged = writer.damaged().unwrap();
        assert!(damaged.contains(line) && damaged.contains("journal.damaged"), "{damaged}");
        assert_eq!(fs::read(state.path().join("journal.damaged")).unwrap(), bytes);
        // What comes after it is whole again.
        reconcile(&writer, graph, &[part("b", 2)]).await;
        drop(writer);
        let (writer, graph) = lock(&state);
        assert_eq!(names(&graph), ["b=2"]);
        assert_eq!(writer.damaged(), None);
    }
}

#[tokio::test]
async fn a_journal_that_a_checkpoint_already_holds_is_passed_over() {
    let dir = TempDir::new().unwrap();
    let state = state_in(&dir);
    let (writer, graph) = lock(&state);
    let graph = reconcile(&writer, graph, &[part("a", 1)]).await;
    let journal = fs::read(state.path().join("journal")).unwrap();
    let graph = reconcile(&writer, graph, &[]).await;
    writer.save(&graph, None).unwrap();
    drop(writer);
    // As if the process had ended between the checkpoint and the emptying.
    fs::write(state.path().join("journal"), journal).unwrap();
    assert!(names(&lock(&state).1).is_empty());
}

#[test]
fn a_database_that_is_none_is_an_error_that_names_it() {
    let dir = TempDir::new().unwrap();
    let state = state_in(&dir);
    fs::create_dir_all(state.path()).unwrap();
    fs::write(state.path().join("state.redb"), b"this is no database, it only looks like a file").unwrap();
    let error = state.read().unwrap_err();
    assert!(error.to_string().contains("state.redb"), "{error}");
}

#[tokio::test]
async fn readers_beside_a_busy_writer_always_see_a_whole_state() {
    let dir = TempDir::new().unwrap();
    let state = state_in(&dir);
    let (writer, mut graph) = lock(&state);
    let reader = {
        let state = state.clone();
        std::thread::spawn(move || {
            for _ in 0..50 {
                let graph = state.read().unwrap().unwrap().graph;
                let values: Vec<u32> = graph.items().map(|node| value(node.item())).collect();
                // Each run sets all of them to one value, one after the other.
                let spread = values.iter().max().unwrap_or(&0) - values.iter().min().unwrap_or(&0);
                assert!(spread <= 1, "{values:?}");
            }
        })
    };
    let mut round = 0;
    while !reader.is_finished() {
        round += 1;
        graph = reconcile(&writer, graph, &[part("a", 100 + round), part("b", 100 + round)]).await;
        writer.save(&graph, None).unwrap();
    }
    reader.join().unwrap();
}

#[test]
fn a_database_that_was_only_half_made_is_made_anew() {
    let dir = TempDir::new().unwrap();
    let state = state_in(&dir);
    fs::create_dir_all(state.path()).unwrap();
    // As a process leaves it that is killed while it makes the database.
    fs::write(state.path().join("state.new"), b"").unwrap();
    drop(lock(&state));
    assert!(state.read().unwrap().is_some());
    assert!(!state.path().join("state.new").exists());
}

#[tokio::test]
async fn nobody_else_can_read_what_is_remembered() {
    use std::os::unix::fs::PermissionsExt;
    let dir = TempDir::new().unwrap();
    let state = state_in(&dir);
    let (writer, graph) = lock(&state);
    reconcile(&writer, graph, &[part("secret", 1)]).await;
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(state.path()), 0o700);
    assert_eq!(mode(&state.path().join("journal")), 0o600);
    assert_eq!(mode(&state.path().join("lock")), 0o600);
}

/// Damages the database in one way, and gives what is read then.
async fn damaged(damage: impl Fn(&std::path::Path)) -> (TempDir, StateDir) {
    let dir = TempDir::new().unwrap();
    let state = state_in(&dir);
    {
        let (writer, graph) = lock(&state);
        let graph = reconcile(&writer, graph, &[part("a", 1), part("b", 3)]).await;
        writer.save(&graph, Some(run(1))).unwrap();
    }
    damage(&state.path().join("state.redb"));
    (dir, state)
}

#[tokio::test]
async fn a_damaged_database_is_replaced_by_its_copy_with_a_word_about_it() {
    type Damage = Box<dyn Fn(&std::path::Path)>;
    let zeros_at = |from: u64| {
        move |path: &std::path::Path| {
            let mut file = fs::OpenOptions::new().write(true).open(path).unwrap();
            std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(from)).unwrap();
            file.write_all(&[0; 4096]).unwrap();
        }
    };
    let damages: [Damage; 5] = [
        Box::new(zeros_at(0)),
        Box::new(zeros_at(64)),
        Box::new(zeros_at(4096)),
        Box::new(|path| fs::write(path, "").unwrap()),
        Box::new(|path| fs::OpenOptions::new().write(true).open(path).unwrap().set_len(5000).unwrap()),
    ];
    for (number, damage) in damages.iter().enumerate() {
        let (_dir, state) = damaged(damage).await;
        let snapshot = state.read().unwrap().unwrap();
        assert_eq!(names(&snapshot.graph), ["a=1", "b=3"], "damage {number}");
        assert!(snapshot.damaged.is_some(), "damage {number}");
        let found = state.runs(9).unwrap();
        assert_eq!(found.value, [run(1)], "damage {number}");
        assert!(found.damaged.is_some(), "damage {number}");
        let (writer, graph) = lock(&state);
        assert!(writer.damaged().is_some());
        assert!(state.path().join("state.damaged").exists(), "what is damaged is kept");
        let graph = reconcile(&writer, graph, &[part("a", 2)]).await;
        writer.save(&graph, Some(run(2))).unwrap();
        drop(writer);
        let snapshot = state.read().unwrap().unwrap();
        assert_eq!((names(&snapshot.graph), snapshot.damaged), (vec!["a=2".to_owned()], None));
        assert_eq!(state.runs(9).unwrap().value.len(), 2, "the history is there too");
    }
}

#[tokio::test]
async fn what_can_not_be_looked_at_is_not_taken_for_nothing() {
    let (_dir, state) = damaged(|path| {
        fs::remove_file(path).unwrap();
        // A link that leads to itself can't be followed, by nobody.
        std::os::unix::fs::symlink(path, path).unwrap();
    })
    .await;
    assert!(matches!(state.read(), Err(StateError::File { .. })), "{:?}", state.read());
}

#[tokio::test]
async fn only_the_owner_reads_the_state_whatever_stands_around_it() {
    use std::os::unix::fs::PermissionsExt;
    let dir = TempDir::new().unwrap();
    let state = state_in(&dir);
    fs::create_dir(state.path()).unwrap();
    fs::set_permissions(state.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (writer, graph) = lock(&state);
    let graph = reconcile(&writer, graph, &[part("a", 1)]).await;
    let mode = |name: &str| fs::metadata(state.path().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("journal"), 0o600);
    writer.save(&graph, Some(run(1))).unwrap();
    assert_eq!((mode("state.redb"), mode("state.last")), (0o600, 0o600));
}

#[tokio::test]
async fn what_the_first_format_knew_of_adoptions_is_known() {
    const ADOPTED: redb::TableDefinition<'_, (&str, &str), ()> = redb::TableDefinition::new("adopted");
    const META: redb::TableDefinition<'_, &str, &str> = redb::TableDefinition::new("meta");
    let (_dir, state) = damaged(|path| {
        let db = redb::Database::open(path).unwrap();
        let txn = db.begin_write().unwrap();
        txn.open_table(ADOPTED).unwrap().insert(("part", "a"), ()).unwrap();
        txn.open_table(META).unwrap().insert("format", "1").unwrap();
        txn.commit().unwrap();
    })
    .await;
    let is_adopted =
        || state.read().unwrap().unwrap().graph.state(&reference("a")).unwrap().ownership().is_adopted();
    assert!(is_adopted());
    let (writer, graph) = lock(&state);
    writer.save(&graph, None).unwrap();
    drop(writer);
    assert!(is_adopted(), "also when it was written anew");
}

#[tokio::test]
async fn what_the_second_format_knew_of_an_item_that_is_to_be_applied_again_is_known() {
    const ITEMS: redb::TableDefinition<'_, (&str, &str), &[u8]> = redb::TableDefinition::new("items");
    const META: redb::TableDefinition<'_, &str, &str> = redb::TableDefinition::new("meta");
    let read = async |presence: &str, fields: &[&str]| {
        let (_dir, state) = damaged(|path| {
            let db = redb::Database::open(path).unwrap();
            let txn = db.begin_write().unwrap();
            let mut items = txn.open_table(ITEMS).unwrap();
            let stored = items.get(("part", "a")).unwrap().unwrap().value().to_vec();
            let mut stored: serde_json::Value = serde_json::from_slice(&stored).unwrap();
            stored["state"]["presence"] = presence.into();
            for field in fields {
                stored["state"][field] = true.into();
            }
            items.insert(("part", "a"), stored.to_string().as_bytes()).unwrap();
            drop(items);
            txn.open_table(META).unwrap().insert("format", "2").unwrap();
            txn.commit().unwrap();
        })
        .await;
        let known = || {
            let graph = state.read().unwrap().unwrap().graph;
            let state = graph.state(&reference("a")).unwrap();
            (state.presence(), state.reapply())
        };
        let before = known();
        let (writer, graph) = lock(&state);
        writer.save(&graph, None).unwrap();
        drop(writer);
        assert_eq!(known(), before, "also when it was written anew");
        before
    };
    assert_eq!(read("present", &[]).await, (Presence::Present, Reapply::NotNeeded));
    assert_eq!(read("present", &["tainted"]).await, (Presence::Tainted, Reapply::NotNeeded));
    assert_eq!(read("present", &["again"]).await, (Presence::Present, Reapply::AnotherItemChanged));
    assert_eq!(read("absent", &["again"]).await, (Presence::Absent, Reapply::RecreationInterrupted));
    let both = read("present", &["tainted", "again"]).await;
    assert_eq!(both, (Presence::Tainted, Reapply::AnotherItemChanged));
}

#[tokio::test]
async fn what_a_run_protects_is_protected_although_its_process_ended() {
    let dir = TempDir::new().unwrap();
    let state = state_in(&dir);
    let protected = |graph: &CurrentGraph, name: &str| graph.state(&reference(name)).unwrap().is_protected();
    {
        let (writer, graph) = lock(&state);
        let mut graph = reconcile(&writer, graph, &[part("old", 1), part("free", 1)]).await;
        let slot = graph.slot_of(&reference("free")).unwrap();
        graph.state_at_mut(slot).unwrap().protect(true);
        writer.save(&graph, None).unwrap();
        let protection = vec![(reference("old"), true), (reference("new"), true), (reference("free"), false)];
        writer.begin("apply", Timestamp::UNIX_EPOCH, protection, RunDetails::default());
        let mut intended = Graph::new("machine");
        for item in [part("old", 2), part("free", 1), part("new", 1)] {
            intended.put_item(item).unwrap();
        }
        let engine = Engine::new(DefaultRegistry::new().with(Parts)).with_journal(writer.journal());
        engine.reconcile(&mut Some(graph), Some(&intended), &Selection::all()).await.unwrap();
    }
    let seen = state.read().unwrap().unwrap().graph;
    let (writer, taken_over) = lock(&state);
    for graph in [&seen, &taken_over] {
        assert_eq!(["old", "new", "free"].map(|name| protected(graph, name)), [true, true, false]);
    }
    writer.save(&taken_over, None).unwrap();
    let saved = state.read().unwrap().unwrap().graph;
    assert_eq!(["old", "new", "free"].map(|name| protected(&saved, name)), [true, true, false]);
}

#[test]
fn a_state_that_others_could_read_is_closed_to_them() {
    use std::os::unix::fs::PermissionsExt;
    let dir = TempDir::new().unwrap();
    let state = state_in(&dir);
    drop(lock(&state));
    let files = ["state.redb", "state.last"].map(|file| state.path().join(file));
    for file in &files {
        fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
    }
    drop(lock(&state));
    for file in &files {
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600, "{}", file.display());
    }
}
