//! What the configurators of directories, files and links have in common.

use setpoint_engine::{Observed, OpError};
use setpoint_graph::ItemRef;

use crate::Host;
use crate::fs::FsError;
use crate::item::RootPath;

impl Host {
    /// Remembers that something that was there before is looked after from now on.
    pub(super) fn take_over(&self, item: &ItemRef) -> Result<(), OpError> {
        self.0.adoptions.adopt(item).map_err(|error| OpError::untouched(error.to_string()))
    }

    /// Lets go of an item that was there before, which is then left in place; says whether it was.
    pub(super) fn lets_go(&self, item: &ItemRef) -> Result<bool, OpError> {
        if !self.0.adoptions.is_adopted(item) {
            return Ok(false);
        }
        let forgotten = self.0.adoptions.forget(item);
        forgotten.map(|()| true).map_err(|error| OpError::untouched(error.to_string()))
    }

    /// Looks for an item at its path, or where it has moved.
    pub(super) fn look<T>(
        &self,
        item: &ItemRef,
        path: &RootPath,
        read: impl Fn(&RootPath) -> Result<Option<T>, FsError>,
    ) -> Result<Observed<T>, OpError> {
        let read = |path: &RootPath| read(path).map_err(|error| OpError::untouched(error.to_string()));
        let mut found = read(path)?;
        if found.is_none()
            && let Some(moved) = self.0.moves.find(&self.0.root, item, path)
        {
            found = read(&moved)?;
        }
        Ok(found.map_or(Observed::Absent, Observed::Present))
    }
}
