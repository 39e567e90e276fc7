//! Which files changed: events of the kernel, gathered for a moment and put into terms of manifests and items.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use notify::event::{AccessKind, AccessMode, ModifyKind, RenameMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use setpoint_graph::{GraphId, ItemHandle, ItemRef};
use setpoint_host::{File, Manifest, is_foreign_file, path_of};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::Instant;

use super::events::EventWriter;
use super::links::links_to;
use crate::error::CliError;
use crate::jobs::host::error::why_unfollowed;
use crate::jobs::host::set::directory_of;
use crate::report::Report;

/// Events come in bursts: those that follow within this time are looked at together.
const BURST: Duration = Duration::from_millis(3);

/// A manifest that is being saved is empty, or half there, for a moment: it is read once it has not changed for this long.
pub(super) const QUIET: Duration = Duration::from_millis(200);
/// A file that somebody has open and wrote to is read once it was closed, or has not changed for this long.
const UNCLOSED: Duration = Duration::from_secs(5);
/// What else changed while a manifest is being saved may belong to it, and waits for it for this long at most.
const TOGETHER: Duration = Duration::from_secs(1);
/// Of a manifest that is being written for this long it is said that it is not read yet.
pub(super) const LONG: Duration = Duration::from_secs(5);

/// The time in which a manifest has to be left alone before it is read.
#[derive(Debug)]
struct QuietPeriod {
    /// When the first change was seen.
    began: Instant,
    end: Instant,
    is_reported: bool,
}

impl QuietPeriod {
    /// It begins with the first change that was seen.
    fn from(first: Instant) -> Self {
        Self { began: first, end: first + QUIET, is_reported: false }
    }

    /// It begins anew with each change, and is longer while somebody is about to write more.
    fn disturbed(&mut self, at: Instant, is_open: bool) {
        self.end = at + if is_open { UNCLOSED } else { QUIET };
    }

    /// Returns whether it takes so long that somebody should know, once.
    fn is_long(&mut self, now: Instant) -> bool {
        now.duration_since(self.began) >= LONG && !std::mem::replace(&mut self.is_reported, true)
    }
}

/// What may have changed.
#[derive(Debug)]
pub(super) struct Changes {
    pub(super) manifests: bool,
    /// The items to read again; none for all of them.
    pub(super) items: Option<BTreeSet<ItemRef>>,
}

impl Changes {
    pub(super) fn everything() -> Self {
        Self { manifests: true, items: None }
    }

    pub(super) fn nothing() -> Self {
        Self { manifests: false, items: Some(BTreeSet::new()) }
    }

    /// Something else may have changed as well.
    pub(super) fn add(&mut self, other: Self) {
        self.manifests |= other.manifests;
        self.items = match (self.items.take(), other.items) {
            (Some(mut items), Some(more)) => {
                items.extend(more);
                Some(items)
            }
            _ => None,
        };
    }
}

/// What was seen and not reported yet.
#[derive(Debug)]
struct Seen {
    changed: Changes,
    /// When changes are reported, other than those of manifests.
    burst: Option<Instant>,
    /// When a change of manifests is reported.
    quiet: Option<QuietPeriod>,
}

impl Seen {
    fn nothing() -> Self {
        Self { changed: Changes::nothing(), burst: None, quiet: None }
    }

    /// When some of it is reported; none while there is nothing.
    fn due(&self) -> Option<Instant> {
        match (&self.quiet, self.burst) {
            (None, burst) => burst,
            (Some(quiet), None) => Some(quiet.end),
            (Some(quiet), Some(burst)) => Some(quiet.end.min(burst.max(quiet.began + TOGETHER))),
        }
    }

    /// Takes what is to be reported at a time: all of it, or all but manifests that are still being saved.
    fn take(&mut self, now: Instant) -> Changes {
        if self.quiet.as_ref().is_none_or(|quiet| quiet.end <= now) {
            return std::mem::replace(self, Self::nothing()).changed;
        }
        self.burst = None;
        let items = self.changed.items.replace(BTreeSet::new());
        Changes { manifests: false, items }
    }
}

