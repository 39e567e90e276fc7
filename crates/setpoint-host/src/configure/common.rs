//! What the configurators of directories, files and links have in common.

use setpoint_engine::{Observed, OpCx, OpError, Operation};
use setpoint_graph::ItemRef;

use crate::Host;
use crate::fs::{Born, FsError};
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
        cx: &OpCx,
        path: &RootPath,
        read: impl Fn(&RootPath) -> Result<Option<T>, FsError>,
    ) -> Result<Observed<T>, OpError> {
        let item = cx.item();
        if cx.unfinished() == Some(Operation::Create) && !self.is_made(item, path)? {
            return Ok(Observed::Absent);
        }
        let read = |path: &RootPath| read(path).map_err(|error| OpError::untouched(error.to_string()));
        let mut found = read(path)?;
        if found.is_none()
            && let Some(moved) = self.0.moves.find(&self.0.root, item, path)
        {
            found = read(&moved)?;
        }
        Ok(found.map_or(Observed::Absent, Observed::Present))
    }

    /// Writes down that something made for an item is about to come to its place.
    pub(super) fn note_birth(&self, item: &ItemRef, born: Born<'_>) -> Result<(), FsError> {
        let noted = self.0.births.note(item, born);
        noted.map_err(|error| FsError::Unnoted { item: item.to_string(), why: error.to_string() })
    }

    /// What was made for an item has been removed again, if it had not come to its place: another thing may get
    /// its number.
    pub(crate) fn stillborn(&self, item: &ItemRef, path: &RootPath) -> Result<(), FsError> {
        let found = self.0.root.stat(path)?;
        if found.is_some_and(|found| self.0.births.made(item, &found)) {
            return Ok(());
        }
        self.note_birth(item, Born::Removed)
    }

    /// Whether what is in the place of an item is there because the item was created, or taken over.
    fn is_made(&self, item: &ItemRef, path: &RootPath) -> Result<bool, OpError> {
        let place = self.0.moves.place(&self.0.root, item, path);
        let found = self.0.root.stat(&place).map_err(|error| OpError::untouched(error.to_string()))?;
        Ok(found.is_some_and(|found| self.0.adoptions.is_adopted(item) || self.0.births.made(item, &found)))
    }
}
