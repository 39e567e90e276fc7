//! What was asked for wrongly, and what people and programs are told of errors.

use std::fs;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::sandbox::{Sandbox, eventually};

#[test]
fn who_names_what_nobody_knows_has_used_the_command_wrongly() {
    let sandbox = Sandbox::new("values: {port: 80}\nfiles:\n  f: {content: x}\n");
    sandbox.ok(&["apply", "--yes"]);
    for args in [
        &["plan", "--target", "file.g"][..],
        &["apply", "--yes", "--replace", "file.g"],
        &["destroy", "--yes", "--target", "file.g"],
        &["explain", "file.g"],
        &["state", "show", "file.g"],
        &["state", "rm", "file.g"],
        &["state", "mv", "file.g", "file.h"],
        &["state", "unprotect", "file.g"],
        &["state", "import", "file.g"],
        &["show", "99"],
        &["plan", "--var", "prot=81"],
        &["validate", "--var", "prot=81"],
        &["plan", "--parallelism", "0"],
        &["history", "-n", "0"],
    ] {
        let refused = sandbox.run(args);
        assert_eq!(refused.code(), 64, "{args:?}: {}", refused.err());
    }
    // What the manifest itself says wrong is no matter of the command line.
    sandbox.declare("files:\n  f: {content: x, mod: x}\n");
    assert_eq!(sandbox.run(&["plan", "--var", "prot=81"]).code(), 1);
}

#[test]
fn what_is_wrong_with_an_argument_is_said_in_words_of_its_own() {
    let sandbox = Sandbox::new("files:\n  f: {content: x}\n");
    sandbox.write("taken", "");
    for (args, words) in [
        (&["plan", "--parallelism", "0"][..], "a whole number that is at least 1"),
        (&["plan", "--parallelism", "many"], "a whole number that is at least 1"),
        (&["history", "-n", "0"], "a whole number that is at least 1"),
        (&["show", "abc"], "the number of a run, as `setpoint history` lists them"),
        (&["apply", "--lock-timeout", "soon"], "a time such as 30s or 2m"),
        (&["man", "taken"], "hint: name a directory that you may write to"),
    ] {
        let refused = sandbox.run(args);
        assert_eq!(refused.code(), 64, "{args:?}");
        assert!(refused.err().contains(words), "{args:?}: {}", refused.err());
    }
}

#[test]
fn a_signal_during_the_last_operation_is_no_failure() {
    let sandbox = Sandbox::new(
        "commands:\n  slow: {apply: 'touch begun; until test -e go || ! test -e site.yaml; do sleep 0.05; done'}\n",
    );
    let mut applying = sandbox.start(&["apply", "--yes"]);
    eventually("it has begun", || sandbox.path("begun").exists());
    applying.signal(Signal::SIGINT);
    applying.until("Stopping: what runs is finished");
    sandbox.write("go", "");
    assert_eq!(applying.wait(), 0, "{}", applying.log());
    assert!(sandbox.ok(&["plan"]).contains("nothing to do"));
    assert!(sandbox.ok(&["history"]).contains(" done "), "{}", sandbox.ok(&["history"]));
    // With something left to do it is one.
    fs::remove_file(sandbox.path("begun")).unwrap();
    fs::remove_file(sandbox.path("go")).unwrap();
    sandbox.declare(
        "commands:\n  slow2: {apply: 'touch begun; until test -e go || ! test -e site.yaml; do sleep 0.05; done'}\n  \
         later: {apply: touch later, after: [command.slow2]}\n",
    );
    let mut applying = sandbox.start(&["apply", "--yes"]);
    eventually("it has begun", || sandbox.path("begun").exists());
    applying.signal(Signal::SIGINT);
    applying.until("Stopping: what runs is finished");
    sandbox.write("go", "");
    assert_eq!(applying.wait(), 1, "{}", applying.log());
    assert!(!sandbox.path("later").exists());
}

#[test]
fn errors_of_manifests_are_data_and_not_drawings() {
    let sandbox = Sandbox::new("files:\n  f: {contents: x}\n");
    let refused = sandbox.run(&["plan", "--log-format", "json"]);
    let error: Value = serde_json::from_str(refused.err().trim()).unwrap();
    assert_eq!(error["message"], "the manifest has 1 error, and nothing was changed");
    let wrong = &error["diagnostics"][0];
    assert_eq!((&wrong["line"], &wrong["column"]), (&Value::from(3), &Value::from(7)), "{error}");
    assert_eq!(wrong["hint"], "did you mean `content`?");
    assert!(!refused.err().contains("^^"), "{}", refused.err());
    // Under `watch` as well.
    sandbox.declare("files:\n  f: {content: x}\n");
    let watching = sandbox.start(&["watch", "--json"]);
    eventually("it is applied", || sandbox.path("f").exists());
    sandbox.declare("files:\n  f: {contents: x}\n");
    watching.until("\"event\":\"wrong\"");
    let log = watching.log();
    let line = log.lines().find(|line| line.contains("\"wrong\"")).unwrap();
    let event: Value = serde_json::from_str(line).unwrap();
    assert_eq!(event["diagnostics"][0]["message"], "a file has no attribute `contents`", "{event}");
    assert!(!log.contains("^^"), "{log}");
}

