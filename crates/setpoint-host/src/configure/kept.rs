//! What was there before an item was taken over and changed: kept beside the state, and put back in the end.
//!
//! ```text
//!  the state of an item: original: 3fa94c0b12d7e688 ──▶ run/kept/3fa94c0b12d7e688
//!  what somebody wrote in the place of an item ───────▶ run/kept/90d2ab8815c3f07e.change
//! ```
//!
//! Each copy is a file that its owner alone can read, called by a digest of itself: it is written before anything is replaced,
//! never changed, and removed when what it holds is back in its place. Whose original it is, the state of the item says.

use std::ffi::CString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use setpoint_engine::{CurrentGraph, ItemState, OpError};
use setpoint_graph::ItemRef;
use sha2::{Digest, Sha256};

use super::notes::PathNote;
use crate::fs::{Found, Kind, Xattr, short};
use crate::item::{Content, RootPath, hex};
use crate::kinds;

/// The most of a file that is kept.
pub(crate) const LARGEST: usize = 16 << 20;
/// The most that is kept of all of them together.
const MOST: u64 = 128 << 20;
/// What the names of copies end with that are no originals of items.
const CHANGE: &str = "change";

/// What was there.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Original {
    /// A file.
    File {
        /// What it held; none of one that is too large to be kept, and was not replaced.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<String>,
        /// The digest of what it held, where that is not kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        large: Option<Content>,
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
    Directory {
        mode: u32,
        uid: u32,
        gid: u32,
        /// Where it was; none of one that an earlier version kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<RootPath>,
    },
}

impl Original {
    /// A file with this content, at this path.
    pub(crate) fn file(path: &RootPath, bytes: &[u8], found: Found, attributes: &[Xattr]) -> Self {
        Self::with_content(path, Some(STANDARD.encode(bytes)), None, found, attributes)
    }

    /// A file that is too large to be kept, and is not replaced: what it holds is known by its digest.
    pub(crate) fn large_file(path: &RootPath, holds: Content, found: Found, attributes: &[Xattr]) -> Self {
        Self::with_content(path, None, Some(holds), found, attributes)
    }

    fn with_content(
        path: &RootPath,
        content: Option<String>,
        large: Option<Content>,
        found: Found,
        attributes: &[Xattr],
    ) -> Self {
        let Found { mode, uid, gid, .. } = found;
        let written = |(name, value): &Xattr| (name.to_string_lossy().into_owned(), STANDARD.encode(value));
        let attributes = attributes.iter().map(written).collect();
        Self::File { content, large, mode, uid, gid, path: Some(path.clone()), attributes }
    }

    /// The attributes of a kept file.
    pub(crate) fn attributes(kept: &[(String, String)]) -> Result<Vec<Xattr>, OpError> {
        let read = |(name, value): &(String, String)| {
            Ok((CString::new(name.as_str()).map_err(damaged)?, decoded(value)?))
        };
        kept.iter().map(read).collect()
    }

    /// Where it was; none of what an earlier version kept.
    pub(crate) fn path(&self) -> Option<&RootPath> {
        match self {
            Self::File { path, .. } | Self::Link { path, .. } | Self::Directory { path, .. } => path.as_ref(),
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::File { .. } => Kind::File,
            Self::Link { .. } => Kind::Symlink,
            Self::Directory { .. } => Kind::Directory,
        }
    }

    /// Returns whether what it held is not kept: it has to be before it is replaced.
    pub(crate) fn is_partial(&self) -> bool {
        matches!(self, Self::File { content: None, .. })
    }

    /// What a kept file held.
    pub(crate) fn content(content: Option<&str>, large: Option<&Content>) -> Result<Content, OpError> {
        match (content, large) {
            (Some(content), _) => decoded(content).map(Content::from),
            (None, Some(large)) => Ok(large.clone()),
            (None, None) => Err(damaged("it has no content")),
        }
    }
}

fn decoded(text: &str) -> Result<Vec<u8>, OpError> {
    STANDARD.decode(text).map_err(damaged)
}

