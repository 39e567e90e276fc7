//! Where things are: a path leads to an item only through the directory that the item is known by.
//!
//! A rename and the engine's record of its end are two steps, and a directory that moves takes along what is inside of it,
//! whose new path the engine records one item at a time. So whoever looks for an item at its path first asks whether that leads to the directory
//! that was noted of it. If it does not, the directory may be where another item, or a note of a rename, says; if it is not,
//! what is at the path is not the item, whatever it holds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use setpoint_graph::ItemRef;

use super::notes::PathNote;
use crate::fs::{FileType, FsError, Number, Root};
use crate::item::RootPath;

/// How many directories around a thing may have moved, one inside the other.
const NESTED: usize = 16;
/// How often something is looked for again that may have been missed.
const TRIES: usize = 16;

/// Where an item is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Location {
    pub(crate) path: RootPath,
    /// The directory that it has to be in when something is done to it; none if that is not known, or nothing is there.
    pub(crate) within: Option<Number>,
}

/// Whether what is not found is known not to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Certainty {
    Sure,
    /// Another directory was in a place where it may be: it is looked for again, as somebody may have let the two change places.
    Doubtful,
}

/// What becomes of an item that is not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfMissing {
    /// It is made again where it belongs.
    MadeAgain,
    /// It is not wanted any more, and forgotten: what is only not mounted must not be missing.
    Forgotten,
    /// Its original is put back, in the directory that it was in.
    PutBack,
}

/// The places of all directories that are known.
#[derive(Debug, Default)]
pub(crate) struct DirectoryIndex(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    by_number: BTreeMap<Number, Vec<RootPath>>,
    by_item: BTreeMap<ItemRef, Number>,
    /// All paths of these.
    paths: BTreeSet<RootPath>,
    /// Those that were moved since what the engine knows was saved.
    moved: BTreeMap<ItemRef, Moved>,
    /// The same by the paths where they were or are.
    moved_by_path: BTreeMap<RootPath, BTreeSet<ItemRef>>,
}

/// A directory that was moved: which one, and where it was or is.
#[derive(Debug)]
struct Moved {
    number: Number,
    paths: Vec<RootPath>,
}

impl DirectoryIndex {
    /// Forgets all directories.
    pub(crate) fn clear(&self) {
        *self.known() = Known::default();
    }

    /// Learns where a directory is, from its path and what is noted of it.
    pub(crate) fn learn(&self, item: &ItemRef, path: &RootPath, note: &PathNote) {
        let Some(number) = note.directory() else { return };
        let mut paths = vec![path.clone()];
        paths.extend(note.moved.iter().rev().flat_map(|one| [one.to.clone(), one.from.clone()]));
        let mut known = self.known();
        known.by_number.entry(number).or_default().extend(paths.iter().cloned());
        known.by_item.insert(item.clone(), number);
        known.paths.extend(paths.iter().cloned());
        if !note.moved.is_empty() {
            for path in &paths {
                known.moved_by_path.entry(path.clone()).or_default().insert(item.clone());
            }
            known.moved.insert(item.clone(), Moved { number, paths });
        }
    }

    /// Where the directory of an item is, if it is not around a path.
    pub(crate) fn elsewhere(&self, root: &Root, item: &ItemRef, path: &RootPath) -> Option<RootPath> {
        let known = self.known();
        let number = *known.by_item.get(item)?;
        let mut around =
            std::iter::successors(path.parent(), |path| path.rsplit_once('/').map(|(outer, _)| outer));
        let is_around = around.any(|path| root.directory(path).is_some_and(|found| number.is(found)));
        if is_around { None } else { known.find(root, number, NESTED) }
    }

    /// The item of the directory that a path is in, of those that are known.
    pub(crate) fn around(&self, root: &Root, path: &RootPath) -> Option<ItemRef> {
        let around = root.holder(path)?;
        let known = self.known();
        known.by_item.iter().find(|(_, number)| number.is(around)).map(|(item, _)| item.clone())
    }

