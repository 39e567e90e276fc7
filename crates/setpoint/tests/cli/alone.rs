//! Commands that run beside each other, that are stopped, and that are killed.

use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use setpoint_testutils::wait::LIMIT;

use crate::sandbox::{Sandbox, eventually};

#[test]
fn a_second_writer_is_refused_with_the_holders_process_id_and_readers_are_not() {
    let sandbox = Sandbox::new("files:\n  a: {content: one}\n");
    let mut watch = sandbox.start(&["watch"]);
    watch.until("+ file/a created");
    let refused = sandbox.run(&["apply", "--yes"]);
    assert_eq!(refused.code(), 1);
    let who =
        format!("is in use by process {} (setpoint watch)\nhint: `watch` brings about", watch.child.id());
    assert!(refused.err().contains(&who), "{}", refused.err());
    assert_eq!(sandbox.ok(&["plan"]), "site: nothing to do.\n");
    assert_eq!(sandbox.ok(&["state", "list"]), "file/a\n");
    sandbox.ok(&["history"]);
    // One that may wait gets its turn.
    let waiting = sandbox.command(&["apply", "--yes", "--lock-timeout", "5m"]).spawn().unwrap();
    watch.signal(Signal::SIGTERM);
    assert_eq!(watch.wait(), 0);
    assert!(waiting.wait_with_output().unwrap().status.success());
}

#[test]
fn watch_repairs_drift_and_follows_the_manifest() {
    let sandbox = Sandbox::new("directories:\n  d:\nfiles:\n  a: {path: d/a, content: one}\n");
    let mut watch = sandbox.start(&["watch", "--interval", "1h"]);
    watch.until("+ file/a created");
    sandbox.write("d/a", "changed");
    watch.until("~ file/a modified");
    assert_eq!(sandbox.read("d/a"), "one");
    fs::remove_file(sandbox.path("d/a")).unwrap();
    eventually("the file is back", || {
        fs::read_to_string(sandbox.path("d/a")).is_ok_and(|text| text == "one")
    });
    sandbox.declare("directories:\n  d:\nfiles:\n  a: {path: d/a, content: two}\n  b: {content: new}\n");
    eventually("the new content is there", || sandbox.read("d/a") == "two");
    eventually("the new file is there", || sandbox.path("b").exists());
    watch.signal(Signal::SIGINT);
    assert_eq!(watch.wait(), 0);
    assert!(watch.log().ends_with("stopped\n"), "{}", watch.log());
}

