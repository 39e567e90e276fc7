//! Nothing is lost: what each of these once took away, or forgot.

use std::fs;
use std::os::unix::fs::{FileExt, symlink};
use std::path::Path;
use std::process::Command;

use nix::sys::signal::Signal;
use setpoint_testutils::{need, part};

use crate::sandbox::{Sandbox, Started, eventually};

/// Destroys, and is killed while the slow `undo` of a command runs.
fn destroyed_and_killed(sandbox: &Sandbox) {
    let mut destroying = sandbox.start(&["destroy", "--yes"]);
    eventually("the undo has begun", || sandbox.path("undoing").exists());
    destroying.signal(Signal::SIGKILL);
    let _ = destroying.child.wait();
    fs::remove_file(sandbox.path("undoing")).unwrap();
}

#[test]
fn what_was_adopted_is_still_theirs_when_a_destroy_is_killed_and_run_again() {
    let sandbox = Sandbox::new(
        "files: {motd: {content: \"ours\\n\", adopt: true}}
directories: {data: {adopt: true}}
symlinks: {link: {target: motd, adopt: true}}
commands:
  theirs: {check: test -e state, apply: touch state, undo: rm state}
  slow: {apply: 'true', undo: 'touch undoing; until test -e quick || ! test -e site.yaml; do sleep 0.1; done'}
",
    );
    sandbox.write("motd", "theirs\n");
    sandbox.write("state", "");
    fs::create_dir(sandbox.path("data")).unwrap();
    symlink("elsewhere", sandbox.path("link")).unwrap();
    sandbox.ok(&["apply", "--yes"]);
    destroyed_and_killed(&sandbox);
    sandbox.write("quick", "");
    sandbox.ok(&["destroy", "--yes"]);
    fs::remove_file(sandbox.path("quick")).unwrap();
    fs::remove_file(sandbox.path("undoing")).unwrap();
    assert_eq!(sandbox.tree(), [".log", "data", "link", "motd", "state"]);
    assert_eq!(sandbox.read("motd"), "theirs\n");
    assert_eq!(fs::read_link(sandbox.path("link")).unwrap(), Path::new("elsewhere"));
}

#[test]
fn a_command_that_was_to_be_applied_again_is_when_the_run_is_killed_in_between() {
    let with = |content: &str| {
        format!(
            "files: {{f: {{content: {content}}}}}
commands:
  migrate: {{apply: 'touch undoing; until test -e quick || ! test -e site.yaml; do sleep 0.1; done', redo_on: [file.f]}}
  reload: {{check: test -e loaded, apply: 'cat f >> loaded', redo_on: [command.migrate]}}
"
        )
    };
    let sandbox = Sandbox::new(&with("a"));
    sandbox.write("quick", "");
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.read("loaded"), "a");
    fs::remove_file(sandbox.path("quick")).unwrap();
    fs::remove_file(sandbox.path("undoing")).unwrap();
    sandbox.declare(&with("b"));
    let mut applying = sandbox.start(&["apply", "--yes"]);
    eventually("the migration has begun", || sandbox.path("undoing").exists());
    applying.signal(Signal::SIGKILL);
    let _ = applying.child.wait();
    sandbox.write("quick", "");
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.read("loaded"), "ab");
    assert!(sandbox.ok(&["plan"]).contains("nothing to do"));
}

#[test]
fn a_plan_says_when_undo_will_be_run() {
    let sandbox = Sandbox::new("commands:\n  c: {apply: touch made, undo: rm made}\n");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare("");
    let plan = sandbox.ok(&["plan"]);
    assert!(plan.contains("its `undo` is run"), "{plan}");
}

