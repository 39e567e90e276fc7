//! Colours and shapes, the same for every printer.

use std::collections::BTreeMap;
use std::fmt;

use super::{Drawing, DrawnEdge, DrawnNode, DrawnPresence, DrawnSubgraph, Mark};
use crate::Kind;

/// A colour, printed as `#rrggbb`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rgb(pub(super) u8, pub(super) u8, pub(super) u8);

impl fmt::Display for Rgb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }
}

pub(super) const BLACK: Rgb = Rgb(0x22, 0x22, 0x22);
pub(super) const GREY: Rgb = Rgb(0x8a, 0x8a, 0x8a);
pub(super) const RED: Rgb = Rgb(0xd0, 0x21, 0x21);
pub(super) const BLUE: Rgb = Rgb(0x1f, 0x5f, 0xd6);
pub(super) const GREEN: Rgb = Rgb(0x1c, 0x86, 0x3a);
const WHITE: Rgb = Rgb(0xff, 0xff, 0xff);

/// The outline of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// An item at rest.
    Round,
    /// An item with an operation under way.
    Arrow,
    /// An external item.
    Octagon,
}

/// How one node is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeStyle {
    pub(super) shape: Shape,
    pub(super) fill: Rgb,
    pub(super) border: Rgb,
    pub(super) dashed: bool,
}

/// How one edge is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EdgeStyle {
    pub(super) colour: Rgb,
    pub(super) dashed: bool,
}

/// The colours of the kinds in one drawing.
pub(super) struct Styles<'a> {
    hues: BTreeMap<&'a Kind, f64>,
}

impl<'a> Styles<'a> {
    pub(super) fn new(drawing: &'a Drawing) -> Self {
        let mut hues: BTreeMap<&Kind, f64> =
            drawing.nodes.iter().map(|node| (node.reference.kind(), 0.0)).collect();
        let count = hues.len().max(1);
        for (i, hue) in hues.values_mut().enumerate() {
            *hue = between(1.0 / 3.0, 2.0 / 3.0, i, count);
        }
        Self { hues }
    }

    pub(super) fn node(&self, node: &DrawnNode) -> NodeStyle {
        let shape = match node {
            DrawnNode { external: true, .. } => Shape::Octagon,
            DrawnNode { look, .. } if look.in_transition => Shape::Arrow,
            _ => Shape::Round,
        };
        let here = node.presence == DrawnPresence::Here;
        let failed = node.look.error.is_some() || node.mark == Some(Mark::Failed);
        let border = match node {
            _ if node.presence == DrawnPresence::Missing => GREY,
            _ if failed => RED,
            _ if node.look.in_transition => BLUE,
            _ if !node.look.created || node.mark == Some(Mark::Pending) => GREY,
            _ => BLACK,
        };
        let hue = self.hues.get(node.reference.kind()).copied().unwrap_or(0.5);
        let fill = match node.mark {
            _ if !here => WHITE,
            Some(mark) => fill_of_mark(mark),
            None => hsv(hue, if node.look.created { 0.45 } else { 0.12 }),
        };
        let dashed = !here || matches!(node.mark, Some(Mark::Removed | Mark::Pending));
        NodeStyle { shape, fill, border, dashed }
    }
}

fn fill_of_mark(mark: Mark) -> Rgb {
    match mark {
        Mark::Added => Rgb(0xc9, 0xef, 0xcf),
        Mark::Changed => Rgb(0xff, 0xe8, 0xa6),
        Mark::Recreated => Rgb(0xb9, 0xea, 0xee),
        Mark::Removed => Rgb(0xf9, 0xcf, 0xcf),
        Mark::Moved => Rgb(0xcf, 0xe2, 0xff),
        Mark::Unchanged => Rgb(0xf4, 0xf4, 0xf4),
        Mark::Pending => Rgb(0xe6, 0xe0, 0xf5),
        Mark::Failed => Rgb(0xf4, 0xa6, 0xa6),
    }
}

pub(super) fn edge(edge: &DrawnEdge) -> EdgeStyle {
    let colour = match edge.mark {
        Some(Mark::Removed) => GREY,
        _ if !edge.met => RED,
        Some(Mark::Added) => GREEN,
        _ if edge.unsatisfied.is_some() => GREY,
        _ => BLACK,
    };
    EdgeStyle { colour, dashed: edge.any_of.is_some() || edge.mark == Some(Mark::Removed) }
}