/// Follows the directories that matter.
pub(super) struct Follower {
    watcher: RecommendedWatcher,
    events: UnboundedReceiver<notify::Result<Event>>,
    /// The manifests, as the person wrote it: a file, or a directory of them.
    file: PathBuf,
    /// The directory of the manifests, which another one may take the place of where it is behind a link.
    manifests: PathBuf,
    /// The name of the manifest in it, where it is only one.
    single: Option<OsString>,
    /// The links on the way to manifests and their sources.
    links: BTreeSet<PathBuf>,
    /// YAML files beside the manifests that the set itself declares.
    managed: BTreeSet<PathBuf>,
    /// YAML files beside the manifests that are something else.
    foreign: BTreeSet<PathBuf>,
    /// Those of them that were written: when it is looked whether one is a manifest now.
    foreign_due: BTreeMap<PathBuf, Instant>,
    /// The set that was learned last.
    known: Option<GraphId>,
    /// The directories of manifests, of their sources, and of links on the way to them.
    sources: BTreeSet<PathBuf>,
    wanted: BTreeSet<PathBuf>,
    watched: BTreeSet<PathBuf>,
    /// Directories that could not be followed, of which a warning was written.
    unfollowed: BTreeSet<PathBuf>,
    by_path: BTreeMap<PathBuf, ItemRef>,
    /// The items directly in each directory.
    by_directory: BTreeMap<PathBuf, BTreeSet<ItemRef>>,
    /// The manifests and their sources by name, as the person wrote them.
    by_name: BTreeMap<OsString, Vec<PathBuf>>,
    /// Manifests that were written to, and not closed since.
    open: BTreeSet<PathBuf>,
    /// Files of items that were written to, and not closed since: when they are looked at all the same.
    open_items: BTreeMap<PathBuf, Instant>,
    /// Kept here, so that nothing of it is lost when something else ends the waiting.
    seen: Seen,
    writer: EventWriter,
}

impl Follower {
    pub(super) fn new(file: &Path, writer: EventWriter) -> Result<Self, CliError> {
        let (sender, events) = unbounded_channel();
        let watcher = notify::recommended_watcher(move |event| {
            // Nobody listens any more once the command ends.
            let _ = sender.send(event);
        })?;
        let manifests = directory_of(file).canonicalize().map_err(notify::Error::io)?;
        Ok(Self {
            watcher,
            events,
            file: file.to_path_buf(),
            manifests,
            single: None,
            links: BTreeSet::new(),
            managed: BTreeSet::new(),
            foreign: BTreeSet::new(),
            foreign_due: BTreeMap::new(),
            known: None,
            sources: BTreeSet::new(),
            wanted: BTreeSet::new(),
            watched: BTreeSet::new(),
            unfollowed: BTreeSet::new(),
            by_path: BTreeMap::new(),
            by_directory: BTreeMap::new(),
            by_name: BTreeMap::new(),
            open: BTreeSet::new(),
            open_items: BTreeMap::new(),
            seen: Seen::nothing(),
            writer,
        })
    }

