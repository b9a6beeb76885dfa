//! A picture of a graph: its nodes, what they are doing, and the tokens between them.

mod layers;

use laxity_graph::{Channel, Spec};
use laxity_model::{Edge, Graph};
use svg::Document;
use svg::node::element::{Definitions, Marker, Path, Rectangle, Text, Title};
use unicode_width::UnicodeWidthStr;

use self::layers::{Layers, Place};
use super::view::{Look, State};
use crate::quantity::{bytes, counted};
use crate::table::cut;

/// Pixels: boxes, what is between layers and between boxes, and around everything.
const HEIGHT: f64 = 46.0;
const WIDTH_MIN: f64 = 96.0;
const BETWEEN_LAYERS: f64 = 110.0;
const BETWEEN_BOXES: f64 = 34.0;
const MARGIN: f64 = 24.0;
/// Above the first box, for the graph's name.
const HEADING: f64 = 34.0;
/// From one back-edge, below all boxes, to the next.
const BETWEEN_BACK_EDGES: f64 = 30.0;
/// A letter of the font, at most.
const LETTER: f64 = 7.4;
/// Letters of a name that are shown.
const NAME_MAX: usize = 28;

const INK: &str = "#1F2933";
const FAINT: &str = "#627280";
const RED: &str = "#C00000";

/// The boxes of the nodes, and the points that edges pass.
struct Plan {
    layers: Layers,
    /// Left end and width of each layer.
    columns: Vec<(f64, f64)>,
    width: f64,
    height: f64,
    /// Below all boxes.
    bottom: f64,
}

type Point = (f64, f64);

/// The graph of `spec` as `look` saw it, as SVG.
pub fn svg(spec: &Spec, look: &Look) -> String {
    let drawn = drawn(spec.graph());
    let plan = Plan::of(&drawn);
    let mut document = Document::new()
        .set("viewBox", format!("0 0 {} {}", plan.width, plan.height))
        .set("width", plan.width)
        .set("height", plan.height)
        .set("font-family", "Helvetica, Arial, sans-serif")
        .add(Title::new(clean(&spec.graph().name)))
        .add(Rectangle::new().set("width", "100%").set("height", "100%").set("fill", "#FFFFFF"))
        .add(arrows())
        .add(text((MARGIN, MARGIN + 4.0), &spec.graph().name, 15.0, INK, "start").set("font-weight", "bold"));
    let mut labels = Vec::new();
    let mut back_edges = 0;
    for (number, edge) in drawn.edges.iter().enumerate() {
        let (path, middle) = if edge.back_edge {
            back_edges += 1;
            plan.below(edge, f64::from(back_edges))
        } else {
            plan.along(number, edge)
        };
        // Latest-value edges come last.
        let Some(&channel) = spec.channels().get(number) else {
            let line =
                line(path, false, Channel::Counter).set("stroke-dasharray", "1.5,4").set("stroke-linecap", "round");
            document = document.add(line.add(Title::new("the newest value")));
            labels.push((middle, "latest".to_owned(), 0));
            continue;
        };
        document = document.add(line(path, edge.back_edge, channel).add(Title::new(carries(channel))));
        labels.push((middle, rates(edge), look.tokens[number]));
    }
    for (node, status) in look.nodes.iter().enumerate() {
        let state = State::of(status);
        let jobs = format!("{}, {}", state.name(), counted(status.completed, "job"));
        for element in plan.node(node, &spec.graph().nodes[node].name, &jobs, state) {
            document = document.add(element);
        }
    }
    // Over everything, so that no line strikes them through.
    for ((x, y), rates, tokens) in labels {
        document = document.add(haloed(text((x, y - 5.0), &rates, 10.5, FAINT, "middle")));
        if tokens > 0 {
            let there = counted(tokens, "token");
            document =
                document.add(haloed(text((x, y + 12.0), &there, 10.5, INK, "middle")).set("font-weight", "bold"));
        }
    }
    document.to_string() + "\n"
}

