//! What people write into manifests, and expect.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

use super::sandbox::{Sandbox, eventually};

#[test]
fn directories_that_nobody_declared_are_made_and_go_with_what_is_inside() {
    let sandbox =
        Sandbox::new("files:\n  conf: {path: etc/app/app.conf, content: x}\n  motd: {content: y}\n");
    let plan = sandbox.ok(&["plan"]);
    assert!(plan.contains("+ directory/etc/app/"), "{plan}");
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.tree(), ["etc", "etc/app", "etc/app/app.conf", "motd"]);
    assert!(sandbox.ok(&["plan"]).contains("nothing to do"));
    // One that something else removed is made again.
    fs::remove_dir_all(sandbox.path("etc")).unwrap();
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.read("etc/app/app.conf"), "x");
    sandbox.declare("files:\n  motd: {content: y}\n");
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.tree(), ["motd"]);
}

#[test]
fn a_directory_that_was_there_before_is_nobodys_item_and_stays() {
    let sandbox = Sandbox::new("files:\n  conf: {path: etc/app/app.conf, content: x}\n");
    fs::create_dir(sandbox.path("etc")).unwrap();
    let plan = sandbox.ok(&["plan"]);
    assert!(plan.contains("directory/etc/app/") && !plan.contains("directory/etc/ "), "{plan}");
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.ok(&["state", "list"]).lines().count(), 2);
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.tree(), ["etc"]);
}

#[test]
fn a_directory_that_nobody_declared_stays_while_something_else_is_in_it() {
    let sandbox = Sandbox::new("files:\n  conf: {path: etc/app.conf, content: x}\n");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.write("etc/other", "mine");
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.tree(), ["etc", "etc/other"]);
}

#[test]
fn a_link_to_a_directory_serves_as_one() {
    let sandbox = Sandbox::new("files:\n  conf: {path: etc/sub/app.conf, content: x}\n");
    fs::create_dir(sandbox.path("real")).unwrap();
    std::os::unix::fs::symlink("real", sandbox.path("etc")).unwrap();
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.read("real/sub/app.conf"), "x");
    assert!(sandbox.ok(&["plan"]).contains("nothing to do"));
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.tree(), ["etc", "real"]);
}

#[test]
fn a_directory_that_is_declared_later_or_no_more_is_the_same_one() {
    let sandbox = Sandbox::new("files:\n  conf: {path: etc/app.conf, content: x}\n");
    sandbox.ok(&["apply", "--yes"]);
    let inode = || fs::metadata(sandbox.path("etc")).unwrap().ino();
    let before = inode();
    sandbox
        .declare("directories:\n  settings: {path: etc}\nfiles:\n  conf: {path: etc/app.conf, content: x}\n");
    let plan = sandbox.ok(&["plan"]);
    assert!(plan.contains("= directory/etc/ is directory/settings"), "{plan}");
    sandbox.ok(&["apply", "--yes"]);
    assert!(sandbox.ok(&["plan"]).contains("nothing to do"));
    sandbox.declare("files:\n  conf: {path: etc/app.conf, content: x}\n");
    sandbox.ok(&["apply", "--yes"]);
    assert!(sandbox.ok(&["plan"]).contains("nothing to do"));
    assert_eq!(inode(), before);
    sandbox.ok(&["destroy", "--yes"]);
    assert!(sandbox.tree().is_empty());
}

#[test]
fn an_item_with_another_name_in_the_same_place_is_the_same_one() {
    let sandbox = Sandbox::new("files:\n  a: {path: motd, content: x}\n");
    sandbox.write("motd", "before");
    sandbox.declare("files:\n  a: {path: motd, content: x, adopt: true}\n");
    sandbox.ok(&["apply", "--yes"]);
    let inode = || fs::metadata(sandbox.path("motd")).unwrap().ino();
    let before = inode();
    sandbox.declare("files:\n  b: {path: motd, content: x, adopt: true}\n");
    let plan = sandbox.ok(&["plan"]);
    assert!(plan.contains("= file/a is file/b") && plan.contains("nothing to do"), "{plan}");
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(inode(), before);
    assert!(sandbox.ok(&["state", "list"]).contains("file/b  (adopted)"));
    // With another content it is changed in its place.
    sandbox.declare("files:\n  c: {path: motd, content: y, adopt: true}\n");
    let plan = sandbox.ok(&["plan"]);
    assert!(plan.contains("~ file/c"), "{plan}");
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.read("motd"), "y");
    // What was there before Setpoint is known under each of its names.
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.read("motd"), "before");
}

