//! Manifests that declare nothing any more: `watch` deletes nothing for that, also if it is started again.

use std::fs;

use nix::sys::signal::Signal;

use crate::sandbox::{Sandbox, eventually};

/// Two manifests, applied.
fn applied() -> Sandbox {
    let sandbox = Sandbox::new("files:\n  a: {content: a}\n");
    sandbox.write("b.yaml", "files:\n  etc/b: {content: b}\n");
    sandbox.ok(&["apply", "--yes"]);
    sandbox
}

#[test]
fn watch_that_is_started_again_deletes_nothing_of_a_manifest_that_was_emptied() {
    let sandbox = applied();
    // What a power failure leaves of a manifest that was just saved; half of one; something else.
    for text in ["", "---\n", "files:\n", "things: {b: 1}\n"] {
        sandbox.write("b.yaml", text);
        let refused = sandbox.run(&["watch"]);
        assert_eq!(refused.code(), 1, "{text:?}: {}", refused.err());
        assert!(refused.err().contains("b.yaml declares nothing any more"), "{}", refused.err());
        assert!(refused.err().contains("--allow-empty"), "{}", refused.err());
        assert_eq!(sandbox.read("etc/b"), "b");
    }
    // Who says so, means it.
    let mut watching = sandbox.start(&["watch", "--allow-empty"]);
    eventually("it goes", || !sandbox.path("etc/b").exists());
    watching.signal(Signal::SIGTERM);
    assert_eq!(watching.wait(), 0, "{}", watching.log());
    // From then on it declares nothing.
    let mut watching = sandbox.start(&["watch"]);
    watching.until("watching site");
    watching.signal(Signal::SIGTERM);
    assert_eq!(watching.wait(), 0, "{}", watching.log());
}

#[test]
fn watch_is_started_again_where_nothing_would_be_lost() {
    let sandbox = applied();
    // What b.yaml declared is declared elsewhere.
    sandbox.declare("files:\n  a: {content: a}\n  etc/b: {content: b}\n  c: {content: c}\n");
    sandbox.write("b.yaml", "");
    let mut watching = sandbox.start(&["watch"]);
    eventually("it works", || sandbox.path("c").exists());
    // So it may be moved while it runs.
    sandbox.write("b.yaml", "files:\n  etc/b: {content: b}\n");
    sandbox.declare("files:\n  a: {content: a}\n  d: {content: d}\n");
    eventually("it goes on", || sandbox.path("d").exists() && !sandbox.path("c").exists());
    assert_eq!(sandbox.read("etc/b"), "b");
    watching.signal(Signal::SIGTERM);
    assert_eq!(watching.wait(), 0, "{}", watching.log());
    // A file that is removed, and one that an apply was shown without, are meant so.
    fs::remove_file(sandbox.path("b.yaml")).unwrap();
    let mut watching = sandbox.start(&["watch"]);
    eventually("it goes", || !sandbox.path("etc/b").exists());
    watching.signal(Signal::SIGTERM);
    assert_eq!(watching.wait(), 0, "{}", watching.log());
}

#[test]
fn what_an_apply_was_shown_without_is_not_kept_by_watch() {
    let sandbox = applied();
    sandbox.write("b.yaml", "values: {x: 1}\n");
    // It is about something else.
    sandbox.ok(&["apply", "--yes", "--target", "file.a"]);
    assert_eq!(sandbox.run(&["watch"]).code(), 1, "nobody has seen that it would go");
    sandbox.ok(&["apply", "--yes"]);
    assert!(!sandbox.path("etc/b").exists());
    let mut watching = sandbox.start(&["watch"]);
    watching.until("watching site");
    sandbox.declare("files:\n  c: {content: c}\n  a: {content: a}\n");
    eventually("it works", || sandbox.path("c").exists());
    sandbox.declare("files:\n  a: {content: a}\n");
    eventually("it goes on", || !sandbox.path("c").exists());
    watching.signal(Signal::SIGTERM);
    assert_eq!(watching.wait(), 0, "{}", watching.log());
}

#[test]
fn watch_of_one_manifest_of_several_deletes_nothing_of_the_others() {
    let sandbox = applied();
    let refused = sandbox.run(&["watch", "-f", "site.yaml"]);
    assert_eq!(refused.code(), 1, "{}", refused.err());
    assert!(
        refused.err().contains("b.yaml declared some of what is there, and is not read"),
        "{}",
        refused.err()
    );
    assert_eq!(sandbox.read("etc/b"), "b");
}

#[test]
fn a_run_that_is_killed_remembers_which_manifests_declared_something() {
    let sandbox = Sandbox::new("files:\n  a: {content: a}\n");
    sandbox.write(
        "b.yaml",
        "files:\n  b: {content: b}\ncommands:\n  c: {apply: 'touch begun; sleep 600', after: [file.b]}\n",
    );
    let mut applying = sandbox.start(&["apply", "--yes"]);
    eventually("it is at work", || sandbox.path("begun").exists());
    applying.signal(Signal::SIGKILL);
    let _ = applying.child.wait();
    sandbox.write("b.yaml", "");
    let refused = sandbox.run(&["watch"]);
    assert_eq!(refused.code(), 1, "{}", refused.err());
    assert!(refused.err().contains("b.yaml declares nothing any more"), "{}", refused.err());
    assert_eq!(sandbox.read("b"), "b");
}

#[test]
fn a_manifest_that_declares_nothing_any_more_or_is_left_out_is_named_where_something_goes() {
    let sandbox = applied();
    // Either may be read alone: the name of the set is in the other one.
    sandbox.write("site.yaml", "files:\n  a: {content: a}\n");
    let named = "name: site\nfiles:\n  etc/b: {content: b}\n";
    sandbox.write("b.yaml", named);
    sandbox.ok(&["apply", "--yes"]);
    let plan = sandbox.ok(&["plan", "-f", "b.yaml"]);
    assert!(plan.contains("site.yaml declared some of what is there, and is not read"), "{plan}");
    sandbox.write("site.yaml", "files:\n");
    let plan = sandbox.ok(&["plan"]);
    assert!(plan.contains("site.yaml declares nothing any more: what it declared goes"), "{plan}");
    // Where it is there no more, and where nothing goes, nothing is to be said.
    fs::remove_file(sandbox.path("site.yaml")).unwrap();
    let plan = sandbox.ok(&["plan"]);
    assert!(plan.contains("- file/a") && !plan.contains("what it declared goes"), "{plan}");
    sandbox.write("site.yaml", "files:\n  a: {content: a}\n");
    assert_eq!(sandbox.ok(&["plan"]), "site: nothing to do.\n");
}
