//! Tests of what is followed, in time that passes only while everybody waits.

use std::fs;

use notify::event::DataChange;
use tempfile::TempDir;
use tokio::sync::mpsc::UnboundedSender;

use super::*;

/// The kinds of events that saving a file comes with.
const WRITTEN: EventKind = EventKind::Modify(ModifyKind::Data(DataChange::Any));
const CLOSED: EventKind = EventKind::Access(AccessKind::Close(AccessMode::Write));

/// A directory with a manifest, and events that a test sends.
struct Followed {
    directory: TempDir,
    manifest: Manifest,
    follower: Follower,
    sender: UnboundedSender<notify::Result<Event>>,
}

impl Followed {
    fn new(yaml: &str) -> Self {
        Self::beside(yaml, &[])
    }

    /// With other files beside the manifest.
    fn beside(yaml: &str, others: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in others.iter().chain(&[("site.yaml", yaml)]) {
            fs::write(directory.path().join(name), text).unwrap();
        }
        let manifest = setpoint_host::load(directory.path());
        let manifest = manifest.unwrap_or_else(|_| panic!("it is a good manifest"));
        let mut follower = Follower::new(directory.path(), EventWriter::new(false)).unwrap();
        let (sender, events) = unbounded_channel();
        follower.events = events;
        Self { directory, manifest, follower, sender }
    }

    fn send(&self, kind: EventKind, name: &str) {
        let path = self.directory.path().canonicalize().unwrap().join(name);
        self.sender.send(Ok(Event::new(kind).add_path(path))).unwrap();
    }

    async fn next(&mut self) -> Changes {
        self.follower.next(&self.manifest).await
    }

    /// Returns whether nothing is reported for some time.
    async fn rests(&mut self, time: Duration) -> bool {
        tokio::time::timeout(time, self.next()).await.is_err()
    }
}

fn items(names: &[&str]) -> BTreeSet<ItemRef> {
    names.iter().map(|name| ItemRef::new("file", *name)).collect()
}

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

#[tokio::test(start_paused = true)]
async fn a_manifest_that_somebody_has_open_for_writing_is_read_once_it_is_closed() {
    let mut followed = Followed::new("files:\n  a: {content: x}\n");
    followed.send(WRITTEN, "site.yaml");
    assert!(followed.rests(UNCLOSED / 2).await, "there may be more to come");
    followed.send(CLOSED, "site.yaml");
    let closed = Instant::now();
    assert!(followed.next().await.manifests);
    assert!(closed.elapsed() >= QUIET && closed.elapsed() < UNCLOSED);
    // Who never closes it has left it alone after some time.
    followed.send(WRITTEN, "site.yaml");
    let written = Instant::now();
    assert!(followed.next().await.manifests);
    assert!(written.elapsed() >= UNCLOSED);
}

#[tokio::test(start_paused = true)]
async fn a_file_that_somebody_has_open_for_writing_is_looked_at_once_it_is_closed() {
    let mut followed = Followed::new("files:\n  a: {content: x}\n  b: {content: x}\n");
    followed.send(WRITTEN, "a");
    assert!(followed.rests(UNCLOSED / 2).await, "there may be more to come");
    followed.send(EventKind::Any, "b");
    assert_eq!(followed.next().await.items, Some(items(&["b"])), "others don't wait for it");
    followed.send(WRITTEN, "a");
    assert!(followed.rests(UNCLOSED / 2).await, "it was written once more");
    followed.send(CLOSED, "a");
    let closed = Instant::now();
    assert_eq!(followed.next().await.items, Some(items(&["a"])));
    assert!(closed.elapsed() < QUIET);
    // Who never closes it has left it alone after some time.
    followed.send(WRITTEN, "a");
    let written = Instant::now();
    assert_eq!(followed.next().await.items, Some(items(&["a"])));
    assert!(written.elapsed() >= UNCLOSED);
    // One that is gone, or replaced, is looked at at once.
    followed.send(WRITTEN, "a");
    followed.send(EventKind::Remove(notify::event::RemoveKind::File), "a");
    let removed = Instant::now();
    assert_eq!(followed.next().await.items, Some(items(&["a"])));
    assert!(removed.elapsed() < QUIET);
}

#[tokio::test(start_paused = true)]
async fn an_event_of_a_manifest_is_reported_after_the_quiet_period_and_not_before() {
    let mut followed = Followed::new("files:\n  a: {content: x}\n");
    followed.send(EventKind::Any, "site.yaml");
    let began = Instant::now();
    assert!(followed.next().await.manifests);
    assert!(began.elapsed() >= QUIET);
}

#[tokio::test(start_paused = true)]
async fn what_was_seen_of_a_manifest_is_reported_although_something_else_ended_the_waiting() {
    let mut followed = Followed::new("files:\n  a: {content: x}\n");
    followed.send(EventKind::Any, "site.yaml");
    // It is seen, and something else comes at once.
    tokio::select! {
        biased;
        _ = followed.next() => panic!("it is not quiet yet"),
        () = std::future::ready(()) => {}
    }
    let everything = followed.follower.everything(&followed.manifest);
    assert!(!everything.manifests, "not while it is being saved");
    assert!(followed.next().await.manifests);
}

