//! The configurators: they do to the real file system what the engine decides.
//!
//! What is written is written beside its place and then renamed into it, so that a failed operation has
//! changed nothing. A file that is created or moved never overwrites what is already there.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use setpoint_engine::{Configurator, DefaultRegistry, Observed, OpCx, OpError};

use super::item::{Body, Directory, File};
use super::sandbox::{RelPath, Sandbox};

/// A registry with the configurators of both kinds.
pub(crate) fn registry(sandbox: &Sandbox) -> DefaultRegistry {
    DefaultRegistry::new()
        .with(Directory::KIND, Directories(sandbox.clone()))
        .with(File::KIND, Files(sandbox.clone()))
}

/// Makes, removes and reads directories.
#[derive(Debug)]
struct Directories(Sandbox);

impl Directories {
    fn observe(&self, item: &Directory) -> io::Result<Observed<Directory>> {
        match self.0.locate(&item.path).and_then(fs::symlink_metadata) {
            Ok(found) if found.is_dir() => Ok(Observed::Present(item.clone())),
            Ok(_) => Err(io::Error::new(io::ErrorKind::NotADirectory, "something else is in its place")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Observed::Absent),
            Err(error) => Err(error),
        }
    }
}

impl Configurator<Directory> for Directories {
    async fn create(&self, _: &OpCx, new: &Directory) -> Result<(), OpError> {
        self.0.locate(&new.path).and_then(fs::create_dir).or_else(|error| failed("make", &new.path, &error))
    }

    async fn delete(&self, _: &OpCx, old: &Directory) -> Result<(), OpError> {
        let removed = self.0.locate(&old.path).and_then(fs::remove_dir);
        unless_gone(removed).or_else(|error| failed("remove", &old.path, &error))
    }

    async fn read(&self, _: &OpCx, item: &Directory) -> Result<Observed<Directory>, OpError> {
        self.observe(item).or_else(|error| failed("read", &item.path, &error))
    }
}

/// Writes, moves, removes and reads files.
#[derive(Debug)]
struct Files(Sandbox);

impl Files {
    fn observe(&self, item: &File) -> io::Result<Observed<File>> {
        let (path, found) = match self.0.locate(&item.path).and_then(with_metadata) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Observed::Absent),
            Err(error) => return Err(error),
        };
        let body = if found.is_symlink() {
            Body::Link(fs::read_link(path)?.to_string_lossy().into_owned())
        } else if found.is_file() {
            Body::Text(String::from_utf8_lossy(&fs::read(path)?).into_owned())
        } else {
            return Err(io::Error::other("something else is in its place"));
        };
        Ok(Observed::Present(File { body, ..item.clone() }))
    }

    /// Puts the new state into its place; says whether the old one is still in another place.
    fn put(&self, old: &File, new: &File) -> io::Result<bool> {
        let (from, to) = (self.0.locate(&old.path)?, self.0.locate(&new.path)?);
        if from == to {
            return write(&to, &new.body, Existing::Replaced).map(|()| false);
        }
        if old.body != new.body {
            return write(&to, &new.body, Existing::Refused).map(|()| true);
        }
        if fs::symlink_metadata(&to).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        fs::rename(from, to).map(|()| false)
    }

    fn remove(&self, path: &RelPath) -> io::Result<()> {
        unless_gone(self.0.locate(path).and_then(fs::remove_file))
    }
}

impl Configurator<File> for Files {
    async fn create(&self, _: &OpCx, new: &File) -> Result<(), OpError> {
        let written = self.0.locate(&new.path).and_then(|path| write(&path, &new.body, Existing::Refused));
        written.or_else(|error| failed("write", &new.path, &error))
    }

    async fn modify(&self, _: &OpCx, old: &File, new: &File) -> Result<(), OpError> {
        let left = self.put(old, new).or_else(|error| failed("change", &new.path, &error))?;
        if left {
            // The only step after the first: it is half done if this fails.
            self.remove(&old.path).map_err(|error| OpError::new(words("remove", &old.path, &error)))?;
        }
        Ok(())
    }

    async fn delete(&self, _: &OpCx, old: &File) -> Result<(), OpError> {
        self.remove(&old.path).or_else(|error| failed("remove", &old.path, &error))
    }

    fn needs_recreate(&self, old: &File, new: &File) -> bool {
        std::mem::discriminant(&old.body) != std::mem::discriminant(&new.body)
    }

    async fn read(&self, _: &OpCx, item: &File) -> Result<Observed<File>, OpError> {
        self.observe(item).or_else(|error| failed("read", &item.path, &error))
    }
}

/// What happens to a file that is already there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Existing {
    Replaced,
    Refused,
}

/// Writes a body beside its place and renames it into it.
fn write(path: &Path, body: &Body, existing: Existing) -> io::Result<()> {
    let beside = path.parent().unwrap_or(path);
    let mut new = tempfile::Builder::new();
    new.prefix(".setpoint-");
    match body {
        Body::Text(text) => {
            let new = new.permissions(Permissions::from_mode(0o666)).tempfile_in(beside)?;
            fs::write(&new, text)?;
            persist(new.into_temp_path(), path, existing)
        }
        Body::Link(target) => {
            let new = new.make_in(beside, |at| symlink(target, at))?;
            persist(new.into_temp_path(), path, existing)
        }
    }
}

