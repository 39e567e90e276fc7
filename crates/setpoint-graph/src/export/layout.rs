//! Where everything in a drawing goes: boxes in boxes, laid out from the inside out.

use super::layers::{Level, Pass, Placed, Port, Ranking};
use super::routes::Lane;
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

impl Point {
    /// Returns whether a line to another point is upright, as far as one can see.
    pub(super) fn is_upright(self, other: Self) -> bool {
        (self.x - other.x).abs() < 0.5
    }

    /// Returns whether a line to another point is level, as far as one can see.
    fn is_level(self, other: Self) -> bool {
        (self.y - other.y).abs() < 0.5
    }
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

    /// Returns whether another box is entirely inside this one.
    pub fn contains(&self, other: &Self) -> bool {
        self.x <= other.x
            && self.y <= other.y
            && other.right() <= self.right()
            && other.bottom() <= self.bottom()
    }

    /// Returns whether two boxes have some place in common.
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
    /// The points that each edge goes through, from the dependent to the required item; [`Layout::curves`] joins
    /// them.
    pub edges: Vec<Vec<Point>>,
}

/// How wide a character is.
pub(super) const CHAR: f64 = 7.3;
/// The height of a node.
const NODE_HEIGHT: f64 = 40.0;
/// Space around the content of a subgraph.
pub(super) const PADDING: f64 = 16.0;
/// The height of a subgraph's title.
pub(super) const TITLE: f64 = 22.0;
/// Longer texts are cut.
pub(super) const LONGEST_LABEL: usize = 40;

impl Layout {
    /// The line of an edge: cubic Bézier curves, each with its start, its two control points and its end.
    ///
    /// ```
    /// use setpoint_graph::{Layout, Point};
    /// let points = vec![Point { x: 0.0, y: 0.0 }, Point { x: 30.0, y: 40.0 }];
    /// let layout = Layout { subgraphs: Vec::new(), nodes: Vec::new(), edges: vec![points] };
    /// assert_eq!(layout.curves(0)[0].map(|point| point.x), [0.0, 0.0, 30.0, 30.0]);
    /// assert_eq!(layout.curves(0)[0].map(|point| point.y), [0.0, 20.0, 20.0, 40.0]);
    /// ```
    pub fn curves(&self, edge: usize) -> Vec<[Point; 4]> {
        self.edges.get(edge).map(|points| curves(points)).unwrap_or_default()
    }
}

/// A smooth line through the points, leaving and arriving upright.
pub(super) fn curves(points: &[Point]) -> Vec<[Point; 4]> {
    points
        .windows(2)
        .filter_map(|pair| {
            let [from, to] = *pair else { return None };
            if from.is_level(to) || from.is_upright(to) {
                return Some([from, from, to, to]);
            }
            let middle = f64::midpoint(from.y, to.y);
            Some([from, Point { y: middle, ..from }, Point { y: middle, ..to }, to])
        })
        .collect()
}

/// What a level is made of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Element {
    Node(usize),
    Subgraph(usize),
}

/// A box around the end of an edge, or that end itself: its level, and its position there.
#[derive(Clone, Copy)]
struct Step {
    level: usize,
    at: usize,
}

/// An edge from its upper end to its lower one.
#[derive(Default)]
struct Way {
    /// The node at the upper end.
    upper: usize,
    /// The node at the lower end.
    lower: usize,
    /// Whether it leads from the lower end to the upper one.
    upwards: bool,
    /// The levels that it passes, and which of their passes it is.
    passes: Vec<(usize, usize)>,
    /// Where it leaves the box at its upper end, from the left of the box, in the level that was placed last.
    upper_x: f64,
    /// Where it reaches the box at its lower end.
    lower_x: f64,
}

