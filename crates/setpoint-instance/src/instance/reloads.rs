//! Reloads: those that wait, and what came of those that were.
//!
//! Commits that come while a reload waits share it. A reload is known by its day and a number, which is never given twice: what
//! is known of reloads is kept in a file, and read by the program that comes next. A reload that waited when a program ended is
//! made by the next one, under the same name.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::{Timestamp, civil::Date, tz::TimeZone};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// How many reloads that ended are remembered.
const REMEMBERED: usize = 100;
/// How many bytes of what HAProxy printed are remembered of each.
const RESPONSE: usize = 16 << 10;

/// How far a reload has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReloadStatus {
    /// It waits, or is under way.
    InProgress,
    /// A worker serves that read what was written.
    Succeeded,
    /// There is none.
    Failed,
}

/// One reload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reload {
    /// Its name, such as `2026-01-31-4`.
    pub id: String,
    /// How far it has come.
    pub status: ReloadStatus,
    /// What HAProxy printed, or why there is no reload.
    pub response: String,
    /// When it ended, in seconds since 1970; when it was ordered, if it has not. None if it is not remembered.
    pub timestamp: Option<i64>,
}

/// All reloads of an instance.
#[derive(Debug)]
pub(crate) struct Reloads {
    file: PathBuf,
    known: Known,
    /// When the one that waits is due.
    due: Option<Instant>,
}

/// What is kept of reloads between two runs of this program.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Known {
    /// The number of the next one.
    next: u64,
    pending: Option<Reload>,
    /// Those that ended, the newest first.
    ended: VecDeque<Reload>,
}

/// The day and the number in a name.
fn parsed(id: &str) -> Option<(Date, u64)> {
    let (day, number) = id.rsplit_once('-')?;
    Some((day.parse().ok()?, number.parse().ok()?))
}

/// The beginning of a text, in whole letters.
fn beginning(text: &str) -> &str {
    text.get(..text.floor_char_boundary(RESPONSE)).unwrap_or(text)
}

impl Reloads {
    /// The reloads that are noted in a folder. One that waited is due at once.
    pub(crate) fn read(folder: &Path) -> Self {
        let file = folder.join("reloads.json");
        let known: Option<Known> = fs::read(&file).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let known = known.unwrap_or_default();
        let due = known.pending.as_ref().map(|_| Instant::now());
        Self { file, known, due }
    }

    /// Writes down what is known. A crash of the machine may lose it, and never tears it.
    fn save(&self) {
        let draft = self.file.with_extension("json.new");
        let text = serde_json::to_vec(&self.known).map_err(io::Error::from);
        let saved =
            text.and_then(|text| fs::write(&draft, text)).and_then(|()| fs::rename(&draft, &self.file));
        if let Err(error) = saved {
            tracing::warn!(%error, file = %self.file.display(), "reloads could not be written down");
        }
    }

    /// Orders a reload after a delay, unless one waits already. Returns its name.
    pub(crate) fn order(&mut self, delay: Duration) -> String {
        if let Some(pending) = &self.known.pending {
            return pending.id.clone();
        }
        let now = Timestamp::now();
        let id = format!("{}-{}", now.to_zoned(TimeZone::UTC).date(), self.known.next);
        self.known.next += 1;
        let reload = Reload {
            id: id.clone(),
            status: ReloadStatus::InProgress,
            response: String::new(),
            timestamp: Some(now.as_second()),
        };
        (self.known.pending, self.due) = (Some(reload), Some(Instant::now() + delay));
        self.save();
        id
    }

    /// Has the one that waits wait on.
    pub(crate) fn postpone(&mut self, delay: Duration) {
        self.due = self.due.map(|_| Instant::now() + delay);
    }

    /// When the one that waits is due.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Notes what came of the one that waits: whoever reloads, reloads all that was written.
    pub(crate) fn end(&mut self, status: ReloadStatus, response: &str) -> Option<Reload> {
        let mut reload = self.known.pending.take()?;
        self.due = None;
        reload.status = status;
        beginning(response).clone_into(&mut reload.response);
        reload.timestamp = Some(Timestamp::now().as_second());
        self.known.ended.push_front(reload.clone());
        self.known.ended.truncate(REMEMBERED);
        self.save();
        Some(reload)
    }

