//! What was made, so that a run after a killed one can tell it from what someone else put there meanwhile.
//!
//! Things are made under a temporary name, noted here by their number in the file system, and only then renamed
//! to their place. A creation that was cut off has come to its end if, and only if, what is in the item's place
//! is what was noted.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use setpoint_graph::ItemRef;

use super::notes::Notes;
use crate::fs::{Born, Found};

/// What was made since what the engine knows was saved.
#[derive(Debug)]
pub(crate) struct Births(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    notes: Notes<Birth>,
    /// The last birth of each item; read when it is first needed.
    known: Option<BTreeMap<ItemRef, Option<Number>>>,
}

/// One thing that was made.
#[derive(Debug, Serialize, Deserialize)]
struct Birth {
    item: ItemRef,
    /// None where it could only be made in its place, before anyone could know its number.
    number: Option<Number>,
}

/// Which file, link or directory it is, whatever it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Number {
    dev: u64,
    ino: u64,
}

impl Number {
    /// The number of nothing.
    const NONE: Self = Self { dev: 0, ino: 0 };
}

impl Births {
    pub(crate) fn new(runtime: &Path) -> Self {
        Self(Mutex::new(Inner { notes: Notes::new(runtime.join("births")), known: None }))
    }

    /// Writes down that an item is about to come to its place.
    pub(crate) fn note(&self, item: &ItemRef, born: Born<'_>) -> io::Result<()> {
        let number = match born {
            Born::As(found) => Some(Number { dev: found.dev, ino: found.ino }),
            Born::InPlace => None,
            Born::Removed => Some(Number::NONE),
        };
        let mut inner = self.inner();
        inner.notes.add(&Birth { item: item.clone(), number })?;
        if let Some(known) = &mut inner.known {
            known.insert(item.clone(), number);
        }
        Ok(())
    }

    /// Whether this is what was made for an item.
    pub(crate) fn made(&self, item: &ItemRef, found: &Found) -> bool {
        let mut inner = self.inner();
        let Inner { notes, known } = &mut *inner;
        let read = || notes.read().into_iter().map(|birth| (birth.item, birth.number)).collect();
        match known.get_or_insert_with(read).get(item) {
            None => false,
            // Nobody can tell: it is there, and was to be made.
            Some(None) => true,
            Some(Some(number)) => *number == Number { dev: found.dev, ino: found.ino },
        }
    }

    pub(crate) fn forget_all(&self) -> io::Result<()> {
        let mut inner = self.inner();
        inner.known = None;
        inner.notes.clear()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
