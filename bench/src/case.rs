//! The cases: what each does, at which sizes, and what it must reach.

use clap::ValueEnum;

/// One thing that is measured. Items have two dependencies and configurators that do nothing, unless the
/// case says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Case {
    /// Reconciles a graph of which nothing exists yet.
    CreateAll,
    /// Reconciles no intent at all: everything goes.
    DeleteAll,
    /// Reconciles again; nothing was edited.
    NoOp,
    /// Reconciles again after one item of the intended graph was edited in place.
    OneChange,
    /// Reconciles again with an intended graph that was built anew and is equal.
    NoOpRebuilt,
    /// Creates one item and all that depends on it.
    HubCreate,
    /// Deletes one item and all that depends on it.
    HubDelete,
    /// Puts one item that depends on all the others, and those.
    FanInPut,
    /// Creates one item that depends on all the others, and those.
    FanIn,
    /// Creates items that live in a subgraph each.
    Subgraphs,
    /// Puts items in random order.
    BuildRandom,
    /// Puts items in the order of their names.
    BuildSorted,
}

/// How many items a case has, and what it must reach with them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// The number of items.
    pub(crate) n: u32,
    /// The seconds that it may take at most on two cores; none if nothing was set.
    pub(crate) target: Option<f64>,
}

const fn at(n: u32, target: f64) -> Size {
    Size { n, target: Some(target) }
}

impl Case {
    /// The sizes at which the case is run.
    pub(crate) fn sizes(self) -> Vec<Size> {
        match self {
            Self::CreateAll => vec![at(100_000, 0.15), at(300_000, 0.45), at(1_000_000, 2.5)],
            Self::DeleteAll => vec![at(300_000, 0.45)],
            Self::NoOp | Self::OneChange => vec![at(300_000, 0.0013)],
            Self::NoOpRebuilt => vec![at(300_000, 0.08)],
            Self::HubCreate => vec![at(200_000, 0.5)],
            Self::HubDelete => vec![at(200_000, 0.6)],
            Self::FanInPut => vec![at(100_000, 0.25)],
            Self::FanIn => vec![at(100_000, 0.4)],
            Self::Subgraphs => vec![at(50_000, 1.0)],
            Self::BuildRandom => vec![at(1_000_000, 5.0)],
            Self::BuildSorted => vec![Size { n: 1_000_000, target: None }],
        }
    }

    /// What the case is called on the command line and in reports.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Whether the puts are timed; otherwise the reconciliation is.
    pub(crate) fn times_puts(self) -> bool {
        matches!(self, Self::FanInPut | Self::BuildRandom | Self::BuildSorted)
    }
}
