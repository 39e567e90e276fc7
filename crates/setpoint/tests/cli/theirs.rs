//! Files that somebody else wrote, moved, mounted or shares: they are kept, left or named, and never replaced in silence.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;

use setpoint_testutils::{need, part};

use crate::sandbox::{Sandbox, eventually};

/// All that is kept beside the state, as it is written there.
fn kept(sandbox: &Sandbox, state: &str) -> String {
    let kept = fs::read_dir(sandbox.path(state).join("run/kept")).unwrap();
    kept.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap()).collect()
}

/// Ends a mount with the test.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_change_of_an_adopted_file_is_kept_when_the_original_comes_back() {
    let sandbox = Sandbox::new(
        "files: {f: {content: ours, adopt: true}}\nsymlinks: {l: {target: ours, adopt: true}}\n",
    );
    sandbox.write("f", "precious");
    symlink("precious", sandbox.path("l")).unwrap();
    sandbox.ok(&["apply", "--yes"]);
    sandbox.write("f", "newer");
    fs::remove_file(sandbox.path("l")).unwrap();
    symlink("newer-link", sandbox.path("l")).unwrap();
    let destroyed = sandbox.run(&["destroy", "--yes"]);
    assert_eq!(destroyed.code(), 0, "{}", destroyed.err());
    assert_eq!(sandbox.read("f"), "precious");
    assert!(destroyed.err().contains("f was not what Setpoint wrote"), "{}", destroyed.err());
    let kept = kept(&sandbox, ".setpoint");
    // `newer`, as base64 has it.
    assert!(kept.contains("bmV3ZXI=") && kept.contains("newer-link"), "{kept}");
}

#[test]
fn a_change_of_an_adopted_file_is_kept_when_it_is_put_right() {
    let sandbox = Sandbox::new("files: {f: {content: ours, adopt: true}}\n");
    sandbox.write("f", "precious");
    sandbox.ok(&["apply", "--yes"]);
    for _ in 0..3 {
        sandbox.write("f", "newer");
        let applied = sandbox.run(&["apply", "--yes"]);
        assert!(applied.err().contains("f was not what Setpoint wrote"), "{}", applied.err());
        assert_eq!(sandbox.read("f"), "ours");
    }
    assert_eq!(kept(&sandbox, ".setpoint").matches("bmV3ZXI=").count(), 1, "each change is kept once");
    // What Setpoint wrote itself is not.
    sandbox.declare("files: {f: {content: ours again, adopt: true}}\n");
    let applied = sandbox.run(&["apply", "--yes"]);
    assert!(!applied.err().contains("is kept"), "{}", applied.err());
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.read("f"), "precious");
}

#[test]
fn what_is_kept_is_listed_and_printed_as_it_was() {
    let sandbox = Sandbox::new("files: {f: {content: ours, adopt: true}}\n");
    assert_eq!(sandbox.ok(&["state", "kept"]), "Nothing is kept.\n");
    fs::write(sandbox.path("f"), b"precious \xff\x1b\n").unwrap();
    sandbox.ok(&["apply", "--yes"]);
    sandbox.write("f", "newer");
    let applied = sandbox.run(&["apply", "--yes"]);
    let output = applied.err();
    let name = output.split("`setpoint state kept ").nth(1).and_then(|rest| rest.split('`').next());
    let name = name.unwrap_or_else(|| panic!("{output}"));
    assert_eq!(sandbox.ok(&["state", "kept", name]), "newer");
    let list = sandbox.ok(&["state", "kept"]);
    let lines: Vec<&str> = list.lines().collect();
    assert_eq!(lines.len(), 2, "{list}");
    assert!(lines[0].contains("file f, 12 bytes: the original of file/f, kept since 2"), "{list}");
    assert!(lines[1].starts_with(name) && lines[1].contains("in the place of file/f"), "{list}");
    let original = lines[0].split_whitespace().next().unwrap();
    let printed = sandbox.command(&["state", "kept", original]).output().unwrap();
    assert_eq!(printed.stdout, b"precious \xff\x1b\n");
    let json = sandbox.ok(&["state", "kept", "--json"]);
    let first: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!((&first["path"], &first["original"]), (&"f".into(), &true.into()), "{json}");
    let wrong = sandbox.run(&["state", "kept", "nothing"]);
    assert_eq!(wrong.code(), 64);
    assert!(wrong.err().contains("nothing is kept as nothing"), "{}", wrong.err());
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.ok(&["state", "kept"]).lines().count(), 1, "the change of somebody");
}

