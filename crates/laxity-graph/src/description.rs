//! A [`Spec`] as bytes, for processes that attach to a graph and know only its name.
//!
//! The format is postcard's. Reading checks everything: the bytes are in memory that others can write to.

use laxity_model::{DataObject, Edge, Graph, LatestEdge, Nanos, Node, Replicas};
use serde::{Deserialize, Serialize};

use crate::data_object::Object;
use crate::pipeline::Pipeline;
use crate::spec::{Channel, Spec, SpecError};

/// Why bytes are no description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DescriptionError {
    /// They end too early, or go on, or say something that means nothing.
    Malformed,
    /// They describe a graph that cannot be.
    Spec(SpecError),
}

/// What the bytes say.
#[derive(Serialize, Deserialize)]
struct Description {
    name: String,
    nodes: Vec<BareNode>,
    edges: Vec<Edge>,
    latest: Vec<LatestEdge>,
    data_objects: Vec<DataObject>,
    replicas: Replicas,
    channels: Vec<Channel>,
    /// How many edges were declared; the others follow from the objects.
    declared: usize,
    objects: Vec<Object>,
    recorder: u32,
    node_data: Vec<u32>,
    edge_data: Vec<u32>,
    latest_bytes: Vec<u32>,
    swapping: Vec<Vec<usize>>,
}

/// A node without its body. Bodies nest, and to read nested things of any depth takes a stack of any size.
#[derive(Serialize, Deserialize)]
struct BareNode {
    name: String,
    period: Option<Nanos>,
    phase: Nanos,
    deadline: Option<Nanos>,
    priority: Option<u32>,
    cluster: Option<usize>,
}

/// `spec` as bytes.
pub(crate) fn encode(spec: &Spec) -> Vec<u8> {
    let graph = spec.graph().clone();
    let bare = |Node { name, period, phase, deadline, priority, cluster, server: _, body: _, run: _ }| BareNode {
        name,
        period,
        phase,
        deadline,
        priority,
        cluster,
    };
    let description = Description {
        name: graph.name,
        nodes: graph.nodes.into_iter().map(bare).collect(),
        edges: graph.edges,
        latest: graph.latest,
        data_objects: graph.objects,
        replicas: graph.replicas,
        channels: spec.channels().to_vec(),
        declared: spec.declared(),
        objects: spec.objects().to_vec(),
        recorder: spec.recorder(),
        node_data: spec.node_data().to_vec(),
        edge_data: spec.edge_data().to_vec(),
        latest_bytes: spec.latest_bytes().to_vec(),
        swapping: spec.swapping().to_vec(),
    };
    postcard::to_allocvec(&description).expect("vectors take any number of bytes")
}

/// The spec that `bytes` describe.
pub(crate) fn decode(bytes: &[u8]) -> Result<Spec, DescriptionError> {
    let (description, rest) = postcard::take_from_bytes(bytes).map_err(|_| DescriptionError::Malformed)?;
    if rest.is_empty() { build(description) } else { Err(DescriptionError::Malformed) }
}

fn build(description: Description) -> Result<Spec, DescriptionError> {
    let Description { name, nodes, edges, latest, data_objects, replicas, channels, declared, objects, .. } =
        description;
    let node = |BareNode { name, period, phase, deadline, priority, cluster }| Node {
        name,
        period,
        phase,
        deadline,
        priority,
        cluster,
        server: None,
        body: Vec::new(),
        run: None,
    };
    let nodes = nodes.into_iter().map(node).collect();
    let graph = Graph { name, nodes, edges, latest, objects: data_objects, replicas };
    let spec = if objects.is_empty() {
        Spec::with_channels(graph, channels).map_err(DescriptionError::Spec)?
    } else {
        pipelined(graph, channels, objects, declared)?
    };
    let mut latest = description.latest_bytes.iter().enumerate();
    let spec = latest.try_fold(spec, |spec, (edge, &bytes)| spec.with_latest(edge, bytes));
    let (node_data, edge_data) = (description.node_data, description.edge_data);
    spec.and_then(|spec| with_extras(spec, description.recorder, &node_data, &edge_data, &description.swapping))
        .map_err(DescriptionError::Spec)
}

/// Adds what a spec has beyond its graph, channels and objects.
fn with_extras(
    spec: Spec,
    recorder: u32,
    node_data: &[u32],
    edge_data: &[u32],
    swapping: &[Vec<usize>],
) -> Result<Spec, SpecError> {
    let mut spec = spec.with_recorder(recorder)?;
    let names: Vec<String> = spec.graph().nodes.iter().map(|node| node.name.clone()).collect();
    for (name, &bytes) in names.iter().zip(node_data) {
        spec = spec.with_node_data(name, bytes)?;
    }
    for (edge, &bytes) in edge_data.iter().enumerate() {
        spec = spec.with_edge_data(edge, bytes)?;
    }
    swapping.iter().try_fold(spec, |spec, edges| spec.with_swapping(edges))
}

