//! DOT, JSON and SVG, of graphs and of transitions.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::Value;
use setpoint_graph::{Drawing, DrawnPresence, Graph, Layout, Mark, Marks, SubgraphPath};
use setpoint_testutils::{Missing, need, part};

use crate::support::{Bridge, Health, Odd, Thing, graph, item, path, thing};

/// Names that trip careless printers.
const ODD: [&str; 14] = [
    "",
    " ",
    "a-b",
    "a.b",
    "a/b",
    "a b",
    "\"",
    "\\",
    "\\N",
    "a\nb",
    "\u{1}\0",
    "🦀 ünï",
    "<&>&lt;'",
    "digraph",
];

/// Has Graphviz lay a drawing out. It has to understand all of it.
fn graphviz(dot: &str) -> Result<String, Missing> {
    let svg = setpoint_testutils::graphviz::svg(dot)?;
    assert!(svg.is_ok(), "{svg:?}\n{dot}");
    Ok(svg.unwrap_or_default())
}

fn line_of<'a>(dot: &'a str, what: &str) -> &'a str {
    dot.lines().find(|line| line.contains(what)).expect(what)
}

fn json(drawing: &Drawing) -> Value {
    serde_json::from_str(&drawing.to_json().unwrap()).unwrap()
}

fn sample() -> Graph<Health> {
    let mut graph = Graph::new("sample");
    graph.set_description("a bit of everything");
    let mut put = |place: &str, thing: Thing, health| {
        graph.put_item_with_state(&path(place), thing, health).unwrap();
    };
    put("", thing("port").external(), Health::Created);
    put("net", thing("link").needs("port"), Health::Created);
    put("net/ip", thing("address").at_least("link", 5).needs("ghost"), Health::Absent);
    put("net/ip", thing("route").any_of(["link", "backup"]), Health::Broken("no such \"device\"".into()));
    put("apps", thing("labelled-server").needs("address").needs("route"), Health::Created);
    graph.put_item_with_state(&path("net"), Bridge(thing("bridge").needs("link")), Health::Busy).unwrap();
    graph
}

#[test]
fn dot_shows_states_as_colours_and_shapes() {
    let dot = Drawing::of(&sample()).to_dot();
    let blue = line_of(&dot, "label=\"bridge\"");
    assert!(blue.contains("shape=cds") && blue.contains("color=\"#1f5fd6\""), "{blue}");
    let red = line_of(&dot, "label=\"! route\"");
    assert!(red.contains("color=\"#d02121\"") && red.contains("error: no such \\\"device\\\""), "{red}");
    let grey = line_of(&dot, "label=\"address\"");
    assert!(grey.contains(" color=\"#8a8a8a\""), "{grey}");
    let plain = line_of(&dot, "label=\"link\"");
    assert!(plain.contains("shape=ellipse") && plain.contains(" color=\"#222222\""), "{plain}");
    assert!(plain.contains("tooltip=\"thing/link\\nthing link with value 0\""), "{plain}");
    assert!(line_of(&dot, "label=\"port\"").contains("doubleoctagon"));
    assert!(dot.contains("label=\"The server\""), "the item's own label");
    let missing = line_of(&dot, "ghost\\n<missing>");
    assert!(missing.contains("dashed") && missing.contains("#8a8a8a"), "{missing}");
    let fill = |line: &str| line.split("fillcolor=").nth(1).unwrap()[..9].to_owned();
    assert_ne!(fill(plain), fill(blue), "each kind has a hue");
    assert_ne!(fill(plain), fill(grey), "what is not created is pale");
}

#[test]
fn dot_shows_which_edges_are_unsatisfied_and_why() {
    let dot = Drawing::of(&sample()).to_dot();
    let weak = line_of(&dot, "thing/address needs thing/link that is at least 5");
    assert!(
        weak.contains("#d02121") && weak.contains("unsatisfied: its state is thing link with value 0"),
        "{weak}"
    );
    let dangling = line_of(&dot, "thing/address needs thing/ghost");
    assert!(dangling.contains("#d02121") && dangling.contains("it is missing"), "{dangling}");
    let pending = line_of(&dot, "needs thing/address");
    assert!(pending.contains("it is not created"), "{pending}");
    let fine = line_of(&dot, "thing/link needs thing/port");
    assert!(fine.contains("#222222") && fine.contains("link stands on port"), "{fine}");
    let other = line_of(&dot, "such as thing/backup");
    assert!(other.contains("style=dashed, label=\"any of\"") && other.contains("#8a8a8a"), "{other}");
}

