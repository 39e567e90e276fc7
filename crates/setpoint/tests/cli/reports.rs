//! What is said of plans, runs and items is so, and hints name what to do.

use std::fs;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::sandbox::{Sandbox, eventually};

fn json(sandbox: &Sandbox, args: &[&str]) -> Value {
    serde_json::from_str(&sandbox.run(args).out()).unwrap()
}

#[test]
fn what_is_taken_over_is_called_adopted_and_what_is_let_go_released() {
    let sandbox = Sandbox::new("files:\n  a: {content: ours, adopt: true}\n  b: {content: b}\n");
    sandbox.write("a", "theirs");
    let planned = json(&sandbox, &["plan", "--json"]);
    let counts = &planned["plan"]["summary"];
    assert_eq!((&counts["create"], &counts["adopt"]), (&1.into(), &1.into()), "{counts}");
    let done = sandbox.ok(&["apply", "--yes"]);
    assert!(done.contains("+ file/a adopted\n") && done.contains("+ file/b created\n"), "{done}");
    assert!(done.contains("Run 1: 1 created, 1 adopted in"), "{done}");
    assert!(sandbox.ok(&["show", "1"]).contains("+ file/a adopted  it exists and is adopted"));
    assert_eq!(json(&sandbox, &["show", "1", "--json"])["entries"][0]["adopted"], true);
    let explained = sandbox.ok(&["explain", "file.a"]);
    assert!(explained.contains("last, it was adopted by run 1"), "{explained}");
    // One that was taken over, and is gone since, is created.
    fs::remove_file(sandbox.path("a")).unwrap();
    let done = sandbox.ok(&["apply", "--yes"]);
    assert!(done.contains("+ file/a created\n") && done.contains("Run 2: 1 created in"), "{done}");

    sandbox.declare("files:\n  c: {content: c}\n");
    let planned = json(&sandbox, &["plan", "--json"]);
    let counts = &planned["plan"]["summary"];
    assert_eq!((&counts["delete"], &counts["release"]), (&1.into(), &1.into()), "{counts}");
    let operations = planned["plan"]["operations"].as_array().unwrap();
    let code = |name: &str| &operations.iter().find(|operation| operation["name"] == name).unwrap()["code"];
    assert_eq!((code("a"), code("b")), (&"released".into(), &"removed".into()), "{planned}");
    sandbox.ok(&["apply", "--yes"]);
    let shown = sandbox.ok(&["show"]);
    assert!(shown.contains("- file/a released  ") && shown.contains("- file/b  "), "{shown}");
}

#[test]
fn no_attempt_is_announced_that_nobody_makes() {
    let sandbox = Sandbox::new("commands:\n  c: {apply: test -e go}\n");
    assert_eq!(sandbox.run(&["apply", "--yes"]).code(), 1);
    let explained = sandbox.ok(&["explain", "command.c"]);
    assert!(!explained.contains("due at"), "{explained}");
    assert!(explained.contains("`setpoint apply` tries it again"), "{explained}");
    // Under `watch` there is one.
    let watching = sandbox.start(&["watch"]);
    watching.until("failed to");
    eventually("the failure is explained", || {
        sandbox.ok(&["explain", "command.c"]).contains("the next attempt is due at")
    });
}

#[test]
fn a_change_by_something_else_has_the_time_at_which_it_was_found() {
    let sandbox = Sandbox::new("files:\n  f: {content: x}\n");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.write("f", "other");
    let explained = sandbox.ok(&["explain", "file.f"]);
    assert!(
        explained.starts_with("file/f has drifted\n  found changed by something else at "),
        "{explained}"
    );
}

#[test]
fn the_log_of_a_process_is_inside_of_a_directory_and_the_process_is_not() {
    let sandbox = Sandbox::new(
        "directories:\n  logs: {}\n  work: {}\nprocesses:\n  p: {command: sleep 600, log: logs/p, cwd: work}\n",
    );
    let explained = sandbox.ok(&["explain", "process.p"]);
    assert!(
        explained.contains("needs directory/logs, which is pending: its log is inside of it"),
        "{explained}"
    );
    assert!(explained.contains("needs directory/work, which is pending: it runs in it"), "{explained}");
}

