//! The configurators: what they do to the host when the engine says so.
//!
//! Operations on files are a handful of system calls and run where they are called; commands and the ending
//! of processes wait on threads of their own.

mod access;
mod commands;
mod directories;
mod files;
mod moves;
mod processes;
mod symlinks;

pub(crate) use access::Accounts;
pub(crate) use commands::Commands;
pub(crate) use directories::Directories;
pub(crate) use files::Files;
pub(crate) use moves::Moves;
pub(crate) use processes::Processes;
pub(crate) use symlinks::Symlinks;
