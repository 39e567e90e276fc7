//! plan, apply and destroy, as a person uses them.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::sandbox::Sandbox;

const SITE: &str = "\
directories:
  public:
files:
  index: {path: public/index.html, content: \"<h1>Hello</h1>\\n<p>welcome</p>\\n\"}
  secret: {path: secret.txt, content: hunter2, mode: \"0600\", sensitive: true}
symlinks:
  start: {path: start.html, target: public/index.html}
";

#[test]
fn a_plan_shows_what_is_to_be_made_and_changes_nothing() {
    let sandbox = Sandbox::new(SITE);
    insta::assert_snapshot!("plan_create", sandbox.ok(&["plan"]));
    assert_eq!(sandbox.tree(), [""; 0]);
    assert!(!sandbox.path(".setpoint").exists());
}

#[test]
fn apply_shows_the_plan_carries_it_out_and_says_what_it_did() {
    let sandbox = Sandbox::new(SITE);
    insta::assert_snapshot!("apply_create", sandbox.ok(&["apply", "--yes"]));
    assert_eq!(sandbox.tree(), ["public", "public/index.html", "secret.txt", "start.html"]);
    assert_eq!(sandbox.read("start.html"), "<h1>Hello</h1>\n<p>welcome</p>\n");
    assert_eq!(fs::metadata(sandbox.path("secret.txt")).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(sandbox.ok(&["plan"]), "site: nothing to do.\n");
}

#[test]
fn a_change_is_shown_attribute_by_attribute_and_content_as_a_diff() {
    let sandbox = Sandbox::new(SITE);
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare(
        &SITE
            .replace("welcome", "good bye")
            .replace("0600", "0640")
            .replace("path: secret.txt", "path: public/key"),
    );
    insta::assert_snapshot!("apply_change", sandbox.ok(&["apply", "--yes"]));
    assert_eq!(sandbox.tree(), ["public", "public/index.html", "public/key", "start.html"]);
    assert_eq!(sandbox.read("public/key"), "hunter2");
}

#[test]
fn drift_is_shown_in_a_section_of_its_own_and_repaired() {
    let sandbox = Sandbox::new(SITE);
    sandbox.ok(&["apply", "--yes"]);
    sandbox.write("public/index.html", "<h1>hacked</h1>\n<p>welcome</p>\n");
    fs::remove_file(sandbox.path("start.html")).unwrap();
    sandbox.write("secret.txt", "guessed");
    insta::assert_snapshot!("apply_drift", sandbox.ok(&["apply", "--yes"]));
    assert_eq!(sandbox.read("start.html"), "<h1>Hello</h1>\n<p>welcome</p>\n");
    assert_eq!(sandbox.read("secret.txt"), "hunter2");
}

#[test]
fn a_secret_is_in_no_output() {
    let sandbox = Sandbox::new(SITE);
    let outputs = [
        sandbox.ok(&["plan"]),
        sandbox.ok(&["plan", "--json"]),
        sandbox.ok(&["apply", "--yes", "--json"]),
        sandbox.ok(&["explain", "file.secret"]),
        sandbox.ok(&["state", "show", "file.secret"]),
        sandbox.ok(&["graph"]),
        sandbox.ok(&["show"]),
    ];
    sandbox.write("secret.txt", "guessed");
    for output in outputs.into_iter().chain([sandbox.ok(&["plan"]), sandbox.ok(&["plan", "--json"])]) {
        assert!(!output.contains("hunter2") && !output.contains("guessed"), "{output}");
    }
}

#[test]
fn what_becomes_a_secret_is_shown_neither_as_it_was_nor_as_it_is() {
    let sandbox = Sandbox::new("files:\n  f: {content: before1}\n");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare("files:\n  f: {content: after2, sensitive: true}\n");
    let shown = [
        sandbox.ok(&["plan"]),
        sandbox.ok(&["plan", "--json"]),
        sandbox.ok(&["apply", "--yes"]),
        sandbox.ok(&["show"]),
        sandbox.ok(&["show", "--json"]),
    ]
    .concat();
    assert!(shown.contains("(sensitive)"), "{shown}");
    assert!(!shown.contains("before1") && !shown.contains("after2"), "{shown}");
    // Nor one that is none any more.
    sandbox.declare("files:\n  f: {content: later3}\n");
    let shown = sandbox.ok(&["plan"]);
    assert!(!shown.contains("after2") && !shown.contains("later3"), "{shown}");
}

#[test]
fn without_a_terminal_apply_refuses_rather_than_guesses() {
    let sandbox = Sandbox::new(SITE);
    let refused = sandbox.run(&["apply"]);
    assert_eq!(refused.code(), 1);
    assert_eq!(
        refused.err(),
        "error: there is no terminal to ask on, and nothing was changed\n\
         hint: say `--yes` to go on without being asked\n"
    );
    assert_eq!(sandbox.tree(), [""; 0]);
    // Where there is nothing to do, there is nothing to ask.
    sandbox.ok(&["apply", "--yes"]);
    sandbox.ok(&["apply"]);
}

#[test]
fn the_detailed_exit_code_tells_no_changes_from_changes() {
    let sandbox = Sandbox::new(SITE);
    assert_eq!(sandbox.run(&["plan", "--detailed-exitcode"]).code(), 2);
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.run(&["plan", "--detailed-exitcode"]).code(), 0);
    sandbox.declare("files: [");
    assert_eq!(sandbox.run(&["plan", "--detailed-exitcode"]).code(), 1);
}

#[test]
fn json_tells_the_same_as_the_text() {
    let sandbox = Sandbox::new(SITE);
    let plan: Value = serde_json::from_str(&sandbox.ok(&["plan", "--json"])).unwrap();
    assert_eq!(plan["plan"]["summary"]["create"], 4);
    assert_eq!(plan["plan"]["operations"][0]["kind"], "directory");
    let applied: Value = serde_json::from_str(&sandbox.ok(&["apply", "--yes", "--json"])).unwrap();
    assert_eq!(applied["run"]["outcome"], "done");
    assert_eq!(applied["run"]["entries"].as_array().unwrap().len(), 4);
    sandbox.write("public/index.html", "changed");
    let drifted: Value = serde_json::from_str(&sandbox.ok(&["plan", "--json"])).unwrap();
    assert_eq!(drifted["drift"][0]["name"], "index");
    assert_eq!(drifted["drift"][0]["detail"][0]["new"], "changed");
}

#[test]
fn only_what_is_targeted_is_changed() {
    let sandbox = Sandbox::new(SITE);
    sandbox.ok(&["apply", "--yes", "--target", "file.secret"]);
    assert_eq!(sandbox.tree(), ["secret.txt"]);
    let unknown = sandbox.run(&["apply", "--yes", "--target", "file.secert"]);
    assert_eq!(unknown.code(), 64);
    let expected = "error: file/secert is neither declared nor remembered; did you mean file.secret?\nhint:";
    assert!(unknown.err().starts_with(expected), "{}", unknown.err());
}

#[test]
fn what_is_to_be_replaced_is_made_anew() {
    let sandbox = Sandbox::new(SITE);
    sandbox.ok(&["apply", "--yes"]);
    let output = sandbox.ok(&["apply", "--yes", "--replace", "file.index"]);
    assert!(output.contains("± file/index  it was asked for"), "{output}");
    assert!(output.contains("  - file/index removed for re-creation\n  + file/index made anew"), "{output}");
}

#[test]
fn what_goes_can_not_be_made_anew() {
    let sandbox = Sandbox::new(SITE);
    assert_eq!(sandbox.run(&["destroy", "--replace", "file.index"]).code(), 64);
}

#[test]
fn without_a_refresh_drift_is_not_seen() {
    let sandbox = Sandbox::new(SITE);
    sandbox.ok(&["apply", "--yes"]);
    sandbox.write("public/index.html", "changed");
    assert_eq!(sandbox.ok(&["plan", "--refresh=false"]), "site: nothing to do.\n");
}

#[test]
fn refresh_only_takes_over_what_is_found_and_leaves_the_host_alone() {
    let sandbox = Sandbox::new(SITE);
    sandbox.ok(&["apply", "--yes"]);
    sandbox.write("public/index.html", "changed");
    let output = sandbox.ok(&["apply", "--yes", "--refresh-only"]);
    assert!(output.contains("~ file/index is changed"), "{output}");
    assert_eq!(sandbox.read("public/index.html"), "changed");
    // It is known now: no drift any more, only a difference from what is declared.
    let plan = sandbox.ok(&["plan"]);
    assert!(!plan.contains("Drift") && plan.contains("~ file/index"), "{plan}");
}

#[test]
fn a_kept_plan_is_carried_out_unless_it_has_gone_stale() {
    let sandbox = Sandbox::new(SITE);
    sandbox.ok(&["plan", "--out", "the.plan"]);
    assert_eq!(fs::metadata(sandbox.path("the.plan")).unwrap().permissions().mode() & 0o777, 0o600);
    // What is declared by now is something else.
    sandbox.declare(&SITE.replace("Hello", "Later"));
    let stale = sandbox.run(&["apply", "the.plan"]);
    assert!(
        stale.err().contains("gone stale: the manifests, or files that they refer to"),
        "{}",
        stale.err()
    );
    sandbox.declare(SITE);
    sandbox.ok(&["apply", "the.plan"]);
    assert!(sandbox.read("public/index.html").contains("Hello"));
    let stale = sandbox.run(&["apply", "the.plan"]);
    assert_eq!(stale.code(), 1);
    assert!(
        stale.err().contains("gone stale: the state has changed since it was made\nhint:"),
        "{}",
        stale.err()
    );

    sandbox.ok(&["plan", "--out", "the.plan"]);
    sandbox.write("secret.txt", "changed");
    let stale = sandbox.run(&["apply", "the.plan"]);
    assert!(stale.err().contains("gone stale: the host has changed"), "{}", stale.err());
    assert_eq!(sandbox.read("secret.txt"), "changed");
    sandbox.write("the.plan", "{}");
    assert!(sandbox.run(&["apply", "the.plan"]).err().contains("it is no plan"));
}

#[test]
fn what_was_there_before_is_not_taken_over_unless_it_is_asked_for() {
    let sandbox = Sandbox::new("files:\n  motd: {content: \"ours\\n\"}\n");
    sandbox.write("motd", "theirs\n");
    let plan = sandbox.ok(&["plan"]);
    assert!(plan.contains("warning: file/motd can't be created: motd is there already"), "{plan}");
    let failed = sandbox.run(&["apply", "--yes"]);
    assert_eq!(failed.code(), 1);
    assert_eq!(sandbox.read("motd"), "theirs\n");
    sandbox.declare("files:\n  motd: {content: \"ours\\n\", adopt: true}\n");
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.read("motd"), "ours\n");
    assert_eq!(sandbox.ok(&["state", "list"]), "file/motd  (adopted)\n");
    // What Setpoint did not make it does not delete.
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.tree(), ["motd"]);
}

