//! The commands, one file each.

pub(crate) mod apply;
pub(crate) mod composite;
pub(crate) mod destroy;
pub(crate) mod explain;
pub(crate) mod graph;
pub(crate) mod haproxy;
pub(crate) mod help;
pub(crate) mod history;
pub(crate) mod plan;
pub(crate) mod state;
pub(crate) mod validate;
pub(crate) mod watch;

use tokio::runtime::{Builder, Runtime};

use crate::error::CliError;

/// What a command runs on.
pub(crate) fn runtime() -> Result<Runtime, CliError> {
    Builder::new_current_thread().enable_all().build().map_err(CliError::Runtime)
}
