//! What commands say of renames, runs that were cut off, and mistakes in manifests.

use std::fs;

use crate::sandbox::Sandbox;

#[test]
fn a_run_that_only_gave_an_item_another_name_is_in_the_history_and_explains_the_item() {
    let sandbox = Sandbox::new("files: {old: {path: f, content: x}}\n");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare("files: {new: {path: f, content: x}}\n");
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.ok(&["history"]).lines().count(), 2);
    let shown = sandbox.ok(&["show", "2"]);
    assert!(shown.contains("file/new  it was called file/old before"), "{shown}");
    let explained = sandbox.ok(&["explain", "file.new"]);
    assert!(explained.contains("last, it was modified by run 2 (apply)"), "{explained}");
    // Nothing has changed since.
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.ok(&["history"]).lines().count(), 2);
}

#[test]
fn a_first_run_that_was_cut_off_is_known_to_the_history_before_and_after_it_is_taken_over() {
    let sandbox = Sandbox::new(
        "commands: {x: {apply: 'test -e m || { touch m; kill -9 $PPID; sleep 1; }', undo: 'rm -f m'}}\n",
    );
    let ended = sandbox.command(&["apply", "--yes"]).output().unwrap();
    assert_eq!(ended.status.code(), None, "it was killed");
    let history = sandbox.ok(&["history"]);
    assert!(history.starts_with("A run was cut off; the next `setpoint apply` finds out"), "{history}");
    assert!(!history.contains("There was no run yet"), "{history}");
    sandbox.ok(&["apply", "--yes"]);
    let history = sandbox.ok(&["history"]);
    let lost = history.lines().find(|line| line.contains("lost")).unwrap();
    assert!(!lost.contains(" in "), "nobody knows how long it took: {lost}");
}

#[test]
fn a_link_that_does_not_depend_on_something_any_more_says_so() {
    let sandbox = Sandbox::new("files: {f: {path: one, content: x}}\nsymlinks: {l: {target: one}}\n");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare("files: {f: {path: two, content: x}}\nsymlinks: {l: {target: one}}\n");
    let plan = sandbox.ok(&["plan"]);
    assert!(plan.contains("~ symlink/l  it does not depend on file/f any more"), "{plan}");
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.ok(&["plan"]), "site: nothing to do.\n");
}

#[test]
fn a_reference_inside_of_a_value_is_refused() {
    let sandbox = Sandbox::new("values: {b: y, a: 'x${values.b}'}\nfiles: {f: {template: '{{ a }}'}}\n");
    let refused = sandbox.run(&["plan"]);
    assert_eq!(refused.code(), 1, "{}", refused.out());
    assert!(
        refused.err().contains("a value can't refer to another: `${values.b}` would stay as it is"),
        "{}",
        refused.err()
    );
    // What only looks like one is what templates and commands make of it.
    sandbox.declare("values: {a: 'x${HOME}'}\nfiles: {f: {template: '{{ a }}'}}\n");
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.read("f"), "x${HOME}");
}

#[test]
fn adopted_items_of_two_kinds_that_exchange_their_paths_are_not_told_to_adopt() {
    let sandbox = Sandbox::new(
        "directories: {y: {path: y, adopt: true}}\nfiles: {x: {path: x, content: ours, adopt: true}}\n",
    );
    fs::create_dir(sandbox.path("y")).unwrap();
    sandbox.write("x", "theirs");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare(
        "directories: {y: {path: x, adopt: true}}\nfiles: {x: {path: y, content: ours, adopt: true}}\n",
    );
    let refused = sandbox.run(&["apply", "--yes"]);
    assert_eq!(refused.code(), 1, "{}", refused.out());
    assert!(refused.err().contains("and that is no directory: declare another path"), "{}", refused.err());
    assert!(!refused.err().contains("adopt: true"), "{}", refused.err());
}

#[test]
fn an_item_as_plans_write_it_is_put_right_by_the_hint() {
    let sandbox = Sandbox::new("files: {front: {content: x}, f: {content: x, after: [file/front]}}\n");
    let refused = sandbox.run(&["plan"]);
    assert!(refused.err().contains("write file.front"), "{}", refused.err());
}

#[test]
fn a_state_path_that_is_no_directory_says_what_it_has_to_be() {
    let sandbox = Sandbox::new("files: {f: {content: x}}\n");
    sandbox.write("taken", "");
    let refused = sandbox.run(&["apply", "--yes", "--state", "taken"]);
    assert_eq!(refused.code(), 1, "{}", refused.out());
    assert!(refused.err().contains("is kept in a directory"), "{}", refused.err());
}

#[test]
fn an_item_that_is_called_like_that_already_is_not_renamed() {
    let sandbox = Sandbox::new("files: {x: {content: x}}\n");
    sandbox.ok(&["apply", "--yes"]);
    let said = sandbox.ok(&["state", "mv", "file.x", "file.x"]);
    assert_eq!(said, "file/x is called that already: nothing was changed.\n");
}