#[test]
fn protection_outlives_the_line_that_said_so() {
    let protected = "files:\n  f: {content: x, prevent_destroy: true}\n  g: {content: x}\n";
    let sandbox = Sandbox::new("files:\n  f: {content: x}\n  g: {content: x}\n");
    sandbox.ok(&["apply", "--yes"]);
    // Said later, with nothing else to do.
    sandbox.declare(protected);
    sandbox.ok(&["apply", "--yes"]);
    assert!(sandbox.ok(&["state", "list"]).contains("file/f  (protected)"));
    sandbox.declare("files:\n  g: {content: x}\n");
    for command in ["apply", "destroy"] {
        let refused = sandbox.run(&[command, "--yes"]);
        assert_eq!(refused.code(), 1, "{command}");
        assert!(refused.err().contains("protected by `prevent_destroy`: file/f"), "{}", refused.err());
    }
    assert_eq!(sandbox.tree(), ["f", "g"]);
    // A word of its own ends it, and so does a declaration without it.
    assert_eq!(sandbox.run(&["state", "unprotect", "file.h"]).code(), 64);
    sandbox.ok(&["state", "unprotect", "file.f"]);
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.tree(), ["g"]);
    sandbox.declare(protected);
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare("files:\n  f: {content: x}\n  g: {content: x}\n");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare("files:\n  g: {content: x}\n");
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.tree(), ["g"]);
}

#[test]
fn watch_holds_what_is_protected_and_says_so() {
    let sandbox = Sandbox::new("files:\n  f: {content: x, prevent_destroy: true}\n  g: {content: x}\n");
    sandbox.ok(&["apply", "--yes"]);
    let mut watching = sandbox.start(&["watch"]);
    watching.until("watching site");
    sandbox.declare("files:\n  g: {content: y}\n");
    watching.until("nothing is changed until this is mended");
    assert_eq!((sandbox.read("f"), sandbox.read("g")), ("x".to_owned(), "x".to_owned()));
    sandbox.declare("files:\n  f: {content: x}\n  g: {content: y}\n");
    eventually("it goes on", || sandbox.read("g") == "y");
    watching.signal(Signal::SIGTERM);
    assert_eq!(watching.wait(), 0);
}

#[test]
fn watch_does_not_take_a_manifest_that_is_being_saved_for_an_empty_one() {
    let manifest = "files:\n  f: {content: x}\n";
    let sandbox = Sandbox::new(manifest);
    let mut watching = sandbox.start(&["watch"]);
    eventually("it is applied", || sandbox.path("f").exists());
    // Emptied and filled, as some editors save.
    sandbox.write("site.yaml", "");
    sandbox.declare("files:\n  f: {content: y}\n");
    eventually("it follows", || sandbox.read("f") == "y");
    // Left empty, it is a mistake until someone says otherwise.
    sandbox.write("site.yaml", "name: site\n");
    watching.until("the manifests declare nothing any more");
    assert_eq!(sandbox.read("f"), "y");
    watching.signal(Signal::SIGTERM);
    assert_eq!(watching.wait(), 0);
    let refused = sandbox.run(&["watch"]);
    assert_eq!(refused.code(), 1);
    assert!(refused.err().contains("--allow-empty"), "{}", refused.err());
    let mut watching = sandbox.start(&["watch", "--allow-empty"]);
    eventually("it is deleted", || !sandbox.path("f").exists());
    watching.signal(Signal::SIGTERM);
    assert_eq!(watching.wait(), 0);
}

#[test]
fn mending_a_state_that_is_not_there_makes_none() {
    let sandbox = Sandbox::new("files:\n  f: {content: x}\n");
    for args in [
        &["state", "rm", "file.f"][..],
        &["state", "mv", "file.f", "file.g"],
        &["state", "unprotect", "file.f"],
    ] {
        let refused = sandbox.run(args);
        assert_ne!(refused.code(), 0, "{args:?}");
        assert!(refused.err().contains("file/f"), "{}", refused.err());
    }
    assert!(!sandbox.path(".setpoint").exists());
    sandbox.ok(&["apply", "--yes"]);
}