#[test]
fn what_was_taken_over_stays_in_its_place_when_its_item_moves() {
    let at = |path: &str| format!("files: {{f: {{path: {path}, content: ours, adopt: true}}}}\n");
    let sandbox = Sandbox::new(&at("f"));
    sandbox.write("f", "precious");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare(&at("g"));
    let plan = sandbox.ok(&["plan"]);
    assert!(plan.contains("file/f") && plan.contains("path: f → g"), "{plan}");
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!((sandbox.read("f"), sandbox.read("g")), ("precious".to_owned(), "ours".to_owned()));
    // Where something is that it may take over, it does.
    sandbox.write("h", "theirs");
    sandbox.declare(&at("h"));
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.tree(), ["f", "h"]);
    assert_eq!(sandbox.read("h"), "ours");
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!((sandbox.read("f"), sandbox.read("h")), ("precious".to_owned(), "theirs".to_owned()));
}

#[test]
fn one_set_never_takes_what_another_of_the_same_name_has_set_aside() {
    let with = |first: &str, second: &str| {
        format!("files: {{f: {{path: {first}, content: F}}, g: {{path: {second}, content: G}}}}\n")
    };
    let sandbox = Sandbox::new(&with("one", "two"));
    sandbox.ok(&["apply", "--yes"]);
    // As another set of this name below this root would call it, and as this one called it in an earlier version.
    let name = ".setpoint-aside-0123456789abcdef";
    sandbox.write(name, "theirs");
    sandbox.declare(&with("two", "one"));
    sandbox.ok(&["apply", "--yes"]);
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!((sandbox.tree(), sandbox.read(name)), (vec![name.to_owned()], "theirs".to_owned()));
}

/// A file that was taken over, which somebody edits.
fn edited(more: &str) -> Sandbox {
    let sandbox = Sandbox::new(&format!("files: {{f: {{content: ours, adopt: true{more}}}}}\n"));
    sandbox.write("f", "precious");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.write("f", "newer");
    sandbox
}

fn is_kept(sandbox: &Sandbox) {
    assert_eq!(sandbox.read("f"), "other");
    let kept = kept(sandbox, ".setpoint");
    assert!(kept.contains("bmV3ZXI="), "{kept}");
}

#[test]
fn a_change_of_an_adopted_file_that_nobody_looked_for_is_kept() {
    let sandbox = edited("");
    sandbox.declare("files: {f: {content: other, adopt: true}}\n");
    sandbox.ok(&["apply", "--yes", "--refresh=false"]);
    is_kept(&sandbox);
}

#[test]
fn a_change_of_an_adopted_file_is_kept_when_that_is_made_anew() {
    let sandbox = edited("");
    sandbox.declare("files: {f: {content: other, adopt: true}}\n");
    sandbox.ok(&["apply", "--yes", "--replace", "file.f"]);
    is_kept(&sandbox);
}

#[test]
fn a_change_of_an_adopted_file_during_a_run_is_kept() {
    let sandbox = Sandbox::new("files: {f: {content: ours, adopt: true}}\n");
    sandbox.write("f", "precious");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare(
        "commands: {c: {apply: 'touch begun; while test -e begun && ! test -e edited; do sleep 0.01; done'}}\n\
         files: {f: {content: other, adopt: true, after: [command.c]}}\n",
    );
    let mut applying = sandbox.start(&["apply", "--yes"]);
    eventually("the command has begun", || sandbox.path("begun").exists());
    sandbox.write("f", "newer");
    sandbox.write("edited", "");
    assert_eq!(applying.wait(), 0, "{}", applying.log());
    is_kept(&sandbox);
}

#[test]
fn a_change_of_an_imported_file_is_kept() {
    let sandbox = Sandbox::new("files: {f: {content: other}}\n");
    sandbox.write("f", "precious");
    sandbox.ok(&["state", "import", "file.f"]);
    sandbox.write("f", "newer");
    sandbox.ok(&["apply", "--yes"]);
    is_kept(&sandbox);
}