#[test]
fn an_explanation_is_data_for_programs() {
    let sandbox = Sandbox::new("files:\n  a: {content: x}\n  b: {content: x, after: [file.a]}\n");
    fs::create_dir(sandbox.path("a")).unwrap();
    assert_eq!(sandbox.run(&["apply", "--yes"]).code(), 1);
    let explained: Value = serde_json::from_str(&sandbox.ok(&["explain", "file.b", "--json"])).unwrap();
    assert_eq!(explained.get("explanation"), None, "no prose: {explained}");
    let causes = explained["causes"].as_array().unwrap();
    assert_eq!((&causes[0]["item"], &causes[0]["condition"]["kind"]), (&"file/b".into(), &"pending".into()));
    let cause = causes.iter().find(|cause| cause["item"] == "file/a").unwrap();
    assert_eq!((&cause["depth"], &cause["condition"]["kind"]), (&1.into(), &"failed".into()), "{explained}");
    let failure = &cause["failure"];
    assert_eq!((&failure["operation"], &failure["attempts"]), (&"create".into(), &1.into()), "{explained}");
    assert!(failure["error"].as_str().unwrap().contains("is there already"), "{explained}");
    sandbox.declare("files:\n  c: {content: x}\n");
    let explained: Value = serde_json::from_str(&sandbox.ok(&["explain", "file.c", "--json"])).unwrap();
    let next = &explained["causes"][0]["next"];
    assert_eq!((&next["action"], &next["code"]), (&"create".into(), &"missing".into()), "{explained}");
}

#[test]
fn the_state_shows_secrets_only_where_they_are_asked_for() {
    let sandbox = Sandbox::new(
        "files:\n  f: {content: hidden1, sensitive: true}\n  g: {content: plain}\n\
         commands:\n  c: {apply: 'true', env: {KEY: hidden2}, sensitive: true}\n",
    );
    sandbox.ok(&["apply", "--yes"]);
    for (item, secret) in [("file.f", "hidden1"), ("command.c", "hidden2")] {
        for json in [&["--json"][..], &[]] {
            let shown = sandbox.ok(&[&["state", "show", item], json].concat());
            assert!(!shown.contains(secret) && shown.contains("(sensitive)"), "{shown}");
            let shown = sandbox.ok(&[&["state", "show", item, "--show-secrets"], json].concat());
            assert!(shown.contains(secret), "{shown}");
        }
    }
    assert!(sandbox.ok(&["state", "show", "file.g", "--json"]).contains("plain"));
}

#[test]
fn what_the_manifests_protect_is_not_unprotected_in_the_state() {
    let sandbox = Sandbox::new("files:\n  f: {content: x, prevent_destroy: true}\n");
    sandbox.ok(&["apply", "--yes"]);
    let refused = sandbox.run(&["state", "unprotect", "file.f"]);
    assert_eq!(refused.code(), 1);
    assert!(
        refused.err().contains("declared with `prevent_destroy` in ./site.yaml:3")
            || refused.err().contains("in site.yaml:3"),
        "{}",
        refused.err()
    );
    assert!(sandbox.ok(&["state", "list"]).contains("protected"));
    sandbox.declare("");
    sandbox.ok(&["state", "unprotect", "file.f"]);
    sandbox.ok(&["apply", "--yes"]);
    assert!(!sandbox.path("f").exists());
}

#[test]
fn destroy_needs_neither_sources_nor_templates() {
    let sandbox = Sandbox::new(
        "values: {x: 1}\nfiles:\n  copy: {source: from/here}\n  made: {template: '{{ x }}'}\n  \
         page: {template_source: from/page, prevent_destroy: false}\n  plain: {content: x}\n\
         processes:\n  p: {command: 'sleep 600 # ${file.copy.sha256}'}\n",
    );
    fs::create_dir(sandbox.path("from")).unwrap();
    sandbox.write("from/here", "1");
    sandbox.write("from/page", "{{ x }}");
    sandbox.ok(&["apply", "--yes"]);
    fs::remove_dir_all(sandbox.path("from")).unwrap();
    sandbox.declare(&sandbox.read("site.yaml").replace("name: site\n", "").replace("values: {x: 1}\n", ""));
    assert_eq!(sandbox.run(&["plan"]).code(), 1);
    // Of a part, and the rest stays as it is.
    let done = sandbox.ok(&["destroy", "--yes", "--target", "file.plain"]);
    assert!(done.contains("1 deleted"), "{done}");
    assert_eq!(sandbox.tree(), ["copy", "made", "page"]);
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.tree(), [""; 0]);
}

