//! Plans for programs: a code for each reason, and what waits for what.

use std::collections::BTreeSet;
use std::fs;

use nix::sys::signal::Signal;
use serde_json::Value;
use setpoint_plan::ReasonCode;

use crate::sandbox::{Sandbox, eventually};

fn plan(sandbox: &Sandbox, args: &[&str]) -> Value {
    serde_json::from_str(&sandbox.run(&[&["plan", "--json"], args].concat()).out()).unwrap()
}

/// The operations of a plan.
fn operations(plan: &Value) -> &Vec<Value> {
    plan["plan"]["operations"].as_array().unwrap()
}

/// The codes of the operations on an item.
fn codes(plan: &Value, kind: &str, name: &str) -> Vec<String> {
    let of_it =
        operations(plan).iter().filter(|operation| operation["kind"] == kind && operation["name"] == name);
    of_it.map(|operation| operation["code"].as_str().unwrap().to_owned()).collect()
}

/// What each operation waits for is the same by position and by name.
fn check_waiting(plan: &Value) {
    for operation in operations(plan) {
        let positions = operation["after"].as_array().into_iter().flatten();
        let by_position: BTreeSet<String> = positions
            .map(|position| &operations(plan)[usize::try_from(position.as_u64().unwrap()).unwrap()])
            .map(|before| {
                format!("{}/{}", before["kind"].as_str().unwrap(), before["name"].as_str().unwrap())
            })
            .collect();
        let names = operation["waits_for"].as_array().into_iter().flatten();
        let by_name: BTreeSet<String> = names.map(|name| name.as_str().unwrap().to_owned()).collect();
        assert_eq!(by_position, by_name, "{operation}");
    }
}

fn declared(file: &str, command: &str) -> String {
    format!(
        "directories: {{d:}}
files:
  f: {{path: d/f, content: {file}}}
  theirs: {{content: ours, adopt: true}}
commands: {{c: {{check: test -e made, apply: 'touch made', redo_on: [file.f]}}}}
processes:
  p: {{command: [sleep, '{command}']}}
  q: {{command: [sleep, '600'], restart_on: [file.f]}}
"
    )
}

#[test]
fn each_operation_says_why_in_a_word_that_stays_the_same() {
    let sandbox = Sandbox::new(&declared("a", "600"));
    sandbox.write("theirs", "theirs");
    let first = plan(&sandbox, &[]);
    assert_eq!(codes(&first, "file", "f"), ["missing"]);
    assert_eq!(codes(&first, "file", "theirs"), ["taken_over"]);
    check_waiting(&first);
    assert!(operations(&first).iter().any(|operation| operation["waits_for"][0] == "directory/d"), "{first}");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare(&declared("b", "601"));
    let changed = plan(&sandbox, &[]);
    assert_eq!(codes(&changed, "file", "f"), ["changed"]);
    assert_eq!(codes(&changed, "command", "c"), ["repeated"]);
    assert_eq!(codes(&changed, "process", "p"), ["not_in_place"; 2]);
    assert_eq!(codes(&changed, "process", "q"), ["dependency_modified"; 2]);
    check_waiting(&changed);
    sandbox.declare(&declared("a", "600"));
    let replaced = plan(&sandbox, &["--replace", "directory.d"]);
    assert_eq!(codes(&replaced, "directory", "d"), ["requested"; 2]);
    assert_eq!(codes(&replaced, "file", "f"), ["dependency_recreated"; 2]);
    check_waiting(&replaced);
    sandbox.declare("");
    assert_eq!(codes(&plan(&sandbox, &[]), "file", "f"), ["removed"]);
    sandbox.ok(&["destroy", "--yes"]);
}

#[test]
fn what_can_not_be_read_is_listed_with_its_error() {
    let sandbox = Sandbox::new("files: {a: {content: x}}\ncommands: {c: {apply: 'true', after: [file.a]}}\n");
    sandbox.ok(&["apply", "--yes"]);
    fs::remove_file(sandbox.path("a")).unwrap();
    fs::create_dir(sandbox.path("a")).unwrap();
    let shown = plan(&sandbox, &[]);
    let unreadable = &shown["unreadable"][0];
    assert_eq!((&unreadable["kind"], &unreadable["name"]), (&"file".into(), &"a".into()), "{shown}");
    assert!(unreadable["error"].as_str().unwrap().contains("directory"), "{shown}");
}

#[test]
fn what_an_operation_that_was_cut_off_may_have_left_is_named_so() {
    let sandbox = Sandbox::new(
        "commands: {c: {apply: 'touch begun; while test -e begun && ! test -e quick; do sleep 0.1; done'}}\n",
    );
    let mut applying = sandbox.start(&["apply", "--yes"]);
    eventually("it has begun", || sandbox.path("begun").exists());
    applying.signal(Signal::SIGKILL);
    let _ = applying.child.wait();
    sandbox.write("quick", "");
    let shown = plan(&sandbox, &["--refresh=false"]);
    assert_eq!(codes(&shown, "command", "c"), ["leftover"; 2], "{shown}");
}

#[test]
fn the_codes_in_the_documentation_are_codes() {
    let page = include_str!("../../../../docs/host.md");
    let listed = page.split_once("a `code` that stays").unwrap().1;
    let listed = listed.split_once('(').unwrap().1.split_once(')').unwrap().0;
    let words: Vec<&str> = listed.split('`').skip(1).step_by(2).collect();
    for word in &words {
        assert!(serde_json::from_value::<ReasonCode>(Value::from(*word)).is_ok(), "{word}");
    }
    let distinct: BTreeSet<&&str> = words.iter().collect();
    assert_eq!(distinct.len(), words.len());
    // An error of serde names all that there are.
    let error = serde_json::from_value::<ReasonCode>(Value::from("none")).unwrap_err().to_string();
    assert_eq!(error.matches('`').count() / 2 - 1, words.len(), "{error}");
}
