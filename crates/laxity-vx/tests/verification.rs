//! What verification derives, and what it refuses.

mod support;

use laxity_vx::{
    Array, Bytes, Context, Dependency, DependencyKind, Graph, Image, Matrix, Parameter, PixelFormat, Status, Value,
    VerifyError,
};

fn graph() -> Graph {
    Context::new().graph("verified")
}

fn refused(graph: Graph) -> (Status, String) {
    let error = graph.verify().expect_err("it cannot be");
    (error.status(), error.to_string())
}

/// Paper 003, Example 5.1: A is written, changed and read; N is 3; each node waits for all behind it that use A.
#[test]
fn the_example_of_figure_5_6() {
    let mut graph = graph();
    let a = graph.object("A", Bytes(1));
    graph.node("V1", [Parameter::output(a)], |_| Ok(()));
    graph.node("V2", [Parameter::inout(a)], |_| Ok(()));
    graph.node("V3", [Parameter::input(a)], |_| Ok(()));
    let verified = graph.verify().expect("it is the paper's");
    assert_eq!(verified.depth(), 3);
    let found = verified.dependencies(verified.depth()).expect("there are replicas");
    let of = |kind| {
        let chosen = found.iter().filter(|dependency| dependency.kind == kind);
        let mut ends: Vec<_> =
            chosen.map(|Dependency { from, to, initial, .. }| (from.as_str(), to.as_str(), *initial)).collect();
        ends.sort_unstable();
        ends
    };
    let edges = [("V1", "V2", 0), ("V2", "V3", 0), ("V3", "output_callback", 0), ("input_callback", "V1", 0)];
    assert_eq!(of(DependencyKind::Edge), edges);
    assert_eq!(of(DependencyKind::BackEdge), []);
    let is_callback = |name: &str| name.ends_with("_callback");
    let mut feedback = of(DependencyKind::Feedback);
    feedback.retain(|(from, to, _)| !is_callback(from) && !is_callback(to));
    assert_eq!(feedback, [("V2", "V1", 3), ("V3", "V1", 3), ("V3", "V2", 3)]);
}

/// Paper 003, section 5.4.1, "Support for Back-Edges": the reader is in front of the writer.
#[test]
fn a_delay_that_is_read_upstream_makes_a_back_edge_with_the_tokens_of_its_age() {
    let mut graph = graph();
    let image = graph.object("image", Bytes(1));
    let points = graph.delay("points", Bytes(1), 3);
    graph.node("flow", [Parameter::input(points.ago(2)), Parameter::output(image)], |_| Ok(()));
    graph.node("tracker", [Parameter::input(image), Parameter::output(points)], |_| Ok(()));
    let verified = graph.verify().expect("it can be");
    let found = verified.dependencies(2).expect("there are replicas");
    let back: Vec<_> = found.iter().filter(|dependency| dependency.kind == DependencyKind::BackEdge).collect();
    assert_eq!(back.len(), 1);
    assert_eq!((back[0].from.as_str(), back[0].to.as_str(), back[0].initial), ("tracker", "flow", 2));
    assert!(verified.dot().contains("style=dashed"), "back-edges can be told in a drawing");
    assert!(!verified.dot().contains(" ms"), "no period is chosen yet: {}", verified.dot());
    assert_eq!(verified.describe_objects(), "image: 1 bytes\npoints: a delay of 3 slots, each 1 bytes\n");
}

#[test]
fn sources_are_children_of_the_input_callback_and_sinks_parents_of_the_output_callback() {
    let mut graph = graph();
    let [raw, left, right] = ["raw", "left", "right"].map(|name| graph.object(name, Bytes(1)));
    graph.input([Parameter::output(raw)], |_| Ok(laxity_vx::Action::Continue));
    graph.node("uses_raw", [Parameter::input(raw), Parameter::output(left)], |_| Ok(()));
    graph.node("source", [Parameter::output(right)], |_| Ok(()));
    graph.node("sink", [Parameter::input(left), Parameter::input(right)], |_| Ok(()));
    let verified = graph.verify().expect("it can be");
    assert_eq!(verified.depth(), 3, "the input callback uses an object and counts, the other one does not");
    let found = verified.dependencies(1).expect("there are replicas");
    let mut edges: Vec<_> = found
        .iter()
        .filter(|dependency| dependency.kind == DependencyKind::Edge)
        .map(|dependency| (dependency.from.as_str(), dependency.to.as_str()))
        .collect();
    edges.sort_unstable();
    let expected = [
        ("input_callback", "source"),
        ("input_callback", "uses_raw"),
        ("sink", "output_callback"),
        ("source", "sink"),
        ("uses_raw", "sink"),
    ];
    assert_eq!(edges, expected);
}