#[test]
fn values_stand_in_paths_commands_and_environments_and_can_be_set() {
    let sandbox = Sandbox::new(
        "values: {port: 8080, app: {name: shop}, version: '1.10'}\n\
         files:\n  conf: {path: 'etc/${values.app.name}.conf', template: \"port {{ port }} of ${values.version}\\n\"}\n\
         commands:\n  say:\n    apply: 'echo ${values.port} $V > said'\n    env: {V: 'v${values.version}'}\n    undo: rm said\n",
    );
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(
        (sandbox.read("etc/shop.conf"), sandbox.read("said")),
        ("port 8080 of 1.10\n".into(), "8080 v1.10\n".into())
    );
    sandbox.ok(&["apply", "--yes", "--var", "port=9090", "--var", "version=1.20"]);
    assert_eq!(
        (sandbox.read("etc/shop.conf"), sandbox.read("said")),
        ("port 9090 of 1.20\n".into(), "9090 v1.20\n".into())
    );
    for (args, expected) in [
        (vec!["--var", "prot=1"], "did you mean `port`?"),
        (vec!["--var", "port"], "NAME=VALUE"),
        (vec!["--var", "=1"], "NAME=VALUE"),
    ] {
        let refused = sandbox.run(&[vec!["validate"], args.clone()].concat());
        assert!(refused.code() != 0 && refused.err().contains(expected), "{args:?}: {}", refused.err());
    }
}

#[test]
fn values_that_are_missing_empty_or_many_are_named_where_they_are_used() {
    for (value, expected) in [
        ("prot", "there is no value `prot`"),
        ("app", "the value `app` is not a single one"),
        ("token", "the value `token` is empty"),
        ("app.nome", "did you mean `app.name`?"),
    ] {
        let manifest = format!(
            "values: {{port: 1, app: {{name: x}}, token: }}\nfiles:\n  f: {{path: 'x${{values.{value}}}', content: y}}\n"
        );
        let refused = Sandbox::new(&manifest).run(&["validate"]);
        assert_eq!(refused.code(), 1);
        assert!(
            refused.err().contains(expected) && refused.err().contains(":4:"),
            "{value}: {}",
            refused.err()
        );
    }
}

#[test]
fn yaml_that_is_something_else_is_passed_over_with_a_word() {
    let sandbox = Sandbox::new("files:\n  f: {content: x}\n");
    sandbox.write("compose.yaml", "name: shop\nservices:\n  web: {image: nginx}\n");
    sandbox.write("playbook.yml", "- hosts: all\n  tasks: []\n");
    sandbox.write("chart.yaml", "apiVersion: v1\nmetadata: {{ .Values.x }}\n");
    let applied = sandbox.run(&["apply", "--yes"]);
    assert_eq!(applied.code(), 0, "{}", applied.err());
    for file in ["compose.yaml", "playbook.yml", "chart.yaml"] {
        assert!(applied.err().contains(&format!("{file} is no manifest of Setpoint")), "{}", applied.err());
    }
    assert_eq!(sandbox.read("f"), "x");
    // What was meant as one is an error, and so is a file that someone named.
    for wrong in ["fiels:\n  f: {content: x}\n", "file:\n  f: {content: x}\n", "files:\n  g: {content: [\n"] {
        sandbox.write("more.yaml", wrong);
        let refused = sandbox.run(&["plan"]);
        assert_eq!(refused.code(), 1, "{wrong}");
        assert!(refused.err().contains("more.yaml"), "{}", refused.err());
    }
    fs::remove_file(sandbox.path("more.yaml")).unwrap();
    assert_eq!(sandbox.run(&["plan", "-f", "compose.yaml"]).code(), 1);
    fs::remove_file(sandbox.path("site.yaml")).unwrap();
    let refused = sandbox.run(&["plan"]);
    assert!(refused.err().contains("no YAML file in this directory is a manifest"), "{}", refused.err());
}

#[test]
fn another_root_is_refused_with_a_way_and_nothing_is_orphaned() {
    let sandbox = Sandbox::new("");
    for root in ["old", "new"] {
        fs::create_dir(sandbox.path(root)).unwrap();
    }
    let declare = |root: &str| sandbox.declare(&format!("root: {root}\nfiles:\n  f: {{content: x}}\n"));
    declare("old");
    sandbox.ok(&["apply", "--yes"]);
    declare("new");
    for command in
        [&["plan"][..], &["apply", "--yes"], &["destroy", "--yes"], &["watch"], &["explain", "file.f"]]
    {
        let refused = sandbox.run(command);
        assert_eq!(refused.code(), 1, "{command:?}");
        assert!(refused.err().contains("state relocate"), "{command:?}: {}", refused.err());
    }
    assert_eq!(sandbox.tree(), ["new", "old", "old/f"]);
    // What is not there is not taken for moved.
    assert_eq!(sandbox.run(&["state", "relocate"]).code(), 1);
    // Moved by hand, it is taken over.
    fs::rename(sandbox.path("old/f"), sandbox.path("new/f")).unwrap();
    sandbox.ok(&["state", "relocate"]);
    assert!(sandbox.ok(&["plan"]).contains("nothing to do"));
    // Moved as a whole, it is the same directory.
    fs::rename(sandbox.path("new"), sandbox.path("newer")).unwrap();
    declare("newer");
    assert!(sandbox.ok(&["plan"]).contains("nothing to do"));
    sandbox.ok(&["destroy", "--yes"]);
    declare("old");
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.tree(), ["newer", "old", "old/f"]);
}

