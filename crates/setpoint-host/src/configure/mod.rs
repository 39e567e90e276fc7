//! The configurators: what they do to the host when the engine says so.
//!
//! Operations on files are a handful of system calls and run where they are called; commands and the ending
//! of processes wait on threads of their own.

mod access;
mod aside;
mod commands;
mod common;
mod directories;
mod files;
mod kept;
mod moves;
mod processes;
mod symlinks;

pub(crate) use access::Accounts;
pub use aside::SetAside;
pub use commands::Commands;
pub(crate) use common::{LastingNote, PassingNote};
pub use directories::Directories;
pub use files::Files;
pub use kept::Kept;
pub(crate) use moves::{Move, Moves};
pub use processes::Processes;
pub use symlinks::Symlinks;
