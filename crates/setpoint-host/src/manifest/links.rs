//! Where paths lead once the links on the way are followed, also those that are declared and not there yet.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use setpoint_graph::Graph;

use crate::kinds::Symlink;

/// The most links that are followed on the way to one path: as many as the kernel follows.
const MOST_LINKS: usize = 40;

/// The links of a set, by their whole path.
#[derive(Debug, Default)]
pub(super) struct Links(BTreeMap<PathBuf, PathBuf>);

impl Links {
    /// The links that are declared in a graph.
    pub(super) fn declared(graph: &Graph, root: &Path) -> Self {
        let links = graph.items().filter_map(|node| node.item().get::<Symlink>().cloned());
        Self(links.map(|link| (link.path.in_root(root), PathBuf::from(link.target))).collect())
    }

    /// An absolute path without the links that are on its way, whether there is anything or not.
    pub(super) fn follow(&self, path: &Path) -> PathBuf {
        let mut left = components(path);
        let (mut at, mut links) = (PathBuf::from("/"), MOST_LINKS);
        while let Some(component) = left.pop() {
            match component.components().next() {
                Some(Component::ParentDir) => {
                    at.pop();
                }
                Some(Component::Normal(name)) => {
                    let next = at.join(name);
                    let target = self.0.get(&next).cloned().or_else(|| fs::read_link(&next).ok());
                    match target.filter(|_| links > 0) {
                        Some(target) => {
                            links -= 1;
                            left.append(&mut components(&target));
                        }
                        None => at = next,
                    }
                }
                Some(Component::RootDir) => at = PathBuf::from("/"),
                Some(Component::CurDir | Component::Prefix(_)) | None => {}
            }
        }
        at
    }
}

/// Which directory a path leads to, whatever is mounted on the way: the nearest one that is there, and the rest of the path.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Identity {
    directory: Option<(u64, u64)>,
    rest: PathBuf,
}

impl Identity {
    /// Of an absolute path without links on its way.
    pub(super) fn of(path: PathBuf) -> Self {
        for around in path.ancestors() {
            if let Ok(found) = fs::metadata(around) {
                let rest = path.strip_prefix(around).unwrap_or(&path).to_path_buf();
                return Self { directory: Some((found.dev(), found.ino())), rest };
            }
        }
        Self { directory: None, rest: path }
    }
}

/// The parts of a path, the first one last.
fn components(path: &Path) -> Vec<PathBuf> {
    path.components().rev().map(|component| PathBuf::from(component.as_os_str())).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_whether_they_are_there_or_declared_and_circles_end() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        symlink("b", root.join("a")).unwrap();
        symlink("circle", root.join("circle")).unwrap();
        let links = Links(BTreeMap::from([(root.join("b"), PathBuf::from("./c/../d"))]));
        assert_eq!(links.follow(&root.join("a/x")), root.join("d/x"));
        assert_eq!(links.follow(&root.join("not/there")), root.join("not/there"));
        assert_eq!(links.follow(&root.join("circle/x")), root.join("circle/x"));
        let links = Links(BTreeMap::from([(root.join("b"), PathBuf::from("/etc"))]));
        assert_eq!(links.follow(&root.join("a/x")), Path::new("/etc/x"));
    }
}