#[test]
fn destroy_removes_what_was_made_and_nothing_else() {
    let sandbox = Sandbox::new(SITE);
    sandbox.ok(&["apply", "--yes"]);
    sandbox.write("mine.txt", "precious");
    insta::assert_snapshot!("destroy", sandbox.ok(&["destroy", "--yes"]));
    assert_eq!(sandbox.tree(), ["mine.txt"]);
    sandbox.ok(&["apply", "--yes"]);
    sandbox.write("public/mine.txt", "precious");
    let refused = sandbox.run(&["destroy", "--yes"]);
    assert_eq!(refused.code(), 1);
    assert!(refused.out().contains("mine.txt"), "{}{}", refused.out(), refused.err());
    assert_eq!(sandbox.read("public/mine.txt"), "precious");
}

#[test]
fn what_is_protected_is_not_deleted() {
    let sandbox =
        Sandbox::new("files:\n  data: {content: x, prevent_destroy: true}\n  other: {content: y}\n");
    sandbox.ok(&["apply", "--yes"]);
    let refused = sandbox.run(&["destroy", "--yes"]);
    assert_eq!(refused.code(), 1);
    assert!(refused.err().contains("protected by `prevent_destroy`: file/data\nhint:"), "{}", refused.err());
    assert_eq!(sandbox.tree(), ["data", "other"], "nothing was deleted at all");
}

