//! What a power failure leaves: what was on the disk at that instant.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use setpoint_testutils::need;
use setpoint_testutils::part::{self, Missing};

use crate::sandbox::{Sandbox, eventually};

/// A file system in a file, mounted.
struct Disk(PathBuf);

impl Disk {
    fn mount(image: &Path, at: PathBuf, options: &str) -> Result<Self, Missing> {
        fs::create_dir_all(&at).unwrap();
        let mounted = Command::new("mount").args(["-o", options]).args([image, &at]).output().unwrap();
        if mounted.status.success() {
            return Ok(Self(at));
        }
        Err(Missing::new("a file system in a file", String::from_utf8_lossy(&mounted.stderr)))
    }

    /// With an empty file system.
    fn new(image: &Path, at: PathBuf) -> Result<Self, Missing> {
        part::root("a file system in a file")?;
        fs::File::create(image).unwrap().set_len(32 << 20).unwrap();
        assert!(Command::new("mkfs.ext4").args(["-q"]).arg(image).status().unwrap().success());
        // Names are on the disk after a second, and what files hold after half a minute.
        Self::mount(image, at, "loop,commit=1")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn an_original_that_is_put_back_is_on_the_disk_before_its_copy_is_removed() {
    let sandbox = Sandbox::new("");
    let image = sandbox.path("image");
    let _disk = need!(Disk::new(&image, sandbox.path("disk")));
    sandbox.write("disk/site.yaml", "name: site\nfiles: {f: {content: ours, adopt: true}}\n");
    let precious = "precious\n".repeat(3000);
    sandbox.write("disk/f", &precious);
    let run = |command: &str| sandbox.ok(&[command, "--yes", "-f", "disk"]);
    run("apply");
    assert!(Command::new("sync").status().unwrap().success());
    // Somebody removes it, so that what comes back replaces nothing.
    fs::remove_file(sandbox.path("disk/f")).unwrap();
    run("destroy");
    assert_eq!(sandbox.read("disk/f"), precious);
    let mut found = String::new();
    eventually("the copy is gone from the disk", || {
        let crashed = sandbox.path("crashed-image");
        fs::copy(&image, &crashed).unwrap();
        let Ok(_disk) = Disk::mount(&crashed, sandbox.path("crashed"), "loop") else { return false };
        found = fs::read_to_string(sandbox.path("crashed/f")).unwrap_or_default();
        fs::read_dir(sandbox.path("crashed/.setpoint/run/kept")).unwrap().count() == 0
    });
    assert!(found == precious, "{} bytes of it are on the disk", found.len());
}
