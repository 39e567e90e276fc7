//! Whether HAProxy runs what it was told while it ran, and what somebody else told it.

use std::collections::BTreeSet;

use setpoint_haproxy::compare::{Diff, Operation, Subject};
use setpoint_haproxy::text::Document;

use super::{Run, SyncResult};
use crate::client::ApiError;
use crate::error::{Stage, SyncError};
use crate::running::{Aspect, Compared, RunningDifference, Told, action, compare_running};
use crate::target::Target;

/// What can be done where a running HAProxy is not as it was told.
const RELOAD: &str = "a reload brings it to its configuration";

impl<T: Target> Run<'_, T> {
    /// Sees to it that servers run as HAProxy was told, where it was told without a reload. What an operator has decided of a server
    /// that the configuration does not speak of is no difference.
    pub(super) async fn read_back_running<'o>(
        &self,
        operations: impl Iterator<Item = &'o Operation>,
        desired: &Document,
    ) -> Result<(), SyncError> {
        let told = Told::of(operations);
        if told.is_empty() {
            return Ok(());
        }
        let found = compare_running(self.target, desired, Compared::Told(&told)).await;
        let found = found.map_err(|error| cannot_be_read(error, Stage::ReadBack))?;
        not_taken(&found)
    }

    /// Sees to it that a map which HAProxy was told of runs with as many entries as its file has.
    pub(super) async fn read_back_map(&self, name: &str, bytes: &[u8]) -> Result<(), SyncError> {
        let runs = self.target.map_length(name).await.map_err(|error| {
            let message = format!("the entries of map {name} can't be read");
            SyncError::new(Stage::ReadBack, message).caused_by(super::failure::flat(error))
        })?;
        let wanted = String::from_utf8_lossy(bytes)
            .lines()
            .filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
            .count();
        match runs {
            // Whoever does not know it by this name has said that it was told.
            None => Ok(()),
            Some(runs) if runs == wanted => Ok(()),
            Some(runs) => {
                let message = format!(
                    "HAProxy does not run what it was told: map {name} has {runs} entries and not {wanted}"
                );
                Err(SyncError::new(Stage::ReadBack, message).hint(RELOAD))
            }
        }
    }

    /// What somebody has told HAProxy while it runs, if that is to be put right. What the configuration changes is none of it.
    pub(super) async fn running_differences(
        &self,
        desired: &Document,
        diff: &Diff,
    ) -> Result<Vec<RunningDifference>, SyncError> {
        if !self.options.runtime_drift {
            return Ok(Vec::new());
        }
        let found = compare_running(self.target, desired, Compared::All).await;
        let mut found = found.map_err(|error| cannot_be_read(error, Stage::Compare))?;
        let changes = Told::of(diff.operations().iter()).servers;
        let new_sections: BTreeSet<_> = diff
            .operations()
            .iter()
            .filter(|operation| !matches!(operation.subject, Subject::Child { .. }))
            .filter_map(|operation| operation.section.name.as_ref().map(ToString::to_string))
            .collect();
        found.retain(|difference| {
            !changes.contains(&(difference.backend.clone(), difference.server.clone()))
                && !new_sections.contains(&difference.backend)
        });
        Ok(found)
    }

    /// Puts right what somebody has told HAProxy while it runs, where that is wanted.
    pub(super) async fn repair_running(
        &self,
        desired: &Document,
        result: &mut SyncResult,
    ) -> Result<(), SyncError> {
        if !self.options.runtime_drift {
            return Ok(());
        }
        let found = compare_running(self.target, desired, Compared::All).await;
        let found = found.map_err(|error| cannot_be_read(error, Stage::Compare))?;
        let (states, others): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|difference| difference.aspect == Aspect::State);
        for difference in states {
            let RunningDifference { backend, server, wanted, .. } = &difference;
            self.target
                .set_admin_state(backend, server, wanted)
                .await
                .map_err(|error| not_repaired(&difference, error))?;
            result.repaired.push(difference);
        }
        let actions: Option<Vec<String>> = others.iter().map(action).collect();
        let Some(first) = others.first() else { return self.is_repaired(desired, result).await };
        let Some(actions) = actions else {
            let message = format!("{first}, and no call puts that right");
            return Err(SyncError::new(Stage::Apply, message).hint(RELOAD));
        };
        let repaired = async {
            // The text stays as it is: it is what the actions are sent with.
            let (text, version) = self.target.read().await?;
            self.target.push_with_actions(&text, version, &actions.join(";")).await
        };
        let changed = repaired.await.map_err(|error| not_repaired(first, error))?;
        result.post_sync_version = changed.version.or(result.post_sync_version);
        result.repaired.extend(others);
        self.is_repaired(desired, result).await
    }

    /// Sees to it that what was put right is right.
    async fn is_repaired(&self, desired: &Document, result: &SyncResult) -> Result<(), SyncError> {
        if result.repaired.is_empty() {
            return Ok(());
        }
        let found = compare_running(self.target, desired, Compared::All).await;
        not_taken(&found.map_err(|error| cannot_be_read(error, Stage::ReadBack))?)
    }
}

/// An error that names what HAProxy does not run as it was told, if that is anything.
fn not_taken(found: &[RunningDifference]) -> Result<(), SyncError> {
    if found.is_empty() {
        return Ok(());
    }
    let wrong: Vec<String> = found.iter().map(ToString::to_string).collect();
    let message = format!("HAProxy does not run what it was told: {}", wrong.join(", "));
    Err(SyncError::new(Stage::ReadBack, message).hint(RELOAD))
}

fn cannot_be_read(error: ApiError, stage: Stage) -> SyncError {
    SyncError::new(stage, "the servers that run can't be read").caused_by(super::failure::flat(error))
}

fn not_repaired(difference: &RunningDifference, error: ApiError) -> SyncError {
    SyncError::new(Stage::Apply, format!("{difference}, and can't be put right"))
        .caused_by(super::failure::flat(error))
}