    /// Returns whether a path is in a directory that is not there and that nobody looks after, and what was in it is not just
    /// gone with it.
    pub(crate) fn is_away(&self, root: &Root, path: &RootPath, missing: IfMissing) -> bool {
        let Some(around) = path.parent() else { return false };
        let known = self.known();
        let is_away = root.holder(path).is_none() && !known.looks_after(around);
        is_away && !known.is_gone(root, path, missing)
    }

    /// Where a directory is now. Another one in its place is an error.
    pub(crate) fn directory(
        &self,
        root: &Root,
        path: &RootPath,
        note: &PathNote,
    ) -> Result<Location, FsError> {
        let at = |path: &RootPath| Ok(Location { path: path.clone(), within: None });
        let Some(number) = note.directory() else {
            // Only its path is known.
            let carried = || self.known().carried(root, path, NESTED).into_iter();
            let there = if root.stat(path)?.is_none() {
                carried().find(|path| root.directory(path.as_str()).is_some())
            } else {
                None
            };
            return at(&there.unwrap_or_else(|| path.clone()));
        };
        let is = |path: &RootPath| root.directory(path.as_str()).is_some_and(|found| number.is(found));
        let own = || note.moved.iter().rev().flat_map(|one| [&one.to, &one.from]);
        let mut unseen = None;
        for path in std::iter::once(path).chain(own()) {
            match root.look_for_directory(path.as_str()) {
                Ok(found) if found.is_some_and(|found| number.is(found)) => return at(path),
                Ok(_) => {}
                Err(error) => unseen = Some(error),
            }
        }
        let known = self.known();
        let carried = std::iter::once(path).chain(own()).flat_map(|path| known.carried(root, path, NESTED));
        if let Some(path) = carried.into_iter().find(|path| is(path)) {
            return at(&path);
        }
        if let Some(path) = known.find(root, number, NESTED) {
            return at(&path);
        }
        match root.stat(path)? {
            Some(found) if found.kind == FileType::Directory => Err(FsError::replaced(path)),
            // It may be where nobody could look.
            None => unseen.map_or_else(|| at(path), Err),
            Some(_) => at(path),
        }
    }

    /// Where a file or a link is now: at its path, or where it has moved. What is at its path in another directory than before
    /// is an error; so is nothing at its path, in another directory than before, of what is not just gone.
    pub(crate) fn entry(
        &self,
        root: &Root,
        path: &RootPath,
        note: &PathNote,
        missing: IfMissing,
    ) -> Result<Location, FsError> {
        let mut tries = 0;
        loop {
            let (location, certainty) = self.look_for_entry(root, path, note, missing)?;
            if certainty == Certainty::Sure || tries == TRIES {
                return Ok(location);
            }
            tries += 1;
        }
    }

