//! What is shown of differences, refusals and runs is so, whoever reads it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::Value;
use setpoint_testutils::{need, part};

use crate::full::{fill, with_small_state};
use crate::sandbox::{Sandbox, eventually};

/// A command that has begun when there is a file, and goes on when there is another, or no sandbox any more.
fn waiting(begun: &str, rest: &str) -> String {
    format!("'touch {begun}; until test -e go || ! test -e site.yaml; do sleep 0.05; done; {rest}'")
}

#[test]
fn a_run_that_has_begun_is_finished_although_nobody_reads_any_more() {
    for (last, code) in [("true", 0), ("false", 1)] {
        let sandbox = Sandbox::new(&format!(
            "commands:\n  one: {{apply: {}}}\n  two: {{apply: touch two; {last}, after: [command.one]}}\n",
            waiting("begun", "true")
        ));
        let mut applying = sandbox.command(&["apply", "--yes"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut reader = BufReader::new(applying.stdout.take().unwrap());
        let mut first = String::new();
        reader.read_line(&mut first).unwrap();
        assert_eq!(first, "Plan for site:\n");
        eventually("it has begun", || sandbox.path("begun").exists());
        drop(reader);
        sandbox.write("go", "");
        assert_eq!(applying.wait().unwrap().code(), Some(code), "what came of it is how it ends");
        assert!(sandbox.path("two").exists());
        let history = sandbox.ok(&["history"]);
        assert!(history.contains(if code == 0 { "2 created" } else { "1 created, 1 failed" }), "{history}");
    }
}

#[test]
fn what_was_done_is_a_success_although_nobody_reads_of_it() {
    let sandbox = Sandbox::new("files: {f: {content: x}}\n");
    let unread = |args: &[&str]| {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        sandbox.command(args).stdout(writer).status().unwrap().code()
    };
    // Nothing of it is shown before it is done.
    assert_eq!(unread(&["apply", "--yes", "--json"]), Some(0));
    assert_eq!(sandbox.read("f"), "x");
    assert_eq!(unread(&["state", "rm", "file.f"]), Some(0));
    assert_eq!(sandbox.ok(&["state", "list"]), "");
    assert_eq!(unread(&["state", "import", "file.f"]), Some(0));
    assert_eq!(sandbox.ok(&["state", "list"]), "file/f  (adopted)\n");
}

#[test]
fn a_text_beside_one_that_is_too_long_to_be_shown_is_told_by_size_and_digest() {
    let sandbox = Sandbox::new("files: {f: {source: data}}\n");
    sandbox.write("data", "one\n");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.write("data", &"x".repeat(70_000));
    let plan = sandbox.ok(&["plan"]);
    assert!(plan.contains("      content: \"one\\n\" → 70000 bytes, sha256 "), "{plan}");
    assert!(!plan.contains("No newline") && !plan.contains("@@"), "{plan}");
    let json: Value = serde_json::from_str(&sandbox.ok(&["plan", "--json"])).unwrap();
    let content = &json["plan"]["operations"][0]["detail"][0];
    assert_eq!(content["old"], "\"one\\n\"", "{content}");
    assert!(content["new"].as_str().unwrap().starts_with("70000 bytes, sha256 "), "{content}");
    sandbox.ok(&["apply", "--yes"]);
    assert!(sandbox.ok(&["show"]).contains("content: \"one\\n\" → 70000 bytes"));
    sandbox.write("f", "two\n");
    let drift = sandbox.ok(&["plan"]);
    assert!(drift.contains("~ file/f is changed\n      content: 70000 bytes, sha256 "), "{drift}");
    assert!(drift.contains(" → \"two\\n\"\n") && !drift.contains("No newline"), "{drift}");
    // What is no text at all is told so as well, and two texts are whole.
    fs::write(sandbox.path("data"), b"\0\xff").unwrap();
    assert!(sandbox.ok(&["plan"]).contains("content: \"two\\n\" → 2 bytes, sha256 "));
    sandbox.write("data", "three\n");
    let json: Value = serde_json::from_str(&sandbox.ok(&["plan", "--json"])).unwrap();
    let content = &json["plan"]["operations"][0]["detail"][0];
    assert_eq!((&content["old"], &content["new"]), (&"two\n".into(), &"three\n".into()), "{content}");
}

#[test]
fn lines_that_end_as_on_other_systems_are_shown_to_do_so() {
    let sandbox = Sandbox::new("files: {f: {content: \"a\\nb\\n\"}, g: {content: \"c\\r\\n\"}}\n");
    assert!(sandbox.ok(&["plan"]).contains("        | c␍\n"));
    sandbox.ok(&["apply", "--yes"]);
    sandbox.write("f", "a\r\nb\n");
    let plan = sandbox.ok(&["plan"]);
    let (drift, repair) = plan.split_once("Plan for").unwrap();
    assert!(drift.contains("        -a\n        +a␍\n         b\n"), "{plan}");
    assert!(repair.contains("        -a␍\n        +a\n         b\n"), "{plan}");
}

#[test]
fn what_is_protected_is_not_said_to_be_deleted_by_the_next_run() {
    let sandbox = Sandbox::new("files:\n  f: {content: x, prevent_destroy: true}\n  g: {content: x}\n");
    sandbox.ok(&["apply", "--yes"]);
    assert!(sandbox.ok(&["explain", "file.f"]).contains("it is protected by `prevent_destroy`"));
    sandbox.declare("files:\n  g: {content: y}\n");
    assert_eq!(sandbox.run(&["apply", "--yes"]).code(), 1, "it is refused as a whole");
    for item in ["file.f", "file.g"] {
        let explained = sandbox.ok(&["explain", item]);
        assert!(!explained.contains("the next run has it"), "{explained}");
        let refused = "the next run is refused as a whole: the plan deletes what is protected by \
                       `prevent_destroy`: file/f; if they may go, say `setpoint state unprotect file.f`";
        assert!(explained.contains(refused), "{explained}");
    }
    let json: Value = serde_json::from_str(&sandbox.ok(&["explain", "file.f", "--json"])).unwrap();
    assert_eq!((&json["protected"], &json["causes"][0]["next"]), (&true.into(), &Value::Null), "{json}");
    sandbox.ok(&["state", "unprotect", "file.f"]);
    let explained = sandbox.ok(&["explain", "file.f"]);
    assert!(
        explained.contains("the next run has it deleted") && !explained.contains("protected"),
        "{explained}"
    );
}

#[test]
fn watch_says_what_to_do_about_what_it_refuses_and_that_can_be_done() {
    let sandbox = Sandbox::new("files:\n  f: {content: x, prevent_destroy: true}\n  g: {content: x}\n");
    let watching = sandbox.start(&["watch", "--interval", "1h"]);
    eventually("it is protected", || sandbox.ok(&["state", "list"]).contains("file/f  (protected)"));
    sandbox.declare("files:\n  g: {content: x}\n");
    watching.until("nothing is changed until this is mended");
    let log = watching.log();
    assert!(log.contains("hint: if they may go, say `setpoint state unprotect file.f`, or declare"), "{log}");
    assert!(log.contains("`setpoint state` can be used while this `watch` does not run"), "{log}");
    let refused = sandbox.run(&["state", "unprotect", "file.f"]);
    assert_eq!(refused.code(), 1);
    assert!(
        refused.err().contains("for anything else end it, by Ctrl-C or `systemctl stop`"),
        "{}",
        refused.err()
    );
    // The other way goes beside it.
    sandbox.declare("files:\n  f: {content: x}\n  g: {content: x}\n");
    eventually("it is not protected any more", || !sandbox.ok(&["state", "list"]).contains("protected"));
    sandbox.declare("files:\n  g: {content: x}\n");
    eventually("it is deleted", || !sandbox.path("f").exists());
}

#[test]
fn programs_are_given_the_hint_of_a_refusal_too() {
    let sandbox = Sandbox::new("files:\n  f: {content: x, prevent_destroy: true}\n  g: {content: x}\n");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare("files:\n  g: {content: x}\n");
    let mut watching = sandbox.start(&["watch", "--json", "--report-only"]);
    watching.until("\"refused\"");
    let log = watching.log();
    let event: Value =
        serde_json::from_str(log.lines().find(|line| line.contains("\"refused\"")).unwrap()).unwrap();
    let hint = event["hint"].as_str().unwrap();
    assert!(hint.contains("`setpoint state unprotect file.f`"), "{event}");
    // Who only reports keeps nobody from it.
    assert!(!hint.contains("does not run"), "{event}");
    sandbox.ok(&["state", "unprotect", "file.f"]);
    watching.signal(Signal::SIGTERM);
    assert_eq!(watching.wait(), 0);
}

#[test]
fn what_is_put_back_is_not_said_to_stay() {
    let sandbox = Sandbox::new(
        "files:\n  other: {content: ours, adopt: true}\n  same: {content: same, adopt: true}\n  gone: {content: x, adopt: true}\n",
    );
    for (file, content) in [("other", "theirs"), ("same", "same"), ("gone", "theirs")] {
        sandbox.write(file, content);
    }
    sandbox.ok(&["apply", "--yes"]);
    fs::remove_file(sandbox.path("gone")).unwrap();
    let shown = sandbox.run(&["destroy"]).out();
    let put_back = "it was there before Setpoint, and what it was then is put back";
    assert!(shown.contains(&format!("- file/other  it is not intended any more; {put_back}")), "{shown}");
    assert!(
        shown.contains("- file/same  it is not intended any more; it was there before Setpoint, and stays")
    );
    let gone = shown.lines().find(|line| line.contains("- file/gone  ")).unwrap();
    assert!(gone.ends_with(put_back), "{gone}");
    let explained = sandbox.ok(&["explain", "file.other"]);
    assert!(explained.contains("what it was then is put back when it is not declared"), "{explained}");
    assert!(sandbox.ok(&["explain", "file.same"]).contains("and stays when it is not declared any more"));
    sandbox.ok(&["destroy", "--yes"]);
    for (file, content) in [("other", "theirs"), ("same", "same"), ("gone", "theirs")] {
        assert_eq!(sandbox.read(file), content);
    }
}

#[test]
fn failures_are_counted_over_all_runs() {
    let sandbox = Sandbox::new("files: {f: {content: x}}\n");
    sandbox.write("f", "theirs");
    for times in ["once", "2 times, last", "3 times, last"] {
        assert_eq!(sandbox.run(&["apply", "--yes"]).code(), 1);
        let explained = sandbox.ok(&["explain", "file.f"]);
        assert!(explained.contains(&format!("its creation failed {times} at ")), "{explained}");
    }
    fs::remove_file(sandbox.path("f")).unwrap();
    sandbox.ok(&["apply", "--yes"]);
    // So are those of a change, unless it is another one.
    sandbox.declare("commands: {c: {check: test -e ready, apply: 'false'}}\nfiles: {f: {content: x}}\n");
    for times in ["once", "2 times, last"] {
        assert_eq!(sandbox.run(&["apply", "--yes"]).code(), 1);
        let explained = sandbox.ok(&["explain", "command.c"]);
        assert!(explained.contains(&format!("failed {times} at ")), "{explained}");
    }
}

#[test]
fn a_deletion_that_failed_is_tried_again_by_the_command_that_deletes() {
    let sandbox =
        Sandbox::new("commands: {c: {apply: touch made, undo: test -e go}}\nfiles: {f: {content: x}}\n");
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.run(&["destroy", "--yes"]).code(), 1);
    let explained = sandbox.ok(&["explain", "command.c"]);
    assert!(explained.contains("its deletion failed once at "), "{explained}");
    assert!(explained.contains("`setpoint destroy` tries it again"), "{explained}");
    // What is not declared is deleted by `apply`.
    sandbox.declare("files: {f: {content: x}}\n");
    assert_eq!(sandbox.run(&["apply", "--yes"]).code(), 1);
    let explained = sandbox.ok(&["explain", "command.c"]);
    assert!(explained.contains("`setpoint apply` tries it again"), "{explained}");
    sandbox.write("go", "");
    sandbox.ok(&["destroy", "--yes"]);
}

#[test]
fn what_is_imported_and_not_as_declared_was_not_changed_by_anybody() {
    let sandbox = Sandbox::new("files: {f: {content: ours}}\n");
    sandbox.write("f", "theirs");
    let imported = sandbox.run(&["state", "import", "file.f"]);
    assert!(imported.err().contains("Some are not as declared"), "{}", imported.err());
    let explained = sandbox.ok(&["explain", "file.f"]);
    assert!(explained.starts_with("file/f is pending\n"), "{explained}");
    assert!(!explained.contains("by something else"), "{explained}");
    let plan = sandbox.ok(&["plan"]);
    assert!(!plan.contains("Drift") && plan.contains("-theirs") && plan.contains("+ours"), "{plan}");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.read("f"), "theirs");
}

