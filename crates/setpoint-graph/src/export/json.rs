//! JSON, for programs.

use serde::ser::Error as _;
use serde::{Serialize, Serializer};

use super::{Drawing, DrawnEdge, DrawnNode, DrawnPresence, Mark};
use crate::{Kind, Name, SubgraphPath};

impl Drawing {
    /// Prints the drawing as JSON.
    ///
    /// ```text
    /// { "name", "description", "transition",
    ///   "subgraphs": [{ "id": "s1", "parent": "s0", "name", "description", "mark" }],   outer before inner
    ///   "nodes": [{ "id": "n0", "subgraph": "s1", "path": [], "kind", "name", "label", "description",
    ///               "external", "presence", "state": { "created", "in_transition", "error" }, "mark" }],
    ///   "edges": [{ "from": "n0", "to": "n1", "description", "wanted", "any_of",
    ///               "dangling", "satisfied", "met", "reason", "mark" }] }
    /// ```
    ///
    /// What does not apply is left out.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }
}

#[derive(Serialize)]
struct DrawingJson<'a> {
    name: &'a Name,
    description: &'a str,
    transition: bool,
    subgraphs: Vec<SubgraphJson<'a>>,
    nodes: Vec<NodeJson<'a>>,
    edges: Vec<EdgeJson<'a>>,
}

#[derive(Serialize)]
struct SubgraphJson<'a> {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    name: &'a Name,
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mark: Option<Mark>,
}

#[derive(Serialize)]
struct NodeJson<'a> {
    id: String,
    subgraph: String,
    path: SubgraphPath,
    kind: &'a Kind,
    name: &'a Name,
    label: &'a str,
    description: &'a str,
    external: bool,
    presence: &'static str,
    state: StateJson<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mark: Option<Mark>,
}

#[derive(Serialize)]
struct StateJson<'a> {
    created: bool,
    in_transition: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

#[derive(Serialize)]
struct EdgeJson<'a> {
    from: String,
    to: String,
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    wanted: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    any_of: Option<usize>,
    dangling: bool,
    satisfied: bool,
    met: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mark: Option<Mark>,
}

impl Serialize for Drawing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let whole = self.subgraphs.first().ok_or_else(|| S::Error::custom("a drawing of nothing"))?;
        let subgraphs = self.subgraphs.iter().enumerate().map(|(i, subgraph)| SubgraphJson {
            id: format!("s{i}"),
            parent: subgraph.parent.map(|parent| format!("s{parent}")),
            name: &subgraph.name,
            description: &subgraph.description,
            mark: subgraph.mark,
        });
        DrawingJson {
            name: &whole.name,
            description: &whole.description,
            transition: self.transition,
            subgraphs: subgraphs.collect(),
            nodes: self.nodes.iter().enumerate().map(|(i, node)| self.node_json(i, node)).collect(),
            edges: self.edges.iter().map(|edge| self.edge_json(edge)).collect(),
        }
        .serialize(serializer)
    }
}

impl Drawing {
    fn node_json<'a>(&self, i: usize, node: &'a DrawnNode) -> NodeJson<'a> {
        NodeJson {
            id: format!("n{i}"),
            subgraph: format!("s{}", node.subgraph),
            path: self.path_of_subgraph(node.subgraph),
            kind: node.reference.kind(),
            name: node.reference.name(),
            label: &node.label,
            description: &node.description,
            external: node.external,
            presence: match node.presence {
                DrawnPresence::Here => "here",
                DrawnPresence::Outside => "outside",
                DrawnPresence::Missing => "missing",
            },
            state: StateJson {
                created: node.look.created,
                in_transition: node.look.in_transition,
                error: node.look.error.as_deref(),
            },
            mark: node.mark,
        }
    }

    fn edge_json<'a>(&self, edge: &'a DrawnEdge) -> EdgeJson<'a> {
        EdgeJson {
            from: format!("n{}", edge.from),
            to: format!("n{}", edge.to),
            description: &edge.description,
            wanted: edge.wanted.as_deref(),
            any_of: edge.any_of,
            dangling: self.nodes.get(edge.to).is_none_or(|node| node.presence == DrawnPresence::Missing),
            satisfied: edge.unsatisfied.is_none(),
            met: edge.met,
            reason: edge.unsatisfied.as_deref(),
            mark: edge.mark,
        }
    }
}
