//! What happens to an item on the way from one graph to another.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{DifferenceKind, ItemRef};

/// What happens to an item in a transition, as a drawing shows it.
///
/// ```
/// use setpoint_graph::Mark;
/// assert_eq!(Mark::Added.sign(), "+");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// It comes.
    Added,
    /// Its state changes.
    Changed,
    /// It goes, and comes back.
    Recreated,
    /// It goes.
    Removed,
    /// It goes from one subgraph to another.
    Moved,
    /// It stays as it is.
    Unchanged,
    /// It is to come, and waits for something.
    Pending,
    /// An operation on it failed.
    Failed,
}

/// Marks that a caller knows better than a comparison of the two graphs.
pub type Marks = BTreeMap<ItemRef, Mark>;

impl Mark {
    /// A sign for it, so that colour is not the only cue; empty for what stays.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Added => "+",
            Self::Changed => "~",
            Self::Recreated => "±",
            Self::Removed => "-",
            Self::Moved => ">",
            Self::Unchanged => "",
            Self::Pending => "?",
            Self::Failed => "!",
        }
    }

    /// A word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Changed => "changed",
            Self::Recreated => "recreated",
            Self::Removed => "removed",
            Self::Moved => "moved",
            Self::Unchanged => "unchanged",
            Self::Pending => "pending",
            Self::Failed => "failed",
        }
    }
}

impl From<DifferenceKind> for Mark {
    fn from(change: DifferenceKind) -> Self {
        match change {
            DifferenceKind::Added => Self::Added,
            DifferenceKind::Removed => Self::Removed,
            DifferenceKind::Modified => Self::Changed,
            DifferenceKind::Moved => Self::Moved,
        }
    }
}
