//! Drawings of graphs, and of the transition between two.
//!
//! ```text
//!  graph or part of one ─┐              ┌─▶ to_dot   for Graphviz
//!  from, to, marks ──────┴─▶ Drawing ───┼─▶ to_json  for programs
//!                                       └─▶ to_svg   for people, laid out here
//! ```
//!
//! One model, three printers: what one shows, all show. Everything is in sorted order, so that equal graphs
//! give equal drawings byte for byte.

mod build;
mod dot;
mod json;
mod layers;
mod layout;
mod mark;
mod routes;
mod style;
mod svg;
mod threads;

pub use layout::{Layout, Point, Rect};
pub use mark::{Mark, Marks};

use crate::{ItemRef, Look, Name, SubgraphPath};

/// All that is to be seen of a graph, or of the transition between two.
///
/// ```
/// use setpoint_graph::{Deps, Drawing, Graph, Item, Kind, Marks, Name};
///
/// #[derive(Debug, PartialEq)]
/// struct Route { to: &'static str }
/// impl Item for Route {
///     const KIND: Kind = Kind::from_static("route");
///     fn name(&self) -> Name { Name::new(self.to) }
///     fn dependencies(&self, deps: &mut Deps) { deps.requires(("link", "eth0")); }
/// }
///
/// let empty: Graph = Graph::new("host");
/// let mut graph: Graph = Graph::new("host");
/// graph.put_item(Route { to: "10.0.0.0/8" })?;
///
/// let drawing = Drawing::of(&graph);
/// assert_eq!(drawing.nodes().len(), 2, "the route, and the link that is missing");
/// assert!(drawing.to_dot().starts_with("digraph"));
///
/// let change = Drawing::transition(&empty, &graph, &Marks::new());
/// assert!(change.to_svg().contains("+ 10.0.0.0/8"));
/// # Ok::<(), setpoint_graph::GraphError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Drawing {
    pub(crate) subgraphs: Vec<DrawnSubgraph>,
    pub(crate) nodes: Vec<DrawnNode>,
    pub(crate) edges: Vec<DrawnEdge>,
    pub(crate) transition: bool,
}

impl Drawing {
    /// The subgraphs, each before those inside it; the first is the whole.
    pub fn subgraphs(&self) -> &[DrawnSubgraph] {
        &self.subgraphs
    }

    /// The nodes, ordered by reference.
    pub fn nodes(&self) -> &[DrawnNode] {
        &self.nodes
    }

    /// The edges, ordered by the dependent and its dependencies.
    pub fn edges(&self) -> &[DrawnEdge] {
        &self.edges
    }

    /// Returns whether this shows the way from one graph to another.
    pub fn is_transition(&self) -> bool {
        self.transition
    }

    /// Where a subgraph stands, relative to the whole.
    pub fn path_of_subgraph(&self, subgraph: usize) -> SubgraphPath {
        let mut names = Vec::new();
        let mut this = self.subgraphs.get(subgraph);
        while let Some(subgraph) = this
            && let Some(parent) = subgraph.parent
        {
            names.push(subgraph.name.clone());
            this = self.subgraphs.get(parent);
        }
        names.into_iter().rev().collect()
    }
}

/// A subgraph in a drawing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrawnSubgraph {
    /// What it is called.
    pub name: Name,
    /// What it is about.
    pub description: String,
    /// The position of the one around it; none for the whole.
    pub parent: Option<usize>,
    /// Whether it comes or goes in a transition.
    pub mark: Option<Mark>,
}

/// A node in a drawing.
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
/// graph.put_item(Part("crank", &["axle"]))?;
/// let drawing = Drawing::of(&graph);
/// let axle = &drawing.nodes()[0];
/// assert_eq!((axle.label.as_str(), axle.presence), ("axle", DrawnPresence::Missing));
/// # Ok::<(), GraphError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrawnNode {
    /// Which item.
    pub reference: ItemRef,
    /// The text to show.
    pub label: String,
    /// The whole state in words.
    pub description: String,
    /// Whether something else manages it.
    pub external: bool,
    /// Whether and where it is there.
    pub presence: DrawnPresence,
    /// How its state shows.
    pub look: Look,
    /// What happens to it in a transition.
    pub mark: Option<Mark>,
    /// The position of the subgraph it lives in.
    pub subgraph: usize,
}

/// Whether a node is really there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DrawnPresence {
    /// It is part of what is drawn.
    Here,
    /// It is in the graph, but not in the part that is drawn.
    Outside,
    /// It is only mentioned.
    Missing,
}

/// An edge in a drawing, from a dependent to what it depends on.
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
/// graph.put_item(Part("crank", &["axle"]))?;
/// let drawing = Drawing::of(&graph);
/// assert_eq!(drawing.edges()[0].unsatisfied.as_deref(), Some("it is missing"));
/// # Ok::<(), GraphError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrawnEdge {
    /// The position of the dependent's node.
    pub from: usize,
    /// The position of the required item's node.
    pub to: usize,
    /// Why the dependency is there.
    pub description: String,
    /// What the required item must be like.
    pub wanted: Option<String>,
    /// For one of several alternatives, the position of the dependency among the dependent's.
    pub any_of: Option<usize>,
    /// Why the required item does not satisfy this dependency; none if it does.
    pub unsatisfied: Option<String>,
    /// Whether the dependency as a whole is met, maybe by another alternative.
    pub met: bool,
    /// Whether it comes or goes in a transition.
    pub mark: Option<Mark>,
}