    /// Follows all directories that hold a manifest, a source or an item. Gives the items that are in directories which
    /// were not followed before: what changed them until now was not seen.
    pub(super) fn follow(&mut self, manifest: &Manifest, report: Report) -> BTreeSet<ItemRef> {
        let mut unseen = BTreeSet::new();
        self.learn(manifest);
        // At the start everything is looked at.
        let is_first = self.watched.is_empty();
        let mut is_new = false;
        for path in self.wanted.difference(&self.watched).cloned().collect::<Vec<_>>() {
            if !path.is_dir() {
                continue;
            }
            match self.watcher.watch(&path, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    unseen.extend(self.by_directory.get(&path).into_iter().flatten().cloned());
                    is_new |= !is_first && self.sources.contains(&path);
                    self.watched.insert(path);
                }
                Err(error) => {
                    if self.unfollowed.insert(path.clone()) {
                        let (path, why) = (path.display(), why_unfollowed(&error));
                        report.warn(&format!(
                            "{path} can't be followed, and is read at the interval only: {why}"
                        ));
                    }
                }
            }
        }
        if is_new {
            // What changed the manifests there until now was not seen.
            self.add(Changes { manifests: true, ..Changes::nothing() });
        }
        unseen
    }

    /// Learns where the items of a manifest are, once.
    fn learn(&mut self, manifest: &Manifest) {
        if self.known.replace(manifest.graph().id()) == Some(manifest.graph().id()) {
            return;
        }
        let root = manifest.root();
        self.by_path = manifest
            .graph()
            .slots()
            .filter_map(|slot| manifest.graph().item_at(slot))
            .filter_map(|item| Some((path_in_root(item, root)?, item.reference().clone())))
            .collect();
        self.by_directory.clear();
        for (path, item) in &self.by_path {
            if let Some(directory) = path.parent() {
                self.by_directory.entry(directory.to_path_buf()).or_default().insert(item.clone());
            }
        }
        self.by_name.clear();
        for file in manifest.files() {
            let name = file.file_name().unwrap_or_default().to_owned();
            self.by_name.entry(name).or_default().push(file.clone());
        }
        if let Ok(manifests) = directory_of(&self.file).canonicalize() {
            self.manifests = manifests;
        }
        self.single = if self.file.is_dir() { None } else { self.file.file_name().map(ToOwned::to_owned) };
        let beside = |files: &[PathBuf]| -> BTreeSet<PathBuf> {
            files.iter().filter_map(|file| Some(self.manifests.join(file.file_name()?))).collect()
        };
        (self.managed, self.foreign) = (beside(manifest.managed()), beside(manifest.foreign()));
        let files = manifest.files().iter().map(PathBuf::as_path);
        self.links = links_to(files.chain([self.file.as_path()]));
        let sources = manifest.files().iter().filter_map(|file| file.canonicalize().ok());
        let directories = sources.chain(self.links.iter().cloned());
        self.sources = directories.filter_map(|file| file.parent().map(Path::to_path_buf)).collect();
        self.sources.insert(self.manifests.clone());
        self.wanted = self.sources.iter().chain(self.by_directory.keys()).cloned().collect();
        for gone in self.watched.difference(&self.wanted).cloned().collect::<Vec<_>>() {
            // The kernel may have let go of it already.
            let _ = self.watcher.unwatch(&gone);
            self.watched.remove(&gone);
        }
    }

    /// Waits until something that matters may have changed. Where this call is dropped, the next one reports what was seen.
    pub(super) async fn next(&mut self, manifest: &Manifest) -> Changes {
        loop {
            // A burst ends in time, also where something happens all the while.
            let now = Instant::now();
            self.look_at_foreign(now);
            self.look_at_unclosed(now);
            if self.seen.due().is_some_and(|due| due <= now) {
                return self.seen.take(now);
            }
            let later = self.foreign_due.values().chain(self.open_items.values()).copied();
            let due = self.seen.due().into_iter().chain(later).min();
            let event = match due {
                None => self.events.recv().await,
                Some(due) => match tokio::time::timeout_at(due, self.events.recv()).await {
                    Ok(event) => event,
                    Err(_) => continue,
                },
            };
            // The watcher lives as long as this does, so that the channel never closes.
            let Some(event) = event else { return Changes::everything() };
            self.see(event, manifest);
            if self.seen.quiet.as_mut().is_some_and(|quiet| quiet.is_long(Instant::now())) {
                // A line that can't be written stops nothing.
                let _ = self.writer.being_written();
            }
        }
    }

    /// Everything there is to look at without an event; but for manifests that are being saved, which are read later.
    pub(super) fn everything(&mut self, manifest: &Manifest) -> Changes {
        while let Ok(event) = self.events.try_recv() {
            self.see(event, manifest);
        }
        let is_quiet = self.seen.quiet.is_none();
        if is_quiet && were_written_since(manifest.files(), quiet_before(SystemTime::now())) {
            self.add(Changes { manifests: true, ..Changes::nothing() });
        }
        Changes { manifests: self.seen.quiet.is_none(), items: None }
    }

    /// Looks at files that were no manifests, and were left alone for a moment since they were written.
    fn look_at_foreign(&mut self, now: Instant) {
        let due = self.foreign_due.extract_if(.., |_, due| *due <= now);
        let is_manifest = due.filter(|(file, _)| !is_foreign_file(file)).count() > 0;
        if is_manifest {
            self.add(Changes { manifests: true, ..Changes::nothing() });
        }
    }

    /// Looks at files of items that nobody has closed, and nobody has written to for some time.
    fn look_at_unclosed(&mut self, now: Instant) {
        let due = self.open_items.extract_if(.., |_, due| *due <= now);
        let items: BTreeSet<ItemRef> = due.filter_map(|(path, _)| self.by_path.get(&path).cloned()).collect();
        if !items.is_empty() {
            self.add(Changes { manifests: false, items: Some(items) });
        }
    }

    /// Takes in an event.
    fn see(&mut self, event: notify::Result<Event>, manifest: &Manifest) {
        let mut changed = Changes::nothing();
        self.learn(manifest);
        self.note(&mut changed, event);
        self.add(changed);
    }

    /// Sees what has changed, as if that had happened just now: it is reported when the time for that has come.
    pub(super) fn add(&mut self, changed: Changes) {
        let now = Instant::now();
        if changed.manifests {
            let is_open = !self.open.is_empty();
            self.seen.quiet.get_or_insert_with(|| QuietPeriod::from(now)).disturbed(now, is_open);
        }
        if changed.items.as_ref().is_none_or(|items| !items.is_empty()) {
            self.seen.burst.get_or_insert(now + BURST);
        }
        self.seen.changed.add(changed);
    }

    fn note(&mut self, seen: &mut Changes, event: notify::Result<Event>) {
        let Ok(event) = event else {
            *seen = Changes::everything();
            return;
        };
        if event.need_rescan() {
            *seen = Changes::everything();
            return;
        }
        if event.kind == EventKind::Access(AccessKind::Close(AccessMode::Write)) {
            // Whoever wrote it is done.
            seen.manifests = event.paths.iter().filter(|path| self.open.remove(*path)).count() > 0;
            let closed = event.paths.iter().filter(|path| self.open_items.remove(*path).is_some());
            seen.items = Some(closed.filter_map(|path| self.by_path.get(path).cloned()).collect());
            return;
        }
        if event.kind.is_access() {
            return;
        }
        for path in &event.paths {
            if event.kind.is_remove() || is_moved_away(event.kind) {
                self.unfollow(path);
            }
            let is_link = self.links.contains(path);
            let is_read = is_link || self.is_read(path);
            let is_managed = self.managed.contains(path) || self.by_path.contains_key(path);
            let is_beside = self.is_beside(path) && !is_managed;
            // One that is new may be something else as well, and be written all the while.
            if !is_read && is_beside && (self.foreign.contains(path) || is_foreign_file(path)) {
                if self.foreign.insert(path.clone()) || path.exists() {
                    self.foreign_due.insert(path.clone(), Instant::now() + QUIET);
                }
                continue;
            }
            if is_link {
                // What is behind it is somewhere else now.
                self.known = None;
            }
            if is_read || is_beside {
                seen.manifests = true;
                match event.kind {
                    EventKind::Modify(ModifyKind::Data(_)) => self.open.insert(path.clone()),
                    EventKind::Modify(ModifyKind::Name(_)) | EventKind::Remove(_) => self.open.remove(path),
                    _ => false,
                };
            }
            let is_written = matches!(event.kind, EventKind::Modify(ModifyKind::Data(_)));
            if is_written && self.by_path.contains_key(path) {
                // There may be more to come.
                self.open_items.insert(path.clone(), Instant::now() + UNCLOSED);
                continue;
            }
            if event.kind.is_remove() || matches!(event.kind, EventKind::Modify(ModifyKind::Name(_))) {
                self.open_items.remove(path);
            }
            if let Some(items) = &mut seen.items {
                // A directory that comes or goes takes along what is in it.
                let inside = self.by_path.range(path.clone()..).take_while(|(at, _)| at.starts_with(path));
                items.extend(inside.map(|(_, item)| item.clone()));
            }
        }
    }

    /// Returns whether a path, which is whole, is the one of a file that the set was read from.
    fn is_read(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or(OsStr::new(""));
        self.by_name.get(name).into_iter().flatten().any(|file| leads_to(file, path))
    }

    /// Returns whether a path, which is whole, is one that a manifest may have.
    fn is_beside(&self, path: &Path) -> bool {
        let is_one = || match &self.single {
            Some(single) => path.file_name() == Some(single),
            None => is_yaml(path),
        };
        path.parent() == Some(&self.manifests) && is_one()
    }

    /// Does not follow a directory any more that is not at its path: another one may come there.
    fn unfollow(&mut self, path: &Path) {
        let inside = self.watched.range(path.to_path_buf()..).take_while(|watched| watched.starts_with(path));
        for path in inside.cloned().collect::<Vec<_>>() {
            // The kernel may have let go of it already.
            let _ = self.watcher.unwatch(&path);
            self.watched.remove(&path);
        }
    }
}

