//! What was there before an item was taken over and changed: kept beside the state, and put back in the end.
//!
//! A file of its own for each item, which its owner alone can read. It is written before anything is replaced, and removed
//! when what it holds is back in its place. What is left of an earlier adoption, of which the state knows nothing any more, is
//! set aside by the next one and stays: nobody else has it.

use std::ffi::CString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use setpoint_engine::OpError;
use setpoint_graph::ItemRef;

use crate::fs::{Attribute, Found, short};
use crate::item::RootPath;

/// The most of a file that is kept.
pub(crate) const LARGEST: usize = 16 << 20;
/// The most that is kept of all of them together.
const MOST: u64 = 128 << 20;

/// What was there.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Original {
    /// A file.
    File {
        content: String,
        mode: u32,
        uid: u32,
        gid: u32,
        /// Where it was; none of one that an earlier version kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<RootPath>,
        /// Its extended attributes, with what is in them as the content is written.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attributes: Vec<(String, String)>,
    },
    /// A symbolic link.
    Link {
        target: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<RootPath>,
    },
    /// A directory, of which only the permissions are changed.
    Directory { mode: u32, uid: u32, gid: u32 },
}

impl Original {
    /// A file with this content, at this path.
    pub(crate) fn file(path: &RootPath, bytes: &[u8], found: Found, attributes: &[Attribute]) -> Self {
        let Found { mode, uid, gid, .. } = found;
        let written =
            |(name, value): &Attribute| (name.to_string_lossy().into_owned(), STANDARD.encode(value));
        let attributes = attributes.iter().map(written).collect();
        Self::File { content: STANDARD.encode(bytes), mode, uid, gid, path: Some(path.clone()), attributes }
    }

    /// The attributes of a kept file.
    pub(crate) fn attributes(kept: &[(String, String)]) -> Result<Vec<Attribute>, OpError> {
        let read = |(name, value): &(String, String)| {
            let name = CString::new(name.as_str());
            let name = name.map_err(|error| OpError::untouched(format!("what was kept is damaged: {error}")));
            Ok((name?, Self::bytes(value)?))
        };
        kept.iter().map(read).collect()
    }

    /// Where it was; none of a directory, and of what an earlier version kept.
    pub(crate) fn path(&self) -> Option<&RootPath> {
        match self {
            Self::File { path, .. } | Self::Link { path, .. } => path.as_ref(),
            Self::Directory { .. } => None,
        }
    }

    /// What a kept file held.
    pub(crate) fn bytes(content: &str) -> Result<Vec<u8>, OpError> {
        STANDARD
            .decode(content)
            .map_err(|error| OpError::untouched(format!("what was kept is damaged: {error}")))
    }
}

/// Why something can't be taken over.
pub(crate) fn too_large(path: &impl std::fmt::Display) -> OpError {
    OpError::untouched(format!(
        "{path} is larger than {} MiB, and would not be kept when it is taken over: move it away, or declare what it holds",
        LARGEST >> 20
    ))
}

/// What was there before an item is to be put back, and is not kept any more.
pub(crate) fn missing(path: &RootPath, kept: &Path, item: &ItemRef) -> OpError {
    let (kind, name) = (item.kind(), item.name());
    OpError::untouched(format!(
        "what was at {path} before Setpoint can't be put back: {} is not there any more; bring it back, or say `setpoint state rm {kind}.{name}` to leave {path} as it is",
        kept.display()
    ))
}

/// Something that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptEntry {
    /// The name of what is kept: `setpoint state kept NAME` prints it.
    pub name: String,
    /// Where it was; none of a directory.
    pub path: Option<RootPath>,
    /// Since when it is kept.
    pub since: SystemTime,
    /// What it is.
    pub what: KeptThing,
}

impl KeptEntry {
    /// Returns whether it is what somebody wrote in the place of an item, or the original of an earlier adoption.
    pub fn is_earlier(&self) -> bool {
        self.name.contains('.')
    }
}

/// What is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeptThing {
    /// A file.
    File {
        /// What it held.
        content: Vec<u8>,
        /// Its permissions.
        mode: u32,
    },
    /// A symbolic link.
    Link {
        /// What it pointed to.
        target: String,
    },
    /// The permissions and the owner of a directory.
    Directory {
        /// Its permissions.
        mode: u32,
        /// Its owner.
        uid: u32,
        /// Its group.
        gid: u32,
    },
}

/// Where is kept what was there before items were taken over.
#[derive(Debug)]
pub struct Kept {
    directory: PathBuf,
}

impl Kept {
    /// In the directory of runtime files that a host was opened with.
    pub fn new(runtime: &Path) -> Self {
        Self { directory: runtime.join("kept") }
    }

    /// Where it is kept for an item.
    pub(crate) fn path(&self, item: &ItemRef) -> PathBuf {
        self.directory.join(Self::name_of(item))
    }

    /// Keeps what was there before an item also under another item's name.
    pub fn link(&self, from: &ItemRef, to: &ItemRef) -> io::Result<()> {
        let (old, new) = (self.path(from), self.path(to));
        let beside = new.with_extension("new");
        match fs::remove_file(&beside).and(Ok(())) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        match fs::hard_link(&old, &beside) {
            // What is left of another item of that name is not its own.
            Err(error) if error.kind() == io::ErrorKind::NotFound => set_aside(&new, &[]),
            linked => {
                linked?;
                set_aside(&new, &fs::read(&beside)?)?;
                fs::rename(&beside, new)
            }
        }
    }

