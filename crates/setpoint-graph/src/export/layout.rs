//! Where everything in a drawing goes: boxes in boxes, laid out from the inside out.

use super::layers::{Level, Placed};
use super::style::{self, Shape, Styles};
use super::{Drawing, DrawnEdge};

/// A place in a drawing, in pixels from the top left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// From the left.
    pub x: f64,
    /// From the top.
    pub y: f64,
}

/// A box in a drawing.
///
/// ```
/// use setpoint_graph::Rect;
/// let outer = Rect { x: 0.0, y: 0.0, width: 10.0, height: 10.0 };
/// let inner = Rect { x: 2.0, y: 2.0, width: 3.0, height: 3.0 };
/// assert!(outer.contains(&inner) && !inner.contains(&outer) && outer.overlaps(&inner));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rect {
    /// The left side.
    pub x: f64,
    /// The top side.
    pub y: f64,
    /// How wide it is.
    pub width: f64,
    /// How high it is.
    pub height: f64,
}

impl Rect {
    /// The right side.
    pub fn right(&self) -> f64 {
        self.x + self.width
    }

    /// The bottom side.
    pub fn bottom(&self) -> f64 {
        self.y + self.height
    }

    /// The middle.
    pub fn centre(&self) -> Point {
        Point { x: self.x + self.width / 2.0, y: self.y + self.height / 2.0 }
    }

    /// Whether another box is entirely inside this one.
    pub fn contains(&self, other: &Self) -> bool {
        self.x <= other.x
            && self.y <= other.y
            && other.right() <= self.right()
            && other.bottom() <= self.bottom()
    }

    /// Whether two boxes have some place in common.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.x < other.right() && other.x < self.right() && self.y < other.bottom() && other.y < self.bottom()
    }
}

/// Where everything in a drawing goes. Positions are those of the drawing's own lists.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// The boxes of the subgraphs; the first is the whole.
    pub subgraphs: Vec<Rect>,
    /// The boxes of the nodes, each inside that of its subgraph.
    pub nodes: Vec<Rect>,
    /// The points that each edge goes through, from the dependent's side to the required item's.
    pub edges: Vec<Vec<Point>>,
}

/// How wide a character is.
pub(super) const CHAR: f64 = 7.3;
/// The height of a node.
const NODE_HEIGHT: f64 = 40.0;
/// Space around the content of a subgraph.
const PADDING: f64 = 16.0;
/// The height of a subgraph's title.
pub(super) const TITLE: f64 = 22.0;
/// Longer texts are cut.
pub(super) const LONGEST_LABEL: usize = 40;

/// What a level is made of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Element {
    Node(usize),
    Subgraph(usize),
}

/// An edge as seen from the innermost subgraph around both ends.
#[derive(Clone, Copy)]
struct Lifted {
    level: usize,
    from: Element,
    to: Element,
}

