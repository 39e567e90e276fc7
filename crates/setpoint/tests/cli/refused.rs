//! What is refused, and what is left as it is: nobody's item is the state or a manifest.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::sandbox::Sandbox;

#[test]
fn neither_a_manifest_nor_the_state_is_anyones_item() {
    let sandbox = Sandbox::new("files:\n  f: {content: x}\n");
    sandbox.ok(&["apply", "--yes"]);
    let before = sandbox.read("f");
    for (manifest, message) in [
        ("files:\n  f: {content: x}\n  site.yaml: {content: x, adopt: true}\n", "which is this manifest"),
        (
            "files:\n  s: {path: .setpoint/state.redb, content: x, adopt: true}\n",
            "in the directory of the state",
        ),
        ("files:\n  s: {path: .setpoint/mine, content: x}\n", "in the directory of the state"),
        ("directories:\n  .setpoint: {adopt: true}\n", "in the directory of the state"),
        ("processes:\n  p: {command: sleep 1, log: .setpoint/journal}\n", "in the directory of the state"),
    ] {
        sandbox.declare(manifest);
        for args in [&["plan"][..], &["apply", "--yes"], &["apply", "--yes", "-f", "site.yaml"]] {
            let refused = sandbox.run(args);
            assert_ne!(refused.code(), 0, "{manifest}");
            assert!(refused.err().contains(message), "{manifest}: {}", refused.err());
        }
    }
    assert_eq!((sandbox.read("f"), sandbox.tree()), (before, vec!["f".to_owned()]));
    // Two that declare each other are none.
    sandbox.declare("files:\n  f: {content: x}\n  b.yaml: {content: 'files: {}', adopt: true}\n");
    sandbox.write("b.yaml", "files:\n  site.yaml: {content: 'files: {}', adopt: true}\n");
    let refused = sandbox.run(&["apply", "--yes"]);
    assert_ne!(refused.code(), 0, "{}", refused.out());
    assert_eq!(sandbox.read("f"), "x");
}

#[test]
fn the_state_is_no_ones_item_by_way_of_a_link_either() {
    let sandbox = Sandbox::new(
        "symlinks: {l: {target: .setpoint}}\nfiles: {l/state.redb: {content: x, adopt: true}}\n",
    );
    for args in [&["validate"][..], &["plan"], &["apply", "--yes"]] {
        let refused = sandbox.run(args);
        assert_ne!(refused.code(), 0, "{args:?}: {}", refused.out());
        assert!(refused.err().contains("in the directory of the state"), "{args:?}: {}", refused.err());
    }
    // The first run, when there is no state yet, through a link to the directory of the manifest.
    let elsewhere = tempfile::tempdir().unwrap();
    let link = elsewhere.path().join("link");
    symlink(sandbox.root(), &link).unwrap();
    sandbox.declare("files: {.setpoint/mine: {content: x}}\n");
    let manifest = link.join("site.yaml");
    let refused = sandbox.run(&["apply", "--yes", "-f", manifest.to_str().unwrap()]);
    assert!(refused.err().contains("in the directory of the state"), "{}{}", refused.out(), refused.err());
    // A link that leads there is no item in there.
    sandbox.declare("symlinks: {l: {target: .setpoint}}\n");
    sandbox.ok(&["apply", "--yes"]);
}

#[test]
fn a_directory_or_a_link_that_leads_to_the_state_stays() {
    let with = |more: &str| format!("directories: {{d: {{adopt: true{more}}}}}\n");
    let sandbox = Sandbox::new(&with(""));
    fs::create_dir(sandbox.path("d")).unwrap();
    let at = ["--state", "d/in/state"];
    let run = |args: &[&str]| sandbox.run(&[args, &at[..]].concat());
    assert_eq!(run(&["apply", "--yes"]).code(), 0);
    sandbox.declare(&with(", path: e"));
    for command in [&["plan"][..], &["apply", "--yes"]] {
        let refused = run(command);
        assert_eq!(refused.code(), 1, "{}", refused.out());
        let why = format!("directory/d leads to the state, {}", sandbox.path("d/in/state").display());
        assert!(refused.err().contains(&why), "{}", refused.err());
    }
    assert!(sandbox.path("d/in/state/state.redb").exists() && !sandbox.path("e").exists());
    sandbox.declare(&with(""));
    assert_eq!(run(&["apply", "--yes", "--replace", "directory.d"]).code(), 1);
    assert_eq!(run(&["destroy", "--yes"]).code(), 0);
    // Behind a link.
    let with = |target: &str| format!("symlinks: {{current: {{target: {target}}}}}\n");
    let sandbox = Sandbox::new(&with("a"));
    for directory in ["a", "b"] {
        fs::create_dir(sandbox.path(directory)).unwrap();
    }
    sandbox.ok(&["apply", "--yes", "--state", "a/state"]);
    sandbox.declare(&with("b"));
    let refused = sandbox.run(&["apply", "--yes", "--state", "current/state"]);
    assert_eq!(refused.code(), 1, "{}", refused.out());
    assert!(refused.err().contains("symlink/current leads to the state"), "{}", refused.err());
    sandbox.ok(&["apply", "--yes", "--state", "a/state"]);
    assert_eq!(fs::read_link(sandbox.path("current")).unwrap(), std::path::Path::new("b"));
}

