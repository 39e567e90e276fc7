//! Works for as long as this instance leads, again and again.

use tokio_util::sync::CancellationToken;

use super::elector::{Elector, LeaseError};
use super::fence::Fence;

/// What happens to the leadership.
#[derive(Debug)]
pub enum LeadershipEvent<'a> {
    /// Another instance holds the Lease, or nobody does yet.
    Standby {
        /// Who holds it.
        holder: Option<&'a str>,
    },
    /// This instance leads.
    Leading {
        /// How often the Lease has changed hands.
        transitions: i32,
    },
    /// This instance could not renew the Lease in time, or another took it.
    Lost,
    /// The work ended, and the Lease is given back.
    Ended,
    /// The Lease could not be read or written.
    Failed(&'a LeaseError),
}

/// Waits for the leadership and does `work` while it lasts, until it is cancelled; then gives the Lease back.
///
/// The work is given a fence that closes before another may lead, and a token that is cancelled with `cancel`. When the
/// leadership is lost, the work is dropped where it is.
pub async fn lead<W>(
    elector: &Elector,
    cancel: &CancellationToken,
    mut report: impl FnMut(LeadershipEvent<'_>),
    mut work: impl FnMut(Fence, CancellationToken) -> W,
) where
    W: Future<Output = ()>,
{
    while !cancel.is_cancelled() {
        let campaign = elector.campaign(|looked| match looked {
            Ok(holder) => report(LeadershipEvent::Standby { holder }),
            Err(error) => report(LeadershipEvent::Failed(error)),
        });
        let Some(mut leadership) = cancel.run_until_cancelled(campaign).await else { return };
        let fence = leadership.fence.clone();
        report(LeadershipEvent::Leading { transitions: fence.transitions() });
        let lost = tokio::select! {
            () = elector.hold(&mut leadership) => true,
            () = work(fence, cancel.child_token()) => false,
        };
        report(if lost { LeadershipEvent::Lost } else { LeadershipEvent::Ended });
        if let Err(error) = elector.release(leadership).await {
            report(LeadershipEvent::Failed(&error));
        }
    }
}