#[test]
fn what_no_loop_could_do_is_refused_as_openvx_would() {
    let with = |parameters: Vec<(&str, Vec<Parameter>)>, mut graph: Graph| {
        for (node, parameters) in parameters {
            graph.node(node, parameters, |_| Ok(()));
        }
        refused(graph)
    };
    let object = || {
        let mut graph = graph();
        let object = graph.object("a", Bytes(1));
        (graph, object)
    };

    assert_eq!(refused(graph()), (Status::InvalidGraph, "graph verified: it has no node; add one".to_owned()));

    let (graph, a) = object();
    let two = vec![("one", vec![Parameter::output(a)]), ("other", vec![Parameter::output(a)])];
    let (status, text) = with(two, graph);
    assert_eq!(status.name(), "VX_ERROR_MULTIPLE_WRITERS");
    assert!(text.contains("nodes one and other both write it"), "{text}");

    let (graph, a) = object();
    assert_eq!(with(vec![("reader", vec![Parameter::input(a)])], graph).0, Status::NotSufficient);

    let (graph, a) = object();
    let itself = vec![("n", vec![Parameter::input(a), Parameter::output(a)])];
    assert_eq!(with(itself, graph).0, Status::InvalidParameters);

    let (mut graph, a) = object();
    let b = graph.object("b", Bytes(1));
    let cycle = vec![
        ("one", vec![Parameter::input(a), Parameter::output(b)]),
        ("other", vec![Parameter::input(b), Parameter::output(a)]),
    ];
    let (status, text) = with(cycle, graph);
    assert_eq!(status, Status::InvalidGraph);
    assert!(text.contains("(object a)") && text.contains("(object b)") && text.contains("delay"), "{text}");

    let (_, foreign) = object();
    let (graph, a) = object();
    let (status, text) = with(vec![("n", vec![Parameter::output(a), Parameter::input(foreign)])], graph);
    assert_eq!(status, Status::InvalidScope);
    assert!(text.contains("parameter 1"), "{text}");

    let (graph, a) = object();
    assert_eq!(with(vec![("n", vec![Parameter::output(a)]), ("n", vec![])], graph).0, Status::InvalidNode);

    let (graph, _) = object();
    assert_eq!(with(vec![("n", vec![])], graph).0, Status::InvalidReference, "an object that no node uses");
}

#[test]
fn slots_that_are_not_there_are_refused_with_the_number_that_would_do() {
    let mut graph = graph();
    let delay = graph.delay("frames", Bytes(1), 2);
    graph.node("n", [Parameter::output(delay), Parameter::input(delay.ago(2))], |_| Ok(()));
    let (status, text) = refused(graph);
    assert_eq!(status, Status::InvalidValue);
    assert!(text.contains("2 jobs ago") && text.contains("its 2 slots") && text.contains("one of 3 slots"), "{text}");
}

#[test]
fn kernels_get_what_they_expect() {
    let sizes = |width, pixel| {
        let mut graph = graph();
        let image = graph.object("image", Image::new(width, 480, pixel));
        let expected = Image::new(640, 480, PixelFormat::U8);
        graph.node("filter", [Parameter::output(image).expecting(expected)], |_| Ok(()));
        graph.verify()
    };
    assert!(sizes(640, PixelFormat::U8).is_ok());
    let status = |result: Result<_, VerifyError>| result.map(|_| ()).map_err(|error| error.status());
    assert_eq!(status(sizes(320, PixelFormat::U8)), Err(Status::InvalidDimension));
    assert_eq!(status(sizes(640, PixelFormat::Rgb)), Err(Status::InvalidFormat));
    let text = sizes(640, PixelFormat::Rgb).expect_err("RGB").to_string();
    let expected = "node filter: takes an image of 640 x 480 pixels, U8, but object image is an image of 640 x 480 \
                    pixels, RGB; convert it, or give it another";
    assert_eq!(text, expected);
}

#[test]
fn objects_of_no_size_are_refused() {
    let refused = |add: fn(&mut Graph)| {
        let mut graph = graph();
        add(&mut graph);
        graph.node("n", [], |_| Ok(()));
        refused(graph).0
    };
    let objects: [fn(&mut Graph); 4] = [
        |graph| _ = graph.object("o", Bytes(0)),
        |graph| _ = graph.object("o", Array::<u8>::new(0)),
        |graph| _ = graph.object("o", Matrix::<f64>::new(usize::MAX, 3)),
        |graph| _ = graph.object("o", Image::new(3, 3, PixelFormat::Nv12)),
    ];
    for add in objects {
        assert_eq!(refused(add), Status::InvalidDimension);
    }
    assert_eq!(refused(|graph| _ = graph.delay("o", Value::<u8>::new(), 0)), Status::InvalidValue);
}

#[test]
fn no_replica_is_none() {
    let mut graph = graph();
    let a = graph.object("a", Bytes(1));
    graph.node("n", [Parameter::output(a)], |_| Ok(()));
    let verified = graph.verify().expect("it can be");
    assert!(verified.dependencies(0).is_err());
}