#[test]
fn a_failure_is_shown_where_it_happened_and_the_rest_goes_on() {
    let sandbox = Sandbox::new(
        "commands:\n  broken: {apply: \"echo no such thing >&2; exit 3\"}\nfiles:\n  a: {content: x}\n  b: {content: y, after: [command.broken]}\n",
    );
    let ran = sandbox.run(&["apply", "--yes"]);
    assert_eq!(ran.code(), 1);
    assert_eq!(sandbox.tree(), ["a"]);
    assert!(ran.out().contains("! command/broken failed to create"), "{}", ran.out());
    assert!(ran.out().contains("no such thing"), "{}", ran.out());
    assert!(ran.err().contains("hint: `setpoint explain "), "{}", ran.err());
    let why = sandbox.ok(&["explain", "file.b"]);
    assert!(why.contains("command/broken") && why.contains("no such thing"), "{why}");
    // The failure stays visible until it is overcome.
    assert!(sandbox.ok(&["state", "list"]).contains("command/broken  (half made; create failed"));
}

#[test]
fn a_wrong_manifest_gives_all_its_errors_and_changes_nothing() {
    let sandbox = Sandbox::new(SITE);
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare(
        "files:\n  index: {path: public/index.html, contents: hi}\n  key: {path: ../key, content: x, mode: rw}\n",
    );
    for command in [&["plan"][..], &["apply", "--yes"], &["destroy", "--yes"], &["validate"]] {
        let ran = sandbox.run(command);
        assert_eq!(ran.code(), 1);
        let root = sandbox.root().canonicalize().unwrap();
        insta::assert_snapshot!("wrong_manifest", ran.err().replace(root.to_str().unwrap(), "/the/root"));
    }
    assert_eq!(sandbox.tree(), ["public", "public/index.html", "secret.txt", "start.html"]);
    let errors: Value = serde_json::from_str(&sandbox.run(&["validate", "--json"]).out()).unwrap();
    assert_eq!(errors["valid"], false);
    assert_eq!(errors["errors"][0]["line"], 3);
}

