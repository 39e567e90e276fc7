//! Runs that are cut off before each single record of their journal, one after the other, or can't write it: whatever comes next,
//! what was there before is there in the end, and nothing else is.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures::future::{BoxFuture, pending, select};
use setpoint_engine::{Journal, JournalError, Record, replay};
use setpoint_host::Manifest;
use tokio::sync::Notify;

use crate::world::{ALL, World};

/// What becomes of a run whose journal has taken so many records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// Nobody hears of it again.
    Killed,
    /// The disk is full, and what the run came to can't be saved either.
    Full,
    /// The disk is full until the run has ended.
    FullUntilSaved,
    /// The disk is full for one record.
    FullOnce,
}

/// A journal that takes so many records.
struct Cut {
    then: Then,
    left: AtomicUsize,
    is_over: AtomicBool,
    records: Mutex<Vec<Record>>,
    reached: Notify,
}

impl Journal for Cut {
    fn record<'a>(&'a self, records: &'a [Record]) -> BoxFuture<'a, Result<(), JournalError>> {
        if self.left.load(Ordering::Relaxed) == 0 {
            let was_over = self.is_over.swap(true, Ordering::Relaxed);
            if self.then == Then::Killed {
                self.reached.notify_one();
                return Box::pin(pending());
            }
            if self.then != Then::FullOnce || !was_over {
                return Box::pin(async { Err(JournalError("no space left on device".to_owned())) });
            }
        } else {
            self.left.fetch_sub(1, Ordering::Relaxed);
        }
        self.records.lock().unwrap().extend_from_slice(records);
        Box::pin(async { Ok(()) })
    }
}

/// Runs until so many records are written, and goes on as another process would. Returns whether the run came to its end, with all
/// of it written.
fn cut_off(world: &mut World, yaml: Option<&str>, after: usize, then: Then) -> bool {
    let manifest = yaml.map(|yaml| world.load(yaml));
    world.recognise(manifest.as_ref());
    world.refresh();
    let before = world.current.clone();
    let (left, is_over, reached) = (AtomicUsize::new(after), AtomicBool::new(false), Notify::new());
    let journal = Arc::new(Cut { then, left, is_over, records: Mutex::default(), reached });
    let engine = world.engine.clone().with_journal(journal.clone());
    let mut current = before.clone();
    {
        let graph = manifest.as_ref().map(Manifest::graph);
        let run = std::pin::pin!(engine.reconcile(&mut current, graph, &ALL));
        let stopped = std::pin::pin!(journal.reached.notified());
        world.block_on(select(stopped, run));
    }
    let is_done = !journal.is_over.load(Ordering::Relaxed);
    let is_saved = is_done || matches!(then, Then::FullUntilSaved | Then::FullOnce);
    if !is_saved {
        current = Some(replay("test", before, &journal.records.lock().unwrap()));
    }
    world.begin_again(current);
    if is_saved {
        world.settle();
    }
    is_done
}

/// What somebody has: paths, with the content of a file, `-> TARGET` of a link, or nothing of a directory.
type Theirs = BTreeMap<&'static str, &'static str>;

fn put(world: &World, theirs: &Theirs) {
    for (path, what) in theirs {
        let at = world.path(path);
        if what.is_empty() {
            fs::create_dir_all(at).unwrap();
        } else if let Some(target) = what.strip_prefix("-> ") {
            symlink(target, at).unwrap();
        } else {
            fs::write(at, what).unwrap();
        }
    }
}

fn found(world: &World) -> BTreeMap<String, String> {
    let all = world.tree().into_iter().map(|path| {
        let at = world.path(&path);
        let what = match fs::read_link(&at) {
            Ok(target) => format!("-> {}", target.display()),
            Err(_) if at.is_dir() => String::new(),
            Err(_) => fs::read_to_string(at).unwrap(),
        };
        (path, what)
    });
    all.collect()
}

struct Case {
    /// There before Setpoint.
    before: Theirs,
    first: String,
    /// Put there by somebody after the first run.
    between: Theirs,
    second: String,
}

