//! Looking at the host while the manifests are still being loaded.
//!
//! Where there is a lot, loading the manifests takes as long as loading what is known and looking it up on the
//! host. Neither needs the other, so that each has a thread; the one that is done first helps with the looking.
//!
//! ```text
//!  manifests ──────────────▶┐ helps
//!                           ├──────▶ plan
//!  state ──▶ looking ───────▶┘
//! ```

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use setpoint_engine::{Engine, Observed, Reading, Selection, ToRead};
use setpoint_graph::Graph;
use setpoint_host::{Host, HostOptions, path_of, probable_root, registry};
use setpoint_state::{Snapshot, StateDir};

use super::args::SetArgs;
use super::set::{Set, state_of};
use crate::error::CliError;
use crate::service::runtime;

/// How many items one thread looks at before another one is asked for.
const TOGETHER: usize = 64;

/// What was seen before anyone knew what is wanted.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    root: PathBuf,
    readings: Vec<Reading>,
}

impl Ahead {
    /// What was seen, if it was seen in the right place. What is not intended any more, and was not there, is looked for again:
    /// it may only be out of reach.
    pub(crate) fn in_root(mut self, root: &Path, intended: &Graph) -> Vec<Reading> {
        if self.root != root {
            return Vec::new();
        }
        let is_absent = |reading: &Reading| matches!(reading.observed, Ok(Observed::Absent));
        self.readings.retain(|reading| !is_absent(reading) || intended.contains(reading.was.reference()));
        self.readings
    }
}

/// Loads the manifests, and meanwhile what is known; where asked for, also looks at what is known to be there.
pub(crate) fn load(args: &SetArgs, look: bool) -> Result<(Set, Snapshot, Ahead), CliError> {
    let state = state_of(&args.at);
    let looking = OnceLock::new();
    let (set, known) = thread::scope(|scope| {
        let knowing = scope.spawn(|| {
            let known = state.read();
            if let Ok(Some(known)) = &known
                && look
                && let Some(work) = Looking::begin(&args.at.file, &state, known)
            {
                looking.get_or_init(|| work).help();
            }
            known
        });
        let set = Set::load(args);
        // What is seen is of no use beside manifests that are wrong.
        if let (Ok(_), Some(work)) = (&set, looking.get()) {
            work.help();
        }
        (set, knowing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let set = set?;
    let snapshot = set.own(known?)?;
    Ok((set, snapshot, looking.into_inner().map(Looking::finish).unwrap_or_default()))
}

/// Items that several threads look at.
struct Looking {
    root: PathBuf,
    engine: Engine,
    items: Vec<ToRead>,
    next: AtomicUsize,
    seen: Mutex<Vec<Reading>>,
}

impl Looking {
    /// None where nothing can be seen yet: then it is looked at when the manifests are loaded.
    fn begin(manifests: &Path, state: &StateDir, known: &Snapshot) -> Option<Self> {
        let root = probable_root(manifests)?;
        let options = HostOptions::new(&root, known.set.as_str());
        let host = Host::open(options.with_runtime_directory(state.path().join("run"))).ok()?;
        host.recall(&known.graph);
        let engine = Engine::new(registry(&host)).with_concurrency(1);
        let mut items = engine.readable(&known.graph, &Selection::all());
        // Only what has a place is looked at: commands are not run before it is known that the manifests are right.
        items.retain(|item| path_of(item.item()).is_some());
        Some(Self { root, engine, items, next: AtomicUsize::new(0), seen: Mutex::default() })
    }

    /// Looks at items until all have been, or are being, looked at.
    fn help(&self) {
        let Ok(runtime) = runtime() else { return };
        let mut seen = Vec::new();
        while let Some(items) = self.items.get(self.next.fetch_add(TOGETHER, Ordering::Relaxed)..) {
            let items = items.iter().take(TOGETHER).cloned().collect();
            seen.extend(runtime.block_on(self.engine.read_items(items)));
        }
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).append(&mut seen);
    }

    fn finish(self) -> Ahead {
        Ahead { root: self.root, readings: self.seen.into_inner().unwrap_or_else(PoisonError::into_inner) }
    }
}
