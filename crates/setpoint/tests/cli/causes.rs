//! What follows from what: commands that are applied again, orders that delete nothing, and explanations.

use std::fs;

use serde_json::Value;

use crate::sandbox::{Sandbox, eventually};

#[test]
fn a_command_whose_repetition_failed_is_applied_by_the_next_command() {
    let with = |content: &str| {
        format!(
            "files: {{f: {{content: {content}}}}}
commands:
  migrate: {{apply: 'test ! -e broken && cat f >> migrated', redo_on: [file.f]}}
  reload: {{check: test -e loaded, apply: 'cat f >> loaded', undo: rm loaded, redo_on: [command.migrate]}}
"
        )
    };
    let sandbox = Sandbox::new(&with("a"));
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.read("loaded"), "a");
    sandbox.declare(&with("b"));
    sandbox.write("broken", "");
    assert_eq!(sandbox.run(&["apply", "--yes"]).code(), 1);
    let listed = sandbox.ok(&["state", "list"]);
    assert!(
        listed
            .lines()
            .any(|line| line.starts_with("command/migrate") && line.contains("to be applied again"))
    );
    fs::remove_file(sandbox.path("broken")).unwrap();
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!((sandbox.read("migrated"), sandbox.read("loaded")), ("ab".to_owned(), "ab".to_owned()));
    assert!(sandbox.ok(&["plan"]).contains("nothing to do"));
    sandbox.ok(&["destroy", "--yes"]);
    assert!(!sandbox.path("loaded").exists(), "it was not taken for someone else's");
}

#[test]
fn a_command_is_applied_again_when_a_process_that_redo_on_names_was_restarted() {
    let with = |seconds: &str| {
        format!(
            "processes: {{p: {{command: [sleep, '{seconds}']}}}}
commands: {{c: {{check: test -e applied, apply: 'echo once >> applied', redo_on: [process.p]}}}}
"
        )
    };
    let sandbox = Sandbox::new(&with("600"));
    let times = || sandbox.read("applied").lines().count();
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(times(), 1);
    sandbox.declare(&with("601"));
    let plan = sandbox.ok(&["plan"]);
    assert!(plan.contains("it is applied again when process/p is changed"), "{plan}");
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(times(), 2, "it was restarted to run another command");
    let shown: Value = serde_json::from_str(&sandbox.ok(&["state", "show", "process.p", "--json"])).unwrap();
    let pid = i32::try_from(shown["pid"].as_i64().unwrap()).unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL).unwrap();
    eventually("it has ended", || sandbox.ok(&["plan"]).contains("process/p"));
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(times(), 3, "it was started again after its end");
    assert!(sandbox.ok(&["plan"]).contains("nothing to do"));
    sandbox.ok(&["destroy", "--yes"]);
}

#[test]
fn a_command_is_applied_again_when_what_redo_on_names_had_drifted() {
    let sandbox = Sandbox::new(
        "files: {f: {content: ours}}
commands: {c: {check: test -e applied, apply: 'echo once >> applied', redo_on: [file.f]}}
",
    );
    let times = || sandbox.read("applied").lines().count();
    sandbox.ok(&["apply", "--yes"]);
    sandbox.write("f", "theirs");
    let plan = sandbox.ok(&["plan"]);
    assert!(plan.contains("command/c"), "{plan}");
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!((sandbox.read("f"), times()), ("ours".to_owned(), 2), "it was changed by someone else");
    fs::remove_file(sandbox.path("f")).unwrap();
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!((sandbox.read("f"), times()), ("ours".to_owned(), 3), "it was deleted by someone else");
    assert!(sandbox.ok(&["plan"]).contains("nothing to do"));
}

#[test]
fn destroying_what_a_command_comes_after_leaves_the_command_alone() {
    let sandbox = Sandbox::new(
        "processes: {p: {command: [sleep, '600']}}
commands: {c: {check: test -e made, apply: touch made, undo: rm made, after: [process.p]}}
",
    );
    sandbox.ok(&["apply", "--yes"]);
    let destroyed = sandbox.ok(&["destroy", "--yes", "--target", "process.p"]);
    assert!(destroyed.contains("process/p deleted") && !destroyed.contains("command/c"), "{destroyed}");
    assert!(sandbox.path("made").exists());
    sandbox.ok(&["destroy", "--yes"]);
    assert!(!sandbox.path("made").exists());
}

#[test]
fn an_explanation_follows_causes_to_their_end_and_names_each_once() {
    let sandbox = Sandbox::new(
        "commands:
  a: {apply: 'false'}
  b: {apply: 'true', after: [command.a]}
  other: {apply: 'true', after: [command.a]}
  c: {apply: 'true', after: [command.b, command.other]}
",
    );
    assert_eq!(sandbox.run(&["apply", "--yes"]).code(), 1);
    let explained = sandbox.ok(&["explain", "command.c"]);
    let indent = |text: &str| {
        let line = explained.lines().find(|line| line.trim_start().starts_with(text));
        line.map(|line| line.len() - line.trim_start().len())
    };
    assert_eq!(indent("command/c is"), Some(0), "{explained}");
    assert_eq!(indent("command/b is"), Some(2), "{explained}");
    assert_eq!(indent("command/a has failed"), Some(4), "{explained}");
    assert_eq!(explained.matches("command/a: see above").count(), 1, "{explained}");
    assert!(!explained.contains("is failed"), "{explained}");
    let explained = sandbox.ok(&["explain", "command.b"]);
    assert!(explained.contains("needs command/a, which has failed"), "{explained}");
}

#[test]
fn an_explanation_has_the_process_and_what_needs_a_directory() {
    let sandbox = Sandbox::new(
        "directories: {conf:}
files: {app: {path: conf/app, content: x}}
processes: {web: {command: [sleep, '600']}}
",
    );
    sandbox.ok(&["apply", "--yes"]);
    let shown: serde_json::Value =
        serde_json::from_str(&sandbox.ok(&["state", "show", "process.web", "--json"])).unwrap();
    let explained = sandbox.ok(&["explain", "process.web"]);
    assert!(explained.contains(&format!("it runs as process {}\n", shown["pid"])), "{explained}");
    let explained = sandbox.ok(&["explain", "directory.conf"]);
    assert!(explained.contains("is needed by file/app"), "{explained}");
    sandbox.ok(&["destroy", "--yes"]);
}