#[test]
fn the_item_that_has_a_process_made_anew_is_named_and_the_history_counts_what_the_run_did() {
    let sandbox = Sandbox::new(
        "files:\n  a: {content: x}\n  conf: {content: x}\nprocesses:\n  p: {command: [sleep, '600'], restart_on: [file.conf, file.a]}\n",
    );
    sandbox.ok(&["apply", "--yes"]);
    sandbox.write("conf", "changed");
    let plan = sandbox.ok(&["plan"]);
    assert!(plan.contains("± process/p  an item with which it is made anew changed: file/conf\n"), "{plan}");
    let explained = sandbox.ok(&["explain", "process.p"]);
    assert!(explained.contains("\n  file/conf has drifted"), "{explained}");
    let done = sandbox.ok(&["apply", "--yes"]);
    assert!(done.contains("Run 2: 1 modified, 1 made anew in"), "{done}");
    let history = sandbox.ok(&["history"]);
    assert!(history.lines().next().unwrap().contains(" done      1 modified, 1 made anew in "), "{history}");
    let shown = sandbox.ok(&["show"]);
    assert!(shown.contains("+ process/p  an item with which it is made anew changed: file/conf"), "{shown}");
    sandbox.ok(&["destroy", "--yes"]);
}

#[test]
fn a_root_that_was_renamed_is_called_by_its_new_name() {
    let sandbox = Sandbox::new("");
    for root in ["old", "other"] {
        fs::create_dir(sandbox.path(root)).unwrap();
    }
    let declare = |root: &str| sandbox.declare(&format!("root: {root}\nfiles:\n  f: {{content: x}}\n"));
    declare("old");
    sandbox.ok(&["apply", "--yes"]);
    fs::rename(sandbox.path("old"), sandbox.path("new")).unwrap();
    declare("new");
    assert!(sandbox.ok(&["apply", "--yes"]).contains("nothing to do"));
    declare("other");
    let refused = sandbox.run(&["plan"]);
    assert!(
        refused.err().contains("/new, and the manifests say ") && !refused.err().contains("/old"),
        "{}",
        refused.err()
    );
}