/// `graph` with its latest-value edges behind the others: as forward edges, or as back-edges where they close a cycle.
fn drawn(graph: &Graph) -> Graph {
    let mut drawn = graph.clone();
    for latest in &graph.latest {
        let back_edge = leads(&drawn, latest.consumer, latest.producer);
        drawn.edges.push(Edge { back_edge, ..Edge::new(latest.producer, latest.consumer) });
    }
    drawn
}

/// Whether a path of forward edges leads from one node to another.
fn leads(graph: &Graph, from: usize, to: usize) -> bool {
    let mut reached = vec![false; graph.nodes.len()];
    let mut to_visit = vec![from];
    while let Some(node) = to_visit.pop() {
        if !std::mem::replace(&mut reached[node], true) {
            let onwards = graph.edges.iter().filter(|edge| edge.producer == node && !edge.back_edge);
            to_visit.extend(onwards.map(|edge| edge.consumer));
        }
    }
    reached[to]
}

impl Plan {
    fn of(graph: &Graph) -> Plan {
        let layers = Layers::of(graph);
        let mut left = MARGIN;
        let mut columns = Vec::with_capacity(layers.places.len());
        for places in &layers.places {
            let names = places.iter().filter_map(|place| match place {
                Place::Node(node) => Some(cut(&graph.nodes[*node].name, NAME_MAX).width()),
                Place::Passing(_) => None,
            });
            let width = (names.max().unwrap_or_default() as f64 * LETTER + 28.0).max(WIDTH_MIN + 34.0);
            columns.push((left, width));
            left += width + BETWEEN_LAYERS;
        }
        let most = layers.places.iter().map(Vec::len).max().unwrap_or_default() as f64;
        let bottom = MARGIN + HEADING + most * (HEIGHT + BETWEEN_BOXES) - BETWEEN_BOXES;
        let back_edges = graph.edges.iter().filter(|edge| edge.back_edge).count() as f64;
        let below = if back_edges > 0.0 { back_edges * BETWEEN_BACK_EDGES + 16.0 } else { 0.0 };
        Plan { layers, columns, width: left - BETWEEN_LAYERS + MARGIN, height: bottom + below + MARGIN, bottom }
    }

    /// The upper end of a place.
    fn top(&self, (layer, number): (usize, usize)) -> f64 {
        let halves = self.layers.margin(layer) as f64 + 2.0 * number as f64;
        MARGIN + HEADING + halves / 2.0 * (HEIGHT + BETWEEN_BOXES)
    }

    /// Left, top and width of the box of `node`.
    fn area(&self, node: usize) -> (f64, f64, f64) {
        let at = self.layers.find(Place::Node(node)).expect("every node has a place");
        let (left, width) = self.columns[at.0];
        (left, self.top(at), width)
    }

    /// The path of an edge through the layers that it passes, and where its label is.
    fn along(&self, number: usize, edge: &Edge) -> (String, Point) {
        let ((left, top, width), (end, end_top, _)) = (self.area(edge.producer), self.area(edge.consumer));
        let mut points = vec![(left + width, top + HEIGHT / 2.0)];
        for at in self.layers.passed(number) {
            let ((left, width), y) = (self.columns[at.0], self.top(at) + HEIGHT / 2.0);
            points.extend([(left, y), (left + width, y)]);
        }
        points.push((end - 7.0, end_top + HEIGHT / 2.0));
        let mut path = format!("M{},{}", points[0].0, points[0].1);
        for (count, pair) in points.windows(2).enumerate() {
            let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
            // Across a layer straight on, between two layers level at both ends.
            path += &match count % 2 {
                0 => format!(" C{0},{y0} {0},{y1} {x1},{y1}", (x0 + x1) / 2.0),
                _ => format!(" L{x1},{y1}"),
            };
        }
        let (from, to) = (points[0], points[1]);
        (path, ((from.0 + to.0) / 2.0, (from.1 + to.1) / 2.0))
    }