#[test]
fn an_account_that_is_not_on_the_host_is_named_before_anything_is_done() {
    let sandbox = Sandbox::new(
        "files:\n  f: {content: x, owner: nobody-such}\ndirectories:\n  d: {group: none-such}\n",
    );
    let checked = sandbox.run(&["validate"]);
    assert_eq!(checked.code(), 0, "the manifest may be for another host");
    assert!(
        checked.err().contains("file/f: there is no user \"nobody-such\" on this host"),
        "{}",
        checked.err()
    );
    assert!(
        checked.err().contains("directory/d: there is no group \"none-such\" on this host"),
        "{}",
        checked.err()
    );
    let plan = sandbox.ok(&["plan"]);
    assert!(plan.contains("warning: file/f can't be made as declared: there is no user"), "{plan}");
}

#[test]
fn what_failed_to_be_created_can_be_imported() {
    let sandbox = Sandbox::new("files:\n  f: {content: x}\n");
    sandbox.write("f", "theirs");
    assert_eq!(sandbox.run(&["apply", "--yes"]).code(), 1);
    sandbox.ok(&["state", "import", "file.f"]);
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.read("f"), "x");
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.read("f"), "theirs");
}

#[test]
fn a_hint_after_a_failure_promises_nothing_that_will_not_happen() {
    let sandbox = Sandbox::new("files:\n  f: {content: x}\n");
    fs::create_dir(sandbox.path("f")).unwrap();
    for _ in 0..2 {
        let failed = sandbox.run(&["apply", "--yes"]);
        assert!(failed.err().contains("mend what failed and run `setpoint apply` again"), "{}", failed.err());
        assert!(!failed.err().contains("goes on"), "{}", failed.err());
    }
}

#[test]
fn who_has_two_damaged_states_is_told_so_and_how_to_start_anew() {
    let sandbox = Sandbox::new("files:\n  f: {content: x}\n");
    sandbox.ok(&["apply", "--yes"]);
    for damage in ["garbage".repeat(100), "\0".repeat(64)] {
        for file in ["state.redb", "state.last"] {
            sandbox.write(&format!(".setpoint/{file}"), &damage);
        }
        for args in [&["plan"][..], &["apply", "--yes"], &["state", "list"]] {
            let refused = sandbox.run(args);
            assert_eq!(refused.code(), 1, "{args:?}");
            let words = refused.err();
            assert!(
                words.contains("state.redb is damaged") && words.contains("its copy can't be used"),
                "{words}"
            );
            assert!(words.contains("hint: put back `state.redb` from a backup"), "{words}");
        }
    }
    // What the hint says can be done.
    for file in ["state.redb", "state.last"] {
        fs::remove_file(sandbox.path(&format!(".setpoint/{file}"))).unwrap();
    }
    sandbox.declare("files:\n  f: {content: x, adopt: true}\n");
    sandbox.ok(&["apply", "--yes"]);
    assert!(sandbox.ok(&["plan"]).contains("nothing to do"));
}

#[test]
fn a_command_whose_run_was_cut_off_is_applied_anew_and_not_called_deleted() {
    let sandbox = Sandbox::new(
        "commands:\n  c: {apply: 'touch begun; until test -e go || ! test -e site.yaml; do sleep 0.05; done'}\n",
    );
    let mut applying = sandbox.start(&["apply", "--yes"]);
    eventually("it has begun", || sandbox.path("begun").exists());
    applying.signal(Signal::SIGKILL);
    let _ = applying.child.wait();
    sandbox.write("go", "");
    let done = sandbox.ok(&["apply", "--yes"]);
    assert!(!done.contains("deleted"), "{done}");
    assert!(done.contains("command/c will be re-applied") && done.contains("1 made anew"), "{done}");
}

#[test]
fn watch_pauses_between_two_looks() {
    let sandbox = Sandbox::new("files: {a: {content: x}}\n");
    let refused = sandbox.run(&["watch", "--interval", "0s"]);
    assert_eq!(refused.code(), 64);
    assert!(refused.err().contains("it must be 100ms or more"), "{}", refused.err());
}
