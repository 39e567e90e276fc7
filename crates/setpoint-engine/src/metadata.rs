//! What is remembered of an item beside its value: whose it is, and what its configurator noted.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// Whose an item is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ownership {
    /// It was made here, and is deleted in the end.
    #[default]
    Owned,
    /// It was there before, is looked after, and is left in place in the end.
    Adopted,
}

impl Ownership {
    /// Returns whether it was there before.
    pub fn is_adopted(self) -> bool {
        self == Self::Adopted
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
    pub(crate) fn is_owned(&self) -> bool {
        *self == Self::Owned
    }
}

/// What is remembered of an item beside its value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ItemMetadata {
    /// Whose it is.
    #[serde(default, skip_serializing_if = "Ownership::is_owned")]
    pub ownership: Ownership,
    /// What its configurator noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Value>,
}

/// What is remembered of an item while it is worked on, shared by the operation and the item's state: so that nothing
/// is lost where a run is dropped half-way.
#[derive(Debug, Default)]
pub(crate) struct SharedMetadata(Mutex<ItemMetadata>);

impl SharedMetadata {
    pub(crate) fn get(&self) -> ItemMetadata {
        self.lock().clone()
    }

    pub(crate) fn ownership(&self) -> Ownership {
        self.lock().ownership
    }

    pub(crate) fn adopt(&self) {
        self.lock().ownership = Ownership::Adopted;
    }

    pub(crate) fn own(&self) {
        self.lock().ownership = Ownership::Owned;
    }

    pub(crate) fn note(&self, note: Value) {
        self.lock().note = Some(note);
    }

    pub(crate) fn noted<T: DeserializeOwned>(&self) -> Option<T> {
        self.lock().note.as_ref().and_then(|note| T::deserialize(note).ok())
    }

    pub(crate) fn set(&self, metadata: ItemMetadata) {
        *self.lock() = metadata;
    }

    pub(crate) fn forget_note(&self) {
        self.lock().note = None;
    }

    fn lock(&self) -> MutexGuard<'_, ItemMetadata> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The metadata of an item, where there are any, which is rare.
#[derive(Debug, Default)]
pub(crate) struct OptionalMetadata(Option<Arc<SharedMetadata>>);

impl OptionalMetadata {
    /// Returns the shared metadata, for an operation.
    pub(crate) fn share(&mut self) -> Arc<SharedMetadata> {
        Arc::clone(self.0.get_or_insert_default())
    }

    /// Returns the shared metadata, where there are any.
    pub(crate) fn existing(&self) -> Option<Arc<SharedMetadata>> {
        self.0.clone()
    }

    pub(crate) fn get(&self) -> ItemMetadata {
        self.0.as_ref().map(|metadata| metadata.get()).unwrap_or_default()
    }

    pub(crate) fn ownership(&self) -> Ownership {
        self.0.as_ref().map(|metadata| metadata.ownership()).unwrap_or_default()
    }

    pub(crate) fn noted<T: DeserializeOwned>(&self) -> Option<T> {
        self.0.as_ref().and_then(|metadata| metadata.noted())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|metadata| metadata.get() == ItemMetadata::default())
    }

    /// Drops metadata that say nothing.
    pub(crate) fn trim(&mut self) {
        if self.is_empty() {
            self.0 = None;
        }
    }

    pub(crate) fn set(&mut self, metadata: ItemMetadata) {
        match &self.0 {
            Some(shared) => shared.set(metadata),
            None if metadata == ItemMetadata::default() => {}
            None => self.0 = Some(Arc::new(SharedMetadata(Mutex::new(metadata)))),
        }
    }

    pub(crate) fn forget_note(&mut self) {
        if let Some(metadata) = &self.0 {
            metadata.forget_note();
        }
        self.trim();
    }
}

impl Clone for OptionalMetadata {
    /// A copied graph remembers by itself.
    fn clone(&self) -> Self {
        let mut copy = Self(None);
        copy.set(self.get());
        copy
    }
}

impl Serialize for OptionalMetadata {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.get().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for OptionalMetadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut kept = Self(None);
        kept.set(ItemMetadata::deserialize(deserializer)?);
        Ok(kept)
    }
}