#[test]
fn hints_fit_what_the_system_does_not_allow() {
    need!(part::root("a file system that can't be written to"));
    let (sandbox, _mounted) = with_small_state("root: small\nfiles: {f: {content: x}}\n");
    fill(&sandbox.path("small/filler"));
    let full = sandbox.run(&["plan", "--out", "small/plan"]);
    assert_eq!(full.code(), 1, "{}", full.err());
    assert!(full.err().contains("hint: free some space, or name a file on another disk"), "{}", full.err());
    fs::remove_file(sandbox.path("small/filler")).unwrap();
    sandbox.ok(&["apply", "--yes"]);
    let remounted =
        Command::new("mount").args(["-o", "remount,ro"]).arg(sandbox.path("small")).status().unwrap();
    assert!(remounted.success());
    sandbox.declare("root: small\nfiles: {f: {content: y}}\n");
    let failed = sandbox.run(&["apply", "--yes"]);
    assert!(failed.err().contains("can't write f: the file system is mounted read-only"), "{}", failed.err());
    assert!(!failed.err().contains("as a user who may"), "{}", failed.err());
    let kept = sandbox.run(&["plan", "--out", "small/plan"]);
    assert!(kept.err().contains("hint: name a file in a directory that you may write to"), "{}", kept.err());
    let state = sandbox.run(&["apply", "--yes", "--state", "small/state"]);
    assert!(
        state.err().contains("hint: mount the file system so that it can be written to"),
        "{}",
        state.err()
    );
}

