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
mod kinds;
mod manifest;
mod process;

pub use configure::{Kept, KeptEntry, KeptThing, Notice, may_be_set_aside};
pub use fs::FsError;
pub use host::{Existing, Host, HostError, HostOptions, Swept, directory_number};
pub use item::{
    Access, Address, AddressError, Because, Content, Dependence, Invocation, Mode, ModeError, Need,
    PathError, Readiness, Ready, RootPath, StopSignal, Wait, WaitError, WholeAttribute, attributes,
    bytes_read,
};
pub use kinds::{
    Command, CommandTexts, Commands, Directories, Directory, File, Files, Process, Processes, Symlink,
    Symlinks, is_activity, item_types, path_of, registry,
};
pub use manifest::{
    Declared, Diagnostic, Manifest, Origin, bad_name, is_foreign_file, load, load_with,
    load_without_contents, probable_root, reference, schema,
};
pub use process::{CheckEvent, EndedProcess, ProcessEnds, Started};
