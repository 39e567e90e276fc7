//! Whose something is: what a person brought about is never undone, replaced or forgotten, whatever failed, was killed, or was
//! called differently before.

use std::fs;
use std::os::unix::fs::symlink;

use nix::sys::signal::Signal;

use crate::processes::Processes;
use crate::sandbox::{Sandbox, eventually};

/// A command that brings a directory about, waits as long as there is a file `slow`, and is applied again with another file.
fn database(name: &str, version: u32, check: &str) -> String {
    format!(
        "files: {{v: {{content: '{version}'}}}}
commands:
  {name}: {{{check}apply: 'mkdir -p db; touch at; while test -e slow && test -e site.yaml; do sleep 0.05; done',
    undo: rm -rf db, redo_on: [file.v]}}
"
    )
}

#[test]
fn a_command_whose_run_was_killed_is_known_by_its_new_name_and_not_undone() {
    for check in ["check: test -d db, ", ""] {
        for watches in [false, true] {
            let sandbox = Sandbox::new(&database("a", 1, check));
            sandbox.ok(&["apply", "--yes"]);
            sandbox.write("db/rows", "precious");
            sandbox.write("slow", "");
            fs::remove_file(sandbox.path("at")).unwrap();
            sandbox.declare(&database("a", 2, check));
            let mut applying = sandbox.start(&["apply", "--yes"]);
            eventually("it is applied again", || sandbox.path("at").exists());
            applying.signal(Signal::SIGKILL);
            let _ = applying.child.wait();
            fs::remove_file(sandbox.path("slow")).unwrap();
            sandbox.declare(&database("b", 2, check));
            let plan = sandbox.ok(&["plan"]);
            assert!(plan.contains("command/a") && !plan.contains("its `undo` is run"), "{check:?}: {plan}");
            if watches {
                let mut watching = sandbox.start(&["watch"]);
                eventually("it is known by its new name", || {
                    sandbox.ok(&["state", "list"]).contains("command/b\n")
                });
                watching.signal(Signal::SIGTERM);
                assert_eq!(watching.wait(), 0, "{}", watching.log());
            } else {
                sandbox.ok(&["apply", "--yes"]);
            }
            assert_eq!(sandbox.read("db/rows"), "precious", "{check:?}");
            let list = sandbox.ok(&["state", "list"]);
            assert!(list.contains("command/b\n") && !list.contains("command/a"), "{list}");
            assert!(sandbox.ok(&["plan"]).contains("nothing to do"));
        }
    }
}

#[test]
fn nothing_is_made_by_a_new_name_as_long_as_nobody_can_say_what_became_of_the_old_one() {
    // Where it is not stuck, the check takes far less than that, also on a busy machine.
    let manifest = |name: &str| {
        format!(
            "commands:\n  {name}: {{check: 'test ! -e stuck || {{ sleep 900; }}; test -d db', check_timeout: 2s, \
             apply: 'mkdir db; touch at; while test -e slow && test -e site.yaml; do sleep 0.05; done', undo: rm -rf db}}\n"
        )
    };
    let sandbox = Sandbox::new(&manifest("a"));
    sandbox.write("slow", "");
    let mut applying = sandbox.start(&["apply", "--yes"]);
    eventually("it is applied", || sandbox.path("at").exists());
    applying.signal(Signal::SIGKILL);
    let _ = applying.child.wait();
    fs::remove_file(sandbox.path("slow")).unwrap();
    sandbox.write("db/rows", "precious");
    sandbox.write("stuck", "");
    sandbox.declare(&manifest("b"));
    let refused = sandbox.run(&["apply", "--yes"]);
    assert_eq!(refused.code(), 1, "{}{}", refused.out(), refused.err());
    let said = format!("{}{}", refused.out(), refused.err());
    assert!(said.contains("it was called command/a before, which can't be read"), "{said}");
    fs::remove_file(sandbox.path("stuck")).unwrap();
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.ok(&["state", "list"]), "command/b\n");
    assert_eq!(sandbox.read("db/rows"), "precious");
}