#[test]
fn a_manifest_that_another_one_declares_as_a_file_is_refused_and_nothing_is_deleted() {
    let sandbox = Sandbox::new("files: {a: {content: a}}\n");
    sandbox.write("b.yaml", "files: {b: {content: b}}\n");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare("files: {a: {content: a}, b.yaml: {content: 'files: {}', adopt: true}}\n");
    for args in [&["validate"][..], &["plan"], &["apply", "--yes"]] {
        let refused = sandbox.run(args);
        assert_ne!(refused.code(), 0, "{args:?}: {}", refused.out());
        assert!(refused.err().contains("this manifest is declared as a file"), "{args:?}: {}", refused.err());
    }
    assert_eq!((sandbox.read("a"), sandbox.read("b")), ("a".to_owned(), "b".to_owned()));
}

#[test]
fn what_can_not_be_read_counts_as_failed() {
    let sandbox = Sandbox::new("files: {a: {content: a}, b: {content: a}}\n");
    sandbox.ok(&["apply", "--yes"]);
    fs::remove_file(sandbox.path("a")).unwrap();
    fs::create_dir(sandbox.path("a")).unwrap();
    sandbox.declare("files: {a: {content: b}, b: {content: b}}\n");
    let applied = sandbox.run(&["apply", "--yes"]);
    assert_eq!(applied.code(), 1);
    assert!(applied.out().contains("1 modified, 1 failed"), "{}", applied.out());
    assert!(
        sandbox.ok(&["history"]).lines().next().unwrap().contains(" failed "),
        "{}",
        sandbox.ok(&["history"])
    );
    sandbox.declare("files: {a: {content: b}, b: {content: c}}\n");
    let applied = sandbox.run(&["apply", "--yes", "--json"]);
    let data: serde_json::Value = serde_json::from_str(&applied.out()).unwrap();
    assert_eq!(data["run"]["outcome"], "failed", "{data}");
}

#[test]
fn items_that_can_not_be_read_and_are_left_because_of_each_other_are_no_success() {
    let sandbox = Sandbox::new("directories: {a: {path: x}}\nfiles: {b: {path: x/b, content: b}}\n");
    sandbox.ok(&["apply", "--yes"]);
    fs::rename(sandbox.path("x"), sandbox.path("old")).unwrap();
    fs::create_dir(sandbox.path("x")).unwrap();
    sandbox.write("x/b", "");
    sandbox.declare("directories: {a: {path: x, after: [file.b]}}\nfiles: {b: {path: z, content: b}}\n");
    for args in [&["plan"][..], &["apply", "--yes"]] {
        let failed = sandbox.run(args);
        let all = format!("{}{}", failed.out(), failed.err());
        assert!(all.contains("directory/a") && all.contains("file/b"), "{args:?}: {all}");
        assert_eq!(failed.code(), 1, "{args:?}: {all}");
    }
    assert_eq!(sandbox.tree(), ["old", "old/b", "x", "x/b"]);
}

#[test]
fn an_item_that_can_not_be_read_is_left_with_what_needs_it_and_the_rest_is_applied() {
    let manifest = |content: &str| {
        format!(
            "directories:\n  d:\nfiles:\n  a: {{path: d/a, content: {content}}}\n  b: {{path: d/b, content: {content}}}\n  \
             l: {{template: 'see ${{file.a.path}}'}}\n\
             commands:\n  c: {{apply: 'echo {content} >> ran', undo: rm ran, after: [file.a]}}\n"
        )
    };
    let sandbox = Sandbox::new(&manifest("x"));
    sandbox.ok(&["apply", "--yes"]);
    fs::remove_file(sandbox.path("d/a")).unwrap();
    fs::create_dir(sandbox.path("d/a")).unwrap();
    sandbox.declare(&manifest("y"));
    let planned = sandbox.run(&["plan"]);
    assert_eq!(planned.code(), 1);
    assert!(planned.out().contains("! file/a: d/a should be a file"), "{}", planned.out());
    assert!(
        planned.out().contains("file/l needs it") && planned.out().contains("~ file/b"),
        "{}",
        planned.out()
    );
    let applied = sandbox.run(&["apply", "--yes"]);
    assert_eq!(applied.code(), 1);
    assert!(applied.err().contains("file/a: d/a should be a file"), "{}", applied.err());
    assert_eq!(sandbox.read("d/b"), "y");
    assert!(sandbox.path("d/a").is_dir());
    // Neither it nor what is around it is removed; what only refers to it is.
    sandbox.declare("");
    assert_eq!(sandbox.run(&["apply", "--yes"]).code(), 1);
    assert_eq!(sandbox.tree(), ["d", "d/a"]);
    assert_eq!(sandbox.run(&["destroy", "--yes"]).code(), 1);
    assert_eq!(sandbox.tree(), ["d", "d/a"]);
    fs::remove_dir(sandbox.path("d/a")).unwrap();
    sandbox.ok(&["destroy", "--yes"]);
    assert!(sandbox.tree().is_empty());
}

