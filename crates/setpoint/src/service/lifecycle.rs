//! A long-running command, as systemd and others outside see it.

#[cfg(feature = "composite")]
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use setpoint_observe::Observed;
#[cfg(feature = "composite")]
use setpoint_observe::StateChange;
#[cfg(feature = "composite")]
use tokio::sync::broadcast::{Receiver, error::RecvError};

use super::endpoints::{Endpoints, EndpointsError};
use super::systemd::{KeepAlive, Systemd};
use super::take_small_pages;
use crate::report::Report;

/// What a long-running command has, whatever it does: its endpoints, and systemd's signs of life where it runs as a service.
#[derive(Debug)]
pub(crate) struct Service {
    systemd: Systemd,
    _alive: Option<KeepAlive>,
    _endpoints: Option<Endpoints>,
}

impl Service {
    /// Begins, and serves the endpoints if there is an address for them. While the only thread of the runtime is busy with something
    /// long, `work_done` returns how much of that was done.
    pub(crate) fn start(
        observe: Option<SocketAddr>,
        observed: Arc<dyn Observed>,
        report: Report,
        work_done: impl Fn() -> u64 + Send + 'static,
    ) -> Result<Self, EndpointsError> {
        take_small_pages();
        let endpoints = observe.map(|address| Endpoints::serve(address, observed)).transpose()?;
        if let Some(endpoints) = &endpoints {
            report.info(&format!("the endpoints are served on http://{}", endpoints.address()));
        }
        let systemd = Systemd::from_environment();
        let alive = systemd.keep_alive(work_done);
        Ok(Self { systemd, _alive: alive, _endpoints: endpoints })
    }

    /// Reports that it does its work, and how that goes.
    pub(crate) fn ready(&mut self, status: &str) {
        self.systemd.ready(status);
    }

    /// Reports each change of the state, for as long as this is polled.
    #[cfg(feature = "composite")]
    pub(crate) async fn follow(&mut self, mut changes: Receiver<StateChange>) -> Infallible {
        loop {
            match changes.recv().await {
                Ok(change) if change.to.is_ready() => self.ready(change.to.as_str()),
                Ok(change) => self.status(change.to.as_str()),
                // What was missed is older than what comes next.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return std::future::pending().await,
            }
        }
    }

    /// Reports what it does while it can't do its work.
    #[cfg(any(feature = "host", feature = "composite"))]
    pub(crate) fn status(&mut self, status: &str) {
        self.systemd.status(status);
    }

    /// Reports that it ends.
    pub(crate) fn stopping(&mut self) {
        self.systemd.stopping();
    }
}