/// Asserts that all is as it was: what somebody put into a directory of Setpoint's stays with it, wherever that is, and a directory
/// that can't go back is named.
fn check(case: &Case, world: &World, log: &[String], when: &str) {
    let found = found(world);
    if case.between.is_empty() {
        let wanted: BTreeMap<String, String> =
            case.before.iter().map(|(path, what)| ((*path).to_owned(), (*what).to_owned())).collect();
        assert_eq!(found, wanted, "{when}: {log:?}");
        return;
    }
    let contents = |all: &mut dyn Iterator<Item = &str>| {
        let mut contents: Vec<String> = all.filter(|what| !what.is_empty()).map(str::to_owned).collect();
        contents.sort();
        contents
    };
    let wanted = contents(&mut case.between.values().copied());
    assert_eq!(contents(&mut found.values().map(String::as_str)), wanted, "{when}: {found:?}, {log:?}");
    for path in found.keys().filter(|path| path.starts_with(".setpoint-") && !path.contains('/')) {
        let named = log.iter().any(|line| line.contains(&format!("what it holds is in {path}")));
        assert!(named, "{when}: {path} is not named: {found:?}, {log:?}");
    }
}

/// Cuts the second run off before each record, and what follows too.
fn sweep(case: &Case) {
    for then in [Then::Killed, Then::Full, Then::FullUntilSaved, Then::FullOnce] {
        sweep_with(case, then);
    }
}

fn sweep_with(case: &Case, then: Then) {
    for after in 0.. {
        let mut is_done = false;
        for next in
            ["destroy", "apply, destroy", "cut destroy, destroy", "cut destroy, apply, destroy", "back"]
        {
            // Of what follows, each is cut off somewhere.
            let second = 1 + after % 8;
            let when = format!("{then:?} after {after}, then {next} ({second})");
            let mut world = World::new();
            put(&world, &case.before);
            let log = world.apply(&case.first);
            assert!(log.iter().all(|line| !line.contains("failed")), "{log:?}");
            world.settle();
            put(&world, &case.between);
            is_done = cut_off(&mut world, Some(&case.second), after, then);
            if next.contains("cut") {
                cut_off(&mut world, None, second, then);
            }
            if next.contains("apply") || next == "back" {
                let yaml = if next == "back" { &case.first } else { &case.second };
                let log = world.read_and_reconcile(Some(yaml));
                // A directory that was released already is somebody's, and in the way.
                let is_released = next.contains("cut") && !case.between.is_empty();
                let is_well = log.iter().all(|line| !line.contains("failed"));
                assert!(is_well || is_released, "{when}: {log:?}");
                world.settle();
            }
            let log = world.read_and_reconcile(None);
            check(case, &world, &log, &when);
        }
        if is_done {
            return;
        }
    }
}

const ADOPT: &str = ", adopt: true";

/// Two files and two links.
fn pair(first: &str, second: &str, adopt: &str) -> String {
    format!(
        "files:\n  f: {{path: {first}, content: F{adopt}}}\n  g: {{path: {second}, content: G{adopt}}}\n\
         symlinks:\n  l: {{path: l{first}, target: L{adopt}}}\n  m: {{path: l{second}, target: M{adopt}}}\n"
    )
}

fn theirs() -> Theirs {
    BTreeMap::from([("one", "of one"), ("two", "of two"), ("lone", "-> of one"), ("ltwo", "-> of two")])
}

fn case(before: Theirs, first: String, second: String) -> Case {
    Case { before, first, between: Theirs::new(), second }
}

#[test]
fn what_was_taken_over_is_back_however_a_run_is_cut_off_that_swaps_it() {
    sweep(&case(theirs(), pair("one", "two", ADOPT), pair("two", "one", ADOPT)));
}

#[test]
fn what_was_taken_over_is_back_however_a_run_is_cut_off_that_moves_it() {
    sweep(&case(theirs(), pair("one", "two", ADOPT), pair("two", "three", ADOPT)));
    sweep(&case(theirs(), pair("one", "two", ADOPT), pair("three", "four", ADOPT)));
}

#[test]
fn what_is_taken_over_is_back_however_a_run_is_cut_off_that_takes_it_over_or_lets_it_go() {
    let nothing = "files: {other: {content: x}}\n".to_owned();
    sweep(&case(theirs(), nothing.clone(), pair("one", "two", ADOPT)));
    sweep(&case(theirs(), pair("one", "two", ADOPT), nothing));
}

#[test]
fn nothing_of_ours_is_left_however_a_run_is_cut_off_that_moves_it() {
    sweep(&case(Theirs::new(), pair("one", "two", ""), pair("two", "one", "")));
    sweep(&case(Theirs::new(), pair("one", "two", ""), pair("three", "four", "")));
}

fn directories(a: &str, b: &str, adopt: &str) -> String {
    format!(
        "directories:\n  a: {{path: {a}{adopt}}}\n  b: {{path: {b}{adopt}}}\nfiles:\n  f: {{path: {a}/f, content: F}}\n"
    )
}