#[tokio::test(start_paused = true)]
async fn what_is_added_is_reported_with_what_was_seen_and_a_manifest_after_the_quiet_period() {
    let mut followed = Followed::new("files:\n  a: {content: x}\n  b: {content: x}\n");
    let began = Instant::now();
    followed.follower.add(Changes { manifests: false, items: Some(items(&["a"])) });
    followed.follower.add(Changes { manifests: true, items: Some(items(&["b"])) });
    let changed = followed.next().await;
    assert!(changed.manifests && began.elapsed() >= QUIET);
    assert_eq!(changed.items, Some(items(&["a", "b"])));
    followed.follower.add(Changes::everything());
    followed.follower.add(Changes { manifests: false, items: Some(items(&["a"])) });
    assert_eq!(followed.next().await.items, None, "that is all of them");
}

#[tokio::test(start_paused = true)]
async fn items_do_not_wait_long_for_a_manifest_that_is_being_written() {
    let mut followed = Followed::new("files:\n  a: {content: x}\n  b: {content: x}\n");
    followed.send(WRITTEN, "site.yaml");
    followed.send(EventKind::Any, "a");
    let began = Instant::now();
    let changed = followed.next().await;
    assert_eq!((changed.manifests, changed.items), (false, Some(items(&["a"]))));
    assert!(began.elapsed() >= TOGETHER && began.elapsed() < TOGETHER + QUIET, "{:?}", began.elapsed());
    // And later ones not at all.
    followed.send(EventKind::Any, "b");
    let began = Instant::now();
    assert_eq!(followed.next().await.items, Some(items(&["b"])));
    assert!(began.elapsed() < QUIET, "{:?}", began.elapsed());
    let changed = followed.next().await;
    assert!(changed.manifests && changed.items == Some(items(&[])));
}

#[tokio::test(start_paused = true)]
async fn events_of_yaml_that_is_no_manifest_are_none_of_the_manifests() {
    let yaml = "files:\n  a: {content: x}\n  managed.yaml: {content: 'x: 1', adopt: true}\n";
    let others = [("foreign.yaml", "requests: 1\n"), ("managed.yaml", "x: 1\n")];
    let mut followed = Followed::beside(yaml, &others);
    followed.send(WRITTEN, "managed.yaml");
    let changed = followed.next().await;
    assert_eq!((changed.manifests, changed.items), (false, Some(items(&["managed.yaml"]))));
    for name in ["foreign.yaml", ".hidden.yaml"] {
        followed.send(WRITTEN, name);
        assert!(followed.rests(UNCLOSED * 2).await, "{name}");
    }
    // It is one now.
    fs::write(followed.directory.path().join("foreign.yaml"), "files: {}\n").unwrap();
    followed.send(WRITTEN, "foreign.yaml");
    assert!(followed.next().await.manifests);
    for (text, is_manifest) in [("", true), ("files: {}\n", true), ("lines: many\n", false)] {
        let name = format!("new{}.yaml", text.len());
        fs::write(followed.directory.path().join(&name), text).unwrap();
        followed.send(WRITTEN, &name);
        assert_eq!(!followed.rests(UNCLOSED * 2).await, is_manifest, "{text:?}");
    }
}

#[test]
fn what_is_in_a_directory_that_was_not_followed_before_is_looked_at_again() {
    let mut followed = Followed::new("directories:\n  d:\nfiles:\n  a: {path: d/a, content: x}\n");
    let report = Report::new(crate::report::LogFormat::default(), 0);
    let Followed { directory, manifest, follower, .. } = &mut followed;
    let mut follow = || {
        let items = follower.follow(manifest, report);
        items.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(follow(), ["directory/d"]);
    assert_eq!(follow(), [""; 0]);
    fs::create_dir(directory.path().join("d")).unwrap();
    assert_eq!(follow(), ["file/a"]);
    assert_eq!(follow(), [""; 0]);
}

#[test]
fn a_manifest_that_is_written_while_it_is_looked_at_is_being_written() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("site.yaml");
    fs::write(&file, "").unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    let is_done = || done.load(std::sync::atomic::Ordering::Relaxed);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done() {
                fs::write(&file, "files: {}").unwrap();
            }
        });
        let began = Instant::now();
        let mut unseen = 0;
        while began.elapsed() < Duration::from_secs(2) {
            let long_before = SystemTime::now() - Duration::from_mins(1);
            unseen += usize::from(!were_written_since(std::slice::from_ref(&file), long_before));
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(unseen, 0, "so often it was taken for left alone");
    });
}

#[test]
fn why_something_can_not_be_followed_is_said_in_words() {
    use notify::{Error, ErrorKind};
    for (error, words) in [
        (Error::new(ErrorKind::MaxFilesWatch), "fs.inotify.max_user_watches"),
        (Error::io(std::io::Error::other("no more of them")), "no more of them"),
        (Error::path_not_found(), "it is not there"),
        (Error::invalid_config(&notify::Config::default()), "does not follow"),
    ] {
        let error = error.add_path("/srv/x".into());
        assert!(error.to_string().contains("[\"/srv/x\"]"), "{error}");
        let shown = crate::jobs::host::error::Error::Watch(error).to_string();
        assert!(shown.contains(words) && !shown.contains(['[', '"', '{']), "{shown}");
    }
}
