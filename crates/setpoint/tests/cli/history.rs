//! What the history says of runs that did not go as planned.

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::sandbox::{Sandbox, eventually};

/// The operations of a run as item, reason and error.
fn operations(sandbox: &Sandbox, run: &str) -> Vec<(String, Option<String>, bool)> {
    let shown: Value = serde_json::from_str(&sandbox.ok(&["show", run, "--json"])).unwrap();
    let entries = shown["entries"].as_array().unwrap().iter();
    entries
        .map(|entry| {
            let item = format!("{}/{}", entry["kind"].as_str().unwrap(), entry["name"].as_str().unwrap());
            (item, entry["reason"].as_str().map(str::to_owned), entry["error"].is_string())
        })
        .collect()
}

#[test]
fn a_run_that_was_killed_is_shown_with_the_reasons_of_what_it_did() {
    let sandbox = Sandbox::new(
        "files: {f: {content: x}}
commands: {c: {apply: 'touch begun; while test -e begun && ! test -e quick; do sleep 0.1; done', after: [file.f]}}
",
    );
    let mut applying = sandbox.start(&["apply", "--yes"]);
    eventually("it has begun", || sandbox.path("begun").exists());
    applying.signal(Signal::SIGKILL);
    let _ = applying.child.wait();
    sandbox.write("quick", "");
    sandbox.ok(&["apply", "--yes"]);
    let reason = Some("it is intended and not there".to_owned());
    let expected = [("file/f".to_owned(), reason.clone(), false), ("command/c".to_owned(), reason, false)];
    assert_eq!(operations(&sandbox, "1"), expected);
    let shown = sandbox.ok(&["show", "1"]);
    assert!(
        shown.contains("command/c, interrupted: its outcome is unknown  it is intended and not there"),
        "{shown}"
    );
}

#[test]
fn a_retry_under_watch_is_shown_with_its_reason() {
    let sandbox = Sandbox::new("commands: {c: {apply: 'test -e possible'}}\n");
    let watching = sandbox.start(&["watch"]);
    watching.until("failed");
    sandbox.write("possible", "");
    watching.until("+ command/c");
    let last = || {
        let shown: Value = serde_json::from_str(&sandbox.ok(&["show", "--json"])).unwrap();
        shown["number"].to_string()
    };
    eventually("the retry is a run of its own", || last() != "1");
    drop(watching);
    let last = last();
    for run in ["1", &last] {
        for (item, reason, _) in operations(&sandbox, run) {
            assert!(reason.is_some(), "{item} in run {run}");
        }
    }
}