#[test]
fn what_somebody_put_into_directories_is_there_however_a_run_is_cut_off_that_swaps_them() {
    let between = BTreeMap::from([("a/ua", "of a"), ("b/ub", "of b")]);
    let (first, second) = (directories("a", "b", ""), directories("b", "a", ""));
    sweep(&Case { before: Theirs::new(), first, between: between.clone(), second });
    let before = BTreeMap::from([("a", ""), ("b", "")]);
    let (first, second) = (directories("a", "b", ADOPT), directories("b", "a", ADOPT));
    sweep(&Case { before, first, between, second });
}

#[test]
fn what_somebody_put_into_a_directory_is_there_however_a_run_is_cut_off_that_moves_it_into_itself() {
    let first = "directories: {d: {path: a}}\nfiles: {f: {path: a/b, content: m}}\n".to_owned();
    let second =
        "directories: {d: {path: a/b}, e: {path: a}}\nfiles: {f: {path: a/c, content: m}}\n".to_owned();
    sweep(&Case { before: Theirs::new(), first, between: BTreeMap::from([("a/x", "of a")]), second });
}

/// A journal during which somebody writes a file, or points a link elsewhere: before a record is written.
struct Edited {
    left: AtomicUsize,
    path: std::path::PathBuf,
    is_link: bool,
}

impl Journal for Edited {
    fn record<'a>(&'a self, _: &'a [Record]) -> BoxFuture<'a, Result<(), JournalError>> {
        if self.left.load(Ordering::Relaxed) == 1 {
            if self.is_link {
                fs::remove_file(&self.path).unwrap();
                symlink("newer", &self.path).unwrap();
            } else {
                fs::write(&self.path, "newer").unwrap();
            }
        }
        self.left.store(self.left.load(Ordering::Relaxed).saturating_sub(1), Ordering::Relaxed);
        Box::pin(async { Ok(()) })
    }
}

#[test]
fn what_somebody_writes_while_a_run_notes_what_it_does_is_kept() {
    let file = |content: &str| format!("files: {{f: {{content: {content}, adopt: true}}}}\n");
    let link = |target: &str| format!("symlinks: {{f: {{target: {target}, adopt: true}}}}\n");
    for (is_link, run) in [false, true]
        .into_iter()
        .flat_map(|link| ["adoption", "modification", "release"].into_iter().map(move |run| (link, run)))
    {
        let with = |text: &str| if is_link { link(text) } else { file(text) };
        for at in 1..8 {
            let mut world = World::new();
            let path = world.path("f");
            if is_link { symlink("precious", &path) } else { fs::write(&path, "precious") }.unwrap();
            if run != "adoption" {
                world.apply(&with("ours"));
                world.settle();
            }
            let engine = world.engine.clone();
            let journal = Edited { left: AtomicUsize::new(at), path: path.clone(), is_link };
            let journal = Arc::new(journal);
            world.engine = engine.clone().with_journal(journal.clone());
            match run {
                "adoption" => world.apply(&with("ours")),
                "modification" => world.apply(&with("other")),
                _ => world.destroy(),
            };
            world.engine = engine;
            world.destroy();
            if journal.left.load(Ordering::Relaxed) > 0 {
                break;
            }
            let kept = fs::read_dir(world.directory.path().join("run/kept")).into_iter().flatten().flatten();
            let kept: String = kept.map(|entry| fs::read_to_string(entry.path()).unwrap()).collect();
            let there = match fs::read_link(&path) {
                Ok(target) => target.display().to_string(),
                Err(_) => fs::read_to_string(&path).unwrap_or_default(),
            };
            // `newer`, also as base64 has it.
            let is_kept = there == "newer" || kept.contains("bmV3ZXI=") || kept.contains("\"newer\"");
            assert!(is_kept, "link {is_link}, {run}, at record {at}: {there:?}, {kept}");
        }
    }
}

#[test]
fn what_commands_bring_about_is_taken_back_however_a_run_is_cut_off_that_applies_or_undoes_them() {
    let nothing = "files: {other: {content: x}}\n".to_owned();
    let commands = "commands:\n  ours: {check: test -e a, apply: touch a, undo: rm a}\n  \
                    theirs: {check: test -e t, apply: touch t, undo: rm t}\n"
        .to_owned();
    let theirs = BTreeMap::from([("t", "theirs")]);
    sweep(&case(theirs.clone(), nothing.clone(), commands.clone()));
    sweep(&case(theirs, commands, nothing));
}