#[test]
fn a_root_in_which_nothing_could_be_made_may_be_another_one() {
    let sandbox = Sandbox::new("root: old\nfiles: {x: {path: f/x, content: x}}\n");
    for directory in ["old", "new"] {
        fs::create_dir(sandbox.path(directory)).unwrap();
    }
    sandbox.write("old/f", "no directory");
    assert_eq!(sandbox.run(&["apply", "--yes"]).code(), 1);
    sandbox.declare("root: new\nfiles: {x: {path: f/x, content: x}}\n");
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.read("new/f/x"), "x");
    // Now there is something.
    sandbox.declare("root: old\nfiles: {x: {path: f/x, content: x}}\n");
    assert_eq!(sandbox.run(&["plan"]).code(), 1);
}

#[test]
fn a_log_that_a_process_made_goes_with_it_and_one_that_was_there_stays() {
    let manifest = |command: &str, log: &str| {
        format!("processes:\n  web: {{command: 'echo {command}; exec sleep 1000', log: {log}}}\n")
    };
    let sandbox = Sandbox::new(&manifest("one", "logs/web.log"));
    sandbox.ok(&["apply", "--yes"]);
    eventually("it has written", || sandbox.read("logs/web.log") == "one\n");
    // A restart adds to it, and another path moves it.
    sandbox.declare(&manifest("two", "logs/web.log"));
    sandbox.ok(&["apply", "--yes"]);
    eventually("both have written", || sandbox.read("logs/web.log") == "one\ntwo\n");
    sandbox.declare(&manifest("three", "web.log"));
    sandbox.ok(&["apply", "--yes"]);
    eventually("all have written", || sandbox.read("web.log") == "one\ntwo\nthree\n");
    sandbox.declare("");
    sandbox.ok(&["apply", "--yes"]);
    assert!(sandbox.tree().is_empty(), "{:?}", sandbox.tree());
    sandbox.write("web.log", "mine\n");
    sandbox.declare(&manifest("one", "web.log, adopt: true"));
    sandbox.ok(&["apply", "--yes"]);
    eventually("it has written", || sandbox.read("web.log") == "mine\none\n");
    sandbox.declare(&manifest("two", "web.log, adopt: true"));
    sandbox.ok(&["apply", "--yes"]);
    eventually("both have written", || sandbox.read("web.log") == "mine\none\ntwo\n");
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.tree(), ["web.log"]);
}

#[test]
fn a_directory_that_is_called_like_the_path_of_another_is_not_that_one() {
    let sandbox = Sandbox::new("files:\n  a: {path: data/a, content: x}\n");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.write("data/mine", "mine");
    sandbox.declare("directories:\n  data: {path: srv}\nfiles:\n  a: {path: data/a, content: x}\n");
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.tree(), ["data", "data/a", "data/mine", "srv"]);
    assert_eq!(sandbox.ok(&["state", "list"]).lines().count(), 3);
    sandbox.declare("directories:\n  data/: {path: srv}\n");
    assert!(sandbox.run(&["validate"]).err().contains("it ends with a slash"));
}

#[test]
fn a_directory_that_was_replaced_by_a_link_leads_to_nobodys_files() {
    let sandbox = Sandbox::new("files:\n  a: {path: x/y/a, content: ours}\n");
    sandbox.ok(&["apply", "--yes"]);
    fs::create_dir(sandbox.path("theirs")).unwrap();
    sandbox.write("theirs/a", "theirs");
    fs::remove_dir_all(sandbox.path("x/y")).unwrap();
    std::os::unix::fs::symlink("../theirs", sandbox.path("x/y")).unwrap();
    assert_eq!(sandbox.run(&["apply", "--yes"]).code(), 1);
    assert_eq!(sandbox.run(&["destroy", "--yes"]).code(), 1);
    assert_eq!(sandbox.read("theirs/a"), "theirs");
}

#[test]
fn a_pipe_among_the_manifests_is_an_error_and_not_waited_for() {
    let sandbox = Sandbox::new("files: {a: {content: one}}\n");
    sandbox.ok(&["apply", "--yes"]);
    let made = Command::new("mkfifo").arg(sandbox.path("q.yaml")).status().unwrap();
    assert!(made.success());
    // Ends what would wait for ever.
    let mut plan = Command::new("timeout");
    plan.arg("60").arg(env!("CARGO_BIN_EXE_setpoint")).arg("plan").current_dir(sandbox.root());
    let plan = plan.output().unwrap();
    assert_eq!(plan.status.code(), Some(1), "{plan:?}");
    assert!(String::from_utf8(plan.stderr).unwrap().contains("q.yaml"));
}

#[test]
fn a_source_without_an_end_is_an_error_and_not_waited_for() {
    for path in ["/proc/kmsg", "/proc/kcore", "/dev/zero"] {
        // Not each machine has each.
        if fs::File::open(path).is_err() {
            continue;
        }
        for field in ["source", "template_source"] {
            let sandbox = Sandbox::new(&format!("files: {{f: {{{field}: {path}}}}}\n"));
            let refused = sandbox.run(&["validate"]);
            assert_eq!(refused.code(), 1, "{path}: {}", refused.out());
            assert!(refused.err().contains(&format!("can't read {path}: ")), "{path}: {}", refused.err());
        }
    }
}
