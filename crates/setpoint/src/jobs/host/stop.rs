//! How a person, or systemd, ends a command that works: the first signal lets what runs end, the second cancels it.

use tokio_util::sync::CancellationToken;

use crate::report::Report;
use crate::service::{RuntimeError, Signals};

/// What signals have asked for so far.
#[derive(Clone, Debug)]
pub(crate) struct Stop {
    /// Nothing more is started.
    drain: CancellationToken,
    /// What runs is cancelled.
    cancel: CancellationToken,
}

impl Stop {
    /// Listens for signals from now on, for as long as the runtime lives: none of them is missed, whatever is done meanwhile.
    pub(crate) fn listen() -> Result<Self, RuntimeError> {
        let mut signals = Signals::new()?;
        let stop = Self { drain: CancellationToken::new(), cancel: CancellationToken::new() };
        let asked = stop.clone();
        tokio::spawn(async move {
            signals.next().await;
            asked.drain.cancel();
            signals.next().await;
            asked.cancel.cancel();
        });
        Ok(stop)
    }

    /// Is cancelled when nothing more is to be started.
    pub(crate) fn drain(&self) -> &CancellationToken {
        &self.drain
    }

    /// Is cancelled when what runs is to end as well.
    pub(crate) fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Says what signals come to while operations run.
    pub(crate) async fn announce(self, report: Report) {
        self.drain.cancelled().await;
        report.info("Stopping: what runs is finished, nothing more is started. Once more cancels it.");
        self.cancel.cancelled().await;
        report.info("Cancelling what runs.");
    }
}
