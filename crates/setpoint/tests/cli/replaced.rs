//! What is known by more than its path: a file behind another directory than before is not Setpoint's.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use nix::sys::signal::Signal;
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::places::killed_while_writing;
use crate::sandbox::{Sandbox, eventually};

const DECLARED: &str = "directories: {d: }\nfiles: {f: {path: d/f, content: ours}}\n";

/// A host with a declared directory and a file in it, and a directory of somebody else with files of the same names.
fn applied(declared: &str) -> Sandbox {
    let sandbox = Sandbox::new(declared);
    fs::create_dir(sandbox.path("mine")).unwrap();
    sandbox.write("mine/f", "precious");
    sandbox.ok(&["apply", "--yes"]);
    sandbox
}

fn rename(sandbox: &Sandbox, from: &str, to: &str) {
    fs::rename(sandbox.path(from), sandbox.path(to)).unwrap();
}

/// Runs every command that could change something, and expects that each refuses with some of these words and changes nothing.
fn all_refuse(sandbox: &Sandbox, words: &[&str]) {
    let before = sandbox.tree();
    for args in [
        &["plan"][..],
        &["apply", "--yes"],
        &["destroy", "--yes", "--target", "file.f"],
        &["destroy", "--yes", "--refresh=false"],
        &["destroy", "--yes"],
        &["plan"],
    ] {
        let refused = sandbox.run(args);
        let output = format!("{}{}", refused.out(), refused.err());
        assert_eq!(refused.code(), 1, "{args:?}: {output}");
        assert!(words.iter().any(|words| output.contains(words)), "{args:?}: {output}");
        assert_eq!(sandbox.tree(), before, "{args:?}: {output}");
    }
    let made_anew = sandbox.run(&["apply", "--yes", "--refresh=false", "--replace", "file.f"]);
    assert_eq!(made_anew.code(), 1);
    assert!(made_anew.out().contains("is another directory than"), "{}", made_anew.out());
    assert_eq!(sandbox.tree(), before);
}

#[test]
fn what_is_in_another_directory_at_the_same_path_is_never_touched() {
    let sandbox = applied(DECLARED);
    rename(&sandbox, "d", "old");
    rename(&sandbox, "mine", "d");
    all_refuse(&sandbox, &["d is another directory than"]);
    assert_eq!(sandbox.read("d/f"), "precious");
    let plan = sandbox.run(&["plan"]);
    assert!(plan.err().contains("`setpoint state accept`"), "{}", plan.err());
    // The old one is known again when it is back.
    rename(&sandbox, "d", "mine");
    rename(&sandbox, "old", "d");
    assert_eq!(sandbox.ok(&["plan"]), "site: nothing to do.\n");
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.tree(), ["mine", "mine/f"]);
}

#[test]
fn what_is_behind_a_link_in_the_place_of_a_directory_is_never_touched() {
    let sandbox = applied(DECLARED);
    fs::remove_dir_all(sandbox.path("d")).unwrap();
    symlink("mine", sandbox.path("d")).unwrap();
    let link = "d should be a directory, but a symbolic link is in its place";
    all_refuse(&sandbox, &[link, "d is another directory than before"]);
    let plan = sandbox.run(&["plan"]);
    assert!(plan.err().contains(link) && !plan.err().contains("file/f:"), "it is named once: {}", plan.err());
    assert_eq!(sandbox.read("mine/f"), "precious");
}

#[test]
fn what_is_behind_another_directory_that_nobody_declared_is_never_touched() {
    let sandbox =
        Sandbox::new("files: {f: {path: d/f, content: ours}}\nsymlinks: {l: {path: d/l, target: f}}\n");
    for directory in ["d", "mine"] {
        fs::create_dir(sandbox.path(directory)).unwrap();
    }
    sandbox.ok(&["apply", "--yes"]);
    sandbox.write("mine/f", "precious");
    symlink("elsewhere", sandbox.path("mine/l")).unwrap();
    rename(&sandbox, "d", "old");
    rename(&sandbox, "mine", "d");
    all_refuse(&sandbox, &["d is another directory than before"]);
    assert_eq!(sandbox.read("d/f"), "precious");
    assert_eq!(fs::read_link(sandbox.path("d/l")).unwrap().to_str(), Some("elsewhere"));
    // Where nothing is, nothing can be lost: it is made anew.
    fs::remove_file(sandbox.path("d/f")).unwrap();
    fs::remove_file(sandbox.path("d/l")).unwrap();
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.read("d/f"), "ours");
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.tree(), ["d", "old", "old/f", "old/l"]);
}