#[test]
fn two_sets_that_take_over_one_file_lose_nothing() {
    let sandbox = Sandbox::new("");
    for (set, content) in [("a", "A"), ("b", "B")] {
        fs::create_dir(sandbox.path(set)).unwrap();
        let manifest = format!("name: {set}\nroot: ..\nfiles: {{f: {{content: {content}, adopt: true}}}}\n");
        sandbox.write(&format!("{set}/site.yaml"), &manifest);
    }
    sandbox.write("f", "original");
    for args in [["apply", "-f", "a"], ["apply", "-f", "b"], ["destroy", "-f", "a"], ["destroy", "-f", "b"]] {
        sandbox.ok(&[&args[..], &["--yes"]].concat());
    }
    let all = format!("{} {}", sandbox.read("f"), kept(&sandbox, "b/.setpoint"));
    // As it is, or as base64 has it.
    assert!(all.contains("original") || all.contains("b3JpZ2luYWw="), "{all}");
}

#[test]
fn one_file_by_two_paths_is_refused() {
    let sandbox = Sandbox::new("directories: {d: }\nfiles: {f: {path: d/f, content: A}}\n");
    symlink("d", sandbox.path("l")).unwrap();
    sandbox.ok(&["apply", "--yes"]);
    let declared =
        "directories: {d: }\nfiles: {f: {path: d/f, content: A}, g: {path: l/f, content: B, adopt: true}}\n";
    sandbox.declare(declared);
    let refused = sandbox.run(&["apply", "--yes"]);
    assert_eq!(refused.code(), 1);
    assert!(refused.err().contains("file/f and file/g are both at d/f"), "{}", refused.err());
    assert_eq!(sandbox.read("d/f"), "A");
    // Also through a link that is declared and not there yet.
    fs::remove_file(sandbox.path("l")).unwrap();
    sandbox.declare(&format!("{declared}symlinks: {{l: {{target: d}}}}\n"));
    let refused = sandbox.run(&["validate"]);
    assert!(refused.err().contains("are both at d/f"), "{}", refused.err());
}

#[test]
fn one_file_by_two_paths_through_a_mount_is_refused() {
    need!(part::root("mounts"));
    let sandbox = Sandbox::new("files: {f: {path: d/x/f, content: A}, g: {path: m/x/f, content: B}}\n");
    for name in ["d", "m"] {
        fs::create_dir(sandbox.path(name)).unwrap();
    }
    let mount = Command::new("mount").arg("--bind").args([sandbox.path("d"), sandbox.path("m")]).status();
    assert!(mount.unwrap().success());
    let _mounted = Mounted(sandbox.path("m"));
    let refused = sandbox.run(&["apply", "--yes"]);
    assert_eq!(refused.code(), 1);
    assert!(refused.err().contains("file/f and file/g are both at d/x/f"), "{}", refused.err());
}

#[test]
fn an_adopted_file_is_not_forgotten_while_its_directory_is_another_one() {
    for is_made_again in [true, false] {
        let sandbox = Sandbox::new("files: {f: {path: d/f, content: ours, adopt: true}}\n");
        fs::create_dir(sandbox.path("d")).unwrap();
        sandbox.write("d/f", "precious");
        sandbox.ok(&["apply", "--yes"]);
        fs::rename(sandbox.path("d"), sandbox.path("away")).unwrap();
        if is_made_again {
            fs::create_dir(sandbox.path("d")).unwrap();
        }
        for args in [&["destroy", "--yes"][..], &["apply", "--yes"], &["plan"]] {
            let refused = sandbox.run(args);
            assert_eq!(refused.code(), 1, "{args:?}: {}", refused.out());
            let why = "d/f can't be looked at: the directory that it was in is not d any more";
            assert!(refused.err().contains(why), "{args:?}: {}", refused.err());
        }
        let _ = fs::remove_dir(sandbox.path("d"));
        fs::rename(sandbox.path("away"), sandbox.path("d")).unwrap();
        sandbox.ok(&["destroy", "--yes"]);
        assert_eq!(sandbox.read("d/f"), "precious", "{is_made_again}");
    }
}

#[test]
fn an_adopted_file_is_not_forgotten_while_its_directory_is_not_mounted() {
    need!(part::root("mounts"));
    let sandbox = Sandbox::new("files: {f: {path: d/f, content: ours, adopt: true}}\n");
    for directory in ["d", "data"] {
        fs::create_dir(sandbox.path(directory)).unwrap();
    }
    sandbox.write("data/f", "precious");
    let mount = || {
        let mut command = Command::new("mount");
        command.arg("--bind").args([sandbox.path("data"), sandbox.path("d")]);
        assert!(command.status().unwrap().success());
        Mounted(sandbox.path("d"))
    };
    let mounted = mount();
    sandbox.ok(&["apply", "--yes"]);
    drop(mounted);
    assert_eq!(sandbox.run(&["destroy", "--yes"]).code(), 1);
    let _mounted = mount();
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.read("data/f"), "precious");
}