#[test]
fn a_protected_file_has_another_name_also_after_a_run_that_was_killed() {
    let manifest = |name: &str, version: u32| {
        format!(
            "files: {{{name}: {{path: f, content: '{version}', prevent_destroy: true}}}}
commands: {{slow: {{apply: 'touch at; while test -e slow && test -e site.yaml; do sleep 0.05; done', redo_on: [file.{name}]}}}}
"
        )
    };
    let sandbox = Sandbox::new(&manifest("a", 1));
    sandbox.ok(&["apply", "--yes"]);
    fs::remove_file(sandbox.path("at")).unwrap();
    sandbox.write("slow", "");
    sandbox.declare(&manifest("a", 2));
    let mut applying = sandbox.start(&["apply", "--yes"]);
    eventually("it is applied again", || sandbox.path("at").exists());
    applying.signal(Signal::SIGKILL);
    let _ = applying.child.wait();
    fs::remove_file(sandbox.path("slow")).unwrap();
    sandbox.declare(&manifest("b", 2));
    sandbox.ok(&["apply", "--yes"]);
    let list = sandbox.ok(&["state", "list"]);
    assert!(list.contains("file/b  (protected)") && !list.contains("file/a"), "{list}");
}

#[test]
fn what_a_person_brought_about_after_a_failed_apply_is_theirs() {
    let sandbox = Sandbox::new(
        "commands: {db: {check: test -d db, apply: 'test -e ready && mkdir db', undo: rm -rf db}}\n",
    );
    assert_eq!(sandbox.run(&["apply", "--yes"]).code(), 1);
    fs::create_dir(sandbox.path("db")).unwrap();
    sandbox.write("db/rows", "precious");
    sandbox.write("ready", "");
    // `apply` would fail where it is there already.
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.ok(&["state", "list"]), "command/db  (adopted)\n");
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.read("db/rows"), "precious");
}

#[test]
fn what_a_failed_apply_brought_about_is_ours() {
    let sandbox = Sandbox::new(
        "commands: {db: {check: test -d db, apply: 'mkdir -p db; test -e ready', undo: rm -rf db}}\n",
    );
    assert_eq!(sandbox.run(&["apply", "--yes"]).code(), 1);
    sandbox.write("ready", "");
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.ok(&["state", "list"]), "command/db\n");
    sandbox.ok(&["destroy", "--yes"]);
    assert!(!sandbox.path("db").exists());
}

#[test]
fn what_a_person_brought_back_after_a_run_had_noted_that_it_is_gone_is_theirs() {
    let sandbox = Sandbox::new(
        "commands: {db: {check: test -d db, apply: 'test -e ready && mkdir db', undo: rm -rf db}}\n",
    );
    sandbox.write("ready", "");
    sandbox.ok(&["apply", "--yes"]);
    fs::remove_dir(sandbox.path("db")).unwrap();
    fs::remove_file(sandbox.path("ready")).unwrap();
    assert_eq!(sandbox.run(&["apply", "--yes"]).code(), 1);
    fs::create_dir(sandbox.path("db")).unwrap();
    sandbox.write("db/rows", "precious");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.read("db/rows"), "precious");
}

#[test]
fn a_state_that_is_declared_in_the_place_of_another_and_holds_already_is_theirs() {
    let manifest = |path: &str| {
        format!("commands: {{db: {{check: test -d {path}, apply: mkdir {path}, undo: rm -rf {path}}}}}\n")
    };
    let sandbox = Sandbox::new(&manifest("db1"));
    sandbox.ok(&["apply", "--yes"]);
    fs::create_dir(sandbox.path("db2")).unwrap();
    sandbox.write("db2/rows", "precious");
    sandbox.declare(&manifest("db2"));
    sandbox.ok(&["apply", "--yes"]);
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.read("db2/rows"), "precious");
}