/// Nobody reads what it prints: that is no success, whatever it would have been.
#[test]
fn a_closed_output_is_no_success_for_who_has_done_nothing() {
    let sandbox = Sandbox::new("files:\n  f: {content: x}\n");
    for args in [&["apply", "--yes"][..], &["plan", "--detailed-exitcode"], &["plan"], &["state", "list"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ended = sandbox.command(args).stdout(writer).status().unwrap();
        let printed = args != ["state", "list"];
        assert_eq!(ended.code(), Some(if printed { 141 } else { 0 }), "{args:?}");
    }
    assert!(!sandbox.path("f").exists());
    // Nor is it where the output is full.
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ended = sandbox.command(&["--help"]).stdout(full).status().unwrap();
    assert_eq!(ended.code(), Some(1));
}

#[test]
fn a_large_source_takes_little_memory_and_little_state() {
    let sandbox = Sandbox::new("files:\n  big: {source: data.bin}\n");
    let data = fs::File::create(sandbox.path("data.bin")).unwrap();
    data.set_len(400 << 20).unwrap();
    for args in [&["apply", "--yes"][..], &["plan"], &["apply", "--yes", "--replace", "file.big"]] {
        // The program itself, its libraries and its stacks are most of this: the whole content never fits.
        sandbox.ok_within(300, args);
    }
    assert_eq!(fs::metadata(sandbox.path("big")).unwrap().len(), 400 << 20);
    let state = fs::metadata(sandbox.path(".setpoint/state.redb")).unwrap().len();
    assert!(state < 4 << 20, "{state}");
    // One byte is a change.
    fs::OpenOptions::new().write(true).open(sandbox.path("big")).unwrap().write_at(b"x", 150 << 20).unwrap();
    assert!(sandbox.ok(&["plan"]).contains("~ file/big is changed"));
    sandbox.ok(&["apply", "--yes"]);
    assert!(sandbox.ok(&["plan"]).contains("nothing to do"));
    // Where it was there before, too.
    sandbox.ok(&["state", "rm", "file.big"]);
    for args in [&["state", "import", "file.big"][..], &["plan"], &["destroy", "--yes"]] {
        sandbox.ok_within(300, args);
    }
    assert_eq!(fs::metadata(sandbox.path("big")).unwrap().len(), 400 << 20);
}

#[test]
fn a_saved_plan_is_refused_when_a_manifest_or_a_source_has_changed() {
    let sandbox = Sandbox::new("values: {v: 1}\nfiles:\n  f: {source: data}\n  g: {template: '{{ v }}'}\n");
    sandbox.write("data", &"x".repeat(100_000));
    let stale = |how: &str| {
        let refused = sandbox.run(&["apply", "plan.json"]);
        assert_eq!(refused.code(), 1, "{how}");
        assert!(refused.err().contains("have changed since it was made"), "{how}: {}", refused.err());
        assert!(!sandbox.path("f").exists());
    };
    sandbox.ok(&["plan", "--out", "plan.json"]);
    sandbox.write("data", &"y".repeat(100_000));
    stale("a source");
    sandbox.write("data", &"x".repeat(100_000));
    sandbox.declare("values: {v: 2}\nfiles:\n  f: {source: data}\n  g: {template: '{{ v }}'}\n");
    stale("a value");
    // What was set when it was planned is set when it is applied.
    sandbox.ok(&["plan", "--out", "plan.json", "--var", "v=3"]);
    sandbox.ok(&["apply", "plan.json"]);
    assert_eq!(sandbox.read("g"), "3");
}

/// What is declared is below the root, wherever that is: where nothing is there yet, nothing else tells one from another.
#[test]
fn a_saved_plan_is_refused_for_another_root() {
    let sandbox = Sandbox::new("root: a\nfiles: {f: {content: x}}\n");
    for root in ["a", "b"] {
        fs::create_dir(sandbox.path(root)).unwrap();
    }
    let stale = |how: &str| {
        let refused = sandbox.run(&["apply", "plan.json"]);
        assert_eq!(refused.code(), 1, "{how}");
        assert!(refused.err().contains(how), "{how}: {}", refused.err());
        assert!(!sandbox.path("a/f").exists() && !sandbox.path("b/f").exists(), "{how}");
    };
    sandbox.ok(&["plan", "--out", "plan.json"]);
    sandbox.declare("root: b\nfiles: {f: {content: x}}\n");
    stale("it was made for the root");
    sandbox.declare("root: a\nfiles: {f: {content: x}}\n");
    fs::rename(sandbox.path("a"), sandbox.path("away")).unwrap();
    fs::create_dir(sandbox.path("a")).unwrap();
    stale("another directory is at");
    // One that was moved is the same, with what was in it.
    sandbox.declare("root: away\nfiles: {f: {content: x}}\n");
    sandbox.ok(&["apply", "plan.json"]);
    assert_eq!(sandbox.read("away/f"), "x");
}

/// Its `undo` would take away what it brings about under its new name.
#[test]
fn a_command_that_has_another_name_now_is_neither_undone_nor_taken_for_somebody_elses() {
    for (was, is) in [
        ("check: test -e x, apply: touch x, undo: rm x", "check: test -e x, apply: touch x, undo: rm x"),
        // Also where something else of it is changed at once.
        (
            "check: test -e x, apply: touch x, undo: rm x",
            "check: test -e x, apply: 'touch x; true', undo: rm -f x",
        ),
        ("apply: touch x, undo: rm x", "apply: touch x, undo: rm x"),
    ] {
        let sandbox = Sandbox::new(&format!("commands: {{a: {{{was}}}}}\n"));
        sandbox.ok(&["apply", "--yes"]);
        sandbox.declare(&format!("commands: {{b: {{{is}}}}}\n"));
        let plan = sandbox.ok(&["plan"]);
        assert!(!plan.contains("`undo` is run"), "{plan}");
        sandbox.ok(&["apply", "--yes"]);
        assert_eq!(sandbox.tree(), ["x"]);
        assert!(sandbox.ok(&["plan"]).ends_with("nothing to do.\n"));
        sandbox.ok(&["destroy", "--yes"]);
        assert_eq!(sandbox.tree(), [""; 0]);
    }
}

/// Notes when it begins and when it ends, which is when there is a file `go`, or no sandbox any more.
const SLOW: &str =
    "echo begun >> log; until test -e go || ! test -e site.yaml; do sleep 0.05; done; echo ended >> log";

/// Waits until a run has said that it waits, and lets go what it waits for.
fn let_go(sandbox: &Sandbox, applying: &Started) {
    applying.until(" s for what a run that was cut off had begun\n");
    assert!(applying.log().contains("command/c: check has been waiting for "), "{}", applying.log());
    assert_eq!(sandbox.read("log"), "begun\n", "two of them ran at a time");
    sandbox.write("go", "");
}

#[test]
fn a_command_that_outlives_a_killed_run_is_waited_for() {
    let sandbox = Sandbox::new(&format!("commands:\n  c: {{apply: '{SLOW}'}}\n"));
    let mut applying = sandbox.start(&["apply", "--yes"]);
    eventually("it has begun", || sandbox.path("log").exists());
    applying.signal(Signal::SIGKILL);
    let _ = applying.child.wait();
    let mut again = sandbox.start(&["apply", "--yes"]);
    let_go(&sandbox, &again);
    assert_eq!(again.wait(), 0, "{}", again.log());
    assert_eq!(sandbox.read("log"), "begun\nended\nbegun\nended\n");
}

#[test]
fn a_command_that_outlives_a_killed_run_is_waited_for_also_without_the_mark_in_its_environment() {
    let sandbox = Sandbox::new(&format!("commands:\n  c: {{apply: [env, -i, /bin/sh, -c, '{SLOW}']}}\n"));
    let mut applying = sandbox.start(&["apply", "--yes"]);
    eventually("it is noted", || {
        fs::read_to_string(sandbox.path(".setpoint/journal")).is_ok_and(|text| text.contains("\"running\""))
    });
    eventually("it has begun", || sandbox.path("log").exists());
    applying.signal(Signal::SIGKILL);
    let _ = applying.child.wait();
    let mut again = sandbox.start(&["apply", "--yes"]);
    let_go(&sandbox, &again);
    assert_eq!(again.wait(), 0, "{}", again.log());
    assert_eq!(sandbox.read("log"), "begun\nended\nbegun\nended\n");
}

/// The leader of the session is outside the namespace of processes there, and has no number inside it.
#[test]
fn it_is_waited_for_in_a_container_that_was_entered_too() {
    need!(part::root("a namespace of processes"));
    let sandbox = Sandbox::new(&format!("commands:\n  c: {{apply: '{SLOW}'}}\n"));
    let script = "\"$0\" apply --yes & until test -e log || ! test -e site.yaml; do sleep 0.01; done; kill -9 $!; wait\n\
                  exec \"$0\" apply --yes";
    let mut command = Command::new("unshare");
    command.args(["--fork", "--kill-child", "--pid", "--mount-proc", "sh", "-c", script]);
    let mut entered =
        sandbox.start_command(command.arg(env!("CARGO_BIN_EXE_setpoint")).current_dir(sandbox.root()));
    let_go(&sandbox, &entered);
    assert_eq!(entered.wait(), 0, "{}", entered.log());
    assert_eq!(sandbox.read("log"), "begun\nended\nbegun\nended\n");
}

#[test]
fn what_a_sensitive_command_writes_is_not_shown_when_it_fails() {
    let sandbox = Sandbox::new(
        "commands:\n  c: {apply: 'echo $TOKEN; exit 1', env: {TOKEN: hunter2}, sensitive: true}\n\
         processes:\n  p: {command: 'echo $TOKEN; exit 1', env: {TOKEN: hunter2}, sensitive: true}\n",
    );
    let failed = sandbox.run(&["apply", "--yes"]);
    assert_eq!(failed.code(), 1);
    let all =
        [failed.out(), failed.err(), sandbox.ok(&["show"]), sandbox.ok(&["explain", "command.c"])].concat();
    assert!(all.contains("(its output is sensitive)") && !all.contains("hunter2"), "{all}");
}

#[test]
fn a_manifest_that_becomes_something_else_deletes_nothing() {
    let sandbox = Sandbox::new("files:\n  a: {content: a}\n");
    sandbox.write("b.yaml", "files:\n  b: {content: b}\n");
    let mut watching = sandbox.start(&["watch"]);
    eventually("both are there", || sandbox.path("a").exists() && sandbox.path("b").exists());
    sandbox.write("b.yaml", "things: {b: {content: b}}\n");
    watching.until("b.yaml declares nothing any more");
    assert_eq!(sandbox.read("b"), "b");
    sandbox.write("b.yaml", "files:\n  b: {content: c}\n");
    eventually("it goes on", || sandbox.read("b") == "c");
    sandbox.write("b.yaml", "");
    eventually("it is refused again", || {
        watching.log().matches("any more, and what it declared").count() > 1
    });
    assert_eq!(sandbox.read("b"), "c");
    watching.signal(Signal::SIGTERM);
    assert_eq!(watching.wait(), 0);
    // Misspelt, or a link to nothing, it is an error.
    sandbox.write("b.yaml", "FILES: {b: {content: b}}\n");
    assert!(sandbox.run(&["plan"]).err().contains("b.yaml"));
    fs::remove_file(sandbox.path("b.yaml")).unwrap();
    symlink("/nonexistent", sandbox.path("b.yaml")).unwrap();
    assert_eq!(sandbox.run(&["plan"]).code(), 1);
    assert_eq!(sandbox.run(&["validate"]).code(), 1);
}

#[test]
fn a_state_that_is_gone_is_read_from_its_copy() {
    let sandbox = Sandbox::new("files:\n  a: {content: a}\n");
    sandbox.ok(&["apply", "--yes"]);
    fs::remove_file(sandbox.path(".setpoint/state.redb")).unwrap();
    let planned = sandbox.run(&["plan"]);
    assert!(
        planned.out().contains("nothing to do") && planned.err().contains("is gone"),
        "{}",
        planned.err()
    );
    sandbox.ok(&["destroy", "--yes"]);
    assert!(sandbox.tree().is_empty());
}

#[test]
fn a_plan_warns_of_what_is_in_the_way_and_of_nothing_else() {
    let sandbox = Sandbox::new("files:\n  k: {path: kk, content: x}\n  m: {content: x}\n");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.write("theirs", "theirs");
    sandbox.declare("symlinks:\n  k: {path: kk, target: x}\nfiles:\n  m: {path: theirs, content: x}\n");
    let plan = sandbox.ok(&["plan"]);
    assert!(plan.contains("file/m can't be moved: theirs is there already"), "{plan}");
    assert!(!plan.contains("symlink/k can't"), "{plan}");
}

#[test]
fn what_is_remembered_under_another_name_is_not_imported() {
    let sandbox = Sandbox::new("files: {a: {content: x}}\n");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.ok(&["state", "mv", "file.a", "file.b"]);
    let refused = sandbox.run(&["state", "import", "file.a"]);
    assert_eq!(refused.code(), 1);
    assert!(refused.err().contains("looked after already, as file/b"), "{}", refused.err());
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.read("a"), "x");
}

