//! `watch`: what it follows, and that everything is looked at however much happens.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;
use setpoint_testutils::{need, part};

use crate::full::{fill, with_small_state};
use crate::sandbox::{Sandbox, Started, eventually};

/// Sets a flag when it is dropped, also by a failure.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Does something again and again while something else is tried.
fn beside<T>(mut again: impl FnMut() + Send, every: Duration, tried: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                again();
                thread::sleep(every);
            }
        });
        let _over = Over(&is_over);
        tried()
    })
}

fn stop(mut watching: Started) {
    watching.signal(Signal::SIGTERM);
    assert_eq!(watching.wait(), 0, "{}", watching.log());
}

#[test]
fn everything_is_looked_at_after_the_interval_however_much_happens() {
    let sandbox = Sandbox::new(
        "files: {f: {content: x}}\ncommands: {c: {check: 'echo >> checks; test -e holds', apply: touch holds}}\n",
    );
    let watching = sandbox.start(&["watch", "--interval", "2s"]);
    watching.until("+ command/c created");
    let looks = || sandbox.read("checks").lines().count();
    let some = looks();
    eventually("everything is looked at now and then", || looks() > some + 1);
    // It is as declared: nothing is to be tried again for it.
    let again = || sandbox.write("f", "x");
    beside(again, Duration::from_millis(200), || {
        // The first one was waited for before anything happened.
        let some = looks();
        eventually("everything is looked at all the while", || looks() > some + 2);
        fs::remove_file(sandbox.path("holds")).unwrap();
        eventually("the command is applied again", || sandbox.path("holds").exists());
    });
    stop(watching);
}

#[test]
fn a_yaml_file_that_is_no_manifest_holds_nothing_up_however_often_it_is_written() {
    let with = |more: &str| format!("files:\n  f: {{content: x}}\n  g.yaml: {{content: 'g: 1'}}\n{more}");
    for one_file in [false, true] {
        let sandbox = Sandbox::new(&with(""));
        sandbox.write("metrics.yaml", "requests: 0\n");
        let file: &[&str] = if one_file { &["-f", "site.yaml"] } else { &[] };
        let watching = sandbox.start(&[&["watch", "--interval", "1h"], file].concat());
        eventually("it is applied", || sandbox.path("f").exists() && sandbox.path("g.yaml").exists());
        // One is rewritten, one is added to and never closed.
        let mut open = fs::File::create(sandbox.path("open.yaml")).unwrap();
        writeln!(open, "lines: many").unwrap();
        if !one_file {
            watching.until("watching site");
        }
        let again = || {
            sandbox.write("metrics.yaml", "requests: 1\n");
            writeln!(open, "# another").unwrap();
        };
        beside(again, Duration::from_millis(50), || {
            sandbox.write("f", "changed");
            eventually("it is put right", || sandbox.read("f") == "x");
            sandbox.write("g.yaml", "changed: 1");
            eventually("it is put right", || sandbox.read("g.yaml") == "g: 1");
            sandbox.declare(&with("  h: {content: h}\n"));
            eventually("the manifest is read", || sandbox.path("h").exists());
        });
        let log = watching.log();
        assert!(!log.contains("being written"), "{log}");
        stop(watching);
    }
}

#[test]
fn a_yaml_file_that_becomes_a_manifest_is_read() {
    let sandbox = Sandbox::new("files: {f: {content: x}}\n");
    sandbox.write("other.yaml", "requests: 0\n");
    let watching = sandbox.start(&["watch", "--interval", "1h"]);
    eventually("it is applied", || sandbox.path("f").exists());
    sandbox.write("other.yaml", "files: {g: {content: x}}\n");
    eventually("it is read", || sandbox.path("g").exists());
    stop(watching);
}

#[test]
fn drift_is_put_right_while_a_manifest_is_being_written() {
    let sandbox = Sandbox::new("files: {f: {content: x}}\n");
    let watching = sandbox.start(&["watch", "--interval", "1h"]);
    eventually("it is applied", || sandbox.path("f").exists());
    let mut open = fs::File::options().append(true).open(sandbox.path("site.yaml")).unwrap();
    let again = || writeln!(open, "# more is to come").unwrap();
    beside(again, Duration::from_millis(50), || {
        // It is seen together with what happens to the manifest.
        watching.until("manifests are being written");
        sandbox.write("f", "changed");
        eventually("it is put right", || sandbox.read("f") == "x");
    });
    stop(watching);
}

