//! A process that restarts with something else stays as it is where that can't be changed.

use std::fs;
use std::os::unix::fs::MetadataExt;

use setpoint_testutils::{need, part};

use crate::places::Mounted;
use crate::processes::Processes;
use crate::sandbox::eventually;

/// The command of a process that does not come up, however long its shell takes on a busy machine.
const NEVER_UP: &str = "exit 3, ready: {file: never, timeout: 5m}";

/// A process that notes its id and what it has read, and a file on a small disk that it refers to.
fn declared(source: &str, command: &str) -> String {
    format!(
        "files:\n  conf: {{path: disk/conf, source: {source}}}\nprocesses:\n  \
         web: {{command: 'echo $$ >> pids; wc -c < ${{file.conf.path}} >> read; exec sleep {command}'}}\n"
    )
}

fn with_small_disk() -> (Processes, Mounted) {
    let sandbox = Processes::new("");
    fs::create_dir(sandbox.path("disk")).unwrap();
    let mounted = Mounted::new(sandbox.path("disk"), "64k");
    sandbox.write("small", "four");
    sandbox.write("other", "five!");
    fs::write(sandbox.path("large"), vec![b'x'; 1 << 20]).unwrap();
    (sandbox, mounted)
}

#[test]
fn a_process_stays_up_with_the_old_file_where_the_new_one_can_not_be_written() {
    need!(part::root("a file system of a given size"));
    for command in ["600", "601"] {
        let (sandbox, _mounted) = with_small_disk();
        sandbox.declare(&declared("small", "600"));
        sandbox.ok(&["apply", "--yes"]);
        let pid = sandbox.pids(1)[0];
        sandbox.declare(&declared("large", command));
        let failed = sandbox.run(&["apply", "--yes"]);
        assert_eq!(failed.code(), 1, "{}", failed.out());
        assert!(failed.out().contains("file/conf failed to modify"), "{}", failed.out());
        assert!(!failed.out().contains("process/web removed"), "{}", failed.out());
        assert_eq!((sandbox.written(), sandbox.read("disk/conf")), (vec![pid], "four".to_owned()));
        assert!(sandbox.ok(&["state", "show", "process.web"]).contains(&format!("\n  pid: {pid}\n")));
        // The plan says what it waits for.
        let plan = sandbox.ok(&["plan"]);
        assert!(plan.contains("± process/web"), "{plan}");
        sandbox.declare(&declared("other", command));
        sandbox.ok(&["apply", "--yes"]);
        sandbox.pids(2);
        eventually("it has read the other one", || sandbox.read("read") == "4\n5\n");
        assert!(sandbox.ok(&["plan"]).contains("nothing to do"));
        sandbox.ok(&["destroy", "--yes"]);
    }
}

#[test]
fn a_process_that_waits_for_a_file_that_failed_is_named_as_waiting() {
    need!(part::root("a file system of a given size"));
    for command in ["600", "601"] {
        let (sandbox, _mounted) = with_small_disk();
        sandbox.declare(&declared("small", "600"));
        sandbox.ok(&["apply", "--yes"]);
        sandbox.declare(&declared("large", command));
        let failed = sandbox.run(&["apply", "--yes"]);
        assert!(failed.out().contains("1 failed"), "{}", failed.out());
        let waits = "process/web waits for what failed, and is as it was.";
        assert!(failed.out().contains(waits), "{}", failed.out());
        sandbox.ok(&["destroy", "--yes"]);
    }
}

#[test]
fn a_process_is_not_started_with_the_old_file_where_the_new_one_can_not_be_written() {
    need!(part::root("a file system of a given size"));
    let (sandbox, _mounted) = with_small_disk();
    sandbox.declare("files:\n  conf: {path: disk/conf, source: small}\n");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare(&declared("large", "600"));
    let failed = sandbox.run(&["apply", "--yes"]);
    assert_eq!(failed.code(), 1, "{}", failed.out());
    assert_eq!(sandbox.written(), [0; 0], "{}", failed.out());
    sandbox.declare(&declared("other", "600"));
    sandbox.ok(&["apply", "--yes"]);
    sandbox.pids(1);
    eventually("it has read it", || sandbox.read("read") == "5\n");
    sandbox.ok(&["destroy", "--yes"]);
}

