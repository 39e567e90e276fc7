//! `setpoint demo`: the engine at work on a real directory, from nothing to nothing.
//!
//! ```text
//!  intent ──┐
//!           ├─ plan ─▶ shown ─▶ reconcile ─▶ log ─▶ the directory as it really is
//!  disk ──read
//! ```

mod configure;
mod drift;
mod intent;
mod item;
mod sandbox;
mod show;
mod tree;

use std::fs;
use std::io;
use std::path::Path;

use jiff::Timestamp;
use setpoint_engine::{CurrentGraph, Engine, Selection};
use setpoint_graph::Graph;
use tokio::runtime::Runtime;

use crate::cli::DemoArgs;
use crate::error::CliError;
use drift::Drift;
use item::Root;
use sandbox::Sandbox;
use show::{Done, Show, Step};
use tree::Tree;

/// Runs the demo.
pub(crate) fn run(args: &DemoArgs) -> Result<(), CliError> {
    let show = Show::new(args.json);
    let Some(dir) = &args.keep else {
        let temporary =
            tempfile::Builder::new().prefix("setpoint-demo-").tempdir().map_err(CliError::Temporary)?;
        show.remark("A demonstration on real files, in a temporary directory.")?;
        let mut demo = Demo::start(Sandbox::new(temporary.path()), show)?;
        demo.create_change_repair_remove()?;
        temporary.close().map_err(CliError::Cleanup)?;
        return show.remark("\nThe temporary directory is removed.");
    };
    make_empty(dir)?;
    show.remark(&format!("A demonstration on real files, in {}.", dir.display()))?;
    let mut demo = Demo::start(Sandbox::new(dir), show)?;
    demo.create_change_repair_remove()?;
    demo.bring_back()?;
    show.remark(&format!("\nThe files are kept in {}.", dir.display()))
}

/// Makes a directory, or makes sure that the one there is empty.
fn make_empty(dir: &Path) -> Result<(), CliError> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(dir).and_then(|()| fs::read_dir(dir))
        }
        entries => entries,
    };
    match entries.map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(CliError::NotEmpty(dir.to_path_buf())),
        Err(source) => Err(CliError::Directory { dir: dir.to_path_buf(), source }),
    }
}

/// The demo between two steps.
struct Demo {
    show: Show,
    runtime: Runtime,
    sandbox: Sandbox,
    engine: Engine,
    intended: Graph,
    current: Option<CurrentGraph>,
    steps: usize,
}

impl Demo {
    fn start(sandbox: Sandbox, show: Show) -> Result<Self, CliError> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(CliError::Runtime)?;
        let engine = Engine::new(configure::registry(&sandbox)).verifying();
        let mut current = CurrentGraph::new(intent::NAME);
        current.put_item(Root)?;
        let intended = intent::first()?;
        Ok(Self { show, runtime, sandbox, engine, intended, current: Some(current), steps: 0 })
    }

    fn create_change_repair_remove(&mut self) -> Result<(), CliError> {
        self.step("Create", "Nothing is there, and a small site is intended.", Vec::new())?;

        self.intended = intent::second()?;
        self.step(
            "Change",
            "The intent has changed: `site` is called `public`, so its files move before it goes; the front\n\
             page reads differently, the start page becomes a link, and there is a page more.",
            Vec::new(),
        )?;

        let by_hand = self.sabotage()?;
        self.step("Repair", "Something else has changed the files. Reading them shows it.", by_hand)?;

        self.current().del_item(&Root::reference())?;
        self.step(
            "Remove",
            "The root, which is not ours, is reported gone. Nothing can stay without it: all of it goes,\n\
             files before the directories that hold them.",
            Vec::new(),
        )
    }

    fn bring_back(&mut self) -> Result<(), CliError> {
        self.current().put_item(Root)?;
        self.step("Return", "The root is back. All that waited for it is created.", Vec::new())
    }

    fn current(&mut self) -> &mut CurrentGraph {
        self.current.get_or_insert_with(|| CurrentGraph::new(intent::NAME))
    }

    /// Changes files as any other program could, and returns how.
    fn sabotage(&self) -> Result<Vec<String>, CliError> {
        let (gone, changed, line) = ("public/css/main.css", "notes/todo.txt", "call the plumber");
        let failed = |what: &'static str| move |source| CliError::Sabotage { what: what.to_owned(), source };
        fs::remove_file(self.sandbox.root().join(gone)).map_err(failed(gone))?;
        fs::write(self.sandbox.root().join(changed), format!("{line}\n")).map_err(failed(changed))?;
        Ok(vec![format!("rm {gone}"), format!("echo '{line}' > {changed}")])
    }

    /// Reads, plans, reconciles, and shows all of it.
    fn step(
        &mut self,
        title: &'static str,
        about: &'static str,
        by_hand: Vec<String>,
    ) -> Result<(), CliError> {
        self.steps += 1;
        let (all, number) = (Selection::all(), self.steps);
        let current = self.current.get_or_insert_with(|| CurrentGraph::new(intent::NAME));
        let refreshed = self.runtime.block_on(self.engine.refresh(current, &all));
        if let Some((item, why)) = refreshed.unreadable.first() {
            return Err(CliError::Read { what: item.to_string(), why: why.to_string() });
        }
        let drift = refreshed.drifted.iter().map(Drift::from).collect();
        let plan = self.engine.plan(self.current.as_ref(), Some(&self.intended), &all, Timestamp::now())?;
        let run = self.engine.reconcile(&mut self.current, Some(&self.intended), &all);
        let status = self.runtime.block_on(run)?;
        let disk = Tree::read(self.sandbox.root())
            .map_err(|error| CliError::Read { what: "the sandbox".to_owned(), why: error.to_string() })?;
        let log = status.log().iter().map(Done::from).collect();
        self.show.step(&Step { number, title, about, by_hand, drift, plan, log, disk })?;
        Ok(status.result()?)
    }
}
