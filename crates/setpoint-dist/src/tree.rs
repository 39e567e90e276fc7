//! Files as they are going to be installed, and tar archives of them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use tar::{Builder, EntryType, Header};

/// What is going to be where; paths have no leading slash.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    nodes: BTreeMap<String, Node>,
}

#[derive(Debug)]
enum Node {
    Directory { mode: u32 },
    File { mode: u32, content: Content },
}

/// What is in a file.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    /// These bytes.
    Bytes(Vec<u8>),
    /// What is in another file.
    Of(PathBuf),
}

impl Content {
    /// How many bytes there are.
    pub(crate) fn size(&self) -> io::Result<u64> {
        match self {
            Self::Bytes(bytes) => Ok(bytes.len() as u64),
            Self::Of(path) => Ok(path.metadata()?.len()),
        }
    }

    /// Reads the bytes.
    pub(crate) fn open(&self) -> io::Result<Box<dyn Read + '_>> {
        match self {
            Self::Bytes(bytes) => Ok(Box::new(bytes.as_slice())),
            Self::Of(path) => Ok(Box::new(File::open(path)?)),
        }
    }
}

impl Tree {
    /// Adds a directory.
    pub(crate) fn directory(&mut self, path: &str, mode: u32) {
        self.parents_of(path);
        self.nodes.insert(path.to_owned(), Node::Directory { mode });
    }

    /// Adds a file, and the directories that it is in.
    pub(crate) fn file(&mut self, path: &str, mode: u32, content: Content) {
        self.parents_of(path);
        self.nodes.insert(path.to_owned(), Node::File { mode, content });
    }

    fn parents_of(&mut self, path: &str) {
        for (end, _) in path.match_indices('/') {
            let parent = path.get(..end).unwrap_or_default();
            self.nodes.entry(parent.to_owned()).or_insert(Node::Directory { mode: 0o755 });
        }
    }

    /// The files, by path.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &Content)> {
        self.nodes.iter().filter_map(|(path, node)| match node {
            Node::File { content, .. } => Some((path.as_str(), content)),
            Node::Directory { .. } => None,
        })
    }

    /// Writes a tar archive in which all belongs to root and is of one time. Each path begins with `prefix`; where that is
    /// a directory (`./`), it is the first entry.
    pub(crate) fn write_tar(&self, out: impl Write, prefix: &str, epoch: u64) -> io::Result<()> {
        let mut archive = Builder::new(out);
        if !prefix.is_empty() {
            append(&mut archive, prefix, EntryType::Directory, 0o755, epoch, 0, io::empty())?;
        }
        for (path, node) in &self.nodes {
            match node {
                Node::Directory { mode } => {
                    let path = format!("{prefix}{path}/");
                    append(&mut archive, &path, EntryType::Directory, *mode, epoch, 0, io::empty())?;
                }
                Node::File { mode, content } => {
                    let (path, size) = (format!("{prefix}{path}"), content.size()?);
                    append(&mut archive, &path, EntryType::Regular, *mode, epoch, size, content.open()?)?;
                }
            }
        }
        archive.into_inner()?.flush()
    }
}

fn append(
    archive: &mut Builder<impl Write>,
    path: &str,
    kind: EntryType,
    mode: u32,
    epoch: u64,
    size: u64,
    content: impl Read,
) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_username("root")?;
    header.set_groupname("root")?;
    header.set_mtime(epoch);
    header.set_size(size);
    if path.starts_with("./") {
        // `append_data` would drop the dot, which `dpkg` wants to see.
        let field = &mut header.as_old_mut().name;
        let Some(start) = field.get_mut(..path.len()) else {
            return Err(io::Error::other(format!("{path} is too long for an archive")));
        };
        start.copy_from_slice(path.as_bytes());
        header.set_cksum();
        return archive.append(&header, content);
    }
    archive.append_data(&mut header, path, content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Tree {
        let mut tree = Tree::default();
        tree.file("usr/bin/tool", 0o755, Content::Bytes(b"#!/bin/sh\n".to_vec()));
        tree.directory("tmp", 0o1777);
        tree.file("etc/tool.conf", 0o644, Content::Bytes(Vec::new()));
        tree
    }

    fn entries(prefix: &str) -> Vec<(String, u32, u64, u64)> {
        let mut bytes = Vec::new();
        tree().write_tar(&mut bytes, prefix, 77).unwrap();
        let mut archive = tar::Archive::new(&bytes[..]);
        let entries = archive.entries().unwrap().map(|entry| {
            let entry = entry.unwrap();
            let (header, path) = (entry.header(), String::from_utf8_lossy(&entry.path_bytes()).into_owned());
            assert_eq!((header.uid().unwrap(), header.gid().unwrap()), (0, 0));
            (path, header.mode().unwrap(), header.mtime().unwrap(), header.size().unwrap())
        });
        entries.collect()
    }

    #[test]
    fn an_archive_is_sorted_belongs_to_root_and_is_of_one_time() {
        let expected = [
            ("etc/", 0o755, 77, 0),
            ("etc/tool.conf", 0o644, 77, 0),
            ("tmp/", 0o1777, 77, 0),
            ("usr/", 0o755, 77, 0),
            ("usr/bin/", 0o755, 77, 0),
            ("usr/bin/tool", 0o755, 77, 10),
        ];
        let named = |prefix: &str| {
            expected.map(|(path, mode, time, size)| (format!("{prefix}{path}"), mode, time, size))
        };
        assert_eq!(entries(""), named(""));
        assert_eq!(entries("./")[0], ("./".to_owned(), 0o755, 77, 0));
        assert_eq!(entries("./")[1..], named("./"));
    }

    #[test]
    fn the_content_of_a_file_may_be_that_of_another() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("source");
        std::fs::write(&source, "text").unwrap();
        let mut tree = Tree::default();
        tree.file("copy", 0o600, Content::Of(source));
        let mut bytes = Vec::new();
        tree.write_tar(&mut bytes, "", 0).unwrap();
        tar::Archive::new(&bytes[..]).unpack(folder.path()).unwrap();
        assert_eq!(std::fs::read_to_string(folder.path().join("copy")).unwrap(), "text");
        assert_eq!(tree.files().map(|(path, _)| path).collect::<Vec<_>>(), ["copy"]);
    }
}
