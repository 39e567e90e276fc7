//! Files that change together change all or not at all, also where a process is killed in between.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use setpoint_instance::journal::{Change, Journal};
use setpoint_testutils::{need, part};

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        fs::create_dir(folder.path("state")).unwrap();
        for (name, text) in [("a", "old a"), ("b", "old b"), ("c", "old c")] {
            fs::write(folder.path(name), text).unwrap();
        }
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn journal(&self) -> Journal {
        Journal::new(self.path("state"))
    }

    fn read(&self) -> [Option<String>; 3] {
        ["a", "b", "c"].map(|name| fs::read_to_string(self.path(name)).ok())
    }

    /// Everything that is there beside the three files.
    fn rest(&self) -> usize {
        let count = |path: &Path| fs::read_dir(path).unwrap().count();
        count(self.0.path()) - 1 + count(&self.path("state"))
    }
}

fn new() -> [Option<String>; 3] {
    [Some("new a".into()), Some("new b".into()), None]
}

#[test]
fn several_files_are_written_and_removed_together() {
    let folder = Folder::new();
    let [a, b, c] = ["a", "b", "c"].map(|name| folder.path(name));
    folder
        .journal()
        .commit(&[Change::Write(&a, b"new a"), Change::Write(&b, b"new b"), Change::Remove(&c)])
        .unwrap();
    assert_eq!(folder.read(), new());
    assert_eq!(folder.rest(), 2, "the two files");
}

#[test]
fn a_change_of_which_one_file_can_not_be_written_changes_none() {
    let folder = Folder::new();
    let (a, missing) = (folder.path("a"), folder.path("no/such/folder/b"));
    let error =
        folder.journal().commit(&[Change::Write(&a, b"new a"), Change::Write(&missing, b"x")]).unwrap_err();
    assert!(error.to_string().contains("no/such/folder"), "{error}");
    assert_eq!(folder.read().map(Option::unwrap), ["old a", "old b", "old c"]);
    assert_eq!(folder.rest(), 3);
}

/// What a process that was killed leaves behind is completed, wherever it was killed.
#[test]
fn what_was_cut_off_is_completed_from_every_step_on() {
    for done in 0..4 {
        let folder = Folder::new();
        let at = |name: &str| folder.path(name).display().to_string();
        fs::write(folder.path(".a.draft"), "new a").unwrap();
        fs::write(folder.path(".b.draft"), "new b").unwrap();
        let journal = format!(
            r#"[{{"rename":{{"draft":"{}","place":"{}"}}}},{{"rename":{{"draft":"{}","place":"{}"}}}},{{"remove":{{"place":"{}"}}}}]"#,
            at(".a.draft"),
            at("a"),
            at(".b.draft"),
            at("b"),
            at("c")
        );
        fs::write(folder.path("state/journal.json"), journal).unwrap();
        if done > 0 {
            fs::rename(folder.path(".a.draft"), folder.path("a")).unwrap();
        }
        if done > 1 {
            fs::rename(folder.path(".b.draft"), folder.path("b")).unwrap();
        }
        if done > 2 {
            fs::remove_file(folder.path("c")).unwrap();
        }
        assert_eq!(folder.journal().recover().unwrap().len(), 3);
        assert_eq!(folder.read(), new(), "{done}");
        assert_eq!(folder.rest(), 2);
        assert!(folder.journal().recover().unwrap().is_empty());
    }
}

/// A file that is mounted over another one, for as long as this lives.
struct Mounted(PathBuf);

impl Mounted {
    fn new(file: &Path, over: &Path) -> Self {
        let mounted = Command::new("mount").arg("--bind").args([file, over]).status().unwrap();
        assert!(mounted.success());
        Self(over.to_owned())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(&self.0).status();
        if !std::thread::panicking() {
            assert!(unmounted.unwrap().success());
        }
    }
}

#[test]
fn a_file_that_is_a_mount_is_written_in_place() {
    need!(part::root("a mount"));
    let folder = Folder::new();
    let [a, b, c] = ["a", "b", "c"].map(|name| folder.path(name));
    let mounted = Mounted::new(&c, &a);
    let committed = folder.journal().commit(&[Change::Write(&a, b"new a"), Change::Write(&b, b"new b")]);
    drop(mounted);
    committed.unwrap();
    assert_eq!(folder.read().map(Option::unwrap), ["old a", "new b", "new a"]);
    assert_eq!(folder.rest(), 3);
}

#[test]
fn a_single_file_that_is_a_mount_is_written_in_place_and_completed_from_every_step_on() {
    need!(part::root("a mount"));
    let folder = Folder::new();
    let (a, c) = (folder.path("a"), folder.path("c"));
    let mounted = Mounted::new(&c, &a);
    let committed = folder.journal().commit(&[Change::Write(&a, b"new a")]);
    // One that was killed after the file was written, and before the journal was removed.
    let at = |name: &str| folder.path(name).display().to_string();
    let step = format!(r#"[{{"copy":{{"draft":"{}","place":"{}"}}}}]"#, at("state/gone"), at("a"));
    fs::write(folder.path("state/journal.json"), step).unwrap();
    let recovered = folder.journal().recover();
    drop(mounted);
    committed.unwrap();
    assert_eq!(recovered.unwrap().len(), 1);
    assert_eq!(folder.read().map(Option::unwrap), ["old a", "old b", "new a"]);
    assert_eq!(folder.rest(), 3);
}

#[test]
fn a_journal_that_can_not_be_read_is_no_reason_to_go_on() {
    let folder = Folder::new();
    fs::write(folder.path("state/journal.json"), "[{").unwrap();
    let a = folder.path("a");
    let error = folder.journal().commit(&[Change::Write(&a, b"new a")]).unwrap_err();
    assert!(error.to_string().contains("journal.json"), "{error}");
    assert_eq!(fs::read_to_string(&a).unwrap(), "old a");
}
