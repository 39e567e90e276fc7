//! Items of a Linux host, the manifests that declare them, and the configurators that make them real.
//!
//! ```text
//!  YAML ──load──▶ Manifest: the intended graph ─┐
//!                                               ├─▶ setpoint_engine: plan, reconcile
//!  Host ──registry──▶ configurators ────────────┘            │
//!   └─ a root directory, and nothing outside of it ◀─────────┘
//! ```

mod configure;
mod fs;
mod host;
mod item;
mod manifest;
mod process;

pub use configure::{Commands, Directories, Files, Kept, Processes, SetAside, Symlinks};
pub use fs::FsError;
pub use host::{Existing, Host, HostError, HostOptions, path_of, registry};
pub use item::{
    Access, Address, AddressError, Because, Command, Content, Directory, File, Mode, ModeError, Need,
    PathError, Process, Readiness, Ready, RootPath, Run, StopSignal, Symlink, Tie, Wait, WaitError,
    WholeAttribute, attributes, item_types,
};
pub use manifest::{
    Declared, Diagnostic, Manifest, Origin, load, load_with, load_without_contents, probable_root, reference,
    schema,
};
pub use process::{EndedProcess, ProcessEnds, Started};