    /// Looks once.
    fn look_for_entry(
        &self,
        root: &Root,
        path: &RootPath,
        note: &PathNote,
        missing: IfMissing,
    ) -> Result<(Location, Certainty), FsError> {
        let sure = |location: Location| Ok((location, Certainty::Sure));
        let is_within =
            |path: &RootPath, within: Number| root.holder(path).is_some_and(|found| within.is(found));
        if note.moved.is_empty()
            && let Some(within) = note.known_by
            && is_within(path, within)
        {
            return sure(Location { path: path.clone(), within: Some(within) });
        }
        if note.known_by.is_none() && is_unmounted(root, path, note) {
            return Err(FsError::unreachable(path));
        }
        // Its own moves, one after the other.
        let mut trail = vec![(path, note.within(path, || root.holder(path)))];
        for own in &note.moved {
            if trail.last().is_some_and(|(at, _)| **at == own.from) {
                trail.push((&own.to, own.into));
            }
        }
        // What was read after a run was cut off may be with the directory that it moved into, at another path since.
        if let ([_], Some(last)) = (trail.as_slice(), note.moved.last())
            && last.to.file_name() == path.file_name()
            && let Some(into) = last.into
            && is_within(path, into)
        {
            return sure(Location { path: path.clone(), within: Some(into) });
        }
        let known = self.known();
        let mut locations: Vec<Location> = Vec::new();
        let mut certainty = Certainty::Sure;
        let mut at_its_path = 0;
        let mut unseen = None;
        for (step, (path, within)) in trail.into_iter().enumerate() {
            // Looked at once: a directory may be swapped between two looks.
            match within.map(|_| root.look_for_directory(path.parent().unwrap_or_default())) {
                Some(Ok(found)) if !found.zip(within).is_some_and(|(found, within)| within.is(found)) => {}
                Some(Err(error)) => unseen = Some(error),
                None | Some(Ok(_)) => locations.push(Location { path: path.clone(), within }),
            }
            let mut candidates = Vec::new();
            if let Some(directory) = within.and_then(|within| known.find(root, within, NESTED)) {
                candidates.extend(RootPath::new(&format!("{directory}/{}", path.file_name())));
            }
            candidates.extend(known.carried(root, path, NESTED));
            for path in candidates {
                if within.is_none_or(|within| is_within(&path, within)) {
                    locations.push(Location { path, within });
                } else if !note.moved.is_empty() {
                    certainty = Certainty::Doubtful;
                }
            }
            if step == 0 {
                at_its_path = locations.len();
            }
        }
        if let Some(last) = note.moved.last() {
            for location in &locations {
                // It is the very one that was moved.
                if root.number(&location.path)?.is_some_and(|found| last.number.is(found)) {
                    return sure(location.clone());
                }
            }
        }
        // Its content may have been replaced since: it is at its path, or at the last place where something is.
        locations.get_mut(at_its_path..).unwrap_or_default().reverse();
        for location in locations {
            if root.stat(&location.path)?.is_some() {
                return sure(location);
            }
        }
        let there = root.stat(path)?;
        if there.is_none()
            && let Some(unseen) = unseen
        {
            // It may be where nobody could look.
            return Err(unseen);
        }
        match there {
            Some(_) => Err(FsError::elsewhere(path)),
            None if is_unmounted(root, path, note) => Err(FsError::unreachable(path)),
            // Nobody looks after the directory that it was in.
            None if note.moved.is_empty()
                && path.parent().is_some()
                && note.known_by.is_some_and(|within| {
                    !is_within(path, within) && !known.by_number.contains_key(&within)
                })
                && !known.is_gone(root, path, missing) =>
            {
                Err(FsError::unreachable(path))
            }
            None => Ok((Location { path: path.clone(), within: None }, certainty)),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether a file system is not mounted that was, on the way to what is noted.
pub(crate) fn is_unmounted(root: &Root, path: &RootPath, note: &PathNote) -> bool {
    note.moved.is_empty() && note.mounts > 0 && root.mounts(path) < note.mounts
}

impl Known {
    /// Returns whether a directory at this path is looked after.
    fn looks_after(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    /// Returns whether what was at a path is gone for good with the directory around it, where that is not the one that it was.
    ///
    /// A file system that is not mounted leaves an empty directory behind: another one than before in its place, or around it.
    fn is_gone(&self, root: &Root, path: &RootPath, missing: IfMissing) -> bool {
        match missing {
            IfMissing::MadeAgain => return true,
            IfMissing::PutBack => return false,
            IfMissing::Forgotten => {}
        }
        let mut around = path.parent();
        while let Some(directory) = around {
            if root.directory(directory).is_some() {
                let is_around_it = path.parent() == Some(directory);
                return !is_around_it && (self.looks_after(directory) || !root.is_empty(directory));
            }
            around = directory.rsplit_once('/').map(|(outer, _)| outer);
        }
        // Only the root is left, and that is the one that it was.
        true
    }

    /// Where a directory is, of those that are known.
    fn find(&self, root: &Root, number: Number, nested: usize) -> Option<RootPath> {
        let paths = self.by_number.get(&number)?;
        self.find_at(root, number, paths, nested)
    }

    fn find_at(&self, root: &Root, number: Number, paths: &[RootPath], nested: usize) -> Option<RootPath> {
        let is = |path: &RootPath| root.directory(path.as_str()).is_some_and(|found| number.is(found));
        let there = paths.iter().find(|path| is(path)).cloned();
        there.or_else(|| paths.iter().flat_map(|path| self.carried(root, path, nested)).find(|path| is(path)))
    }

    /// Where a path may lead now that directories around it have moved.
    fn carried(&self, root: &Root, path: &RootPath, nested: usize) -> Vec<RootPath> {
        let Some(nested) = nested.checked_sub(1) else { return Vec::new() };
        let mut locations = Vec::new();
        let around =
            std::iter::successors(path.parent(), |path| path.rsplit_once('/').map(|(outer, _)| outer));
        let moved: BTreeSet<&ItemRef> =
            around.filter_map(|path| self.moved_by_path.get(path)).flatten().collect();
        for Moved { number, paths } in moved.into_iter().filter_map(|item| self.moved.get(item)) {
            let inside = |around: &RootPath| path.as_str().strip_prefix(around.as_str())?.strip_prefix('/');
            let Some(inside) = paths.iter().find_map(inside) else { continue };
            if let Some(there) = self.find_at(root, *number, paths, nested) {
                locations.extend(RootPath::new(&format!("{there}/{inside}")));
            }
        }
        locations
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;
    use crate::configure::notes::Move;

    struct Sandbox {
        directory: tempfile::TempDir,
        root: Root,
        locations: DirectoryIndex,
    }

    impl Sandbox {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let root = Root::open(directory.path()).unwrap();
            Self { directory, root, locations: DirectoryIndex::default() }
        }

        fn at(&self, path: &str) -> PathBuf {
            self.directory.path().join(path)
        }

        fn note_of(&self, path: &str) -> PathNote {
            let path = RootPath::new(path).unwrap();
            let known_by = match self.root.stat(&path).unwrap() {
                Some(found) if found.kind == FileType::Directory => {
                    self.root.lasting_directory(path.as_str())
                }
                _ => self.root.lasting_holder(&path),
            };
            PathNote { known_by, ..PathNote::default() }
        }

        fn note_move(&self, note: &mut PathNote, from: &str, to: &str) {
            let (from, to) = (path(from), path(to));
            let number = self.root.number(&from).unwrap().unwrap();
            let into = self.root.lasting_holder(&to);
            note.moved.push(Move { from, to, number, into });
        }

        fn rename(&self, note: &mut PathNote, from: &str, to: &str) {
            self.note_move(note, from, to);
            fs::rename(self.at(from), self.at(to)).unwrap();
        }

        fn file(&self, from: &str, note: &PathNote) -> String {
            self.locations
                .entry(&self.root, &path(from), note, IfMissing::MadeAgain)
                .unwrap()
                .path
                .to_string()
        }
    }

    fn path(text: &str) -> RootPath {
        RootPath::new(text).unwrap()
    }

    fn directory(name: &str) -> ItemRef {
        ItemRef::new("directory", name)
    }

    #[test]
    fn a_rename_that_nobody_could_note_any_more_is_told_from_a_loss() {
        let sandbox = Sandbox::new();
        fs::write(sandbox.at("old"), "x").unwrap();
        let mut note = sandbox.note_of("old");
        sandbox.note_move(&mut note, "old", "new");
        assert_eq!(sandbox.file("old", &note), "old", "not yet");
        fs::rename(sandbox.at("old"), sandbox.at("new")).unwrap();
        assert_eq!(sandbox.file("old", &note), "new", "killed after it");
        assert_eq!(sandbox.file("old", &sandbox.note_of("old")), "old", "another item");
        fs::write(sandbox.at("old"), "somebody else's").unwrap();
        assert_eq!(sandbox.file("old", &note), "new", "it is the very one that was moved");
        fs::remove_file(sandbox.at("old")).unwrap();
        fs::write(sandbox.at("beside"), "replaced").unwrap();
        fs::rename(sandbox.at("beside"), sandbox.at("new")).unwrap();
        assert_eq!(sandbox.file("old", &note), "new", "with another content");
    }

    #[test]
    fn what_was_in_a_directory_that_is_gone_is_gone_unless_that_may_not_be_mounted() {
        let sandbox = Sandbox::new();
        let is_gone = |note: &PathNote, at: &str, missing: IfMissing| {
            sandbox.locations.entry(&sandbox.root, &path(at), note, missing).is_ok()
        };
        for (at, others, gone) in [
            ("d/f", None, true),
            ("etc/d/f", Some("etc/hosts"), true),
            // As empty as a mount point.
            ("disk/d/f", Some("hosts"), false),
            // In the place of the one that it was.
            ("mount/f", Some("mount/other"), false),
        ] {
            fs::create_dir_all(sandbox.at(at).parent().unwrap()).unwrap();
            fs::write(sandbox.at(at), "x").unwrap();
            let note = sandbox.note_of(at);
            // Its number may be given again where it is removed.
            fs::rename(sandbox.at(at).parent().unwrap(), sandbox.at(&at.replace('/', "-"))).unwrap();
            if let Some(other) = others {
                fs::create_dir_all(sandbox.at(other).parent().unwrap()).unwrap();
                fs::write(sandbox.at(other), "").unwrap();
            }
            assert_eq!(is_gone(&note, at, IfMissing::Forgotten), gone, "{at}");
            assert!(is_gone(&note, at, IfMissing::MadeAgain), "{at}");
            assert!(!is_gone(&note, at, IfMissing::PutBack), "{at}");
        }
    }

    #[test]
    fn several_moves_lead_to_the_last_place_where_something_is() {
        let sandbox = Sandbox::new();
        fs::write(sandbox.at("a"), "x").unwrap();
        let mut note = sandbox.note_of("a");
        sandbox.rename(&mut note, "a", "b");
        sandbox.rename(&mut note, "b", "c");
        fs::write(sandbox.at("b"), "another").unwrap();
        assert_eq!(sandbox.file("a", &note), "c");
        sandbox.note_move(&mut note, "c", "d");
        assert_eq!(sandbox.file("a", &note), "c", "noted, and not done");
    }

    #[test]
    fn what_is_inside_of_a_moved_directory_is_found() {
        let sandbox = Sandbox::new();
        fs::create_dir_all(sandbox.at("old/in")).unwrap();
        fs::write(sandbox.at("old/in/f"), "x").unwrap();
        let (file, mut note) = (sandbox.note_of("old/in/f"), sandbox.note_of("old"));
        sandbox.rename(&mut note, "old", "new");
        sandbox.locations.learn(&directory("d"), &path("old"), &note);
        assert_eq!(sandbox.file("old/in/f", &file), "new/in/f");
        assert_eq!(
            sandbox.file("old/in/f", &PathNote::default()),
            "new/in/f",
            "of what an earlier version made"
        );
        assert_eq!(sandbox.file("old/in/g", &file), "old/in/g", "it is not there");
        // On its way back it is still found, before and after the rename.
        sandbox.note_move(&mut note, "new", "old");
        sandbox.locations.learn(&directory("d"), &path("old"), &note);
        assert_eq!(sandbox.file("old/in/f", &file), "new/in/f");
        // Also when the directory around that moves.
        fs::create_dir(sandbox.at("outer")).unwrap();
        let mut outer = sandbox.note_of("outer");
        sandbox.rename(&mut note, "new", "outer/new");
        sandbox.locations.learn(&directory("d"), &path("old"), &note);
        sandbox.rename(&mut outer, "outer", "other");
        sandbox.locations.learn(&directory("outer"), &path("outer"), &outer);
        assert_eq!(sandbox.file("old/in/f", &file), "other/new/in/f");
        assert_eq!(
            sandbox.locations.directory(&sandbox.root, &path("old"), &note).unwrap().path,
            path("other/new")
        );
    }

    #[test]
    fn what_was_moved_into_a_directory_that_moved_then_is_known_where_it_was_read() {
        let sandbox = Sandbox::new();
        for name in ["shared", "d"] {
            fs::create_dir(sandbox.at(name)).unwrap();
        }
        fs::write(sandbox.at("shared/f"), "x").unwrap();
        let mut note = sandbox.note_of("shared/f");
        sandbox.rename(&mut note, "shared/f", "d/g");
        fs::rename(sandbox.at("d"), sandbox.at("e")).unwrap();
        assert_eq!(sandbox.file("e/g", &note), "e/g");
        // Another directory in that place does not hold it.
        fs::rename(sandbox.at("e"), sandbox.at("away")).unwrap();
        fs::create_dir(sandbox.at("e")).unwrap();
        fs::write(sandbox.at("e/g"), "somebody's").unwrap();
        let entry = sandbox.locations.entry(&sandbox.root, &path("e/g"), &note, IfMissing::MadeAgain);
        assert!(matches!(entry, Err(FsError::Elsewhere { .. })), "{entry:?}");
    }

    #[test]
    fn what_can_not_be_looked_at_is_not_taken_for_gone() {
        let sandbox = Sandbox::new();
        fs::create_dir(sandbox.at("d")).unwrap();
        fs::write(sandbox.at("d/old"), "x").unwrap();
        let mut note = sandbox.note_of("d/old");
        sandbox.rename(&mut note, "d/old", "d/new");
        fs::rename(sandbox.at("d"), sandbox.at("away")).unwrap();
        std::os::unix::fs::symlink("/", sandbox.at("d")).unwrap();
        assert!(sandbox.locations.entry(&sandbox.root, &path("d/old"), &note, IfMissing::MadeAgain).is_err());
        // Nor is what has moved into it from somewhere else.
        for name in ["other/old", "other/dir"] {
            fs::create_dir_all(sandbox.at("other/dir")).unwrap();
            fs::write(sandbox.at("other/old"), "x").unwrap();
            fs::remove_file(sandbox.at("d")).unwrap();
            fs::rename(sandbox.at("away"), sandbox.at("d")).unwrap();
            let mut note = sandbox.note_of(name);
            sandbox.rename(&mut note, name, "d/other");
            fs::rename(sandbox.at("d"), sandbox.at("away")).unwrap();
            std::os::unix::fs::symlink("/", sandbox.at("d")).unwrap();
            let found = if name == "other/dir" {
                sandbox.locations.directory(&sandbox.root, &path(name), &note)
            } else {
                sandbox.locations.entry(&sandbox.root, &path(name), &note, IfMissing::MadeAgain)
            };
            assert!(found.is_err(), "{found:?}");
            fs::remove_dir_all(sandbox.at("away/other"))
                .or_else(|_| fs::remove_file(sandbox.at("away/other")))
                .unwrap();
        }
    }

    #[test]
    fn what_is_behind_another_directory_than_before_is_not_the_item() {
        let sandbox = Sandbox::new();
        fs::create_dir(sandbox.at("d")).unwrap();
        fs::write(sandbox.at("d/f"), "x").unwrap();
        let (file, dir) = (sandbox.note_of("d/f"), sandbox.note_of("d"));
        fs::rename(sandbox.at("d"), sandbox.at("away")).unwrap();
        assert_eq!(sandbox.file("d/f", &file), "d/f", "it is gone");
        fs::create_dir(sandbox.at("d")).unwrap();
        assert_eq!(sandbox.file("d/f", &file), "d/f", "nothing is there");
        fs::write(sandbox.at("d/f"), "x").unwrap();
        let entry = || sandbox.locations.entry(&sandbox.root, &path("d/f"), &file, IfMissing::MadeAgain);
        assert!(matches!(entry(), Err(FsError::Elsewhere { .. })), "{:?}", entry());
        let replaced = sandbox.locations.directory(&sandbox.root, &path("d"), &dir);
        assert!(matches!(replaced, Err(FsError::Replaced { .. })), "{replaced:?}");
        fs::remove_dir_all(sandbox.at("d")).unwrap();
        std::os::unix::fs::symlink("away", sandbox.at("d")).unwrap();
        assert_eq!(entry().unwrap().path, path("d/f"), "a link to the very directory leads to the very file");
        // One that another item says it is in is where that is.
        fs::remove_file(sandbox.at("d")).unwrap();
        sandbox.locations.learn(&directory("d"), &path("away"), &dir);
        assert_eq!(entry().unwrap().path, path("away/f"));
    }
}