    /// The path of a back-edge, which is the `count`th, below all boxes.
    fn below(&self, edge: &Edge, count: f64) -> (String, Point) {
        let ((from, from_top, from_width), (to, to_top, to_width)) =
            (self.area(edge.producer), self.area(edge.consumer));
        // Not in the middle, where another may begin, and not where one edge ends and another begins.
        let (x0, x1) = (from + from_width * 0.7, to + to_width * 0.3);
        let y = self.bottom + count * BETWEEN_BACK_EDGES;
        let (y0, y1) = (from_top + HEIGHT, to_top + HEIGHT + 7.0);
        let round = 14.0;
        let turn = if x0 > x1 { -round } else { round };
        let path = format!(
            "M{x0},{y0} L{x0},{} Q{x0},{y} {},{y} L{},{y} Q{x1},{y} {x1},{} L{x1},{y1}",
            y - round,
            x0 + turn,
            x1 - turn,
            y - round
        );
        (path, ((x0 + x1) / 2.0, y))
    }

    fn node(&self, node: usize, name: &str, jobs: &str, state: State) -> [Box<dyn svg::Node>; 3] {
        let (left, top, width) = self.area(node);
        let (fill, stroke) = match state {
            State::Running | State::Sending => ("#D3EBFA", "#0072B2"),
            State::Waiting | State::Claimed => ("#F1F8FC", "#0072B2"),
            State::Free => ("#FFFFFF", FAINT),
            State::Ended => ("#ECEFF1", FAINT),
            State::Lost => ("#FBE3E3", RED),
        };
        let mut shape = Rectangle::new()
            .set("x", left)
            .set("y", top)
            .set("width", width)
            .set("height", HEIGHT)
            .set("rx", 6)
            .set("fill", fill)
            .set("stroke", stroke)
            .set("stroke-width", 1.3)
            .add(Title::new(clean(name)));
        if state == State::Free {
            shape = shape.set("stroke-dasharray", "4,3");
        }
        let middle = left + width / 2.0;
        let name = text((middle, top + 20.0), &cut(name, NAME_MAX), 13.0, INK, "middle").set("font-weight", "bold");
        let colour = if state == State::Lost { RED } else { FAINT };
        [Box::new(shape), Box::new(name), Box::new(text((middle, top + 36.0), jobs, 10.5, colour, "middle"))]
    }
}

fn arrows() -> Definitions {
    let head = Path::new().set("d", "M0,0 L8,4 L0,8 Z").set("fill", FAINT);
    let marker = Marker::new().set("id", "arrow").set("viewBox", "0 0 8 8").set("refX", 1).set("refY", 4);
    Definitions::new().add(
        marker
            .set("markerWidth", 8)
            .set("markerHeight", 8)
            .set("orient", "auto")
            .set("markerUnits", "userSpaceOnUse")
            .add(head),
    )
}

/// Thicker where there is data, dashed where it leads back.
fn line(path: String, is_back_edge: bool, channel: Channel) -> Path {
    let width = if channel == Channel::Counter { 1.3 } else { 2.2 };
    let line = Path::new().set("d", path).set("fill", "none").set("stroke", FAINT).set("stroke-width", width);
    let line = line.set("marker-end", "url(#arrow)");
    if is_back_edge { line.set("stroke-dasharray", "5,4") } else { line }
}

/// What an edge carries, as one points at it.
fn carries(channel: Channel) -> String {
    match (channel.capacity(), channel.message()) {
        (Some(capacity), Some(message)) => {
            format!("{} of {} of {}", channel.name(), counted(capacity.into(), "message"), bytes(message.into()))
        }
        _ => "events".to_owned(),
    }
}

/// Produce, consume and threshold, as `1:2:3`.
fn rates(edge: &Edge) -> String {
    match edge.threshold == edge.consume {
        true => format!("{}:{}", edge.produce, edge.consume),
        false => format!("{}:{}:{}", edge.produce, edge.consume, edge.threshold),
    }
}

fn text((x, y): Point, words: &str, size: f64, colour: &str, anchor: &str) -> Text {
    let text = Text::new(clean(words)).set("x", x).set("y", y).set("font-size", size);
    text.set("fill", colour).set("text-anchor", anchor)
}

fn haloed(text: Text) -> Text {
    text.set("stroke", "#FFFFFF").set("stroke-width", 3).set("stroke-linejoin", "round").set("paint-order", "stroke")
}

/// `text` without the control characters that XML forbids.
fn clean(text: &str) -> String {
    text.chars().filter(|&c| !c.is_control() && c != '\u{FFFE}' && c != '\u{FFFF}').collect()
}
