//! What the configurators of several kinds have in common.
//!
//! Operations on files are a handful of system calls and run where they are called; commands and the ending
//! of processes wait on threads of their own.

mod access;
mod aside;
mod common;
pub(crate) mod entries;
pub(crate) mod kept;
mod locations;
mod notes;
mod notice;

pub(crate) use access::Accounts;
pub use aside::may_be_set_aside;
pub use kept::{Kept, KeptEntry, KeptThing};
pub(crate) use locations::{DirectoryIndex, Location, is_unmounted};
pub(crate) use notes::{LastingNote, Move, PassingNote, PathNote};
pub use notice::Notice;
pub(crate) use notice::Notices;