#[test]
fn what_setpoint_wrote_is_not_taken_for_an_original_that_is_not_kept_any_more() {
    let manifest = |text: &str| {
        format!(
            "files: {{f: {{content: {text}, adopt: true}}}}\nsymlinks: {{l: {{target: {text}, adopt: true}}}}\n"
        )
    };
    let sandbox = Sandbox::new(&manifest("ours"));
    sandbox.write("f", "precious");
    symlink("precious", sandbox.path("l")).unwrap();
    sandbox.ok(&["apply", "--yes"]);
    fs::remove_dir_all(sandbox.path(".setpoint/run")).unwrap();
    sandbox.declare(&manifest("other"));
    sandbox.ok(&["apply", "--yes"]);
    let failed = sandbox.run(&["destroy", "--yes"]);
    assert_eq!(failed.code(), 1, "{}", failed.out());
    for path in ["f", "l"] {
        let why = format!("what was at {path} before Setpoint can't be put back");
        assert!(failed.out().contains(&why), "{}", failed.out());
    }
}

#[test]
fn a_change_is_kept_also_where_the_original_is_not_any_more() {
    let sandbox = Sandbox::new(
        "files: {f: {content: ours, adopt: true}}\nsymlinks: {l: {target: ours, adopt: true}}\n",
    );
    sandbox.write("f", "precious");
    symlink("precious", sandbox.path("l")).unwrap();
    sandbox.ok(&["apply", "--yes"]);
    fs::remove_dir_all(sandbox.path(".setpoint/run")).unwrap();
    sandbox.write("f", "newer");
    fs::remove_file(sandbox.path("l")).unwrap();
    symlink("newer-link", sandbox.path("l")).unwrap();
    let applied = sandbox.run(&["apply", "--yes"]);
    assert_eq!((applied.code(), sandbox.read("f")), (0, "ours".to_owned()), "{}", applied.err());
    for path in ["f", "l"] {
        let output = format!("{path} was not what Setpoint wrote");
        assert!(applied.err().contains(&output), "{}", applied.err());
    }
    let kept = kept(&sandbox, ".setpoint");
    assert!(kept.contains("bmV3ZXI=") && kept.contains("newer-link"), "{kept}");
}

#[test]
fn an_original_that_is_not_kept_any_more_is_no_success() {
    let sandbox = Sandbox::new(
        "files: {f: {content: ours, adopt: true}}\nsymlinks: {l: {target: ours, adopt: true}}\n\
         directories: {d: {mode: '0755', adopt: true}}\n",
    );
    sandbox.write("f", "precious");
    symlink("precious", sandbox.path("l")).unwrap();
    fs::create_dir(sandbox.path("d")).unwrap();
    sandbox.ok(&["apply", "--yes"]);
    fs::remove_dir_all(sandbox.path(".setpoint/run")).unwrap();
    let failed = sandbox.run(&["destroy", "--yes"]);
    assert_eq!(failed.code(), 1, "{}", failed.out());
    for path in ["f", "l", "d"] {
        let why = format!("what was at {path} before Setpoint can't be put back");
        assert!(failed.out().contains(&why), "{}", failed.out());
    }
    assert_eq!(sandbox.read("f"), "ours");
    sandbox.ok(&["state", "rm", "file.f", "symlink.l", "directory.d"]);
    assert_eq!(sandbox.ok(&["destroy", "--yes"]), "site: nothing to do.\n");
}

/// Two files and two links that take each other's places.
fn swapped(first: &str, second: &str, adopt: &str) -> String {
    format!(
        "files:\n  f: {{path: {first}, content: F{adopt}}}\n  g: {{path: {second}, content: G{adopt}}}\n\
         symlinks:\n  l: {{path: l{first}, target: L{adopt}}}\n  m: {{path: l{second}, target: M{adopt}}}\n"
    )
}