fn damaged(why: impl std::fmt::Display) -> OpError {
    OpError::untouched(format!("what was kept is damaged: {why}"))
}

/// Why something can't be replaced.
pub(crate) fn too_large(path: &impl std::fmt::Display) -> OpError {
    OpError::untouched(format!(
        "{path} is larger than {} MiB, and would not be kept when it is replaced: move it away, or declare what it holds",
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
    /// Where it was; none if that is not known.
    pub path: Option<RootPath>,
    /// Since when it is kept.
    pub since: SystemTime,
    /// What it is.
    pub what: KeptThing,
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
    /// The permissions and the owner of a file that is too large to be kept, and was not replaced.
    LargeFile {
        /// How many bytes it has.
        size: u64,
        /// Its permissions.
        mode: u32,
        /// Its owner.
        uid: u32,
        /// Its group.
        gid: u32,
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
    /// It can't be read.
    Damaged {
        /// Why.
        why: String,
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

    /// Where something is kept.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Keeps an original, and returns its name.
    pub(crate) fn put(&self, original: &Original) -> Result<String, OpError> {
        self.write(original, |digest| digest)
    }

    /// Keeps what somebody wrote in the place of an item, and says where. The same is kept once, whoever writes it again and again.
    pub(crate) fn put_change(&self, found: &Original) -> Result<PathBuf, OpError> {
        self.write(found, |digest| format!("{digest}.{CHANGE}")).map(|name| self.path(&name))
    }

    fn write(&self, original: &Original, name: impl FnOnce(String) -> String) -> Result<String, OpError> {
        let failed = |error: io::Error| OpError::untouched(format!("what is there can't be kept: {error}"));
        let bytes = serde_json::to_vec(original).map_err(|error| failed(error.into()))?;
        let digest = hex(&Sha256::digest(&bytes)).chars().take(16).collect();
        let name = name(digest);
        let path = self.path(&name);
        if fs::read(&path).is_ok_and(|kept| kept == bytes) {
            return Ok(name);
        }
        if !self.make_room(bytes.len() as u64, MOST) {
            let (most, directory) = (MOST >> 20, self.directory.display());
            let message = format!(
                "more than {most} MiB are kept already in {directory}; `setpoint state kept` lists it, and what nobody needs any more may be removed there"
            );
            return Err(failed(io::Error::other(message)));
        }
        let beside = path.with_extension("new");
        let write = || {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
            let open =
                fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside);
            let mut file = open?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            fs::rename(&beside, &path)
        };
        // Where the disk is full, each byte counts.
        write().inspect_err(|_| drop(fs::remove_file(&beside))).map_err(failed)?;
        Ok(name)
    }

    /// Makes room for so many bytes among at most so many: the oldest changes go, and originals stay. Returns whether there is.
    fn make_room(&self, bytes: u64, most: u64) -> bool {
        let (mut kept, mut changes) = (0, Vec::new());
        for entry in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            let Ok(data) = entry.metadata() else { continue };
            kept += data.len();
            if entry.path().extension().is_some_and(|extension| extension == CHANGE) {
                changes.push((data.modified().unwrap_or(SystemTime::UNIX_EPOCH), data.len(), entry.path()));
            }
        }
        let mut surplus = (kept + bytes).saturating_sub(most);
        if surplus > changes.iter().map(|(_, size, _)| size).sum::<u64>() {
            return false;
        }
        changes.sort();
        for (_, size, path) in changes {
            if surplus == 0 {
                break;
            }
            if fs::remove_file(path).is_ok() {
                surplus = surplus.saturating_sub(size);
            }
        }
        surplus == 0
    }

    /// What is kept under a name; none if nothing is.
    pub(crate) fn get(&self, name: &str) -> Result<Option<Original>, OpError> {
        let failed = |error: io::Error| OpError::untouched(format!("what was kept can't be read: {error}"));
        match fs::read(self.path(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(error)),
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(damaged),
        }
    }

    /// The name of the last original that was kept of something at a path, where the state has forgotten whose it is.
    pub(crate) fn find(&self, path: &RootPath, kind: Kind) -> Option<String> {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let originals = entries.filter_map(|entry| {
            let name = entry.file_name().into_string().ok().filter(|name| is_original(name))?;
            let original = self.get(&name).ok()??;
            let since = entry.metadata().ok()?.modified().ok()?;
            (original.kind() == kind && original.path() == Some(path)).then_some((since, name))
        });
        originals.max().map(|(_, name)| name)
    }

    /// All that is kept: originals first, and by name.
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
                all.push(self.entry(name, entry.metadata()?.modified()?));
            }
        }
        all.sort_by_cached_key(|entry| (!is_original(&entry.name), entry.name.clone()));
        Ok(all)
    }

    fn entry(&self, name: String, since: SystemTime) -> KeptEntry {
        let read = self.get(&name).and_then(|original| original.ok_or_else(|| damaged("it is gone")));
        let path = read.as_ref().ok().and_then(Original::path).cloned();
        let what = read.and_then(KeptThing::try_from);
        let what = what.unwrap_or_else(|error| KeptThing::Damaged { why: error.to_string() });
        KeptEntry { name, path, since, what }
    }

    /// The name of the original of an item, as its state has it.
    pub fn original_of(state: &ItemState) -> Option<String> {
        state.noted::<PathNote>()?.original
    }

    /// Notes in the states of items what an earlier version kept of them, in files that were called by the items.
    pub fn name_originals(&self, current: &mut CurrentGraph) {
        let slots: Vec<_> = current.slots().collect();
        for slot in slots {
            let Some(item) = current.item_at(slot).filter(|item| kinds::on_disk(item).is_some()) else {
                continue;
            };
            let name = short(&[item.kind().as_str(), item.reference().name().as_str()]);
            let Some(state) = current.state_at_mut(slot).filter(|state| state.ownership().is_adopted())
            else {
                continue;
            };
            let note: PathNote = state.noted().unwrap_or_default();
            if note.original.is_none() && note.released.is_none() && self.path(&name).exists() {
                state.note(&PathNote { original: Some(name), ..note });
                current.touch_at(slot);
            }
        }
    }

    /// Keeps an original for good that is nobody's any more. Returns where.
    pub(crate) fn retire(&self, name: &str) -> Result<PathBuf, OpError> {
        let retired = self.path(&format!("{name}.{CHANGE}"));
        let renamed = fs::rename(self.path(name), &retired);
        renamed.map_err(|error| OpError::untouched(format!("what was kept can't be renamed: {error}")))?;
        Ok(retired)
    }

    /// Lets go of an original, once it is back in its place.
    pub(crate) fn remove(&self, name: &str) {
        // What stays behind is nobody's.
        let _ = fs::remove_file(self.path(name));
    }
}

