//! The directory that the demo works in, and the only paths it can name.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// A path below the sandbox: relative, without `.` or `..`, with `/` between its parts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RelPath(Box<str>);

impl RelPath {
    /// Takes a text that is such a path; none if it is not.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let normal = Path::new(text).components().all(|part| matches!(part, Component::Normal(_)));
        let tidy = text.split('/').all(|part| !part.is_empty() && part != ".");
        (normal && tidy).then(|| Self(text.into()))
    }

    /// The text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The directory it is in; none if that is the sandbox itself.
    pub(crate) fn parent(&self) -> Option<&str> {
        self.0.rsplit_once('/').map(|(parent, _)| parent)
    }
}

impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The directory that the demo works in.
#[derive(Clone, Debug)]
pub(crate) struct Sandbox {
    root: Arc<Path>,
}

impl Sandbox {
    /// Works in an existing directory.
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.into() }
    }

    /// The directory.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Where a path is on disk. All directories on the way must be real ones: a link that something else
    /// put there leads nowhere.
    pub(crate) fn locate(&self, path: &RelPath) -> io::Result<PathBuf> {
        let mut at = self.root.to_path_buf();
        for part in path.parent().into_iter().flat_map(|parent| parent.split('/')) {
            at.push(part);
            if !fs::symlink_metadata(&at)?.is_dir() {
                return Err(io::Error::new(
                    io::ErrorKind::NotADirectory,
                    format!("{part} on the way to it is no directory"),
                ));
            }
        }
        Ok(self.root.join(path.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_below_the_sandbox_can_be_named() {
        for good in ["a", "a/b.txt", "..a/b"] {
            assert_eq!(RelPath::new(good).expect(good).as_str(), good);
        }
        for bad in ["", "/", "/etc/passwd", "..", "../a", "a/../../b", "a//b", "a/", "./a", "a/./b"] {
            assert_eq!(RelPath::new(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_link_in_the_place_of_a_directory_is_not_followed() {
        let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::os::unix::fs::symlink(outside.path(), inside.path().join("way")).unwrap();
        let error = Sandbox::new(inside.path()).locate(&RelPath::new("way/out").unwrap()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
    }
}
