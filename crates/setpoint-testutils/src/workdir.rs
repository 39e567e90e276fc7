//! Folders for one part, removed with it.

use std::path::{Path, PathBuf};

use crate::guard::{Guard, Registration};

/// A folder that is removed when it is dropped, and by the guard when the test is killed.
#[derive(Debug)]
pub struct Workdir {
    path: PathBuf,
    _registration: Registration,
}

impl Workdir {
    /// Makes a folder on disk.
    pub fn new(name: &str) -> Self {
        Self::inside(&std::env::temp_dir(), name)
    }

    /// Makes a folder in memory, where the machine has one: fast, and not for what has to survive.
    pub fn in_memory(name: &str) -> Self {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() { Self::inside(memory, name) } else { Self::new(name) }
    }

    fn inside(parent: &Path, name: &str) -> Self {
        let folder = tempfile::Builder::new()
            .prefix(&format!("setpoint-{name}-"))
            .tempdir_in(parent)
            .expect("a temporary folder can be made");
        // Registered while it is empty: killed before this line, a test leaves an empty folder and no more.
        let registration = Guard::get().folder(folder.path());
        Self { path: folder.keep(), _registration: registration }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file in it and says where that is.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path.join(name);
        std::fs::write(&path, content).expect("a file in the temporary folder can be written");
        path
    }
}

impl Drop for Workdir {
    fn drop(&mut self) {
        // A process that was just ended may still be writing its last file.
        for _ in 0..20 {
            if std::fs::remove_dir_all(&self.path).is_ok() || !self.path.exists() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(25));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_gone_with_all_it_holds_when_it_is_dropped() {
        for folder in [Workdir::new("test"), Workdir::in_memory("test")] {
            let path = folder.path().to_path_buf();
            let file = folder.write("file", "content");
            assert!(file.starts_with(&path) && file.exists());
            drop(folder);
            assert!(!path.exists());
        }
    }
}
