//! A disk without room for the state.

use std::fs;

use nix::sys::signal::Signal;
use setpoint_testutils::{need, part};

use crate::places::Mounted;
use crate::sandbox::{Sandbox, eventually};

/// A sandbox with a small file system for its state.
pub(crate) fn with_small_state(manifest: &str) -> (Sandbox, Mounted) {
    let sandbox = Sandbox::new(manifest);
    fs::create_dir(sandbox.path("small")).unwrap();
    let mounted = Mounted::new(sandbox.path("small"), "16m");
    (sandbox, mounted)
}

#[test]
fn watch_saves_later_what_it_could_not_save_on_a_full_disk() {
    need!(part::root("a file system of a given size"));
    let (sandbox, _mounted) = with_small_state("files:\n  f: {content: x}\n");
    let state = &["--state", "small/state"][..];
    let mut watching = sandbox.start(&[&["watch"], state].concat());
    eventually("it is applied", || sandbox.path("f").exists());
    eventually("that is saved", || sandbox.ok(&[&["history"], state].concat()).contains("1 created"));
    // The disk is filled while an operation runs, so that it is done and can't be saved.
    sandbox.declare(
        "files:\n  f: {content: x}\ncommands:\n  fill: {check: test -e done, \
         apply: 'dd if=/dev/zero of=small/filler bs=64k 2> /dev/null; touch done'}\n",
    );
    watching.until("it is tried again in");
    assert!(sandbox.path("done").exists());
    let list = || sandbox.run(&[&["state", "list"], state].concat()).out();
    fs::remove_file(sandbox.path("small/filler")).unwrap();
    eventually("what was done is saved", || {
        let shown = sandbox.run(&[&["history", "--json"], state].concat()).out();
        shown.lines().any(|line| line.contains("\"fill\"")) && list().contains("command/fill")
    });
    watching.signal(Signal::SIGTERM);
    assert_eq!(watching.wait(), 0, "{}", watching.log());
    assert!(!list().contains("cut off"), "{}", list());
    let plan = sandbox.ok(&[&["plan"], state].concat());
    assert!(plan.contains("nothing to do"), "{plan}");
}

/// Fills a file system, in smaller and smaller pieces.
pub(crate) fn fill(path: &std::path::Path) {
    let mut filler = fs::File::create(path).unwrap();
    for size in [65536, 4096, 1] {
        while std::io::Write::write_all(&mut filler, &vec![0; size]).is_ok() {}
    }
}

#[test]
fn watch_says_that_the_journal_has_no_room_and_goes_on_when_it_has() {
    need!(part::root("a file system of a given size"));
    let (sandbox, _mounted) = with_small_state("files:\n  f: {content: x}\n");
    let state = &["--state", "small/state"][..];
    let mut watching = sandbox.start(&[&["watch"], state].concat());
    eventually("that is saved", || sandbox.run(&[&["history"], state].concat()).out().contains("1 created"));
    fill(&sandbox.path("small/filler"));
    sandbox.declare("files:\n  f: {content: x}\n  g: {content: x}\n");
    watching.until("it is tried again in");
    assert!(!sandbox.path("g").exists(), "nothing is begun that is not journalled");
    fs::remove_file(sandbox.path("small/filler")).unwrap();
    eventually("it goes on", || sandbox.path("g").exists());
    watching.signal(Signal::SIGTERM);
    assert_eq!(watching.wait(), 0, "{}", watching.log());
}

#[test]
fn a_state_that_can_not_be_written_says_what_to_look_at_and_not_to_move_it_away() {
    need!(part::root("a file system of a given size"));
    let (sandbox, _mounted) = with_small_state("files:\n  f: {content: x}\n");
    let state = &["--state", "small/state"][..];
    sandbox.ok(&[&["apply", "--yes"], state].concat());
    sandbox.declare("files:\n  f: {content: y}\n");
    fill(&sandbox.path("small/filler"));
    let failed = sandbox.run(&[&["apply", "--yes"], state].concat());
    assert_eq!(failed.code(), 1, "{}", failed.out());
    assert!(failed.err().contains("see that the disk has room"), "{}{}", failed.out(), failed.err());
    assert!(!failed.err().contains("move the state"), "{}", failed.err());
    // It heals by itself.
    fs::remove_file(sandbox.path("small/filler")).unwrap();
    sandbox.ok(&[&["apply", "--yes"], state].concat());
    assert_eq!(sandbox.read("f"), "y");
}

#[test]
fn a_disk_that_is_too_small_for_the_state_loses_nothing_and_goes_on_when_there_is_room() {
    need!(part::root("a file system of a given size"));
    for size in ["256k", "1m", "2m", "3m", "4m"] {
        let sandbox = Sandbox::new("files:\n  f: {content: ours, adopt: true}\n  g: {content: x}\n");
        sandbox.write("f", "theirs");
        fs::create_dir(sandbox.path("small")).unwrap();
        let mounted = Mounted::new(sandbox.path("small"), size);
        let state = &["--state", "small/state"][..];
        let run = |args: &[&str]| sandbox.run(&[args, state].concat());
        let explains = |ran: &crate::sandbox::Ran| {
            let text = ran.out() + &ran.err();
            text.contains("No space left") || text.contains("see that the disk has room")
        };
        for _ in 0..3 {
            let applied = run(&["apply", "--yes"]);
            assert!(applied.code() == 0 || explains(&applied), "{size}: {}{}", applied.out(), applied.err());
            crate::full::fill(&sandbox.path("small/filler"));
            sandbox.declare("files:\n  f: {content: ours again, adopt: true}\n  h: {content: x}\n");
            for args in [&["apply", "--yes"][..], &["destroy", "--yes"], &["plan"]] {
                let ran = run(args);
                assert!(ran.code() == 0 || explains(&ran), "{size}: {args:?}: {}{}", ran.out(), ran.err());
            }
            fs::remove_file(sandbox.path("small/filler")).unwrap();
        }
        // There is room again.
        let path = sandbox.path("small");
        let grown = std::process::Command::new("mount").args(["-o", "remount,size=32m"]).arg(&path).status();
        assert!(grown.unwrap().success());
        for args in [&["apply", "--yes"][..], &["destroy", "--yes"]] {
            let ran = run(args);
            assert_eq!(ran.code(), 0, "{size}: {args:?}: {}{}", ran.out(), ran.err());
        }
        assert_eq!(sandbox.read("f"), "theirs", "{size}");
        assert_eq!(sandbox.tree().iter().filter(|path| !path.starts_with("small")).count(), 1, "{size}");
        drop(mounted);
    }
}
