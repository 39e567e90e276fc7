//! Whether HAProxy runs what it was told while it ran, and what somebody else told it.

use std::collections::BTreeSet;

use setpoint_haproxy::compare::{Diff, Operation, Subject};
use setpoint_haproxy::model::ObjectKind;
use setpoint_haproxy::text::Document;
use setpoint_plan::Action;

use super::{Run, SyncResult};
use crate::client::ApiError;
use crate::error::{Stage, SyncError};
use crate::running::{Aspect, Compared, RunningDifference, action, compare_running};
use crate::target::Target;

/// Which server of which backend an operation leaves behind.
fn server_of(operation: &Operation) -> Option<(String, String)> {
    let Subject::Child { kind: ObjectKind::Server, key, .. } = &operation.subject else { return None };
    let backend = operation.section.name.as_ref().filter(|_| operation.action != Action::Delete)?;
    Some((backend.to_string(), key.to_string()))
}

impl<T: Target> Run<'_, T> {
    /// Sees to it that servers run as HAProxy was told, where it was told without a reload. What an operator has decided of a server
    /// is no difference.
    pub(super) async fn read_back_running(&self, diff: &Diff, desired: &Document) -> Result<(), SyncError> {
        let told: BTreeSet<_> = diff.operations().iter().filter_map(server_of).collect();
        if told.is_empty() {
            return Ok(());
        }
        let found = compare_running(self.target, desired, Compared::Only(&told)).await;
        let found = found.map_err(|error| cannot_be_read(error, Stage::ReadBack))?;
        let wrong: Vec<String> = found
            .iter()
            .filter(|difference| difference.aspect != Aspect::State)
            .map(ToString::to_string)
            .collect();
        if wrong.is_empty() {
            return Ok(());
        }
        let message = format!("HAProxy does not run what it was told: {}", wrong.join(", "));
        Err(SyncError::new(Stage::ReadBack, message).hint("a reload brings it to its configuration"))
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
        let changes: BTreeSet<_> = diff.operations().iter().filter_map(server_of).collect();
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
        let Some(first) = others.first() else { return Ok(()) };
        let Some(actions) = actions else {
            let message = format!("{first}, and no call puts that right");
            return Err(SyncError::new(Stage::Apply, message).hint("a reload brings it to its configuration"));
        };
        let repaired = async {
            // The text stays as it is: it is what the actions are sent with.
            let (text, version) = self.target.read().await?;
            self.target.push_with_actions(&text, version, &actions.join(";")).await
        };
        let changed = repaired.await.map_err(|error| not_repaired(first, error))?;
        result.post_sync_version = changed.version.or(result.post_sync_version);
        result.repaired.extend(others);
        Ok(())
    }
}

fn cannot_be_read(error: ApiError, stage: Stage) -> SyncError {
    SyncError::new(stage, "the servers that run can't be read").caused_by(super::failure::flat(error))
}

fn not_repaired(difference: &RunningDifference, error: ApiError) -> SyncError {
    SyncError::new(Stage::Apply, format!("{difference}, and can't be put right"))
        .caused_by(super::failure::flat(error))
}
