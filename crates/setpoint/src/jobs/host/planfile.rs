//! Plans in files: what `plan --out` keeps and `apply FILE` carries out, if nothing has changed since.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use setpoint_graph::ItemRef;
use setpoint_host::{Content, Manifest, item_types};
use setpoint_state::Snapshot;

use super::args::PlanArgs;
use super::error::Error;
use super::preview::Preview;
use super::root::RootIdentity;
use super::set::Set;
use crate::error::CliError;

/// The format of the file. Another one is refused.
const FORMAT: u32 = 5;
/// No plan has more bytes than this.
const LARGEST: u64 = 1 << 30;

/// A plan with all that tells whether it is still the one that would be made. What is declared is not in it: it is loaded
/// again, and has to be the same.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PlanFile {
    format: u32,
    /// The set it was made for.
    pub(crate) set: String,
    /// The root that it was made for: what is declared may be in any.
    root: RootIdentity,
    /// The checkpoint of the state that it starts from.
    pub(crate) serial: u64,
    /// Whether it starts from what a run had done that was not finished.
    #[serde(default)]
    pub(crate) unfinished: bool,
    /// What it is about; everything if empty.
    pub(crate) target: Vec<ItemRef>,
    /// What is made anew although nothing demands it.
    pub(crate) replace: Vec<ItemRef>,
    /// What was set of the manifests' values.
    pub(crate) var: Vec<(String, String)>,
    /// All that was shown: the plan, what drifted, and what was warned of.
    shown: Value,
    /// The digest of all that is declared, contents and protection included.
    intended: String,
}

/// What each format of the file begins with.
#[derive(Debug, Deserialize)]
struct Format {
    format: u32,
}

impl PlanFile {
    /// A plan for what the manifests of a set declare.
    pub(crate) fn new(
        set: &Set,
        known: &Snapshot,
        args: &PlanArgs,
        shown: &Preview,
    ) -> Result<Self, CliError> {
        Ok(Self {
            format: FORMAT,
            set: set.name().to_owned(),
            root: RootIdentity::of(set.manifest.root())?,
            serial: known.serial,
            unfinished: known.unfinished,
            target: args.change.target.clone(),
            replace: args.replace.clone(),
            var: args.set.var.clone(),
            shown: view(shown)?,
            intended: set.declared_digest()?,
        })
    }

    /// Writes it so that only its owner can read it: differences of contents are in it.
    pub(crate) fn write(&self, path: &Path) -> Result<(), CliError> {
        let failed = |why: String, system| Error::PlanNotKept { path: path.to_path_buf(), why, system };
        if path.exists() && Self::read(path).is_err() {
            return Err(failed("there is something else, which is not replaced".to_owned(), None).into());
        }
        let bytes = serde_json::to_vec(self).map_err(|error| CliError::Output(error.into()))?;
        // A name that nobody can know, in the same folder; it is the owner's alone from the first instant.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !folder.is_dir() {
            return Err(failed(format!("there is no directory {}", folder.display()), None).into());
        }
        let written = tempfile::NamedTempFile::new_in(folder).and_then(|mut file| {
            file.write_all(&bytes)?;
            file.persist(path).map_err(|error| error.error)
        });
        // The temporary name says nothing to anybody.
        let why = |error: io::Error| failed(io::Error::from(error.kind()).to_string(), Some(error.kind()));
        written.map(drop).map_err(|error| why(error).into())
    }

    pub(crate) fn read(path: &Path) -> Result<Self, CliError> {
        let failed = |why: String| Error::PlanFile { path: path.to_path_buf(), why };
        // A pipe would be waited for, and a device has no end.
        let found = fs::metadata(path).map_err(|error| failed(error.to_string()))?;
        if !found.is_file() || found.len() > LARGEST {
            return Err(failed("it is no plan".to_owned()).into());
        }
        let bytes = fs::read(path).map_err(|error| failed(error.to_string()))?;
        let wrong = |_: serde_json::Error| failed("it is no plan".to_owned());
        let Format { format } = serde_json::from_slice(&bytes).map_err(wrong)?;
        if format != FORMAT {
            return Err(failed(format!("it has the format {format}, this version knows {FORMAT}")).into());
        }
        Ok(serde_json::from_slice(&bytes).map_err(wrong)?)
    }

    /// What is to be said where it was made for another root than this.
    pub(crate) fn root_difference(&self, root: &Path) -> Result<Option<String>, CliError> {
        Ok(RootIdentity::of(root)?.difference(&self.root))
    }

    /// Returns whether this is what was shown when the plan was made.
    pub(crate) fn has_shown(&self, preview: &Preview) -> Result<bool, CliError> {
        Ok(self.shown == view(preview)?)
    }

    /// Returns whether manifests declare what they did when the plan was made.
    pub(crate) fn is_for(&self, set: &Set) -> Result<bool, CliError> {
        Ok(self.intended == set.declared_digest()?)
    }
}

fn view(preview: &Preview) -> Result<Value, CliError> {
    serde_json::to_value(preview).map_err(|error| CliError::Output(error.into()))
}

/// The digest of all items that a manifest declares, and of which of them may not be deleted.
pub(crate) fn digest(manifest: &Manifest) -> Result<String, CliError> {
    let items = item_types().to_value(manifest.graph()).map_err(setpoint_state::StateError::Item)?;
    let declared = manifest.all_declared().filter(|(_, declared)| declared.prevent_destroy);
    let protected: BTreeSet<String> = declared.map(|(item, _)| item.to_string()).collect();
    let bytes = serde_json::to_vec(&(items, protected)).map_err(|error| CliError::Output(error.into()))?;
    Ok(Content::from(bytes).sha256())
}
