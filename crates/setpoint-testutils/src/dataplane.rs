//! The HAProxy Dataplane API, where this machine has it: it is in no registry, and never fetched or built.

use std::path::PathBuf;

use crate::part::{self, Missing};

/// One Dataplane API that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataplaneProgram {
    /// The version it told.
    pub version: String,
    /// Where it is.
    pub path: PathBuf,
}

/// All that were found, one for each minor version; a test runs on every one of them.
pub fn programs() -> Result<Vec<DataplaneProgram>, Missing> {
    let found: Vec<_> = part::versions("dataplaneapi")
        .into_iter()
        .filter_map(|part| Some(DataplaneProgram { version: part.version?, path: part.path? }))
        .collect();
    if found.is_empty() { Err(part::missing("dataplaneapi")) } else { Ok(found) }
}
