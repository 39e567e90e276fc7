//! What is in directories, or runs in them, where nobody declared these, or they move.

use std::fs;

use crate::sandbox::Sandbox;

#[test]
fn what_runs_in_a_directory_that_nobody_declared_does_so_while_that_is_there() {
    let sandbox = Sandbox::new(
        "files: {f: {path: w/f, content: x}}\n\
         commands: {c: {cwd: w, check: test -e ../mark, apply: touch ../mark, undo: rm ../mark}}\n\
         processes: {p: {cwd: w, command: exec sleep 1000, log: w/log}}\n",
    );
    sandbox.ok(&["apply", "--yes"]);
    assert!(sandbox.path("mark").exists());
    assert!(sandbox.ok(&["plan"]).contains("nothing to do"));
    sandbox.ok(&["destroy", "--yes"]);
    assert!(!sandbox.path("mark").exists() && !sandbox.path("w").exists());
}

#[test]
fn what_comes_below_the_old_place_of_a_directory_waits_until_that_has_moved() {
    let sandbox = Sandbox::new("directories: {d: {path: p}}\n");
    sandbox.ok(&["apply", "--yes"]);
    fs::create_dir(sandbox.path("p/x")).unwrap();
    sandbox.write("p/x/u", "theirs");
    sandbox.declare(
        "directories: {d: {path: q, after: [command.k]}}\ncommands: {k: {apply: sleep 0.1}}\n\
         files: {f: {path: p/x/f, content: ours}, g: {path: p/x/u, content: ours, adopt: true}}\n",
    );
    sandbox.ok(&["apply", "--yes"]);
    let content = |path| fs::read_to_string(sandbox.path(path)).ok();
    assert_eq!(content("p/x/f").as_deref(), Some("ours"));
    assert_eq!(content("p/x/u").as_deref(), Some("ours"));
    assert_eq!(content("q/x/u").as_deref(), Some("theirs"));
    assert!(sandbox.ok(&["plan"]).contains("nothing to do"));
    sandbox.run(&["destroy", "--yes"]);
    assert_eq!(content("q/x/u").as_deref(), Some("theirs"));
    assert!(!sandbox.path("p").exists());
}
