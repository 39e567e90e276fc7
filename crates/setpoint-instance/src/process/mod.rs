//! The process of a HAProxy: started, adopted, stopped.
//!
//! A HAProxy that is started here has a process group of its own, so that it outlives whoever started it. One that something else
//! started (systemd, a container's entry point) is adopted: it is asked and reloaded, and never stopped.

mod find;
mod identity;
mod launch;

pub(crate) use find::processes_of;
pub use find::{master_of, running_with};
pub use identity::{CommandLine, Identity, Start, configuration_files};
pub use launch::{Launch, LaunchError, Launched};
