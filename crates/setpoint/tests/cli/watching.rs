//! `watch`: what it refuses, what it waits for, and what it says meanwhile.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use setpoint_testutils::wait::LIMIT;

use crate::sandbox::{Sandbox, eventually};

#[test]
fn watch_refuses_an_item_in_the_directory_of_the_state() {
    let sandbox = Sandbox::new("files: {a: {content: x}}\n");
    for only_reporting in [&[][..], &["--report-only"]] {
        let mut watching = sandbox.start(&[&["watch"], only_reporting].concat());
        watching.until("watching site");
        sandbox.declare("files:\n  a: {content: x}\n  s: {path: .setpoint/mine, content: x}\n");
        watching.until("in the directory of the state");
        sandbox.declare("files:\n  a: {content: x}\n");
        watching.signal(Signal::SIGTERM);
        assert_eq!(watching.wait(), 0, "{}", watching.log());
        assert!(!sandbox.path(".setpoint/mine").exists());
    }
}

#[test]
fn a_manifest_is_not_read_by_the_interval_while_it_is_being_saved() {
    let counted = "commands: {counted: {check: echo >> checks, apply: 'true'}}\n";
    let sandbox = Sandbox::new(&format!("files:\n  a: {{content: x}}\n  b: {{content: x}}\n{counted}"));
    let mut watching = sandbox.start(&["watch", "--interval", "100ms"]);
    eventually("both are there", || sandbox.path("a").exists() && sandbox.path("b").exists());
    let inode = || fs::metadata(sandbox.path("b")).map(|file| file.ino()).ok();
    let before = inode();
    // Half of it, which somebody has open.
    let mut file = fs::File::create(sandbox.path("site.yaml")).unwrap();
    write!(file, "name: site\n{counted}files:\n  a: {{content: x}}\n").unwrap();
    let looks = || fs::read_to_string(sandbox.path("checks")).unwrap_or_default().lines().count();
    let some = looks();
    eventually("everything was looked at again and again", || {
        // What nobody adds to for a while counts as saved.
        writeln!(file, "  # there is more to come").unwrap();
        looks() > some + 5
    });
    assert_eq!(inode(), before, "{}", watching.log());
    write!(file, "  b: {{content: x}}\n  c: {{content: x}}\n").unwrap();
    drop(file);
    eventually("the last one is read", || sandbox.path("c").exists());
    assert_eq!(inode(), before, "{}", watching.log());
    watching.signal(Signal::SIGTERM);
    assert_eq!(watching.wait(), 0);
}

#[test]
fn watch_says_what_still_runs_and_what_has_ended_meanwhile() {
    let slow = "until test -e quick || ! test -e site.yaml; do sleep 0.1; done; touch done";
    let sandbox = Sandbox::new(&format!(
        "files: {{a: {{content: x}}}}\ncommands: {{c: {{check: test -e done, apply: '{slow}'}}}}\n"
    ));
    let mut watching = sandbox.start(&["watch"]);
    watching.until("command/c: apply has been running for ");
    watching.until("+ file/a created");
    sandbox.write("quick", "");
    watching.until("+ command/c created");
    assert_eq!(watching.log().matches("file/a created").count(), 1, "{}", watching.log());
    watching.signal(Signal::SIGTERM);
    assert_eq!(watching.wait(), 0);
}

#[test]
fn a_manifest_is_not_read_while_somebody_writes_it_however_long_that_takes() {
    let sandbox = Sandbox::new("files:\n  a: {content: x}\n  b: {content: x}\n");
    let mut watching = sandbox.start(&["watch", "--interval", "100ms"]);
    eventually("both are there", || sandbox.path("a").exists() && sandbox.path("b").exists());
    let before = fs::metadata(sandbox.path("b")).unwrap().ino();
    let mut file = fs::File::create(sandbox.path("site.yaml")).unwrap();
    file.write_all(b"name: site\nfiles:\n  a: {content: x}\n").unwrap();
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(6500) {
        file.write_all(b"  # there is more to come\n").unwrap();
        thread::sleep(Duration::from_millis(50));
    }
    watching.until("manifests are being written; the last good ones stand");
    assert!(sandbox.path("b").exists(), "{}", watching.log());
    file.write_all(b"  b: {content: x}\n  c: {content: x}\n").unwrap();
    drop(file);
    eventually("the last one is read", || sandbox.path("c").exists());
    assert_eq!(fs::metadata(sandbox.path("b")).unwrap().ino(), before, "{}", watching.log());
    watching.signal(Signal::SIGTERM);
    assert_eq!(watching.wait(), 0);
}