impl Drawing {
    /// Finds a place for everything.
    ///
    /// Nodes and boxes never overlap, and each is inside the box of its subgraph.
    ///
    /// ```
    /// use setpoint_graph::{Drawing, Graph, SubgraphPath};
    /// let mut graph: Graph = Graph::new("host");
    /// graph.make_subgraph(&SubgraphPath::from(["network"]));
    /// let layout = Drawing::of(&graph).layout();
    /// assert!(layout.subgraphs[0].contains(&layout.subgraphs[1]));
    /// ```
    pub fn layout(&self) -> Layout {
        let styles = Styles::new(self);
        let mut nodes: Vec<Rect> = self
            .nodes
            .iter()
            .map(|node| {
                let label = text_width(&style::short(&style::label(node), LONGEST_LABEL));
                let kind = text_width(&style::short(&style::kind_line(node), LONGEST_LABEL)) * 0.85;
                let sides = if styles.node(node).shape == Shape::Round { 28.0 } else { 44.0 };
                Rect { width: (label.max(kind) + sides).round(), height: NODE_HEIGHT, ..Rect::default() }
            })
            .collect();
        let mut subgraphs = vec![Rect::default(); self.subgraphs.len()];
        let lifted: Vec<Lifted> = self.edges.iter().map(|edge| self.lift(edge)).collect();
        let mut edges_at: Vec<Vec<(Element, Element)>> = vec![Vec::new(); self.subgraphs.len()];
        for edge in &lifted {
            edges_at[edge.level].push((edge.from, edge.to));
        }
        let members = self.members();
        let mut levels: Vec<Placed> = Vec::new();
        levels.resize_with(self.subgraphs.len(), Placed::default);
        // Inner ones come after outer ones, so this goes from the inside out.
        for i in (0..self.subgraphs.len()).rev() {
            let sizes: Vec<(f64, f64)> = members[i]
                .iter()
                .map(|&element| match element {
                    Element::Node(node) => (nodes[node].width, nodes[node].height),
                    Element::Subgraph(inner) => (subgraphs[inner].width, subgraphs[inner].height),
                })
                .collect();
            let mut edges: Vec<(usize, usize)> = edges_at[i]
                .iter()
                .filter_map(|(from, to)| {
                    Some((members[i].binary_search(from).ok()?, members[i].binary_search(to).ok()?))
                })
                .collect();
            edges.sort_unstable();
            edges.dedup();
            let placed = Level { sizes: &sizes, edges: &edges }.place();
            let title = text_width(&style::short(&style::title(&self.subgraphs[i]), LONGEST_LABEL)) + PADDING;
            subgraphs[i].width = (placed.width.max(title) + 2.0 * PADDING).round();
            subgraphs[i].height = (placed.height + TITLE + 2.0 * PADDING).round();
            levels[i] = placed;
        }
        for i in 0..self.subgraphs.len() {
            let (x, y) = (subgraphs[i].x + PADDING, subgraphs[i].y + PADDING + TITLE);
            for (element, corner) in members[i].iter().zip(&levels[i].corners) {
                let rect = match *element {
                    Element::Node(node) => &mut nodes[node],
                    Element::Subgraph(inner) => &mut subgraphs[inner],
                };
                (rect.x, rect.y) = (x + corner.0, y + corner.1);
            }
        }
        let routes = self.edges.iter().zip(&lifted).map(|(edge, lifted)| {
            let (around, members) = (subgraphs[lifted.level], &members[lifted.level]);
            let ends = (members.binary_search(&lifted.from), members.binary_search(&lifted.to));
            let bends = match ends {
                (Ok(from), Ok(to)) => levels[lifted.level].bends.get(&(from, to)),
                _ => None,
            };
            let bends = bends
                .into_iter()
                .flatten()
                .map(|&(x, y)| Point { x: around.x + PADDING + x, y: around.y + PADDING + TITLE + y });
            route(&nodes[edge.from], &nodes[edge.to], bends.collect())
        });
        Layout { edges: routes.collect(), subgraphs, nodes }
    }

    /// What is directly in each subgraph, in order.
    fn members(&self) -> Vec<Vec<Element>> {
        let mut members: Vec<Vec<Element>> = vec![Vec::new(); self.subgraphs.len()];
        for (i, node) in self.nodes.iter().enumerate() {
            members[node.subgraph].push(Element::Node(i));
        }
        for (i, subgraph) in self.subgraphs.iter().enumerate() {
            if let Some(parent) = subgraph.parent {
                members[parent].push(Element::Subgraph(i));
            }
        }
        members
    }

    fn lift(&self, edge: &DrawnEdge) -> Lifted {
        let mut from = (self.nodes[edge.from].subgraph, Element::Node(edge.from));
        let mut to = (self.nodes[edge.to].subgraph, Element::Node(edge.to));
        let up = |at: &mut (usize, Element)| {
            *at = (self.subgraphs[at.0].parent.unwrap_or(0), Element::Subgraph(at.0));
        };
        // An inner subgraph has a greater position than those around it.
        while from.0 != to.0 {
            up(if from.0 > to.0 { &mut from } else { &mut to });
        }
        Lifted { level: from.0, from: from.1, to: to.1 }
    }
}

/// The points of an edge, with its ends on the sides of the boxes that face each other.
fn route(from: &Rect, to: &Rect, bends: Vec<Point>) -> Vec<Point> {
    if from == to {
        let (x, y) = (from.right(), from.centre().y);
        let out = x + 18.0;
        return [(x, y - 8.0), (out, y - 8.0), (out, y + 8.0), (x, y + 8.0)]
            .map(|(x, y)| Point { x, y })
            .into();
    }
    let start = end_at(from, *bends.first().unwrap_or(&to.centre()));
    let end = end_at(to, *bends.last().unwrap_or(&from.centre()));
    [start].into_iter().chain(bends).chain([end]).collect()
}

/// Where an edge that comes from `other` meets a box.
fn end_at(rect: &Rect, other: Point) -> Point {
    let centre = rect.centre();
    // Edges from different directions meet the side at different places.
    let aside = ((other.x - centre.x) * 0.5).clamp(-rect.width / 4.0, rect.width / 4.0).round();
    if other.y > rect.bottom() {
        Point { x: centre.x + aside, y: rect.bottom() }
    } else if other.y < rect.y {
        Point { x: centre.x + aside, y: rect.y }
    } else if other.x > centre.x {
        Point { x: rect.right(), y: centre.y }
    } else {
        Point { x: rect.x, y: centre.y }
    }
}

/// How wide a text is about, in a font whose characters are all as wide.
pub(super) fn text_width(text: &str) -> f64 {
    text.chars().map(|c| if u32::from(c) >= 0x1100 { 2.0 * CHAR } else { CHAR }).sum()
}