/// Whoever reads the files all the while makes as many events as whoever changes them.
#[test]
fn watch_repairs_a_file_that_is_read_all_the_while() {
    let sandbox = Sandbox::new("files:\n  a: {content: one}\n");
    let watch = sandbox.start(&["watch", "--interval", "1h"]);
    watch.until("+ file/a created");
    sandbox.write("a", "changed");
    let end = Instant::now() + LIMIT;
    while sandbox.read("a") != "one" {
        assert!(Instant::now() < end, "it was not put right:\n{}", watch.log());
        // Many times within the quiet period that a change is waited for, and leaving the processor to the watcher.
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn while_a_manifest_is_broken_watch_keeps_the_last_good_intent() {
    let sandbox = Sandbox::new("files:\n  a: {content: one}\n");
    let watch = sandbox.start(&["watch", "--interval", "1h"]);
    watch.until("+ file/a created");
    sandbox.declare("files:\n  a: {contents: two}\n");
    watch.until("the last good manifests stand");
    sandbox.write("a", "changed");
    watch.until("~ file/a modified");
    assert_eq!(sandbox.read("a"), "one");
    sandbox.declare("files:\n  a: {content: three}\n");
    eventually("the mended manifest is applied", || sandbox.read("a") == "three");
}

#[test]
fn what_is_changed_again_and_again_is_contested() {
    // It begins with the last repair.
    const FIRST_PAUSE: Duration = Duration::from_secs(10);
    let sandbox = Sandbox::new("files:\n  a: {content: one}\n  b: {content: two}\n");
    let mut watch = sandbox.start(&["watch", "--interval", "1h"]);
    watch.until("+ file/a created");
    watch.until("+ file/b created");
    let mut before_the_last_repair = Instant::now();
    for round in 0..2 {
        before_the_last_repair = Instant::now();
        sandbox.write("a", &format!("changed {round}"));
        eventually("it is put right", || sandbox.read("a") == "one");
    }
    sandbox.write("a", "changed once more");
    watch.until("it is contested");
    sandbox.write("b", "changed");
    eventually("another one is put right meanwhile", || sandbox.read("b") == "two");
    let is_left = sandbox.read("a") == "changed once more";
    assert!(is_left || before_the_last_repair.elapsed() >= FIRST_PAUSE, "it is backed off from");
    watch.signal(Signal::SIGTERM);
    assert_eq!(watch.wait(), 0);
    // A person who asks is not made to wait.
    sandbox.write("a", "changed once more");
    assert!(sandbox.ok(&["plan"]).contains("~ file/a"));
    // And who only wants to know what differs learns of it.
    let reporting = sandbox.start(&["watch", "--report-only"]);
    reporting.until("1 to modify");
}

#[test]
fn report_only_says_what_differs_and_changes_nothing() {
    let sandbox = Sandbox::new("files:\n  a: {content: one}\n  b: {content: two}\n");
    let watch = sandbox.start(&["watch", "--report-only", "--interval", "1h"]);
    watch.until("2 to create");
    assert_eq!(sandbox.tree(), [".log"]);
    sandbox.ok(&["apply", "--yes"]);
    watch.until("nothing to do");
    sandbox.write("a", "changed");
    watch.until("! file/a was changed");
    // What would be done about it would be done before the next change is seen.
    sandbox.write("b", "changed");
    watch.until("! file/b was changed");
    assert_eq!(sandbox.read("a"), "changed");
}

#[test]
fn watch_as_json_is_one_object_a_line() {
    let sandbox = Sandbox::new("files:\n  a: {content: one}\n");
    let watch = sandbox.start(&["watch", "--json", "--interval", "1h"]);
    watch.until("\"operation\"");
    let events: Vec<serde_json::Value> =
        watch.log().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events[0]["event"], "started");
    assert_eq!((&events[1]["event"], &events[1]["name"]), (&"operation".into(), &"a".into()));
}

#[test]
fn the_first_signal_finishes_what_runs_and_starts_nothing_more() {
    let sandbox = Sandbox::new(
        "commands:\n  slow: {apply: \"touch begun; until test -e go || ! test -e site.yaml; do sleep 0.05; done; touch ended\", check: \"test -e ended\"}\nfiles:\n  after: {content: x, after: [command.slow]}\n",
    );
    let mut apply = sandbox.start(&["apply", "--yes"]);
    eventually("the command runs", || sandbox.path("begun").exists());
    apply.signal(Signal::SIGINT);
    apply.until("Stopping: what runs is finished");
    sandbox.write("go", "");
    assert_eq!(apply.wait(), 1);
    assert!(sandbox.path("ended").exists() && !sandbox.path("after").exists(), "{}", apply.log());
    assert!(sandbox.ok(&["history"]).contains("cancelled"), "{}", apply.log());
    sandbox.ok(&["apply", "--yes"]);
    assert!(sandbox.path("after").exists());
}

#[test]
fn the_second_signal_cancels_what_runs() {
    let sandbox =
        Sandbox::new("commands:\n  slow: {apply: \"touch begun; sleep 900\", check: \"test -e never\"}\n");
    let mut apply = sandbox.start(&["apply", "--yes"]);
    eventually("the command runs", || sandbox.path("begun").exists());
    let start = Instant::now();
    apply.signal(Signal::SIGINT);
    apply.until("Once more cancels it");
    apply.signal(Signal::SIGINT);
    assert_eq!(apply.wait(), 1);
    assert!(start.elapsed() < Duration::from_mins(5), "it did not wait for the command");
}

/// A manifest with a root of its own, and a run of it that was killed while a command was applied.
fn killed_in_a_root() -> Sandbox {
    let sandbox = Sandbox::new("");
    let manifest = "root: here\nfiles: {f: {content: x}}\ncommands: {slow: {apply: 'touch at; while test -e ../slow; do sleep 0.05; done', after: [file.f]}}\n";
    sandbox.declare(manifest);
    fs::create_dir(sandbox.path("here")).unwrap();
    sandbox.write("slow", "");
    let mut applying = sandbox.start(&["apply", "--yes"]);
    eventually("it is applied", || sandbox.path("here/at").exists());
    applying.signal(Signal::SIGKILL);
    let _ = applying.child.wait();
    fs::remove_file(sandbox.path("slow")).unwrap();
    sandbox
}

#[test]
fn a_copied_root_is_not_taken_over_before_a_run_that_was_cut_off_is_finished() {
    let sandbox = killed_in_a_root();
    let copy = || {
        fs::create_dir(sandbox.path("there")).unwrap();
        for file in ["at", "f"] {
            sandbox.write(&format!("there/{file}"), &sandbox.read(&format!("here/{file}")));
        }
    };
    copy();
    let manifest = sandbox.read("site.yaml");
    let moved = manifest.replace("root: here", "root: there");
    sandbox.write("site.yaml", &moved);
    let refused = sandbox.run(&["state", "relocate"]);
    assert_eq!(refused.code(), 1);
    assert!(refused.err().contains("a run was cut off"), "{}", refused.err());
    fs::remove_dir_all(sandbox.path("there")).unwrap();
    sandbox.write("site.yaml", &manifest);
    sandbox.ok(&["apply", "--yes"]);
    copy();
    sandbox.write("site.yaml", &moved);
    sandbox.ok(&["state", "relocate"]);
    assert_eq!(sandbox.ok(&["plan"]), "site: nothing to do.\n");
}

#[test]
fn what_a_run_that_was_cut_off_left_is_not_forgotten_where_it_cannot_be_looked_for() {
    let sandbox = killed_in_a_root();
    fs::rename(sandbox.path("here"), sandbox.path("away")).unwrap();
    for args in [&["state", "mv", "file.f", "file.g"][..], &["state", "rm", "file.f"]] {
        let refused = sandbox.run(args);
        assert_eq!(refused.code(), 1, "{args:?}: {}", refused.out());
        assert!(refused.err().contains("a run was cut off"), "{args:?}: {}", refused.err());
    }
    assert!(sandbox.ok(&["state", "list"]).contains("its last operation was cut off"));
    sandbox.ok(&["state", "rm", "--force", "file.f"]);
}

#[test]
fn a_writer_whose_lock_file_was_removed_still_keeps_others_out() {
    let sandbox = Sandbox::new("files:\n  a: {content: one}\n");
    let mut watch = sandbox.start(&["watch"]);
    watch.until("+ file/a created");
    fs::remove_file(sandbox.path(".setpoint/lock")).unwrap();
    let refused = sandbox.run(&["apply", "--yes"]);
    assert_eq!(refused.code(), 1, "{}", refused.out());
    assert!(refused.err().contains("is in use by another process\nhint: wait for it"), "{}", refused.err());
    watch.signal(Signal::SIGTERM);
    assert_eq!(watch.wait(), 0);
    sandbox.ok(&["apply", "--yes"]);
}

#[test]
fn a_writer_whose_state_was_replaced_does_not_write_into_the_other_one() {
    let sandbox = Sandbox::new("files:\n  a: {content: one}\n");
    let mut watch = sandbox.start(&["watch", "--interval", "100ms"]);
    watch.until("+ file/a created");
    fs::rename(sandbox.path(".setpoint"), sandbox.path("away")).unwrap();
    sandbox.write("site.yaml", "name: other\nfiles:\n  b: {content: two}\n");
    sandbox.ok(&["apply", "--yes"]);
    let before = fs::read(sandbox.path(".setpoint/state.redb")).unwrap();
    sandbox.write("site.yaml", "name: site\nfiles:\n  a: {content: changed}\n");
    watch.until("the directory was removed or replaced while it was in use");
    assert_eq!(sandbox.read("a"), "one", "nothing is begun that can't be journalled");
    assert_eq!(fs::read(sandbox.path(".setpoint/state.redb")).unwrap(), before);
    assert!(!sandbox.path(".setpoint/journal").exists());
    fs::remove_dir_all(sandbox.path(".setpoint")).unwrap();
    fs::rename(sandbox.path("away"), sandbox.path(".setpoint")).unwrap();
    eventually("it goes on", || sandbox.read("a") == "changed");
    watch.signal(Signal::SIGTERM);
    assert_eq!(watch.wait(), 0, "{}", watch.log());
}