#[test]
fn dot_nests_subgraphs_and_balances_braces() {
    let dot = Drawing::of(&sample()).to_dot();
    let outside_quotes: String = dot.replace("\\\"", "").split('"').step_by(2).collect();
    assert_eq!(outside_quotes.matches('{').count(), outside_quotes.matches('}').count());
    let order: Vec<_> =
        ["label=\"apps\"", "label=\"net\"", "label=\"ip\""].map(|l| dot.find(l).unwrap()).into();
    assert!(order.is_sorted());
    let svg = need!(graphviz(&dot));
    assert_eq!(svg.matches("class=\"cluster\"").count(), 3);
    assert_eq!(svg.matches("class=\"node\"").count(), 8);
    assert_eq!(svg.matches("class=\"edge\"").count(), 8);
}

fn odd_graph() -> Graph<Health> {
    let mut graph = Graph::new("a \"b\"\n<c> & \\N");
    for name in ODD {
        let mut odd = thing(name);
        odd.needs = ODD.iter().map(|name| crate::support::Need::One((*name).to_owned())).take(2).collect();
        let state = Health::Broken(name.to_owned());
        graph.put_item_with_state(&SubgraphPath::from([name, name]), odd, state).unwrap();
    }
    graph.put_item(Odd(thing(&"long ".repeat(20_000)))).unwrap();
    graph
}

#[test]
fn names_of_any_kind_are_drawn_and_never_collide() {
    let drawing = Drawing::of(&odd_graph());
    let json = json(&drawing);
    let names: Vec<_> =
        json["nodes"].as_array().unwrap().iter().map(|node| node["name"].as_str().unwrap()).collect();
    assert!(ODD.iter().all(|odd| names.contains(odd)));
    assert_well_formed(&drawing.to_svg());
    let svg = need!(graphviz(&drawing.to_dot()));
    assert_eq!(svg.matches("class=\"node\"").count(), ODD.len() + 1);
    assert!(svg.contains(">! a&#45;b<") || svg.contains(">! a-b<"), "{svg}");
    assert!(svg.contains("&lt;&amp;&gt;&amp;lt;"), "entities are shown, not expanded");
}

/// A small check that tags nest and that text holds nothing XML forbids.
fn assert_well_formed(svg: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = svg;
    while let Some(start) = rest.find('<') {
        let text = &rest[..start];
        assert!(!text.contains('>'), "{text}");
        let end = start + rest[start..].find('>').unwrap();
        let tag = &rest[start + 1..end];
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{tag}");
        } else if !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap());
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty());
    assert!(svg.chars().all(|c| c == '\n' || !c.is_control()));
    for entity in svg.split('&').skip(1) {
        let name = entity.split(';').next().unwrap();
        assert!(["amp", "lt", "gt", "quot", "#39", "#10"].contains(&name), "&{name};");
    }
}

#[test]
fn json_tells_all_that_is_drawn() {
    let drawn = json(&Drawing::of(&sample()));
    assert_eq!((&drawn["name"], &drawn["transition"]), (&"sample".into(), &false.into()));
    let subgraphs: Vec<_> =
        drawn["subgraphs"].as_array().unwrap().iter().map(|s| (&s["name"], &s["parent"])).collect();
    assert_eq!(
        subgraphs[1..],
        [(&"apps".into(), &"s0".into()), (&"net".into(), &"s0".into()), (&"ip".into(), &"s2".into())]
    );
    let node =
        |name: &str| drawn["nodes"].as_array().unwrap().iter().find(|node| node["name"] == name).unwrap();
    let route = node("route");
    assert_eq!(route["path"], serde_json::json!(["net", "ip"]));
    assert_eq!(route["state"]["error"], "no such \"device\"");
    assert_eq!((&node("port")["external"], &node("ghost")["presence"]), (&true.into(), &"missing".into()));
    let edge = |from: &str, to: &str| {
        let (from, to) = (&node(from)["id"], &node(to)["id"]);
        drawn["edges"].as_array().unwrap().iter().find(|e| e["from"] == *from && e["to"] == *to).unwrap()
    };
    let weak = edge("address", "link");
    assert_eq!((&weak["wanted"], &weak["satisfied"]), (&"is at least 5".into(), &false.into()));
    assert_eq!(edge("address", "ghost")["dangling"], true);
    let other = edge("route", "backup");
    assert_eq!(
        (&other["any_of"], &other["satisfied"], &other["met"]),
        (&0.into(), &false.into(), &true.into())
    );
    assert_eq!(edge("link", "port")["description"], "link stands on port");
}

