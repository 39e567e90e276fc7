//! Plans in files: what `plan --out` keeps and `apply FILE` carries out, if nothing has changed since.

use std::fs;
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use setpoint_graph::{Graph, ItemRef, ItemTypes};
use setpoint_plan::Plan;

use super::error::Error;
use crate::error::CliError;

/// The format of the file. Another one is refused.
const FORMAT: u32 = 1;

/// A plan with all that it takes to carry it out later.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PlanFile {
    format: u32,
    /// The set it was made for.
    pub(crate) set: String,
    /// The checkpoint of the state that it starts from.
    pub(crate) serial: u64,
    /// What it is about; everything if empty.
    pub(crate) target: Vec<ItemRef>,
    /// What is made anew although nothing demands it.
    pub(crate) replace: Vec<ItemRef>,
    pub(crate) plan: Plan,
    intended: Value,
}

impl PlanFile {
    pub(crate) fn new(
        set: &str,
        serial: u64,
        target: Vec<ItemRef>,
        replace: Vec<ItemRef>,
        plan: Plan,
        intended: &Graph,
        types: &ItemTypes,
    ) -> Result<Self, CliError> {
        let intended = types.to_value(intended).map_err(setpoint_state::StateError::Item)?;
        Ok(Self { format: FORMAT, set: set.to_owned(), serial, target, replace, plan, intended })
    }

    /// Writes it so that only its owner can read it: contents are in it whole.
    pub(crate) fn write(&self, path: &Path) -> Result<(), CliError> {
        let failed =
            |why: &dyn std::fmt::Display| Error::PlanFile { path: path.to_path_buf(), why: why.to_string() };
        let bytes = serde_json::to_vec(self).map_err(|error| failed(&error))?;
        // A name that nobody can know, in the same folder; it is the owner's alone from the first instant.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let written = tempfile::NamedTempFile::new_in(folder).and_then(|mut file| {
            file.write_all(&bytes)?;
            file.persist(path).map_err(|error| error.error)
        });
        written.map(drop).map_err(|error| failed(&error).into())
    }

    pub(crate) fn read(path: &Path) -> Result<Self, CliError> {
        let failed = |why: String| Error::PlanFile { path: path.to_path_buf(), why };
        let bytes = fs::read(path).map_err(|error| failed(error.to_string()))?;
        let file: Self =
            serde_json::from_slice(&bytes).map_err(|error| failed(format!("it is no plan: {error}")))?;
        if file.format != FORMAT {
            return Err(
                failed(format!("it has the format {}, this version knows {FORMAT}", file.format)).into()
            );
        }
        Ok(file)
    }

    /// The intended items as they were declared then.
    pub(crate) fn intended(&self, types: &ItemTypes) -> Result<Graph, CliError> {
        Ok(types.from_value(self.intended.clone()).map_err(setpoint_state::StateError::Item)?)
    }
}