#[test]
fn a_name_that_nobody_knows_is_a_wrong_command_line_also_where_the_answer_is_data() {
    let sandbox = Sandbox::new("files:\n  f: {content: x}\n");
    sandbox.ok(&["apply", "--yes"]);
    for args in [
        &["validate", "--var", "nope=1"][..],
        &["validate", "--json", "--var", "nope=1"],
        &["state", "kept", "zzz"],
    ] {
        let refused = sandbox.run(args);
        assert_eq!(refused.code(), 64, "{args:?}: {}{}", refused.out(), refused.err());
    }
    sandbox.declare("files:\n  f: {contents: x}\n");
    assert_eq!(sandbox.run(&["validate", "--json"]).code(), 1);
}

#[test]
fn the_data_of_a_plan_has_all_its_warnings() {
    let sandbox = Sandbox::new("files:\n  f: {content: x}\n");
    sandbox.write("compose.yaml", "services: {}\n");
    for args in [&["plan", "--json"][..], &["apply", "--yes", "--json"]] {
        let warnings = json(&sandbox, args)["warnings"].to_string();
        assert!(warnings.contains("compose.yaml is no manifest of Setpoint"), "{args:?}: {warnings}");
    }
}

#[test]
fn a_hint_after_a_failure_names_the_item() {
    let sandbox = Sandbox::new("files:\n  config: {path: f, content: x}\n");
    fs::create_dir(sandbox.path("f")).unwrap();
    let failed = sandbox.run(&["apply", "--yes"]);
    assert!(failed.err().contains("hint: `setpoint explain file.config` says why"), "{}", failed.err());
    assert!(!failed.err().contains("state rm"), "{}", failed.err());
}

#[test]
fn a_directory_that_holds_something_of_somebodys_can_be_let_go() {
    let sandbox = Sandbox::new("directories:\n  logs: {}\n");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.write("logs/mine", "x");
    let failed = sandbox.run(&["destroy", "--yes"]);
    assert_eq!(failed.code(), 1);
    assert!(failed.err().contains("`setpoint state rm directory.logs`"), "{}", failed.err());
    // What the hint says can be done.
    sandbox.ok(&["state", "rm", "directory.logs"]);
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.read("logs/mine"), "x");
}

#[test]
fn of_a_command_that_goes_it_is_said_what_becomes_of_what_it_did() {
    let sandbox = Sandbox::new("commands:\n  a: {apply: touch a}\n  b: {apply: touch b, undo: rm b}\n");
    sandbox.ok(&["apply", "--yes"]);
    let plan = sandbox.ok(&["plan", "--replace", "command.b"]);
    assert!(
        plan.contains("± command/b  it was asked for; it is applied again, and nothing is undone"),
        "{plan}"
    );
    sandbox.ok(&["apply", "--yes", "--replace", "command.b"]);
    let shown = sandbox.ok(&["show"]);
    assert!(shown.contains("- command/b  it was asked for; it is applied again"), "{shown}");
    sandbox.declare("files: {f: {content: x}}\n");
    let plan = sandbox.ok(&["plan"]);
    assert!(
        plan.contains("- command/a  it is not intended any more; it has no `undo`, and what it did stays")
    );
    assert!(plan.contains("- command/b  it is not intended any more; its `undo` is run"), "{plan}");
    sandbox.ok(&["apply", "--yes"]);
    assert!(sandbox.path("a").exists() && !sandbox.path("b").exists());
}

#[test]
fn an_error_of_the_history_is_a_sentence_of_its_own() {
    let sandbox = Sandbox::new("files:\n  f: {content: x}\n");
    sandbox.write("f", "theirs");
    assert_eq!(sandbox.run(&["apply", "--yes"]).code(), 1);
    let shown = sandbox.ok(&["show"]);
    assert!(
        shown.contains("or declare another path\n      reason: it is intended and not there\n"),
        "{shown}"
    );
}

#[test]
fn who_names_a_manifest_without_its_option_is_told_the_option() {
    let sandbox = Sandbox::new("files:\n  f: {content: x}\n");
    for command in ["plan", "validate", "destroy", "watch"] {
        let refused = sandbox.run(&[command, "site.yaml"]);
        assert_eq!(refused.code(), 64);
        assert!(
            refused.err().contains("manifests are named with '-f site.yaml'"),
            "{command}: {}",
            refused.err()
        );
    }
    assert!(!sandbox.run(&["plan", "--site.yaml"]).err().contains("manifests are named"));
    assert!(!sandbox.run(&["completions", "bash", "site.yaml"]).err().contains("manifests are named"));
}

