//! What a person sees while operations run.

use serde_json::Value;

use crate::sandbox::{Sandbox, timeless};

/// Runs until the file `go` is there, or no sandbox any more, and writes some lines before and one after.
const SLOW: &str = "commands:
  slow:
    apply: 'echo working; printf half; until test -e go || ! test -e site.yaml; do sleep 0.05; done; echo done'
    undo: 'until test -e gone || ! test -e site.yaml; do sleep 0.05; done'
";

#[test]
fn of_an_operation_that_takes_long_it_is_said_that_it_still_runs() {
    let sandbox = Sandbox::new(SLOW);
    let mut apply = sandbox.start(&["apply", "--yes"]);
    apply.until("  … command/slow: apply has been running for ");
    sandbox.write("go", "");
    assert_eq!(apply.wait(), 0);
    let log = timeless(&apply.log());
    assert!(log.contains(" s\n  + command/slow created\n"), "{log}");
    // It says so after two seconds; on a busy machine it may be more.
    let seconds =
        log.split_once("running for ").and_then(|(_, rest)| rest.split(' ').next()?.parse::<u64>().ok());
    assert!(seconds.is_some_and(|seconds| seconds >= 2), "{log}");
    let mut destroy = sandbox.start(&["destroy", "--yes"]);
    destroy.until("  … command/slow: undo has been running for ");
    sandbox.write("gone", "");
    assert_eq!(destroy.wait(), 0);
}

#[test]
fn what_is_wanted_as_data_holds_nothing_of_what_still_runs() {
    let sandbox = Sandbox::new("commands:\n  slow: {apply: sleep 2.5}\n");
    let applied = sandbox.run(&["apply", "--yes", "--json"]);
    let value: Value = serde_json::from_str(&applied.out()).unwrap();
    assert_eq!((value["run"]["outcome"].as_str(), applied.err().as_str()), (Some("done"), ""));
}

#[test]
fn verbose_shows_what_a_command_writes_as_it_comes() {
    let sandbox = Sandbox::new(SLOW);
    let mut apply = sandbox.start(&["--verbose", "apply", "--yes"]);
    apply.until("command/slow | working\n");
    assert!(!apply.log().contains("halfdone"), "it has not ended: {}", apply.log());
    sandbox.write("go", "");
    assert_eq!(apply.wait(), 0);
    assert!(apply.log().contains("command/slow | halfdone\n"), "{}", apply.log());
    sandbox.write("gone", "");
    let quiet = sandbox.run(&["destroy", "--yes"]);
    assert!(!quiet.err().contains(" | ") && !quiet.out().contains(" | "), "only who asks sees it");
}

#[test]
fn what_a_command_writes_goes_beside_the_data() {
    let sandbox = Sandbox::new("commands:\n  c: {apply: 'echo one; echo two >&2'}\n");
    let applied = sandbox.run(&["--verbose", "apply", "--yes", "--json"]);
    serde_json::from_str::<Value>(&applied.out()).unwrap();
    assert!(applied.err().contains("command/c | one\ncommand/c | two\n"), "{}", applied.err());
}

#[test]
fn what_a_sensitive_command_writes_is_never_shown() {
    let sandbox = Sandbox::new(
        "commands:\n  c: {apply: 'echo the key is $KEY', env: {KEY: hunter2}, sensitive: true, undo: echo $KEY}\n",
    );
    for command in [["--verbose", "apply", "--yes"], ["--verbose", "destroy", "--yes"]] {
        let ran = sandbox.run(&command);
        assert_eq!(ran.code(), 0, "{}", ran.err());
        assert!(
            !ran.out().contains("hunter2") && !ran.err().contains("hunter2"),
            "{}{}",
            ran.out(),
            ran.err()
        );
    }
}
