//! Graphs and nodes by name: exact, unique, whole, and sized to the graph.

mod support;

use std::thread;

use laxity_graph::{ClaimError, Registry, RegistryError, Spec, SpecError};
use laxity_model::{Instant, Nanos};
use laxity_sys::clock::now;
use support::{Place, edge, graph, ringed, spec};

fn named(name: &str) -> Spec {
    let mut graph = graph(&["a", "b"], vec![edge(0, 1)]);
    graph.name = name.to_owned();
    Spec::new(graph).expect("a graph that can be")
}

#[test]
fn names_match_exactly_and_not_by_prefix() {
    let place = Place::new("exact");
    let graph = place.create(&spec(&["n10", "n1", "n"], vec![edge(0, 1), edge(1, 2)])).expect("the name is free");
    assert_eq!((graph.node("n1"), graph.node("n10"), graph.node("n")), (Some(1), Some(0), Some(2)));
    assert_eq!((graph.edge("n10", "n1"), graph.edge("n1", "n10")), (Some(0), None));
    assert!(matches!(graph.claim("n1x"), Err(ClaimError::NoSuchNode { .. })));
    for other in ["", "G", "gg", "g "] {
        assert!(place.attach(other).is_err(), "{other:?} is not g");
    }
}

#[test]
fn two_nodes_cannot_have_one_name() {
    let error = Spec::new(graph(&["a", "b", "a"], vec![edge(0, 1)])).expect_err("a is there twice");
    assert_eq!(error, SpecError::Duplicate { name: "a".to_owned() });
}

#[test]
fn long_names_are_kept_whole_or_refused() {
    let place = Place::new("long");
    let long = ["x".repeat(200), "x".repeat(100)];
    let graphs = long.clone().map(|name| place.create(&named(&name)).expect("the name is free"));
    assert_eq!(place.names().expect("readable"), [long[1].clone(), long[0].clone()]);
    drop(graphs);
    for name in [&"x".repeat(201), "", "a/b", "../g", "a\0b"] {
        assert!(matches!(place.create(&named(name)), Err(RegistryError::Name { .. })), "{name:?}");
    }
    let node = "y".repeat(500);
    let graph = place.create(&spec(&[&node, &node[1..]], vec![edge(0, 1)])).expect("the name is free");
    assert_eq!(graph.claim(&node[1..]).expect("it is free").position(), 1);
    assert!(matches!(Spec::new(support::graph(&[&"z".repeat(1025)], vec![])), Err(SpecError::NodeName { .. })));
}

#[test]
fn a_name_in_use_is_not_given_again_but_one_left_by_all_is_free() {
    let place = Place::new("use");
    let graph = place.create(&named("g")).expect("the name is free");
    assert!(matches!(place.create(&named("g")), Err(RegistryError::Exists { .. })));
    let other = place.attach("g").expect("it is there");
    drop(graph);
    assert_eq!(place.names().expect("readable"), ["g"], "one is left");
    drop(other);
    assert!(place.files().is_empty(), "the last one out takes the name with it");
    assert!(matches!(place.attach("g"), Err(RegistryError::NotFound { .. })));
    drop(place.create(&named("g")).expect("the name is free again"));
}

#[test]
fn the_first_process_creates_and_all_get_the_same_graph() {
    let place = Place::new("first");
    for _ in 0..20 {
        let graphs: Vec<_> = thread::scope(|scope| {
            let start = || place.create_or_attach(&named("g")).expect("created or attached to");
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(start)).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        graphs[3].terminate(0);
        assert!(graphs.iter().all(|graph| graph.status(0).has_terminated), "all look at the same memory");
        drop(graphs);
        assert!(place.files().is_empty());
    }
    let _graph = place.create(&named("g")).expect("the name is free");
    let other = spec(&["a", "c"], vec![edge(0, 1)]);
    assert!(matches!(place.create_or_attach(&other), Err(RegistryError::Different { .. })));
}

#[test]
fn one_can_attach_before_the_graph_is_created() {
    let place = Place::new("early");
    assert!(matches!(place.attach_until("g", Instant::ZERO), Err(RegistryError::NotFound { .. })));
    thread::scope(|scope| {
        let early = scope.spawn(|| place.attach_until("g", Instant::NEVER).expect("it comes"));
        let _other = place.create(&named("other")).expect("the name is free");
        thread::sleep(std::time::Duration::from_millis(2));
        let _graph = place.create(&named("g")).expect("the name is free");
        assert_eq!(early.join().expect("no panic").spec(), &named("g"));
    });
    assert!(place.attach_until("g", now().saturating_add(Nanos::from_millis(1))).is_err());
}

#[test]
fn any_thread_may_create_and_any_other_attach() {
    let place = Place::new("threads");
    let graph = thread::scope(|scope| scope.spawn(|| place.create(&named("g"))).join().expect("no panic"));
    let attached = thread::scope(|scope| scope.spawn(|| place.attach("g")).join().expect("no panic"));
    assert_eq!(attached.expect("it is there").spec(), graph.expect("created").spec());
}

/// The original took 772 MB whatever the graph, which a container's /dev/shm of 64 MB does not have.
#[test]
fn a_graph_of_twelve_nodes_takes_less_than_a_megabyte() {
    let names: Vec<String> = (0..12).map(|node| format!("node{node}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let edges = (0..11).map(|node| edge(node, node + 1)).collect();
    let place = Place::new("small");
    let graph = place.create(&ringed(&names, edges, 4096, 16)).expect("the name is free");
    assert!(graph.memory() < 1_000_000, "{} bytes", graph.memory());
    drop(graph);
    let plain = spec(&["a", "b"], vec![edge(0, 1)]).with_recorder(0).expect("off");
    let graph = place.create(&plain).expect("the name is free");
    assert!(graph.memory() < 16_384, "{} bytes", graph.memory());
}

/// Linux waits on 128 words at once: those of all others, and one more.
#[test]
fn as_many_processes_attach_as_can_watch_each_other() {
    let place = Place::new("many");
    let first = place.create(&named("g")).expect("the name is free");
    let mut others: Vec<_> = (1..127).map(|_| place.attach("g").expect("there is room")).collect();
    assert!(matches!(place.attach("g"), Err(RegistryError::Full { .. })));
    others.pop();
    others.push(place.attach("g").expect("one has left"));
    drop((first, others));
    assert!(place.files().is_empty());
}

/// The original crashed when a node with 32 edges was destroyed.
#[test]
fn a_node_may_have_a_thousand_edges() {
    let names: Vec<String> = (0..1001).map(|node| format!("node{node}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let place = Place::new("edges");
    let graph = place.create(&spec(&names, (0..1000).map(|node| edge(node, 1000)).collect())).expect("it is sound");
    let mut sink = graph.claim("node1000").expect("it is free");
    for name in &names[..1000] {
        assert!(sink.try_wait().is_err());
        graph.claim(name).expect("it is free").wait().expect("a source").complete();
    }
    sink.wait().expect("all tokens are there").complete();
}

#[test]
fn files_of_others_are_neither_used_nor_removed() {
    let place = Place::new("foreign");
    for (file, contents) in [("laxity-graph.short", &b"x"[..]), ("laxity-graph.zero", &[0; 9000]), ("other", b"")] {
        std::fs::write(place.directory().join(file), contents).expect("writable");
    }
    assert!(matches!(place.attach("short"), Err(RegistryError::Segment(_))));
    assert!(matches!(place.create(&named("zero")), Err(RegistryError::Segment(_))));
    assert!(place.gc().expect("readable").is_empty());
    assert_eq!(place.files().len(), 3);
    assert!(Registry::at("/nonexistent").names().is_err());
}
