//! `laxity graph`: live graphs, seen and ended from outside.

use std::path::Path;

use laxity_graph::{Channel, Graph, Registry, Spec};
use laxity_model::{self as model, Edge, Nanos, Node};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::run;

/// A folder in memory that goes with the test, whatever that leaves in it.
pub fn memory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").expect("shared memory is writable")
}

/// The graphs that have a name there.
pub fn names(folder: &Path) -> Vec<String> {
    Registry::at(folder).names().expect("the folder is readable")
}

/// camera (33 ms) -- 1 image --> detector -- 2 at a time --> planner, created by this process.
pub fn create(folder: &Path) -> Graph {
    create_with(folder, |spec| spec)
}

/// The same, with `more` in its description.
fn create_with(folder: &Path, more: impl FnOnce(Spec) -> Spec) -> Graph {
    let edge = |producer, consumer, consume| Edge { consume, threshold: consume, ..Edge::new(producer, consumer) };
    let nodes = vec![
        Node::new("camera", Some(Nanos::from_millis(33))),
        Node::new("detector", None),
        Node::new("planner", None),
    ];
    let graph = model::Graph::new("car", nodes, vec![edge(0, 1, 1), edge(1, 2, 2)]);
    let channels = vec![Channel::Ring { message: 640, capacity: 4 }, Channel::Counter];
    Registry::at(folder)
        .create(&more(Spec::with_channels(graph, channels).expect("a graph that can be")))
        .expect("the name is free")
}

/// `laxity graph --folder FOLDER` with these words.
pub fn graph(folder: &Path, words: &[&str]) -> (i32, String, String) {
    let folder = folder.to_str().expect("UTF-8");
    run(["graph", "--folder", folder].iter().chain(words))
}

/// What they print, which succeeds and is JSON.
pub fn json(folder: &Path, words: &[&str]) -> Value {
    let (code, out, err) = graph(folder, words);
    assert_eq!((code, err.as_str()), (0, ""), "{words:?}");
    serde_json::from_str(&out).expect("JSON")
}

#[test]
fn the_list_tells_the_nodes_of_each_process_and_what_they_did() {
    let folder = memory();
    let running = create(folder.path());
    let mut camera = running.claim("camera").expect("it is free");
    for _ in 0..3 {
        camera.wait().expect("there is room").complete();
    }
    let list = json(folder.path(), &["list", "--json"]);
    let row = &list["graphs"][0];
    assert_eq!((row["name"].as_str(), row["in_use"].as_bool()), (Some("car"), Some(true)));
    assert_eq!(
        (row["nodes"].as_u64(), row["claimed"].as_u64(), row["completed"].as_u64()),
        (Some(3), Some(1), Some(3))
    );
    assert_eq!(row["pids"], Value::from(vec![std::process::id()]));
    let (code, out, _) = graph(folder.path(), &["list"]);
    let line = out.lines().last().expect("a row");
    assert!(code == 0 && line.starts_with("car ") && line.ends_with(&std::process::id().to_string()), "{out}");
    assert_eq!(names(folder.path()), ["car"], "to look is not to end");
}

