//! What is protected stays so, whatever becomes of the run that was told so.

use std::fs;

use nix::sys::signal::Signal;

use crate::sandbox::{Sandbox, eventually};

/// A command that runs until there is a file `quick`, or no sandbox any more.
const SLOW: &str = "touch begun; until test -e quick || ! test -e site.yaml; do sleep 0.1; done";

/// Applies a manifest with a slow command, and is killed while that runs.
fn applied_and_killed(sandbox: &Sandbox) {
    let mut applying = sandbox.start(&["apply", "--yes"]);
    eventually("the command has begun", || sandbox.path("begun").exists());
    applying.signal(Signal::SIGKILL);
    let _ = applying.child.wait();
    fs::remove_file(sandbox.path("begun")).unwrap();
}

/// Declares the file no more, which must be refused.
fn is_refused_without_its_line(sandbox: &Sandbox) {
    sandbox.write("quick", "");
    sandbox.declare("");
    let refused = sandbox.run(&["apply", "--yes"]);
    assert_eq!(refused.code(), 1, "{}{}", refused.out(), refused.err());
    assert!(refused.err().contains("protected by `prevent_destroy`: file/f"), "{}", refused.err());
    assert!(sandbox.path("f").exists());
    assert!(sandbox.ok(&["state", "list"]).contains("file/f  (protected"));
}

#[test]
fn what_is_protected_is_so_although_the_run_that_made_it_was_killed() {
    let sandbox = Sandbox::new(&format!(
        "files: {{f: {{content: x, prevent_destroy: true}}}}\ncommands: {{c: {{apply: '{SLOW}', after: [file.f]}}}}\n"
    ));
    applied_and_killed(&sandbox);
    is_refused_without_its_line(&sandbox);
}

#[test]
fn what_was_there_is_protected_although_the_run_that_was_told_so_was_killed() {
    for content in ["x", "y"] {
        let sandbox = Sandbox::new("files: {f: {content: x}}\n");
        sandbox.ok(&["apply", "--yes"]);
        sandbox.declare(&format!(
            "files: {{f: {{content: {content}, prevent_destroy: true}}}}\n\
             commands: {{c: {{apply: '{SLOW}', after: [file.f]}}}}\n"
        ));
        applied_and_killed(&sandbox);
        is_refused_without_its_line(&sandbox);
    }
}

#[test]
fn a_protection_that_a_killed_run_ended_is_ended() {
    let sandbox = Sandbox::new("files: {f: {content: x, prevent_destroy: true}}\n");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare(&format!(
        "files: {{f: {{content: y}}}}\ncommands: {{c: {{apply: '{SLOW}', after: [file.f]}}}}\n"
    ));
    applied_and_killed(&sandbox);
    sandbox.write("quick", "");
    sandbox.declare("");
    sandbox.ok(&["apply", "--yes"]);
    assert!(!sandbox.path("f").exists());
}

#[test]
fn protection_goes_along_with_a_new_name() {
    let sandbox = Sandbox::new("files: {f: {content: x, prevent_destroy: true}}\n");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.ok(&["state", "mv", "file.f", "file.g"]);
    assert!(sandbox.ok(&["state", "list"]).contains("file/g  (protected"));
    // The same place under another name, and then no declaration at all.
    sandbox.declare("files: {h: {path: f, content: x, prevent_destroy: true}}\n");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare("");
    let refused = sandbox.run(&["apply", "--yes"]);
    assert!(refused.err().contains("protected by `prevent_destroy`: file/h"), "{}", refused.err());
    assert_eq!(sandbox.read("f"), "x");
}

#[test]
fn what_is_protected_may_change_places_and_may_not_be_made_anew_on_demand() {
    let with = |f: &str, g: &str| {
        format!(
            "files:\n  f: {{path: {f}, content: F, prevent_destroy: true}}\n  g: {{path: {g}, content: G, prevent_destroy: true}}\n"
        )
    };
    let sandbox = Sandbox::new(&with("one", "two"));
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare(&with("two", "one"));
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!((sandbox.read("two"), sandbox.read("one")), ("F".to_owned(), "G".to_owned()));
    let refused = sandbox.run(&["apply", "--yes", "--replace", "file.f"]);
    assert_eq!(refused.code(), 1);
    assert!(refused.err().contains("protected"), "{}", refused.err());
}

#[test]
fn a_plan_says_whose_protection_ends_and_is_refused_where_that_changed() {
    let manifest = |protected: bool| format!("files: {{f: {{content: x, prevent_destroy: {protected}}}}}\n");
    let sandbox = Sandbox::new(&manifest(true));
    sandbox.ok(&["apply", "--yes"]);
    sandbox.ok(&["plan", "--out", "the.plan"]);
    sandbox.declare(&manifest(false));
    let stale = sandbox.run(&["apply", "the.plan"]);
    assert!(stale.err().contains("have changed since it was made"), "{}", stale.err());
    let plan = sandbox.ok(&["plan"]);
    assert!(plan.contains("file/f is not protected any more"), "{plan}");
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.ok(&["plan"]), "site: nothing to do.\n");
}

#[test]
fn what_is_protected_is_not_made_anew_with_the_directory_that_it_is_in() {
    let sandbox =
        Sandbox::new("directories: {d: {}}\nfiles: {f: {path: d/f, content: x, prevent_destroy: true}}\n");
    sandbox.ok(&["apply", "--yes"]);
    let refused = sandbox.run(&["apply", "--yes", "--replace", "directory.d"]);
    assert_eq!(refused.code(), 1, "{}{}", refused.out(), refused.err());
    assert!(refused.err().contains("protected by `prevent_destroy`: file/f"), "{}", refused.err());
}
