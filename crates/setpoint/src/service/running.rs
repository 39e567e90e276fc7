//! A long-running command, as systemd and others outside see it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use setpoint_observe::ObservedCommand;
use tokio::task::JoinHandle;

use super::endpoints::{Endpoints, EndpointsError};
use super::systemd::{KeepAlive, Systemd};
use super::take_small_pages;
use crate::report::Report;

/// How long a command may give no sign of life before it would help to start it anew.
const PATIENCE: Duration = Duration::from_mins(1);
/// How often it gives one.
const BEAT: Duration = Duration::from_secs(5);

/// A long-running command. Its state is reported to systemd, where it runs as a service, and to whoever asks its endpoints.
#[derive(Debug)]
pub(crate) struct Running {
    command: Arc<ObservedCommand>,
    systemd: Systemd,
    heart: JoinHandle<()>,
    _alive: Option<KeepAlive>,
    _endpoints: Option<Endpoints>,
}

impl Running {
    /// Begins, and serves the endpoints if there is an address for them. While the only thread of the runtime is busy with something long, `work_done` says how much of that was done.
    pub(crate) fn start(
        name: &'static str,
        observe: Option<SocketAddr>,
        report: Report,
        work_done: impl Fn() -> u64 + Send + 'static,
    ) -> Result<Self, EndpointsError> {
        take_small_pages();
        let command = Arc::new(ObservedCommand::new(name, PATIENCE));
        let observed = Arc::clone(&command);
        let endpoints = observe.map(|address| Endpoints::serve(address, observed)).transpose()?;
        if let Some(endpoints) = &endpoints {
            report.info(&format!("the endpoints are served on http://{}", endpoints.address()));
        }
        let systemd = Systemd::from_environment();
        let alive = systemd.keep_alive(work_done);
        let beating = Arc::clone(&command);
        let heart = tokio::spawn(async move {
            loop {
                beating.health().beat();
                tokio::time::sleep(BEAT).await;
            }
        });
        Ok(Self { command, systemd, heart, _alive: alive, _endpoints: endpoints })
    }

    /// Reports a pass, and its outcome.
    pub(crate) fn passed(&mut self, status: &str) {
        self.command.passed(status);
        self.systemd.passed(status);
    }

    /// Reports a pass that failed, and is made again.
    #[cfg(feature = "host")]
    pub(crate) fn failed(&mut self, why: &str) {
        self.command.failed(why);
        self.systemd.status(why);
    }

    /// Reports a pass of which not all succeeded, and what did not.
    #[cfg(any(feature = "host", feature = "sync"))]
    pub(crate) fn partly_failed(&mut self, status: &str, why: &str) {
        self.command.failed(why);
        self.systemd.passed(status);
    }

    /// Reports that the command ends.
    pub(crate) fn stopping(&mut self) {
        self.command.stopping();
        self.systemd.stopping();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.heart.abort();
    }
}