#[test]
fn who_gives_a_manifest_for_a_plan_is_told_how_to_name_it() {
    let sandbox = Sandbox::new("files: {f: {content: x}}\n");
    for (named, way) in [("site.yaml", "-f site.yaml"), (".", "-f .")] {
        let refused = sandbox.run(&["apply", named]);
        assert_eq!(refused.code(), 1);
        assert!(
            refused.err().contains(&format!("can't use the plan {named}: it is no plan\n")),
            "{}",
            refused.err()
        );
        assert!(
            refused.err().contains(&format!("hint: manifests are named with `-f`: `setpoint apply {way}`"))
        );
    }
    assert!(sandbox.ok(&["apply", "--yes", "-f", "site.yaml"]).contains("1 created"));
}

#[test]
fn a_kept_plan_is_carried_out_by_the_command_that_is_shown() {
    let sandbox = Sandbox::new("");
    fs::create_dir(sandbox.path("it's here")).unwrap();
    sandbox.write("it's here/site.yaml", "files: {f: {content: x}}\n");
    let kept = sandbox.ok(&["plan", "-f", "it's here", "--state", "kept state", "--out", "a plan"]);
    let command = kept.lines().last().unwrap().split('`').nth(1).unwrap();
    assert_eq!(command, r"setpoint apply -f 'it'\''s here' --state 'kept state' 'a plan'", "{kept}");
    sandbox.ok(&["apply", "-f", "it's here", "--state", "kept state", "a plan"]);
    assert_eq!(sandbox.read("it's here/f"), "x");
}
