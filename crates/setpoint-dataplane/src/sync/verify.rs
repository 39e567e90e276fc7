//! Whether a reload that was ordered has succeeded.

use tokio::time::{Instant, sleep};

use super::failure::flat;
use super::{Run, SyncResult};
use crate::client::{Process, ReloadStatus};
use crate::error::{Stage, SyncError};
use crate::target::Target;

impl<T: Target> Run<'_, T> {
    /// Waits for a reload. An error says why it is not known to have succeeded.
    ///
    /// An API that was restarted calls any reload a success that it has never heard of, so that another process has to serve
    /// than before.
    pub(super) async fn verify(&self, id: &str, before: Option<&Process>) -> Result<(), String> {
        let within = self.options.reload_verification_timeout;
        let deadline = Instant::now() + within;
        loop {
            let why = match self.target.reload(id).await {
                Ok(reload) => match reload.status {
                    ReloadStatus::Failed if reload.response.is_empty() => return Err("it failed".to_owned()),
                    ReloadStatus::Failed => return Err(reload.response),
                    ReloadStatus::Succeeded if self.has_another(before).await => return Ok(()),
                    ReloadStatus::Succeeded => "the same process serves as before".to_owned(),
                    ReloadStatus::InProgress => "it is still under way".to_owned(),
                },
                Err(error) => {
                    tracing::debug!(endpoint = self.target.endpoint(), id, %error, "a reload can't be asked about");
                    error.to_string()
                }
            };
            if Instant::now() >= deadline {
                return Err(format!("it was not seen to succeed within {within:?}: {why}"));
            }
            sleep(self.options.reload_poll_interval).await;
        }
    }

    /// Waits until another process serves than before. Returns whether that is known. An error says why it is not.
    pub(super) async fn verify_process(&self, before: Option<&Process>) -> Result<bool, String> {
        if before.is_none_or(|before| before.pid.is_none()) {
            return Ok(false);
        }
        let within = self.options.reload_verification_timeout;
        let deadline = Instant::now() + within;
        while !self.has_another(before).await {
            if Instant::now() >= deadline {
                return Err(format!("the same process serves as before, {within:?} later"));
            }
            sleep(self.options.reload_poll_interval).await;
        }
        Ok(true)
    }

    /// The process that serves before a reload is ordered, where reloads are verified.
    pub(super) async fn process_before(&self) -> Option<Process> {
        if !self.options.verify_reload {
            return None;
        }
        self.target.process().await.ok()
    }

    /// Waits for a reload that somebody else ordered: the text is there, and whether HAProxy takes it is not known before.
    pub(super) async fn wait_for_pending(&self, result: &mut SyncResult) -> Result<(), SyncError> {
        if !self.options.verify_reload {
            return Ok(());
        }
        // Before it is asked what is pending: what is pending then ends with another process than this one.
        let before = self.process_before().await;
        let pending = self.target.pending_reload().await;
        let pending = pending.map_err(|error| {
            SyncError::new(Stage::ReloadVerification, "it can't be asked whether HAProxy reloads")
                .caused_by(flat(error))
        })?;
        let Some(id) = pending else { return Ok(()) };
        self.verify(&id, before.as_ref()).await.map_err(|why| {
            result.reload_verification_error = Some(why.clone());
            let message = format!("the reload {id}, which was pending, did not succeed: {why}");
            SyncError::new(Stage::ReloadVerification, message)
                .hint("HAProxy has not loaded this configuration; look at what it says of it")
        })
    }

    /// Returns whether another process serves than before, as far as that can be told.
    async fn has_another(&self, before: Option<&Process>) -> bool {
        let Some(Process { pid: Some(pid), uptime, .. }) = before else { return true };
        match self.target.process().await {
            Ok(now) => now.pid.is_none_or(|other| other != *pid) || now.uptime < *uptime,
            Err(_) => false,
        }
    }
}
