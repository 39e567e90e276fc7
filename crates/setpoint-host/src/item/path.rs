//! Paths below the allowed root.

use std::borrow::Borrow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A path below the allowed root, relative to it and free of `.`, `..` and doubled slashes.
///
/// ```
/// use setpoint_host::RootPath;
/// assert_eq!(RootPath::new("etc//app/./app.conf")?.as_str(), "etc/app/app.conf");
/// assert!(RootPath::new("etc/../../passwd").is_err());
/// # Ok::<(), setpoint_host::PathError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RootPath(Arc<str>);

/// Why a text is no path below the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// It leads out of the root.
    #[error("the path leads out of the root")]
    Outside,
    /// It names the root itself, or nothing.
    #[error("the path names the root itself")]
    Root,
    /// It holds a byte that no path can hold.
    #[error("a path can't hold a NUL character")]
    Nul,
    /// A part of it, or all of it, is longer than the system allows.
    #[error("the path, or a part of it, is too long")]
    TooLong,
}

impl RootPath {
    /// Takes a relative path; `..` is resolved as text and may not lead out.
    pub fn new(text: &str) -> Result<Self, PathError> {
        if text.starts_with('/') {
            return Err(PathError::Outside);
        }
        if text.contains('\0') {
            return Err(PathError::Nul);
        }
        if text.len() > 4000 || text.split('/').any(|part| part.len() > 255) {
            return Err(PathError::TooLong);
        }
        if is_normal(text) {
            return Ok(Self(text.into()));
        }
        let mut parts: Vec<&str> = Vec::new();
        for part in text.split('/') {
            match part {
                "" | "." => {}
                ".." => drop(parts.pop().ok_or(PathError::Outside)?),
                part => parts.push(part),
            }
        }
        if parts.is_empty() { Err(PathError::Root) } else { Ok(Self(parts.join("/").into())) }
    }

    /// Takes a relative path, or an absolute one that is below the root.
    pub fn below(root: &Path, text: &str) -> Result<Self, PathError> {
        let Some(absolute) = text.strip_prefix('/') else { return Self::new(text) };
        let root = root.to_str().ok_or(PathError::Outside)?.trim_matches('/');
        let absolute = Self::new(absolute)?;
        if root.is_empty() {
            return Ok(absolute);
        }
        match absolute.as_str().strip_prefix(root) {
            Some("") => Err(PathError::Root),
            Some(rest) if rest.starts_with('/') => Self::new(rest.trim_start_matches('/')),
            _ => Err(PathError::Outside),
        }
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The directory it is in; none if that is the root.
    pub fn parent(&self) -> Option<&str> {
        self.0.rsplit_once('/').map(|(parent, _)| parent)
    }

    /// The last part.
    pub fn file_name(&self) -> &str {
        self.0.rsplit_once('/').map_or(&*self.0, |(_, name)| name)
    }

    /// The path of something else in the same directory.
    pub(crate) fn beside(&self, name: &str) -> Self {
        match self.parent() {
            Some(parent) => Self(format!("{parent}/{name}").into()),
            None => Self(name.into()),
        }
    }

    /// Where it is, seen from the file system's root.
    pub fn in_root(&self, root: &Path) -> PathBuf {
        root.join(&*self.0)
    }
}

impl Borrow<str> for RootPath {
    fn borrow(&self) -> &str {
        &self.0
    }
}

fn is_normal(text: &str) -> bool {
    !text.is_empty() && text.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

impl fmt::Display for RootPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for RootPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl Serialize for RootPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for RootPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::new(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_written_in_one_way_only() {
        for (text, path) in [("a", "a"), ("a/b/../c/", "a/c"), ("./a//b", "a/b"), ("..a/b..", "..a/b..")] {
            assert_eq!(RootPath::new(text).unwrap().as_str(), path);
        }
    }

    #[test]
    fn no_path_leads_out_of_the_root() {
        for (text, error) in [
            ("", PathError::Root),
            ("a/..", PathError::Root),
            ("..", PathError::Outside),
            ("a/../../b", PathError::Outside),
            ("/etc", PathError::Outside),
            ("a\0b", PathError::Nul),
        ] {
            assert_eq!(RootPath::new(text), Err(error), "{text:?}");
        }
        assert_eq!(RootPath::new(&"x".repeat(256)), Err(PathError::TooLong));
    }

    #[test]
    fn an_absolute_path_is_taken_where_it_is_below_the_root() {
        let root = Path::new("/srv/site");
        assert_eq!(RootPath::below(root, "/srv/site/a/b").unwrap().as_str(), "a/b");
        assert_eq!(RootPath::below(root, "/srv/site2/a"), Err(PathError::Outside));
        assert_eq!(RootPath::below(root, "/srv/site/../x"), Err(PathError::Outside));
        assert_eq!(RootPath::below(root, "/srv/site/"), Err(PathError::Root));
        assert_eq!(RootPath::below(Path::new("/"), "/etc/passwd").unwrap().as_str(), "etc/passwd");
    }
}
