//! Reloads: those that wait, and what came of those that were.
//!
//! Commits that come while a reload waits share it. A reload is known by its day and a number.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::{Timestamp, tz::TimeZone};
use tokio::time::Instant;

/// So many that ended are remembered.
const REMEMBERED: usize = 100;

/// How far a reload has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReloadStatus {
    /// It waits, or is under way.
    InProgress,
    /// A worker serves that read what was written.
    Succeeded,
    /// There is none.
    Failed,
}

/// One reload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reload {
    /// Its name, such as `2026-01-31-4`.
    pub id: String,
    /// How far it has come.
    pub status: ReloadStatus,
    /// What HAProxy printed, or why there is no reload.
    pub response: String,
    /// When it ended, in seconds since 1970; when it was ordered, if it has not.
    pub timestamp: i64,
}

/// All reloads of an instance.
#[derive(Debug, Default)]
pub(crate) struct Reloads {
    pending: Option<(Reload, Instant)>,
    ended: VecDeque<Reload>,
    ordered: u64,
}

impl Reloads {
    /// Orders a reload after a delay, unless one waits already. Returns its name.
    pub(crate) fn order(&mut self, delay: Duration) -> String {
        let (ordered, now) = (&mut self.ordered, Timestamp::now());
        let make = || {
            let day = now.to_zoned(TimeZone::UTC).date();
            let id = format!("{day}-{ordered}");
            *ordered += 1;
            let timestamp = now.as_second();
            let reload = Reload { id, status: ReloadStatus::InProgress, response: String::new(), timestamp };
            (reload, Instant::now() + delay)
        };
        self.pending.get_or_insert_with(make).0.id.clone()
    }

    /// When the one that waits is due.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.pending.as_ref().map(|(_, due)| *due)
    }

    /// Notes what came of the one that waits: whoever reloads, reloads all that was written.
    pub(crate) fn end(&mut self, status: ReloadStatus, response: &str) -> Option<Reload> {
        let (mut reload, _) = self.pending.take()?;
        reload.status = status;
        response.clone_into(&mut reload.response);
        reload.timestamp = Timestamp::now().as_second();
        self.ended.push_front(reload.clone());
        self.ended.truncate(REMEMBERED);
        Some(reload)
    }

    /// The one that waits, the last that succeeded, and those that failed; the newest first.
    pub(crate) fn list(&self) -> Vec<Reload> {
        let mut succeeded = 0;
        let ended = self.ended.iter().filter(|reload| {
            succeeded += usize::from(reload.status == ReloadStatus::Succeeded);
            reload.status == ReloadStatus::Failed || succeeded == 1
        });
        self.pending.iter().map(|(reload, _)| reload).chain(ended).cloned().collect()
    }

    /// One by its name.
    pub(crate) fn find(&self, id: &str) -> Option<Reload> {
        let pending = self.pending.iter().map(|(reload, _)| reload);
        pending.chain(&self.ended).find(|reload| reload.id == id).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_share_the_reload_that_waits() {
        let mut reloads = Reloads::default();
        let first = reloads.order(Duration::from_secs(5));
        assert_eq!(reloads.order(Duration::from_secs(5)), first);
        assert!(first.ends_with("-0") && first.len() == "2026-01-31-0".len(), "{first}");
        reloads.end(ReloadStatus::Succeeded, "fine");
        assert!(reloads.order(Duration::ZERO).ends_with("-1"));
        assert_eq!(reloads.find(&first).map(|reload| reload.status), Some(ReloadStatus::Succeeded));
    }

    #[test]
    fn of_those_that_succeeded_only_the_last_is_listed() {
        let mut reloads = Reloads::default();
        for status in [ReloadStatus::Succeeded, ReloadStatus::Failed, ReloadStatus::Succeeded] {
            reloads.order(Duration::ZERO);
            reloads.end(status, "");
        }
        let listed: Vec<_> = reloads.list().iter().map(|reload| reload.status).collect();
        assert_eq!(listed, [ReloadStatus::Succeeded, ReloadStatus::Failed]);
    }
}