#[test]
fn another_directory_in_the_place_of_an_undeclared_one_is_used_and_left_in_the_end() {
    let sandbox = applied("files: {f: {path: d/f, content: ours}}\n");
    rename(&sandbox, "d", "old");
    fs::create_dir(sandbox.path("d")).unwrap();
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.read("d/f"), "ours");
    assert_eq!(sandbox.ok(&["plan"]), "site: nothing to do.\n");
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.tree(), ["d", "mine", "mine/f", "old", "old/f"]);
}

#[test]
fn a_file_that_an_editor_replaced_is_a_file_that_was_changed() {
    let sandbox = applied(DECLARED);
    sandbox.write("d/.f.swp", "edited");
    rename(&sandbox, "d/.f.swp", "d/f");
    let plan = sandbox.ok(&["plan"]);
    assert!(plan.contains("~ file/f is changed") && plan.contains("site: 1 to modify."), "{plan}");
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.read("d/f"), "ours");
    sandbox.ok(&["destroy", "--yes"]);
}

#[test]
fn what_was_restored_from_a_copy_is_looked_after_again_when_someone_says_so() {
    let sandbox = applied(DECLARED);
    let copied = Command::new("cp").arg("-a").arg(sandbox.path("d")).arg(sandbox.path("copy")).status();
    assert!(copied.unwrap().success());
    rename(&sandbox, "d", "old");
    rename(&sandbox, "copy", "d");
    all_refuse(&sandbox, &["d is another directory than"]);
    let accepted = sandbox.ok(&["state", "accept"]);
    assert_eq!(
        accepted,
        "directory/d is looked after where it is now.\nfile/f is looked after where it is now.\n"
    );
    assert_eq!(sandbox.ok(&["plan"]), "site: nothing to do.\n");
    assert!(sandbox.ok(&["state", "accept"]).contains("nothing was changed"));
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.tree(), ["mine", "mine/f", "old", "old/f"]);
}

#[test]
fn accepting_what_is_not_as_it_was_loses_nothing() {
    let sandbox = applied(DECLARED);
    rename(&sandbox, "d", "old");
    rename(&sandbox, "mine", "d");
    let accepted = sandbox.ok(&["state", "accept", "directory.d"]);
    assert!(accepted.contains("file/f is looked after where it is now; it is not as it was"), "{accepted}");
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.read("d/f"), "ours");
    // Of the directory nothing else was known than that it is another one.
    let destroyed = sandbox.run(&["destroy", "--yes"]);
    assert_eq!(sandbox.read("d/f"), "precious", "{}{}", destroyed.out(), destroyed.err());
}

#[test]
fn another_directory_in_the_place_of_the_root_is_refused() {
    let sandbox = Sandbox::new("root: root\nfiles: {f: {content: ours}}\n");
    fs::create_dir(sandbox.path("root")).unwrap();
    sandbox.ok(&["apply", "--yes"]);
    rename(&sandbox, "root", "old");
    fs::create_dir(sandbox.path("root")).unwrap();
    for args in [&["plan"][..], &["apply", "--yes"], &["destroy", "--yes", "--refresh=false"], &["watch"]] {
        let refused = sandbox.run(args);
        assert_eq!(refused.code(), 1, "{args:?}");
        assert!(refused.err().contains("root is another directory than the one"), "{}", refused.err());
        assert!(refused.err().contains("setpoint state relocate"), "{}", refused.err());
    }
    assert_eq!(sandbox.tree(), ["old", "old/f", "root"]);
    // A new root may be filled anew, and what is in it already is kept.
    sandbox.write("root/f", "precious");
    let refused = sandbox.run(&["state", "relocate"]);
    assert!(refused.err().contains("file/f is not in the new root"), "{}", refused.err());
    sandbox.ok(&["state", "relocate", "--partly"]);
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.read("root/f"), "ours");
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.read("root/f"), "precious");
    assert_eq!(sandbox.read("old/f"), "ours");
}

/// Lets two directories change places, in one step: in between nothing would be there, and it would be made anew.
pub(crate) fn exchange(a: &Path, b: &Path) {
    renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).unwrap();
}

