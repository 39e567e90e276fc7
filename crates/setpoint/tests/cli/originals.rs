//! What was there before Setpoint: it is shown, kept, and as it was in the end.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::sandbox::Sandbox;

#[test]
fn what_is_taken_over_is_shown_with_its_difference_and_is_as_it_was_in_the_end() {
    let manifest = "files:\n  motd: {content: \"ours\\n\", mode: \"0644\", adopt: true}\n\
                    symlinks:\n  link: {target: motd, adopt: true}\n";
    let sandbox = Sandbox::new(manifest);
    sandbox.write("motd", "theirs\n");
    fs::set_permissions(sandbox.path("motd"), fs::Permissions::from_mode(0o640)).unwrap();
    symlink("elsewhere", sandbox.path("link")).unwrap();
    let plan = sandbox.ok(&["plan"]);
    assert!(plan.contains("it exists and is adopted"), "{plan}");
    assert!(plan.contains("site: 2 to adopt."), "{plan}");
    assert!(plan.contains("-theirs") && plan.contains("+ours"), "{plan}");
    assert!(!plan.contains("not there"), "{plan}");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare(&manifest.replace("ours", "ours again").replace("motd: {", "motd: {path: moved, "));
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.read("moved"), "ours again\n");
    sandbox.declare(manifest);
    sandbox.ok(&["apply", "--yes"]);
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.read("motd"), "theirs\n");
    let mode = fs::metadata(sandbox.path("motd")).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode, fs::read_link(sandbox.path("link")).unwrap().as_os_str()),
        (0o640, "elsewhere".as_ref())
    );
    // The next time it is that which is kept.
    sandbox.write("motd", "later\n");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.read("motd"), "later\n");
}

#[test]
fn what_is_put_back_is_shown_with_its_difference_before_and_in_the_history() {
    let sandbox = Sandbox::new(
        "directories:
  d: {mode: '0755', adopt: true}
files:
  motd: {content: \"ours\\n\", mode: '0644', adopt: true}
  same: {content: theirs, adopt: true}
  secret: {content: ours, sensitive: true, adopt: true}
symlinks:
  link: {target: motd, adopt: true}
",
    );
    fs::create_dir(sandbox.path("d")).unwrap();
    for (path, mode) in [("d", 0o700), ("motd", 0o640), ("secret", 0o600), ("same", 0o644)] {
        if path != "d" {
            sandbox.write(path, if path == "same" { "theirs" } else { "theirs\n" });
        }
        fs::set_permissions(sandbox.path(path), fs::Permissions::from_mode(mode)).unwrap();
    }
    symlink("elsewhere", sandbox.path("link")).unwrap();
    sandbox.ok(&["apply", "--yes"]);
    let kept = "files:\n  other: {content: other}\n";
    sandbox.declare(kept);
    let plan = sandbox.ok(&["plan"]);
    let of = |item: &str| -> String {
        let lines = plan.lines().skip_while(|line| !line.contains(item)).skip(1);
        let lines: Vec<&str> = lines.take_while(|line| line.starts_with("      ")).map(str::trim).collect();
        lines.join("|")
    };
    assert_eq!(of("- directory/d "), "path: d|mode: 0755 → 0700", "{plan}");
    assert_eq!(
        of("- file/motd "),
        "path: motd|content:|@@ -1 +1 @@|-ours|+theirs|mode: 0644 → 0640",
        "{plan}"
    );
    assert_eq!(of("- file/same "), "path: same", "{plan}");
    assert_eq!(of("- file/secret "), "path: secret|content: (sensitive) → (sensitive)", "{plan}");
    assert_eq!(of("- symlink/link "), "path: link|target: motd → elsewhere", "{plan}");
    let data: serde_json::Value = serde_json::from_str(&sandbox.ok(&["plan", "--json"])).unwrap();
    let operations = data["plan"]["operations"].as_array().unwrap();
    let motd = operations.iter().find(|operation| operation["name"] == "motd").unwrap();
    let content = motd["detail"].as_array().unwrap().iter().find(|change| change["attribute"] == "content");
    assert_eq!(content.unwrap()["new"], "theirs\n", "{motd}");
    sandbox.ok(&["apply", "--yes"]);
    let shown = sandbox.ok(&["show"]);
    assert!(shown.contains("-ours") && shown.contains("+theirs"), "{shown}");
    assert_eq!(sandbox.read("motd"), "theirs\n");
}

#[test]
fn what_setpoint_made_and_leaves_is_not_said_to_be_taken_over() {
    let sandbox = Sandbox::new("files:\n  x: {path: b, content: ours}\n");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.write("b", "changed");
    sandbox.declare(
        "files:\n  x: {path: c, content: ours, adopt: true}\n  z: {path: b, content: new, adopt: true}\n",
    );
    let plan = sandbox.ok(&["plan"]);
    assert!(plan.contains("+ file/z  it is intended and not there\n"), "{plan}");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.tree(), [""; 0]);
}

