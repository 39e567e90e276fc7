//! Data beside items, and how it shows.

use std::fmt;

/// Data that a graph keeps beside its items, and how it shows in drawings.
///
/// A graph of intended state keeps none: `()`.
///
/// ```
/// use setpoint_graph::{Graph, Look, State};
///
/// #[derive(Debug)]
/// enum Health { Fine, Broken(String) }
///
/// impl State for Health {
///     type Shared = ();
///     fn look(&self) -> Look {
///         match self {
///             Self::Fine => Look::default(),
///             Self::Broken(error) => Look { error: Some(error.clone()), ..Look::default() },
///         }
///     }
/// }
///
/// let current: Graph<Health> = Graph::new("current");
/// # let _ = (current, Health::Fine, Health::Broken(String::new()));
/// ```
pub trait State: fmt::Debug + Send + Sync + 'static {
    /// Data kept once for the whole graph.
    type Shared: Default + fmt::Debug + Send + Sync;

    /// How the item's state shows in drawings.
    fn look(&self) -> Look {
        Look::default()
    }
}

impl State for () {
    type Shared = ();
}

/// How an item's state shows in drawings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// Whether the item exists in the managed system.
    pub created: bool,
    /// Whether an operation on it is under way.
    pub in_transition: bool,
    /// What went wrong last.
    pub error: Option<String>,
}

impl Default for Look {
    fn default() -> Self {
        Self { created: true, in_transition: false, error: None }
    }
}
