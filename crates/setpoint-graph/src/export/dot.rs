//! DOT, the language of Graphviz.

use std::fmt::Write as _;

use super::style::{self, GREY, Shape, Styles};
use super::{Drawing, DrawnPresence, Mark};

/// Beyond this depth nesting no longer shows as indentation: it would square the size of deep graphs.
const DEEPEST_INDENT: usize = 16;

/// Longer labels are cut; the tooltip has more.
const LONGEST_LABEL: usize = 60;

/// Longer texts are cut: Graphviz refuses strings of more than 16384 bytes, and a character takes up to five.
const LONGEST_TEXT: usize = 3_000;

impl Drawing {
    /// Prints the drawing in DOT. Graphviz accepts it whatever the names are.
    pub fn to_dot(&self) -> String {
        let mut out = String::new();
        // Writing to a string can't fail.
        let _ = self.write_dot(&mut out);
        out
    }

    fn write_dot(&self, out: &mut String) -> std::fmt::Result {
        let styles = Styles::new(self);
        let mut inside: Vec<Vec<usize>> = vec![Vec::new(); self.subgraphs.len()];
        for (i, node) in self.nodes.iter().enumerate() {
            inside[node.subgraph].push(i);
        }
        writeln!(
            out,
            "digraph {} {{",
            quote(self.subgraphs.first().map_or("", |whole| whole.name.as_str()))
        )?;
        writeln!(out, "  compound=true; rankdir=TB; newrank=true; fontname=\"sans-serif\";")?;
        writeln!(out, "  node [style=filled, fontname=\"sans-serif\", fontsize=11];")?;
        writeln!(out, "  edge [fontname=\"sans-serif\", fontsize=9];")?;
        let mut open: Vec<usize> = Vec::new();
        for (i, subgraph) in self.subgraphs.iter().enumerate() {
            while open.last().copied() != subgraph.parent
                && let Some(done) = open.pop()
            {
                if done != 0 {
                    writeln!(out, "{}}}", indent(open.len()))?;
                }
            }
            if i == 0 {
                let title = if subgraph.description.is_empty() {
                    subgraph.name.as_str()
                } else {
                    &subgraph.description
                };
                writeln!(out, "  tooltip={};", quote(title))?;
            } else {
                let pad = indent(open.len());
                writeln!(out, "{pad}subgraph cluster_{i} {{")?;
                writeln!(
                    out,
                    "{pad}  label={}; tooltip={}; style=rounded; color={};",
                    quote(&style::short(&style::title(subgraph), LONGEST_LABEL)),
                    quote(&subgraph.description),
                    quote(&GREY.to_string()),
                )?;
            }
            open.push(i);
            for &node in &inside[i] {
                self.write_dot_node(out, &styles, node, &indent(open.len()))?;
            }
        }
        for depth in (1..open.len()).rev() {
            writeln!(out, "{}}}", indent(depth))?;
        }
        for edge in &self.edges {
            let look = style::edge(edge);
            let label = match edge.mark {
                _ if edge.any_of.is_some() => ", label=\"any of\"",
                Some(Mark::Added) => ", label=\"+\"",
                Some(Mark::Removed) => ", label=\"-\"",
                _ => "",
            };
            writeln!(
                out,
                "  n{} -> n{} [color=\"{}\", fontcolor=\"{}\", style={}{label}, tooltip={}];",
                edge.from,
                edge.to,
                look.colour,
                look.colour,
                if look.dashed { "dashed" } else { "solid" },
                quote(&style::edge_tooltip(self, edge)),
            )?;
        }
        writeln!(out, "}}")
    }

    fn write_dot_node(&self, out: &mut String, styles: &Styles<'_>, i: usize, pad: &str) -> std::fmt::Result {
        let node = &self.nodes[i];
        let look = styles.node(node);
        let shape = match look.shape {
            Shape::Round => "ellipse",
            Shape::Arrow => "cds",
            Shape::Octagon => "doubleoctagon",
        };
        let mut label = style::short(&style::label(node), LONGEST_LABEL);
        if node.presence == DrawnPresence::Missing {
            label.push_str("\n<missing>");
        }
        writeln!(
            out,
            "{pad}n{i} [label={}, shape={shape}, color=\"{}\", fillcolor=\"{}\", style={}, tooltip={}];",
            quote(&label),
            look.border,
            look.fill,
            if look.dashed { "\"filled,dashed\"" } else { "filled" },
            quote(&style::node_tooltip(node)),
        )
    }
}

fn indent(depth: usize) -> String {
    "  ".repeat(depth.clamp(1, DEEPEST_INDENT))
}

/// A quoted string as DOT wants it. Graphviz also expands entities and escapes, so both are protected.
fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for (i, c) in text.chars().enumerate() {
        match c {
            _ if i == LONGEST_TEXT => {
                quoted.push('…');
                break;
            }
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '&' => quoted.push_str("&amp;"),
            c => quoted.push(style::visible(c)),
        }
    }
    quoted.push('"');
    quoted
}