#[test]
fn a_part_is_drawn_with_what_it_needs_from_outside() {
    let graph = sample();
    let drawing = Drawing::of(graph.subgraph(&path("net/ip")).unwrap());
    let presence =
        |name: &str| drawing.nodes().iter().find(|node| node.reference == item(name)).unwrap().presence;
    assert_eq!(
        (presence("route"), presence("link"), presence("ghost")),
        (DrawnPresence::Here, DrawnPresence::Outside, DrawnPresence::Missing)
    );
    assert_eq!(drawing.nodes().len(), 5);
    let one = Drawing::of(graph.item_as_graph(&item("link")).unwrap());
    assert_eq!(one.nodes().len(), 2);
}

#[test]
fn equal_graphs_are_drawn_alike_however_they_were_built() {
    let one = graph([("s", thing("a").needs("b")), ("t", thing("b")), ("", thing("c").any_of(["a", "b"]))]);
    let two = graph([("", thing("c").any_of(["a", "b"])), ("t", thing("b")), ("s", thing("a").needs("b"))]);
    let (one, two) = (Drawing::of(&one), Drawing::of(&two));
    assert_eq!(one.to_dot(), two.to_dot());
    assert_eq!(one.to_json().unwrap(), two.to_json().unwrap());
    assert_eq!(one.to_svg(), two.to_svg());
}

fn change() -> (Graph, Graph) {
    let from = graph([
        ("", thing("same")),
        ("", thing("anew")),
        ("", thing("changed").needs("same").needs("gone")),
        ("old/deep", thing("gone")),
        ("old", thing("moved")),
    ]);
    let to = graph([
        ("", thing("same")),
        ("", thing("anew")),
        ("", thing("changed").needs("same").needs("new")),
        ("young", thing("new").needs("waits")),
        ("young", thing("moved")),
        ("young", thing("waits")),
        ("young", thing("broke")),
    ]);
    (from, to)
}

#[test]
fn a_transition_shows_what_happens_to_every_item() {
    let (from, to) = change();
    let marks: Marks = [("waits", Mark::Pending), ("broke", Mark::Failed), ("anew", Mark::Recreated)]
        .map(|(i, m)| (item(i), m))
        .into();
    let drawing = Drawing::transition(&from, &to, &marks);
    let labels = ["+ new", "~ changed", "± anew", "- gone", "> moved", "? waits", "! broke", "same"];
    let (dot, svg) = (drawing.to_dot(), drawing.to_svg());
    for label in labels {
        assert!(dot.contains(&format!("[label=\"{label}\",")), "{label}: {dot}");
        assert!(svg.contains(&format!(">{}</text>", label.replace('>', "&gt;"))), "{label}: {svg}");
    }
    let fill = |label: &str| line_of(&dot, label).split("fillcolor=").nth(1).unwrap()[..9].to_owned();
    assert_ne!(fill("± anew"), fill("~ changed"));
    assert!(line_of(&dot, "± anew").contains("\\nrecreated\""), "{dot}");
    let removed = line_of(&dot, "thing/changed needs thing/gone");
    assert!(removed.contains("label=\"-\"") && removed.contains("dashed"), "{removed}");
    assert!(line_of(&dot, "thing/changed needs thing/new").contains("label=\"+\""));
    let json = json(&drawing);
    let marks: Vec<_> =
        json["nodes"].as_array().unwrap().iter().map(|n| n["mark"].as_str().unwrap()).collect();
    assert_eq!(
        marks,
        ["recreated", "failed", "changed", "removed", "moved", "added", "unchanged", "pending"]
    );
    assert_eq!(json["transition"], true);
    assert_well_formed(&svg);
    need!(graphviz(&dot));
}

