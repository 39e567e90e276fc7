//! `watch`: what it refuses, what it waits for, and what it says meanwhile.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

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
    let (half, whole) = ("files: {a: {content: x}}\n", "files: {a: {content: x}, b: {content: x}}\n");
    let mut seen = 0;
    // Where the machine was too slow to save it within the quiet period, it is tried again.
    for _ in 0..100 {
        let sandbox = Sandbox::new(whole);
        let mut watching = sandbox.start(&["watch", "--interval", "100ms"]);
        eventually("both are there", || sandbox.path("a").exists() && sandbox.path("b").exists());
        let inode = || fs::metadata(sandbox.path("b")).map(|file| file.ino()).ok();
        let before = inode();
        // Half of it, for less than the quiet period of 200 ms, and then all.
        let began = Instant::now();
        sandbox.declare(half);
        thread::sleep(Duration::from_millis(120));
        sandbox.declare(whole);
        let was_quick = began.elapsed() < Duration::from_millis(180);
        thread::sleep(Duration::from_millis(120));
        sandbox.declare("files: {a: {content: x}, b: {content: x}, c: {content: x}}\n");
        eventually("the last one is read", || sandbox.path("c").exists());
        if was_quick {
            seen += 1;
            assert_eq!(inode(), before, "{}", watching.log());
            assert!(!watching.log().contains("file/b deleted"), "{}", watching.log());
        }
        watching.signal(Signal::SIGTERM);
        assert_eq!(watching.wait(), 0);
        if seen == 5 {
            break;
        }
    }
    assert_ne!(seen, 0, "the machine was never quick enough");
}

#[test]
fn watch_says_what_still_runs_and_what_has_ended_meanwhile() {
    let slow = "for i in $(seq 300); do test -e quick && break; sleep 0.1; done; touch done";
    let sandbox = Sandbox::new(&format!(
        "files: {{a: {{content: x}}}}\ncommands: {{c: {{check: test -e done, apply: '{slow}'}}}}\n"
    ));
    let mut watching = sandbox.start(&["watch"]);
    watching.until("command/c: apply has been running for 2 s");
    assert!(watching.log().contains("+ file/a created"), "{}", watching.log());
    sandbox.write("quick", "");
    watching.until("+ command/c created");
    assert_eq!(watching.log().matches("file/a created").count(), 1, "{}", watching.log());
    watching.signal(Signal::SIGTERM);
    assert_eq!(watching.wait(), 0);
}
