//! `SHA256SUMS`: one line a file, as `sha256sum --check` reads it.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::error::DistError;

/// The name of the file.
pub const NAME: &str = "SHA256SUMS";

/// Writes the checksums of all files below a folder into it.
pub fn write(folder: &Path) -> Result<PathBuf, DistError> {
    let mut text = String::new();
    for path in files(folder)? {
        if path != NAME {
            // Writing to a string can't fail.
            let _ = writeln!(text, "{}  {path}", of_file(&folder.join(&path))?);
        }
    }
    let path = folder.join(NAME);
    let written = fs::write(&path, text);
    // Everyone may read it, whatever the mask of this process.
    let written = written.and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o644)));
    written.map_err(DistError::file("write", &path))?;
    Ok(path)
}

/// Compares the files below a folder with their checksums, and returns how many there are. A file without a checksum is
/// as wrong as one that differs.
pub fn check(folder: &Path) -> Result<usize, DistError> {
    let path = folder.join(NAME);
    let text = fs::read_to_string(&path).map_err(DistError::file("read", &path))?;
    let listed: Vec<(&str, &str)> = listed(&text).collect();
    if let Some(line) = text.lines().find(|line| !line.contains("  ")) {
        return Err(DistError::Wrong(format!("`{line}` in {NAME} is no checksum")));
    }
    for (sum, name) in &listed {
        let found = of_file(&folder.join(name))?;
        if found != *sum {
            return Err(DistError::Wrong(format!("{name} has the checksum {found}, and {NAME} says {sum}")));
        }
    }
    for found in files(folder)? {
        if found != NAME && !listed.iter().any(|(_, name)| *name == found) {
            return Err(DistError::Wrong(format!("{found} is not in {NAME}")));
        }
    }
    Ok(listed.len())
}

/// The lines of `SHA256SUMS`: a checksum and a path each.
pub(crate) fn listed(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| line.split_once("  "))
}

/// The SHA-256 of a file, in hexadecimal digits.
pub fn of_file(path: &Path) -> Result<String, DistError> {
    let mut file = File::open(path).map_err(DistError::file("read", path))?;
    let mut sink = Hashing::new(io::sink());
    io::copy(&mut file, &mut sink).map_err(DistError::file("read", path))?;
    Ok(sink.finish().1.sha256)
}

/// The paths of all files below a folder, sorted.
pub(crate) fn files(folder: &Path) -> Result<Vec<String>, DistError> {
    let mut found = Vec::new();
    let mut todo = vec![folder.to_path_buf()];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(&dir).map_err(DistError::file("read", &dir))? {
            let path = entry.map_err(DistError::file("read", &dir))?.path();
            if path.is_dir() {
                todo.push(path);
            } else if let Ok(path) = path.strip_prefix(folder) {
                found.push(path.to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// What went through a writer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) sha256: String,
    pub(crate) size: u64,
}

/// A writer that hashes what goes through it.
pub(crate) struct Hashing<W> {
    inner: W,
    hash: Sha256,
    size: u64,
}

impl<W> Hashing<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self { inner, hash: Sha256::new(), size: 0 }
    }

    pub(crate) fn finish(self) -> (W, Sum) {
        (self.inner, Sum { sha256: hex(&self.hash.finalize()), size: self.size })
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(bytes.get(..written).unwrap_or_default());
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_changed_vanished_or_came_are_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir(root.join("below")).unwrap();
        fs::write(root.join("b"), "text").unwrap();
        fs::write(root.join("below/a"), "").unwrap();
        write(root).unwrap();
        let text = fs::read_to_string(root.join(NAME)).unwrap();
        let expected = "982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1  b\n\
                        e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  below/a\n";
        assert_eq!(text, expected);
        assert_eq!(check(root).unwrap(), 2);

        fs::write(root.join(NAME), format!("{expected}odd\n")).unwrap();
        assert_eq!(check(root).unwrap_err().to_string(), "`odd` in SHA256SUMS is no checksum");
        fs::write(root.join(NAME), expected).unwrap();

        fs::write(root.join("new"), "").unwrap();
        assert_eq!(check(root).unwrap_err().to_string(), "new is not in SHA256SUMS");
        fs::remove_file(root.join("new")).unwrap();
        fs::write(root.join("b"), "other").unwrap();
        assert!(check(root).unwrap_err().to_string().starts_with("b has the checksum "));
        fs::remove_file(root.join("b")).unwrap();
        assert!(check(root).unwrap_err().to_string().starts_with("can't read "));
    }
}
