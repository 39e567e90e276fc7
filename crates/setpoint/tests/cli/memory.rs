//! What Setpoint remembers: state, history, drawings, and what goes with the command.

use std::fs;

use serde_json::Value;

use crate::sandbox::Sandbox;

const PAIR: &str = "files:\n  a: {content: one}\n  b: {content: two, after: [file.a]}\n";

#[test]
fn the_state_lists_and_shows_what_was_made() {
    let sandbox = Sandbox::new(PAIR);
    assert_eq!(sandbox.ok(&["state", "list"]), "");
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.ok(&["state", "list"]), "file/a\nfile/b\n");
    let shown = sandbox.ok(&["state", "show", "file.a"]);
    assert!(shown.starts_with("file/a\n  path: a\n  content: one\n"), "{shown}");
    let json: Value = serde_json::from_str(&sandbox.ok(&["state", "show", "file.a", "--json"])).unwrap();
    assert_eq!(json["state"]["presence"], "present");
    let missing = sandbox.run(&["state", "show", "file.x"]);
    assert_eq!(
        missing.err(),
        "error: file/x is not in the state\nhint: `setpoint state list` shows what is\n"
    );
}

#[test]
fn what_is_forgotten_stays_on_the_host() {
    let sandbox = Sandbox::new(PAIR);
    sandbox.ok(&["apply", "--yes"]);
    sandbox.ok(&["state", "rm", "file.b"]);
    assert_eq!(sandbox.ok(&["state", "list"]), "file/a\n");
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.tree(), ["b"]);
}

#[test]
fn an_item_with_another_name_is_the_same_thing_on_the_host() {
    let sandbox = Sandbox::new("files:\n  a: {content: one}\n");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.ok(&["state", "mv", "file.a", "file.greeting"]);
    sandbox.declare("files:\n  greeting: {path: a, content: one}\n");
    assert_eq!(sandbox.ok(&["plan"]), "site: nothing to do.\n");
    let refused = sandbox.run(&["state", "mv", "file.greeting", "directory.greeting"]);
    assert!(refused.err().contains("another kind of thing"), "{}", refused.err());
}

#[test]
fn what_is_imported_is_looked_after_and_never_deleted() {
    let sandbox = Sandbox::new("files:\n  motd: {content: hi}\n");
    sandbox.write("motd", "hi");
    sandbox.ok(&["state", "import", "file.motd"]);
    assert_eq!(sandbox.ok(&["plan"]), "site: nothing to do.\n");
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.tree(), ["motd"]);
    fs::remove_file(sandbox.path("motd")).unwrap();
    let missing = sandbox.run(&["state", "import", "file.motd"]);
    assert_eq!(missing.err(), "error: file/motd is not on the host\n");
}

#[test]
fn the_history_tells_what_each_run_did() {
    let sandbox = Sandbox::new(PAIR);
    assert_eq!(sandbox.ok(&["history"]), "There was no run yet.\n");
    assert_eq!(sandbox.run(&["show"]).code(), 1);
    sandbox.ok(&["apply", "--yes"]);
    sandbox.ok(&["destroy", "--yes"]);
    let history = sandbox.ok(&["history"]);
    let lines: Vec<&str> = history.lines().collect();
    assert!(
        lines[0].starts_with("   2  ") && lines[0].contains("destroy  done      2 operations"),
        "{history}"
    );
    assert!(
        lines[1].starts_with("   1  ") && lines[1].contains("apply    done      2 operations"),
        "{history}"
    );
    let shown = sandbox.ok(&["show", "1"]);
    assert!(shown.ends_with("  + file/a\n  + file/b\n"), "{shown}");
    let json: Value = serde_json::from_str(&sandbox.ok(&["show", "--json"])).unwrap();
    assert_eq!((&json["number"], &json["command"]), (&Value::from(2), &Value::from("destroy")));
    assert!(sandbox.run(&["show", "9"]).err().contains("there is no run 9"));
}

#[test]
fn graphs_are_drawn_in_all_forms() {
    let sandbox = Sandbox::new(PAIR);
    assert!(sandbox.ok(&["graph"]).starts_with("digraph"));
    let json: Value = serde_json::from_str(&sandbox.ok(&["graph", "--format", "json"])).unwrap();
    assert_eq!(json["nodes"].as_array().unwrap().len(), 2);
    assert!(sandbox.ok(&["graph", "--format", "svg"]).starts_with("<svg"));
    assert!(sandbox.ok(&["graph", "--plan", "--format", "svg"]).contains("+ a"));
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare("files:\n  a: {content: other}\n");
    let transition = sandbox.ok(&["graph", "--plan", "--format", "svg"]);
    assert!(transition.contains("~ a") && transition.contains("- b"), "{transition}");
}

#[test]
fn an_item_is_explained() {
    let sandbox = Sandbox::new(PAIR);
    let why = sandbox.ok(&["explain", "file.b"]);
    assert!(why.contains("the next run has it created") && why.contains("site.yaml:4"), "{why}");
    sandbox.ok(&["apply", "--yes"]);
    assert!(sandbox.ok(&["explain", "file.b"]).starts_with("file/b is in sync"));
    let json: Value = serde_json::from_str(&sandbox.ok(&["explain", "file.b", "--json"])).unwrap();
    assert_eq!(json["kind"], "file");
    assert_eq!(sandbox.run(&["explain", "file.x"]).code(), 1);
}

#[test]
fn the_schema_completions_and_manual_pages_are_printed() {
    let sandbox = Sandbox::new(PAIR);
    let schema: Value = serde_json::from_str(&sandbox.ok(&["schema"])).unwrap();
    assert!(schema["properties"]["files"].is_object());
    for shell in ["bash", "zsh", "fish"] {
        assert!(sandbox.ok(&["completions", shell]).contains("detailed-exitcode"));
    }
    sandbox.ok(&["man", "pages"]);
    assert!(sandbox.read("pages/setpoint-apply.1").contains("lock\\-timeout"));
    assert!(sandbox.path("pages/setpoint-state-mv.1").exists());
}
