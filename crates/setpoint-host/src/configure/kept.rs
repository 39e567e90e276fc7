//! What was there before an item was taken over and changed: kept beside the state, and put back in the end.
//!
//! A file of its own for each item, which its owner alone can read. It is written before anything is replaced, and removed
//! when what it holds is back in its place. What is left of an earlier adoption, of which the state knows nothing any more, is
//! set aside by the next one and stays: nobody else has it.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use setpoint_engine::OpError;
use setpoint_graph::ItemRef;

use crate::fs::{Found, Number, short};
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
        /// The directory that it was in, wherever that is now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        within: Option<Number>,
    },
    /// A symbolic link.
    Link {
        target: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<RootPath>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        within: Option<Number>,
    },
    /// A directory, of which only the permissions are changed.
    Directory { mode: u32, uid: u32, gid: u32 },
}

impl Original {
    /// A file with this content, at this path in this directory.
    pub(crate) fn file(path: &RootPath, within: Option<Number>, bytes: &[u8], found: Found) -> Self {
        let Found { mode, uid, gid, .. } = found;
        Self::File { content: STANDARD.encode(bytes), mode, uid, gid, path: Some(path.clone()), within }
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

    fn path(&self, item: &ItemRef) -> PathBuf {
        self.directory.join(short(&[item.kind().as_str(), item.name().as_str()]))
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
        let failed = |error: io::Error| OpError::untouched(format!("what is there can't be kept: {error}"));
        let bytes = serde_json::to_vec(original).map_err(|error| failed(error.into()))?;
        let others = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let sizes = others.filter_map(|entry| entry.metadata().ok()).map(|data| data.len());
        if sizes.sum::<u64>() + bytes.len() as u64 > MOST {
            let message =
                format!("more than {} MiB are kept already in {}", MOST >> 20, self.directory.display());
            return Err(failed(io::Error::other(message)));
        }
        let write = || {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
            let (path, beside) = (self.path(item), self.path(item).with_extension("new"));
            set_aside(&path, &bytes)?;
            let open =
                fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside);
            let mut file = open?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            fs::rename(&beside, path)
        };
        write().map_err(failed)
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
    let free = (1_u32..).map(|number| path.with_extension(format!("earlier-{number}")));
    free.filter(|free| !free.exists()).take(1).try_for_each(|free| fs::rename(path, free))
}
