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
    /// Whether the dependent is made anew when the required item is modified.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restarts: bool,
}

/// Why an item depends on another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Because {
    /// Its path is inside the required directory.
    Inside,
    /// It is a link to the required item.
    Target,
    /// One of its attributes names the required item as `${…}`.
    Reference,
    /// The manifest says so with `after`.
    After,
}

impl Because {
    /// The reason in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Inside => "it is inside of it",
            Self::Target => "it points to it",
            Self::Reference => "it refers to it",
            Self::After => "the manifest says that it comes after it",
        }
    }
}

pub(crate) fn derive(needs: &[Need], deps: &mut Deps) {
    for need in needs {
        let dependency = deps.requires(&need.item).because(need.because.words());
        if need.restarts {
            dependency.recreate_when_modified();
        }
    }
}