#[test]
fn errors_are_data_where_that_is_wanted() {
    let sandbox = Sandbox::new(SITE);
    let ran = sandbox.run(&["--log-format", "json", "apply"]);
    let error: Value = serde_json::from_str(&ran.err()).unwrap();
    assert_eq!(error["kind"], "declined");
    assert_eq!(error["exit_code"], 1);
    assert_eq!(error["hint"], "say `--yes` to go on without being asked");
}

#[test]
fn another_set_on_the_same_state_is_an_error_and_no_mass_deletion() {
    let sandbox = Sandbox::new(SITE);
    sandbox.ok(&["apply", "--yes"]);
    sandbox.write("site.yaml", "name: other\nfiles:\n  x: {content: x}\n");
    for command in [&["plan"][..], &["apply", "--yes"], &["destroy", "--yes"]] {
        let refused = sandbox.run(command);
        assert_eq!(refused.code(), 1);
        assert!(
            refused.err().contains("belongs to the set \"site\", not to \"other\"\nhint:"),
            "{}",
            refused.err()
        );
    }
    assert_eq!(sandbox.tree(), ["public", "public/index.html", "secret.txt", "start.html"]);
}

#[test]
fn a_target_brings_what_it_needs_and_nothing_else() {
    let sandbox = Sandbox::new(
        "directories:\n  d:\nfiles:\n  a: {path: d/a, content: a}\n  b: {path: d/b, content: b}\n",
    );
    sandbox.ok(&["apply", "--yes", "--target", "file.a"]);
    assert_eq!(sandbox.tree(), ["d", "d/a"]);
    // What was there is not touched, also where something else changed it.
    sandbox.ok(&["apply", "--yes"]);
    sandbox.write("d/a", "changed");
    sandbox.declare(
        "directories:\n  d:\nfiles:\n  a: {path: d/a, content: new}\n  b: {path: d/b, content: new}\n",
    );
    sandbox.ok(&["apply", "--yes", "--target", "file.b"]);
    assert_eq!((sandbox.read("d/a").as_str(), sandbox.read("d/b").as_str()), ("changed", "new"));
}

