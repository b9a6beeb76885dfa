//! What users keep with nodes and edges: whole, for all processes, while any of them writes. That it stays whole when a writer is killed
//! is in `deaths`.

mod support;

use std::thread;

use laxity_graph::{Pipeline, Spec, SpecError, UserDataError};
use laxity_model::Nanos;
use support::{Place, edge, spec};

fn with_data(node: u32, edge_bytes: u32) -> Spec {
    let spec = spec(&["a", "b"], vec![edge(0, 1)]).with_node_data("b", node);
    spec.and_then(|spec| spec.with_edge_data(0, edge_bytes)).expect("they are there")
}

#[test]
fn user_data_is_zero_at_first_and_then_what_anyone_wrote() {
    let place = Place::new("data");
    let graph = place.create(&with_data(13, 3)).expect("the name is free");
    let other = place.attach("g").expect("it is there");
    assert_eq!((other.spec().node_data(), other.spec().edge_data()), (&[0, 13][..], &[3][..]));
    let (node, edge) = (graph.node_data(1), graph.edge_data(0));
    assert_eq!((node.read(), node.version()), (vec![0; 13], 0));
    for round in 1..=3 {
        other.node_data(1).write(&[round; 13]).expect("as many bytes");
        other.edge_data(0).write(&[round + 100; 3]).expect("as many bytes");
        let mut seen = [0; 13];
        assert_eq!(node.read_into(&mut seen).expect("as many bytes"), u64::from(round));
        assert_eq!((seen, edge.read()), ([round; 13], vec![round + 100; 3]));
    }
}

#[test]
fn a_node_without_user_data_takes_no_memory_for_it_and_has_none() {
    let place = Place::new("none");
    let graph = place.create(&with_data(0, 0)).expect("the name is free");
    let data = graph.node_data(0);
    assert!(data.is_empty() && data.read().is_empty() && data.version() == 0);
    data.write(&[]).expect("as many bytes");
    let without = graph.memory();
    drop(graph);
    assert_eq!(place.create(&with_data(100, 0)).expect("the name is free").memory() - without, 256, "two copies");
}

#[test]
fn another_length_is_refused_with_both_numbers() {
    let place = Place::new("length");
    let graph = place.create(&with_data(4, 2)).expect("the name is free");
    let said = |result: Result<(), UserDataError>| result.expect_err("another length").to_string();
    let (node, edge) = (graph.node_data(1), graph.edge_data(0));
    assert!(said(node.write(b"12345")).starts_with("node b: 5 bytes for its 4 bytes of user data"));
    assert!(said(edge.read_into(&mut [0]).map(|_| ())).starts_with("edge a -> b: 1 bytes for its 2 bytes"));
    assert_eq!((node.read(), node.version()), (vec![0; 4], 0), "as it was");
}

#[test]
fn user_data_belongs_to_nodes_and_edges_that_are_there() {
    let spec = || spec(&["a", "b"], vec![edge(0, 1)]);
    assert_eq!(spec().with_node_data("c", 1), Err(SpecError::NoNode { name: "c".to_owned() }));
    assert_eq!(spec().with_edge_data(1, 1), Err(SpecError::NoEdge { edge: 1, edges: 1 }));
}

#[test]
fn graphs_of_data_objects_have_user_data_as_well() {
    let place = Place::new("objects");
    let pipeline = Pipeline::new("g", Nanos::from_millis(1))
        .object("image", 8)
        .node("a", [laxity_graph::Parameter::output("image")])
        .node("b", [laxity_graph::Parameter::input("image")]);
    let spec = pipeline.build(2).expect("it can be").with_node_data("a", 8).expect("it is there");
    let graph = place.create(&spec).expect("the name is free");
    let other = place.attach("g").expect("it is there");
    assert_eq!(other.spec(), &spec);
    graph.node_data(0).write(b"exposure").expect("as many bytes");
    assert_eq!(other.node_data(0).read(), b"exposure");
}

/// Each value is one byte, so many times that writers overtake the reader. Two writers, of two attachments, and a reader.
#[test]
fn a_reader_never_sees_parts_of_two_values() {
    const LENGTH: usize = 64 << 10;
    const ROUNDS: u64 = 1000;
    let place = Place::new("torn");
    let graph = place.create(&with_data(LENGTH as u32, 0)).expect("the name is free");
    let graphs = [place.attach("g").expect("there"), place.attach("g").expect("there")];
    thread::scope(|scope| {
        let writers = graphs.each_ref().map(|graph| {
            scope.spawn(|| {
                for round in 0..ROUNDS {
                    graph.node_data(1).write(&vec![round as u8; LENGTH]).expect("as many bytes");
                }
            })
        });
        let (mut bytes, mut last) = (vec![0; LENGTH], 0);
        while !writers.iter().all(|writer| writer.is_finished()) {
            let version = graph.node_data(1).read_into(&mut bytes).expect("as many bytes");
            let end = bytes.iter().position(|&byte| byte != bytes[0]);
            assert_eq!(end, None, "of two values: they meet at this byte");
            assert!(version >= last, "an older value than before");
            last = version;
        }
    });
    assert_eq!(graph.node_data(1).version(), 2 * ROUNDS);
}

#[test]
fn when_several_threads_change_the_same_value_all_but_one_try_again() {
    let place = Place::new("if");
    let graph = place.create(&with_data(8, 0)).expect("the name is free");
    let add = || {
        for _ in 0..500 {
            let data = graph.node_data(1);
            loop {
                let mut value = [0; 8];
                let version = data.read_into(&mut value).expect("as many bytes");
                let next = u64::from_le_bytes(value) + 1;
                if data.write_if(version, &next.to_le_bytes()).expect("as many bytes") {
                    break;
                }
            }
        }
    };
    thread::scope(|scope| (0..3).for_each(|_| drop(scope.spawn(add))));
    assert_eq!(graph.node_data(1).read(), 1500_u64.to_le_bytes());
}