/// Points a link elsewhere, in one step.
fn swap(link: &Path, target: &str) {
    let beside = link.with_file_name("beside");
    symlink(target, &beside).unwrap();
    fs::rename(beside, link).unwrap();
}

#[test]
fn manifests_behind_a_link_that_is_swapped_are_read() {
    let sandbox = Sandbox::new("");
    fs::remove_file(sandbox.path("site.yaml")).unwrap();
    for (release, content) in [("1", "one"), ("2", "two"), ("3", "three")] {
        fs::create_dir_all(sandbox.path(&format!("releases/{release}"))).unwrap();
        let root = sandbox.root().display();
        let manifest = format!("name: site\nroot: {root}\nfiles: {{f: {{content: {content}}}}}\n");
        sandbox.write(&format!("releases/{release}/site.yaml"), &manifest);
    }
    symlink("releases/1", sandbox.path("current")).unwrap();
    // As a volume of Kubernetes has it.
    fs::create_dir(sandbox.path("volume")).unwrap();
    symlink("../releases/1", sandbox.path("volume/..data")).unwrap();
    symlink("..data/site.yaml", sandbox.path("volume/site.yaml")).unwrap();
    for (file, link, to) in [
        ("current", "current", "releases/"),
        ("current/site.yaml", "current", "releases/"),
        ("volume", "volume/..data", "../releases/"),
        ("volume/site.yaml", "volume/..data", "../releases/"),
    ] {
        let args = ["watch", "--interval", "1h", "--state", "state", "-f", file];
        let watching = sandbox.start(&args);
        watching.until("watching site");
        for (release, content) in [("2", "two"), ("3", "three"), ("1", "one")] {
            swap(&sandbox.path(link), &format!("{to}{release}"));
            eventually("it is applied", || {
                fs::read_to_string(sandbox.path("f")).is_ok_and(|found| found == content)
            });
        }
        // Also where what it points to is wrong for a while.
        fs::write(sandbox.path("releases/2/site.yaml"), "name: site\nfiles: [\n").unwrap();
        swap(&sandbox.path(link), &format!("{to}2"));
        watching.until("the last good manifests stand");
        let root = sandbox.root().display();
        let mended = format!("name: site\nroot: {root}\nfiles: {{f: {{content: two}}}}\n");
        sandbox.write("releases/2/site.yaml", &mended);
        eventually("it is read once it is mended", || sandbox.read("f") == "two");
        swap(&sandbox.path(link), &format!("{to}1"));
        eventually("it is back", || sandbox.read("f") == "one");
        stop(watching);
    }
}

#[test]
fn what_had_changed_is_looked_at_after_an_error_that_passes() {
    need!(part::root("a file system of a given size"));
    let with = |name: &str| {
        format!("files:\n  f: {{content: x}}\n  g: {{content: x}}\n  {name}: {{path: h, content: x}}\n")
    };
    let (sandbox, _mounted) = with_small_state(&with("h"));
    let args = ["watch", "--interval", "1h", "--state", "small/state"];
    let watching = sandbox.start(&args);
    eventually("that is saved", || {
        sandbox.run(&["history", "--state", "small/state"]).out().contains("3 created")
    });
    fill(&sandbox.path("small/filler"));
    // That an item has another name is saved before anything is read.
    sandbox.write("f", "changed");
    sandbox.declare(&with("renamed"));
    // Now and then there is room for so little, and it is put right at once.
    eventually("it fails, or is put right", || {
        watching.log().contains("it is tried again in") || sandbox.read("f") == "x"
    });
    // The disk has room again, and something else happens before it is tried again.
    fs::remove_file(sandbox.path("small/filler")).unwrap();
    sandbox.write("g", "changed");
    eventually("both are put right", || sandbox.read("f") == "x" && sandbox.read("g") == "x");
    stop(watching);
}