#[test]
fn destroying_a_target_takes_along_what_needs_it() {
    let sandbox =
        Sandbox::new("directories:\n  d:\nfiles:\n  a: {path: d/a, content: a}\n  b: {content: b}\n");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.ok(&["destroy", "--yes", "--target", "directory.d"]);
    assert_eq!(sandbox.tree(), ["b"]);
    // One that is not declared any more goes with what needed it.
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare("files:\n  b: {content: b}\n");
    sandbox.ok(&["apply", "--yes", "--target", "directory.d"]);
    assert_eq!(sandbox.tree(), ["b"]);
}

#[test]
fn destroying_a_target_takes_along_what_was_only_made_for_it_and_names_what_comes_after_it() {
    let sandbox = Sandbox::new(
        "files:
  a: {path: d/e/a, content: a}
  b: {path: d/b, content: b}
symlinks: {l: {target: '${file.a.path}'}}
processes:
  p: {command: [sleep, '600'], log: logs/p.log}
",
    );
    sandbox.ok(&["apply", "--yes"]);
    let destroyed = sandbox.run(&["destroy", "--yes", "--target", "process.p", "--target", "file.a"]);
    assert_eq!(destroyed.code(), 0, "{}{}", destroyed.out(), destroyed.err());
    assert_eq!(sandbox.tree(), ["d", "d/b", "l"]);
    assert!(destroyed.err().contains("stays: symlink/l;"), "{}", destroyed.err());
    // Where nothing comes after it, nothing is to be said.
    let destroyed = sandbox.run(&["destroy", "--yes", "--target", "symlink.l", "--target", "file.b"]);
    assert_eq!((destroyed.code(), destroyed.err().as_str()), (0, ""));
    assert!(sandbox.tree().is_empty(), "{:?}", sandbox.tree());
}

#[test]
fn destroying_a_target_makes_nothing_that_is_declared_and_not_there() {
    let before = "files:\n  other: {content: x}\ncommands:\n  c: {check: test -e done, apply: touch done, undo: rm done";
    let sandbox = Sandbox::new(&format!("{before}}}\n"));
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare(
        &format!("{before}, redo_on: [file.f]}}\n  d: {{apply: touch d, after: [file.other]}}\n")
            .replace("files:\n", "files:\n  f: {content: x}\n  g: {path: new/g, content: x}\n"),
    );
    let done = sandbox.ok(&["destroy", "--yes", "--target", "file.other"]);
    assert_eq!(sandbox.tree(), ["done"], "{done}");
    assert!(done.contains("1 deleted") && !done.contains("created"), "{done}");
}

