//! SVG, drawn here: no other program is needed.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::layout::{LONGEST_LABEL, TITLE, curves};
use super::style::{self, NodeStyle, Rgb, Shape, Styles};
use super::{Drawing, DrawnEdge, Layout, Mark, Point, Rect};

/// Space around the whole.
const MARGIN: f64 = 8.0;

impl Drawing {
    /// Prints the drawing as SVG, laid out with nested subgraphs as nested boxes.
    pub fn to_svg(&self) -> String {
        let mut out = String::new();
        // Writing to a string can't fail.
        let _ = self.write_svg(&self.layout(), &mut out);
        out
    }

    fn write_svg(&self, layout: &Layout, out: &mut String) -> std::fmt::Result {
        let whole = layout.subgraphs.first().copied().unwrap_or_default();
        let (width, height) = (whole.width + 2.0 * MARGIN, whole.height + 2.0 * MARGIN);
        writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"{} {} {width} {height}\" font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, \
             monospace\" font-size=\"12\">",
            -MARGIN, -MARGIN
        )?;
        let colours: BTreeSet<Rgb> = self.edges.iter().map(|edge| style::edge(edge).colour).collect();
        out.push_str("<defs>\n");
        for colour in colours {
            writeln!(
                out,
                "<marker id=\"{}\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"7\" markerHeight=\"7\" \
                 orient=\"auto\"><path d=\"M0 1 10 5 0 9z\" fill=\"{colour}\"/></marker>",
                marker(colour)
            )?;
        }
        out.push_str("</defs>\n");
        writeln!(
            out,
            "<rect x=\"{}\" y=\"{}\" width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>",
            -MARGIN, -MARGIN
        )?;
        let mut shaded = vec![false; self.subgraphs.len()];
        for (i, rect) in layout.subgraphs.iter().enumerate() {
            shaded[i] = self.subgraphs[i].parent.is_some_and(|parent| !shaded[parent]);
            self.write_subgraph(out, i, rect, shaded[i])?;
        }
        for (edge, points) in self.edges.iter().zip(&layout.edges) {
            self.write_edge(out, edge, points)?;
        }
        for (i, rect) in layout.subgraphs.iter().enumerate() {
            self.write_title(out, i, rect)?;
        }
        let styles = Styles::new(self);
        for (i, rect) in layout.nodes.iter().enumerate() {
            self.write_svg_node(out, i, rect, styles.node(&self.nodes[i]))?;
        }
        out.push_str("</svg>\n");
        Ok(())
    }

    fn write_subgraph(&self, out: &mut String, i: usize, rect: &Rect, shaded: bool) -> std::fmt::Result {
        let subgraph = &self.subgraphs[i];
        let Rect { x, y, width, height } = rect;
        let fill = if shaded { "#f3f5f8" } else { "#ffffff" };
        let tooltip =
            if subgraph.description.is_empty() { subgraph.name.as_str() } else { &subgraph.description };
        writeln!(
            out,
            "<g class=\"subgraph\"><title>{}</title><rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" \
             rx=\"8\" fill=\"{fill}\" stroke=\"#b4bcc8\"/></g>",
            escape(tooltip),
        )
    }

    /// Titles come after the edges, so that no edge hides one.
    fn write_title(&self, out: &mut String, i: usize, rect: &Rect) -> std::fmt::Result {
        writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" font-weight=\"bold\" fill=\"#55606e\" stroke=\"#ffffff\" stroke-width=\"3\" \
             paint-order=\"stroke\">{}</text>",
            rect.x + 14.0,
            rect.y + TITLE,
            escape(&style::short(&style::title(&self.subgraphs[i]), LONGEST_LABEL)),
        )
    }

    fn write_edge(&self, out: &mut String, edge: &DrawnEdge, points: &[Point]) -> std::fmt::Result {
        let look = style::edge(edge);
        let dashes = if look.dashed { " stroke-dasharray=\"6 4\"" } else { "" };
        write!(
            out,
            "<g class=\"edge\"><title>{}</title><path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.3\"{dashes} \
             marker-end=\"url(#{})\"/>",
            escape(&style::edge_tooltip(self, edge)),
            path(points),
            look.colour,
            marker(look.colour),
        )?;
        let sign = match edge.mark {
            Some(Mark::Added) => "+",
            Some(Mark::Removed) => "-",
            _ => "",
        };
        let label = match edge.any_of {
            Some(_) if sign.is_empty() => "any of".to_owned(),
            Some(_) => format!("{sign} any of"),
            None => sign.to_owned(),
        };
        // Between rows, where it bends.
        let pairs = || points.windows(2);
        let bend = pairs().find(|pair| !pair[0].is_upright(pair[1])).or_else(|| pairs().next());
        if let (Some([from, to]), false) = (bend, label.is_empty()) {
            write!(
                out,
                "<text x=\"{}\" y=\"{}\" font-size=\"10\" text-anchor=\"middle\" fill=\"{}\" stroke=\"#ffffff\" \
                 stroke-width=\"3\" paint-order=\"stroke\">{label}</text>",
                f64::midpoint(from.x, to.x),
                f64::midpoint(from.y, to.y) + 3.0,
                look.colour,
            )?;
        }
        out.push_str("</g>\n");
        Ok(())
    }

    fn write_svg_node(&self, out: &mut String, i: usize, rect: &Rect, look: NodeStyle) -> std::fmt::Result {
        let node = &self.nodes[i];
        let dashes = if look.dashed { " stroke-dasharray=\"5 3\"" } else { "" };
        let paint = format!("fill=\"{}\" stroke=\"{}\" stroke-width=\"1.5\"{dashes}", look.fill, look.border);
        write!(
            out,
            "<g class=\"node\" data-kind=\"{}\" data-name=\"{}\"><title>{}</title>",
            escape(node.reference.kind().as_str()),
            escape(node.reference.name().as_str()),
            escape(&style::node_tooltip(node)),
        )?;
        let Rect { x, y, width, height } = *rect;
        match look.shape {
            Shape::Round => {
                write!(
                    out,
                    "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"18\" {paint}/>"
                )?;
            }
            Shape::Arrow => {
                let (right, bottom, tip) = (x + width, y + height, y + height / 2.0);
                let neck = right - 14.0;
                write!(
                    out,
                    "<path d=\"M{x} {y}H{neck}L{right} {tip} {neck} {bottom}H{x}z\" stroke-linejoin=\"round\" {paint}/>"
                )?;
            }
            Shape::Octagon => {
                write!(out, "<path d=\"{}\" {paint}/>", octagon(rect, 0.0))?;
                write!(
                    out,
                    "<path d=\"{}\" fill=\"none\" stroke=\"{}\"{dashes}/>",
                    octagon(rect, 4.0),
                    look.border
                )?;
            }
        }
        let centre = rect.centre();
        writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#1a1a1a\">{}</text><text x=\"{}\" y=\"{}\" \
             text-anchor=\"middle\" font-size=\"10\" fill=\"#4f5864\">{}</text></g>",
            centre.x,
            centre.y - 1.0,
            escape(&style::short(&style::label(node), LONGEST_LABEL)),
            centre.x,
            centre.y + 12.0,
            escape(&style::short(&style::kind_line(node), LONGEST_LABEL)),
        )
    }
}