    /// Keeps what was there before an item.
    pub(crate) fn put(&self, item: &ItemRef, original: &Original) -> Result<(), OpError> {
        self.write(item, original, |bytes| {
            let path = self.path(item);
            set_aside(&path, bytes).map(|()| path)
        })
        .map(drop)
    }

    /// Keeps something beside what was there before an item, and says where.
    pub(crate) fn put_beside(&self, item: &ItemRef, found: &Original) -> Result<PathBuf, OpError> {
        self.write(item, found, |bytes| {
            // What is kept already is not kept twice: something may write the same again and again.
            let path = self.path(item);
            let mut earlier = (1_u32..).map(|number| beside(&path, number)).take_while(|path| path.exists());
            let same = earlier.find(|path| fs::read(path).is_ok_and(|kept| kept == bytes));
            Ok(same.unwrap_or_else(|| free_beside(&path)))
        })
    }

    /// Writes a file for an item, and brings it to where it is to be once it is whole.
    fn write(
        &self,
        item: &ItemRef,
        original: &Original,
        place: impl FnOnce(&[u8]) -> io::Result<PathBuf>,
    ) -> Result<PathBuf, OpError> {
        let failed = |error: io::Error| OpError::untouched(format!("what is there can't be kept: {error}"));
        let bytes = serde_json::to_vec(original).map_err(|error| failed(error.into()))?;
        let others = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let sizes = others.filter_map(|entry| entry.metadata().ok()).map(|data| data.len());
        if sizes.sum::<u64>() + bytes.len() as u64 > MOST {
            let message =
                format!("more than {} MiB are kept already in {}", MOST >> 20, self.directory.display());
            return Err(failed(io::Error::other(message)));
        }
        let beside = self.path(item).with_extension("new");
        let write = || {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
            let open =
                fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside);
            let mut file = open?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            // What is kept already makes room when nothing can fail any more for want of it.
            let path = place(&bytes)?;
            fs::rename(&beside, &path)?;
            Ok(path)
        };
        // Where the disk is full, each byte counts.
        write().inspect_err(|_| drop(fs::remove_file(&beside))).map_err(failed)
    }

    /// What was there before an item, if it was kept.
    pub(crate) fn get(&self, item: &ItemRef) -> Result<Option<Original>, OpError> {
        let failed = |error: io::Error| OpError::untouched(format!("what was kept can't be read: {error}"));
        match fs::read(self.path(item)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(error)),
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| failed(error.into())),
        }
    }

    /// All that is kept, by name.
    pub fn list(&self) -> io::Result<Vec<KeptEntry>> {
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut all = Vec::new();
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // What is not whole is written once more.
            if entry.path().extension().is_none_or(|extension| extension != "new") {
                all.push(self.entry(name, entry.metadata()?.modified()?)?);
            }
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    fn entry(&self, name: String, since: SystemTime) -> io::Result<KeptEntry> {
        let original: Original = serde_json::from_slice(&fs::read(self.directory.join(&name))?)?;
        let (path, what) = match original {
            Original::File { content, path, mode, .. } => {
                let content = STANDARD.decode(content).map_err(io::Error::other)?;
                (path, KeptThing::File { content, mode })
            }
            Original::Link { target, path } => (path, KeptThing::Link { target }),
            Original::Directory { mode, uid, gid } => (None, KeptThing::Directory { mode, uid, gid }),
        };
        Ok(KeptEntry { name, path, since, what })
    }

    /// The name under which the original of an item is kept.
    pub fn name_of(item: &ItemRef) -> String {
        short(&[item.kind().as_str(), item.name().as_str()])
    }

    /// Keeps the original of an item for good, beside what will be kept for it from now on. Returns where.
    pub(crate) fn retire(&self, item: &ItemRef) -> Result<PathBuf, OpError> {
        let (path, beside) = (self.path(item), free_beside(&self.path(item)));
        let renamed = fs::rename(&path, &beside);
        renamed.map_err(|error| OpError::untouched(format!("what was kept can't be renamed: {error}")))?;
        Ok(beside)
    }

    /// Returns whether something is kept that was there before an item.
    pub(crate) fn has(&self, item: &ItemRef) -> bool {
        self.path(item).exists()
    }

    /// Lets go of it, once it is back in its place.
    pub fn remove(&self, item: &ItemRef) {
        // What stays behind is replaced by the next one that is kept.
        let _ = fs::remove_file(self.path(item));
    }
}

/// Keeps beside its place what is there of an earlier adoption, and is something else.
fn set_aside(path: &Path, new: &[u8]) -> io::Result<()> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(old) if old == new => return Ok(()),
        Ok(_) => {}
    }
    fs::rename(path, free_beside(path))
}

/// One of the names for what was kept earlier.
fn beside(path: &Path, number: u32) -> PathBuf {
    path.with_extension(format!("earlier-{number}"))
}

/// A name beside a place that nothing has.
fn free_beside(path: &Path) -> PathBuf {
    let mut number = 1_u32;
    loop {
        let free = beside(path, number);
        if !free.exists() {
            return free;
        }
        number = number.saturating_add(1);
    }
}