#[test]
fn no_graph_is_no_error() {
    let folder = memory();
    let (code, out, err) = graph(folder.path(), &["list"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("no live graphs in /dev/shm/"), "{out}");
    assert_eq!(graph(folder.path(), &["gc"]), (0, String::new(), String::new()));
}

#[test]
fn a_graph_is_shown_as_text_json_and_drawing() {
    let folder = memory();
    let running = create(folder.path());
    let mut camera = running.claim("camera").expect("it is free");
    camera.wait().expect("there is room").complete();
    let (code, out, err) = graph(folder.path(), &["show", "car"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("car: 3 nodes, 2 edges, "), "{out}");
    let words = |start: &str| -> Vec<&str> {
        let line = out.lines().find(|line| line.starts_with(start)).expect(start);
        line.split_whitespace().collect()
    };
    let pid = std::process::id().to_string();
    assert_eq!(words("camera  "), ["camera", "1", "1", &pid, "claimed"]);
    assert_eq!(words("planner"), ["planner", "0", "0", "-", "free"]);
    let ring = ["camera", "->", "detector", "1", "1", "1", "1", "4", "messages", "of", "640", "B"];
    assert_eq!(words("camera ->"), ring);
    assert_eq!(words("detector ->"), ["detector", "->", "planner", "0", "1", "2", "2", "events"]);

    let shown = json(folder.path(), &["show", "car", "--json"]);
    assert_eq!(shown["nodes"][0]["period_ns"], 33_000_000);
    assert_eq!((&shown["edges"][0]["tokens"], &shown["edges"][0]["capacity"]), (&1.into(), &4.into()));
    assert_eq!((&shown["edges"][1]["threshold"], &shown["edges"][1]["capacity"]), (&2.into(), &Value::Null));

    let (_, dot, _) = graph(folder.path(), &["show", "car", "--dot"]);
    assert!(dot.starts_with("digraph \"car\" {") && dot.contains("n1 -> n2 [label=\"1:2\"]"), "{dot}");
}

#[test]
fn user_data_is_shown_with_its_size_and_rings_that_exchange_buffers_are_marked() {
    let folder = memory();
    let _running = create_with(folder.path(), |spec| {
        let spec = spec.with_node_data("camera", 48).and_then(|spec| spec.with_edge_data(1, 7));
        spec.and_then(|spec| spec.with_swapping(&[0])).expect("they are there")
    });
    let (_, out, _) = graph(folder.path(), &["show", "car"]);
    let ends = |start: &str, end: &str| {
        let line = out.lines().find(|line| line.starts_with(start)).expect(start);
        assert!(line.trim_end().ends_with(end), "{out}");
    };
    ends("camera  ", " 48 B");
    ends("detector  ", " -");
    ends("camera -> detector", "640 B, swapped  -");
    ends("detector -> planner", " 7 B");
    let shown = json(folder.path(), &["show", "car", "--json"]);
    assert_eq!((&shown["nodes"][0]["user_data_bytes"], &shown["edges"][1]["user_data_bytes"]), (&48.into(), &7.into()));
    assert_eq!((&shown["edges"][0]["swapping"], &shown["edges"][1]["swapping"]), (&true.into(), &false.into()));
}

#[test]
fn an_unknown_name_is_answered_with_the_one_that_was_meant() {
    let folder = memory();
    let missing = "error: graph cat: does not exist; there is no graph\n";
    assert_eq!(graph(folder.path(), &["show", "cat"]), (2, String::new(), missing.to_owned()));
    let _running = create(folder.path());
    let near = "error: graph cat: does not exist; did you mean `car`?\n";
    assert_eq!(graph(folder.path(), &["terminate", "cat"]), (2, String::new(), near.to_owned()));
    let far = "error: graph bus: does not exist; write one of car\n";
    assert_eq!(graph(folder.path(), &["show", "bus"]), (2, String::new(), far.to_owned()));
    let node = "error: graph car: no node is called detectr; did you mean `detector`?\n";
    let words = ["terminate", "car", "--node", "camera", "--node", "detectr"];
    assert_eq!(graph(folder.path(), &words), (2, String::new(), node.to_owned()));
}

#[test]
fn terminating_ends_the_sources_and_what_they_produced_is_still_used() {
    let folder = memory();
    let running = create(folder.path());
    let [mut camera, mut detector] = ["camera", "detector"].map(|name| running.claim(name).expect("it is free"));
    camera.wait().expect("there is room").complete();
    assert_eq!(graph(folder.path(), &["terminate", "car"]).1, "car: ended 1 node of 3\n");
    assert!(camera.wait().is_err(), "it was ended");
    detector.wait().expect("an image is left").complete();
    assert!(detector.wait().is_err(), "nothing is left");
    let ended = json(folder.path(), &["terminate", "car", "--node", "planner", "--json"]);
    assert_eq!((&ended["ended"], &ended["nodes"]), (&Value::from(vec!["planner"]), &3.into()));
    assert_eq!(graph(folder.path(), &["terminate", "car", "--now"]).1, "car: ended 3 nodes of 3\n");
    assert!((0..3).all(|node| running.status(node).has_terminated));
}

#[test]
fn one_node_can_be_ended() {
    let folder = memory();
    let running = create(folder.path());
    let words = ["terminate", "car", "--node", "detector"];
    assert_eq!(graph(folder.path(), &words), (0, "car: ended 1 node of 3\n".to_owned(), String::new()));
    assert_eq!([0, 1, 2].map(|node| running.status(node).has_terminated), [false, true, false]);
}

#[test]
fn what_is_no_graph_is_warned_about_and_left_alone() {
    let folder = memory();
    let path = folder.path().join("laxity-graph.odd");
    std::fs::write(&path, "no graph").expect("writable");
    let (code, _, err) = graph(folder.path(), &["list"]);
    assert!(code == 0 && err.starts_with("warning: "), "{err}");
    assert_eq!(graph(folder.path(), &["gc"]).0, 0);
    let (code, _, err) = graph(folder.path(), &["show", "odd"]);
    assert!(code == 1 && err.starts_with("error: "), "{err}");
    assert!(path.exists());
}

/// A graph whose names are what XML would misunderstand.
#[test]
fn a_picture_has_a_box_for_each_node_and_a_line_for_each_edge() {
    let folder = memory();
    let edge = |producer, consumer, back_edge| Edge {
        initial: u32::from(back_edge),
        back_edge,
        ..Edge::new(producer, consumer)
    };
    let nodes = vec![Node::new("a<b", Some(Nanos::from_millis(5))), Node::new("c&\u{1b}d", None), Node::new("e", None)];
    let edges = vec![edge(0, 1, false), edge(1, 2, false), edge(0, 2, false), edge(2, 0, true)];
    let spec = Spec::new(model::Graph::new("\"g\"", nodes, edges)).expect("a graph that can be");
    let _running = Registry::at(folder.path()).create(&spec).expect("the name is free");
    let (code, svg, err) = graph(folder.path(), &["show", "\"g\"", "--svg"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
    assert_eq!(svg.matches("rx=\"6\"").count(), 3, "boxes");
    assert_eq!(svg.matches("url(#arrow)").count(), 4, "lines");
    assert_eq!(svg.matches("stroke-dasharray=\"5,4\"").count(), 1, "one leads back");
    assert!(svg.contains("a&lt;b") && svg.contains("<title>c&amp;d</title>") && !svg.contains("a<b"), "{svg}");
    assert!(svg.contains("1 token") && !svg.contains('\u{1b}'), "{svg}");
}
