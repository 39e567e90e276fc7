//! The floor: the same items in a plain graph, without anything that an engine is for.

use std::collections::HashMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;
use setpoint_graph::Name;

use crate::case::Case;
use crate::part::{Part, name_of};

/// A plain graph with an index of names.
#[derive(Default)]
struct Plain {
    graph: DiGraph<u32, ()>,
    index: HashMap<Name, NodeIndex>,
}

impl Plain {
    fn node(&mut self, name: Name) -> NodeIndex {
        *self.index.entry(name).or_insert_with(|| self.graph.add_node(0))
    }

    fn put(&mut self, part: &Part) {
        let node = self.node(part.name.clone());
        self.graph[node] = part.value;
        part.needs.each(|number| {
            let needed = self.node(name_of(number));
            self.graph.add_edge(needed, node, ());
        });
    }

    /// Sorts the nodes and visits each once with its edges.
    fn sort_and_visit(&self) -> Result<u64> {
        let order =
            petgraph::algo::toposort(&self.graph, None).map_err(|_| anyhow!("the items form a cycle"))?;
        let mut sum = 0;
        for node in order {
            sum += u64::from(self.graph[node]);
            sum += self.graph.edges(node).map(|edge| edge.target().index() as u64).sum::<u64>();
        }
        Ok(sum)
    }
}

/// How long the floor takes: the puts, or sorting and visiting what was put.
pub(crate) fn time(case: Case, parts: &[Part]) -> Result<Duration> {
    let mut plain = Plain::default();
    let start = Instant::now();
    for part in parts {
        plain.put(part);
    }
    if case.times_puts() {
        let took = start.elapsed();
        black_box(&plain.graph);
        return Ok(took);
    }
    let start = Instant::now();
    black_box(plain.sort_and_visit()?);
    Ok(start.elapsed())
}