#[test]
fn what_two_commands_bring_about_is_not_undone_as_long_as_one_of_them_is_declared() {
    let command = "{check: test -d db, apply: mkdir db, undo: rm -rf db}";
    let sandbox = Sandbox::new(&format!("commands: {{a: {command}}}\n"));
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare(&format!("commands: {{a: {command}, b: {command}}}\n"));
    sandbox.ok(&["apply", "--yes"]);
    sandbox.write("db/rows", "precious");
    sandbox.declare(&format!("commands: {{b: {command}}}\n"));
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.read("db/rows"), "precious");
    assert_eq!(sandbox.ok(&["state", "list"]), "command/b\n");
    sandbox.ok(&["destroy", "--yes"]);
    assert!(!sandbox.path("db").exists());
}

#[test]
fn another_check_is_asked_and_what_was_made_here_stays_ours() {
    let manifest = |check: &str| {
        format!("commands: {{db: {{check: '{check}', apply: 'mkdir -p db; touch db/x', undo: rm -rf db}}}}\n")
    };
    let sandbox = Sandbox::new(&manifest("test -d db"));
    sandbox.ok(&["apply", "--yes"]);
    fs::remove_file(sandbox.path("db/x")).unwrap();
    sandbox.declare(&manifest("test -e db/x"));
    sandbox.ok(&["apply", "--yes"]);
    assert!(sandbox.path("db/x").exists());
    sandbox.declare(&manifest("test -d db/"));
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.ok(&["state", "list"]), "command/db\n");
    sandbox.ok(&["destroy", "--yes"]);
    assert!(!sandbox.path("db").exists());
}

#[test]
fn what_could_not_be_undone_and_is_declared_again_is_not_applied_where_its_check_holds() {
    let sandbox = Sandbox::new("commands: {db: {check: test -d db, apply: mkdir db, undo: rm db/lock}}\n");
    sandbox.ok(&["apply", "--yes"]);
    let declared = fs::read_to_string(sandbox.path("site.yaml")).unwrap();
    sandbox.declare("");
    assert_eq!(sandbox.run(&["apply", "--yes"]).code(), 1);
    sandbox.write("site.yaml", &declared);
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.ok(&["plan"]), "site: nothing to do.\n");
}

/// A file, and a process whose log is that file.
const TAKEN_OVER: &str = "files: {app: {path: app.log, content: \"ours\\n\", adopt: true}}\n";
const LOGGED_TO: &str = "processes: {app: {command: [sleep, '1000'], log: app.log, adopt: true}}\n";

#[test]
fn the_original_of_a_file_that_becomes_a_log_is_back_before_anything_is_logged() {
    let sandbox = Processes::new(TAKEN_OVER);
    sandbox.write("app.log", "theirs\n");
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.read("app.log"), "ours\n");
    sandbox.declare(&LOGGED_TO.replace(", adopt: true", ""));
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.read("app.log"), "theirs\n");
    sandbox.declare(TAKEN_OVER);
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.read("app.log"), "ours\n");
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.read("app.log"), "theirs\n");
}

#[test]
fn what_somebody_wrote_into_a_file_is_kept_when_it_becomes_a_log() {
    let sandbox = Processes::new(TAKEN_OVER);
    sandbox.write("app.log", "theirs\n");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.write("app.log", "edited\n");
    sandbox.declare(&LOGGED_TO.replace(", adopt: true", ""));
    let applied = sandbox.run(&["apply", "--yes"]);
    assert_eq!((applied.code(), sandbox.read("app.log").as_str()), (0, "theirs\n"), "{}", applied.err());
    let kept = sandbox.ok(&["state", "kept"]);
    let change =
        kept.split_whitespace().find(|word| word.ends_with(".change")).unwrap_or_else(|| panic!("{kept}"));
    assert_eq!(sandbox.ok(&["state", "kept", change]), "edited\n");
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.read("app.log"), "theirs\n");
    // One that Setpoint made is not emptied either.
    let own = TAKEN_OVER.replace(", adopt: true", "").replace("app.log", "own.log");
    sandbox.declare(&own);
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare(&LOGGED_TO.replace(", adopt: true", "").replace("app.log", "own.log"));
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.read("own.log"), "ours\n");
    sandbox.ok(&["destroy", "--yes"]);
}