/// The manifests at a path: the file, or those in the directory.
pub(super) fn manifests_at(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = path.read_dir() else { return vec![path.to_path_buf()] };
    let files = entries.flatten().map(|entry| entry.path());
    files.filter(|path| is_yaml(path) && !path.is_dir() && !is_foreign_file(path)).collect()
}

/// What was written before this was left alone for long enough by a time.
pub(super) fn quiet_before(time: SystemTime) -> SystemTime {
    time.checked_sub(QUIET).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Returns whether a file was written since a time.
pub(super) fn were_written_since(files: &[PathBuf], since: SystemTime) -> bool {
    files.iter().any(|file| {
        let written = file.metadata().and_then(|metadata| metadata.modified());
        // A time that is to come says nothing. Now is asked for last: what is written while this looks is not to come.
        written.is_ok_and(|at| at > since && at <= SystemTime::now())
    })
}

/// Returns whether a file is read as a manifest in a directory of them.
fn is_yaml(path: &Path) -> bool {
    let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml") && !is_hidden
}

/// Returns whether something is not at its path any more because it was renamed.
fn is_moved_away(kind: EventKind) -> bool {
    matches!(kind, EventKind::Modify(ModifyKind::Name(RenameMode::From | RenameMode::Both)))
}

/// Returns whether a manifest, which is named as the person wrote it, is the file of an event, which is named by its whole path.
fn leads_to(file: &Path, path: &Path) -> bool {
    file.canonicalize().is_ok_and(|file| file == path)
}

/// Where an item is, if it is anywhere.
fn path_in_root(item: &ItemHandle, root: &Path) -> Option<PathBuf> {
    // What is added to a log is none of anybody's business.
    let is_log = item.get::<File>().is_some_and(|file| file.log);
    let path = path_of(item).filter(|_| !is_log);
    path.map(|path| path.in_root(root))
}

#[cfg(test)]
mod tests;
