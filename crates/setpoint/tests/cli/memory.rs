//! What Setpoint remembers: state, history, drawings, and what goes with the command.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::Value;

use crate::sandbox::Sandbox;

const PAIR: &str = "files:\n  a: {content: one}\n  b: {content: two, after: [file.a]}\n";

const AGAIN: &str = "files:
  source: {content: one}
commands:
  reload: {check: test -e loaded, apply: touch loaded, redo_on: [file.source]}
processes:
  server: {command: [sleep, '600'], restart_on: [file.source]}
";

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
        "error: file/x is not in the state; did you mean file.a?\nhint: `setpoint state list` shows what is\n"
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
    assert!(lines[0].starts_with("   2  ") && lines[0].contains("destroy  done      2 deleted"), "{history}");
    assert!(lines[1].starts_with("   1  ") && lines[1].contains("apply    done      2 created"), "{history}");
    let shown = sandbox.ok(&["show", "1"]);
    let lines: Vec<&str> = shown.lines().skip(1).filter(|line| line.starts_with("  + ")).collect();
    let reason = "it is intended and not there";
    assert_eq!(lines, [format!("  + file/a  {reason}"), format!("  + file/b  {reason}")], "{shown}");
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
fn a_drawn_plan_shows_what_is_made_anew_and_what_is_applied_again() {
    let sandbox = Sandbox::new(AGAIN);
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare(&AGAIN.replace("one", "two"));
    let draw = |format: &str| sandbox.ok(&["graph", "--plan", "--format", format]);
    let (json, svg, dot) = (draw("json"), draw("svg"), draw("dot"));
    sandbox.ok(&["destroy", "--yes"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    let marks: Vec<_> = (json["nodes"].as_array().unwrap().iter())
        .map(|node| (node["name"].as_str().unwrap(), node["mark"].as_str().unwrap()))
        .collect();
    assert_eq!(marks, [("reload", "changed"), ("source", "changed"), ("server", "recreated")]);
    assert!(svg.contains(">± server</text>") && dot.contains("label=\"± server\""), "{dot}");
    let server = &json["nodes"][2]["description"];
    assert!(server.as_str().unwrap().starts_with("command: [\"sleep\", \"600\"]\n"), "{server}");
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
    assert_eq!(sandbox.run(&["explain", "file.x"]).code(), 64);
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

#[test]
fn a_manual_page_takes_the_place_of_an_earlier_one_and_of_nothing_else() {
    let sandbox = Sandbox::new(PAIR);
    sandbox.ok(&["man", "pages"]);
    let page = sandbox.read("pages/setpoint-plan.1");
    sandbox.write("pages/setpoint-plan.1", &page.replace("EXAMPLES", "SAMPLES"));
    sandbox.ok(&["man", "pages"]);
    assert_eq!(sandbox.read("pages/setpoint-plan.1"), page);
    let path = sandbox.path("pages/setpoint-plan.1");
    fs::remove_file(&path).unwrap();
    sandbox.write("mine", "mine\n");
    for is_link in [false, true] {
        let mine = sandbox.path("mine");
        if is_link { symlink(mine, &path) } else { fs::hard_link(mine, &path) }.unwrap();
        let refused = sandbox.run(&["man", "pages"]);
        assert_eq!((refused.code(), sandbox.read("mine").as_str()), (64, "mine\n"), "{}", refused.out());
        assert!(refused.err().contains("there is something else"), "{}", refused.err());
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_run_is_remembered_with_its_reasons_its_drift_and_its_differences() {
    let sandbox = Sandbox::new(
        "files:\n  a: {content: \"one\\ntwo\\n\"}\n  key: {content: hunter2, sensitive: true}\n",
    );
    sandbox.ok(&["apply", "--yes"]);
    sandbox.write("a", "one\nother\n");
    sandbox
        .declare("files:\n  a: {content: \"one\\nthree\\n\"}\n  key: {content: hunter3, sensitive: true}\n");
    sandbox.ok(&["apply", "--yes"]);
    let shown = sandbox.ok(&["show"]);
    for wanted in [
        "! file/a was changed",
        "~ file/a  its state differs from the intended one",
        "-other",
        "+three",
        "content: (sensitive) → (sensitive)",
    ] {
        assert!(shown.contains(wanted), "{wanted}: {shown}");
    }
    let json: Value = serde_json::from_str(&sandbox.ok(&["show", "--json"])).unwrap();
    assert_eq!(json["drift"][0]["name"], "a");
    assert_eq!(json["entries"][0]["reason"], "its state differs from the intended one");
    assert!(!json.to_string().contains("hunter"), "{json}");
    sandbox.declare("files:\n  key: {content: hunter3, sensitive: true}\n");
    sandbox.ok(&["apply", "--yes"]);
    assert!(sandbox.ok(&["history"]).lines().next().unwrap().contains(" 1 deleted in "));
}

#[test]
fn a_deletion_shows_where_the_item_is_and_what_is_run() {
    let sandbox = Sandbox::new(
        "files:\n  motd: {path: etc/motd, content: x}\ncommands:\n  c: {apply: touch made, undo: rm made}\n",
    );
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare("");
    let plan = sandbox.ok(&["plan"]);
    assert!(plan.contains("path: etc/motd") && plan.contains("undo: rm made"), "{plan}");
}

#[test]
fn who_names_an_unknown_item_is_told_which_was_probably_meant() {
    let sandbox = Sandbox::new(PAIR);
    sandbox.ok(&["apply", "--yes"]);
    for (args, meant) in [
        (&["explain", "file.aa"][..], "did you mean file.a?"),
        (&["explain", "files.b"], "did you mean file.b?"),
        (&["plan", "--target", "file.bb"], "did you mean file.b?"),
        (&["state", "show", "file.c"], "did you mean file.a?"),
        (&["state", "rm", "flie.a"], "did you mean file.a?"),
        (&["state", "import", "file.d"], "did you mean file.a?"),
    ] {
        let refused = sandbox.run(args);
        assert_eq!(refused.code(), 64, "{args:?}");
        assert!(refused.err().contains(meant), "{args:?}: {}", refused.err());
    }
}

#[test]
fn hints_harm_nobody_who_follows_them() {
    let sandbox = Sandbox::new("files:\n  a: {content: one}\n");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.ok(&["state", "mv", "file.a", "file.b"]);
    let again = sandbox.run(&["state", "mv", "file.a", "file.b"]);
    assert!(
        again.err().contains("it has its new name already") && !again.err().contains("state rm"),
        "{}",
        again.err()
    );
    let named = sandbox.run(&["apply", "site.yaml"]);
    assert!(
        named.err().contains("manifests are named with `-f`: `setpoint apply -f site.yaml`"),
        "{}",
        named.err()
    );
    // A failed destroy is gone on with by another one.
    let sandbox = Sandbox::new("commands:\n  c: {apply: 'true', undo: 'false'}\n");
    sandbox.ok(&["apply", "--yes"]);
    let failed = sandbox.run(&["destroy", "--yes"]);
    assert!(failed.err().contains("mend what failed and run `setpoint destroy` again"), "{}", failed.err());
}

#[test]
fn no_item_gets_a_name_that_no_manifest_can_have() {
    let sandbox = Sandbox::new(PAIR);
    sandbox.ok(&["apply", "--yes"]);
    for (name, why) in [("a b", "only letters"), ("d/", "ends with a slash"), ("x\ny", "only letters")] {
        let refused = sandbox.run(&["state", "mv", "file.a", &format!("file.{name}")]);
        assert_eq!(refused.code(), 64, "{name:?}: {}", refused.out());
        assert!(refused.err().contains(why), "{name:?}: {}", refused.err());
    }
    assert_eq!(sandbox.ok(&["state", "list"]), "file/a\nfile/b\n");
}