#[test]
fn a_subgraph_that_only_the_first_graph_has_is_drawn() {
    let (from, to) = change();
    let drawing = Drawing::transition(&from, &to, &Marks::new());
    let paths: Vec<_> =
        (0..drawing.subgraphs().len()).map(|i| drawing.path_of_subgraph(i).to_string()).collect();
    assert_eq!(paths, ["", "old", "old/deep", "young"]);
    let marks: Vec<_> = drawing.subgraphs().iter().map(|subgraph| subgraph.mark).collect();
    assert_eq!(marks, [None, Some(Mark::Removed), Some(Mark::Removed), Some(Mark::Added)]);
    assert!(drawing.to_dot().contains("label=\"- old\"") && drawing.to_svg().contains(">+ young</text>"));
    let nothing: Graph = Graph::new("nothing");
    assert_eq!(Drawing::transition(&from, &nothing, &Marks::new()).nodes().len(), 5);
    assert_eq!(Drawing::transition(&nothing, &nothing, &Marks::new()).nodes().len(), 0);
}

#[test]
fn a_transition_from_a_current_graph_shows_its_state() {
    let mut current: Graph<Health> = Graph::new("now");
    current.put_item_with_state(&path(""), thing("a"), Health::Broken("oops".into())).unwrap();
    let intended = graph([("", thing("a").value(2))]);
    let drawing = Drawing::transition(&current, &intended, &Marks::new());
    assert_eq!(drawing.nodes()[0].look.error.as_deref(), Some("oops"));
    assert_eq!(drawing.nodes()[0].description, "thing a with value 2");
}

/// No two boxes of one subgraph overlap, and each is inside its subgraph's.
pub(crate) fn assert_tidy(drawing: &Drawing, layout: &Layout) {
    let mut inside: Vec<Vec<(setpoint_graph::Rect, String)>> = vec![Vec::new(); drawing.subgraphs().len()];
    for (node, rect) in drawing.nodes().iter().zip(&layout.nodes) {
        assert!(layout.subgraphs[node.subgraph].contains(rect), "{} sticks out", node.reference);
        inside[node.subgraph].push((*rect, node.reference.to_string()));
    }
    for (i, (subgraph, rect)) in drawing.subgraphs().iter().zip(&layout.subgraphs).enumerate() {
        if let Some(parent) = subgraph.parent {
            assert!(layout.subgraphs[parent].contains(rect), "subgraph {i} sticks out");
            inside[parent].push((*rect, format!("subgraph {i}")));
        }
    }
    for mut boxes in inside {
        boxes.sort_by(|a, b| a.0.y.total_cmp(&b.0.y));
        for (i, (one, name)) in boxes.iter().enumerate() {
            let near = boxes[i + 1..].iter().take_while(|(other, _)| other.y < one.bottom());
            for (other, other_name) in near {
                assert!(!one.overlaps(other), "{name} overlaps {other_name}: {one:?} {other:?}");
            }
        }
    }
    for (edge, points) in drawing.edges().iter().zip(&layout.edges) {
        assert!(points.len() >= 2 && points.iter().all(|p| p.x.is_finite() && p.y.is_finite()), "{edge:?}");
    }
}

/// A number that looks random and is the same every time.
fn scramble(i: usize) -> usize {
    (i.wrapping_mul(2_654_435_761) >> 7) % 1_000_003
}

pub(crate) fn tangle(n: usize, subgraphs: usize) -> Graph {
    let mut graph: Graph = Graph::new("tangle");
    for i in 0..n {
        let mut this = thing(&format!("item {i}"));
        for k in 0..scramble(i) % 4 {
            this = this.needs(&format!("item {}", scramble(i * 7 + k) % n));
        }
        let place = scramble(i * 3) % (subgraphs + 1);
        let place = match place {
            0 => path(""),
            place if place % 3 == 0 => path(&format!("s{}/t{}/u", place % 5, place)),
            place => path(&format!("s{}/t{}", place % 5, place)),
        };
        graph.put_item_into(&place, this).unwrap();
    }
    graph
}

#[test]
fn boxes_never_overlap_and_stay_inside_their_subgraph() {
    for graph in [tangle(60, 0), tangle(200, 12), tangle(30, 30)] {
        let drawing = Drawing::of(&graph);
        assert_tidy(&drawing, &drawing.layout());
        assert_well_formed(&drawing.to_svg());
    }
    let odd = Drawing::of(&odd_graph());
    assert_tidy(&odd, &odd.layout());
    let (from, to) = change();
    let transition = Drawing::transition(&from, &to, &Marks::new());
    assert_tidy(&transition, &transition.layout());
}

