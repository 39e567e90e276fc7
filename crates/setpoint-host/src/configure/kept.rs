//! What was there before an item was taken over and changed: kept beside the state, and put back in the end.
//!
//! A file of its own for each item, which its owner alone can read. It is written before anything is replaced, and removed
//! when what it holds is back in its place. What is left of an earlier adoption is replaced by the next one.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use setpoint_engine::OpError;
use setpoint_graph::ItemRef;

use crate::fs::short;

/// The most of a file that is kept.
const LARGEST: usize = 16 << 20;
/// The most that is kept of all of them together.
const MOST: u64 = 128 << 20;

/// What was there.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Original {
    /// A file.
    File { content: String, mode: u32, uid: u32, gid: u32 },
    /// A symbolic link.
    Link { target: String },
}

impl Original {
    /// A file with this content; none if it is larger than is kept.
    pub(crate) fn file(bytes: &[u8], mode: u32, uid: u32, gid: u32) -> Option<Self> {
        (bytes.len() <= LARGEST).then(|| Self::File { content: STANDARD.encode(bytes), mode, uid, gid })
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

/// Where originals are kept.
#[derive(Debug)]
pub(crate) struct Kept {
    directory: PathBuf,
}

impl Kept {
    pub(crate) fn new(runtime: &Path) -> Self {
        Self { directory: runtime.join("kept") }
    }

    fn path(&self, item: &ItemRef) -> PathBuf {
        self.directory.join(short(&[item.kind().as_str(), item.name().as_str()]))
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

    /// Lets go of it, once it is back in its place.
    pub(crate) fn remove(&self, item: &ItemRef) {
        // What stays behind is replaced by the next one that is kept.
        let _ = fs::remove_file(self.path(item));
    }
}
