//! Temporary names: one for each item, so that a later run finds what a killed one left.

use std::os::fd::AsFd;

use rustix::fs::AtFlags;
use rustix::io::Errno;
use setpoint_graph::{ItemRef, Name};
use sha2::{Digest, Sha256};

use super::Dir;
use crate::item::hex;

/// A temporary entry of a directory: removed when dropped, unless it was kept.
pub(crate) struct Temporary<'a> {
    dir: &'a Dir<'a>,
    name: &'a str,
    kept: bool,
}

impl<'a> Temporary<'a> {
    pub(crate) fn new(dir: &'a Dir<'a>, name: &'a str) -> Self {
        Self { dir, name, kept: false }
    }

    pub(crate) fn as_str(&self) -> &str {
        self.name
    }

    /// It has become something else.
    pub(crate) fn keep(mut self) {
        self.kept = true;
    }

    /// What the names of all temporary files of a set begin with.
    pub(crate) fn prefix(set: &Name) -> String {
        format!(".setpoint-{}-", short(&[set.as_str()]))
    }

    /// The name of an item's temporary file.
    pub(crate) fn name(set: &Name, item: &ItemRef) -> String {
        Self::name_of(&Self::prefix(set), item)
    }

    /// The same, for a prefix that is known.
    pub(crate) fn name_of(prefix: &str, item: &ItemRef) -> String {
        format!("{prefix}{}", short(&[item.kind().as_str(), item.name().as_str()]))
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.kept {
            // Where this fails too, a later run removes it.
            let _ = remove(self.dir, self.name);
        }
    }
}

/// Removes what is temporary, also an empty directory. Returns whether it was there.
pub(super) fn remove(dir: impl AsFd, name: &str) -> Result<bool, Errno> {
    let removed = match rustix::fs::unlinkat(&dir, name, AtFlags::empty()) {
        // Which of the two depends on the file system.
        Err(Errno::ISDIR | Errno::PERM) => rustix::fs::unlinkat(&dir, name, AtFlags::REMOVEDIR),
        removed => removed,
    };
    super::gone(removed).map(|removed| removed.is_some())
}

/// A short digest of some texts.
pub(crate) fn short(texts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for text in texts {
        hasher.update(text);
        hasher.update([0]);
    }
    hex(&hasher.finalize()[..8])
}
