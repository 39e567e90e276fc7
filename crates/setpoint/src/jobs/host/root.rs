//! Where the items of a set are: the root is remembered, so that another one is not taken for a host on which everything is
//! gone.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use setpoint_engine::{CurrentGraph, ItemState};
use setpoint_host::{directory_number, may_be_set_aside};

use super::error::Error;
use crate::error::CliError;

/// A root, by its path and by what tells it from any other directory: it may be moved, and is then still the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RootIdentity {
    root: PathBuf,
    device: u64,
    inode: u64,
    /// What tells it from any other directory also when devices were numbered anew; none of one that an earlier version
    /// remembered, and where the file system does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    number: Option<String>,
    /// Where the file system that it is in is mounted; none of one that an earlier version remembered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mount: Option<PathBuf>,
}

impl RootIdentity {
    pub(crate) fn of(root: &Path) -> Result<Self, CliError> {
        let failed = |source| Error::Directory { dir: root.to_path_buf(), source };
        let found = fs::metadata(root).map_err(failed)?;
        let mount = mount_point(root, found.dev());
        let (root, number) = (root.to_path_buf(), directory_number(root));
        Ok(Self { root, device: found.dev(), inode: found.ino(), number, mount })
    }

    /// The root that is remembered, if everything is still there.
    pub(crate) fn remembered(text: &str, current: &CurrentGraph) -> Option<PathBuf> {
        let root = serde_json::from_str::<Self>(text).ok()?.root;
        let is_it = Self::of(&root).and_then(|found| found.check(Some(text), current)).is_ok();
        is_it.then_some(root)
    }

    /// As it is remembered.
    pub(crate) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Refuses a root that is not the one where everything is.
    pub(crate) fn check(&self, remembered: Option<&str>, current: &CurrentGraph) -> Result<(), CliError> {
        let Some(before) = remembered.and_then(|text| serde_json::from_str::<Self>(text).ok()) else {
            return Ok(());
        };
        let is_empty = || !current.items().any(|node| is_anywhere(node.state()));
        if self.is_same(&before) || is_empty() {
            return Ok(());
        }
        if before.root == self.root {
            // The numbers of devices are others after a restart of the machine; where they are mounted is not.
            let unmounted = before.mount.as_ref().zip(self.mount.as_ref());
            return match unmounted.filter(|(before, now)| before != now && before.starts_with(now)) {
                Some((mount, _)) => {
                    Err(Error::NotMounted { mount: mount.clone(), root: before.root.clone() }.into())
                }
                None if self.numbers(&before).is_some() => Err(Error::ReplacedRoot(before.root).into()),
                None => Ok(()),
            };
        }
        Err(Error::OtherRoot { was: before.root, now: self.root.clone() }.into())
    }

    /// What is to be said where this is not the root that something was made for.
    pub(crate) fn difference(&self, before: &Self) -> Option<String> {
        if self.is_same(before) {
            return None;
        }
        if before.root != self.root {
            return Some(format!("it was made for the root {}", before.root.display()));
        }
        // The numbers of devices are others after a restart of the machine.
        let is_replaced = self.numbers(before).is_some() || before.mount != self.mount;
        is_replaced.then(|| format!("another directory is at {} since", before.root.display()))
    }

    /// Returns whether this is the very directory that it was, wherever it is now.
    fn is_same(&self, before: &Self) -> bool {
        self.numbers(before).map_or_else(
            || (before.device, before.inode) == (self.device, self.inode),
            |(before, now)| before == now,
        )
    }

    /// What tells the directory that it was, and this one, from any other, where the file system says so.
    fn numbers<'a>(&'a self, before: &'a Self) -> Option<(&'a str, &'a str)> {
        before.number.as_deref().zip(self.number.as_deref())
    }
}

/// Returns whether something of an item may be in the root: of one that could not be created, nothing is.
fn is_anywhere(state: Option<&ItemState>) -> bool {
    state.is_none_or(|state| {
        let is_theirs = state.ownership().is_adopted() || may_be_set_aside(state);
        state.presence().exists() || state.is_unknown() || is_theirs
    })
}

/// The outermost directory around a path that is on the same device: there the file system is mounted.
fn mount_point(path: &Path, device: u64) -> Option<PathBuf> {
    let is_same = |path: &&Path| fs::metadata(path).is_ok_and(|found| found.dev() == device);
    path.ancestors().take_while(is_same).last().map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use setpoint_graph::{ItemHandle, SubgraphPath};
    use setpoint_host::{Access, Directory, RootPath};

    use super::*;

    fn remembering(items: usize) -> CurrentGraph {
        let mut graph = CurrentGraph::new("set");
        for i in 0..items {
            let (name, path) = (i.to_string().as_str().into(), RootPath::new(&i.to_string()).unwrap());
            let (access, needs) = (Access::default(), Vec::new());
            let item = Directory { name, path, access, adopt: false, implicit: false, needs };
            let state = ItemState::present(jiff::Timestamp::UNIX_EPOCH);
            graph.put_item_with_state(&SubgraphPath::root(), ItemHandle::new(item), state).unwrap();
        }
        graph
    }

    #[test]
    fn another_root_is_refused_only_where_something_is_in_the_old_one() {
        let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (old, new) = (RootIdentity::of(old.path()).unwrap(), RootIdentity::of(new.path()).unwrap());
        assert!(new.check(Some(&old.text()), &remembering(1)).is_err());
        assert!(new.check(Some(&old.text()), &remembering(0)).is_ok());
        assert!(new.check(None, &remembering(1)).is_ok(), "an earlier version said nothing");
        assert!(new.check(Some(&new.text()), &remembering(1)).is_ok());
    }

    #[test]
    fn a_directory_that_was_moved_is_the_same_root() {
        let around = tempfile::tempdir().unwrap();
        let (here, there) = (around.path().join("here"), around.path().join("there"));
        fs::create_dir(&here).unwrap();
        let before = RootIdentity::of(&here).unwrap().text();
        fs::rename(&here, &there).unwrap();
        assert!(RootIdentity::of(&there).unwrap().check(Some(&before), &remembering(1)).is_ok());
        fs::create_dir(&here).unwrap();
        let again = RootIdentity::of(&here).unwrap().check(Some(&before), &remembering(1));
        assert!(again.unwrap_err().to_string().contains("is another directory than the one"));
    }
}