#[test]
fn watch_refuses_another_directory_in_the_place_of_the_root_until_the_old_one_is_back() {
    let sandbox = Sandbox::new("root: root\nfiles: {f: {content: ours}}\n");
    for directory in ["root", "other"] {
        fs::create_dir(sandbox.path(directory)).unwrap();
    }
    let (root, other) = (sandbox.path("root"), sandbox.path("other"));
    let mut watching = sandbox.start(&["watch", "--interval", "100ms"]);
    eventually("it is applied", || sandbox.path("root/f").exists());
    exchange(&root, &other);
    watching.until("root is another directory than the one");
    watching.until("nothing is changed until this is mended");
    fs::remove_file(sandbox.path("other/f")).unwrap();
    sandbox.declare("root: root\nfiles: {f: {content: theirs}}\n");
    watching.until("the manifests have changed");
    assert!(!sandbox.path("root/f").exists() && !sandbox.path("other/f").exists(), "{}", watching.log());
    exchange(&root, &other);
    eventually("it goes on", || {
        fs::read_to_string(sandbox.path("root/f")).is_ok_and(|text| text == "theirs")
    });
    watching.signal(Signal::SIGTERM);
    assert_eq!(watching.wait(), 0);
    assert_eq!(watching.log().matches("is another directory than the one").count(), 1, "{}", watching.log());
}

#[test]
fn watch_reports_a_replaced_directory_once_and_goes_on_when_it_is_back() {
    let sandbox = applied("directories: {d: }\nfiles: {f: {path: d/f, content: ours}, g: {content: ours}}\n");
    let mut watching = sandbox.start(&["watch", "--interval", "100ms"]);
    watching.until("watching site");
    let (here, there) = (sandbox.path("d"), sandbox.path("mine"));
    exchange(&here, &there);
    watching.until("d is another directory than");
    sandbox.write("g", "changed");
    eventually("the rest is put right", || sandbox.read("g") == "ours");
    assert_eq!(sandbox.read("d/f"), "precious");
    exchange(&here, &there);
    sandbox.write("d/f", "changed");
    eventually("it is looked after again", || sandbox.read("d/f") == "ours");
    watching.signal(Signal::SIGTERM);
    assert_eq!(watching.wait(), 0);
    let times = watching.log().matches("d is another directory than").count();
    assert!(times <= 2, "once for each item: {}", watching.log());
}

#[test]
fn what_is_in_a_directory_is_not_taken_for_gone_while_something_else_is_in_the_way() {
    for declared in [DECLARED, "files: {f: {path: d/f, content: ours}}\n"] {
        let sandbox = applied(declared);
        rename(&sandbox, "d", "old");
        sandbox.write("d", "a file");
        for args in [&["plan"][..], &["apply", "--yes"], &["apply", "--yes", "--refresh-only"], &["plan"]] {
            let output = sandbox.run(args);
            let output = format!("{}{}", output.out(), output.err());
            assert!(
                output.contains("d should be a directory, but a file is in its place"),
                "{args:?}: {output}"
            );
            assert!(!output.contains("is gone"), "{args:?}: {output}");
        }
        fs::remove_file(sandbox.path("d")).unwrap();
        rename(&sandbox, "old", "d");
        assert_eq!(sandbox.ok(&["plan"]), "site: nothing to do.\n");
        sandbox.ok(&["destroy", "--yes"]);
        assert_eq!(sandbox.tree(), ["mine", "mine/f"]);
    }
}

