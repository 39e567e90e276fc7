//! A disk that is too small.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file system of a given size, for as long as it is held. It takes root.
#[derive(Debug)]
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts one on a folder, which is made where it is not there: `256k`, `2m`.
    pub fn mount(at: &Path, size: &str) -> Self {
        fs::create_dir_all(at).expect("a folder can be made");
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(at);
        let mounted = command.output().expect("mount can be run");
        assert!(mounted.status.success(), "{}", String::from_utf8_lossy(&mounted.stderr));
        Self(at.to_owned())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Fills a file system with a file, in smaller and smaller pieces.
pub fn fill(path: &Path) {
    let mut filler = fs::File::create(path).expect("a file can be made");
    for size in [4096, 1] {
        while filler.write_all(&vec![0; size]).is_ok() {}
    }
}
