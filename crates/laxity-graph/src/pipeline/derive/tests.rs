//! Which edges follow, and what is refused.

use laxity_model::{Nanos, Replicas};
use laxity_policy::graph::EdgeKind;

use crate::pipeline::{Link, Parameter, Pipeline, PipelineError};
use crate::spec::{Channel, Spec, SpecError};

fn pipeline() -> Pipeline {
    Pipeline::new("g", Nanos::from_millis(10))
}

fn input(object: &str) -> Parameter {
    Parameter::input(object)
}

fn past(object: &str, ago: u32) -> Parameter {
    Parameter::past(object, ago)
}

fn output(object: &str) -> Parameter {
    Parameter::output(object)
}

fn inout(object: &str) -> Parameter {
    Parameter::inout(object)
}

/// The edges of a kind, as `"from -> to"` with the tokens at the start if there are some.
fn edges(spec: &Spec, kind: EdgeKind) -> Vec<String> {
    let name = |node: usize| spec.graph().nodes[node].name.as_str();
    let edges = spec.plan().edges().iter().filter(|edge| edge.kind == kind);
    let text = |from, to, tokens: u32| match tokens {
        0 => format!("{from} -> {to}"),
        _ => format!("{from} -> {to} +{tokens}"),
    };
    edges.map(|edge| text(name(edge.producer), name(edge.consumer), edge.initial)).collect()
}

fn tokens(pipeline: &Pipeline) -> Vec<String> {
    edges(&pipeline.build(1).expect("it can be"), EdgeKind::Token)
}

/// Paper 003, Example 5.1 and Fig. 5.6.
#[test]
fn an_object_that_is_written_changed_and_read_makes_a_chain() {
    let chain = pipeline().object("A", 8).node("1", [output("A")]).node("2", [inout("A")]).node("3", [input("A")]);
    let spec = chain.build(3).expect("it can be");
    assert_eq!(edges(&spec, EdgeKind::Token), ["1 -> 2", "2 -> 3"]);
    assert_eq!(edges(&spec, EdgeKind::Feedback), ["2 -> 1 +3", "3 -> 2 +3", "3 -> 1 +3"]);
    assert_eq!((chain.depth(), spec.graph().replicas), (Ok(3), Replicas::Count(3)));
}

#[test]
fn readers_run_beside_each_other_and_a_node_that_changes_the_object_waits_for_them() {
    let diamond = pipeline()
        .object("A", 8)
        .node("write", [output("A")])
        .node("left", [input("A")])
        .node("right", [input("A")])
        .node("change", [inout("A")])
        .node("read", [input("A")]);
    let expected = ["write -> left", "write -> right", "left -> change", "right -> change", "change -> read"];
    assert_eq!(tokens(&diamond), expected);
}

/// The node that writes an object goes first, wherever it is declared.
#[test]
fn only_nodes_that_change_an_object_need_an_order_of_declaration() {
    let backwards =
        pipeline().object("A", 8).object("B", 8).node("c", [input("B")]).node("b", [input("A"), output("B")]);
    assert_eq!(tokens(&backwards.node("a", [output("A")])), ["a -> b", "b -> c"]);
}

#[test]
fn two_objects_between_two_nodes_make_one_edge_and_declared_edges_come_first_and_stay() {
    let ring = Channel::Ring { message: 4, capacity: 1 };
    let two = pipeline().object("A", 8).object("B", 8).node("a", [output("A"), output("B")]);
    let two = two.node("b", [input("A"), input("B")]).edge("a", "b", Channel::Counter).edge("a", "b", ring);
    assert_eq!(tokens(&two), ["a -> b", "a -> b"]);
    let spec = two.build(2).expect("it can be");
    assert_eq!(spec.channels(), [Channel::Counter, ring]);
    assert_eq!(edges(&spec, EdgeKind::Feedback), ["b -> a +2"]);
}

/// A delay of 3 jobs that its writer, a node before it, and one after it read, 2 replicas.
#[test]
fn a_delay_starts_with_the_tokens_of_what_is_read_last_and_has_a_back_edge_only_against_the_flow() {
    let delayed = pipeline()
        .object("A", 8)
        .delay("D", 8, 3)
        .node("before", [past("D", 3), past("D", 2), output("A")])
        .node("writer", [input("A"), past("D", 1), output("D")])
        .node("middle", [input("D")])
        .node("after", [input("A"), past("D", 1)])
        .edge("middle", "after", Channel::Counter);
    let spec = delayed.build(2).expect("it can be");
    assert_eq!(edges(&spec, EdgeKind::Back), ["writer -> before +2"]);
    let forward = ["middle -> after", "before -> writer", "before -> after", "writer -> middle", "writer -> after +1"];
    assert_eq!(edges(&spec, EdgeKind::Token), forward);
    let feedback = edges(&spec, EdgeKind::Feedback);
    assert!(feedback.contains(&"after -> writer +2".to_owned()), "{feedback:?}");
    assert!(feedback.contains(&"before -> writer +2".to_owned()), "{feedback:?}");
    assert_eq!(spec.objects()[1].copies(2), 5);
    assert_eq!(spec.graph().objects[1].accessors, [0, 1, 2, 3], "in an order of the edges");
    let periods: Vec<bool> = spec.graph().nodes.iter().map(|node| node.period.is_some()).collect();
    assert_eq!(periods, [true, false, false, false], "only the first is released by time");
}

