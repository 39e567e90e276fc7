//! What a tar archive holds, read without unpacking it, and compared with a list of what it has to hold.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use flate2::read::GzDecoder;
use md5::Md5;
use sha2::{Digest, Sha256};
use tar::EntryType;

use super::{ensure, wrong};
use crate::checksums::hex;
use crate::error::DistError;

/// Files up to this size are kept in memory; the program is not.
const KEPT: u64 = 8 << 20;

/// What is at a path, and who may do what with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Directory(u32),
    File(u32),
    /// A link, a device or anything else that no release has.
    Other,
}

/// One entry.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) kind: Kind,
    pub(super) size: u64,
    pub(super) sha256: String,
    pub(super) md5: String,
    owner: (u64, u64),
    names: (Vec<u8>, Vec<u8>),
    time: u64,
    /// What is in it, if that is not too much.
    bytes: Vec<u8>,
}

/// Entries by path, without `./` before it and `/` after it.
#[derive(Debug, Default)]
pub(super) struct Entries(pub(super) BTreeMap<String, Entry>);

impl Entries {
    /// Reads an archive to its end.
    pub(super) fn read(archive: impl Read) -> io::Result<Self> {
        let mut entries = BTreeMap::new();
        for entry in tar::Archive::new(archive).entries()? {
            let mut entry = entry?;
            let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let path = path.trim_start_matches("./").trim_end_matches('/').to_owned();
            if entry.pax_extensions()?.is_some() {
                // They carry capabilities, which give a program more than its mode does.
                return Err(io::Error::other(format!("{path} has extended attributes")));
            }
            let header = entry.header();
            let (mode, size) = (header.mode()?, header.size()?);
            let kind = match header.entry_type() {
                EntryType::Directory => Kind::Directory(mode),
                EntryType::Regular => Kind::File(mode),
                _ => Kind::Other,
            };
            let name = |name: Option<&[u8]>| name.unwrap_or_default().to_vec();
            let names = (name(header.username_bytes()), name(header.groupname_bytes()));
            let (owner, time) = ((header.uid()?, header.gid()?), header.mtime()?);
            let mut sink = Sink { keep: size <= KEPT, ..Sink::default() };
            io::copy(&mut entry, &mut sink)?;
            let (sha256, md5) = (hex(&sink.sha256.finalize()), hex(&sink.md5.finalize()));
            let entry = Entry { kind, size, sha256, md5, owner, names, time, bytes: sink.bytes };
            if entries.insert(path.clone(), entry).is_some() {
                return Err(io::Error::other(format!("{path} is in it twice")));
            }
        }
        Ok(Self(entries))
    }

    /// Holds the entries to be exactly those that are expected, to belong to root, and to be of one time.
    pub(super) fn compare(
        &self,
        what: &str,
        expected: &BTreeMap<String, Kind>,
        epoch: u64,
    ) -> Result<(), DistError> {
        for (path, kind) in expected {
            let entry = self.0.get(path).ok_or_else(|| wrong(format!("{what} lacks {path}")))?;
            ensure(entry.kind == *kind, || {
                format!("{what}: {path} is {}, and should be {kind}", entry.kind)
            })?;
        }
        for (path, entry) in &self.0 {
            ensure(expected.contains_key(path), || {
                format!("{what} holds {path}, which should not be there")
            })?;
            let root = entry.owner == (0, 0) && entry.names.0 == b"root" && entry.names.1 == b"root";
            ensure(root, || format!("{what}: {path} does not belong to root"))?;
            ensure(entry.time == epoch, || {
                format!("{what}: {path} has the time {}, and the release {epoch}", entry.time)
            })?;
        }
        Ok(())
    }

    /// What is in a file.
    pub(super) fn bytes(&self, path: &str) -> Result<&[u8], DistError> {
        let entry = self.0.get(path).ok_or_else(|| wrong(format!("{path} is missing")))?;
        Ok(&entry.bytes)
    }

    /// The text in a file.
    pub(super) fn text(&self, path: &str) -> Result<String, DistError> {
        Ok(String::from_utf8_lossy(self.bytes(path)?).into_owned())
    }

    /// What is in a compressed file.
    pub(super) fn unzipped(&self, path: &str) -> Result<Vec<u8>, DistError> {
        let mut bytes = Vec::new();
        let read = GzDecoder::new(self.bytes(path)?).read_to_end(&mut bytes);
        read.map_err(|error| wrong(format!("{path} can't be unpacked: {error}")))?;
        Ok(bytes)
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Directory(mode) => write!(f, "a directory of mode {mode:04o}"),
            Self::File(mode) => write!(f, "a file of mode {mode:04o}"),
            Self::Other => write!(f, "neither a file nor a directory"),
        }
    }
}

/// Hashes what goes through it, and keeps it if asked to.
#[derive(Default)]
struct Sink {
    keep: bool,
    bytes: Vec<u8>,
    sha256: Sha256,
    md5: Md5,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sha256.update(bytes);
        self.md5.update(bytes);
        if self.keep {
            self.bytes.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Adds files and the directories that they are in to what is expected.
pub(super) fn expect_file(expected: &mut BTreeMap<String, Kind>, path: &str, mode: u32) {
    for (end, _) in path.match_indices('/') {
        let parent = path.get(..end).unwrap_or_default();
        expected.entry(parent.to_owned()).or_insert(Kind::Directory(0o755));
    }
    expected.insert(path.to_owned(), Kind::File(mode));
}
