//! What was there before an item was taken over and changed: kept beside the state, and put back in the end.
//!
//! ```text
//!  the state of an item: original: 3fa94c0b12d7e6885c01 ──▶ run/kept/3fa94c0b12d7e6885c01
//!  what somebody wrote in the place of an item ───────────▶ run/kept/90d2ab8815c3f07e6ba4.change
//!  an original that can't go back ────────────────────────▶ run/kept/3fa94c0b12d7e6885c01.original
//! ```
//!
//! Each copy is a file that its owner alone can read, called by a digest of itself: it is written before anything is replaced,
//! never changed, and removed when what it holds is back in its place. Whose original it is, the state of the item says. A copy that
//! is not what its name says is damaged, and never put back.

mod index;
mod original;
mod states;

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use setpoint_engine::{CurrentGraph, ItemState, OpError};
use setpoint_graph::ItemRef;
use sha2::{Digest, Sha256};

use super::notes::PathNote;
use crate::fs::FileType;
use crate::item::{RootPath, hex};

use index::Index;
pub(crate) use original::Original;
use original::{damaged, decoded};

/// The most of a file that is kept.
pub(crate) const LARGEST: usize = 16 << 20;
/// The most that is kept of all of them together.
const MOST: u64 = 128 << 20;
/// What the names of copies end with that somebody wrote in the place of items. They may go for others.
const CHANGE: &str = "change";
/// What the names of originals end with that are those of no item any more.
const RETIRED: &str = "original";
/// What the names of copies end with that are not whole.
const BESIDE: &str = "new";
/// How many digits of its digest a copy is called by. Names of an earlier version have fewer, and are no digests of all of it.
const DIGITS: usize = 20;

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
    /// What is known of the copies; none until one is to be kept or looked for.
    index: Mutex<Option<Index>>,
}