#[test]
fn adopted_files_change_places_and_are_back_in_the_end() {
    let sandbox = Sandbox::new(&swapped("one", "two", ", adopt: true"));
    for path in ["one", "two"] {
        sandbox.write(path, path);
        symlink(path, sandbox.path(&format!("l{path}"))).unwrap();
    }
    let link = |path: &str| fs::read_link(sandbox.path(path)).unwrap().to_str().unwrap().to_owned();
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare(&swapped("two", "one", ", adopt: true"));
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!((sandbox.read("two"), sandbox.read("one")), ("F".to_owned(), "G".to_owned()));
    assert_eq!((link("ltwo"), link("lone")), ("L".to_owned(), "M".to_owned()));
    assert_eq!(sandbox.ok(&["plan"]), "site: nothing to do.\n");
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.tree(), ["lone", "ltwo", "one", "two"]);
    assert_eq!((sandbox.read("one"), sandbox.read("two")), ("one".to_owned(), "two".to_owned()));
    assert_eq!((link("lone"), link("ltwo")), ("one".to_owned(), "two".to_owned()));
}

#[test]
fn files_that_change_places_keep_what_is_not_declared_of_them() {
    let sandbox = Sandbox::new(&swapped("one", "two", ""));
    sandbox.ok(&["apply", "--yes"]);
    for (path, mode) in [("one", 0o600), ("two", 0o640)] {
        fs::set_permissions(sandbox.path(path), fs::Permissions::from_mode(mode)).unwrap();
    }
    sandbox.declare(&swapped("two", "one", ""));
    sandbox.ok(&["apply", "--yes"]);
    let mode = |path: &str| fs::metadata(sandbox.path(path)).unwrap().mode() & 0o7777;
    assert_eq!((mode("two"), mode("one")), (0o600, 0o640));
    assert_eq!((sandbox.read("two"), sandbox.read("one")), ("F".to_owned(), "G".to_owned()));
    sandbox.ok(&["destroy", "--yes"]);
    assert!(sandbox.tree().is_empty(), "{:?}", sandbox.tree());
}

#[test]
fn a_chain_of_moved_files_is_destroyed_in_one_run() {
    let with = |f: &str, g: &str| {
        format!(
            "files:\n  f: {{path: {f}, content: F, adopt: true}}\n  g: {{path: {g}, content: G, adopt: true}}\n"
        )
    };
    let sandbox = Sandbox::new(&with("f", "g"));
    sandbox.write("f", "of f");
    sandbox.write("g", "of g");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare(&with("g", "h"));
    sandbox.ok(&["apply", "--yes"]);
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.tree(), ["f", "g"]);
    assert_eq!((sandbox.read("f"), sandbox.read("g")), ("of f".to_owned(), "of g".to_owned()));
}

#[test]
fn a_directory_that_was_gone_and_is_back_is_known_again() {
    let sandbox = Sandbox::new("directories: {d: }\nfiles: {f: {path: d/f, content: ours}}\n");
    sandbox.ok(&["apply", "--yes"]);
    fs::rename(sandbox.path("d"), sandbox.path("away")).unwrap();
    sandbox.ok(&["apply", "--yes", "--refresh-only"]);
    fs::rename(sandbox.path("away"), sandbox.path("d")).unwrap();
    assert_eq!(sandbox.ok(&["plan"]), "site: nothing to do.\n");
    // Whoever asks sees the same.
    assert!(sandbox.ok(&["explain", "directory.d"]).starts_with("directory/d is in sync"));
    let drawn: serde_json::Value =
        serde_json::from_str(&sandbox.ok(&["graph", "--plan", "--format", "json"])).unwrap();
    let nodes = drawn["nodes"].as_array().unwrap();
    assert!(!nodes.is_empty() && nodes.iter().all(|node| node["mark"] == "unchanged"), "{drawn}");
    sandbox.start(&["watch", "--report-only"]).until("nothing to do");
    fs::remove_file(sandbox.path(".log")).unwrap();
    sandbox.ok(&["apply", "--yes"]);
    sandbox.ok(&["destroy", "--yes"]);
    assert!(sandbox.tree().is_empty(), "{:?}", sandbox.tree());
}

#[test]
fn another_directory_than_the_one_that_was_gone_is_not_taken_for_it() {
    let sandbox = Sandbox::new("directories: {d: }\nfiles: {f: {path: d/f, content: ours}}\n");
    sandbox.ok(&["apply", "--yes"]);
    fs::rename(sandbox.path("d"), sandbox.path("away")).unwrap();
    sandbox.ok(&["apply", "--yes", "--refresh-only"]);
    fs::create_dir(sandbox.path("d")).unwrap();
    sandbox.write("d/f", "ours");
    assert_eq!(sandbox.run(&["apply", "--yes"]).code(), 1);
    sandbox.run(&["destroy", "--yes"]);
    assert_eq!(sandbox.read("d/f"), "ours");
}

