//! Plans in files: what `plan --out` keeps, and `sync --plan` carries out if nothing has changed since.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use setpoint_dataplane::sync::{Desired, SyncPlan};

use crate::jobs::haproxy::error::Error;

/// The format of the file. Another one is refused.
const FORMAT: u32 = 1;

/// What was planned. What is desired is not in it: it is read again, and has to be the same.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PlanFile {
    format: u32,
    /// The digest of the configuration and its files.
    desired: String,
    /// What was planned for each HAProxy, by what it is called.
    targets: BTreeMap<String, Planned>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Planned {
    /// The version that the configuration had.
    version: u64,
    /// What was shown.
    plan: Json,
}

impl PlanFile {
    pub(super) fn new<'a>(
        desired: &Desired,
        plans: impl IntoIterator<Item = (&'a str, &'a SyncPlan)>,
        shown: impl Fn(&str, &SyncPlan) -> Json,
    ) -> Self {
        let planned = |(endpoint, plan): (&'a str, &'a SyncPlan)| {
            (endpoint.to_owned(), Planned { version: plan.version, plan: shown(endpoint, plan) })
        };
        Self { format: FORMAT, desired: desired.digest(), targets: plans.into_iter().map(planned).collect() }
    }

    /// Writes it, at once for whoever looks, and for its owner alone.
    pub(super) fn write(&self, path: &Path) -> Result<(), Error> {
        let failed = |source| Error::PlanNotKept { path: path.to_owned(), source };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut file = tempfile::Builder::new().prefix(".plan-").tempfile_in(folder).map_err(failed)?;
        let mut bytes = serde_json::to_vec(self).map_err(|error| failed(error.into()))?;
        bytes.push(b'\n');
        file.write_all(&bytes).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
        file.persist(path).map_err(|error| failed(error.error))?;
        Ok(())
    }

    /// Reads it, and refuses what was planned for something else.
    pub(super) fn read(path: &Path, desired: &Desired) -> Result<Self, Error> {
        let refused = |why: &str| Error::Plan { path: path.to_owned(), why: why.to_owned() };
        let bytes =
            fs::read(path).map_err(|source| Error::Configuration { path: path.to_owned(), source })?;
        let plan: Self = serde_json::from_slice(&bytes).map_err(|error| {
            refused(&format!("it is no plan that `setpoint haproxy plan --out` wrote: {error}"))
        })?;
        if plan.format != FORMAT {
            return Err(refused("another version of setpoint wrote it"));
        }
        if plan.desired != desired.digest() {
            return Err(refused("the configuration or its files have changed since it was made"));
        }
        Ok(plan)
    }

    /// The version that the configuration of a HAProxy had.
    pub(super) fn version(&self, endpoint: &str) -> Option<u64> {
        self.targets.get(endpoint).map(|planned| planned.version)
    }
}