#[test]
fn a_value_that_is_declared_empty_has_to_be_given_to_templates_too() {
    let sandbox = Sandbox::new("values: {pw: }\nfiles: {f: {template: 'pass={{ pw }}'}}\n");
    let refused = sandbox.run(&["apply", "--yes"]);
    assert_eq!(refused.code(), 1);
    assert!(refused.err().contains("values that nobody gives: pw"), "{}", refused.err());
    sandbox.ok(&["apply", "--yes", "--var", "pw=1"]);
    assert_eq!(sandbox.read("f"), "pass=1");
}

#[test]
fn a_kept_plan_is_refused_when_the_host_has_changed_in_any_way_that_was_shown() {
    let sandbox = Sandbox::new("files: {f: {content: x}, g: {content: x}}\n");
    sandbox.ok(&["apply", "--yes", "--target", "file.g"]);
    sandbox.ok(&["plan", "--out", "kept"]);
    // In the way of what the plan creates: the operations are the same.
    sandbox.write("f", "theirs");
    let refused = sandbox.run(&["apply", "--yes", "kept"]);
    assert!(
        refused.err().contains("the host has changed since it was made"),
        "{}{}",
        refused.out(),
        refused.err()
    );
    fs::remove_file(sandbox.path("f")).unwrap();
    sandbox.ok(&["apply", "--yes", "kept"]);
    let refused = sandbox.run(&["plan", "--out", "/nonexistent/kept"]);
    assert_eq!(refused.code(), 1);
    let why = "can't keep the plan in /nonexistent/kept: there is no directory /nonexistent";
    assert!(refused.err().contains(why), "{}", refused.err());
    assert!(
        !refused.err().contains("tmp") && refused.err().contains("hint: name a file"),
        "{}",
        refused.err()
    );
}

