//! What was there before Setpoint, and is left in place in the end.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use setpoint_graph::ItemRef;

/// Remembers which items were adopted: they existed before, so a deletion leaves them in place.
///
/// The configurators call it. What [`Adoptions::adopt`] has returned from should survive a crash.
pub trait Adoptions: fmt::Debug + Send + Sync {
    /// Remembers that an item was taken over.
    fn adopt(&self, item: &ItemRef) -> Result<(), AdoptionError>;

    /// Whether an item was taken over.
    fn is_adopted(&self, item: &ItemRef) -> bool;

    /// Forgets an item, once it is not managed any more.
    fn forget(&self, item: &ItemRef) -> Result<(), AdoptionError>;
}

/// Why an adoption could not be remembered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("can't remember what was adopted: {0}")]
pub struct AdoptionError(pub String);

/// Adoptions that are remembered as long as the program runs.
///
/// ```
/// use setpoint_host::{Adoptions, MemoryAdoptions};
/// let adoptions = MemoryAdoptions::new();
/// let item = ("file", "hosts").into();
/// adoptions.adopt(&item)?;
/// assert!(adoptions.is_adopted(&item));
/// # Ok::<(), setpoint_host::AdoptionError>(())
/// ```
#[derive(Debug, Default)]
pub struct MemoryAdoptions(Mutex<BTreeSet<ItemRef>>);

impl MemoryAdoptions {
    /// Remembers nothing yet.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Adoptions for MemoryAdoptions {
    fn adopt(&self, item: &ItemRef) -> Result<(), AdoptionError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(item.clone());
        Ok(())
    }

    fn is_adopted(&self, item: &ItemRef) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(item)
    }

    fn forget(&self, item: &ItemRef) -> Result<(), AdoptionError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(item);
        Ok(())
    }
}
