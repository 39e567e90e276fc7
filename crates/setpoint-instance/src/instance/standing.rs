//! How a text in the files stands to HAProxy: whether HAProxy has accepted it, and whether HAProxy runs it.
//!
//! ```text
//!             ┌───── somebody else edits a file ──────▶ Foreign ──commit, always checked first──▶ Checked
//!             │                                            └──accepted──▶ Checked
//!  Good ──────┼── commit that was told, not checked ──▶ Unchecked ──accepted──▶ Checked, or Good if HAProxy runs it
//!             │                                            └──refused──▶ the last good text is written back: Good
//!             └── commit that was checked ────────────▶ Checked ──loaded──▶ Good
//! ```

use std::sync::Arc;

use setpoint_haproxy::compare::Diff;
use setpoint_haproxy::model::Context;
use setpoint_haproxy::text::Document;

use crate::configuration::same;

/// What HAProxy has said of the text in the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// HAProxy has accepted it, and runs it: it is the last good text.
    Good,
    /// A check accepted it, or nobody wants checks; whether it loads is not known.
    Checked,
    /// It was written by a commit, and HAProxy has not been asked about it.
    Unchecked,
    /// Somebody else wrote it, and HAProxy has not been asked about it. It is nobody's to undo before it is to be loaded.
    Foreign,
}

impl Standing {
    /// After a commit was written.
    pub(super) fn committed(is_checked: bool) -> Self {
        if is_checked { Self::Checked } else { Self::Unchecked }
    }

    /// After HAProxy accepted the text.
    pub(super) fn accepted(is_running: bool) -> Self {
        if is_running { Self::Good } else { Self::Checked }
    }

    /// Returns whether HAProxy was asked about it.
    pub(super) fn is_checked(self) -> bool {
        matches!(self, Self::Good | Self::Checked)
    }
}

/// What the running HAProxy runs.
#[derive(Clone, Debug)]
pub(super) enum Running {
    /// This text: it was loaded, or HAProxy was told what differs.
    Text(Arc<Document>),
    /// HAProxy ran this text, if it is known, and was perhaps told a part of what followed. Only a reload ends that.
    Since(Option<Arc<Document>>),
}

impl Running {
    /// It runs a text.
    pub(super) fn text(text: Document) -> Self {
        Self::Text(Arc::new(text))
    }

    /// Returns whether it is this text.
    pub(super) fn is(&self, text: &Document) -> bool {
        matches!(self, Self::Text(held) if same(held, text))
    }

    /// The last text that HAProxy is known to have run.
    pub(super) fn last(&self) -> Option<&Document> {
        match self {
            Self::Text(text) | Self::Since(Some(text)) => Some(text),
            Self::Since(None) => None,
        }
    }

    /// While HAProxy is told something, and after it could not be told all of it. Returns what it ran before.
    pub(super) fn interrupt(&mut self) -> Self {
        let since = match self {
            Self::Text(text) => Self::Since(Some(Arc::clone(text))),
            Self::Since(last) => Self::Since(last.clone()),
        };
        std::mem::replace(self, since)
    }

    /// After HAProxy was told a difference.
    pub(super) fn follow(&mut self, diff: &Diff, cx: &Context) {
        let Self::Text(text) = self else { return };
        *self = match text.apply_all(diff, cx) {
            Ok(text) => Self::text(text),
            Err(_) => Self::Since(Some(Arc::clone(text))),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_good_only_if_haproxy_accepted_it_and_runs_it() {
        assert_eq!(Standing::accepted(true), Standing::Good);
        assert_eq!(Standing::accepted(false), Standing::Checked);
        assert!(!Standing::committed(false).is_checked() && Standing::committed(true).is_checked());
        assert!(!Standing::Foreign.is_checked());
    }

    #[test]
    fn what_was_told_in_part_is_no_text_and_the_last_one_stays_known() {
        let text = |text: &str| Document::parse(text.as_bytes());
        let mut running = Running::text(text("global\n"));
        assert!(running.is(&text("global\n")) && !running.is(&text("global\n  daemon\n")));
        assert!(running.interrupt().is(&text("global\n")));
        assert!(!running.interrupt().is(&text("global\n")));
        assert!(!running.is(&text("global\n")));
        assert_eq!(running.last().map(Document::print), Some(b"global\n".to_vec()));
    }
}