#[test]
fn a_file_enters_a_directory_that_moves_from_where_another_one_leaves_to() {
    let with = |d: &str, f: &str, g: &str| {
        format!(
            "directories: {{d: {{path: {d}}}, x: }}\n\
             files: {{f: {{path: {f}, content: f}}, g: {{path: {g}, content: g}}}}\n"
        )
    };
    for (f, g) in [("p2/f", "x/f"), ("p2/f", "x/g")] {
        let sandbox = Sandbox::new(&with("p1", "x/f", "p1/g"));
        sandbox.ok(&["apply", "--yes"]);
        sandbox.declare(&with("p2", f, g));
        let done = sandbox.run(&["apply", "--yes"]);
        assert_eq!(done.code(), 0, "{f} {g}: {}{}", done.out(), done.err());
        assert_eq!((sandbox.read(f).as_str(), sandbox.read(g).as_str()), ("f", "g"));
        assert_eq!(sandbox.tree().len(), 4, "{:?}", sandbox.tree());
        assert_eq!(sandbox.ok(&["plan"]), "site: nothing to do.\n");
    }
    // Each would wait for the other to leave, and no plan says so.
    let sandbox = Sandbox::new(&with("p1", "x/f", "p1/g"));
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare(&with("p2", "p2/g", "x/f"));
    let refused = sandbox.run(&["apply", "--yes"]);
    let why = "file/f is to be p2/g, and file/g would come there with directory/d, which moves";
    assert!(refused.err().contains(why), "{}{}", refused.out(), refused.err());
    assert_eq!((sandbox.read("x/f").as_str(), sandbox.read("p1/g").as_str()), ("f", "g"));
    sandbox.declare(&with("p2", "x/f", "p2/g"));
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare(&with("p2", "p2/g", "x/f"));
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!((sandbox.read("p2/g").as_str(), sandbox.read("x/f").as_str()), ("f", "g"));
}

