//! What an item of a manifest depends on, and why.

use serde::{Deserialize, Serialize};
use setpoint_graph::{Deps, ItemRef};

/// One dependency as the manifest, or the item's path, says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Need {
    /// The required item.
    pub item: ItemRef,
    /// Why it is required.
    pub because: Because,
    /// What becomes of the dependent when something becomes of the required item.
    #[serde(alias = "tie", default)]
    pub dependence: Dependence,
}

/// How an item depends on another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dependence {
    /// It can't be there without the other.
    #[default]
    #[serde(alias = "exists")]
    Requires,
    /// It is not made or changed before the other is there, and stays whatever becomes of it.
    #[serde(alias = "follows")]
    After,
    /// The same, and it is applied again when the other was changed: a process restarts.
    #[serde(alias = "repeats", alias = "restarts")]
    RepeatsAfter,
}

/// Why an item depends on another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Because {
    /// Its path is inside the required directory.
    Inside,
    /// It is a link to the required item.
    Target,
    /// One of its attributes names the required item as `${…}`.
    Reference,
    /// The manifest says so with `after`.
    After,
    /// Its output goes there.
    Log,
    /// The manifest says so with `restart_on`.
    RestartOn,
    /// The manifest says so with `redo_on`.
    RedoOn,
}

impl Because {
    /// The reason in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Inside => "it is inside of it",
            Self::Target => "it points to it",
            Self::Reference => "it refers to it",
            Self::After => "the manifest says that it comes after it",
            Self::Log => "its output goes there",
            Self::RestartOn => "the manifest says that it restarts with it",
            Self::RedoOn => "the manifest says that it is done again with it",
        }
    }
}

pub(crate) fn derive(needs: &[Need], deps: &mut Deps) {
    for need in needs {
        let dependency = match need.dependence {
            Dependence::Requires => deps.requires(&need.item),
            Dependence::After | Dependence::RepeatsAfter => deps.after(&need.item),
        };
        dependency.because(need.because.words());
        if need.dependence == Dependence::RepeatsAfter {
            dependency.repeat_when_changed();
        }
    }
}