#[test]
fn a_manifest_that_is_being_saved_when_watch_starts_is_read_when_that_is_done() {
    let (half, whole) = ("files: {a: {content: x}}\n", "files: {a: {content: x}, b: {content: x}}\n");
    // Where the machine was too slow to save it within the quiet period, it is tried again.
    let is_seen = (0..100).any(|_| {
        let sandbox = Sandbox::new(whole);
        sandbox.ok(&["apply", "--yes"]);
        let before = fs::metadata(sandbox.path("b")).unwrap().ino();
        sandbox.declare(half);
        let (began, mut saved, mut was_quick) = (Instant::now(), Instant::now(), true);
        let mut watching = sandbox.start(&["watch"]);
        while was_quick && began.elapsed() < Duration::from_millis(500) {
            thread::sleep(Duration::from_millis(10));
            sandbox.declare(half);
            was_quick &= saved.elapsed() < Duration::from_millis(150);
            saved = Instant::now();
        }
        sandbox.declare(whole);
        was_quick &= saved.elapsed() < Duration::from_millis(150);
        watching.until("watching site: ");
        watching.signal(Signal::SIGTERM);
        assert_eq!(watching.wait(), 0);
        if was_quick {
            assert!(watching.log().contains("watching site: 2 items declared"), "{}", watching.log());
            assert_eq!(fs::metadata(sandbox.path("b")).unwrap().ino(), before);
        }
        was_quick
    });
    assert!(is_seen, "the machine was never quick enough");
}

#[test]
fn watch_rests_while_an_item_is_held_back() {
    let with = |content: &str| {
        format!(
            "files:\n  f: {{content: '{content}'}}\n  a: {{content: x, after: [command.c]}}\ncommands:\n  \
             c: {{apply: test -e ok, redo_on: [file.f]}}\n  \
             counted: {{check: echo >> checks, apply: 'true'}}\n"
        )
    };
    let sandbox = Sandbox::new(&with("1"));
    sandbox.write("ok", "");
    let mut watching = sandbox.start(&["watch", "--interval", "1h"]);
    watching.until("+ file/a created");
    fs::remove_file(sandbox.path("ok")).unwrap();
    sandbox.declare(&with("2"));
    watching.until("! command/c failed");
    sandbox.write("a", "y");
    watching.until("! file/a was changed");
    let checks = || sandbox.read("checks").lines().count();
    let before = checks();
    thread::sleep(Duration::from_secs(2));
    let looks = checks() - before;
    assert!(looks < 10, "everything was read {looks} times in two seconds");
    assert_eq!(sandbox.read("a"), "y", "it is held back");
    watching.signal(Signal::SIGTERM);
    assert_eq!(watching.wait(), 0);
}

/// A check that hangs as long as there is no file `quick`, and notes that it does.
const HANGS: &str = "commands: {c: {check: 'test -e quick || { touch looked; sleep 900; }', check_timeout: 15m, apply: 'true'}}\n";

#[test]
fn a_signal_that_comes_while_everything_is_read_ends_watch_before_anything_is_begun() {
    for only_reporting in [&[][..], &["--report-only"]] {
        let sandbox = Sandbox::new(HANGS);
        sandbox.write("quick", "");
        sandbox.ok(&["apply", "--yes"]);
        fs::remove_file(sandbox.path("quick")).unwrap();
        sandbox.declare(&format!("{HANGS}files: {{a: {{content: x}}}}\n"));
        let mut watching = sandbox.start(&[&["watch"], only_reporting].concat());
        eventually("it is read", || sandbox.path("looked").exists());
        let asked = Instant::now();
        watching.signal(Signal::SIGTERM);
        assert_eq!(watching.wait(), 0, "{}", watching.log());
        assert!(asked.elapsed() < LIMIT, "it waited for the check");
        assert!(watching.log().contains("stopped"), "{}", watching.log());
        assert!(!sandbox.path("a").exists(), "a run was begun: {}", watching.log());
    }
}

#[test]
fn watching_without_changes_goes_on_where_watching_does() {
    let good =
        "root: r\nfiles: {f: {content: x}}\ncommands: {counted: {check: echo >> checks, apply: 'true'}}\n";
    let sandbox = Sandbox::new(good);
    fs::create_dir(sandbox.path("r")).unwrap();
    sandbox.ok(&["apply", "--yes"]);
    let mut watching = sandbox.start(&["watch", "--report-only", "--interval", "100ms"]);
    watching.until("watching site");
    // The root is gone for a while.
    fs::rename(sandbox.path("r"), sandbox.path("elsewhere")).unwrap();
    watching.until("nothing is changed until this is mended");
    fs::rename(sandbox.path("elsewhere"), sandbox.path("r")).unwrap();
    sandbox.write("r/f", "changed");
    watching.until("! file/f was changed");
    let reports = || watching.log().matches("the last good manifests stand until this is mended").count();
    let before = reports();
    // Manifests of another set, and wrong ones; each is said once.
    sandbox.write("site.yaml", &format!("name: other\n{good}"));
    watching.until("the set has another name or another root now");
    sandbox.declare("files: [a]\n");
    watching.until("is a map of items by name");
    let looks = || sandbox.read("r/checks").lines().count();
    let some = looks();
    eventually("it goes on", || looks() > some + 3);
    assert_eq!(reports() - before, 2, "{}", watching.log());
    sandbox.declare(good);
    watching.until("the manifests have changed");
    watching.signal(Signal::SIGTERM);
    assert_eq!(watching.wait(), 0, "{}", watching.log());
}