impl Kept {
    /// In the directory of runtime files that a host was opened with.
    pub fn new(runtime: &Path) -> Self {
        Self { directory: runtime.join("kept"), index: Mutex::default() }
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
        let name = name(digest(&bytes));
        let path = self.path(&name);
        let mut index = self.index();
        if fs::read(&path).is_ok_and(|kept| kept == bytes) {
            if !is_original(&name) {
                self.renew(index.as_mut(), &name);
            }
            return Ok(name);
        }
        let index = index.get_or_insert_with(|| Index::list(&self.directory));
        if !self.make_room(index, bytes.len() as u64, MOST) {
            let (most, directory) = (MOST >> 20, self.directory.display());
            let message = format!(
                "more than {most} MiB are kept already in {directory}; `setpoint state kept` lists it, and what nobody needs any more may be removed there"
            );
            return Err(failed(io::Error::other(message)));
        }
        let replaces = path.exists();
        let beside = path.with_extension(BESIDE);
        let write = || {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
            let open =
                fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside);
            let mut file = open?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            fs::rename(&beside, &path)?;
            // Also its name has to last before anything is replaced.
            fs::File::open(&self.directory)?.sync_all()?;
            file.metadata()
        };
        // Where the disk is full, each byte counts.
        let found = write().inspect_err(|_| drop(fs::remove_file(&beside))).map_err(failed)?;
        if replaces {
            // It was damaged, and nobody knows how many bytes it had.
            *index = Index::list(&self.directory);
            return Ok(name);
        }
        index.add(&name, &found);
        if is_original(&name) {
            index.add_original(&name, original, &found);
        }
        Ok(name)
    }

    /// Counts a change that is kept already as one that was kept right now: the oldest ones go first.
    fn renew(&self, index: Option<&mut Index>, name: &str) {
        let Ok(file) = fs::OpenOptions::new().write(true).open(self.path(name)) else { return };
        let Ok(before) = file.metadata() else { return };
        if file.set_modified(SystemTime::now()).is_ok()
            && let (Some(index), Ok(now)) = (index, file.metadata())
        {
            index.remove(name, &before);
            index.add(name, &now);
        }
    }

    /// Makes room for so many bytes among at most so many: the oldest changes go, and originals stay. Returns whether there is.
    fn make_room(&self, index: &mut Index, bytes: u64, most: u64) -> bool {
        let is_room = |index: &Index| index.in_the_way(bytes, most).is_some_and(|changes| changes.is_empty());
        if !is_room(index) && index.is_old() {
            // A person may have removed some.
            *index = Index::list(&self.directory);
        }
        let Some(in_the_way) = index.in_the_way(bytes, most) else { return false };
        for change in &in_the_way {
            match fs::remove_file(self.path(&change.1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return false,
                _ => index.remove_change(change),
            }
        }
        true
    }

    fn index(&self) -> MutexGuard<'_, Option<Index>> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is kept under a name; none if nothing is.
    pub(crate) fn get(&self, name: &str) -> Result<Option<Original>, OpError> {
        let failed = |error: io::Error| OpError::untouched(format!("what was kept can't be read: {error}"));
        match fs::read(self.path(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(error)),
            Ok(bytes) if !is_called(name, &bytes) => Err(self.damaged(name, &"it is not what was written")),
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|why| self.damaged(name, &why)),
        }
    }

    fn damaged(&self, name: &str, why: &dyn std::fmt::Display) -> OpError {
        let path = self.path(name);
        damaged(format_args!(
            "{}: {why}; bring it back, or say `setpoint state rm` with this item",
            path.display()
        ))
    }

    /// The name of the last original that was kept of something at a path, where the state has forgotten whose it is.
    pub(crate) fn find(&self, path: &RootPath, kind: FileType) -> Option<String> {
        let mut index = self.index();
        let index = index.get_or_insert_with(|| Index::list(&self.directory));
        let names = index.originals(&self.directory, path, |name| self.get(name).ok().flatten());
        let is_it = |name: &String| {
            let original = self.get(name).ok().flatten();
            original.is_some_and(|original| original.kind() == kind && original.path() == Some(path))
        };
        names.into_iter().find(is_it)
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
            if entry.path().extension().is_none_or(|extension| extension != BESIDE) {
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

    /// Keeps an original for good that is nobody's any more: it never makes room for others. Returns where.
    pub(crate) fn retire(&self, name: &str) -> Result<PathBuf, OpError> {
        let mut index = self.index();
        let (path, retired) = (self.path(name), format!("{name}.{RETIRED}"));
        let renamed = fs::rename(path, self.path(&retired));
        renamed.map_err(|error| OpError::untouched(format!("what was kept can't be renamed: {error}")))?;
        // Its size is known, and only its name is another.
        if let (Some(index), Ok(found)) = (&mut *index, fs::metadata(self.path(&retired))) {
            index.remove(name, &found);
            index.add(&retired, &found);
        }
        Ok(self.path(&retired))
    }

    /// Lets go of an original, once it is back in its place.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        let path = self.path(name);
        let found = fs::metadata(&path);
        match fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            // What failed once may succeed at once.
            Err(_) => fs::remove_file(&path)?,
            Ok(()) => {}
        }
        if let (Some(index), Ok(found)) = (&mut *self.index(), found) {
            index.remove(name, &found);
        }
        Ok(())
    }

    /// Removes the copies of originals that are back in their places, where a run was cut off before it could, or could not. What was
    /// taken over again since, by whatever item, is kept by the same name. Returns what could not be removed.
    pub(crate) fn remove_released(&self, current: &CurrentGraph) -> Vec<(ItemRef, io::Error)> {
        let (mut released, mut used) = (Vec::new(), BTreeSet::new());
        for node in current.items() {
            let state = node.state().filter(|state| state.ownership().is_adopted());
            let Some(note) = state.and_then(ItemState::noted::<PathNote>) else { continue };
            match (note.original, note.released) {
                (Some(name), Some(_)) => released.push((node.reference().clone(), name)),
                (Some(name), None) => drop(used.insert(name)),
                (None, _) => {}
            }
        }
        released.retain(|(_, name)| !used.contains(name));
        let removed = released.into_iter().map(|(item, name)| (item, self.remove(&name)));
        removed.filter_map(|(item, removed)| Some((item, removed.err()?))).collect()
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

/// What a copy with these bytes is called by.
fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes)).chars().take(DIGITS).collect()
}