#[test]
fn a_process_stays_up_where_its_file_is_gone_and_can_not_be_written_again() {
    need!(part::root("a file system of a given size"));
    let (sandbox, _mounted) = with_small_disk();
    sandbox.declare(&declared("small", "600"));
    sandbox.ok(&["apply", "--yes"]);
    let pid = sandbox.pids(1)[0];
    fs::remove_file(sandbox.path("disk/conf")).unwrap();
    crate::full::fill(&sandbox.path("disk/filler"));
    let failed = sandbox.run(&["apply", "--yes"]);
    assert_eq!(failed.code(), 1, "{}", failed.out());
    assert_eq!(sandbox.written(), [pid], "{}", failed.out());
    assert!(sandbox.ok(&["state", "show", "process.web"]).contains(&format!("\n  pid: {pid}\n")));
    fs::remove_file(sandbox.path("disk/filler")).unwrap();
    sandbox.ok(&["apply", "--yes"]);
    // What came back is not what it has read.
    sandbox.pids(2);
    sandbox.ok(&["destroy", "--yes"]);
}

#[test]
fn a_process_stays_up_where_the_one_that_it_comes_after_does_not_come_up_again() {
    // Another command restarts what only comes after it; what restarts with it does so by itself.
    for (tie, changed) in [("after", "601"), ("restart_on", "600")] {
        let web = |database: &str, web: &str| {
            format!(
                "processes:\n  database: {{command: {database}}}\n  \
                 web: {{command: 'echo $$ >> pids; exec sleep {web}', {tie}: [process.database]}}\n"
            )
        };
        let sandbox = Processes::new(&web("sleep 600", "600"));
        sandbox.ok(&["apply", "--yes"]);
        sandbox.declare(&web(NEVER_UP, changed));
        assert_eq!(sandbox.run(&["apply", "--yes"]).code(), 1);
        // It runs as it was.
        sandbox.pids(1);
        sandbox.declare(&web("sleep 601", changed));
        sandbox.ok(&["apply", "--yes"]);
        sandbox.pids(2);
        assert!(sandbox.ok(&["plan"]).contains("nothing to do"));
        sandbox.ok(&["destroy", "--yes"]);
    }
}

#[test]
fn a_script_is_there_until_the_undo_that_needs_it_has_succeeded() {
    let sandbox = Processes::new(
        "files:\n  script: {content: 'test -e allowed && touch undone'}\ncommands:\n  \
         job: {apply: 'true', undo: 'sh ${file.script.path}'}\n",
    );
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.run(&["destroy", "--yes"]).code(), 1);
    assert!(sandbox.path("script").exists());
    sandbox.write("allowed", "");
    sandbox.ok(&["destroy", "--yes"]);
    assert!(sandbox.path("undone").exists() && !sandbox.path("script").exists());
}

#[test]
fn what_refers_to_a_process_stays_while_that_restarts_and_where_it_does_not_come_up() {
    let with = |web: &str| {
        format!(
            "processes:\n  web: {{command: {web}, log: web.log}}\n  \
             other: {{command: 'echo $$ >> pids; echo ${{process.web.log}}; exec sleep 600'}}\n\
             files:\n  rotate: {{template: '${{process.web.log}} weekly'}}\n\
             symlinks:\n  log: {{target: '${{process.web.log}}'}}\n"
        )
    };
    let sandbox = Processes::new(&with("sleep 600"));
    sandbox.ok(&["apply", "--yes"]);
    let inodes = || {
        ["rotate", "log"].map(|name| fs::symlink_metadata(sandbox.path(name)).map(|found| found.ino()).ok())
    };
    let before = inodes();
    assert!(before.iter().all(Option::is_some));
    sandbox.declare(&with(NEVER_UP));
    assert_eq!(sandbox.run(&["apply", "--yes"]).code(), 1);
    assert_eq!((inodes(), sandbox.pids(1).len()), (before, 1), "all of it is as it was");
    sandbox.declare(&with("sleep 601"));
    let applied = sandbox.ok(&["apply", "--yes"]);
    assert_eq!((inodes(), sandbox.written().len()), (before, 1), "{applied}");
    assert!(sandbox.ok(&["plan"]).contains("nothing to do"));
    sandbox.ok(&["destroy", "--yes"]);
}