#[test]
fn edges_lead_down_unless_they_close_a_cycle() {
    let chain = graph([
        ("", thing("a").needs("b").needs("c")),
        ("", thing("b").needs("c")),
        ("", thing("c").needs("c")),
    ]);
    let drawing = Drawing::of(&chain);
    let layout = drawing.layout();
    let tops: Vec<_> = layout.nodes.iter().map(|rect| rect.y).collect();
    assert!(tops.is_sorted() && tops[0] < tops[1] && tops[1] < tops[2]);
    let long = drawing.edges().iter().position(|edge| (edge.from, edge.to) == (0, 2)).unwrap();
    let [_, above, below, _] = layout.edges[long][..] else { panic!("{:?}", layout.edges[long]) };
    let b = layout.nodes[1];
    assert!(
        (above.x - below.x).abs() < 0.5 && above.y <= b.y && b.bottom() <= below.y,
        "it is upright beside b"
    );
    assert!(!(b.x..b.right()).contains(&above.x), "it goes around b");
    let cycle = Drawing::of(&graph([("", thing("a").needs("b")), ("", thing("b").needs("a"))]));
    assert_tidy(&cycle, &cycle.layout());
}

#[test]
fn five_thousand_nodes_are_drawn_in_bounded_time() {
    for (case, graph) in [("flat", tangle(5_000, 0)), ("nested", tangle(5_000, 300))] {
        let start = Instant::now();
        let drawing = Drawing::of(&graph);
        let layout = drawing.layout();
        assert_tidy(&drawing, &layout);
        assert!(drawing.to_svg().len() > 100_000);
        assert!(start.elapsed() < Duration::from_mins(2), "{case}: {:?}", start.elapsed());
        let whole = layout.subgraphs[0];
        assert!(whole.width / whole.height < 20.0 && whole.height / whole.width < 20.0, "{case}: {whole:?}");
    }
}

#[test]
fn stars_and_chains_of_thousands_are_drawn() {
    let mut star: Graph = Graph::new("star");
    let mut chain: Graph = Graph::new("chain");
    for i in 0..5_000 {
        star.put_item(thing(&i.to_string()).needs("hub")).unwrap();
        chain.put_item(thing(&i.to_string()).needs(&(i + 1).to_string()).needs("5000")).unwrap();
    }
    for graph in [star, chain] {
        let drawing = Drawing::of(&graph);
        assert_tidy(&drawing, &drawing.layout());
    }
}

#[test]
fn thousands_of_nested_subgraphs_are_drawn() {
    let deep: SubgraphPath = (0..3_000).map(|i| i.to_string()).collect();
    let mut graph: Graph = Graph::new("deep");
    graph.put_item_into(&deep, thing("bottom").needs("top")).unwrap();
    graph.put_item(thing("top")).unwrap();
    let drawing = Drawing::of(&graph);
    assert_tidy(&drawing, &drawing.layout());
    assert!(drawing.to_dot().len() < 2_000_000 && drawing.to_svg().len() < 2_000_000);
    assert!(drawing.to_json().unwrap().len() < 2_000_000);
}

#[test]
fn an_empty_graph_is_drawn() {
    let drawing = Drawing::of(&Graph::<()>::new(""));
    assert_well_formed(&drawing.to_svg());
    assert_eq!(json(&drawing)["nodes"].as_array().unwrap().len(), 0);
    need!(graphviz(&drawing.to_dot()));
}

#[test]
fn every_name_is_drawn() {
    need!(part::program("graphviz", "dot"));
    let config = ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(names in prop::collection::vec(any::<String>(), 1..60))| {
        let mut graph: Graph<Health> = Graph::new(names[0].as_str());
        for name in &names {
            let odd = thing(name).needs(&names[0]).any_of([name, "missing"]);
            let place = SubgraphPath::from([name.as_str()]);
            graph.put_item_with_state(&place, odd, Health::Broken(name.clone())).unwrap();
        }
        let drawing = Drawing::of(&graph);
        assert_tidy(&drawing, &drawing.layout());
        assert_well_formed(&drawing.to_svg());
        let svg = graphviz(&drawing.to_dot()).unwrap();
        prop_assert_eq!(svg.matches("class=\"node\"").count(), drawing.nodes().len());
    });
}
