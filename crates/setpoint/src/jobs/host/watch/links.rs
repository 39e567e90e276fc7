//! The links on the way to a file: who swaps one of them changes which file it is.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// As many links as the kernel follows on the way to one file.
const MOST_LINKS: usize = 40;

/// Finds the links that are followed on the way to files. Each is named by its own path, which no other link is part of.
pub(super) fn links_to<'a>(files: impl IntoIterator<Item = &'a Path>) -> BTreeSet<PathBuf> {
    let mut search = LinkSearch::default();
    for file in files {
        search.follow(file);
    }
    search.links
}

#[derive(Default)]
struct LinkSearch {
    links: BTreeSet<PathBuf>,
    /// What was found to be no link: most files share their directory with others.
    plain: BTreeSet<PathBuf>,
}

impl LinkSearch {
    fn follow(&mut self, file: &Path) {
        let Ok(file) = std::path::absolute(file) else { return };
        let (mut at, mut rest, mut followed) = (PathBuf::new(), reversed(&file), 0);
        while let Some(component) = rest.pop() {
            if component == Path::new("..") {
                at.pop();
                continue;
            }
            // An absolute one begins anew.
            let next = at.join(component);
            let target = if self.plain.contains(&next) { None } else { fs::read_link(&next).ok() };
            match target {
                Some(_) if followed == MOST_LINKS => return,
                Some(target) => {
                    followed += 1;
                    rest.extend(reversed(&target));
                    self.links.insert(next);
                }
                None => {
                    self.plain.insert(next.clone());
                    at = next;
                }
            }
        }
    }
}

/// The components of a path, last one first.
fn reversed(path: &Path) -> Vec<PathBuf> {
    let components = path.components().filter(|component| *component != Component::CurDir);
    components.rev().map(|component| PathBuf::from(component.as_os_str())).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn all_links_on_the_way_are_found_and_a_circle_ends() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("releases/1")).unwrap();
        symlink("..data/site.yaml", root.join("site.yaml")).unwrap();
        symlink(root.join("current"), root.join("..data")).unwrap();
        symlink("x/../releases/1", root.join("current")).unwrap();
        fs::create_dir(root.join("x")).unwrap();
        let found: Vec<PathBuf> = links_to([root.join("site.yaml").as_path()]).into_iter().collect();
        assert_eq!(found, ["..data", "current", "site.yaml"].map(|name| root.join(name)));
        symlink("round", root.join("round")).unwrap();
        assert_eq!(links_to([root.join("round").as_path()]).len(), 1);
        assert_eq!(links_to([root.join("releases/1/none").as_path()]).len(), 0);
    }
}