#[test]
fn what_was_imported_or_adopted_is_as_and_where_it_was_in_the_end() {
    let sandbox = Sandbox::new("files:\n  a: {content: ours}\n");
    sandbox.write("a", "theirs");
    // Also one whose creation has failed because of it.
    assert_eq!(sandbox.run(&["apply", "--yes"]).code(), 1);
    sandbox.ok(&["state", "import", "file.a"]);
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.read("a"), "ours");
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.read("a"), "theirs");
    // Moved meanwhile, it is back where it was at once.
    sandbox.declare("files:\n  a: {content: ours, adopt: true}\nsymlinks:\n  l: {target: x, adopt: true}\n");
    symlink("theirs", sandbox.path("l")).unwrap();
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare("files:\n  a: {path: b, content: ours, adopt: true}\nsymlinks:\n  l: {path: m, target: x, adopt: true}\n");
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.tree(), ["a", "b", "l", "m"]);
    assert_eq!(sandbox.read("a"), "theirs");
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.tree(), ["a", "l"]);
    assert_eq!(sandbox.read("a"), "theirs");
    assert_eq!(fs::read_link(sandbox.path("l")).unwrap().to_str(), Some("theirs"));
}

#[test]
fn an_adopted_directory_gets_its_permissions_back() {
    let sandbox = Sandbox::new("directories:\n  d: {mode: '0755', adopt: true}\n");
    fs::create_dir(sandbox.path("d")).unwrap();
    fs::set_permissions(sandbox.path("d"), fs::Permissions::from_mode(0o700)).unwrap();
    let mode = || fs::metadata(sandbox.path("d")).unwrap().permissions().mode() & 0o777;
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(mode(), 0o755);
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(mode(), 0o700);
}

#[test]
fn adopted_files_that_are_to_change_places_are_as_they_were_in_the_end() {
    let with = |a: &str, b: &str| {
        format!(
            "files:\n  a: {{path: {a}, content: A, adopt: true}}\n  b: {{path: {b}, content: B, adopt: true}}\n"
        )
    };
    let sandbox = Sandbox::new(&with("pa", "pb"));
    sandbox.write("pa", "first");
    sandbox.write("pb", "second");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare(&with("pb", "pa"));
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!((sandbox.read("pa"), sandbox.read("pb")), ("B".to_owned(), "A".to_owned()));
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!((sandbox.read("pa"), sandbox.read("pb")), ("first".to_owned(), "second".to_owned()));
    // Made anew, it is taken over again, also where `adopt` is not declared any more.
    sandbox.declare(&with("pa", "pb"));
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare(&with("pa", "pb").replace(", adopt: true", ""));
    sandbox.ok(&["apply", "--yes", "--replace", "file.a"]);
    assert_eq!(sandbox.read("pa"), "A");
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.read("pa"), "first");
}

#[test]
fn an_original_is_put_back_although_the_state_has_forgotten_that_it_is_kept() {
    let sandbox = Sandbox::new("files: {a: {content: new, adopt: true}}\n");
    sandbox.write("a", "original");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.ok(&["state", "rm", "file.a"]);
    sandbox.ok(&["apply", "--yes"]);
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.read("a"), "original");
}

#[test]
fn an_original_of_an_earlier_adoption_is_set_aside_and_stays() {
    let sandbox = Sandbox::new("files: {a: {content: new, adopt: true}}\n");
    sandbox.write("a", "first");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.ok(&["state", "rm", "file.a"]);
    sandbox.write("a", "second");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.read("a"), "second");
    let kept = fs::read_dir(sandbox.path(".setpoint/run/kept")).unwrap();
    let kept: Vec<String> = kept.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap()).collect();
    // `first`, as it is written there.
    assert!(kept.iter().any(|text| text.contains("Zmlyc3Q=")), "{kept:?}");
}

