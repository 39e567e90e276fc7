//! A long-running command that makes pass after pass.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use setpoint_observe::ObservedCommand;
use tokio::task::JoinHandle;

use super::endpoints::EndpointsError;
use super::lifecycle::Service;
use crate::report::Report;

/// How long a command may give no sign of life before it would help to start it anew.
const PATIENCE: Duration = Duration::from_mins(1);
/// How often it gives one.
const BEAT: Duration = Duration::from_secs(5);

/// A long-running command that makes pass after pass. Its state is reported to systemd and at its endpoints.
#[derive(Debug)]
pub(crate) struct Running {
    command: Arc<ObservedCommand>,
    service: Service,
    heart: JoinHandle<()>,
}

impl Running {
    /// Begins, as [`Service::start`] does.
    pub(crate) fn start(
        name: &'static str,
        observe: Option<SocketAddr>,
        report: Report,
        work_done: impl Fn() -> u64 + Send + 'static,
    ) -> Result<Self, EndpointsError> {
        let command = Arc::new(ObservedCommand::new(name, PATIENCE));
        let observed = Arc::clone(&command);
        let service = Service::start(observe, observed, report, work_done)?;
        let beating = Arc::clone(&command);
        let heart = tokio::spawn(async move {
            loop {
                beating.health().beat();
                tokio::time::sleep(BEAT).await;
            }
        });
        Ok(Self { command, service, heart })
    }

    /// Reports a pass, and its outcome.
    pub(crate) fn passed(&mut self, status: &str) {
        self.command.passed(status);
        self.service.ready(status);
    }

    /// Reports a pass that failed, and is made again.
    #[cfg(feature = "host")]
    pub(crate) fn failed(&mut self, why: &str) {
        self.command.failed(why);
        self.service.status(why);
    }

    /// Reports a pass of which not all succeeded, and what did not.
    #[cfg(any(feature = "host", feature = "sync"))]
    pub(crate) fn partly_failed(&mut self, status: &str, why: &str) {
        self.command.failed(why);
        self.service.ready(status);
    }

    /// Reports that the command ends.
    pub(crate) fn stopping(&mut self) {
        self.command.stopping();
        self.service.stopping();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.heart.abort();
    }
}
