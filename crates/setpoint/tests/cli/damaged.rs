//! A damaged database: what its copy holds is used, and every command says so.

use std::fs;

use nix::sys::signal::Signal;

use crate::sandbox::Sandbox;

/// A sandbox in which two runs were made, and the database damaged.
fn damaged() -> Sandbox {
    let sandbox = Sandbox::new("files: {f: {content: x}}\n");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare("files: {f: {content: y}}\n");
    sandbox.ok(&["apply", "--yes"]);
    let length = fs::metadata(sandbox.path(".setpoint/state.redb")).unwrap().len();
    fs::write(sandbox.path(".setpoint/state.redb"), vec![0; usize::try_from(length).unwrap()]).unwrap();
    sandbox
}

const WARNING: &str = "what it held when it was last copied is used instead";

#[test]
fn every_command_that_reads_a_damaged_state_says_so() {
    let sandbox = damaged();
    for args in [
        &["plan"][..],
        &["state", "list"],
        &["state", "show", "file.f"],
        &["explain", "file.f"],
        &["graph", "--plan"],
        &["history"],
        &["show"],
        &["show", "1"],
    ] {
        let ran = sandbox.run(args);
        assert_eq!(ran.code(), 0, "{args:?}: {}", ran.err());
        assert!(ran.err().contains(WARNING), "{args:?}: {}{}", ran.out(), ran.err());
    }
    let mut watching = sandbox.start(&["watch", "--report-only"]);
    watching.until(WARNING);
    watching.signal(Signal::SIGTERM);
    assert_eq!(watching.wait(), 0, "{}", watching.log());
}

#[test]
fn the_history_is_read_from_the_copy_where_the_database_is_gone() {
    let sandbox = damaged();
    fs::remove_file(sandbox.path(".setpoint/state.redb")).unwrap();
    let ran = sandbox.run(&["history"]);
    assert_eq!(ran.out().lines().count(), 2, "{}", ran.out());
    assert!(ran.err().contains(WARNING), "{}", ran.err());
}

#[test]
fn watching_without_changes_goes_on_after_an_error_that_may_pass() {
    let sandbox = Sandbox::new("files: {f: {content: x}}\n");
    sandbox.ok(&["apply", "--yes"]);
    let mut watching = sandbox.start(&["watch", "--report-only", "--interval", "100ms"]);
    watching.until("watching site");
    let state = sandbox.path(".setpoint/state.redb");
    // A directory is no database, and is not damaged either.
    fs::rename(&state, sandbox.path("moved")).unwrap();
    fs::create_dir(&state).unwrap();
    watching.until("it is tried again in 1 s");
    fs::remove_dir(&state).unwrap();
    fs::rename(sandbox.path("moved"), &state).unwrap();
    sandbox.write("f", "changed");
    watching.until("file/f was changed");
    watching.signal(Signal::SIGTERM);
    assert_eq!(watching.wait(), 0, "{}", watching.log());
}

#[test]
fn the_history_of_a_damaged_database_without_a_copy_is_an_error() {
    let sandbox = damaged();
    fs::remove_file(sandbox.path(".setpoint/state.last")).unwrap();
    for args in [&["history"][..], &["show"], &["show", "1"]] {
        let ran = sandbox.run(args);
        assert_ne!(ran.code(), 0, "{args:?}: {}", ran.out());
        assert!(ran.err().contains("there is no copy of it"), "{args:?}: {}", ran.err());
        assert!(!ran.err().contains(WARNING), "{args:?}: {}", ran.err());
    }
}
