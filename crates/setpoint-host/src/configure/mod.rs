//! What the configurators of several kinds have in common.
//!
//! Operations on files are a handful of system calls and run where they are called; commands and the ending
//! of processes wait on threads of their own.

mod access;
mod aside;
mod common;
pub(crate) mod kept;
mod notes;
mod places;

pub(crate) use access::Accounts;
pub use aside::SetAside;
pub(crate) use common::takes_over_again;
pub use kept::Kept;
pub(crate) use notes::{LastingNote, PassingNote, PlaceNote};
pub(crate) use places::{Location, Places};