#[test]
fn a_check_that_still_fails_says_how() {
    let sandbox = Sandbox::new("commands: {c: {check: nosuchcmd, apply: 'true'}}\n");
    let failed = sandbox.run(&["apply", "--yes"]);
    assert_eq!(failed.code(), 1);
    assert!(failed.out().contains("`check` still fails, exit status: 127"), "{}", failed.out());
    let explained = sandbox.ok(&["explain", "command.c"]);
    assert!(explained.contains("its creation failed in run 1"), "{explained}");
}

/// Something that is made by a run which is killed right after that.
const KILLED: &str = "files: {f: {content: x}}\ncommands: {c: {check: test -e done, apply: 'touch done; kill -9 $PPID; sleep 1', after: [file.f]}}\n";

#[test]
fn refreshing_alone_ends_a_run_that_was_cut_off() {
    let sandbox = Sandbox::new(KILLED);
    sandbox.command(&["apply", "--yes"]).output().unwrap();
    assert!(sandbox.path(".setpoint/journal").exists());
    sandbox.ok(&["apply", "--refresh-only", "--yes"]);
    assert!(!sandbox.path(".setpoint/journal").exists());
    assert!(sandbox.ok(&["history"]).contains("lost"));
    assert_eq!(sandbox.ok(&["plan"]), "site: nothing to do.\n");
}

