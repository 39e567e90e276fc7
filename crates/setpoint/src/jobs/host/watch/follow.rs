//! Which files changed: events of the kernel, gathered for a moment and put into terms of manifests and items.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use notify::event::{AccessKind, AccessMode, ModifyKind, RenameMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use setpoint_graph::{GraphId, ItemHandle, ItemRef};
use setpoint_host::{File, Manifest, path_of};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::Instant;

use super::events::EventWriter;
use crate::error::CliError;
use crate::report::Report;

/// Events come in bursts: those that follow within this time are looked at together.
const BURST: Duration = Duration::from_millis(3);

/// A manifest that is being saved is empty, or half there, for a moment: it is read once it has not changed for this long.
pub(super) const QUIET: Duration = Duration::from_millis(200);
/// One that somebody has open and wrote to is read once it was closed, or has not changed for this long.
const UNCLOSED: Duration = Duration::from_secs(5);
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
pub(super) struct Changed {
    pub(super) manifests: bool,
    /// The items to read again; none for all of them.
    pub(super) items: Option<BTreeSet<ItemRef>>,
}

impl Changed {
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

    fn is_nothing(&self) -> bool {
        !self.manifests && self.items.as_ref().is_some_and(BTreeSet::is_empty)
    }
}

/// What was seen and not reported yet.
#[derive(Debug)]
struct Seen {
    changed: Changed,
    /// When changes are reported, other than those of manifests.
    burst: Option<Instant>,
    /// When a change of manifests is reported.
    quiet: Option<QuietPeriod>,
}

impl Seen {
    fn nothing() -> Self {
        Self { changed: Changed::nothing(), burst: None, quiet: None }
    }

    /// When it is reported; none while there is nothing.
    fn due(&self) -> Option<Instant> {
        self.quiet.as_ref().map(|quiet| quiet.end).or(self.burst)
    }
}