#[test]
fn what_somebody_wrote_and_declared_after_the_state_forgot_an_item_is_kept_in_the_end() {
    let manifest = |content: &str| format!("files: {{f: {{content: \"{content}\\n\", adopt: true}}}}\n");
    let sandbox = Sandbox::new(&manifest("ours"));
    sandbox.write("f", "theirs\n");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.ok(&["state", "rm", "file.f"]);
    sandbox.write("f", "newer\n");
    sandbox.declare(&manifest("newer"));
    sandbox.ok(&["apply", "--yes"]);
    let destroyed = sandbox.run(&["destroy", "--yes"]);
    assert_eq!(destroyed.code(), 0, "{}", destroyed.err());
    let kept = sandbox.ok(&["state", "kept"]);
    let mut names = kept.lines().filter_map(|line| line.split_whitespace().next());
    let is_kept = names.any(|name| sandbox.ok(&["state", "kept", name]) == "newer\n");
    assert!(is_kept || sandbox.read("f") == "newer\n", "{kept}");
    assert!(destroyed.err().contains("state kept"), "{}", destroyed.err());
}

#[test]
fn an_earlier_original_stays_kept_however_much_is_kept_later_and_a_notice_says_so() {
    let manifest = "files: {f: {content: \"ours\\n\", adopt: true}}\n";
    let sandbox = Sandbox::new(manifest);
    sandbox.write("f", "theirs\n");
    sandbox.ok(&["apply", "--yes"]);
    // It is gone, which a run notes, and somebody writes another one.
    fs::remove_file(sandbox.path("f")).unwrap();
    sandbox.ok(&["apply", "--yes", "--refresh-only"]);
    sandbox.write("f", "later\n");
    let applied = sandbox.run(&["apply", "--yes"]);
    assert_eq!(applied.code(), 0, "{}", applied.err());
    let kept = sandbox.ok(&["state", "kept"]);
    let retired: Vec<&str> = kept.split_whitespace().filter(|word| word.ends_with(".original")).collect();
    assert_eq!(retired.len(), 1, "{kept}");
    assert!(applied.err().contains(retired[0]), "{}", applied.err());
    assert_eq!(sandbox.ok(&["state", "kept", retired[0]]), "theirs\n");
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.read("f"), "later\n");
}

#[test]
fn what_setpoint_wrote_is_known_when_an_item_that_was_forgotten_is_taken_over_again() {
    let manifest = |content: &str| {
        format!(
            "files: {{f: {{content: {content}, adopt: true}}}}\nsymlinks: {{l: {{target: {content}, adopt: true}}}}\n"
        )
    };
    for later in ["ours", "newer"] {
        let sandbox = Sandbox::new(&manifest("ours"));
        sandbox.write("f", "theirs");
        symlink("theirs", sandbox.path("l")).unwrap();
        sandbox.ok(&["apply", "--yes"]);
        sandbox.ok(&["state", "rm", "file.f", "symlink.l"]);
        sandbox.declare(&manifest(later));
        sandbox.ok(&["apply", "--yes"]);
        let destroyed = sandbox.run(&["destroy", "--yes"]);
        assert_eq!((destroyed.code(), destroyed.err().as_str()), (0, ""), "{}", destroyed.out());
        let link = fs::read_link(sandbox.path("l")).unwrap();
        assert_eq!((sandbox.read("f").as_str(), link.to_str()), ("theirs", Some("theirs")));
        assert_eq!(sandbox.ok(&["state", "kept"]), "Nothing is kept.\n", "{later}");
    }
}
