//! The journal of a graph: which references were touched by which revision.
//!
//! Every mutation of an item takes the next revision; those of empty subgraphs and of descriptions take
//! none. A reader that remembers the revision it has seen asks for what was touched since; where the journal
//! no longer reaches back that far it must compare everything.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{ItemRef, SlotId};

/// Tells one graph from every other of this process, also from its own clones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GraphId(u64);

impl GraphId {
    pub(crate) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// How many mutations a graph has seen.
///
/// ```
/// # use setpoint_graph::*;
/// # #[derive(Debug, PartialEq)]
/// # struct Part(&'static str, &'static [&'static str]);
/// # impl Item for Part {
/// #     const KIND: Kind = Kind::from_static("part");
/// #     fn name(&self) -> Name { Name::new(self.0) }
/// #     fn dependencies(&self, deps: &mut Deps) { for n in self.1 { deps.requires(("part", *n)).because("it rests on it"); } }
/// # }
/// let mut graph: Graph = Graph::new("machine");
/// let seen = graph.revision();
/// graph.put_item(Part("crank", &[]))?;
/// let touched = graph.touched_since(seen).expect("the journal reaches back");
/// assert_eq!(touched.count(), 1);
/// # Ok::<(), GraphError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Revision(pub(crate) u64);

/// What one journal entry touched.
///
/// ```
/// # use setpoint_graph::*;
/// # #[derive(Debug, PartialEq)]
/// # struct Part(&'static str, &'static [&'static str]);
/// # impl Item for Part {
/// #     const KIND: Kind = Kind::from_static("part");
/// #     fn name(&self) -> Name { Name::new(self.0) }
/// #     fn dependencies(&self, deps: &mut Deps) { for n in self.1 { deps.requires(("part", *n)).because("it rests on it"); } }
/// # }
/// let mut graph: Graph = Graph::new("machine");
/// graph.put_item(Part("crank", &[]))?;
/// let seen = graph.revision();
/// graph.del_item(&("part", "crank").into())?;
/// let names: Vec<String> = graph
///     .touched_since(seen)
///     .into_iter()
///     .flatten()
///     .filter_map(|touched| match touched {
///         Touched::Slot(slot) => graph.reference_at(*slot).map(ToString::to_string),
///         Touched::Gone(reference) => Some(reference.to_string()),
///     })
///     .collect();
/// assert_eq!(names, ["part/crank"]);
/// # Ok::<(), GraphError>(())
/// ```
#[derive(Clone, Debug)]
pub enum Touched {
    /// The reference in this slot, or, if the slot was freed since, a reference named by a later entry.
    Slot(SlotId),
    /// A reference whose slot was freed.
    Gone(Box<ItemRef>),
}

#[derive(Debug, Default)]
pub(crate) struct Journal {
    entries: VecDeque<Touched>,
    /// The revision before the first entry that is kept.
    base: u64,
}

/// A journal never holds fewer entries than this before it forgets.
const KEPT_AT_LEAST: usize = 4096;

impl Journal {
    pub(crate) fn revision(&self) -> Revision {
        Revision(self.base + self.entries.len() as u64)
    }

    /// Records a mutation. Beyond a quarter of the graph's slots comparing all is no dearer than reading
    /// the entries, so older ones are forgotten.
    pub(crate) fn record(&mut self, touched: Touched, slots: usize) {
        if self.entries.len() >= KEPT_AT_LEAST.max(slots / 4) {
            let half = self.entries.len() / 2;
            self.entries.drain(..half);
            self.base += half as u64;
        }
        self.entries.push_back(touched);
    }

    pub(crate) fn since(&self, seen: Revision) -> Option<impl Iterator<Item = &Touched>> {
        let skip = usize::try_from(seen.0.checked_sub(self.base)?).ok()?;
        (skip <= self.entries.len()).then(|| self.entries.range(skip..))
    }
}