/// Follows the directories that matter.
pub(super) struct Follower {
    watcher: RecommendedWatcher,
    events: UnboundedReceiver<notify::Result<Event>>,
    /// The directory of the manifests.
    manifests: PathBuf,
    /// The set that was learned last.
    known: Option<GraphId>,
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
        let directory = if file.is_dir() { file } else { file.parent().unwrap_or(Path::new("")) };
        let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
        let manifests = directory.canonicalize().map_err(notify::Error::io)?;
        Ok(Self {
            watcher,
            events,
            manifests,
            known: None,
            wanted: BTreeSet::new(),
            watched: BTreeSet::new(),
            unfollowed: BTreeSet::new(),
            by_path: BTreeMap::new(),
            by_directory: BTreeMap::new(),
            by_name: BTreeMap::new(),
            open: BTreeSet::new(),
            seen: Seen::nothing(),
            writer,
        })
    }

    /// Follows all directories that hold a manifest, a source or an item. Gives the items that are in directories which
    /// were not followed before: what changed them until now was not seen.
    pub(super) fn follow(&mut self, manifest: &Manifest, report: Report) -> BTreeSet<ItemRef> {
        let mut unseen = BTreeSet::new();
        self.learn(manifest);
        for path in self.wanted.difference(&self.watched).cloned().collect::<Vec<_>>() {
            if !path.is_dir() {
                continue;
            }
            match self.watcher.watch(&path, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    unseen.extend(self.by_directory.get(&path).into_iter().flatten().cloned());
                    self.watched.insert(path);
                }
                Err(error) => {
                    if self.unfollowed.insert(path.clone()) {
                        let path = path.display();
                        report.warn(&format!(
                            "{path} can't be followed, and is read at the interval only: {error}"
                        ));
                    }
                }
            }
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
        let sources = manifest.files().iter().filter_map(|file| file.canonicalize().ok());
        let sources = sources.filter_map(|file| file.parent().map(Path::to_path_buf));
        self.wanted = sources.chain(self.by_directory.keys().cloned()).collect();
        self.wanted.insert(self.manifests.clone());
        for gone in self.watched.difference(&self.wanted).cloned().collect::<Vec<_>>() {
            // The kernel may have let go of it already.
            let _ = self.watcher.unwatch(&gone);
            self.watched.remove(&gone);
        }
    }

    /// Waits until something that matters may have changed. Where this call is dropped, the next one reports what was seen.
    pub(super) async fn next(&mut self, manifest: &Manifest) -> Changed {
        loop {
            let event = match self.seen.due() {
                None => self.events.recv().await,
                // A burst ends in time, also where something reads the files all the while.
                Some(due) => match tokio::time::timeout_at(due, self.events.recv()).await {
                    Ok(event) => event,
                    Err(_) => return std::mem::replace(&mut self.seen, Seen::nothing()).changed,
                },
            };
            // The watcher lives as long as this does, so that the channel never closes.
            let Some(event) = event else { return Changed::everything() };
            self.see(event, manifest);
            if self.seen.quiet.as_mut().is_some_and(|quiet| quiet.is_long(Instant::now())) {
                // A line that can't be written stops nothing.
                let _ = self.writer.being_written();
            }
        }
    }

    /// Everything there is to look at without an event; but for manifests that are being saved, which are read later.
    pub(super) fn everything(&mut self, manifest: &Manifest) -> Changed {
        while let Ok(event) = self.events.try_recv() {
            self.see(event, manifest);
        }
        let is_quiet = self.seen.quiet.is_none();
        if is_quiet && were_written_since(manifest.files(), quiet_before(SystemTime::now())) {
            self.add(Changed { manifests: true, ..Changed::nothing() });
        }
        Changed { manifests: self.seen.quiet.is_none(), items: None }
    }

    /// Takes in an event.
    fn see(&mut self, event: notify::Result<Event>, manifest: &Manifest) {
        let mut changed = Changed::nothing();
        self.learn(manifest);
        self.note(&mut changed, event);
        self.add(changed);
    }

    /// Sees what has changed, as if that had happened just now: it is reported when the time for that has come.
    pub(super) fn add(&mut self, changed: Changed) {
        let now = Instant::now();
        if changed.manifests {
            let is_open = !self.open.is_empty();
            self.seen.quiet.get_or_insert_with(|| QuietPeriod::from(now)).disturbed(now, is_open);
        }
        if !changed.is_nothing() {
            self.seen.burst.get_or_insert(now + BURST);
        }
        self.seen.changed.add(changed);
    }

    fn note(&mut self, seen: &mut Changed, event: notify::Result<Event>) {
        let Ok(event) = event else {
            *seen = Changed::everything();
            return;
        };
        if event.need_rescan() {
            *seen = Changed::everything();
            return;
        }
        if event.kind == EventKind::Access(AccessKind::Close(AccessMode::Write)) {
            // Whoever wrote it is done.
            seen.manifests = event.paths.iter().filter(|path| self.open.remove(*path)).count() > 0;
            return;
        }
        if event.kind.is_access() {
            return;
        }
        for path in &event.paths {
            if event.kind.is_remove() || is_moved_away(event.kind) {
                self.let_go(path);
            }
            let beside = path.parent() == Some(&self.manifests) && is_yaml(path);
            let named = self.by_name.get(path.file_name().unwrap_or(OsStr::new("")));
            if beside || named.into_iter().flatten().any(|file| leads_to(file, path)) {
                seen.manifests = true;
                match event.kind {
                    EventKind::Modify(ModifyKind::Data(_)) => self.open.insert(path.clone()),
                    EventKind::Modify(ModifyKind::Name(_)) | EventKind::Remove(_) => self.open.remove(path),
                    _ => false,
                };
            }
            if let Some(items) = &mut seen.items {
                // A directory that comes or goes takes along what is in it.
                let inside = self.by_path.range(path.clone()..).take_while(|(at, _)| at.starts_with(path));
                items.extend(inside.map(|(_, item)| item.clone()));
            }
        }
    }

    /// Does not follow a directory any more that is not at its path: another one may come there.
    fn let_go(&mut self, path: &Path) {
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
    entries.flatten().map(|entry| entry.path()).filter(|path| is_yaml(path)).collect()
}