/// The text of a node: what happens to it, and what it is called.
pub(super) fn label(node: &DrawnNode) -> String {
    let sign = node.mark.map_or("", Mark::sign);
    let error = if node.look.error.is_some() && sign != Mark::Failed.sign() { "! " } else { "" };
    let space = if sign.is_empty() { "" } else { " " };
    format!("{sign}{space}{error}{}", node.label)
}

/// The text of a subgraph: what happens to it, and what it is called.
pub(super) fn title(subgraph: &DrawnSubgraph) -> String {
    match subgraph.mark.map_or("", Mark::sign) {
        "" => subgraph.name.to_string(),
        sign => format!("{sign} {}", subgraph.name),
    }
}

/// The second line of a node: its kind, and what is special about it.
pub(super) fn kind_line(node: &DrawnNode) -> String {
    let remark = match node.presence {
        DrawnPresence::Missing => " (missing)",
        DrawnPresence::Outside => " (outside)",
        DrawnPresence::Here if node.external => " (external)",
        DrawnPresence::Here => "",
    };
    format!("{}{remark}", node.reference.kind())
}

/// All that is known of a node, in lines.
pub(super) fn node_tooltip(node: &DrawnNode) -> String {
    let mut text = format!("{}\n{}", node.reference, node.description);
    if let Some(mark) = node.mark {
        text += "\n";
        text += mark.word();
    }
    if node.look.in_transition {
        text += "\nin transition";
    }
    if let Some(error) = &node.look.error {
        text += "\nerror: ";
        text += error;
    }
    text
}

/// All that is known of an edge, in lines.
pub(super) fn edge_tooltip(drawing: &Drawing, edge: &DrawnEdge) -> String {
    let name =
        |node: usize| drawing.nodes.get(node).map(|node| node.reference.to_string()).unwrap_or_default();
    let needs = if edge.any_of.is_some() { "needs any of several, such as" } else { "needs" };
    let mut text = format!("{} {needs} {}", name(edge.from), name(edge.to));
    if let Some(wanted) = &edge.wanted {
        text += " that ";
        text += wanted;
    }
    if !edge.description.is_empty() {
        text += "\n";
        text += &edge.description;
    }
    if let Some(why) = &edge.unsatisfied {
        text += "\nunsatisfied: ";
        text += why;
    }
    text
}

/// The text with control characters made visible, and no longer than that many characters.
pub(super) fn short(text: &str, most: usize) -> String {
    let mut chars = text.chars().map(visible);
    let mut short: String = chars.by_ref().take(most).collect();
    if chars.next().is_some() {
        short.pop();
        short.push('…');
    }
    short
}

/// The character, or a picture of it if it is a control character.
pub(super) fn visible(c: char) -> char {
    match u32::from(c) {
        code @ 0..=0x1f => char::from_u32(0x2400 + code).unwrap_or('\u{fffd}'),
        0x7f => '\u{2421}',
        0x80..=0x9f | 0xfffe | 0xffff => '\u{fffd}',
        _ => c,
    }
}

#[expect(clippy::cast_precision_loss, reason = "a drawing has few kinds")]
fn between(low: f64, high: f64, i: usize, count: usize) -> f64 {
    low + (high - low) * (i as f64 + 0.5) / count as f64
}

/// A bright colour of this hue between green and blue.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to a byte")]
fn hsv(hue: f64, saturation: f64) -> Rgb {
    let value = 0.95;
    let byte = |part: f64| (part * 255.0).round().clamp(0.0, 255.0) as u8;
    let low = value * (1.0 - saturation);
    // Between green (1/3) and cyan (1/2) blue rises, between cyan and blue (2/3) green falls.
    let green = low + (value - low) * ((2.0 / 3.0 - hue) * 6.0).clamp(0.0, 1.0);
    let blue = low + (value - low) * ((hue - 1.0 / 3.0) * 6.0).clamp(0.0, 1.0);
    Rgb(byte(low), byte(green), byte(blue))
}
