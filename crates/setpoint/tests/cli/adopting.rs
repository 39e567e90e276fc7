//! Files that were there before: what can't be kept is not replaced.

use std::fs;
use std::os::unix::fs::chown;
use std::process::Command;

use setpoint_testutils::{need, part};

use crate::sandbox::Sandbox;

/// More than the largest original that is kept.
const TOO_LARGE: u64 = (16 << 20) + 1;
/// More than all originals together may be.
const TOO_MUCH: u64 = 128 << 20;

#[test]
fn a_file_that_is_too_large_to_be_kept_is_not_taken_over() {
    let sandbox = Sandbox::new("files: {big: {content: ours, adopt: true}}\n");
    fs::File::create(sandbox.path("big")).unwrap().set_len(TOO_LARGE).unwrap();
    let refused = sandbox.run(&["apply", "--yes"]);
    assert_eq!(refused.code(), 1, "{}", refused.out());
    assert!(refused.out().contains("16 MiB"), "{}{}", refused.out(), refused.err());
    assert_eq!(fs::metadata(sandbox.path("big")).unwrap().len(), TOO_LARGE);
}

#[test]
fn no_file_is_taken_over_when_too_much_is_kept_already() {
    let sandbox = Sandbox::new("files: {small: {content: ours, adopt: true}}\n");
    sandbox.write("small", "theirs");
    let kept = sandbox.path(".setpoint/run/kept");
    fs::create_dir_all(&kept).unwrap();
    fs::File::create(kept.join("others")).unwrap().set_len(TOO_MUCH).unwrap();
    let refused = sandbox.run(&["apply", "--yes"]);
    assert_eq!(refused.code(), 1, "{}", refused.out());
    assert!(
        refused.out().contains("more than 128 MiB are kept already"),
        "{}{}",
        refused.out(),
        refused.err()
    );
    assert_eq!(sandbox.read("small"), "theirs");
}

#[test]
fn a_file_with_an_attribute_that_can_not_be_kept_is_not_rewritten() {
    need!(part::root("a user who may not label files"));
    let sandbox = Sandbox::new("files: {f: {content: old}}\n");
    for path in ["", "site.yaml"] {
        chown(sandbox.path(path), Some(65534), Some(65534)).unwrap();
    }
    // Where the program itself is may be closed to others.
    let program = sandbox.path(".program");
    fs::copy(env!("CARGO_BIN_EXE_setpoint"), &program).unwrap();
    let apply = || {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&program);
        let output = command.args(["apply", "--yes"]).current_dir(sandbox.root()).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    assert_eq!(apply().0, Some(0), "{}", apply().1);
    rustix::fs::setxattr(sandbox.path("f"), "security.label", b"theirs", rustix::fs::XattrFlags::empty())
        .unwrap();
    fs::write(sandbox.path("site.yaml"), "name: site\nfiles: {f: {content: new}}\n").unwrap();
    let (code, said) = apply();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("can't keep the attribute") && said.contains("security.label"), "{said}");
    assert_eq!(sandbox.read("f"), "old");
}