/// What was written before this was left alone for long enough by a time.
pub(super) fn quiet_before(time: SystemTime) -> SystemTime {
    time.checked_sub(QUIET).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Returns whether a file was written since a time.
pub(super) fn were_written_since(files: &[PathBuf], since: SystemTime) -> bool {
    let now = SystemTime::now();
    let written = |file: &PathBuf| file.metadata().and_then(|metadata| metadata.modified()).ok();
    // A time that is to come says nothing.
    files.iter().filter_map(written).any(|at| at > since && at <= now)
}

fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
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
mod tests {
    use super::*;

    /// How long it takes until a manifest is read that is written every 100 ms for some time.
    fn read_after(written_for: Duration, is_open: bool) -> Duration {
        let began = Instant::now();
        let mut quiet = QuietPeriod::from(began);
        let mut written = Duration::ZERO;
        while written <= written_for {
            assert!(began + written < quiet.end, "it is read while it is being written");
            quiet.disturbed(began + written, is_open);
            written += Duration::from_millis(100);
        }
        quiet.end - began
    }

    #[test]
    fn a_manifest_is_read_when_it_was_left_alone_for_a_while_however_long_it_is_written() {
        for seconds in [0, 1, 60] {
            let written = Duration::from_secs(seconds);
            assert_eq!(read_after(written, false), written + QUIET);
            assert_eq!(read_after(written, true), written + UNCLOSED);
        }
        let began = Instant::now();
        let mut quiet = QuietPeriod::from(began);
        assert!(!quiet.is_long(began + LONG / 2));
        assert!(quiet.is_long(began + LONG) && !quiet.is_long(began + LONG), "it is said once");
    }

    #[test]
    fn a_manifest_that_somebody_has_open_for_writing_is_read_once_it_is_closed() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("site.yaml");
        std::fs::write(&file, "files:\n  a: {content: x}\n").unwrap();
        let manifest = setpoint_host::load(&file).unwrap_or_else(|_| panic!("it is a good manifest"));
        let mut follower = Follower::new(&file, EventWriter::new(false)).unwrap();
        let (sender, events) = unbounded_channel();
        follower.events = events;
        let send = |kind: EventKind| {
            sender.send(Ok(Event::new(kind).add_path(file.canonicalize().unwrap()))).unwrap();
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        send(EventKind::Modify(ModifyKind::Data(notify::event::DataChange::Any)));
        runtime.block_on(async {
            let read = tokio::time::timeout(QUIET * 5, follower.next(&manifest)).await;
            assert!(read.is_err(), "there may be more to come");
            send(EventKind::Access(AccessKind::Close(AccessMode::Write)));
            let closed = Instant::now();
            assert!(follower.next(&manifest).await.manifests);
            assert!(closed.elapsed() >= QUIET && closed.elapsed() < UNCLOSED);
        });
    }

    #[test]
    fn an_event_of_a_manifest_is_told_after_the_quiet_period_and_not_before() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("site.yaml");
        std::fs::write(&file, "files:\n  a: {content: x}\n").unwrap();
        let manifest = setpoint_host::load(&file).unwrap_or_else(|_| panic!("it is a good manifest"));
        let mut follower = Follower::new(&file, EventWriter::new(false)).unwrap();
        let (sender, events) = unbounded_channel();
        follower.events = events;
        sender.send(Ok(Event::new(EventKind::Any).add_path(file.canonicalize().unwrap()))).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let began = Instant::now();
        assert!(runtime.block_on(follower.next(&manifest)).manifests);
        assert!(began.elapsed() >= QUIET);
    }

    #[test]
    fn what_was_seen_of_a_manifest_is_told_although_something_else_ended_the_waiting() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("site.yaml");
        std::fs::write(&file, "files:\n  a: {content: x}\n").unwrap();
        let manifest = setpoint_host::load(&file).unwrap_or_else(|_| panic!("it is a good manifest"));
        let mut follower = Follower::new(&file, EventWriter::new(false)).unwrap();
        let (sender, events) = unbounded_channel();
        follower.events = events;
        sender.send(Ok(Event::new(EventKind::Any).add_path(file.canonicalize().unwrap()))).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            // It is seen, and something else comes at once.
            tokio::select! {
                biased;
                _ = follower.next(&manifest) => panic!("it is not quiet yet"),
                () = std::future::ready(()) => {}
            }
            assert!(!follower.everything(&manifest).manifests, "not while it is being saved");
            assert!(follower.next(&manifest).await.manifests);
        });
    }

    #[test]
    fn what_is_added_is_told_with_what_was_seen_and_a_manifest_after_the_quiet_period() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("site.yaml");
        std::fs::write(&file, "files:\n  a: {content: x}\n  b: {content: x}\n").unwrap();
        let manifest = setpoint_host::load(&file).unwrap_or_else(|_| panic!("it is a good manifest"));
        let mut follower = Follower::new(&file, EventWriter::new(false)).unwrap();
        let (_sender, events) = unbounded_channel();
        follower.events = events;
        let item = |name: &str| Some(BTreeSet::from([ItemRef::new("file", name)]));
        let began = Instant::now();
        follower.add(Changed { manifests: false, items: item("a") });
        follower.add(Changed { manifests: true, items: item("b") });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let changed = runtime.block_on(follower.next(&manifest));
        assert!(changed.manifests && began.elapsed() >= QUIET);
        assert_eq!(changed.items.map(|items| items.len()), Some(2));
        follower.add(Changed::everything());
        follower.add(Changed { manifests: false, items: item("a") });
        assert_eq!(runtime.block_on(follower.next(&manifest)).items, None, "that is all of them");
    }

    #[test]
    fn what_is_in_a_directory_that_was_not_followed_before_is_looked_at_again() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("site.yaml");
        std::fs::write(&file, "directories:\n  d:\nfiles:\n  a: {path: d/a, content: x}\n").unwrap();
        let manifest = setpoint_host::load(&file).unwrap_or_else(|_| panic!("it is a good manifest"));
        let mut follower = Follower::new(&file, EventWriter::new(false)).unwrap();
        let report = Report::new(crate::report::LogFormat::default(), 0);
        let names = |items: BTreeSet<ItemRef>| items.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(names(follower.follow(&manifest, report)), ["directory/d"]);
        assert_eq!(names(follower.follow(&manifest, report)), [""; 0]);
        std::fs::create_dir(directory.path().join("d")).unwrap();
        assert_eq!(names(follower.follow(&manifest, report)), ["file/a"]);
        assert_eq!(names(follower.follow(&manifest, report)), [""; 0]);
    }
}
