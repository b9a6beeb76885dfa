//! Every feedback edge of the video stabilizer's graph is needed: without it a slow reader gets what a later frame wrote.
//!
//! ```text
//! reader    job 12 ........ held back ........ reads        without the feedback edge reader -> writer
//! writer    job 12    13    14 (writes there)  |
//! ```
//!
//! Live graphs of the derived edges less one carry it out. Data is the test's own here: without an edge, that of a graph
//! would be read and written at once.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::Duration;

use laxity_graph::{Channel, Registry, Spec};
use laxity_model::{Edge, Graph, Node};
use laxity_sys::clock;
use laxity_vx::{Action, Bytes, Delay, Dependency, DependencyKind, INPUT_CALLBACK, OUTPUT_CALLBACK, Parameter};
use support::{PERIOD, Place};

/// A use of an object: what is in it, was in it so many jobs ago, or will be.
#[derive(Clone, Copy)]
enum Use {
    In(&'static str),
    Past(&'static str, u32),
    Out(&'static str),
}

use Use::{In, Out, Past};

/// Name, and depth of the delay. As in `examples/vision/src/graph.cpp`, which a test compares.
const OBJECTS: [(&str, u32); 10] = [
    ("color", 0),
    ("frames", 6),
    ("gray", 0),
    ("pyramids", 1),
    ("points", 1),
    ("tracked", 0),
    ("motion", 0),
    ("matrices", 10),
    ("correction", 0),
    ("stabilized", 0),
];

const NODES: [(&str, &[Use]); 11] = [
    (INPUT_CALLBACK, &[Out("color")]),
    ("duplicate_color_image", &[In("color"), Out("frames")]),
    ("convert_to_grayscale", &[In("color"), Out("gray")]),
    ("compute_image_pyramid", &[In("gray"), Out("pyramids")]),
    ("compute_optical_flow", &[Past("pyramids", 1), In("pyramids"), Past("points", 1), Out("tracked")]),
    ("harris_feature_tracker", &[In("gray"), In("tracked"), Out("points")]),
    ("compute_homography", &[Past("points", 1), In("tracked"), Out("motion")]),
    ("homography_filter", &[In("motion"), Out("matrices")]),
    ("smooth_homography", &[In("matrices"), Past("matrices", 5), Past("matrices", 10), Out("correction")]),
    ("warp_perspective", &[Past("frames", 6), In("correction"), Out("stabilized")]),
    (OUTPUT_CALLBACK, &[In("stabilized")]),
];

/// The job in which a reader is held back: all delays are full of what jobs wrote.
const HELD_JOB: u64 = 12;

/// What each node makes of its inputs, by node and frame.
type Digests = Vec<Vec<u64>>;

fn digest(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// The object that is used, how many jobs ago, and whether it is written.
fn parts(used: Use) -> (&'static str, u32, bool) {
    match used {
        In(object) => (object, 0, false),
        Past(object, ago) => (object, ago, false),
        Out(object) => (object, 0, true),
    }
}

/// Which node waits for which, as `verify` derives it.
fn dependencies(replicas: u32) -> Vec<Dependency> {
    let place = Place::new("feedback-shape");
    let mut graph = place.context().graph("stabilizer");
    let objects: BTreeMap<&str, Delay<Bytes>> =
        OBJECTS.iter().map(|&(name, depth)| (name, graph.delay(name, Bytes(8), depth + 1))).collect();
    for (name, uses) in NODES {
        let parameters = uses.iter().map(|&used| match parts(used) {
            (object, _, true) => Parameter::output(objects[object]),
            (object, ago, false) => Parameter::input(objects[object].ago(ago)),
        });
        match name {
            INPUT_CALLBACK => drop(graph.input(parameters, |_| Ok(Action::Continue))),
            OUTPUT_CALLBACK => drop(graph.output(parameters, |_| Ok(()))),
            name => drop(graph.node(name, parameters, |_| Ok(()))),
        }
    }
    graph.verify().expect("it is the stabilizer's").dependencies(replicas).expect("that many are possible")
}

fn position(node: &str) -> usize {
    NODES.iter().position(|(name, _)| *name == node).expect("all nodes are those of the graph")
}

/// What a loop computes.
fn looped(frames: u64) -> Digests {
    let mut values: BTreeMap<(&str, i64), u64> = BTreeMap::new();
    let mut digests = vec![Vec::new(); NODES.len()];
    for frame in 0..frames as i64 {
        for (node, (_, uses)) in NODES.iter().enumerate() {
            let reads = uses.iter().map(|&used| parts(used)).filter(|(.., is_write)| !is_write);
            let value = |(object, ago, _): (&'static str, u32, bool)| {
                values.get(&(object, frame - i64::from(ago))).copied().unwrap_or(digest(object))
            };
            let found: Vec<u64> = reads.map(value).collect();
            let made = digest((node, frame as u64, found));
            digests[node].push(made);
            let writes = uses.iter().map(|&used| parts(used)).filter(|(.., is_write)| *is_write);
            values.extend(writes.map(|(object, ..)| ((object, frame), made)));
        }
    }
    digests
}

/// Holds job [`HELD_JOB`] of `reader` back until `writer` is done with the job that writes what it reads.
struct Hold {
    reader: usize,
    writer: usize,
    longest: Duration,
}

/// The objects of a graph whose nodes wait for each other as `dependencies` say.
struct Live {
    replicas: u32,
    /// By object, N + M values.
    values: BTreeMap<&'static str, Vec<Mutex<u64>>>,
    /// Jobs that have written, by node.
    written: Mutex<Vec<u64>>,
    changed: Condvar,
}

impl Live {
    fn new(replicas: u32) -> Live {
        let value = |&(name, depth): &(&'static str, u32)| {
            (name, (0..replicas + depth).map(|_| Mutex::new(digest(name))).collect())
        };
        let values = OBJECTS.iter().map(value).collect();
        Live { replicas, values, written: Mutex::new(vec![0; NODES.len()]), changed: Condvar::new() }
    }

    fn value(&self, object: &str, job: u64, ago: u32) -> &Mutex<u64> {
        let values = &self.values[object];
        &values[((job + values.len() as u64 - u64::from(ago)) % values.len() as u64) as usize]
    }

    /// A job of `node`: what it makes of its inputs.
    fn work(&self, node: usize, job: u64, hold: &Hold) -> u64 {
        if node == hold.reader && job == HELD_JOB {
            self.wait_for(hold.writer, HELD_JOB + u64::from(self.replicas), hold.longest);
        }
        let uses = || NODES[node].1.iter().map(|&used| parts(used));
        let found: Vec<u64> = uses()
            .filter(|(.., is_write)| !is_write)
            .map(|(object, ago, _)| *self.value(object, job, ago).lock().expect("no panic"))
            .collect();
        let made = digest((node, job, found));
        for (object, ..) in uses().filter(|(.., is_write)| *is_write) {
            *self.value(object, job, 0).lock().expect("no panic") = made;
        }
        self.written.lock().expect("no panic")[node] = job + 1;
        self.changed.notify_all();
        made
    }

    fn wait_for(&self, node: usize, job: u64, longest: Duration) {
        let written = self.written.lock().expect("no panic");
        drop(self.changed.wait_timeout_while(written, longest, |written| written[node] <= job).expect("no panic"));
    }
}

/// What a live graph with these edges computes.
fn executed(test: &str, dependencies: &[Dependency], replicas: u32, hold: &Hold, frames: u64) -> Digests {
    let node = |(position, (name, _)): (usize, &(&str, _))| Node::new(*name, (position == 0).then_some(PERIOD));
    let edge = |found: &Dependency| Edge {
        initial: found.initial,
        back_edge: found.kind != DependencyKind::Edge,
        ..Edge::new(position(&found.from), position(&found.to))
    };
    let edges: Vec<Edge> = dependencies.iter().map(edge).collect();
    let channels = vec![Channel::Counter; edges.len()];
    let graph = Graph::new(test, NODES.iter().enumerate().map(node).collect(), edges);
    let spec = Spec::with_channels(graph, channels).expect("it can be");
    let place = Place::new(test);
    let (graph, live) = (Registry::at(place.path()).create(&spec).expect("it can be"), Live::new(replicas));
    graph.start(clock::now());
    thread::scope(|scope| {
        let run = |node: usize| {
            let (graph, live) = (&graph, &live);
            scope.spawn(move || -> Vec<u64> {
                let mut claimed = graph.claim(NODES[node].0).expect("it is free");
                let job = |_| {
                    let job = claimed.wait().expect("it does not end");
                    let made = live.work(node, job.index(), hold);
                    job.complete();
                    made
                };
                (0..frames).map(job).collect()
            })
        };
        let threads: Vec<_> = (0..NODES.len()).map(run).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

/// Whether jobs that wait for `left_out` wait for it by other edges, too: a path of them that starts with no more tokens.
fn is_implied(dependencies: &[Dependency], left_out: &Dependency) -> bool {
    let mut tokens: BTreeMap<&str, u32> = BTreeMap::from([(left_out.from.as_str(), 0)]);
    let mut to_visit = BTreeSet::from([(0, left_out.from.as_str())]);
    while let Some((so_far, node)) = to_visit.pop_first() {
        for next in dependencies.iter().filter(|next| next.from == node && *next != left_out) {
            let sum = so_far + next.initial;
            if tokens.get(next.to.as_str()).is_none_or(|&known| sum < known) {
                tokens.insert(&next.to, sum);
                to_visit.insert((sum, &next.to));
            }
        }
    }
    tokens.get(left_out.to.as_str()).is_some_and(|&tokens| tokens <= left_out.initial)
}

/// Without the feedback edges between nodes of which none reads what the other writes: they are copies of the edges to the
/// output callback, and do no more than imply some of the others.
fn guarding(mut dependencies: Vec<Dependency>) -> Vec<Dependency> {
    let uses = |node: &str| NODES[position(node)].1.iter().map(|&used| parts(used));
    let guards = |reader: &str, writer: &str| {
        uses(writer).any(|(written, _, is_write)| is_write && uses(reader).any(|(read, ..)| read == written))
    };
    dependencies.retain(|edge| edge.kind != DependencyKind::Feedback || guards(&edge.from, &edge.to));
    dependencies
}

/// The feedback edges that no others imply, as positions.
fn needed(dependencies: &[Dependency]) -> Vec<usize> {
    let is_needed = |edge: &Dependency| edge.kind == DependencyKind::Feedback && !is_implied(dependencies, edge);
    (0..dependencies.len()).filter(|&edge| is_needed(&dependencies[edge])).collect()
}

/// Paper 003, section 5.4.1: the feedback graph keeps the users of a replica apart.
#[test]
fn without_any_feedback_edge_a_slow_reader_gets_what_a_later_frame_wrote() {
    for replicas in [1, 2, 3] {
        let frames = HELD_JOB + u64::from(replicas) + 2;
        let (all, of_the_loop) = (guarding(dependencies(replicas)), looped(frames));
        let needed = needed(&all);
        assert_eq!(needed.len(), 9, "with {replicas} replicas: {needed:?}");
        for left_out in needed {
            let (from, to) = (all[left_out].from.clone(), all[left_out].to.clone());
            let mut others = all.clone();
            others.remove(left_out);
            // It ends when the writer has come around, which nothing keeps it from.
            let hold = Hold { reader: position(&from), writer: position(&to), longest: Duration::from_secs(60) };
            let found = executed("feedback-without", &others, replicas, &hold, frames);
            let edge = format!("{replicas} replicas without {from} -> {to}");
            let of_reader = |digests: &Digests| digests[hold.reader][HELD_JOB as usize];
            assert_ne!(of_reader(&found), of_reader(&of_the_loop), "{edge}: the same as the loop");
        }
    }
}

#[test]
fn with_all_feedback_edges_a_slow_reader_gets_what_the_loop_does() {
    for replicas in [1, 2] {
        let frames = HELD_JOB + u64::from(replicas) + 2;
        let all = guarding(dependencies(replicas));
        for edge in needed(&all) {
            let (from, to) = (&all[edge].from, &all[edge].to);
            // The writer waits for the reader: it holds back for as long as it says.
            let hold = Hold { reader: position(from), writer: position(to), longest: Duration::from_millis(20) };
            let found = executed("feedback-all", &all, replicas, &hold, frames);
            assert_eq!(found, looped(frames), "{replicas} replicas, {from} held back");
        }
    }
}

/// The example's nodes use what they do here.
#[test]
fn the_graph_is_that_of_the_stabilizer() {
    let source = include_str!("../../../examples/vision/src/graph.cpp").replace(char::is_whitespace, "");
    let text = |used: &Use| match used {
        In(object) => format!("input(\"{object}\")"),
        Past("frames", 6) => "past(\"frames\",LATENCY)".to_owned(),
        Past(object, ago) => format!("past(\"{object}\",{ago})"),
        Out(object) => format!("output(\"{object}\")"),
    };
    for (name, uses) in NODES {
        let name = match name {
            INPUT_CALLBACK => "read_frame",
            OUTPUT_CALLBACK => "display_stabilized_image",
            name => name,
        };
        let accesses = match name {
            // All matrices that there are, by a loop.
            "smooth_homography" => "smooths,".to_owned(),
            _ => format!("{{{}}},", uses.iter().map(text).collect::<Vec<_>>().join(",")),
        };
        let places = ["Cpu", "Gpu"].map(|place| format!("node(\"{name}\",Place::{place},{accesses}"));
        assert!(places.iter().any(|node| source.contains(node)), "graph.cpp has no {}", places[0]);
    }
    for (object, depth) in OBJECTS {
        let depth = match depth {
            0 => "}".to_owned(),
            6 => ",LATENCY}".to_owned(),
            10 => ",MATRICES-1,".to_owned(),
            depth => format!(",{depth}}}"),
        };
        let after = source.split(&format!("{{\"{object}\",")).nth(1).unwrap_or_default();
        assert!(after.split_once('}').is_some_and(|(line, _)| format!("{line}}}").contains(&depth)), "{object}");
    }
    let sizes = include_str!("../../../examples/vision/src/data.h");
    assert!(sizes.contains("SMOOTHING = 5;") && sizes.contains("LATENCY = SMOOTHING + 1;"), "depths follow from it");
}