fn marker(colour: Rgb) -> String {
    format!("arrow-{:02x}{:02x}{:02x}", colour.0, colour.1, colour.2)
}

/// The line of an edge as the data of a path.
fn path(points: &[Point]) -> String {
    let mut path = String::new();
    for (i, [from, leaving, arriving, to]) in curves(points).into_iter().enumerate() {
        if i == 0 {
            // Writing to a string can't fail.
            let _ = write!(path, "M{} {}", from.x, from.y);
        }
        let _ = if leaving == from && arriving == to {
            write!(path, "L{} {}", to.x, to.y)
        } else {
            write!(path, "C{} {} {} {} {} {}", leaving.x, leaving.y, arriving.x, arriving.y, to.x, to.y)
        };
    }
    path
}

fn octagon(rect: &Rect, inset: f64) -> String {
    let (x, y, right, bottom) = (rect.x + inset, rect.y + inset, rect.right() - inset, rect.bottom() - inset);
    let cut = 10.0;
    format!(
        "M{} {y}H{}L{right} {}V{}L{} {bottom}H{}L{x} {}V{}z",
        x + cut,
        right - cut,
        y + cut,
        bottom - cut,
        right - cut,
        x + cut,
        bottom - cut,
        y + cut,
    )
}

/// Text as XML wants it: also without the characters that XML does not allow at all.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' => escaped.push_str("&#10;"),
            c => escaped.push(style::visible(c)),
        }
    }
    escaped
}