impl TryFrom<Original> for KeptThing {
    type Error = OpError;

    fn try_from(original: Original) -> Result<Self, OpError> {
        Ok(match original {
            Original::File { content: Some(content), mode, .. } => {
                Self::File { content: decoded(&content)?, mode }
            }
            Original::File { content: None, large, mode, uid, gid, .. } => {
                let size = Original::content(None, large.as_ref())?.size();
                Self::LargeFile { size, mode, uid, gid }
            }
            Original::Link { target, .. } => Self::Link { target },
            Original::Directory { mode, uid, gid, .. } => Self::Directory { mode, uid, gid },
        })
    }
}

/// Returns whether a name is that of the original of an item.
fn is_original(name: &str) -> bool {
    !name.contains('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(target: &str) -> Original {
        Original::Link { target: target.to_owned(), path: Some(RootPath::new("l").unwrap()) }
    }

    #[test]
    fn the_last_original_at_a_path_is_found_and_no_change_or_retired_one() {
        let directory = tempfile::tempdir().unwrap();
        let kept = Kept::new(directory.path());
        let path = RootPath::new("l").unwrap();
        assert_eq!(kept.find(&path, Kind::Symlink), None);
        let first = kept.put(&link("first")).unwrap();
        kept.put_change(&link("changed")).unwrap();
        assert_eq!(kept.find(&path, Kind::Symlink), Some(first.clone()));
        assert_eq!(kept.find(&path, Kind::File), None);
        assert_eq!(kept.find(&RootPath::new("m").unwrap(), Kind::Symlink), None);
        kept.retire(&first).unwrap();
        assert_eq!(kept.find(&path, Kind::Symlink), None);
        assert_eq!(kept.list().unwrap().len(), 2);
    }

    #[test]
    fn the_oldest_changes_make_room_and_originals_stay() {
        let directory = tempfile::tempdir().unwrap();
        let kept = Kept::new(directory.path());
        let original = kept.put(&link("original")).unwrap();
        let changes = ["first", "other", "third"].map(|target| kept.put_change(&link(target)).unwrap());
        for (path, seconds) in changes.iter().zip([3, 1, 2]) {
            let file = fs::File::options().write(true).open(path).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds)).unwrap();
        }
        let size = fs::metadata(&changes[0]).unwrap().len();
        let all = size * 3 + fs::metadata(kept.path(&original)).unwrap().len();
        let left = || changes.each_ref().map(|path| path.exists());
        assert!(kept.make_room(size, all + size));
        assert_eq!(left(), [true; 3], "there was room");
        assert!(!kept.make_room(all, all - 1));
        assert_eq!(left(), [true; 3], "nothing goes where that is of no use");
        assert!(kept.make_room(1, all));
        assert_eq!(left(), [true, false, true]);
        assert!(kept.make_room(size * 2, all));
        assert_eq!(left(), [true, false, false]);
        assert!(kept.path(&original).exists());
    }

    #[test]
    fn what_an_earlier_version_kept_is_read() {
        let file: Original =
            serde_json::from_str(r#"{"file":{"content":"b3Vycw==","mode":420,"uid":0,"gid":0}}"#).unwrap();
        let Original::File { content, large, .. } = &file else { panic!("{file:?}") };
        let content = Original::content(content.as_deref(), large.as_ref()).unwrap();
        assert_eq!((content, file.is_partial()), (Content::from("ours"), false));
        let directory: Original =
            serde_json::from_str(r#"{"directory":{"mode":448,"uid":0,"gid":0}}"#).unwrap();
        assert_eq!(directory.path(), None);
    }

    #[test]
    fn the_originals_of_an_earlier_version_are_named_in_the_states_of_their_items() {
        use crate::kinds::Symlink;
        use setpoint_graph::{ItemHandle, Name, SubgraphPath};
        let directory = tempfile::tempdir().unwrap();
        let kept = Kept::new(directory.path());
        let mut current = CurrentGraph::new("set");
        for (name, is_adopted) in [("theirs", true), ("ours", false), ("unkept", true)] {
            let (name, path) = (Name::new(name), RootPath::new(name).unwrap());
            let link = Symlink { name, path, target: "x".to_owned(), adopt: true, needs: Vec::new() };
            let state = ItemState::present(jiff::Timestamp::UNIX_EPOCH);
            let state = if is_adopted { state.adopted() } else { state };
            current.put_item_with_state(&SubgraphPath::root(), ItemHandle::new(link), state).unwrap();
        }
        fs::create_dir(directory.path().join("kept")).unwrap();
        let old_name = |name: &str| short(&["symlink", name]);
        for name in ["theirs", "ours"] {
            fs::write(kept.path(&old_name(name)), "").unwrap();
        }
        kept.name_originals(&mut current);
        let named = |name: &str| {
            let state = current.state(&ItemRef::of::<Symlink>(name)).unwrap();
            Kept::original_of(state)
        };
        assert_eq!((named("theirs"), named("ours"), named("unkept")), (Some(old_name("theirs")), None, None));
    }
}