fn refused(pipeline: &Pipeline, error: &PipelineError, words: &[&str]) {
    assert_eq!(pipeline.build(2).as_ref(), Err(error));
    for word in words {
        assert!(error.to_string().contains(word), "{error} does not say {word}");
    }
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let name = str::to_owned;
    let one = || pipeline().object("A", 8).node("a", [output("A")]);
    let (node, object) = (name("b"), name("A"));
    let unknown = PipelineError::UnknownObject { node: node.clone(), object: name("B") };
    refused(&one().node("b", [input("B")]), &unknown, &["node b", "object B", "declare it"]);
    let stranger = PipelineError::UnknownNode { from: name("a"), to: name("z"), node: name("z") };
    refused(&one().edge("a", "z", Channel::Counter), &stranger, &["edge a -> z", "no node z"]);
    let writers = PipelineError::TwoWriters { object: object.clone(), nodes: (name("a"), name("b")) };
    refused(&one().node("b", [output("A")]), &writers, &["object A", "nodes a and b", "inout"]);
    let missing = PipelineError::NoWriter { node: name("b"), object: name("B") };
    refused(&one().object("B", 8).node("b", [inout("B")]), &missing, &["node b", "object B", "output"]);
    refused(&one().delay("B", 8, 1).node("b", [past("B", 1)]), &missing, &["node b", "object B"]);
    let unused = PipelineError::Unused { object: name("B") };
    refused(&one().object("B", 8), &unused, &["object B", "remove"]);
    let twice = PipelineError::UsedTwice { node: name("a"), object: object.clone() };
    refused(&pipeline().object("A", 8).node("a", [output("A"), input("A")]), &twice, &["node a", "object A", "inout"]);
    let ago = PipelineError::TooLongAgo { node: node.clone(), object: object.clone(), ago: 1, depth: 0 };
    refused(&one().node("b", [past("A", 1)]), &ago, &["node b", "object A", "no delay", "depth 1"]);
    let delay = || pipeline().delay("A", 8, 2).node("a", [output("A")]);
    let ago = PipelineError::TooLongAgo { node: node.clone(), object: object.clone(), ago: 3, depth: 2 };
    refused(&delay().node("b", [past("A", 3)]), &ago, &["node b", "object A", "3 jobs", "depth is 2"]);
    let changed = PipelineError::DelayChanged { node, object: object.clone() };
    refused(&delay().node("b", [inout("A")]), &changed, &["node b", "object A", "copy"]);
    refused(&one().object("A", 8), &PipelineError::DuplicateObject { object: object.clone() }, &["A", "rename"]);
    refused(&pipeline().object("A", 0).node("a", [output("A")]), &PipelineError::NoBytes { object }, &["A", "0 bytes"]);
    let nameless = PipelineError::ObjectName { name: name("") };
    refused(&pipeline().object("", 8).node("a", [output("")]), &nameless, &["0 bytes"]);
    let none = PipelineError::Spec(SpecError::Graph(laxity_policy::graph::CompiledGraphError::NoReplicas));
    assert_eq!(one().build(0), Err(none));
    let same = PipelineError::Spec(SpecError::Duplicate { name: name("a") });
    refused(&one().node("a", []), &same, &["two nodes are called a"]);
    assert_eq!(pipeline().build(1), Err(PipelineError::Spec(SpecError::Empty)));
}

/// And not those that only wait for the cycle.
#[test]
fn a_cycle_is_told_with_its_nodes_and_the_objects_between_them() {
    let objects = pipeline().object("A", 8).object("B", 8).object("C", 8);
    let around = objects.node("z", [input("C")]).node("a", [input("B"), output("A")]);
    let around = around.node("b", [input("A"), output("B"), output("C")]);
    let link = |from: &str, to: &str, object: &str| Link {
        from: from.to_owned(),
        to: to.to_owned(),
        object: Some(object.to_owned()),
    };
    let cycle = PipelineError::Cycle { links: vec![link("b", "a", "B"), link("a", "b", "A")] };
    refused(&around, &cycle, &["b -> a (object B), a -> b (object A);", "delay"]);
    let itself = PipelineError::Cycle { links: vec![Link { object: None, ..link("a", "a", "") }] };
    refused(&pipeline().node("a", []).edge("a", "a", Channel::Counter), &itself, &["a -> a (declared edge)"]);
}
