//! What a caller may do around each operation.

use setpoint_graph::ItemHandle;

use crate::log::LogEntry;
use crate::op::{OpError, Operation};

/// Called before each operation starts and after it ended.
///
/// Hooks run inside the engine's own task: they must not block.
pub trait Hooks: Send + Sync + 'static {
    /// Called before an operation starts. An error fails it without running it.
    fn before(&self, _operation: Operation, _item: &ItemHandle) -> Result<(), OpError> {
        Ok(())
    }

    /// Called after an operation ended, or went on in the background.
    fn after(&self, _entry: &LogEntry) {}
}