/// A drawing on the way to its layout.
struct Arrangement<'a> {
    drawing: &'a Drawing,
    members: Vec<Vec<Element>>,
    nodes: Vec<Rect>,
    subgraphs: Vec<Rect>,
    rankings: Vec<Ranking>,
    passes: Vec<Vec<Pass>>,
    ways: Vec<Way>,
    levels: Vec<Placed>,
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
        let nodes: Vec<Rect> = self
            .nodes
            .iter()
            .map(|node| {
                let label = text_width(&style::short(&style::label(node), LONGEST_LABEL));
                let kind = text_width(&style::short(&style::kind_line(node), LONGEST_LABEL)) * 0.85;
                let sides = if styles.node(node).shape == Shape::Round { 28.0 } else { 44.0 };
                Rect { width: (label.max(kind) + sides).round(), height: NODE_HEIGHT, ..Rect::default() }
            })
            .collect();
        let mut arrangement = Arrangement {
            drawing: self,
            members: self.members(),
            subgraphs: vec![Rect::default(); self.subgraphs.len()],
            rankings: Vec::new(),
            passes: vec![Vec::new(); self.subgraphs.len()],
            ways: Vec::new(),
            levels: Vec::new(),
            nodes,
        };
        arrangement.find_ways();
        arrangement.place();
        let edges = arrangement.ways.iter().map(|way| arrangement.route(way)).collect();
        Layout { edges, subgraphs: arrangement.subgraphs, nodes: arrangement.nodes }
    }

    /// The boxes around both ends of an edge, from the ends themselves to the innermost subgraph around both.
    fn steps(
        &self,
        edge: &DrawnEdge,
        (nodes, subgraphs): &(Vec<usize>, Vec<usize>),
    ) -> (Vec<Step>, Vec<Step>) {
        let start = |node: usize| vec![Step { level: self.nodes[node].subgraph, at: nodes[node] }];
        let (mut from, mut to) = (start(edge.from), start(edge.to));
        // An inner subgraph has a greater position than those around it.
        while let (Some(&a), Some(&b)) = (from.last(), to.last())
            && a.level != b.level
        {
            let (side, inner) = if a.level > b.level { (&mut from, a.level) } else { (&mut to, b.level) };
            side.push(Step { level: self.subgraphs[inner].parent.unwrap_or(0), at: subgraphs[inner] });
        }
        (from, to)
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
}