#[test]
fn an_adopted_file_is_put_back_in_the_directory_that_it_moved_with() {
    let with = |d: &str| {
        format!(
            "directories: {{d: {{path: {d}, adopt: true}}}}\n\
             files: {{f: {{path: {d}/f, content: ours, adopt: true}}}}\n\
             symlinks: {{l: {{path: {d}/l, target: ours, adopt: true}}}}\n"
        )
    };
    let sandbox = Sandbox::new(&with("p1"));
    fs::create_dir(sandbox.path("p1")).unwrap();
    sandbox.write("p1/f", "theirs");
    symlink("theirs", sandbox.path("p1/l")).unwrap();
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare(&with("p2"));
    sandbox.ok(&["apply", "--yes"]);
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.tree(), ["p2", "p2/f", "p2/l"]);
    assert_eq!(sandbox.read("p2/f"), "theirs");
    assert_eq!(fs::read_link(sandbox.path("p2/l")).unwrap().to_str(), Some("theirs"));
}

#[test]
fn an_imported_item_that_is_made_anew_on_demand_is_taken_over_again() {
    let sandbox =
        Sandbox::new("files: {f: {content: ours}}\nsymlinks: {l: {target: ours}}\ndirectories: {d: }\n");
    sandbox.write("f", "theirs");
    symlink("theirs", sandbox.path("l")).unwrap();
    fs::create_dir(sandbox.path("d")).unwrap();
    sandbox.write("d/mine", "");
    sandbox.ok(&["state", "import", "file.f", "symlink.l", "directory.d"]);
    sandbox.ok(&["apply", "--yes"]);
    sandbox.ok(&[
        "apply",
        "--yes",
        "--replace",
        "file.f",
        "--replace",
        "symlink.l",
        "--replace",
        "directory.d",
    ]);
    assert_eq!(sandbox.read("f"), "ours");
    assert_eq!(sandbox.ok(&["plan"]), "site: nothing to do.\n");
    let destroyed = sandbox.ok(&["destroy", "--yes"]);
    assert!(destroyed.contains("site: 3 to release."), "{destroyed}");
    assert_eq!(sandbox.tree(), ["d", "d/mine", "f", "l"]);
    assert_eq!(sandbox.read("f"), "theirs");
    assert_eq!(fs::read_link(sandbox.path("l")).unwrap().to_str(), Some("theirs"));
}

/// The copy that is left of the first adoption is not what was there before the second one.
#[test]
fn what_is_taken_over_after_it_was_gone_is_what_comes_back_in_the_end() {
    for forget in [&["destroy", "--yes"][..], &["apply", "--yes", "--refresh-only"]] {
        let sandbox = Sandbox::new("files:\n  f: {content: mine, adopt: true}\n");
        sandbox.write("f", "precious");
        sandbox.ok(&["apply", "--yes"]);
        fs::remove_file(sandbox.path("f")).unwrap();
        sandbox.ok(forget);
        sandbox.write("f", "new work");
        sandbox.ok(&["apply", "--yes"]);
        assert_eq!(sandbox.read("f"), "mine");
        sandbox.ok(&["destroy", "--yes"]);
        assert_eq!(sandbox.read("f"), "new work", "{forget:?}");
    }
}

#[test]
fn a_link_that_is_taken_over_after_it_was_gone_is_what_comes_back_in_the_end() {
    let sandbox = Sandbox::new("symlinks:\n  l: {target: mine, adopt: true}\n");
    let link = sandbox.path("l");
    symlink("precious", &link).unwrap();
    sandbox.ok(&["apply", "--yes"]);
    fs::remove_file(&link).unwrap();
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(fs::read_link(&link).unwrap().to_str(), Some("precious"));
    fs::remove_file(&link).unwrap();
    symlink("new-work", &link).unwrap();
    sandbox.ok(&["apply", "--yes"]);
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(fs::read_link(&link).unwrap().to_str(), Some("new-work"));
}

#[test]
fn an_original_is_set_aside_when_another_item_gets_its_name() {
    let sandbox =
        Sandbox::new("files:\n  f: {content: mine, adopt: true}\n  g: {content: mine, adopt: true}\n");
    sandbox.write("f", "of f");
    sandbox.write("g", "of g");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.ok(&["state", "rm", "file.g"]);
    sandbox.ok(&["state", "mv", "file.f", "file.g"]);
    let kept = fs::read_dir(sandbox.path(".setpoint/run/kept")).unwrap();
    let all: String = kept.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap()).collect();
    // As base64 has it.
    assert!(all.contains("b2YgZw=="), "the original of g: {all}");
    assert!(all.contains("b2YgZg=="), "the original of f: {all}");
}