#[test]
fn a_plan_that_was_kept_before_a_run_was_cut_off_is_refused() {
    let sandbox = Sandbox::new("files: {f: {content: x}, g: {content: x}}\n");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare(&KILLED.replace("files: {", "files: {g: {content: y}, "));
    sandbox.ok(&["plan", "--out", "g.plan", "--target", "file.g"]);
    sandbox.command(&["apply", "--yes", "--target", "command.c"]).output().unwrap();
    assert!(sandbox.path(".setpoint/journal").exists());
    let refused = sandbox.run(&["apply", "g.plan"]);
    assert_eq!(refused.code(), 1, "{}", refused.out());
    assert!(refused.err().contains("a run was cut off since it was made"), "{}", refused.err());
    assert_eq!(sandbox.read("g"), "x");
}

#[test]
fn what_comes_into_the_place_of_what_was_made_while_a_run_is_at_work_is_kept() {
    let sandbox = Sandbox::new(
        "files: {f: {content: made}, g: {content: v1}}
symlinks: {l: {target: one}}
commands: {s: {apply: 'true', undo: 'rm f l; echo mine > f; ln -s my-own l', after: [file.f, symlink.l]}}
",
    );
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare(
        "files: {g: {content: v2, after: [command.c]}}\ncommands: {c: {apply: 'rm g; echo mine too > g'}}\n",
    );
    sandbox.ok(&["plan", "--out", "p"]);
    let ran = sandbox.run(&["apply", "p"]);
    assert_eq!(ran.code(), 0, "{}{}", ran.out(), ran.err());
    assert!(!sandbox.path("f").exists() && !sandbox.path("l").is_symlink());
    assert_eq!(sandbox.read("g"), "v2");
    for item in ["file/f", "symlink/l", "file/g"] {
        assert!(ran.err().contains(&format!("was not what Setpoint wrote for {item}")), "{}", ran.err());
    }
    let names = fs::read_dir(sandbox.path(".setpoint/run/kept")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut kept: Vec<String> = names.map(|name| sandbox.ok(&["state", "kept", &name])).collect();
    kept.sort();
    assert_eq!(kept.concat().lines().collect::<Vec<&str>>(), ["mine", "mine too", "my-own"]);
    // What is as it was read is replaced and removed without a word.
    let ran = sandbox.run(&["destroy", "--yes"]);
    assert_eq!((ran.code(), ran.err().as_str()), (0, ""));
}