/// Returns whether a copy with this name may have these bytes.
fn is_called(name: &str, bytes: &[u8]) -> bool {
    let called = name.split('.').next().unwrap_or_default();
    called.len() != DIGITS || called == digest(bytes)
}

/// Returns whether a name is that of the original of an item.
fn is_original(name: &str) -> bool {
    !name.contains('.')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::Attached;

    fn link(target: &str) -> Original {
        Original::link(&RootPath::new("l").unwrap(), target.to_owned(), &Attached::default())
    }

    #[test]
    fn the_last_original_at_a_path_is_found_and_no_change_or_retired_one() {
        let directory = tempfile::tempdir().unwrap();
        let kept = Kept::new(directory.path());
        let path = RootPath::new("l").unwrap();
        assert_eq!(kept.find(&path, FileType::Symlink), None);
        let first = kept.put(&link("first")).unwrap();
        kept.put_change(&link("changed")).unwrap();
        assert_eq!(kept.find(&path, FileType::Symlink), Some(first.clone()));
        assert_eq!(kept.find(&path, FileType::File), None);
        assert_eq!(kept.find(&RootPath::new("m").unwrap(), FileType::Symlink), None);
        kept.retire(&first).unwrap();
        assert_eq!(kept.find(&path, FileType::Symlink), None);
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
        let make_room = |bytes, most| kept.make_room(&mut Index::list(&kept.directory), bytes, most);
        assert!(make_room(size, all + size));
        assert_eq!(left(), [true; 3], "there was room");
        assert!(!make_room(all, all - 1));
        assert_eq!(left(), [true; 3], "nothing goes where that is of no use");
        assert!(make_room(1, all));
        assert_eq!(left(), [true, false, true]);
        assert!(make_room(size * 2, all));
        assert_eq!(left(), [true, false, false]);
        assert!(kept.path(&original).exists());
    }

    #[test]
    fn the_copies_are_listed_and_read_once_however_many_are_kept_afterwards() {
        let directory = tempfile::tempdir().unwrap();
        let kept = Kept::new(directory.path());
        let paths = ["l", "m", "n"].map(|path| RootPath::new(path).unwrap());
        let link = |path: &RootPath| Original::link(path, "x".to_owned(), &Attached::default());
        let first = kept.put(&link(&paths[0])).unwrap();
        assert_eq!(kept.find(&paths[0], FileType::Symlink), Some(first));
        // Nobody else keeps anything: what comes from elsewhere is not looked for.
        Kept::new(directory.path()).put(&link(&paths[1])).unwrap();
        fs::File::create(kept.path("others")).unwrap().set_len(MOST).unwrap();
        let last = kept.put(&link(&paths[2])).unwrap();
        assert_eq!(kept.find(&paths[1], FileType::Symlink), None);
        assert_eq!(kept.find(&paths[2], FileType::Symlink), Some(last));
    }

    #[test]
    fn the_room_of_copies_that_go_is_there_for_others() {
        let directory = tempfile::tempdir().unwrap();
        let kept = Kept::new(directory.path());
        let (original, change) = (kept.put(&link("a")).unwrap(), kept.put_change(&link("b")).unwrap());
        let size = fs::metadata(&change).unwrap().len();
        let has_room = |bytes: u64| {
            let index = kept.index();
            index
                .as_ref()
                .is_some_and(|index| index.in_the_way(bytes, size * 3).is_some_and(|gone| gone.is_empty()))
        };
        assert!(has_room(size) && !has_room(size + 1));
        kept.remove(&original).unwrap();
        assert!(has_room(size * 2) && !has_room(size * 2 + 1));
        let other = kept.put(&link("c")).unwrap();
        kept.retire(&other).unwrap();
        assert!(has_room(size) && !has_room(size + 1), "it stays");
        let mut index = kept.index();
        assert!(!kept.make_room(index.as_mut().unwrap(), size * 3, size * 3), "an original never goes");
        assert!(kept.make_room(index.as_mut().unwrap(), size * 2, size * 3));
        let left: Vec<String> = kept.list().unwrap().into_iter().map(|entry| entry.name).collect();
        assert_eq!(left, [format!("{other}.{RETIRED}")], "a change has made room");
    }

    #[test]
    fn what_is_written_once_more_is_the_last_to_make_room() {
        let directory = tempfile::tempdir().unwrap();
        let kept = Kept::new(directory.path());
        let changes = ["first", "other"].map(|target| kept.put_change(&link(target)).unwrap());
        for (path, seconds) in changes.iter().zip([1, 2]) {
            let file = fs::File::options().write(true).open(path).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds)).unwrap();
        }
        let kept = Kept::new(directory.path());
        let size = fs::metadata(&changes[0]).unwrap().len();
        assert!(kept.make_room(
            kept.index().get_or_insert_with(|| Index::list(&kept.directory)),
            0,
            size * 2
        ));
        kept.put_change(&link("first")).unwrap();
        assert!(kept.make_room(kept.index().as_mut().unwrap(), size, size * 2));
        assert_eq!(changes.each_ref().map(|path| path.exists()), [true, false]);
    }

    #[test]
    fn nothing_goes_for_what_has_room_since_a_person_has_removed_some() {
        let directory = tempfile::tempdir().unwrap();
        let kept = Kept::new(directory.path());
        let changes = ["first", "other", "third"].map(|target| kept.put_change(&link(target)).unwrap());
        let size = fs::metadata(&changes[0]).unwrap().len();
        fs::remove_file(&changes[2]).unwrap();
        std::thread::sleep(index::LIST_AGAIN);
        assert!(kept.make_room(kept.index().as_mut().unwrap(), size, size * 3));
        assert_eq!(changes.each_ref().map(|path| path.exists()), [true, true, false]);
    }

    #[test]
    fn a_damaged_copy_that_is_written_again_takes_room_once() {
        let directory = tempfile::tempdir().unwrap();
        let kept = Kept::new(directory.path());
        let change = kept.put_change(&link("a")).unwrap();
        let size = fs::metadata(&change).unwrap().len();
        fs::write(&change, "damaged").unwrap();
        kept.put_change(&link("a")).unwrap();
        let index = kept.index();
        let to_go = index.as_ref().and_then(|index| index.in_the_way(size, size * 2));
        assert_eq!(to_go.map(|changes| changes.len()), Some(0), "there is room");
    }

    #[test]
    fn what_a_killed_run_did_not_write_to_its_end_takes_no_room() {
        let directory = tempfile::tempdir().unwrap();
        let kept = Kept::new(directory.path());
        fs::create_dir(directory.path().join("kept")).unwrap();
        fs::File::create(kept.path("0123.new")).unwrap().set_len(MOST).unwrap();
        kept.put(&link("a")).unwrap();
        assert!(!kept.path("0123.new").exists());
    }

    #[test]
    fn a_copy_that_is_not_what_was_written_is_damaged() {
        let directory = tempfile::tempdir().unwrap();
        let kept = Kept::new(directory.path());
        let (original, change) = (kept.put(&link("abc")).unwrap(), kept.put_change(&link("def")).unwrap());
        let change = change.file_name().unwrap().to_str().unwrap();
        for (name, from, to) in [(original.as_str(), "abc", "abd"), (change, "def", "deg")] {
            assert!(kept.get(name).is_ok());
            let text = fs::read_to_string(kept.path(name)).unwrap();
            fs::write(kept.path(name), text.replace(from, to)).unwrap();
            assert!(kept.get(name).is_err(), "{name}");
        }
        // What is kept again is written again.
        assert_eq!(kept.put(&link("abc")).unwrap(), original);
        assert_eq!(kept.get(&original).unwrap(), Some(link("abc")));
    }

    #[test]
    fn the_originals_of_an_earlier_version_are_named_in_the_states_of_their_items() {
        use crate::fs::short;
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
