//! A temporary root with manifests, a host and an engine.

use std::fs;
use std::path::{Path, PathBuf};

use setpoint_engine::{CurrentGraph, Engine, Refreshed, Selection};
use setpoint_graph::ItemRef;
use setpoint_host::{Host, HostOptions, Manifest, load, registry};
use tempfile::TempDir;

/// Everything there is.
pub(crate) const ALL: Selection = Selection::All;

/// A root directory, and what the engine believes is in it.
pub(crate) struct World {
    pub(crate) directory: TempDir,
    pub(crate) host: Host,
    pub(crate) engine: Engine,
    pub(crate) current: Option<CurrentGraph>,
    runtime: tokio::runtime::Runtime,
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

impl World {
    pub(crate) fn new() -> Self {
        Self::in_directory(tempfile::tempdir().unwrap())
    }

    pub(crate) fn in_directory(directory: TempDir) -> Self {
        let root = directory.path().join("root");
        fs::create_dir_all(&root).unwrap();
        let host = Self::host(directory.path());
        let engine = Engine::new(registry(&host)).verifying().retrying_now();
        Self { directory, host, engine, current: None, runtime: runtime() }
    }

    pub(crate) fn host(directory: &Path) -> Host {
        let options =
            HostOptions::new(directory.join("root"), "test").with_runtime_directory(directory.join("run"));
        Host::open(options).unwrap()
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.directory.path().join("root")
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    pub(crate) fn load(&self, yaml: &str) -> Manifest {
        let file = self.directory.path().join("set.yaml");
        fs::write(&file, format!("name: test\nroot: root\n{yaml}")).unwrap();
        load(&file).unwrap_or_else(|errors| {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            panic!("{}", errors.join("\n"))
        })
    }

    /// Reconciles to a manifest and returns the log, with errors.
    pub(crate) fn apply(&mut self, yaml: &str) -> Vec<String> {
        let manifest = self.load(yaml);
        self.recognise(Some(&manifest));
        self.reconcile(Some(&manifest))
    }

    /// Deletes all and returns the log.
    pub(crate) fn destroy(&mut self) -> Vec<String> {
        self.recognise(None);
        self.reconcile(None)
    }

    /// Reads all before it is brought to a manifest, or deleted, as the commands do. Returns the log.
    pub(crate) fn read_and_reconcile(&mut self, yaml: Option<&str>) -> Vec<String> {
        let manifest = yaml.map(|yaml| self.load(yaml));
        self.recognise(manifest.as_ref());
        self.refresh();
        self.reconcile(manifest.as_ref())
    }

    fn reconcile(&mut self, manifest: Option<&Manifest>) -> Vec<String> {
        let run = self.engine.reconcile(&mut self.current, manifest.map(Manifest::graph), &ALL);
        let status = self.runtime.block_on(run).unwrap();
        status.log().iter().map(ToString::to_string).collect()
    }

    /// As before anything is planned.
    pub(crate) fn recognise(&mut self, intended: Option<&Manifest>) {
        if let Some(current) = &mut self.current {
            self.host.recognise_set_aside(current, intended.map(Manifest::graph));
        }
    }

    /// Goes on as another process would, from what is known.
    pub(crate) fn begin_again(&mut self, current: Option<CurrentGraph>) {
        self.host = Self::host(self.directory.path());
        self.engine = Engine::new(registry(&self.host)).verifying().retrying_now();
        self.current = current;
        if let Some(current) = &self.current {
            self.host.recall(current);
        }
    }

    /// As before what is known is saved.
    pub(crate) fn settle(&mut self) {
        if let Some(current) = &mut self.current {
            self.host.settle(current);
        }
    }

    pub(crate) fn refresh(&mut self) -> Refreshed {
        let current = self.current.as_mut().expect("something was applied");
        self.runtime.block_on(self.engine.refresh(current, &ALL))
    }

    /// What drifted, by reference.
    pub(crate) fn drifted(&mut self) -> Vec<ItemRef> {
        let refreshed = self.refresh();
        assert_eq!(refreshed.unreadable, [], "all can be read");
        refreshed.drifted.into_iter().map(|drifted| drifted.item).collect()
    }

    pub(crate) fn text(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    /// All that is in the root, by path.
    pub(crate) fn tree(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut todo = vec![self.root()];
        while let Some(directory) = todo.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                found.push(path.strip_prefix(self.root()).unwrap().display().to_string());
                if path.is_dir() && !path.is_symlink() {
                    todo.push(path);
                }
            }
        }
        found.sort();
        found
    }

    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }
}

impl Drop for World {
    /// Ends what was started, also where a test failed.
    fn drop(&mut self) {
        if self.current.is_some() && std::thread::panicking() {
            let run = self.engine.reconcile(&mut self.current, None, &ALL);
            let _ = self.runtime.block_on(run);
        }
    }
}