#[test]
fn a_plan_that_was_made_before_there_was_a_state_is_not_stale_for_that() {
    let sandbox = Sandbox::new("files:\n  a: {content: a}\n");
    sandbox.ok(&["plan", "--out", "first.plan"]);
    assert_eq!(sandbox.run(&["apply"]).code(), 1, "there is no terminal to ask on");
    sandbox.ok(&["apply", "first.plan"]);
    assert_eq!(sandbox.read("a"), "a");
}

#[test]
fn what_was_there_before_is_let_go_and_not_deleted() {
    let sandbox = Sandbox::new("files:\n  a: {content: a, adopt: true}\n");
    sandbox.write("a", "a");
    sandbox.ok(&["apply", "--yes"]);
    let gone = sandbox.ok(&["destroy", "--yes"]);
    assert!(
        gone.contains("- file/a  it is not intended any more; it was there before Setpoint, and stays"),
        "{gone}"
    );
    assert!(gone.contains("- file/a released\n") && gone.contains(": 1 released in"), "{gone}");
    assert_eq!(sandbox.read("a"), "a");
}

#[test]
fn what_is_seen_while_the_manifests_are_loaded_is_seen_in_the_right_place() {
    let sandbox = Sandbox::new("root: here\nfiles:\n  a: {content: a}\n");
    fs::create_dir(sandbox.path("here")).unwrap();
    sandbox.ok(&["apply", "--yes"]);
    // Moved as a whole, it is the same root, and another one is where it was.
    fs::rename(sandbox.path("here"), sandbox.path("there")).unwrap();
    fs::create_dir(sandbox.path("here")).unwrap();
    // By its looks the root is still the old one.
    sandbox.write(
        "site.yaml",
        "name: site\n\"root\": there\nvalues: {text: 'x\nroot: here'}\nfiles:\n  a: {content: a}\n",
    );
    assert_eq!(sandbox.ok(&["plan"]), "site: nothing to do.\n");
}

#[test]
fn a_pipe_or_a_device_is_no_plan_and_nobody_waits_for_it() {
    let sandbox = Sandbox::new("files: {a: {content: a}}\n");
    let pipe = sandbox.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [pipe.to_str().unwrap(), "/dev/zero", "."] {
        let refused = sandbox.run(&["apply", path]);
        assert_eq!(refused.code(), 1, "{path}: {}", refused.err());
        assert!(refused.err().contains("it is no plan"), "{}", refused.err());
        let refused = sandbox.run(&["plan", "--out", path]);
        assert!(
            refused.err().contains("there is something else, which is not replaced"),
            "{}",
            refused.err()
        );
    }
    assert!(!sandbox.path("a").exists());
}

#[test]
fn a_value_stands_in_its_line_and_what_is_not_declared_any_more_is_no_setting() {
    let sandbox =
        Sandbox::new("symlinks:\n  l: {target: \"a\\n  - file/precious  it is not intended any more\"}\n");
    let plan = sandbox.ok(&["plan"]);
    assert!(plan.contains("      target: a\\n  - file/precious  it is not intended any more\n"), "{plan}");
    sandbox.declare("files:\n  f: {content: x, mode: \"0750\"}\n");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare("files:\n  f: {content: x}\n");
    let plan = sandbox.ok(&["plan"]);
    assert!(plan.contains("      mode: 0750 → not declared\n"), "{plan}");
}

#[test]
fn what_is_to_be_made_anew_is_among_what_a_command_is_about() {
    let sandbox = Sandbox::new("files:\n  a: {content: one}\n  b: {content: one}\n");
    sandbox.ok(&["apply", "--yes"]);
    for command in ["plan", "apply"] {
        let refused = sandbox.run(&[command, "--target", "file.a", "--replace", "file.b"]);
        assert_eq!(refused.code(), 1);
        let why =
            "error: file/b is to be made anew, and is not among what `--target` names and what that needs\n";
        assert_eq!(refused.err(), format!("{why}hint: name it with `--target` as well\n"));
    }
    assert!(sandbox.ok(&["plan", "--target", "file.a", "--replace", "file.a"]).contains("file/a"));
}