fn persist(new: tempfile::TempPath, path: &Path, existing: Existing) -> io::Result<()> {
    let persisted = match existing {
        Existing::Replaced => new.persist(path),
        Existing::Refused => new.persist_noclobber(path),
    };
    persisted.map_err(|error| error.error)
}

fn with_metadata(path: PathBuf) -> io::Result<(PathBuf, fs::Metadata)> {
    let found = fs::symlink_metadata(&path)?;
    Ok((path, found))
}

/// Removing what is not there is a success.
fn unless_gone(removed: io::Result<()>) -> io::Result<()> {
    removed.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

fn failed<T>(verb: &str, path: &RelPath, error: &io::Error) -> Result<T, OpError> {
    Err(OpError::untouched(words(verb, path, error)))
}

fn words(verb: &str, path: &RelPath, error: &io::Error) -> String {
    format!("can't {verb} {path}: {error}")
}

#[cfg(test)]
mod tests {
    use std::future::Future;

    use setpoint_engine::{CurrentGraph, Engine, Selection, testkit};
    use setpoint_graph::{Graph, Name};

    use super::*;
    use crate::demo::item::Root;

    /// A sandbox with an engine, and what it believes is there.
    struct World {
        directory: tempfile::TempDir,
        engine: Engine,
        current: Option<CurrentGraph>,
    }

    impl World {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let engine = Engine::new(registry(&Sandbox::new(directory.path()))).verifying();
            let mut current = CurrentGraph::new("test");
            current.put_item(Root).unwrap();
            Self { directory, engine, current: Some(current) }
        }

        /// Reconciles to these files and returns the log, with errors.
        fn apply(&mut self, files: &[(&str, &str, Body)]) -> Vec<String> {
            let mut intended = Graph::new("test");
            intended.put_item(Root).unwrap();
            for (name, path, body) in files {
                let (name, path, body) = (Name::new(name), RelPath::new(path).unwrap(), body.clone());
                intended.put_item(File { name, path, body }).unwrap();
            }
            let all = Selection::all();
            let status = block_on(self.engine.reconcile(&mut self.current, Some(&intended), &all)).unwrap();
            status.log().iter().map(ToString::to_string).collect()
        }

        fn text(&self, path: &str) -> String {
            fs::read_to_string(self.directory.path().join(path)).unwrap()
        }
    }

    fn block_on<F: Future>(future: F) -> F::Output {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
    }

    fn text(text: &str) -> Body {
        Body::Text(text.to_owned())
    }

    #[test]
    fn the_configurators_keep_every_promise_that_can_be_checked() {
        let directory = tempfile::tempdir().unwrap();
        let sandbox = Sandbox::new(directory.path());
        let path = |path| RelPath::new(path).unwrap();
        let sample = |at, body| File { name: Name::from_static("f"), path: path(at), body };
        let files = [
            sample("one", text("A")),
            sample("one", text("B")),
            sample("two", text("B")),
            sample("two", Body::Link("one".into())),
            sample("three", Body::Link("two".into())),
        ];
        assert_eq!(block_on(testkit::check(Files(sandbox.clone()), &files)), []);
        let directories = [Directory { path: path("d") }];
        assert_eq!(block_on(testkit::check(Directories(sandbox), &directories)), []);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left behind");
    }

    #[test]
    fn files_that_swap_their_places_keep_what_they_hold() {
        let mut world = World::new();
        world.apply(&[("a", "one", text("A")), ("b", "two", text("B"))]);
        let log = world.apply(&[("a", "two", text("A")), ("b", "one", text("B"))]);
        assert_eq!((world.text("one"), world.text("two")), ("B".into(), "A".into()), "{log:?}");
    }

    #[test]
    fn a_file_that_is_not_ours_is_never_overwritten() {
        let mut world = World::new();
        fs::write(world.directory.path().join("theirs"), "precious").unwrap();
        let log = world.apply(&[("a", "theirs", text("A"))]);
        assert!(log[0].starts_with("create file/a, failed: can't write theirs"), "{log:?}");

        world.apply(&[("b", "ours", text("B"))]);
        let log = world.apply(&[("b", "theirs", text("B"))]);
        assert!(log[0].starts_with("modify file/b, failed: can't change theirs"), "{log:?}");
        let log = world.apply(&[("b", "theirs", text("other"))]);
        assert!(log[0].starts_with("modify file/b, failed: can't change theirs"), "{log:?}");

        assert_eq!((world.text("theirs"), world.text("ours")), ("precious".into(), "B".into()));
        let entries = fs::read_dir(world.directory.path()).unwrap().count();
        assert_eq!(entries, 2, "nothing half written is left behind");
    }

    #[test]
    fn a_link_is_pointed_elsewhere_in_place() {
        let mut world = World::new();
        world.apply(&[("l", "link", Body::Link("one".into()))]);
        let log = world.apply(&[("l", "link", Body::Link("two".into()))]);
        assert_eq!(log, ["modify file/l"]);
        assert_eq!(fs::read_link(world.directory.path().join("link")).unwrap(), Path::new("two"));
    }
}
