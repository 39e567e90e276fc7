//! The process of a HAProxy: started, adopted, stopped.
//!
//! A HAProxy that is started here has a session of its own, so that it outlives whoever started it. One that something else
//! started (systemd, a container's entry point) is adopted: it is asked and reloaded, and never stopped.

mod identity;
mod launch;

pub use identity::{CommandLine, Identity, configuration_files};
pub use launch::{Launch, LaunchError, Launched};