#[test]
fn watch_says_once_that_something_else_is_in_the_place_of_a_directory() {
    for args in [&["watch", "--interval", "100ms"][..], &["watch", "--interval", "100ms", "--report-only"]] {
        let sandbox = applied(
            "directories: {d: }\nfiles: {f: {path: d/f, content: ours}, g: {content: ours}, h: {content: ours}}\n",
        );
        rename(&sandbox, "d", "old");
        sandbox.write("d", "a file");
        sandbox.write("other", "");
        let mut watching = sandbox.start(args);
        watching.until("! directory/d can't be read");
        for other in ["g", "h"] {
            for round in 0..5 {
                sandbox.write("d", &round.to_string());
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
            // Once this is seen, what came before it was looked at.
            sandbox.write(other, "changed");
            watching.until(&format!("! file/{other} was changed"));
        }
        watching.signal(Signal::SIGTERM);
        assert_eq!(watching.wait(), 0);
        let log = watching.log();
        assert!(log.lines().count() < 14, "{args:?}: {log}");
        assert_eq!(log.matches("directory/d can't be read").count(), 1, "{args:?}: {log}");
    }
}

#[test]
fn watch_makes_anew_at_once_what_was_in_a_directory_that_was_moved_away() {
    let sandbox = applied("directories: {d: , d/e: }\nfiles: {f: {path: d/e/f, content: ours}}\n");
    let mut watching = sandbox.start(&["watch", "--interval", "1h"]);
    watching.until("watching site");
    // More often, and it would be contested.
    for round in 0..2 {
        rename(&sandbox, "d", &format!("away{round}"));
        eventually("it is back", || {
            fs::read_to_string(sandbox.path("d/e/f")).is_ok_and(|text| text == "ours")
        });
    }
    assert!(!watching.log().contains("the manifests have changed"), "{}", watching.log());
    watching.signal(Signal::SIGTERM);
    assert_eq!(watching.wait(), 0);
}

#[test]
fn nothing_is_accepted_while_a_run_that_was_cut_off_is_not_finished() {
    let sandbox = Sandbox::new(
        "directories: {d: {}}\ncommands: {c: {apply: 'test ! -e started || exit 0; touch started; sleep 20'}}\n",
    );
    let mut applying = sandbox.start(&["apply", "--yes"]);
    eventually("the command runs", || sandbox.path("started").exists());
    applying.signal(Signal::SIGKILL);
    applying.child.wait().unwrap();
    let refused = sandbox.run(&["state", "accept"]);
    assert_eq!(refused.code(), 1);
    assert!(refused.err().contains("was cut off"), "{}", refused.err());
    assert!(refused.err().contains("hint: "), "{}", refused.err());
    sandbox.ok(&["apply", "--yes"]);
    assert!(sandbox.ok(&["state", "accept"]).contains("nothing was changed"));
}

#[test]
fn what_moved_with_its_directory_is_not_taken_for_what_is_at_its_old_path_by_now() {
    let with = |a: &str, b: &str| {
        format!(
            "directories: {{a: {{path: {a}}}, b: {{path: {b}}}}}
files:
  fa: {{path: {a}/f, content: a, after: [command.slow]}}
  fb: {{path: {b}/f, content: b, after: [command.slow]}}
commands: {{slow: {{apply: test -e go, check: test -e go}}}}
"
        )
    };
    let sandbox = Sandbox::new(&with("one", "two"));
    sandbox.write("go", "");
    sandbox.ok(&["apply", "--yes"]);
    fs::remove_file(sandbox.path("go")).unwrap();
    // The directories move, and what is in them waits for what fails.
    sandbox.declare(&with("two", "three"));
    assert_eq!(sandbox.run(&["apply", "--yes"]).code(), 1);
    assert_eq!((sandbox.read("two/f"), sandbox.read("three/f")), ("a".to_owned(), "b".to_owned()));
    let accepted = sandbox.ok(&["state", "accept"]);
    assert!(accepted.contains("nothing was changed"), "{accepted}");
    sandbox.write("go", "");
    sandbox.ok(&["apply", "--yes"]);
    assert!(!sandbox.ok(&["state", "list"]).contains("file/fb  (adopted)"));
    fs::remove_file(sandbox.path("go")).unwrap();
    sandbox.ok(&["destroy", "--yes"]);
    assert!(sandbox.tree().is_empty(), "{:?}", sandbox.tree());
}

#[test]
fn nothing_is_accepted_either_when_the_journal_of_a_run_that_was_cut_off_was_taken_over() {
    let sandbox = Sandbox::new("files: {large: {source: source}, f: {content: x}}\n");
    fs::File::create(sandbox.path("source")).unwrap().set_len(64 << 20).unwrap();
    sandbox.ok(&["apply", "--yes", "--target", "file.f"]);
    killed_while_writing(&sandbox);
    sandbox.ok(&["state", "mv", "file.f", "file.g"]);
    let refused = sandbox.run(&["state", "accept"]);
    assert_eq!(refused.code(), 1, "{}", refused.out());
    assert!(refused.err().contains("was cut off"), "{}", refused.err());
}