#[test]
fn an_explanation_says_that_what_can_not_be_read_is_left_with_what_waits_for_it() {
    let sandbox = Sandbox::new(
        "files: {f: {content: x}}\ncommands: {c: {check: test -e done, apply: touch done, after: [file.f]}}\n",
    );
    sandbox.ok(&["apply", "--yes"]);
    fs::remove_file(sandbox.path("done")).unwrap();
    let explained = sandbox.ok(&["explain", "command.c"]);
    assert!(explained.contains("the next run has it created"), "{explained}");
    fs::remove_file(sandbox.path("f")).unwrap();
    fs::create_dir(sandbox.path("f")).unwrap();
    let why = "f should be a file, but a directory is in its place";
    let explained = sandbox.ok(&["explain", "command.c"]);
    assert!(!explained.contains("the next run has it"), "{explained}");
    assert!(
        explained.contains(&format!("it is left as it is, as file/f can't be read: {why}")),
        "{explained}"
    );
    assert!(explained.contains("needs file/f, which is unreadable: "), "{explained}");
    let explained = sandbox.ok(&["explain", "file.f"]);
    assert!(
        explained.starts_with("file/f can't be read; when it could be read last: file/f is in sync"),
        "{explained}"
    );
    assert!(explained.contains(&format!("it can't be read, and is left as it is: {why}")), "{explained}");
    assert!(!sandbox.path("done").exists() && sandbox.run(&["apply", "--yes"]).code() == 1);
    assert!(!sandbox.path("done").exists());
}

#[test]
fn a_plan_is_not_kept_in_the_place_of_something_else() {
    let sandbox = Sandbox::new("files:\n  a: {content: a}\n");
    let refused = sandbox.run(&["plan", "--out", "site.yaml"]);
    assert_eq!(refused.code(), 1);
    assert!(sandbox.read("site.yaml").contains("files:"));
    sandbox.ok(&["plan", "--out", "plan"]);
    sandbox.ok(&["plan", "--out", "plan"]);
}

#[test]
fn a_plan_is_kept_through_no_name_that_someone_else_could_have_prepared() {
    let sandbox = Sandbox::new("files:\n  f: {content: secret, sensitive: true}\n");
    sandbox.write("victim", "precious");
    symlink("victim", sandbox.path("first.setpoint-new")).unwrap();
    sandbox.ok(&["plan", "--out", "first.plan"]);
    assert_eq!(sandbox.read("victim"), "precious");
    let mode = fs::metadata(sandbox.path("first.plan")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    assert_eq!(sandbox.tree(), ["first.plan", "first.setpoint-new", "victim"], "nothing is left beside it");
}

#[test]
fn a_value_that_is_a_list_or_a_map_is_set_to_one_or_refused() {
    let sandbox = Sandbox::new(
        "values: {l: [1, 2], m: {a: 1}}\nfiles: {f: {template: '{% for x in l %}<{{ x }}>{% endfor %}{{ m.a }}'}}\n",
    );
    for (wrong, why) in [
        ("l=[1,", "the value `l` is a list, and `[1,` is no YAML"),
        ("l=3", "the value `l` is a list, and `3` is a number"),
        ("l={\"a\": 1}", "is a list"),
        ("m=[1]", "the value `m` is a map, and `[1]` is a list"),
    ] {
        let refused = sandbox.run(&["apply", "--yes", "--var", wrong]);
        assert_eq!(refused.code(), 64, "{wrong}: {}", refused.out());
        assert!(refused.err().contains(why), "{wrong}: {}", refused.err());
    }
    sandbox.ok(&["apply", "--yes", "--var", "l=[3, x]", "--var", "m={\"a\": 5}"]);
    assert_eq!(sandbox.read("f"), "<3><x>5");
}