impl Arrangement<'_> {
    /// Finds the levels that each edge passes, and which of its ends is the upper one.
    fn find_ways(&mut self) {
        let mut position = (vec![0; self.nodes.len()], vec![0; self.subgraphs.len()]);
        for members in &self.members {
            for (i, element) in members.iter().enumerate() {
                match *element {
                    Element::Node(node) => position.0[node] = i,
                    Element::Subgraph(subgraph) => position.1[subgraph] = i,
                }
            }
        }
        let steps: Vec<_> =
            self.drawing.edges.iter().map(|edge| self.drawing.steps(edge, &position)).collect();
        let mut edges: Vec<Vec<(usize, usize)>> = vec![Vec::new(); self.subgraphs.len()];
        for (from, to) in &steps {
            if let (Some(from), Some(to)) = (from.last(), to.last()) {
                edges[from.level].push((from.at, to.at));
            }
        }
        self.rankings = (edges.iter_mut().zip(&self.members))
            .map(|(edges, members)| {
                edges.sort_unstable();
                edges.dedup();
                Ranking::new(members.len(), edges)
            })
            .collect();
        self.ways = Vec::with_capacity(steps.len());
        for (edge, (from, to)) in self.drawing.edges.iter().zip(steps) {
            let way = self.way(edge, from, to);
            self.ways.push(way);
        }
    }

    fn way(&mut self, edge: &DrawnEdge, from: Vec<Step>, to: Vec<Step>) -> Way {
        let mut way = Way { upper: edge.from, lower: edge.to, ..Way::default() };
        let (Some(&start), Some(&end)) = (from.last(), to.last()) else { return way };
        if edge.from == edge.to {
            return way;
        }
        let ranking = &self.rankings[start.level];
        way.upwards = ranking.rank(start.at) > ranking.rank(end.at);
        let (mut down, mut up) = (from, to);
        if way.upwards {
            (down, up) = (up, down);
            (way.upper, way.lower) = (edge.to, edge.from);
        }
        way.upper_x = self.nodes[way.upper].width / 2.0;
        way.lower_x = self.nodes[way.lower].width / 2.0;
        let number = self.ways.len();
        let mut pass = |level: usize, upper: Option<Step>, lower: Option<Step>| {
            let port = |step: Step| Port { of: step.at, x: 0.0 };
            way.passes.push((level, self.passes[level].len()));
            self.passes[level].push(Pass { edge: number, upper: upper.map(port), lower: lower.map(port) });
        };
        let (last, first) = (down.pop(), up.pop());
        for step in down {
            pass(step.level, Some(step), None);
        }
        pass(start.level, last, first);
        for &step in up.iter().rev() {
            pass(step.level, None, Some(step));
        }
        way
    }

    /// Finds a place for every box, and lanes for all edges.
    fn place(&mut self) {
        let count = self.subgraphs.len();
        self.levels.resize_with(count, Placed::default);
        // Inner ones come after outer ones, so this goes from the inside out.
        for i in (0..count).rev() {
            let sizes: Vec<(f64, f64)> = self.members[i]
                .iter()
                .map(|&element| match element {
                    Element::Node(node) => (self.nodes[node].width, self.nodes[node].height),
                    Element::Subgraph(inner) => (self.subgraphs[inner].width, self.subgraphs[inner].height),
                })
                .collect();
            for pass in &mut self.passes[i] {
                let way = &self.ways[pass.edge];
                pass.upper = pass.upper.map(|port| Port { x: way.upper_x, ..port });
                pass.lower = pass.lower.map(|port| Port { x: way.lower_x, ..port });
            }
            let passes = &self.passes[i];
            let placed = Level { sizes: &sizes, ranking: &self.rankings[i], passes }.place();
            for (pass, lanes) in passes.iter().zip(&placed.lanes) {
                let at = |port: Port| placed.corners[port.of].0 + port.x;
                let way = &mut self.ways[pass.edge];
                match (pass.upper, pass.lower) {
                    (Some(upper), None) => {
                        way.upper_x = PADDING + lanes.last().map_or(at(upper), |lane| lane.x);
                    }
                    (None, Some(lower)) => {
                        way.lower_x = PADDING + lanes.first().map_or(at(lower), |lane| lane.x);
                    }
                    _ => {}
                }
            }
            let title = style::short(&style::title(&self.drawing.subgraphs[i]), LONGEST_LABEL);
            let width = placed.width.max(text_width(&title) + PADDING);
            self.subgraphs[i].width = (width + 2.0 * PADDING).round();
            self.subgraphs[i].height = (placed.height + TITLE + 2.0 * PADDING).round();
            self.levels[i] = placed;
        }
        for i in 0..count {
            let (x, y) = self.origin(i);
            for (element, corner) in self.members[i].iter().zip(&self.levels[i].corners) {
                let rect = match *element {
                    Element::Node(node) => &mut self.nodes[node],
                    Element::Subgraph(inner) => &mut self.subgraphs[inner],
                };
                (rect.x, rect.y) = (x + corner.0, y + corner.1);
            }
        }
    }

    /// Where the content of a subgraph begins.
    fn origin(&self, level: usize) -> (f64, f64) {
        let rect = &self.subgraphs[level];
        (rect.x + PADDING, rect.y + PADDING + TITLE)
    }

    /// The points of an edge, with its ends on the sides of the boxes that face each other.
    ///
    /// It is upright in every row, and where it crosses the border of a subgraph: what is next to that border is
    /// the subgraph itself.
    fn route(&self, way: &Way) -> Vec<Point> {
        let (upper, lower) = (&self.nodes[way.upper], &self.nodes[way.lower]);
        if way.upper == way.lower {
            return loop_at(upper);
        }
        let mut lanes = vec![Lane { x: upper.centre().x, top: upper.bottom(), bottom: upper.bottom() }];
        // Where the next lane begins, if it is inside of a subgraph that the edge enters.
        let mut top = None;
        for &(level, number) in &way.passes {
            let (x, y) = self.origin(level);
            let (pass, placed) = (&self.passes[level][number], &self.levels[level]);
            let row = |port: Port| &placed.rows[placed.row_of[port.of]];
            if let (Some(port), Some(lane)) = (pass.upper, lanes.last_mut()) {
                lane.bottom = y + row(port).bottom;
            }
            for lane in &placed.lanes[number] {
                let top = top.take().unwrap_or(y + lane.top);
                lanes.push(Lane { x: x + lane.x, top, bottom: y + lane.bottom });
            }
            if let Some(port) = pass.lower {
                top = top.or(Some(y + row(port).top));
            }
        }
        lanes.push(Lane { x: lower.centre().x, top: top.unwrap_or(lower.y), bottom: lower.y });
        let last = lanes.len() - 1;
        let direct = last == 1;
        (lanes[0].x, lanes[last].x) =
            (end_at(upper, lanes[1].x, direct), end_at(lower, lanes[last - 1].x, direct));
        let mut points: Vec<Point> = Vec::with_capacity(2 * lanes.len());
        for Lane { x, top, bottom } in lanes {
            for y in [top, bottom] {
                let point = Point { x, y };
                if let [.., before, last] = &mut points[..]
                    && before.is_upright(point)
                    && last.is_upright(point)
                {
                    last.y = y;
                } else if points.last() != Some(&point) {
                    points.push(point);
                }
            }
        }
        if way.upwards {
            points.reverse();
        }
        points
    }
}

/// The points of an edge from a node to itself.
fn loop_at(rect: &Rect) -> Vec<Point> {
    let (x, y) = (rect.right(), rect.centre().y);
    let out = x + 18.0;
    [(x, y - 8.0), (out, y - 8.0), (out, y + 8.0), (x, y + 8.0)].map(|(x, y)| Point { x, y }).into()
}

/// Where an edge meets the upper or lower side of a box that goes on at another place.
fn end_at(rect: &Rect, other: f64, direct: bool) -> f64 {
    let (centre, most) = (rect.centre().x, rect.width / 4.0);
    // Edges from different directions meet the side at different places; two boxes meet each other halfway.
    let share = if direct { 0.5 } else { 1.0 };
    centre + ((other - centre) * share).clamp(-most, most).round()
}

/// How wide a text is about, in a font whose characters are all as wide.
pub(super) fn text_width(text: &str) -> f64 {
    text.chars().map(|c| if u32::from(c) >= 0x1100 { 2.0 * CHAR } else { CHAR }).sum()
}
