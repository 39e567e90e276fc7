//! Where the lines of edges go in a drawing: around all boxes that they have nothing to do with.

use proptest::prelude::*;
use setpoint_graph::{Drawing, Graph, Point, Rect, SubgraphPath};

use crate::export::{assert_tidy, tangle};
use crate::support::{Thing, path, thing};

/// How far a line may reach into a box, in pixels.
const TOLERANCE: f64 = 1.0;
/// How many points of each curve are looked at.
const SAMPLES: u32 = 24;

/// A point of a cubic Bézier curve, between 0 and 1.
fn at(curve: &[Point; 4], t: f64) -> Point {
    let u = 1.0 - t;
    let weights = [u * u * u, 3.0 * u * u * t, 3.0 * u * t * t, t * t * t];
    let sum =
        |of: fn(&Point) -> f64| curve.iter().zip(weights).map(|(point, weight)| of(point) * weight).sum();
    Point { x: sum(|point| point.x), y: sum(|point| point.y) }
}

fn inside(rect: &Rect, point: Point) -> bool {
    point.x > rect.x + TOLERANCE
        && point.x < rect.right() - TOLERANCE
        && point.y > rect.y + TOLERANCE
        && point.y < rect.bottom() - TOLERANCE
}

/// The subgraphs around a node, from the inside out.
fn around(drawing: &Drawing, node: usize) -> Vec<usize> {
    std::iter::successors(Some(drawing.nodes()[node].subgraph), |&at| drawing.subgraphs()[at].parent)
        .collect()
}

/// No edge runs behind a node that is not one of its ends, nor through a subgraph that holds neither end.
pub(crate) fn assert_clear(drawing: &Drawing) {
    let layout = drawing.layout();
    assert_tidy(drawing, &layout);
    for (i, edge) in drawing.edges().iter().enumerate() {
        let holds: Vec<usize> = [edge.from, edge.to].iter().flat_map(|&end| around(drawing, end)).collect();
        let others: Vec<(String, Rect)> =
            (0..drawing.nodes().len())
                .filter(|&node| node != edge.from && node != edge.to)
                .map(|node| (drawing.nodes()[node].reference.to_string(), layout.nodes[node]))
                .chain((0..drawing.subgraphs().len()).filter(|subgraph| !holds.contains(subgraph)).map(
                    |subgraph| (drawing.path_of_subgraph(subgraph).to_string(), layout.subgraphs[subgraph]),
                ))
                .collect();
        let curves = layout.curves(i);
        assert!(!curves.is_empty(), "{edge:?} is not drawn");
        for curve in &curves {
            for step in 0..=SAMPLES {
                let point = at(curve, f64::from(step) / f64::from(SAMPLES));
                let hit = others.iter().find(|(_, rect)| inside(rect, point));
                assert!(
                    hit.is_none(),
                    "{} to {} runs behind {hit:?} at {point:?}: {:?}",
                    drawing.nodes()[edge.from].reference,
                    drawing.nodes()[edge.to].reference,
                    layout.edges[i],
                );
            }
        }
        let ends = [(edge.from, curves[0][0]), (edge.to, curves[curves.len() - 1][3])];
        for (node, point) in ends {
            let rect = layout.nodes[node];
            let touches = |low: f64, at: f64, high: f64| (low - TOLERANCE..=high + TOLERANCE).contains(&at);
            assert!(
                touches(rect.x, point.x, rect.right()) && touches(rect.y, point.y, rect.bottom()),
                "the edge from {} to {} does not reach {rect:?}: {point:?}",
                drawing.nodes()[edge.from].reference,
                drawing.nodes()[edge.to].reference,
            );
        }
    }
}

/// A node of a random graph: where it is, how long its name is, and what it needs.
type Drawn = (usize, usize, Vec<prop::sample::Index>);

fn graph_of(nodes: &[Drawn], places: &[Vec<u8>], hubs: usize) -> Graph {
    let mut graph: Graph = Graph::new("random");
    let name = |i: usize| format!("{i}{}", "x".repeat(nodes[i].1));
    for (i, (place, _, needs)) in nodes.iter().enumerate() {
        let mut this: Thing = thing(&name(i));
        for need in needs {
            this = this.needs(&name(need.index(nodes.len())));
        }
        // What many need, or what needs many, makes rows that are folded.
        if hubs > 0 {
            this = this.needs(&name(i % hubs.min(nodes.len())));
        }
        let place: SubgraphPath = places[place % places.len()].iter().map(ToString::to_string).collect();
        graph.put_item_into(&place, this).unwrap();
    }
    graph
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_edge_runs_behind_a_node_or_through_a_subgraph_that_is_not_its_own(
        nodes in prop::collection::vec(
            (0..9_usize, 0..25_usize, prop::collection::vec(any::<prop::sample::Index>(), 0..4)), 1..60),
        places in prop::collection::vec(prop::collection::vec(0..3_u8, 0..4), 1..9),
        hubs in 0..4_usize,
    ) {
        assert_clear(&Drawing::of(&graph_of(&nodes, &places, hubs)));
    }
}

#[test]
fn edges_go_around_boxes_in_large_drawings_too() {
    for graph in [tangle(300, 0), tangle(300, 20), tangle(300, 100)] {
        assert_clear(&Drawing::of(&graph));
    }
}

#[test]
fn edges_that_are_too_many_for_lanes_go_around_all_rows() {
    let mut graph: Graph = Graph::new("chains");
    for i in 0..260 {
        let chain = thing(&i.to_string()).needs(&(i + 1).to_string()).needs("260").needs("outside");
        graph.put_item_into(&path("chain"), chain).unwrap();
    }
    graph.put_item(thing("outside")).unwrap();
    assert_clear(&Drawing::of(&graph));
}

#[test]
fn an_edge_goes_around_a_tall_box_and_what_is_beside_it() {
    let mut graph: Graph = Graph::new("tall");
    for i in 0..6 {
        let column = thing(&format!("column {i}")).needs(&format!("column {}", i + 1));
        graph.put_item_into(&path("tall"), column).unwrap();
    }
    graph.put_item_into(&path("tall"), thing("column 6").needs("bottom")).unwrap();
    graph.put_item(thing("top").needs("column 0").needs("beside").needs("bottom")).unwrap();
    graph.put_item(thing("beside").needs("bottom")).unwrap();
    graph.put_item(thing("bottom")).unwrap();
    assert_clear(&Drawing::of(&graph));
}