    /// The one that waits, the last that succeeded, and those that failed; the newest first.
    pub(crate) fn list(&self) -> Vec<Reload> {
        let mut succeeded = 0;
        let ended = self.known.ended.iter().filter(|reload| {
            succeeded += usize::from(reload.status == ReloadStatus::Succeeded);
            reload.status == ReloadStatus::Failed || succeeded == 1
        });
        self.known.pending.iter().chain(ended).cloned().collect()
    }

    /// One by its name; none if there never was one. One that is not remembered any more, and is older than one that succeeded,
    /// has succeeded as far as the API is concerned: what it was to load is loaded.
    pub(crate) fn find(&self, id: &str) -> Option<Reload> {
        let mut known = self.known.pending.iter().chain(&self.known.ended);
        if let Some(found) = known.find(|reload| reload.id == id) {
            return Some(found.clone());
        }
        let last = self.known.ended.iter().find(|reload| reload.status == ReloadStatus::Succeeded)?;
        let ((day, number), (last_day, last_number)) = (parsed(id)?, parsed(&last.id)?);
        (day <= last_day && number < last_number).then(|| Reload {
            id: id.to_owned(),
            status: ReloadStatus::Succeeded,
            response: String::new(),
            timestamp: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reloads() -> (tempfile::TempDir, Reloads) {
        let folder = tempfile::tempdir().unwrap();
        let reloads = Reloads::read(folder.path());
        (folder, reloads)
    }

    #[test]
    fn commits_share_the_reload_that_waits() {
        let (_folder, mut reloads) = reloads();
        let first = reloads.order(Duration::from_secs(5));
        assert_eq!(reloads.order(Duration::from_secs(5)), first);
        assert!(first.ends_with("-0") && first.len() == "2026-01-31-0".len(), "{first}");
        reloads.end(ReloadStatus::Succeeded, "fine");
        assert!(reloads.order(Duration::ZERO).ends_with("-1"));
        assert_eq!(reloads.find(&first).map(|reload| reload.status), Some(ReloadStatus::Succeeded));
    }

    #[test]
    fn of_those_that_succeeded_only_the_last_is_listed() {
        let (_folder, mut reloads) = reloads();
        for status in [ReloadStatus::Succeeded, ReloadStatus::Failed, ReloadStatus::Succeeded] {
            reloads.order(Duration::ZERO);
            reloads.end(status, "");
        }
        let listed: Vec<_> = reloads.list().iter().map(|reload| reload.status).collect();
        assert_eq!(listed, [ReloadStatus::Succeeded, ReloadStatus::Failed]);
    }

    #[test]
    fn a_name_is_never_given_twice_and_one_that_waited_waits_after_a_restart() {
        let (folder, mut first) = reloads();
        let ended = first.order(Duration::ZERO);
        first.end(ReloadStatus::Failed, "why");
        let waiting = first.order(Duration::from_hours(1));
        drop(first);
        let mut second = Reloads::read(folder.path());
        assert_eq!(second.find(&ended).map(|reload| reload.response), Some("why".to_owned()));
        assert_eq!(second.find(&waiting).map(|reload| reload.status), Some(ReloadStatus::InProgress));
        assert!(second.due().is_some_and(|due| due <= Instant::now()));
        second.end(ReloadStatus::Succeeded, "");
        let third = second.order(Duration::ZERO);
        assert!(third != ended && third != waiting, "{third}");
    }

    #[test]
    fn one_that_was_never_ordered_is_not_there_and_an_old_one_has_succeeded() {
        let (_folder, mut reloads) = reloads();
        assert_eq!(reloads.find("2026-01-31-0"), None);
        for _ in 0..REMEMBERED + 2 {
            reloads.order(Duration::ZERO);
            reloads.end(ReloadStatus::Succeeded, "");
        }
        let last = reloads.list().remove(0).id;
        let (day, number) = parsed(&last).unwrap();
        let found = |number: u64| reloads.find(&format!("{day}-{number}")).map(|reload| reload.status);
        assert_eq!(found(0), Some(ReloadStatus::Succeeded));
        assert_eq!(found(number + 1), None);
        assert_eq!(reloads.find("9999-12-31-0"), None);
        assert_eq!(reloads.find("2026-99-31-0"), None);
    }

    #[test]
    fn what_haproxy_printed_is_remembered_up_to_a_limit() {
        let (_folder, mut reloads) = reloads();
        reloads.order(Duration::ZERO);
        let ended = reloads.end(ReloadStatus::Failed, &"\u{e4}".repeat(RESPONSE)).unwrap();
        assert_eq!(ended.response.len(), RESPONSE);
    }
}