#[test]
fn a_file_of_somebody_is_a_log_only_where_that_is_asked_for() {
    let with = |log: &str, adopt: &str| {
        format!("processes: {{p: {{command: 'echo logged; sleep 1000', log: {log}{adopt}}}}}\n")
    };
    let sandbox = Sandbox::new(&with("notes", ""));
    sandbox.write("notes", "mine\n");
    let refused = sandbox.run(&["apply", "--yes"]);
    assert_eq!(refused.code(), 1);
    assert!(refused.out().contains("notes is there already"), "{}", refused.out());
    assert_eq!(sandbox.read("notes"), "mine\n");
    sandbox.declare(&with("notes", ", adopt: true"));
    sandbox.ok(&["apply", "--yes"]);
    eventually("it logs", || sandbox.read("notes") == "mine\nlogged\n");
    // It stays where it is, and as it is.
    sandbox.declare(&with("other", ", adopt: true"));
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.read("notes"), "mine\nlogged\n");
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.read("notes"), "mine\nlogged\n");
}

#[test]
fn a_manifest_is_no_log() {
    let sandbox = Sandbox::new("processes: {p: {command: sleep 1000, log: site.yaml}}\n");
    let refused = sandbox.run(&["validate"]);
    assert_eq!(refused.code(), 1);
    assert!(refused.err().contains("which is a manifest of this set"), "{}", refused.err());
}

#[test]
fn a_copy_is_relocated_when_the_processes_of_the_original_have_ended() {
    let sandbox = Sandbox::new("processes: {p: {command: sleep 1000}}\n");
    sandbox.ok(&["apply", "--yes"]);
    let copy = tempfile::tempdir().unwrap();
    let copied = Command::new("cp").arg("-a").arg(sandbox.path(".")).arg(copy.path().join("copy")).status();
    assert!(copied.unwrap().success());
    sandbox.ok(&["destroy", "--yes"]);
    let mut command = sandbox.command(&["state", "relocate", "--partly"]);
    let relocated = command.current_dir(copy.path().join("copy")).output().unwrap();
    let output = String::from_utf8_lossy(&relocated.stderr).into_owned();
    assert!(relocated.status.success() && !output.contains("is running"), "{output}");
}

#[test]
fn control_characters_of_names_do_not_reach_the_terminal() {
    let sandbox = Sandbox::new("directories: {d: }\n");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.write("d/\u{1b}]0;title\u{7}", "");
    let refused = sandbox.run(&["destroy", "--yes"]);
    let output = format!("{}{}", refused.out(), refused.err());
    assert!(output.contains("\\u{1b}]0;title\\u{7}") && !output.contains('\u{1b}'), "{output:?}");
    // Nor do they make lines, or colours.
    fs::remove_file(sandbox.path("d/\u{1b}]0;title\u{7}")).unwrap();
    sandbox.write("d/a\nhint: all is well\u{1b}[31m", "");
    let refused = sandbox.run(&["destroy", "--yes"]);
    let output = format!("{}{}", refused.out(), refused.err());
    assert!(output.contains("a\\nhint: all is well\\u{1b}[31m") && !output.contains('\u{1b}'), "{output:?}");
}

#[test]
fn a_check_that_takes_long_is_named_while_the_host_is_looked_at() {
    // What is left behind when a command is killed ends with the directory.
    let check = "while test -e slow; do sleep 0.1; done";
    let sandbox = Sandbox::new(&format!("commands: {{c: {{check: {check}, apply: 'true'}}}}\n"));
    sandbox.ok(&["apply", "--yes"]);
    sandbox.write("slow", "");
    let both = ["c", "d"].map(|name| format!("  {name}: {{check: {check}, apply: 'true'}}\n"));
    sandbox.declare(&format!("commands:\n{}", both.concat()));
    let importing = sandbox.start(&["state", "import", "command.d"]);
    importing.until("command/d: check has been running for 2 s");
    drop(importing);
    for command in [
        &["state", "accept", "command.c"][..],
        &["plan"],
        &["apply", "--yes"],
        &["explain", "command.c"],
        &["graph", "--plan"],
        &["watch"],
        &["watch", "--report-only"],
    ] {
        let looking = sandbox.start(command);
        looking.until("command/c: check has been running for 2 s");
    }
}