#[test]
fn the_hint_on_a_protected_item_is_one_that_can_be_followed() {
    let sandbox = Sandbox::new("files:\n  f: {content: x, prevent_destroy: true}\n");
    sandbox.ok(&["apply", "--yes"]);
    let refused = sandbox.run(&["destroy", "--yes"]);
    assert!(refused.err().contains("declare file.f without `prevent_destroy` first"), "{}", refused.err());
    assert!(!refused.err().contains("unprotect"), "it is refused: {}", refused.err());
    sandbox.declare("files:\n  g: {content: x}\n");
    let refused = sandbox.run(&["apply", "--yes"]);
    assert!(refused.err().contains("say `setpoint state unprotect file.f`"), "{}", refused.err());
    sandbox.ok(&["state", "unprotect", "file.f"]);
    sandbox.ok(&["apply", "--yes"]);
    assert!(!sandbox.path("f").exists());
}

#[test]
fn watch_says_what_the_manifests_declare_and_how_that_can_be_meant() {
    let sandbox = Sandbox::new("commands:\n  b: {apply: touch b}\n");
    let mut watching = sandbox.start(&["watch"]);
    eventually("it is applied", || sandbox.path("b").exists());
    sandbox.declare("commands:\n  c: {apply: touch c}\n");
    watching.until("the manifests declare nothing of what is there, and there is 1 item");
    watching.until("the last good manifests stand");
    let log = watching.log();
    assert!(
        log.contains("hint: say `--allow-empty` if") && log.contains("`setpoint state mv OLD NEW`"),
        "{log}"
    );
    watching.signal(Signal::SIGTERM);
    assert_eq!(watching.wait(), 0);
    sandbox.ok(&["state", "mv", "command.b", "command.c"]);
    // Nothing at all is another matter.
    sandbox.declare("");
    let refused = sandbox.run(&["watch", "--json"]);
    assert!(
        refused.err().contains("the manifests declare nothing any more, and there is 1 item"),
        "{}",
        refused.err()
    );
}

#[test]
fn that_everything_goes_is_said_where_nothing_is_declared() {
    let sandbox = Sandbox::new("files:\n  f: {content: x}\n");
    sandbox.ok(&["apply", "--yes"]);
    let words = "warning: the manifests declare nothing: everything goes\n";
    sandbox.declare("files:\n  g: {content: x}\n");
    assert!(!sandbox.ok(&["plan"]).contains(words), "something is declared");
    sandbox.declare("");
    assert!(!sandbox.ok(&["plan", "--target", "file.f"]).contains(words), "only this goes");
    assert!(sandbox.ok(&["plan"]).contains(words));
    assert!(sandbox.ok(&["apply", "--yes"]).contains(words));
    assert!(!sandbox.ok(&["plan"]).contains(words), "nothing is there");
}

#[test]
fn a_plan_asks_the_check_of_a_command_that_was_not_applied_yet() {
    let sandbox = Sandbox::new(
        "commands:
  there: {check: test -d there, apply: mkdir there, undo: rmdir there}
  missing: {check: test -d missing, apply: mkdir missing, undo: rmdir missing}
",
    );
    fs::create_dir(sandbox.path("there")).unwrap();
    let planned = json(&sandbox, &["plan", "--json"]);
    let counts = &planned["plan"]["summary"];
    assert_eq!((&counts["create"], &counts["adopt"]), (&1.into(), &1.into()), "{counts}");
    let plan = sandbox.ok(&["plan", "--out", "kept"]);
    assert!(plan.contains("command/there  its `check` holds already"), "{plan}");
    assert!(plan.contains("command/missing  it is intended and not there"), "{plan}");
    let trusting = sandbox.ok(&["plan", "--refresh=false"]);
    assert!(trusting.contains("2 to create"), "{trusting}");
    let done = sandbox.ok(&["apply", "kept"]);
    assert!(done.contains("+ command/there adopted\n"), "{done}");
    assert!(done.contains("+ command/missing created\n"), "{done}");
    assert!(sandbox.ok(&["show"]).contains("+ command/there adopted  its `check` holds already"));
    // One that was made here and is gone is made again.
    fs::remove_dir(sandbox.path("missing")).unwrap();
    let plan = sandbox.ok(&["plan"]);
    assert!(plan.contains("command/missing  it is intended and not there"), "{plan}");
    sandbox.ok(&["destroy", "--yes"]);
    assert!(sandbox.path("there").exists());
}
