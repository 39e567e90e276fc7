//! A damaged database: what its copy holds is used, and every command says so.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::signal::Signal;
use setpoint_testutils::{need, part};

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

/// Neither the database nor its copy can be used.
const NEITHER: &str = "its copy can't be used either";

#[test]
fn where_the_copy_is_damaged_too_every_command_says_so_and_none_says_that_nothing_is_lost() {
    for is_gone in [false, true] {
        let sandbox = damaged();
        fs::OpenOptions::new()
            .write(true)
            .open(sandbox.path(".setpoint/state.last"))
            .unwrap()
            .set_len(100)
            .unwrap();
        if is_gone {
            fs::remove_file(sandbox.path(".setpoint/state.redb")).unwrap();
        }
        for args in [
            &["plan"][..],
            &["apply", "--yes"],
            &["destroy", "--yes"],
            &["history"],
            &["show"],
            &["show", "1"],
            &["explain", "file.f"],
            &["state", "list"],
            &["state", "show", "file.f"],
            &["state", "kept"],
            &["state", "rm", "file.f"],
            &["state", "mv", "file.f", "file.g"],
            &["state", "accept"],
        ] {
            let ran = sandbox.run(args);
            assert_eq!(ran.code(), 1, "{args:?}: {}", ran.out());
            assert!(ran.err().contains(NEITHER), "{args:?}: {}", ran.err());
            assert!(
                ran.err().contains("hint: put back `state.redb` from a backup"),
                "{args:?}: {}",
                ran.err()
            );
        }
        assert_eq!(sandbox.read("f"), "y");
    }
}

#[test]
fn who_mends_a_damaged_state_is_told_that_its_copy_is_used() {
    for args in [
        &["state", "kept"][..],
        &["state", "mv", "file.f", "file.g"],
        &["state", "unprotect", "file.f"],
        &["state", "accept"],
        &["state", "rm", "file.f"],
    ] {
        let ran = damaged().run(args);
        assert_eq!(ran.code(), 0, "{args:?}: {}", ran.err());
        assert!(ran.err().contains(WARNING), "{args:?}: {}{}", ran.out(), ran.err());
    }
}

#[test]
fn a_state_that_may_not_be_looked_at_is_not_one_that_is_not_there() {
    need!(part::root("another user"));
    let sandbox = Sandbox::new("files: {f: {content: x}}\n");
    sandbox.ok(&["apply", "--yes"]);
    // This program may be in a folder that another user can't look into.
    let program = sandbox.path("setpoint");
    fs::copy(env!("CARGO_BIN_EXE_setpoint"), &program).unwrap();
    for (path, mode) in [("", 0o777), ("site.yaml", 0o644), (".setpoint", 0)] {
        fs::set_permissions(sandbox.path(path), fs::Permissions::from_mode(mode)).unwrap();
    }
    for args in [&["plan"][..], &["apply", "--yes"], &["destroy", "--yes"], &["state", "list"], &["history"]]
    {
        let mut command = Command::new(&program);
        let ran = command.current_dir(sandbox.root()).args(args).uid(65534).gid(65534).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(1), "{args:?}: {}", String::from_utf8_lossy(&ran.stdout));
        assert!(said.contains(".setpoint") && said.contains("Permission denied"), "{args:?}: {said}");
    }
    assert_eq!(sandbox.read("f"), "x");
}
