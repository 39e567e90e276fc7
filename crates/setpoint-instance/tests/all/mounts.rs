//! A file that is a mount of its own can't be renamed over, which is known before anything is written.

use std::fs;
use std::process::Command;

use setpoint_files::{Draft, WriteError};
use setpoint_testutils::{need, part};

#[test]
fn a_bind_mount_is_told_and_left_as_it_is() {
    need!(part::root("a mount"));
    let folder = tempfile::tempdir().unwrap();
    let (file, source) = (folder.path().join("haproxy.cfg"), folder.path().join("source"));
    fs::write(&file, "").unwrap();
    fs::write(&source, "mounted").unwrap();
    let mounted = Command::new("mount").arg("--bind").args([&source, &file]).status().unwrap();
    assert!(mounted.success());
    let draft = Draft::prepare(&file, b"new");
    let unmounted = Command::new("umount").arg(&file).status().unwrap();
    assert!(matches!(draft, Err(WriteError::Mounted(_))), "{draft:?}");
    assert!(unmounted.success());
    assert_eq!(fs::read_to_string(&source).unwrap(), "mounted");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}