/// The edges keep the users of an object apart, so that they must be those that follow from it.
fn pipelined(
    graph: Graph,
    channels: Vec<Channel>,
    objects: Vec<Object>,
    declared: usize,
) -> Result<Spec, DescriptionError> {
    let Replicas::Count(replicas) = graph.replicas else { return Err(DescriptionError::Malformed) };
    let is_initialized = |object: &Object| [0, object.bytes].contains(&object.initial.len());
    let pipeline = Pipeline::of(&graph, &channels, &objects, declared).filter(|_| objects.iter().all(is_initialized));
    let spec = pipeline.and_then(|pipeline| pipeline.build(replicas).ok());
    let is_it = |spec: &Spec| *spec.graph() == graph && spec.channels() == channels && spec.objects() == objects;
    spec.filter(is_it).ok_or(DescriptionError::Malformed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pipeline::Parameter;

    fn spec() -> Spec {
        let node = |name: &str, period| Node {
            phase: Nanos(5),
            deadline: Some(Nanos(7)),
            priority: Some(3),
            ..Node::new(name, period)
        };
        let edge = |producer, consumer, back_edge| Edge {
            initial: u32::from(back_edge),
            back_edge,
            delay: u32::from(back_edge),
            ..Edge::new(producer, consumer)
        };
        let mut graph = Graph::new(
            "größer",
            vec![node("a", Some(Nanos::from_millis(1))), node("b", None)],
            vec![edge(0, 1, false), edge(1, 0, true), edge(0, 1, false), edge(0, 1, false), edge(0, 1, false)],
        );
        graph.objects = vec![DataObject { name: "image".to_owned(), accessors: vec![0, 1], delay: 0 }];
        graph.replicas = Replicas::Count(2);
        graph.latest = vec![LatestEdge { producer: 1, consumer: 0 }];
        let (message, capacity) = (64, 4);
        let address = "[::1]:65535".parse().expect("an address");
        let channels = vec![
            Channel::Ring { message, capacity },
            Channel::Counter,
            Channel::Fifo { message, capacity },
            Channel::Queue { message, capacity },
            Channel::Stream { message, capacity, address },
        ];
        let spec = Spec::with_channels(graph, channels).and_then(|spec| spec.with_recorder(16));
        let spec = spec.and_then(|spec| spec.with_node_data("b", 40)).and_then(|spec| spec.with_edge_data(1, 3));
        spec.and_then(|spec| spec.with_latest(0, 100)?.with_swapping(&[0])).expect("it is valid")
    }

    fn pipelined() -> Spec {
        let pipeline = Pipeline::new("tracker", Nanos::from_millis(33))
            .object("image", 100)
            .delay_from("points", 2, &[1, 2, 3])
            .node("camera", [Parameter::output("image")])
            .node("tracker", [Parameter::inout("image"), Parameter::past("points", 2), Parameter::output("points")])
            .node("display", [Parameter::input("image"), Parameter::past("points", 1), Parameter::input("points")])
            .edge("camera", "display", Channel::Ring { message: 8, capacity: 2 });
        pipeline.build(3).expect("it is valid")
    }

    #[test]
    fn what_was_described_is_read_back() {
        for spec in [spec(), pipelined()] {
            assert_eq!(decode(&encode(&spec)), Ok(spec));
        }
    }

    /// Objects are safe to use only with the edges that follow from their uses.
    #[test]
    fn edges_that_do_not_follow_from_the_objects_are_damage() {
        let spec = pipelined();
        type Change = fn(&mut Graph, &mut Vec<Object>);
        let with = |change: Change| {
            let (mut graph, mut objects) = (spec.graph().clone(), spec.objects().to_vec());
            change(&mut graph, &mut objects);
            let channels = spec.channels()[..graph.edges.len()].to_vec();
            let changed = Spec::with_objects(graph, channels, objects, spec.declared()).expect("a graph");
            decode(&encode(&changed))
        };
        assert_eq!(with(|_, _| {}), Ok(spec.clone()));
        let damages: [Change; 5] = [
            |graph, _| graph.edges.truncate(graph.edges.len() - 1),
            |graph, _| graph.objects[0].accessors.truncate(2),
            |graph, _| graph.replicas = Replicas::None,
            |_, objects| objects[1].initial.push(4),
            |_, objects| objects[0].uses.truncate(2),
        ];
        for (number, damage) in damages.into_iter().enumerate() {
            assert_eq!(with(damage), Err(DescriptionError::Malformed), "damage {number}");
        }
    }

    proptest! {
        /// A process that attaches reads memory that any process of the user may have written.
        #[test]
        fn damaged_bytes_are_an_error_or_another_graph_but_never_a_panic(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            cut in any::<prop::sample::Index>(),
            has_objects in any::<bool>(),
        ) {
            let mut bytes = encode(&if has_objects { pipelined() } else { spec() });
            for (at, value) in changes {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            let _ = decode(&bytes);
            let cut = cut.index(bytes.len());
            prop_assert!(decode(&bytes[..cut]).is_err());
        }
    }
}
